package collect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/source/process"
	"github.com/scrapestat/scrapestat/summary"
)

// Session is a run that is being recorded. Run is called once; the other methods
// may be called at any time, from any goroutine, AtEnd before Run.
type Session struct {
	dir       string
	o         Options
	origin    time.Time
	db        *rundb.Writer
	rec       *recorder
	collector *scrape.Collector
	found     *followed
	load      *loadWatch
	// Of the load, on the axis of the run: since when the first request is waited for, when the run ends; 0 for not.
	waitsNS, endsNS atomic.Int64
	analysis        *liveAnalysis // nil without Options.Analysis
	pendingEvents   atomic.Int64  // bytes of client's events that wait
	tee             *remoteWriteTee
	client          atomic.Pointer[ClientRecorder]
	process         *process.Source // nil where nobody watches Command
	manifest        rundb.Manifest  // as of the start

	marks    chan metric.Mark // set from outside
	marked   markLimit        // of those that MarkAt sets
	messages chan string      // of other goroutines than that of Run
	ready    chan struct{}    // closed when the first phase begins
	stopping chan struct{}
	stop     sync.Once
	atEnd    []func(context.Context) []metric.Warning
	ended    bool // by Run

	fault  sync.Once
	failed error // of the recording, as far as Run knows
	phase  string
	wall   wallClock
	home   *rundb.Dir
	close  sync.Once
}

// Open makes the run directory dir and all that the recording needs; nothing is
// polled before Run. Until then the run that it replaces is kept, and Close puts it
// back. Whether or not Open fails, what o holds is taken over and closed. The caller
// calls Close.
func Open(ctx context.Context, dir string, o Options) (_ *Session, err error) {
	s := &Session{dir: dir, o: o.withDefaults(), found: newFollowed(),
		marks: make(chan metric.Mark, 16), messages: make(chan string, 64), ready: make(chan struct{}),
		stopping: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.o.Catalog == nil {
		if s.o.Catalog, err = catalog.New(); err != nil {
			return nil, err
		}
	}
	if s.home, err = rundb.MakeDir(dir, o.Replace); err != nil {
		return nil, err
	}
	targets := s.watchCommand(s.found.first(ctx, &s.o))
	if err := s.create(targets); err != nil {
		return nil, err
	}
	if err := s.recordWarnings(append(o.Warnings, s.found.takeWarnings()...)); err != nil {
		return nil, err
	}
	if s.o.Client.Lines != "" || s.o.Client.Proxy != nil || s.o.Client.Traces != "" || s.o.Client.Served.any() {
		c, err := StartClient(ctx, dir, s.beside(s.o.Client))
		if err != nil {
			return nil, err
		}
		s.client.Store(c)
	}
	s.tee = startTee(ctx, o.RemoteWriter, s.public(targets))
	if s.tee != nil {
		s.rec.observers = append(s.rec.observers, o.RemoteWriter)
	}
	return s, s.db.Flush(ctx) // where nothing can be written no run begins
}

// create opens the recording and makes the collector.
func (s *Session) create(targets []scrape.Target) (err error) {
	s.origin = time.Now()
	s.wall.origin = s.origin
	public := s.public(targets)
	meta := s.o.meta(s.origin, public)
	s.manifest = s.o.manifest(meta, public)
	s.load = newLoadWatch(s.o.Catalog)
	if s.o.Analysis != nil {
		if s.analysis, err = startAnalysis(meta, public, *s.o.Analysis, s.load.Load, s.o.OnPoll); err != nil {
			return err
		}
	}
	s.db, err = rundb.Create(s.dir, meta, rundb.WriterOptions{OnMark: s.notifyMark, OnCommit: s.o.OnCommit,
		MaxBytes: s.o.MaxBytes, MaxPending: s.o.MaxPending, Beside: &s.pendingEvents, Retry: true,
		OnFault:  s.tellFault,
		OnRemade: s.home.Relock})
	if err != nil {
		return err
	}
	for n, t := range public {
		if _, err := s.db.AddTarget(t); err != nil {
			return err
		}
		s.o.Events.TargetAdded(n, t)
	}
	s.rec = newRecorder(newOwnRequests(s.db, s.o.Catalog, s.o.SubtractSelf), s.notify)
	s.rec.uncounted = slices.IndexFunc(targets, func(t scrape.Target) bool { return t.Kind == metric.SourceProcess })
	s.rec.observers = append(s.rec.observers, s.load)
	if s.analysis != nil {
		s.rec.observers = append(s.rec.observers, s.analysis)
	}
	s.rec.observers = append(s.rec.observers, s.o.Observers...)
	so := s.o.Scrape
	so.Origin, so.OnAddress = s.origin, func(_ int, text string) { s.notify(text) }
	if so.Sentinel == nil {
		so.Sentinel = s.o.Catalog.Sentinel
	}
	if s.collector, err = scrape.New(targets, so, s.rec); err != nil {
		return &OptionError{err}
	}
	return rundb.WriteManifest(s.dir, s.manifest)
}

// watchCommand adds the target of what the command takes of this machine.
func (s *Session) watchCommand(targets []scrape.Target) []scrape.Target {
	switch {
	case s.o.Command == nil || s.o.ClientInterval <= 0:
		return targets
	case !process.Available():
		s.notify("what COMMAND takes of this machine is not recorded: the operating system has no /proc")
		return targets
	}
	o := process.Options{}
	if keep, drop := s.o.Scrape.Keep, s.o.Scrape.Drop; keep != nil || drop != nil {
		o.Keep = func(name string) bool {
			return (keep == nil || keep.MatchString(name)) && (drop == nil || !drop.MatchString(name))
		}
	}
	s.process = process.New(o)
	return append(slices.Clone(targets), scrape.Target{Name: process.Name, URL: process.Target, Shown: process.Target,
		Kind: metric.SourceProcess, Source: s.process, Interval: max(s.o.Scrape.Interval, s.o.ClientInterval)})
}

func (s *Session) public(targets []scrape.Target) []metric.Target {
	out := make([]metric.Target, len(targets))
	for i, t := range targets {
		out[i] = t.Public()
	}
	return out
}

// Close ends a session that was not run, and makes the directory free for others.
// It may be called again.
func (s *Session) Close() (err error) {
	s.close.Do(func() {
		if !s.ended {
			err = s.abandon()
		}
		if s.home != nil {
			err = errors.Join(err, s.home.Close())
		}
	})
	return err
}

// abandon closes what Run would have closed.
func (s *Session) abandon() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nothing waits to be sent
	s.tee.stop(ctx)
	var err error
	if c := s.client.Load(); c != nil {
		_, err = c.Stop(ctx, 0)
	}
	if s.db != nil {
		err = errors.Join(err, s.db.Close(ctx))
	}
	s.release()
	return err
}

