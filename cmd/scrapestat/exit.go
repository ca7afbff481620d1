package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/scrapestat/scrapestat/collect"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/window"
)

// The exit codes of every subcommand. Of `collect -- COMMAND` any other code is the command's own.
const (
	exitDone       = 0
	exitFailed     = 1   // could not do it: I/O, unreadable run, internal
	exitUsage      = 2   // wrong usage or configuration
	exitBad        = 3   // done, and the answer is bad
	exitIncomplete = 4   // data incomplete under --strict
	exitNothing    = 5   // nothing could be collected from any target
	exitMemory     = 6   // out of memory
	exitNotExec    = 126 // COMMAND exists and cannot be executed
	exitNotFound   = 127 // COMMAND does not exist
	exitAborted    = 130 // second signal
)

// stdio is what a subcommand talks through.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// printed is the stdout of a command. It keeps the first error of a write, so that no command ends as done whose words
// did not arrive, whether it looks at the errors of its writes or not.
type printed struct {
	to  io.Writer
	err error
}

// Write implements io.Writer.
func (p *printed) Write(b []byte) (int, error) {
	n, err := p.to.Write(b)
	p.err = cmp.Or(p.err, err)
	return n, err
}

// with adds to what a command ended with that its words did not arrive, unless that is what it ended with.
func (p *printed) with(err error) error {
	if p.err == nil || errors.Is(err, p.err) {
		return err
	}
	return errors.Join(err, fmt.Errorf("print: %w", p.err))
}

// plain is the stream below w: what records a run, and COMMAND, go on when nobody takes their words.
func plain(w io.Writer) io.Writer {
	for p, ok := w.(*printed); ok; p, ok = w.(*printed) {
		w = p.to
	}
	return w
}

// codeError is an error with the exit code it ends the program with. An empty
// message prints nothing: the code says it all.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *codeError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &codeError{exitUsage, fmt.Errorf(format, args...)}
}

// oneOf refuses a value of a flag that is none of those known. what says what it names.
func oneOf(flag, what, value string, known ...string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return usagef("--%s: unknown %s %q (known: %s)", flag, what, value, strings.Join(known, ", "))
}

// notNegative refuses durations of flags, by their names, that are.
func notNegative(flags map[string]time.Duration) error {
	for name, d := range flags {
		if d < 0 {
			return usagef("--%s %v is negative", name, d)
		}
	}
	return nil
}

// first returns the first error.
func first(errs ...error) error { return cmp.Or(errs...) }

// codeOf is the exit code of an error.
func codeOf(err error) int {
	var coded *codeError
	var command *collect.CommandError
	var option *collect.OptionError
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &command):
		return command.Code
	case errors.As(err, &option), errors.Is(err, window.ErrNoSuch):
		return exitUsage
	case errors.Is(err, syscall.ENOMEM), errors.Is(err, rundb.ErrMemory),
		strings.Contains(err.Error(), "out of memory (7)"): // SQLITE_NOMEM
		return exitMemory
	}
	return exitFailed
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, std stdio) int {
	out := &printed{to: std.out}
	root := newRootCmd(stdio{std.in, out, std.err})
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err = out.with(err); err == nil {
		return exitDone
	}
	code := codeOf(err)
	if msg := err.Error(); msg != "" {
		fmt.Fprintf(std.err, "scrapestat: %s\n", strings.TrimSpace(msg))
	}
	if code == exitUsage {
		fmt.Fprintf(std.err, "Try: %s --help\n", cmd.CommandPath())
	}
	return code
}
