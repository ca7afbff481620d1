//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// TestHardening has what a run outlives, and what refuses one before it begins, by
// the numbers that package faults lists.
func TestHardening(t *testing.T) {
	t.Parallel()
	t.Run("K1", func(t *testing.T) {
		t.Parallel()
		t.Run("full disk", func(t *testing.T) { t.Parallel(); fullDisks(t) })
		t.Run("held events", func(t *testing.T) { t.Parallel(); heldEvents(t) })
		t.Run("directory removed", func(t *testing.T) { t.Parallel(); removedDirectory(t) })
	})
	t.Run("K2", func(t *testing.T) { t.Parallel(); deadReaders(t) })
	t.Run("K3", func(t *testing.T) { t.Parallel(); lostTerminal(t) })
	t.Run("K4", func(t *testing.T) { t.Parallel(); nobodyAnswers(t) })
	t.Run("K5", func(t *testing.T) { t.Parallel(); forgottenDashes(t) })
	t.Run("K7", func(t *testing.T) { t.Parallel(); keepsOldRun(t) })
	t.Run("K9", func(t *testing.T) { t.Parallel(); trueCauses(t) })
	t.Run("K17", func(t *testing.T) { t.Parallel(); chattyLibrary(t) })
	t.Run("K10", func(t *testing.T) { t.Parallel(); emptyWindows(t) })
	t.Run("K20", func(t *testing.T) { t.Parallel(); endlessImports(t) })
	t.Run("K21", func(t *testing.T) {
		t.Parallel()
		t.Run("recorded", refusesLargest)
		t.Run("read", readsWithin)
		t.Run("imported", importsWithin)
	})
	t.Run("K24", func(t *testing.T) { t.Parallel(); marksElsewhere(t) })
}

// deadReaders has nobody read stdout and stderr any more while a run goes on: COMMAND
// runs to its end, the exports are written, and the exit code is that of the run.
func deadReaders(t *testing.T) {
	srv := serveBad(t, goodScript)
	for code, command := range map[int]string{exitDone: "sleep 0.3", 7: "sleep 0.3; exit 7"} {
		tmp := t.TempDir()
		dir, ran := filepath.Join(tmp, "run"), filepath.Join(tmp, "ran")
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"collect", srv.Addr, "-o", dir, "--formats", "json"}, endless...)
		cmd := exec.Command("scrapestat", append(args, "--", "sh", "-c", "touch "+ran+"; "+command)...)
		cmd.Stdout, cmd.Stderr = w, w
		_ = cmd.Run() // how it ended is what counts
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != code || !exists(ran) {
			t.Errorf("nobody reads: %v, want exit code %d; COMMAND began: %v", cmd.ProcessState, code, exists(ran))
		}
		checkFaultyRun(t, dir, "json")
	}
	// COMMAND has the signal as it would have without us.
	dir := filepath.Join(t.TempDir(), "run")
	try(t, 128+int(syscall.SIGPIPE), "", append(append([]string{"collect", srv.Addr, "-o", dir, "--formats", "json"},
		endless...), "--", "sh", "-c", "kill -PIPE $$")...)
}

// lostTerminal sends SIGHUP, as the end of a session does, more than once: the run
// ends in the normal way and takes COMMAND with it. What nohup started goes on.
func lostTerminal(t *testing.T) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP) // where nohup started us, what we start would ignore it as we do
	defer signal.Stop(heard)
	srv := serveBad(t, goodScript)
	tmp := t.TempDir()
	dir, pids, talk := filepath.Join(tmp, "run"), filepath.Join(tmp, "pids"), &lockedBuffer{}
	args := append([]string{"collect", srv.Addr, "-o", dir, "--formats", "json"}, endless...)
	cmd := start(t, talk, append(args, "--", "sh", "-c", "echo $$ >"+pids+"; exec sleep 1000")...)
	if !waitForPolls(dir, 3) || !waitUntil(func() bool { return exists(pids) }) {
		t.Fatalf("nothing was recorded: %s", talk.String())
	}
	for range 3 {
		_ = cmd.Process.Signal(syscall.SIGHUP)
	}
	ends(t, cmd, exitDone, talk)
	gone(t, pids, 1)
	checkFaultyRun(t, dir, "json")

	dir = filepath.Join(tmp, "nohup")
	cmd = exec.Command("nohup", append([]string{"scrapestat", "collect", srv.Addr, "-o", dir, "--formats", "json"},
		endless...)...)
	cmd.Stdout, cmd.Stderr = talk, talk
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !waitForPolls(dir, 3) {
		t.Fatalf("nothing was recorded: %s", talk.String())
	}
	_ = cmd.Process.Signal(syscall.SIGHUP)
	seen, err := countStored(dir)
	if err != nil || !waitForPolls(dir, seen+3) {
		t.Errorf("what nohup started ended: %v:\n%s", err, talk.String())
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	ends(t, cmd, exitDone, talk)
}

