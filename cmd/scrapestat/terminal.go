package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/scrapestat/scrapestat/collect"
	"github.com/scrapestat/scrapestat/live"
	"github.com/scrapestat/scrapestat/metric"
)

// The words of --live.
const (
	liveAuto = "auto"
	liveOn   = "on"
	liveOff  = "off"
)

// commandLog is where in the run directory the output of COMMAND waits for the end of a live view.
const commandLog = "command.log"

// wantsView decides whether the terminal shows the live view. The view owns all
// of the terminal, so by itself it does not come where COMMAND writes to that.
func (o *collectOptions) wantsView(std stdio) (bool, error) {
	can := isTerminal(std.err) && inForeground(std.err)
	switch {
	case o.live == liveOff || o.live == liveAuto && (o.quiet || !can || len(o.command) > 0):
		return false, nil
	case o.live == liveOn && o.quiet:
		return false, usagef("--live on and --quiet exclude each other")
	case !can:
		return false, usagef("--live on needs a terminal as stderr that can move its cursor (TERM is %q), and a "+
			"foreground job", os.Getenv("TERM"))
	}
	return true, nil
}

// screen is the live view of a collection. A nil screen shows nothing.
type screen struct {
	board   *live.Board
	run     string
	in      io.Reader
	err     *os.File
	session *collect.Session
	until   string // what ends a run that has no planned end
	press   func() // called at each q

	phase  atomic.Pointer[string]
	ending atomic.Bool

	mu       sync.Mutex
	messages []string // all that was said, for the end
	lost     int      // of news, beyond maxNews

	stop func()
	done chan error
	log  *os.File // of COMMAND
}

// maxNews is how many sentences wait for the end of a view.
const maxNews = 200

// newScreen prepares the view that o wants.
func newScreen(o *collectOptions, std stdio) *screen {
	v := &screen{board: live.NewBoard(nil), until: "until q or a signal"}
	v.err, _ = std.err.(*os.File) // a terminal is one
	if len(o.command) > 0 {
		v.until = "until the command ends"
	}
	// Who reads stdin otherwise goes on doing so.
	if isTerminal(std.in) && o.requests != "-" && !o.kinds.readsStdin(o.targets) {
		v.in = std.in
	}
	return v
}

// newChildAndView finds COMMAND, and prepares the live view if there is to be one.
func newChildAndView(o *collectOptions, std stdio) (c *collect.Command, v *screen, err error) {
	wanted, err := o.wantsView(std)
	if err != nil {
		return nil, nil, err
	}
	co := collect.CommandOptions{In: std.in, Out: plain(std.out), Err: std.err, Terminal: isTerminal(std.in),
		Grace: o.grace}
	if wanted {
		v = newScreen(o, std)
		co.In, co.Terminal = nil, false // keys are the view's
	}
	if len(o.command) > 0 {
		c, err = collect.NewCommand(o.command, co)
	}
	return c, v, err
}

// begin shows the view of a recording. The caller calls end.
func (v *screen) begin(s *collect.Session, say *progress, signals chan<- os.Signal) {
	if v == nil {
		return
	}
	v.session, say.screen = s, v
	v.press = func() {
		select {
		case signals <- os.Interrupt:
		default: // two wait already: the run is being aborted
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	v.stop, v.done = stop, make(chan error, 1)
	go func() {
		v.done <- live.Run(ctx, live.Options{Board: v.board, Result: s.Result, Status: v.status, Quit: v.quit,
			In: v.in, Out: v.err, Env: os.Environ()})
	}()
}

// quit is called at each q.
func (v *screen) quit() {
	v.ending.Store(true)
	v.press()
}

// viewPatience is how long the end of a run waits for a terminal that does not take what is written.
const viewPatience = 2 * time.Second

// end takes the view away and says on w what was said meanwhile. It may be called again.
func (v *screen) end(say *progress) {
	if v == nil || v.stop == nil {
		return
	}
	v.stop()
	v.stop = nil
	timer := time.NewTimer(viewPatience)
	defer timer.Stop()
	var err error
	select {
	case err = <-v.done:
	case <-timer.C:
		err = errors.New("the terminal does not take what is written to it")
	}
	say.screen = nil
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.lost > 0 {
		say.logf("%d earlier messages were left out", v.lost)
	}
	for _, text := range v.messages {
		say.logf("%s", text)
	}
	if err != nil {
		say.logf("warning: %v; the recording went on", err)
	}
	v.tellOutput(v.err)
}

// say keeps a sentence for the view, and for the end.
func (v *screen) say(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.messages = append(v.messages, text)
	if len(v.messages) > maxNews {
		v.lost++
		v.messages = slices.Delete(v.messages, 0, 1)
	}
}

// observe tells the view of a phase.
func (v *screen) observe(phase string) {
	if v == nil {
		return
	}
	v.phase.Store(&phase)
	if phase == metric.MarkEnd {
		v.ending.Store(true)
	}
}

// Record implements collect.Observer.
func (v *screen) Record(s *metric.Snapshot) { v.board.Record(s) }

// addTarget tells of a target that came.
func (v *screen) addTarget(t metric.Target) {
	if v != nil {
		v.board.AddTarget(t)
	}
}

// gone tells that a target went or is back.
func (v *screen) gone(target int, gone bool) {
	if v != nil {
		v.board.Gone(target, gone)
	}
}

// status is what the view shows of the run.
func (v *screen) status() live.Status {
	out := live.Status{Run: v.run, Elapsed: time.Since(v.session.Origin()), Until: v.until,
		Remaining: v.session.Remaining(),
		Ending:    v.ending.Load(), Behind: v.session.Behind()}
	if p := v.phase.Load(); p != nil {
		out.Phase = cmp.Or(v.session.Waiting(), *p)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	out.News = slices.Clone(v.messages[max(0, len(v.messages)-1):])
	return out
}

// holdOutput sends what COMMAND would write to the terminal into a file of the run
// directory, which tell prints after the end; stdin belongs to the view.
func (v *screen) holdOutput(c *collect.Command, dir string) error {
	if v == nil {
		return nil
	}
	v.run = dir
	if c == nil {
		return nil
	}
	f, err := os.OpenFile(dir+string(os.PathSeparator)+commandLog, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("keep output of command: %w", err)
	}
	v.log = f
	if isTerminal(c.Stdout) {
		c.Stdout = f
	}
	if isTerminal(c.Stderr) {
		c.Stderr = f
	}
	return nil
}

// maxTold is how much of the output of COMMAND is printed at the end.
const maxTold = 64 << 10

// tellOutput prints the end of what COMMAND wrote.
func (v *screen) tellOutput(w io.Writer) {
	if v == nil || v.log == nil {
		return
	}
	defer v.log.Close() // written by COMMAND; nothing of ours to lose
	size, err := v.log.Seek(0, io.SeekEnd)
	if err != nil {
		return
	}
	from := max(0, size-maxTold)
	if from > 0 {
		fmt.Fprintf(w, "the last %d of %d bytes of %s:\n", size-from, size, v.log.Name())
	}
	_, _ = io.Copy(w, io.NewSectionReader(v.log, from, size-from)) // the file keeps it
}
