//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/internal/faults"
)

// start starts scrapestat as a process of its own; what it says goes to talk.
func start(t *testing.T, talk *lockedBuffer, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("scrapestat", args...)
	cmd.Stderr = talk
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test failed
	return cmd
}

// ends waits for a process and checks its exit code.
func ends(t *testing.T, cmd *exec.Cmd, code int, talk *lockedBuffer) {
	t.Helper()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != code {
		t.Errorf("%v ended with %v, want exit code %d:\n%s", cmd.Args, err, code, talk.String())
	}
}

// endless are flags for a run that goes on until somebody ends it.
var endless = []string{"--interval", "20ms", "--scrape-budget", "0", "--settle", "0s"}

// TestCatalogueProcess has the cases D01 to D11, S12 and S13 but the kills and
// the full disks, which have tests of their own.
func TestCatalogueProcess(t *testing.T) {
	t.Parallel()
	srv := serveBad(t, goodScript)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run("D01 "+sig.String(), func(t *testing.T) {
			dir, talk := filepath.Join(t.TempDir(), "run"), &lockedBuffer{}
			cmd := start(t, talk, append([]string{"collect", srv.Addr, "-o", dir}, endless...)...)
			if !waitForPolls(dir, 3) {
				t.Fatal("nothing was recorded")
			}
			_ = cmd.Process.Signal(sig)
			ends(t, cmd, exitDone, talk)
			checkFaultyRun(t, dir, "json", "csv", "parquet")
		})
	}
	t.Run("D02 second signal", TestAbort)
	t.Run("D05 outputs that cannot be", badOutputs)
	t.Run("D06 output exists", func(t *testing.T) {
		dir := newRun(t)
		args := append([]string{"collect", srv.Addr, "-o", dir, "--formats", "json"}, quickRun...)
		try(t, exitUsage, "--force", args...)
		checkFaultyRun(t, dir, "json", "csv", "jsonl", "parquet")
		try(t, exitDone, "", append(args, "--force")...)
		checkFaultyRun(t, dir, "json")
		if _, err := os.Stat(filepath.Join(dir, "server_metrics_export.csv")); err == nil {
			t.Error("a file of the old run is left")
		}
	})
	t.Run("D07 two collectors", twoCollectors)
	t.Run("D08 little memory", func(t *testing.T) {
		dir, talk := filepath.Join(t.TempDir(), "run"), &lockedBuffer{}
		limit := "2097152"
		if racing { // the detector maps more than that for itself
			limit = "unlimited"
		}
		cmd := exec.Command("sh", "-c", "ulimit -v "+limit+`; GOMEMLIMIT=256MiB exec scrapestat "$@"`, "sh", "collect",
			srv.Addr, "-o", dir, "--duration", "300ms", "--settle", "0s")
		cmd.Stderr = talk
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ends(t, cmd, exitDone, talk)
		checkFaultyRun(t, dir, "json", "csv", "parquet")
	})
	t.Run("D09 commands", commands)
	t.Run("D11 no terminal", noTerminal)
	t.Run("S12 stopped", stopped)
	t.Run("S13 odd windows", oddWindows)
	t.Run("X01 the terminal", terminal)
	t.Run("X04 the status page", TestListen)
}

// terminal prints what a hostile target sends: nothing of it acts on the terminal.
func terminal(t *testing.T) {
	hostile := serveBad(t, `200 body="# HELP g \x1b[31mred\n# TYPE g gauge\ng{x=\"\x1b]0;title\x07\",y=\"\x1b]52;c;`+
		`aGk=\x07\",z=\"\r\x9b2J\"} 1\n# TYPE c_total counter\nc_total{x=\"\x1b]8;;http://evil\x1b\\\\\"} 1\n"
200 body="# HELP g \x1b[31mred\n# TYPE g gauge\ng{x=\"\x1b]0;title\x07\",y=\"\x1b]52;c;aGk=\x07\",z=\"\r\"} 9\n# `+
		`TYPE c_total counter\nc_total{x=\"\x1b]8;;http://evil\x1b\\\\\"} 5\nbad \x1b[2J line\n"`)
	failing := serveBad(t, `500 body="\x1b]0;title\x07\nsecond line"`)
	dir := filepath.Join(t.TempDir(), "run")
	said := try(t, exitDone, "", append([]string{"collect", hostile.Addr, failing.Addr, "-o", dir, "--tag", "k=\x1b[31m"},
		quickRun...)...)
	said += try(t, exitDone, "", "show", dir)
	said += try(t, exitDone, "", "show", dir, "--format", "markdown")
	if i := strings.IndexAny(said, "\x1b\x07\r\u009b"); i >= 0 {
		t.Errorf("a control character in the output: %q", said[max(0, i-80):min(len(said), i+40)])
	}
	checkFaultyRun(t, dir, "json", "csv", "parquet")
}

