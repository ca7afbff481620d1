package collect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

// Run is a recorded run. What failed on the way is in the error of Session.Run, and
// in the recording.
type Run struct {
	Dir      string
	Ended    time.Time
	Totals   Totals
	Client   *ClientStats   // nil when clients told nothing
	Manifest rundb.Manifest // as of the start
}

// Run polls the targets until ctx, Stop, the duration, the command or the mark
// "end" ends it. It returns when all that was recorded is stored and every
// goroutine has ended; after ctx was cancelled, at once and with ErrAborted.
func (s *Session) Run(ctx context.Context) (*Run, error) {
	runErr := errors.Join(s.home.Begun(), s.record(ctx))
	s.o.Events.Ended()
	run := &Run{Dir: s.dir}
	s.stopOutputs(ctx, run)
	s.checkClock()
	found, err := s.load.text()
	s.db.SetTraffic(found)
	err = errors.Join(runErr, s.failed, err, s.db.Close(ctx))
	run.Ended, run.Totals, run.Manifest = time.Now(), s.rec.totals(), s.manifest
	run.Totals.Unwritten += int64(s.db.Lost())
	s.ended = true
	s.release()
	return run, err
}

// Analyse computes the statistics of the run.
func (r *Run) Analyse(ctx context.Context, o summary.Options) (*summary.Run, error) {
	db, err := rundb.Open(r.Dir)
	if err != nil {
		return nil, err
	}
	out, err := summary.Build(ctx, []summary.Recording{db}, o)
	return out, errors.Join(err, db.Close())
}

// WriteManifest adds to the manifest what is only known after the run: how targets
// were polled, what is doubtful, and the files that were made of the recording.
func (r *Run) WriteManifest(result *summary.Run, files []rundb.ExportedFile) error {
	m := r.Manifest
	m.Ended = r.Ended
	for i := range result.Endpoints {
		if i == len(m.Targets) {
			m.Targets = append(m.Targets, rundb.NewManifestTarget(result.Endpoints[i].Target))
		}
		e, t := &result.Endpoints[i], &m.Targets[i]
		for _, l := range e.Lives {
			event := "came"
			if l.Gone {
				event = "went"
			}
			t.Lives = append(t.Lives, rundb.ManifestLife{At: time.Unix(0, l.AtNS).UTC(), Event: event, Reason: l.Reason})
		}
		t.Polls = e.Ledger.Scheduled
		t.Stored = e.Ledger.StoredPolls()
		if e.Fetches.Total > 0 {
			t.First, t.Last = time.Unix(0, e.Fetches.FirstNS).UTC(), time.Unix(0, e.Fetches.LastNS).UTC()
		}
	}
	m.Warnings, m.Exports = result.Warnings, files
	return rundb.WriteManifest(r.Dir, m)
}

// record polls until the end condition and returns when every goroutine that does
// so has ended.
func (s *Session) record(ctx context.Context) error {
	stop, done := make(chan struct{}), make(chan struct{})
	following, endFollow := context.WithCancel(ctx)
	defer endFollow()
	followErr := make(chan error, 1)
	var collectErr error
	go func() {
		defer close(done)
		collectErr = s.collector.Run(ctx, stop)
	}()
	go func() { followErr <- s.follow(following) }()
	err := s.runPhases(ctx)
	endFollow()
	err = errors.Join(err, <-followErr)
	close(stop)
	<-done
	s.drainMessages()
	switch {
	case ctx.Err() != nil:
		return ErrAborted
	case collectErr != nil:
		return fmt.Errorf("collect: %w", collectErr)
	}
	return err
}

// runPhases sets the phases: baseline, warm-up, profiling, end, settle.
func (s *Session) runPhases(ctx context.Context) error {
	select {
	case <-s.collector.Ready():
	case <-s.stopping:
		s.mark(metric.MarkEnd, s.Now())
		return nil
	case <-ctx.Done():
		return nil
	}
	start := s.Now()
	// Learning the first bodies takes memory once: it goes back before the load
	// comes, as the machine is the measured server's. The window has begun: no poll
	// shall come between the baselines and it.
	debug.FreeOSMemory()
	if err := s.begin(ctx, start); err != nil {
		return err
	}
	s.watch(ctx, start)
	if s.o.Command != nil && !s.o.Command.ended() {
		s.o.Command.stop(syscall.SIGTERM)
	}
	return nil
}

// begin starts the first phase, at startNS, and the load.
func (s *Session) begin(ctx context.Context, startNS int64) error {
	phase := metric.PhaseProfiling
	if s.o.Warmup > 0 {
		phase = metric.PhaseWarmup
	}
	s.mark(phase, startNS)
	close(s.ready)
	if s.o.Command == nil {
		return nil
	}
	err := s.o.Command.start(ctx)
	if s.process != nil && err == nil {
		s.process.Follow(s.o.Command.Process.Pid)
	}
	return err
}

