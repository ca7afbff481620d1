package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/rundb"
)

// vllmSince is a server that tells of one finished request once a file is there.
func vllmSince(t *testing.T, file string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := 0
		if _, err := os.Stat(file); err == nil {
			n = 1
		}
		fmt.Fprintf(w, "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 0\n"+
			"# TYPE vllm:request_success counter\nvllm:request_success_total %d\n", n)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// Row 15: a warm-up that outlasts the traffic leaves nothing, which is the first line, and exit code 4 under --strict.
func TestEmptyWindowOfCollect(t *testing.T) {
	t.Parallel()
	for strict, code := range map[string]int{"--strict=true": exitIncomplete, "--strict=false": exitDone} {
		dir := t.TempDir()
		file := filepath.Join(dir, "asked")
		text := said(t, code, "collect", vllmSince(t, file), "-o", filepath.Join(dir, "run"), "--formats", "json", "--warmup",
			"5m", "--settle", "0s", "--interval", "50ms", "--scrape-budget", "0", strict, "--", "touch", file)
		if !strings.HasPrefix(text, "error: nothing is left to measure: the warm-up of 5m0s is longer than the ") {
			t.Errorf("row 15, %s: %s", strict, text)
		}
		shown := said(t, exitFailed, "show", filepath.Join(dir, "run"))
		if !strings.HasPrefix(shown, "error: nothing is left") {
			t.Errorf("the first line of show: %s", shown)
		}
		said(t, exitIncomplete, "show", filepath.Join(dir, "run"), "--strict")
	}
}

// Row 16: no traffic is the first line; under --strict with a COMMAND it is exit code 4.
func TestNoTrafficOfCollect(t *testing.T) {
	t.Parallel()
	url, dir := vllmSince(t, filepath.Join(t.TempDir(), "never")), t.TempDir()
	collect := func(code int, name string, args ...string) {
		t.Helper()
		text := said(t, code, append([]string{"collect", url, "-o", filepath.Join(dir, name), "--formats", "json", "--settle",
			"0s", "--interval", "1s", "--scrape-budget", "0"}, args...)...)
		if !strings.HasPrefix(text, "warning: no poll showed a request") {
			t.Errorf("row 16, %v: %s", args, text)
		}
	}
	collect(exitDone, "idle", "--duration", "200ms")
	collect(exitDone, "command", "--", "true")
	collect(exitIncomplete, "strict", "--strict", "--", "true")
	for name, code := range map[string]int{"idle": exitDone, "command": exitIncomplete} {
		text := said(t, code, "show", filepath.Join(dir, name), "--strict")
		if !strings.HasPrefix(text, "warning: no poll showed a request") {
			t.Errorf("row 16, the first line of show of %s: %s", name, text)
		}
	}
}

// The rate of a run behind the proxy is that of its load, also where COMMAND takes its time before the first request.
func TestRateOfProxiedCollect(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no sh")
	}
	srv := httptest.NewServer(simulated(t, "vllm", simulate.Options{Load: []simulate.LoadStep{{}}, Seed: 3,
		AbortShare: -1, ErrorShare: -1}))
	defer srv.Close()
	run, front := filepath.Join(t.TempDir(), "run"), freeAddr(t)
	said(t, exitDone, "collect", srv.URL, "-q", "-o", run, "--formats", "json", "--interval", "100ms",
		"--scrape-budget", "0", "--settle", "0s", "--proxy", front+"="+srv.URL, "--proxy-calibration-requests", "0", "--",
		"sh", "-c", "sleep 1; exec askllm "+front+" 3")
	db, err := rundb.Open(run)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	first, last, ok, err := db.RequestSpan(t.Context(), 0, math.MaxInt64)
	if err != nil || !ok {
		t.Fatal("no requests", err)
	}
	var report struct {
		QPS      struct{ Value float64 }
		Duration struct{ Value float64 } `json:"duration_s"`
	}
	text := said(t, exitDone, "requests", "report", run, "--format", "json")
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatal(err)
	}
	seconds := float64(last-first) / 1e9
	if began := db.Marks()[0].AtNS; !closeTo(report.QPS.Value, 3/seconds, 1e-9) ||
		!closeTo(report.Duration.Value, seconds, 1e-9) || first-began < 1e9 {
		t.Errorf("%+v, the clients had 3 requests in %v s, %v s after COMMAND's start", report, seconds,
			float64(first-began)/1e9)
	}
}