func badOutputs(t *testing.T) {
	tmp := t.TempDir()
	file, ran := filepath.Join(tmp, "file"), filepath.Join(tmp, "ran")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(out string) {
		t.Helper()
		var said bytes.Buffer
		code := run(t.Context(), []string{"collect", "127.0.0.1:1", "--require-targets", "none", "-o", out, "--", "touch",
			ran}, stdio{nil, &said, &said})
		if code != exitUsage && code != exitFailed || !strings.Contains(said.String(), out) {
			t.Errorf("-o %s: exit %d: %s", out, code, said.String())
		}
		if _, err := os.Stat(ran); err == nil {
			t.Fatalf("-o %s: the load was started", out)
		}
	}
	check("/dev/full")
	check(file)
	check(filepath.Join(file, "below"))
	check("/proc/no-such-folder/run")
}

func twoCollectors(t *testing.T) {
	srv := serveBad(t, goodScript)
	dir, talk := filepath.Join(t.TempDir(), "run"), &lockedBuffer{}
	first := start(t, talk, append([]string{"collect", srv.Addr, "-o", dir}, endless...)...)
	if !waitForPolls(dir, 2) {
		t.Fatal("nothing was recorded")
	}
	try(t, exitUsage, "in use", append([]string{"collect", srv.Addr, "-o", dir, "--force"}, quickRun...)...)
	_ = first.Process.Kill()
	_ = first.Wait() // killed
	// The lock of the dead is no lock.
	try(t, exitDone, "", append([]string{"collect", srv.Addr, "-o", dir, "--force", "--formats", "json"}, quickRun...)...)
	checkFaultyRun(t, dir, "json")
}

func commands(t *testing.T) {
	srv := serveBad(t, goodScript)
	check := func(code int, want string, command ...string) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "run")
		args := append([]string{"collect", srv.Addr, "-o", dir, "--formats", "json", "--interval", "20ms", "--settle", "0s",
			"--scrape-budget", "0", "--"}, command...)
		try(t, code, want, args...)
		if _, err := os.Stat(dir); err == nil {
			checkFaultyRun(t, dir, "json")
		}
	}
	check(exitNotFound, "no-such-command", "no-such-command")
	check(128+int(syscall.SIGSEGV), "", "sh", "-c", "kill -SEGV $$")
	check(9, "", "sh", "-c", "exit 9")
	check(exitDone, "", "sh", "-c", "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2")
	// A grandchild that keeps our pipes does not hold the end up, and is ended.
	pids := filepath.Join(t.TempDir(), "pids")
	check(exitDone, "", "sh", "-c", "sleep 1000 & echo $! >"+pids+"; exit 0")
	gone(t, pids, 1)
	t.Run("hangs after the signal", func(t *testing.T) {
		// SIGTERM is ignored by all of the tree, or by those who have lost their head.
		stubborn(t, `trap "" TERM; sleep 1000 & echo $$ $! >"$0"; wait`, 2)
		stubborn(t, `(trap "" TERM; exec sleep 1000 >/dev/null 2>&1) & echo $$ $! >"$0"; wait`, 2)
	})
}

// stubborn has collect end a shell that does not want to, with little grace. The
// script writes the numbers of its processes to the file that is its name.
func stubborn(t *testing.T, script string, processes int) {
	t.Helper()
	tmp := t.TempDir()
	o := collectOptions{grace: 300 * time.Millisecond}
	cmd := &cobra.Command{}
	o.register(cmd)
	dir, pids := filepath.Join(tmp, "run"), filepath.Join(tmp, "pids")
	if err := cmd.ParseFlags(append([]string{"-o", dir, "--formats", "json"}, quickRun...)); err != nil {
		t.Fatal(err)
	}
	o.duration = time.Second // time to begin for the shell
	o.targets, o.command = []string{serveBad(t, goodScript).Addr}, []string{"sh", "-c", script, pids}
	if err := o.validate(); err != nil {
		t.Fatal(err)
	}
	var said lockedBuffer
	if err := runCollect(t.Context(), o, stdio{strings.NewReader(""), &said, &said}); err != nil {
		t.Errorf("%s: %v:\n%s", script, err, said.String())
	}
	gone(t, pids, processes)
	checkFaultyRun(t, dir, "json")
}

// gone checks that the processes whose numbers are in a file end, if they have not:
// the killed are not dead at once.
func gone(t *testing.T, file string, want int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pids := strings.Fields(string(text))
	if len(pids) != want {
		t.Fatalf("%d processes, want %d: %s", len(pids), want, text)
	}
	for _, p := range pids {
		pid, err := strconv.Atoi(p)
		if err != nil {
			t.Fatal(err)
		}
		if !waitUntil(func() bool { return dead(pid) }) {
			t.Errorf("process %d of %s is left", pid, text)
			_ = syscall.Kill(pid, syscall.SIGKILL) // it is ours
		}
	}
}