// nobodyAnswers has COMMAND started only when enough targets answer.
func nobodyAnswers(t *testing.T) {
	srv := serveBad(t, goodScript)
	check := func(code int, started bool, want string, flags ...string) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "run")
		ran := dir + ".ran"
		try(t, code, want, append(append([]string{"collect", "-o", dir, "--formats", "json", "--settle", "0s"}, flags...),
			"--",
			"touch", ran)...)
		if exists(ran) != started || exists(dir) != started {
			t.Errorf("%q: COMMAND started: %v, want %v; run directory: %v", flags, exists(ran), started, exists(dir))
		}
	}
	const refused = "http://127.0.0.1:1/metrics: "
	check(exitNothing, false, refused, "127.0.0.1:1")
	check(exitNothing, false, "; do: ", "127.0.0.1:1", "--quiet")
	check(exitNothing, true, "", "127.0.0.1:1", "--require-targets", "none")
	check(exitDone, true, "warning: no answer before the run: "+refused, "127.0.0.1:1", srv.Addr)
	check(exitNothing, false, "1 of 2 targets do not answer", "127.0.0.1:1", srv.Addr, "--require-targets", "all")
	check(exitDone, true, "", "x="+srv.Addr, "--require-targets", "all", "--wait", "1m")
	check(exitNothing, false, "waiting up to 1ms", "127.0.0.1:1", "--wait", "1ms")
	check(exitNothing, false, "triton+http://127.0.0.1:1", "triton+http://127.0.0.1:1")
	check(exitUsage, false, "--require-targets", "127.0.0.1:1", "--require-targets", "most")
	servesLate(t)
}

// servesLate starts a server while --wait waits for it, and ends a wait by a signal.
func servesLate(t *testing.T) {
	t.Helper()
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	begin := func() (*exec.Cmd, *lockedBuffer) {
		talk := &lockedBuffer{}
		cmd := start(t, talk, "collect", address, "--wait", "10m", "-o", dir, "--formats", "json", "--settle", "0s", "--",
			"true")
		if !waitUntil(func() bool { return strings.Contains(talk.String(), "waiting up to 10m0s for 1 targets") }) {
			t.Fatal(talk.String())
		}
		return cmd, talk
	}
	cmd, talk := begin()
	_ = cmd.Process.Signal(syscall.SIGINT)
	ends(t, cmd, exitNothing, talk)
	cmd, talk = begin()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("a 1\n"))
	}), ReadHeaderTimeout: patience}
	go func() { _ = srv.Serve(ln) }()
	defer srv.Close()
	ends(t, cmd, exitDone, talk)
}

// endlessImports asks imports to end whose input has no end, or has stopped coming.
func endlessImports(t *testing.T) {
	for _, kind := range []string{"openmetrics", "aiperf-jsonl", "torchserve-log"} {
		for _, silent := range []bool{false, true} {
			talk := &lockedBuffer{}
			cmd := exec.Command("scrapestat", "import", kind, "-", "-o", filepath.Join(t.TempDir(), "run"))
			cmd.Stdout, cmd.Stderr = talk, talk
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			// Where so much was taken, it is being imported.
			if _, err := in.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
				t.Fatal(err)
			}
			written := make(chan struct{})
			go func() {
				defer close(written)
				for err := error(nil); err == nil && !silent; {
					_, err = in.Write(bytes.Repeat([]byte("x\n"), 1<<10))
				}
			}()
			_ = cmd.Process.Signal(syscall.SIGTERM)
			ends(t, cmd, exitFailed, talk)
			if !strings.Contains(talk.String(), "ended early: terminated") {
				t.Errorf("%s, silent %v: %s", kind, silent, talk.String())
			}
			<-written
			_ = in.Close()
		}
	}
}

// forgottenDashes has a command among the targets.
func forgottenDashes(t *testing.T) {
	try(t, exitUsage, "scrapestat collect localhost:8000 -- sleep 5", "collect", "localhost:8000", "sleep", "5")
	try(t, exitUsage, "scrapestat collect TARGET -- sleep 5", "collect", "sleep", "5")
}

