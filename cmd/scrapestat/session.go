package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
)

// errAborted ends a run at the second signal.
var errAborted = errors.New("aborted by a second signal")

// session is one collection, from the first scrape to the last. Its methods
// run in the goroutine of collect; the collector's goroutines only reach rec.
type session struct {
	o           collectOptions
	origin      time.Time
	db          *rundb.Writer
	rec         *recorder
	collector   *scrape.Collector
	child       *child           // nil without COMMAND
	marks       chan metric.Mark // set by other processes
	self        *selfMetrics
	fold        *liveAnalysis // nil when nobody can look on
	view        *screen       // nil without
	messages    chan string   // what hunt has to say
	discovery   *discovery
	say         *progress
	manifest    rundb.Manifest // as of the start
	side        *requestSide   // nil without --requests and --proxy
	clientStats fedRequests    // what it brought
	in          io.Reader      // stdin
	ended       time.Time
	phase       string
	wall        wallClock
}

// now is the current instant on the run's axis.
func (s *session) now() int64 { return s.origin.Add(time.Since(s.origin)).UnixNano() }

// run records until the end condition and returns when every goroutine of the
// collection has ended. first is closed at the first signal; ctx is cancelled
// at the second.
func (s *session) run(ctx context.Context, first <-chan struct{}) error {
	stop, done := make(chan struct{}), make(chan struct{})
	hunting, endHunt := context.WithCancel(ctx)
	defer endHunt()
	lost := make(chan error, 1)
	var collectErr error
	go func() {
		defer close(done)
		collectErr = s.collector.Run(ctx, stop)
	}()
	go func() { lost <- s.follow(hunting) }()
	err := s.runPhases(ctx, first, done)
	endHunt()
	err = errors.Join(err, <-lost)
	close(stop)
	<-done
	s.drainMessages()
	switch {
	case ctx.Err() != nil:
		return errAborted
	case collectErr != nil:
		return fmt.Errorf("collect: %w", collectErr)
	}
	return err
}

// runPhases sets the phases: baseline, warm-up, profiling, end, settle.
func (s *session) runPhases(ctx context.Context, first, done <-chan struct{}) error {
	select {
	case <-s.collector.Ready():
	case <-first:
		return s.mark(metric.MarkEnd, s.now())
	case <-done:
		return nil // the collector says why
	}
	start := s.now()
	// Learning the first bodies takes memory once: it goes back before the load
	// comes, as the machine is the measured server's. The window has begun: no poll
	// shall come between the baselines and it.
	debug.FreeOSMemory()
	if err := s.begin(ctx, start); err != nil {
		return err
	}
	err := s.watch(ctx, start, first, done)
	if s.child != nil && !s.child.ended() {
		s.child.stop(syscall.SIGTERM)
	}
	return err
}

// begin starts the first phase, at startNS, and the load.
func (s *session) begin(ctx context.Context, startNS int64) error {
	phase := metric.PhaseProfiling
	if s.o.warmup > 0 {
		phase = metric.PhaseWarmup
	}
	if err := s.mark(phase, startNS); err != nil {
		return err
	}
	if s.child == nil {
		return nil
	}
	return s.child.start(ctx)
}

// watch waits for what ends the run and sets the marks on the way. The warm-up
// counts from startNS.
func (s *session) watch(ctx context.Context, startNS int64, first, done <-chan struct{}) error {
	warm := timerIf(s.o.warmup)
	var enough <-chan time.Time
	if s.o.warmup == 0 {
		enough = timerIf(s.o.duration)
	}
	tick := time.NewTicker(s.say.every())
	defer tick.Stop()
	for {
		select {
		case <-warm:
			// The planned instant, not that of the timer, so that the same
			// recording analysed with another warm-up cuts at the same place.
			if err := s.mark(metric.PhaseProfiling, startNS+int64(s.o.warmup)); err != nil {
				return err
			}
			enough = timerIf(s.o.duration)
		case <-enough:
			return s.mark(metric.MarkEnd, s.now())
		case <-s.childDone():
			if err := s.mark(metric.MarkEnd, s.now()); err != nil {
				return err
			}
			return s.settle(ctx, first, done)
		case m := <-s.marks:
			s.enter(m)
			s.collector.Boundary(ctx)
			if m.Name == metric.MarkEnd {
				return s.settle(ctx, first, done)
			}
		case <-first:
			return s.mark(metric.MarkEnd, s.now())
		case <-ctx.Done():
			return nil
		case <-done:
			return nil // the collector says why
		case text := <-s.messages:
			s.say.logf("%s", text)
		case <-tick.C:
			if err := s.lookAtClock(); err != nil {
				return err
			}
			s.say.line(s.phase, s.rec.totals())
		}
	}
}

// settle keeps the scrapes going after the load has ended, so that observations
// a server publishes late still land in the run.
func (s *session) settle(ctx context.Context, first, done <-chan struct{}) error {
	if s.o.settle <= 0 {
		return nil
	}
	select {
	case <-time.After(s.o.settle):
	case <-first:
	case <-ctx.Done():
	case <-done:
	}
	return nil
}

// drainMessages says what waits to be said.
func (s *session) drainMessages() {
	for {
		select {
		case text := <-s.messages:
			s.say.logf("%s", text)
		default:
			return
		}
	}
}

func (s *session) mark(name string, atNS int64) error {
	s.enter(metric.Mark{Name: name, AtNS: atNS})
	if err := s.db.Mark(metric.Mark{Name: name, AtNS: atNS}); err != nil {
		return fmt.Errorf("mark %s: %w", name, err)
	}
	s.fold.mark(metric.Mark{Name: name, AtNS: atNS})
	return nil
}

// notifyMark wakes the run after a mark that came from outside.
func (s *session) notifyMark(m metric.Mark) {
	s.fold.mark(m)
	select {
	case s.marks <- m:
	default: // a flood of marks: they are recorded all the same
	}
}

// startOutputs starts what shows and sends the run elsewhere while it is
// recorded. The returned function ends it, within lastSend or at once when ctx is
// done, and notes what was lost.
func (s *session) startOutputs(ctx context.Context, targets []scrape.Target) (stop func(ctx context.Context), err error) {
	srv, err := s.listen()
	if err != nil {
		return nil, err
	}
	if err := s.startSide(ctx); err != nil {
		srv.stop()
		return nil, err
	}
	m := s.o.remoteWrite.startMirror(s.o.remoteWriter, targets)
	if m != nil {
		s.rec.after = append(s.rec.after, m.w)
		s.self.mirror(m.w)
	}
	return func(ctx context.Context) {
		notes := append(s.stopSide(ctx), append(srv.stop(), m.stop(ctx)...)...)
		for _, w := range notes {
			s.say.logf("warning: %s", w.Text)
			if err := s.db.Warn(w); err != nil {
				return // the recording has failed, which is said elsewhere
			}
		}
	}, nil
}

func (s *session) childDone() <-chan struct{} {
	if s.child == nil {
		return nil
	}
	return s.child.done
}

// timerIf returns a channel that fires after d, or never when d is 0.
func timerIf(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return time.After(d)
}

// interrupts turns signals into the two steps of an end: first is closed at the
// first, abort is called at the second. The returned function ends the watch
// and waits for it.
func interrupts(signals <-chan os.Signal, abort func()) (first <-chan struct{}, stop func()) {
	once, quit, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-quit:
				return
			case <-signals:
				if n > 0 {
					abort()
					return
				}
				close(once)
			}
		}
	}()
	return once, func() { close(quit); <-ended }
}