// release closes what needs no recording.
func (s *Session) release() {
	s.analysis.close()
	for _, t := range s.o.Targets {
		t.Close()
	}
	for _, d := range s.o.Discoverers {
		d.Close()
	}
}

// tellFault tells once that the recording cannot be written.
func (s *Session) tellFault(err error) {
	s.fault.Do(func() { s.notify("warning: " + err.Error()) })
}

// Ready is closed when every target was scraped once and the first phase begins:
// what a load causes from then on is in the run.
func (s *Session) Ready() <-chan struct{} { return s.ready }

// Stop ends the run with a final scrape.
func (s *Session) Stop() { s.stop.Do(func() { close(s.stopping) }) }

// Mark starts a phase of that name now; "end" ends the run.
func (s *Session) Mark(name string) error { return s.MarkAt(name, s.Now()) }

// MarkAt starts a phase at an instant of the recording. Its error wraps rundb.ErrTooManyMarks
// for marks beyond a limit, which are counted.
func (s *Session) MarkAt(name string, atNS int64) error {
	m := metric.Mark{Name: name, AtNS: atNS}
	if err := m.Validate(); err != nil {
		return &OptionError{err}
	}
	if atNS < s.origin.UnixNano() || atNS > s.Now() {
		return &OptionError{errors.New("the mark is outside the recording")}
	}
	if !s.marked.take(name, s.Now()) {
		return fmt.Errorf("mark %s: %w", name, rundb.ErrTooManyMarks)
	}
	if err := s.db.Mark(m); err != nil {
		return fmt.Errorf("mark %s: %w", name, err)
	}
	s.notifyMark(m)
	return nil
}

// AtEnd registers a function that Run calls after the last poll; it returns what
// the recording is to warn of.
func (s *Session) AtEnd(f func(context.Context) []metric.Warning) { s.atEnd = append(s.atEnd, f) }

// beside has the events of clients wait in the memory that polls may wait in, in up to half of it.
func (s *Session) beside(o ClientOptions) ClientOptions {
	o.maxBytes, o.pending = int64(s.o.MaxPending/2), &s.pendingEvents
	return o
}

// Client is what tells the run of the requests of its clients, until Run returns.
func (s *Session) Client() (*ClientRecorder, error) {
	if c := s.client.Load(); c != nil {
		return c, nil
	}
	c, err := StartClient(context.Background(), s.dir, s.beside(ClientOptions{}))
	if err != nil {
		return nil, err
	}
	s.client.Store(c)
	return c, nil
}

// Result is the run so far; without Options.Analysis it is nil.
func (s *Session) Result() (*summary.Run, error) { return s.analysis.result(s.Now()) }

// Behind reports whether Result could not follow the recording, and stays where it was.
func (s *Session) Behind() bool { return s.analysis.isBehind() }

// Totals is what was recorded so far.
func (s *Session) Totals() Totals { return s.rec.totals() }

// Manifest is that of the start of the run.
func (s *Session) Manifest() rundb.Manifest { return s.manifest }

// Servers is how many targets the run began with, but for that of what the command takes.
func (s *Session) Servers() (n int) {
	for _, t := range s.manifest.Targets {
		if t.Source != metric.SourceProcess {
			n++
		}
	}
	return n
}

// Origin is the start of the recording, with its monotonic reading.
func (s *Session) Origin() time.Time { return s.origin }

// Now is the current instant on the run's axis.
func (s *Session) Now() int64 { return s.origin.Add(time.Since(s.origin)).UnixNano() }

// ProxyAddr is where the proxy for clients listens; nil without one.
func (s *Session) ProxyAddr() net.Addr { return s.client.Load().ProxyAddr() }

// TracesAddr is where traces of servers are taken; nil without Options.Client.Traces.
func (s *Session) TracesAddr() net.Addr { return s.client.Load().TracesAddr() }
