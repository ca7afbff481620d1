package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/scrapestat/scrapestat/collect"
)

// progress tells a person on stderr how a run is going: a line that rewrites
// itself on a terminal, else a line now and then. It has one owner.
type progress struct {
	w       io.Writer
	quiet   bool
	term    bool
	started time.Time
	open    bool    // the terminal line is not ended yet
	screen  *screen // takes what is said while it is shown; nil without
}

func newProgress(w io.Writer, quiet bool) *progress {
	return &progress{w: w, quiet: quiet, term: isTerminal(w), started: time.Now()}
}

// isTerminal reports whether a reader or writer is a terminal that can do more than print lines.
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
func (p *progress) line(phase string, t collect.Totals) {
	p.show(fmt.Sprintf("%s  %s  %d scrapes (%d failed or skipped)  %d samples (%d lines dropped)",
		time.Since(p.started).Round(time.Second), phase, t.Polls, t.Failed, t.Lines, t.Dropped))
}

// show prints one state, over the last one on a terminal.
func (p *progress) show(text string) {
	switch {
	case p.quiet, p.screen != nil:
	case p.term:
		fmt.Fprintf(p.w, "\r\x1b[K%s", text)
		p.open = true
	default:
		fmt.Fprintln(p.w, text)
	}
}

// logf prints a sentence of its own line.
func (p *progress) logf(format string, args ...any) {
	if p.quiet {
		return
	}
	if p.screen != nil {
		p.screen.say(fmt.Sprintf(format, args...))
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

// bar shows how far a piece of work is, on a terminal only, and only once it has
// taken a while. It is safe for concurrent use. A nil bar shows nothing.
type bar struct {
	p    *progress
	what string

	mu      sync.Mutex
	of, n   int64
	started time.Time
	drawn   time.Time
}

// The times of a bar: a short piece of work shows none.
const (
	barAfter = 500 * time.Millisecond
	barEvery = 150 * time.Millisecond
	barWidth = 30
)

// bar begins a piece of work; nil when nobody would see it.
func (p *progress) bar(what string) *bar {
	if p.quiet || !p.term {
		return nil
	}
	return &bar{p: p, what: what, started: time.Now()}
}

// total says how much there is to do.
func (b *bar) total(n int64) {
	if b != nil {
		b.mu.Lock()
		b.of = n
		b.mu.Unlock()
	}
}

// add counts n more as done.
func (b *bar) add(n int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n += n
	now := time.Now()
	if b.of <= 0 || now.Sub(b.started) < barAfter || now.Sub(b.drawn) < barEvery {
		return
	}
	b.drawn = now
	b.p.show(b.text(now))
}

// text is the line: what is done, how much of it, and how long it will take.
func (b *bar) text(now time.Time) string {
	part := min(float64(b.n)/float64(b.of), 1)
	text := b.what + "  " + meter(part)
	if took := now.Sub(b.started); part > 0.05 {
		text += fmt.Sprintf("  %v left", time.Duration(float64(took)*(1-part)/part).Round(time.Second))
	}
	return text
}

// meter is a bar that is full to a part.
func meter(part float64) string {
	part = max(0, min(part, 1))
	full := int(part * barWidth)
	return fmt.Sprintf("[%s%s] %3.0f %%", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), part*100)
}

// done takes the bar away.
func (b *bar) done() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.p.open {
		fmt.Fprint(b.p.w, "\r\x1b[K")
		b.p.open = false
	}
}

// maxColumns is as wide as a screen of text is made, minColumns as narrow.
const minColumns, maxColumns = 60, 400

// columns is how wide the lines for a stream may be: as the terminal, or as COLUMNS tells; 0 is not known.
func columns(stream any) int {
	n := 0
	if isTerminal(stream) {
		n = terminalWidth(stream)
	} else if given, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil {
		n = given
	}
	if n <= 0 {
		return 0
	}
	return min(max(n, minColumns), maxColumns)
}
