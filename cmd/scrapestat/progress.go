package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
)

// progress tells a person on stderr how a run is going: a line that rewrites
// itself on a terminal, else a line now and then. It has one owner.
type progress struct {
	w       io.Writer
	quiet   bool
	term    bool
	started time.Time
	open    bool // the terminal line is not ended yet
}

func newProgress(w io.Writer, quiet bool) *progress {
	return &progress{w: w, quiet: quiet, term: isTerminal(w), started: time.Now()}
}

// isTerminal says whether a reader or writer is a terminal that can do more than
// print lines.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb"
}

// every is the pause between two lines.
func (p *progress) every() time.Duration {
	if p.term {
		return time.Second
	}
	return 10 * time.Second
}

// line shows the state of a collection.
func (p *progress) line(phase string, t totals) {
	p.show(fmt.Sprintf("%s  %s  %d scrapes (%d failed)  %d samples (%d lines dropped)",
		time.Since(p.started).Round(time.Second), phase, t.polls, t.failed, t.lines, t.dropped))
}

// show prints one state, over the last one on a terminal.
func (p *progress) show(text string) {
	switch {
	case p.quiet:
	case p.term:
		fmt.Fprintf(p.w, "\r\x1b[K%s", text)
		p.open = true
	default:
		fmt.Fprintln(p.w, text)
	}
}

// say prints a sentence of its own line.
func (p *progress) say(format string, args ...any) {
	if p.quiet {
		return
	}
	p.end()
	fmt.Fprintf(p.w, format+"\n", args...)
}

// end leaves the terminal clean.
func (p *progress) end() {
	if p.open {
		fmt.Fprintln(p.w)
		p.open = false
	}
}
