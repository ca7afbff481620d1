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
	"github.com/scrapestat/scrapestat/events/proxy"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// requestFeed tells a recorder of the requests in lines until they end or it is
// stopped.
type requestFeed struct {
	source      string
	pipe        *io.PipeWriter
	done        chan struct{} // the lines have ended
	first, last atomic.Int64  // the range of times, 0 without events

	stats events.LineStats // after done
	err   error            // of reading, after done
}

// startFeed begins to read a file, a FIFO or, for "-", in, and tells to. Nothing
// waits for a FIFO that nobody opens. live says that lines come as things happen:
// then rec places times of other clocks.
func startFeed(ctx context.Context, to recording, rec *events.Recorder, source string, in io.Reader, live bool) *requestFeed {
	r, w := io.Pipe()
	f := &requestFeed{source: source, pipe: w, done: make(chan struct{})}
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
			if first := f.first.Load(); first == 0 || e.AtNS < first {
				f.first.Store(e.AtNS)
			}
			f.last.Store(max(f.last.Load(), e.AtNS))
			to.Record(e)
		})
		r.Close() // what still comes has no reader
	}()
	return f
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

// stop waits up to grace for the end of the lines.
func (f *requestFeed) stop(ctx context.Context, grace time.Duration) error {
	select {
	case <-f.done:
	case <-time.After(grace):
	case <-ctx.Done():
	}
	f.pipe.Close()
	<-f.done
	if f.err != nil && ctx.Err() == nil {
		return fmt.Errorf("read requests from %s: %w", f.source, f.err)
	}
	return nil
}

// fedRequests says what the client's side of a run brought.
type fedRequests struct {
	fed         bool // from lines
	lines       events.LineStats
	first, last int64        // the range of times in lines
	proxy       *proxy.Stats // nil without a proxy
	stats       rundb.EventStats
	pending     int
	failed      bool            // the rest says how much is there
	session     *events.Session // nil when the table of requests could not be made
}

// lost is how much of what was told is not in the run as it was.
func (r *fedRequests) lost() int64 {
	n := int64(r.lines.Bad) + r.stats.Lost() + int64(r.pending)
	if r.proxy != nil {
		n += r.proxy.Lost()
	}
	return n
}

// lossText is what was lost, in parts.
func (r *fedRequests) lossText() string {
	var parts []string
	if r.fed || r.proxy == nil {
		parts = append(parts, fmt.Sprintf("%d lines bad", r.lines.Bad))
	}
	parts = append(parts, fmt.Sprintf("%d events lost", r.stats.Lost()+int64(r.pending)))
	if r.proxy != nil {
		parts = append(parts, fmt.Sprintf("%d requests or answers lost by the proxy", r.proxy.Lost()))
	}
	return strings.Join(parts, ", ")
}

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
	from := "the proxy"
	if r.fed {
		if from = fmt.Sprintf("%d lines", r.lines.Lines); r.proxy != nil {
			from += " and the proxy"
		}
	}
	return fmt.Sprintf("requests: %d (%d failed, %d in flight), %d events of %s, %s", requests, failed, flying, r.stats.Recorded, from, r.lossText())
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
	if p := r.proxy; p != nil && p.Lost() > 0 {
		add("proxy_incomplete", "the proxy refused %d requests beyond its limit (--max-streams); of answers %d could not be scanned, %d were larger than a limit, %d unreadable: their tokens are unknown",
			p.Refused, p.Unscanned, p.Oversized, p.Unreadable)
	}
	if r.session != nil {
		out = append(out, r.session.Warnings...)
	}
	return out
}

// lineGrace is how long the end of a collection waits for lines that are under way.
const lineGrace = 2 * time.Second

// stopSide ends the client's side, if there is one, and notes what is doubtful.
func (s *session) stopSide(ctx context.Context) []metric.Warning {
	if s.side == nil {
		return nil
	}
	err := s.db.Flush() // the phases of requests are those of the marks
	var stopped error
	s.clientStats, stopped = s.side.stop(ctx, lineGrace)
	s.clientStats.tellProxy(func(text string) { s.say.logf("%s", text) })
	s.manifest.Options["request-counts"] = s.clientStats.counts()
	notes := s.clientStats.notes()
	if err = errors.Join(err, stopped); err != nil {
		s.clientStats.failed = true
		notes = append(notes, metric.Warning{Code: "requests_not_recorded", Text: "request events are incomplete: " + err.Error()})
	}
	return notes
}

// startSide starts what --requests and --proxy ask for; without them the client has
// no side.
func (s *session) startSide(ctx context.Context) (err error) {
	if s.o.requests == "" && s.o.proxy == "" {
		return nil
	}
	o := sideOptions{dir: s.o.out, lines: s.o.requests, in: s.in}
	if s.o.proxy != "" {
		flags := s.o.proxyFlags
		if o.listen, flags.options.Upstream, err = proxyPair(s.o.proxy); err != nil {
			return err
		}
		flags.options.Untracked = true // the phases of the run say what is
		o.proxy = &flags
	}
	if s.side, err = startSide(ctx, o); err == nil && s.side.proxy != nil {
		s.say.logf("proxy on http://%s", s.side.proxy.addr)
	}
	return err
}