// keepsOldRun has collect refuse to begin, for one reason after the other: the old run
// is what it was, byte by byte, and without one nothing is left.
func keepsOldRun(t *testing.T) {
	srv := serveBad(t, goodScript)
	old := newRun(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	proxy := busy.Addr().String() + "=http://" + srv.Addr
	for _, flags := range [][]string{{"--listen", busy.Addr().String()}, {"--requests", "missing.jsonl"},
		{"--proxy", proxy},
		{"--require-targets", "all", "127.0.0.1:1"}} {
		args := append(append([]string{"collect", srv.Addr, "--formats", "json"}, quickRun...), flags...)
		dir := filepath.Join(t.TempDir(), "run")
		chk := func(code int) {
			t.Helper()
			if code == exitDone {
				t.Errorf("%q did not refuse to begin", flags)
			}
		}
		code, _ := runQuiet(append(args, "-o", filepath.Join(dir, "new"))...)
		if chk(code); exists(dir) {
			t.Errorf("%q: a directory is left", flags)
		}
		if err := os.CopyFS(dir, os.DirFS(old)); err != nil {
			t.Fatal(err)
		}
		code, _ = runQuiet(append(args, "-o", dir, "--force")...)
		if chk(code); names(t, dir) != names(t, old) {
			t.Errorf("%q: the directory holds %s, want %s", flags, names(t, dir), names(t, old))
		}
		was, err := os.ReadFile(filepath.Join(old, rundb.FileName))
		if err != nil {
			t.Fatal(err)
		}
		if is, err := os.ReadFile(filepath.Join(dir, rundb.FileName)); err != nil || !bytes.Equal(is, was) {
			t.Errorf("%q: the old recording is not what it was: %v", flags, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(old)); err != nil {
		t.Fatal(err)
	}
	try(t, exitDone, "", append([]string{"collect", srv.Addr, "--formats", "json", "-o", dir, "--force"}, quickRun...)...)
	if exists(filepath.Join(dir, ".replaced")) || exists(filepath.Join(dir, "server_metrics_export.csv")) {
		t.Errorf("of the old run %s is left", names(t, dir))
	}
}

// emptyWindows has the warm-up outlast COMMAND: the first line tells that there are no
// numbers, and the exit code does under --strict.
func emptyWindows(t *testing.T) {
	srv := serveBad(t, goodScript)
	args := []string{"collect", srv.Addr, "--formats", "json", "--settle", "0s", "--warmup", "1h", "--force",
		"--scrape-budget", "0",
		"-o", filepath.Join(t.TempDir(), "run")}
	command := []string{"--", "sleep", "0.2"}
	var out, talk bytes.Buffer
	code := run(t.Context(), append(args, command...), stdio{strings.NewReader(""), &out, &talk})
	if code != exitDone || !strings.HasPrefix(out.String(), "error: nothing is left to measure") {
		t.Errorf("exit code %d:\n%s%s", code, out.String(), talk.String())
	}
	try(t, exitIncomplete, "nothing is left to measure", append(append(args, "--strict"), command...)...)
}

// marksElsewhere sets marks by clocks that differ from the wall clock of the recorder: the mark is where the
// monotonic clock has it, or refused with the difference.
func marksElsewhere(t *testing.T) {
	const origin, mono, second = int64(1_790_000_000e9), int64(5000e9), int64(1e9)
	dir := t.TempDir()
	w, err := rundb.Create(dir, rundb.Meta{ID: "r", OriginNS: origin, BootID: "boot", BootNS: mono, Host: "recorder",
		Interval: time.Second}, rundb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(t.Context())
	if _, err := w.AddTarget(metric.Target{URL: "http://a/metrics"}); err != nil {
		t.Fatal(err)
	}
	poll := &metric.Snapshot{DueNS: origin + 5*second, SentNS: origin + 5*second, FirstByteNS: origin + 5*second,
		Outcome: metric.Timeout}
	if err := errors.Join(w.Record(poll), w.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		clock rundb.HostClock
		at    int64 // seconds of the run; -1: refused
		text  string
	}{
		{"steps ahead", rundb.HostClock{BootID: "boot", MonoNS: mono + 6*second, UnixNS: origin + 3606*second}, 6, ""},
		{"steps back", rundb.HostClock{BootID: "boot", MonoNS: mono + 6*second, UnixNS: origin - 3594*second}, 6, ""},
		{"agrees", rundb.HostClock{BootID: "other", UnixNS: origin + 7*second}, 7, ""},
		{"ahead", rundb.HostClock{BootID: "other", UnixNS: origin + 3605*second}, -1, "1h0m0s later"},
		{"behind", rundb.HostClock{UnixNS: origin - 3595*second}, -1, "-1h0m0s later"},
	} {
		m, err := markAt(t.Context(), dir, "x", "", c.clock)
		switch {
		case c.at < 0 && (err == nil || !strings.Contains(err.Error(), c.text)):
			t.Errorf("%s: %v, %v, want %q", c.name, m, err, c.text)
		case c.at >= 0 && (err != nil || m.AtNS != origin+c.at*second):
			t.Errorf("%s: at %v s, %v, want %d s", c.name, float64(m.AtNS-origin)/1e9, err, c.at)
		}
	}
	// A recorder tells its boot.
	srv := serveBad(t, goodScript)
	dir = filepath.Join(t.TempDir(), "run")
	try(t, exitDone, "", "collect", srv.Addr, "-o", dir, "--formats", "json", "--", "sleep", "0.2")
	r, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	clock, err := rundb.ReadHostClock()
	if err != nil {
		t.Fatal(err)
	}
	meta := r.Meta()
	if at, err := meta.At(clock, 0); err != nil || meta.BootID != clock.BootID || at < meta.OriginNS {
		t.Errorf("boot %q of %q, now %d, origin %d, %v", meta.BootID, clock.BootID, at, meta.OriginNS, err)
	}
}

// refusesLargest has one of two targets make up series without end: it is named, and
// the run is not complete under --strict.
func refusesLargest(t *testing.T) {
	var polls atomic.Int64
	hog := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := polls.Add(1)
		for i := range 1000 {
			fmt.Fprintf(w, "x{id=\"%d.%d\"} 1\n", n, i)
		}
	}))
	defer hog.Close()
	srv := serveBad(t, goodScript)
	for _, strict := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "run")
		args := []string{"collect", "hog=" + hog.URL, "good=" + srv.Addr, "-o", dir, "--formats", "json", "--max-memory",
			"1000000"}
		code := exitDone
		if strict {
			args, code = append(args, "--strict"), exitIncomplete
		}
		var said bytes.Buffer
		got := run(t.Context(), append(args, quickRun...), stdio{strings.NewReader(""), &said, &said})
		accounts, err := faults.Accounts(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		told := regexp.MustCompile(`(?s)hog.*--max-memory`).MatchString(said.String())
		for _, command := range [][]string{{"show", dir}, {"compare", dir, dir}} {
			try(t, exitDone, "", command...)
			try(t, exitIncomplete, "lines dropped", append(command, "--strict")...)
		}
		if got != code || accounts[0].Dropped == 0 || accounts[1].Dropped != 0 || !told {
			t.Errorf("exit %d, want %d; accounts %+v, said %.2000s", got, code, accounts, said.String())
		}
	}
}

