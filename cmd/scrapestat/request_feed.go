package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// drainRequests is how long the end of a run waits for the rest of the lines and
// for the disk.
const drainRequests = 10 * time.Second

// requestFeed records lines about requests into a run until they end or it is
// stopped.
type requestFeed struct {
	dir, source string
	rec         *events.Recorder
	pipe        *io.PipeWriter
	done        chan struct{} // the lines have ended
	first, last atomic.Int64  // the range of times, 0 without events

	stats events.LineStats // after done
	err   error            // of reading, after done
}

// startFeed begins to read a file, a FIFO or, for "-", in. Nothing waits for a FIFO
// that nobody opens. onFirst is told of the time of the first event.
func startFeed(ctx context.Context, dir, source string, in io.Reader, create *rundb.Meta, onFirst func(atNS int64)) (*requestFeed, error) {
	live := source == "-"
	if source != "-" {
		info, err := os.Stat(source)
		if err != nil {
			return nil, fmt.Errorf("read requests: %w", err)
		}
		live = !info.Mode().IsRegular()
	} else if in == nil {
		return nil, usagef("requests from -: there is no stdin")
	}
	rec, err := events.NewRecorder(ctx, dir, events.RecorderOptions{Source: "jsonl", Create: create})
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	f := &requestFeed{dir: dir, source: source, rec: rec, pipe: w, done: make(chan struct{})}
	// Reading may block for ever, in open or in read, and nothing can end that but
	// the end of the process. So what reads is not waited for: its pipe is closed.
	go func() { w.CloseWithError(copyRequests(w, source, in)) }()
	o := events.LineOptions{}
	if live {
		o.Now = rec.Now
		o.OnAnchor = func(c rundb.Clock) { _ = rec.Anchor(ctx, c) } // a write error comes back from Close
	}
	go func() {
		defer close(f.done)
		f.stats, f.err = events.ReadLines(ctx, r, o, func(e metric.Event) {
			if f.last.Load() == 0 && onFirst != nil {
				onFirst(e.AtNS)
			}
			if first := f.first.Load(); first == 0 || e.AtNS < first {
				f.first.Store(e.AtNS)
			}
			f.last.Store(max(f.last.Load(), e.AtNS))
			rec.Record(e)
		})
		r.Close() // what still comes has no reader
	}()
	return f, nil
}

func copyRequests(w io.Writer, source string, in io.Reader) error {
	if source != "-" {
		file, err := os.Open(source)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	_, err := io.Copy(w, in)
	return err
}

// fedRequests says what a feed brought.
type fedRequests struct {
	lines   events.LineStats
	stats   rundb.EventStats
	pending int
	failed  bool            // the rest says how much is there
	session *events.Session // nil when the table of requests could not be made
}

// stop waits up to grace for the end of the lines, writes what waits, and makes the
// table of requests.
func (f *requestFeed) stop(ctx context.Context, grace time.Duration) (fedRequests, error) {
	select {
	case <-f.done:
	case <-time.After(grace):
	case <-ctx.Done():
	}
	f.pipe.Close()
	<-f.done
	out := fedRequests{lines: f.stats}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainRequests)
	defer cancel()
	var err error
	if out.pending, err = f.rec.Close(drain); err == nil {
		out.session, err = events.Rebuild(context.WithoutCancel(ctx), f.dir, events.Rules{Lenient: true})
	}
	out.stats = f.rec.Stats()
	if err == nil && f.err != nil && ctx.Err() == nil {
		err = fmt.Errorf("read requests from %s: %w", f.source, f.err)
	}
	return out, err
}

// lost is how much of what was told is not in the run as it was.
func (r *fedRequests) lost() int64 { return int64(r.lines.Bad) + r.stats.Lost() + int64(r.pending) }

// summary is one line for a person.
func (r *fedRequests) summary() string {
	requests, failed, flying := 0, 0, 0
	if r.session != nil {
		for i := range r.session.Requests {
			switch r.session.Requests[i].Status {
			case events.Failed:
				failed++
			case events.InFlight:
				flying++
			}
		}
		requests = len(r.session.Requests)
	}
	return fmt.Sprintf("requests: %d (%d failed, %d in flight), %d events of %d lines, %d lines bad, %d events lost", requests, failed, flying,
		r.stats.Recorded, r.lines.Lines, r.lines.Bad, r.stats.Lost()+int64(r.pending))
}

// notes are what is doubtful.
func (r *fedRequests) notes() []metric.Warning {
	var out []metric.Warning
	add := func(code, format string, args ...any) {
		out = append(out, metric.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	if r.lines.Bad > 0 {
		add("request_lines_bad", "%d of %d lines about requests could not be read, the first: %s", r.lines.Bad, r.lines.Lines, r.lines.FirstBad)
	}
	if n := r.stats.Lost() + int64(r.pending); n > 0 {
		add("request_events_lost", "request events: %d dropped for want of memory, %d late, %d not encodable, %d not written in time", r.stats.Dropped, r.stats.Late, r.stats.EncodeErrors, r.pending)
	}
	if r.lines.Unanchored > 0 {
		add("request_times_unanchored", "%d times of requests do not count from 1970, so the client's side cannot be joined with the servers'", r.lines.Unanchored)
	}
	if len(r.lines.Unknown) > 0 {
		add("request_keys_unknown", "keys of the lines about requests that are not known and were left out: %q", strings.Join(r.lines.Unknown, ", "))
	}
	if r.session != nil {
		out = append(out, r.session.Warnings...)
	}
	return out
}

// lineGrace is how long the end of a collection waits for lines that are under way.
const lineGrace = 2 * time.Second

// stopFeed ends what --requests began and notes what is doubtful.
func (s *session) stopFeed(ctx context.Context) []metric.Warning {
	if s.feed == nil {
		return nil
	}
	err := s.db.Flush() // the phases of requests are those of the marks
	var stopped error
	s.fed, stopped = s.feed.stop(ctx, lineGrace)
	s.manifest.Options["request-counts"] = s.fed.counts()
	notes := s.fed.notes()
	if err = errors.Join(err, stopped); err != nil {
		s.fed.failed = true
		notes = append(notes, metric.Warning{Code: "requests_not_recorded", Text: err.Error()})
	}
	return notes
}