// watch waits for what ends the run and sets the marks on the way. That is the user,
// the end of the command, or the duration; a recording or a target that fails is not.
func (s *Session) watch(ctx context.Context, startNS int64) {
	plan := &schedule{o: &s.o, s: s, baseNS: startNS}
	plan.update(startNS)
	again := time.NewTicker(time.Second) // a probe is only told from the load once there are more requests
	defer again.Stop()
	tick := time.NewTicker(s.o.ProgressEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.load.began:
			plan.update(s.Now())
		case <-again.C:
			plan.update(s.Now())
		case <-plan.warm:
			s.warmedUp(ctx, plan)
		case <-plan.enough:
			s.mark(metric.MarkEnd, s.Now())
			return
		case <-s.o.Command.Done():
			s.mark(metric.MarkEnd, s.Now())
			s.settle(ctx)
			return
		case m := <-s.marks:
			s.enter(m)
			if m.Name == metric.MarkEnd {
				s.settle(ctx)
				return
			}
			s.collector.Boundary(ctx)
		case <-s.stopping:
			s.mark(metric.MarkEnd, s.Now())
			return
		case <-ctx.Done():
			return
		case text := <-s.messages:
			s.o.Events.Message(text)
		case <-tick.C:
			s.checkClock()
			s.o.Events.Progress(cmp.Or(s.Waiting(), s.phase), s.rec.totals())
		}
	}
}

// settle keeps the scrapes going after the load has ended, so that observations
// a server publishes late still land in the run. All targets are polled at once, as
// the window of a load that goes on ends here; without a pause the final polls do that.
func (s *Session) settle(ctx context.Context) {
	if s.o.Settle <= 0 {
		return
	}
	ctx, over := context.WithTimeout(ctx, s.o.Settle)
	defer over()
	var polled sync.WaitGroup
	polled.Go(func() { s.collector.Boundary(ctx) })
	select {
	case <-s.stopping:
	case <-ctx.Done():
	}
	over()
	polled.Wait()
}

// drainMessages reports queued messages.
func (s *Session) drainMessages() {
	for {
		select {
		case text := <-s.messages:
			s.o.Events.Message(text)
		default:
			return
		}
	}
}

// mark starts a phase from within the run.
func (s *Session) mark(name string, atNS int64) {
	s.set(metric.Mark{Name: name, AtNS: atNS, Kind: metric.MarkOwn})
}

func (s *Session) set(m metric.Mark) {
	s.enter(m)
	s.note(s.db.Mark(m))
	s.analysis.mark(m)
}

// note keeps the first error of the recording for the end of the run: it is no reason
// to end it.
func (s *Session) note(err error) {
	if s.failed == nil {
		s.failed = err
	}
}

// enter reports the begin of a phase.
func (s *Session) enter(m metric.Mark) {
	s.phase = m.Name
	s.client.Load().phase(m.Name)
	s.o.Events.PhaseBegun(m)
}

// notifyMark wakes the run after a mark that came from outside.
func (s *Session) notifyMark(m metric.Mark) {
	s.analysis.mark(m)
	select {
	case s.marks <- m:
	default: // a flood of marks: they are recorded all the same
	}
}

// stopOutputs ends what shows and sends the run elsewhere, within lastSend or at
// once when ctx is done, and records what was lost.
func (s *Session) stopOutputs(ctx context.Context, run *Run) {
	notes := s.stopClient(ctx, run)
	for _, f := range s.atEnd {
		notes = append(notes, f(ctx)...)
	}
	notes = append(notes, s.marked.warnings()...)
	for _, w := range append(notes, s.tee.stop(ctx)...) {
		s.o.Events.Warning(w)
		if err := s.db.Warn(w); err != nil {
			return // the recording has failed, which Close tells
		}
	}
}

// lineGrace is how long the end of a run waits for lines that are under way.
const lineGrace = 2 * time.Second

// stopClient ends the client's side, if there is one, and returns what is doubtful.
func (s *Session) stopClient(ctx context.Context, run *Run) []metric.Warning {
	c := s.client.Load()
	if c == nil {
		return nil
	}
	err := s.db.Flush(ctx) // the phases of requests are those of the marks
	stats, stopped := c.Stop(ctx, lineGrace)
	run.Client = &stats
	for _, text := range stats.ProxyReport() {
		s.o.Events.Message(text)
	}
	s.manifest.Options["request-counts"] = stats.Counts()
	notes := stats.Warnings()
	if err = errors.Join(err, stopped); err != nil {
		stats.Failed = true
		notes = append(notes, metric.Warning{Code: "requests_not_recorded", Text: "request events are incomplete: " +
			err.Error()})
	}
	return notes
}