// readsWithin has a run read within the memory that it was recorded in, and refused by name with less. Every command
// that reads or records runs has the flag.
func readsWithin(t *testing.T) {
	var body strings.Builder
	for i := range 500 {
		fmt.Fprintf(&body, "x{id=\"%d\"} 1\n", i)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(body.String())) // who does not read it all is none of its business
	}))
	defer srv.Close()
	dir := filepath.Join(t.TempDir(), "run")
	const fits, less = "900000", "700000" // a line takes 1536 bytes, and 6 for each byte of its labels
	try(t, exitDone, "", append([]string{"collect", srv.URL, "-o", dir, "--formats", "json", "--max-memory", "1500000"},
		quickRun...)...)
	for _, args := range [][]string{{"show", dir}, {"export", dir, "--formats", "json,parquet"}, {"check", dir, "--assert",
		"x avg < 5"}, {"report", dir}, {"compare", dir, filepath.Join(dir, "server_metrics_export.json")}} {
		try(t, exitDone, "", append(args, "--max-memory", fits)...)
		try(t, exitMemory, "--max-memory", append(args, "--max-memory", less)...)
	}
	try(t, exitMemory, "--max-memory", "compare", dir, dir, "--max-memory", fits)
	try(t, exitMemory, "--max-memory", "repair", dir, "--max-memory", less)
	if exists(dir + "-repaired") {
		t.Error("half of a repair is left")
	}
	try(t, exitDone, "", "repair", dir, "-o", dir+"-mended", "--max-memory", fits)
	for _, c := range allCommands(newRootCmd(discard())) {
		f := c.Flags()
		reads := f.Lookup("estimator") != nil || c.Name() == "join" || c.Name() == "repair" ||
			c.HasParent() && c.Parent().Name() == "import"
		if reads && f.Lookup("max-memory") == nil {
			t.Errorf("%s has no --max-memory", c.CommandPath())
		}
	}
}

