package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime/debug"
	"syscall"
)

// memoryVar tells a process that another one watches over it, and which of its files takes what a crash says.
const memoryVar = "SCRAPESTAT_CRASH_FD"

// withinMemory runs f and returns its exit code. Where memory is limited (ulimit -v), Go ends a process that has
// none left with 2, which is our code for wrong usage: there f runs in a process of its own, and this one says 6.
func withinMemory(f func() int, stderr io.Writer) int {
	if os.Getenv(memoryVar) != "" {
		os.Unsetenv(memoryVar)
		crash := os.NewFile(3, "crash")
		err := debug.SetCrashOutput(crash, debug.CrashOptions{})
		if err = errors.Join(err, crash.Close()); err != nil {
			fmt.Fprintf(stderr, "scrapestat: watch memory: %v\n", err)
		}
		return f()
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit); err != nil || int64(limit.Cur) < 0 || limit.Cur > 1<<50 {
		return f()
	}
	code, err := runLimited(stderr)
	if err != nil {
		return f() // without a second process
	}
	return code
}

// outOfMemory finds in a crash, which begins with a stack, that Go itself gave up while it looked for memory.
var outOfMemory = regexp.MustCompile(`^\s*[^\n]*\nruntime\.throw\([^\n]*\n[^\n]*\n` +
	`runtime\.(\(\*mcache\)|\(\*mheap\)|mallocgc|sysMap|sysReserve|newosproc|persistentalloc)`)

// runLimited runs this program again and returns how that ended.
func runLimited(stderr io.Writer) (int, error) {
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	cmd := &exec.Cmd{Path: program, Args: os.Args, Env: append(os.Environ(), memoryVar+"=3"), Stdin: os.Stdin,
		Stdout: os.Stdout, Stderr: os.Stderr, ExtraFiles: []*os.File{w},
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}}
	// What a terminal sends both have; a SIGTERM may be meant for this process alone.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := errors.Join(cmd.Start(), w.Close()); err != nil {
		return 0, err
	}
	said := make(chan string)
	go func() {
		b, _ := io.ReadAll(io.LimitReader(r, 1<<20)) // what could be read is all there is to know
		said <- string(b)
	}()
	text := ""
	for ended := false; !ended; {
		select {
		case s := <-signals:
			if s == syscall.SIGTERM {
				_ = cmd.Process.Signal(s) // it may have ended
			}
		case text = <-said:
			ended = true
		}
	}
	_ = cmd.Wait() // its state is what counts
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case outOfMemory.MatchString(text):
		fmt.Fprintln(stderr, "scrapestat: out of memory: raise the limit (ulimit -v)")
		return exitMemory, nil
	case ok && status.Signaled():
		return 128 + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}
