package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// drainRequests is how long the end of a run waits for the disk.
const drainRequests = 10 * time.Second

// sideOptions say where the client's side of a run comes from.
type sideOptions struct {
	dir    string
	lines  string      // FILE or -, "" for none
	in     io.Reader   // stdin
	proxy  *proxyFlags // nil for none, with the upstream in its options
	listen string      // address of the proxy
	create *rundb.Meta // of the run that dir is to get; nil where it has one
}

// requestSide is the client's side of a run that is being recorded: one recorder,
// which lines, a proxy or both tell of requests.
type requestSide struct {
	dir   string
	rec   *events.Recorder
	feed  *requestFeed  // nil without lines
	proxy *runningProxy // nil without a proxy
	// shared says that the session is not that of one source alone, as there are
	// others, or events from before: then none says when it starts and ends, and
	// beside lines a proxy not what is tracked.
	shared bool
}

// startSide begins to record. The recorder, which makes the run where it is to be
// made, is opened when everything else is known to work.
func startSide(ctx context.Context, o sideOptions) (*requestSide, error) {
	live, err := o.checkLines()
	if err != nil {
		return nil, err
	}
	s := &requestSide{dir: o.dir, shared: o.lines != "" && o.proxy != nil}
	if o.create == nil && !s.shared {
		if s.shared, err = hasEvents(o.dir); err != nil {
			return nil, err
		}
	}
	source := "jsonl"
	if o.proxy != nil {
		if s.proxy, err = newProxy(ctx, *o.proxy, o.listen); err != nil {
			return nil, err
		}
		if source = "proxy"; o.lines != "" {
			source = "jsonl and proxy"
		}
	}
	s.rec, err = events.NewRecorder(context.WithoutCancel(ctx), o.dir, events.RecorderOptions{Source: source, Create: o.create})
	if err != nil {
		return nil, errors.Join(err, s.proxy.discard())
	}
	if s.proxy != nil {
		s.proxy.start(ctx, s.recorder(o.lines == ""))
	}
	if o.lines != "" {
		s.feed = startFeed(context.WithoutCancel(ctx), s.recorder(true), s.rec, o.lines, o.in, live)
	}
	return s, nil
}

// checkLines says whether lines come as things happen.
func (o *sideOptions) checkLines() (live bool, err error) {
	switch {
	case o.lines == "":
		return false, nil
	case o.lines == "-" && o.in == nil:
		return false, usagef("requests from -: there is no stdin")
	case o.lines == "-":
		return true, nil
	}
	info, err := os.Stat(o.lines)
	if err != nil {
		return false, fmt.Errorf("read requests: %w", err)
	}
	return !info.Mode().IsRegular(), nil
}

// hasEvents says that the run in dir, if there is one, has request events.
func hasEvents(dir string) (bool, error) {
	if _, err := os.Stat(filepath.Join(dir, rundb.FileName)); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	run, err := rundb.Open(dir)
	if err != nil {
		return false, err
	}
	return run.HasEvents(), run.Close()
}

// recording is what takes events.
type recording interface{ Record(metric.Event) }

func (s *requestSide) recorder(tracking bool) recording {
	if s.shared {
		return sharedRecorder{s.rec, tracking}
	}
	return s.rec
}

// sharedRecorder is a recorder for sources that share a session: its start and end
// are no longer what one of them says, so they become notes. What is tracked is
// left out unless tracking is set.
type sharedRecorder struct {
	*events.Recorder
	tracking bool
}

// Record takes an event.
func (o sharedRecorder) Record(ev metric.Event) {
	switch name, _ := events.Current(ev.Type); name {
	case events.SessionStarted, events.SessionEnded:
		ev.Type = events.SessionNote
	case events.StartTracking, events.StopTracking:
		if !o.tracking {
			return
		}
	}
	o.Recorder.Record(ev)
}

// phase tells a proxy which requests are tracked: those of the profiling phase. It
// may be called on nil.
func (s *requestSide) phase(name string) {
	if s == nil || s.proxy == nil {
		return
	}
	switch name {
	case metric.PhaseProfiling:
		s.proxy.p.Track(true)
	case metric.PhaseWarmup, metric.MarkEnd:
		s.proxy.p.Track(false)
	}
}

// stop waits up to grace for the end of the lines, ends the proxy, writes what waits,
// and makes the table of requests.
func (s *requestSide) stop(ctx context.Context, grace time.Duration) (fedRequests, error) {
	var out fedRequests
	var errs []error
	if s.feed != nil {
		errs = append(errs, s.feed.stop(ctx, grace))
		out.fed, out.lines, out.first, out.last = true, s.feed.stats, s.feed.first.Load(), s.feed.last.Load()
	}
	if s.proxy != nil {
		errs = append(errs, s.proxy.stop())
		stats := s.proxy.p.Stats()
		out.proxy = &stats
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainRequests)
	defer cancel()
	var err error
	if out.pending, err = s.rec.Close(drain); err == nil {
		out.session, err = events.Rebuild(context.WithoutCancel(ctx), s.dir, events.Rules{Lenient: true})
	}
	out.stats = s.rec.Stats()
	return out, errors.Join(append(errs, err)...)
}
