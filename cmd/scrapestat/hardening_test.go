//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestHardening has what a run outlives, and what refuses one before it begins, by
// the numbers that package faults lists.
func TestHardening(t *testing.T) {
	t.Parallel()
	t.Run("K2", func(t *testing.T) { t.Parallel(); deadReaders(t) })
	t.Run("K3", func(t *testing.T) { t.Parallel(); lostTerminal(t) })
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
	cmd = exec.Command("nohup", append([]string{"scrapestat", "collect", srv.Addr, "-o", dir, "--formats", "json"}, endless...)...)
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