// dead reports whether there is no such process, or one that only waits for its
// parent to notice.
func dead(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if _, state, ok := strings.Cut(string(stat), ") "); err == nil && ok && state[0] == 'Z' {
		return true
	}
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func noTerminal(t *testing.T) {
	srv := serveBad(t, goodScript)
	for _, env := range []string{"TERM=dumb", "NO_COLOR=1", "COLUMNS=20"} {
		dir := filepath.Join(t.TempDir(), "run")
		cmd := exec.Command("scrapestat", append([]string{"collect", srv.Addr, "-o", dir}, quickRun...)...)
		cmd.Env = append(os.Environ(), env)
		out, err := cmd.CombinedOutput()
		if err != nil || bytes.ContainsRune(out, '\x1b') {
			t.Errorf("%s: %v: %q", env, err, out)
		}
	}
	// Nobody reads stdout: an error, no panic, and the files are there.
	dir := filepath.Join(t.TempDir(), "run")
	out, _ := exec.Command("sh", "-c", fmt.Sprintf("scrapestat collect %s -o %s %s >&- 2>/dev/null; echo $?", srv.Addr,
		dir, strings.Join(quickRun, " "))).Output()
	if code := strings.TrimSpace(string(out)); code != "0" && code != "1" {
		t.Errorf("stdout closed: exit code %s", code)
	}
	checkFaultyRun(t, dir, "json", "csv", "parquet")
	noReader(t, srv.Addr, dir)
}

// noReader runs commands whose reader of stdout has gone, as head goes: they end at
// once, by the signal of a broken pipe or with its error; collect, whose numbers are
// in files too, with the code of the run.
func noReader(t *testing.T, address, run string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	for _, args := range [][]string{
		append([]string{"collect", address, "-o", dir}, quickRun...), {"show", run},
		{"export", run, "--formats", "jsonl", "-o", "-"},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		talk := &lockedBuffer{}
		cmd := exec.Command("scrapestat", args...)
		cmd.Stdout, cmd.Stderr = w, talk
		err = cmd.Start()
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // how it ended is what counts
		status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
		broken := status.Signaled() && status.Signal() == syscall.SIGPIPE
		if args[0] == "collect" {
			if status.ExitStatus() != exitDone || !strings.Contains(talk.String(), "broken pipe") {
				t.Errorf("%q: %v:\n%s", args, cmd.ProcessState, talk.String())
			}
			continue
		}
		if said := talk.String(); !broken && (status.ExitStatus() != exitFailed || !strings.Contains(said, "broken pipe")) ||
			strings.Contains(said, "panic") || strings.Contains(said, "goroutine ") {
			t.Errorf("%q: %v:\n%s", args, cmd.ProcessState, said)
		}
	}
	checkFaultyRun(t, dir, "json", "csv", "parquet")
}

// stopped stops the collector and lets it go on: the time between is a hole in
// the polls, counted as skipped ones, and no burst follows.
func stopped(t *testing.T) {
	srv := serveBad(t, goodScript)
	dir, talk := filepath.Join(t.TempDir(), "run"), &lockedBuffer{}
	cmd := start(t, talk, append([]string{"collect", srv.Addr, "-o", dir, "--formats", "json"}, endless...)...)
	if !waitForPolls(dir, 5) {
		t.Fatal("nothing was recorded")
	}
	_ = cmd.Process.Signal(syscall.SIGSTOP)
	// Only when the process is known to stand still does its silence say anything.
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("wait for the stop: %v, %v", err, status)
	}
	before := len(srv.Ledger())
	pause := exec.Command("sleep", "0.5")
	if err := pause.Run(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Signal(syscall.SIGCONT)
	seen, err := countStored(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !waitForPolls(dir, seen+3) {
		t.Fatal("it did not go on")
	}
	_ = cmd.Process.Signal(syscall.SIGINT)
	ends(t, cmd, exitDone, talk)
	checkFaultyRun(t, dir, "json")
	accounts, err := faults.Accounts(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	// 25 ticks fell into the pause, less one at each end.
	if n := accounts[0].Outcomes["skipped_overlap"]; n < 20 {
		t.Errorf("%d polls were skipped, want those of half a second; %d requests before, %d after", n, before,
			len(srv.Ledger()))
	}
}

func oddWindows(t *testing.T) {
	dir := newRun(t)
	try(t, exitUsage, "leaves nothing", "collect", "127.0.0.1:1", "--duration", "1s", "--cooldown", "2s")
	try(t, exitUsage, "negative", "collect", "127.0.0.1:1", "--warmup", "-1s")
	try(t, exitUsage, "negative", "export", dir, "--warmup", "-1s")
	try(t, exitUsage, "end after its start", "export", dir, "--from", "2s", "--to", "1s")
	try(t, exitUsage, "is no duration", "export", dir, "--from", "soon")
	try(t, exitUsage, "", "collect", "127.0.0.1:1", "--duration", "99999999999h")
	try(t, exitFailed, "nothing is left to measure", "export", dir, "--warmup", "1h", "--formats", "json")
}