// importsWithin imports more series than there is memory for: those that do not fit are counted.
func importsWithin(t *testing.T) {
	tmp := t.TempDir()
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, `{"endpoint_url":"http://a","timestamp_ns":1000000000,"metrics":{"x%d":[{"value":1}]}}`+"\n", i)
	}
	file := filepath.Join(tmp, "in.jsonl")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	try(t, exitDone, "500 samples", "import", "aiperf-jsonl", file, "-o", filepath.Join(tmp, "all"))
	dir := filepath.Join(tmp, "some")
	try(t, exitIncomplete, "samples were lost", "import", "aiperf-jsonl", file, "-o", dir, "--strict", "--max-memory",
		"400000")
	try(t, exitDone, "memory_limit", "show", dir, "--max-memory", "400000")
}

// TestCgroupMemory reads the limits of both versions, of the group and of those above.
func TestCgroupMemory(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("a/b/memory.max", "max\n")
	write("a/memory.max", "3000000\n")
	write("memory/c/memory.limit_in_bytes", "9223372036854771712\n")
	write("memory/memory.limit_in_bytes", "2000000\n")
	for text, want := range map[string]int64{"0::/a/b\n": 3_000_000, "0::/\n": math.MaxInt64, "0::/../..\n": math.MaxInt64,
		"5:cpu:/x\n4:memory:/c\n0::/a\n": 2_000_000, "": math.MaxInt64, "x\n": math.MaxInt64} {
		if got := cgroupMemory(write("own", text), root); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if got := cgroupMemory(filepath.Join(root, "none"), root); got != math.MaxInt64 {
		t.Errorf("without cgroups: %d", got)
	}
}

// hog is a command that takes memory until there is none.
func hog() {
	syscall.Exit(withinMemory(func() int {
		for held := [][]byte{}; ; {
			held = append(held, make([]byte, 64<<20))
		}
	}, os.Stderr))
}

// trueCauses has messages name what is wrong: a recording without its log, a file in place of a run, no memory.
func trueCauses(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	w, err := rundb.Create(from, rundb.Meta{ID: "r", OriginNS: 1}, rundb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(t.Context())
	data, err := os.ReadFile(filepath.Join(from, rundb.FileName))
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, rundb.FileName), data, 0o600),
		os.WriteFile(filepath.Join(dir, "report.html"), []byte("<html>"), 0o600)); err != nil {
		t.Fatal(err)
	}
	try(t, exitFailed, "its log is missing, which has what was recorded: copy run.db* together", "show", dir)
	try(t, exitUsage, "report.html is a file of a run: give the run directory, "+dir, "show",
		filepath.Join(dir, "report.html"))
	try(t, exitUsage, "give a run directory", "export", os.Args[0])
	try(t, exitFailed, "no recording there", "show", filepath.Join(dir, "gone"))
	if code := codeOf(fmt.Errorf("read: %w", syscall.ENOMEM)); code != exitMemory {
		t.Errorf("no memory: exit code %d", code)
	}
	if racing { // the detector takes more than any limit
		return
	}
	cmd := exec.Command("sh", "-c", "ulimit -v 4000000; exec hog")
	text, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != exitMemory || !bytes.Contains(text, []byte("scrapestat: out of mem")) {
		t.Errorf("no memory: exit code %d, %v: %s", code, err, text[max(0, len(text)-300):])
	}
	cmd = exec.Command("sh", "-c", "ulimit -v 4000000; exec scrapestat show "+filepath.Join(dir, "gone"))
	if text, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != exitFailed {
		t.Errorf("limited memory: %v: %s", err, text)
	}
}

// chattyLibrary polls a server that sends more than it announces, of which Go's HTTP
// client tells the standard logger: that is counted in the run, and said unless --quiet.
func chattyLibrary(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				request := make([]byte, 4096)
				for {
					if _, err := c.Read(request); err != nil {
						return
					}
					if _, err := c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\nand more")); err != nil {
						return
					}
				}
			}()
		}
	}()
	for _, quiet := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "run")
		cmd := exec.Command("scrapestat", append([]string{"collect", ln.Addr().String(), "-o", dir, "--formats", "json",
			fmt.Sprint("--quiet=", quiet)}, quickRun...)...)
		var talk bytes.Buffer
		cmd.Stderr = &talk
		if err := cmd.Run(); err != nil || strings.Contains(talk.String(), "\nUnsolicited") ||
			strings.Contains(talk.String(), "Go's HTTP library") == quiet || quiet && talk.Len() > 0 {
			t.Errorf("quiet %v: %v\n%s", quiet, err, talk.String())
		}
		r, err := rundb.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(r.Warnings())
		if !strings.Contains(text, "library_log") || !strings.Contains(text, "Unsolicited") {
			t.Errorf("quiet %v: it is not in the run: %s", quiet, text)
		}
		r.Close()
	}
}
