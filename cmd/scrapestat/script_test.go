package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

var update = flag.Bool("update", false, "rewrite the expectations of the scripts")

// seldom is GOGC where nobody asks for memory: collecting garbage of small heaps is a quarter of the time.
const seldom = 400

// waiting is how many tests run at a time: they mostly wait for processes and clocks.
const waiting = 8

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(waiting)); err != nil { // -parallel comes later and wins
		panic(err)
	}
	if os.Getenv("GOGC") == "" && strings.HasSuffix(os.Args[0], ".test") { // not where it is one of the commands
		debug.SetGCPercent(seldom)
	}
	testscript.Main(m, map[string]func(){"scrapestat": main, "scrapestat-watched": watchedMain, "askllm": askLLM,
		"standin": standIn, "hog": hog})
}

// TestScripts runs the command line as a user does, against real servers on
// loopback: the simulated engines and one server for each way to misbehave.
func TestScripts(t *testing.T) {
	t.Parallel()
	env := startServers(t)
	startTriton(t, env)
	runs, err := filepath.Abs("../../testdata/runs")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			for name, value := range env {
				e.Setenv(name, value)
			}
			e.Setenv("TZ", "UTC")
			e.Setenv("RUNS", runs)
			e.Setenv("SERVED", filepath.Join(runs, "../fixtures/server-requests"))
			e.Setenv("GOGC", strconv.Itoa(seldom))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      cmdExits,
			"waitfor":    cmdWaitFor,
			"waitanswer": cmdWaitAnswer,
		},
	})
}

// cmdExits is `exits CODE PROGRAM ARG...`: the program must end with that code.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("run %s: %v", args[1], err)
	}
	if want, _ := strconv.Atoi(args[0]); got != want {
		ts.Fatalf("exit code of %q: got %d, want %d", args[1:], got, want)
	}
}

// startServers starts what the scripts scrape and returns their addresses as
// environment variables.
func startServers(t *testing.T) map[string]string {
	t.Helper()
	env := map[string]string{}
	serve := func(name string, h http.Handler) {
		srv := httptest.NewServer(h)
		t.Cleanup(srv.Close)
		env[name] = strings.TrimPrefix(srv.URL, "http://")
	}
	for name, profile := range map[string]string{"VLLM": "vllm", "OMNI": "vllm-omni"} {
		serve(name, simulated(t, profile, simulate.Options{Rate: 40, Seed: 3}))
	}
	ill := simulate.Options{Rate: 40, Seed: 3, FlagsOff: true}
	for name, profile := range map[string]string{"SGLANG_OFF": "sglang", "TRTLLM_OFF": "trtllm",
		"LLAMACPP_OFF": "llamacpp", "TORCHSERVE_OFF": "torchserve",
		"OMNI_OFF": "vllm-omni", "TRITON_OFF": "triton"} {
		serve(name, simulated(t, profile, ill))
	}
	for name, profile := range map[string]string{"TRTLLM": "trtllm", "DCGM": "dcgm"} {
		serve(name, simulated(t, profile, simulate.Options{Rate: 40, Seed: 3}))
	}
	idle, err := simulate.New("torchserve", simulate.Options{Load: []simulate.LoadStep{{}}})
	if err != nil {
		t.Fatal(err)
	}
	serve("TSIDLE", idle)
	// Servers that only the requests of a script use, and one that answers in text.
	for _, name := range []string{"LLM", "LLM2"} {
		serve(name, simulated(t, "vllm", simulate.Options{Load: []simulate.LoadStep{{}}, Seed: 3, AbortShare: -1,
			ErrorShare: -1}))
	}
	serve("TEXTLLM", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "up 1\n") }))
	for i := range 6 {
		front, err := freeAddress()
		if err != nil {
			t.Fatal(err)
		}
		env["FRONT"+strconv.Itoa(i)] = front
	}
	body := func(contentType, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			fmt.Fprint(w, text)
		}
	}
	const plain = "text/plain; version=0.0.4"
	const good = "# HELP good_total Good things.\n# TYPE good_total counter\ngood_total 5\n"
	serve("GOOD", body(plain, good))
	serve("NOTFOUND", http.NotFoundHandler())
	serve("HTML", body("text/html", "<!doctype html><title>Sign in</title>"))
	serve("JSON", body("application/json", `[{"iter": 1}]`))
	serve("BADLINE", body(plain, good+"this is not a sample\nlast_good 1\n"))
	serve("NAN", body(plain, "# TYPE g gauge\ng{a=\"1\"} NaN\ng{a=\"2\"} 3\n"))
	serve("EMPTY", body(plain, ""))
	serve("CUT", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", plain)
		w.Header().Set("Content-Length", strconv.Itoa(len(good)+100))
		fmt.Fprint(w, good+"cut_total 12")
	}))
	serve("HANG", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	env["DEAD"] = ln.Addr().String()
	ln.Close()
	return env
}

func simulated(t *testing.T, profile string, o simulate.Options) http.Handler {
	t.Helper()
	sim, err := simulate.New(profile, o)
	if err != nil {
		t.Fatal(err)
	}
	return sim
}
