package collect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/events/proxy"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source"
	"github.com/scrapestat/scrapestat/source/otlp"
)

// traceReceiver takes the traces that servers send into a run.
type traceReceiver struct {
	r     *otlp.Receiver
	feed  *events.ServerFeed
	ended chan error
}

// listenTraces lets a receiver listen, for start to serve.
func listenTraces(ctx context.Context, address string) (*traceReceiver, error) {
	t := &traceReceiver{ended: make(chan error, 1)}
	var err error
	t.r, err = otlp.Listen(ctx, address, func(q *metric.ServerRequest) { t.feed.Record(q) })
	if err != nil {
		return nil, &OptionError{err}
	}
	return t, nil
}

// start serves into a recorder until stop is called.
func (t *traceReceiver) start(ctx context.Context, rec *events.Recorder) (err error) {
	t.feed, err = rec.Feed(ctx, metric.ServerSource{Kind: "otlp", Name: t.r.Addr().String(), ServerClock: otlp.Clock(),
		OpenedNS: time.Now().UnixNano()})
	if err == nil {
		go func() { t.ended <- t.r.Serve() }()
	}
	return err
}

// discard closes a receiver that was not started; nil is none.
func (t *traceReceiver) discard() error {
	if t == nil {
		return nil
	}
	return t.r.Discard()
}

// stop ends the receiver; nil is none.
func (t *traceReceiver) stop() error {
	if t == nil {
		return nil
	}
	err := errors.Join(t.r.Close(), <-t.ended)
	t.feed.Counted(t.r.Counts())
	return err
}

// TracesAddr is where traces are taken; nil without a receiver.
func (c *ClientRecorder) TracesAddr() net.Addr {
	if c == nil || c.traces == nil {
		return nil
	}
	return c.traces.r.Addr()
}

// serverLost is how many records are not in the run.
func (s *ClientStats) serverLost() (n int64) {
	for _, x := range s.Server {
		n += x.Bad + x.Dropped
	}
	return n
}

// serverText is one line for a person about the sources of the server's side.
func (s *ClientStats) serverText() string {
	var parts []string
	for _, x := range s.Server {
		text := fmt.Sprintf("%d records of requests of %s at %s, %d other entries", x.Records, x.Kind, x.Name, x.Other)
		if x.Seen > 0 {
			text += fmt.Sprintf(", %d sent again", x.Seen)
		}
		parts = append(parts, text)
	}
	return "server: " + strings.Join(parts, "; ")
}

// serverWarnings are what is doubtful of the server's side.
func (s *ClientStats) serverWarnings() (out []metric.Warning) {
	for _, x := range s.Server {
		if x.Bad > 0 {
			out = append(out, metric.Warnf("server_requests_bad", "%d records of %s could not be read, the first: %s", x.Bad,
				x.Kind, x.FirstBad))
		}
		if x.Dropped > 0 {
			out = append(out, metric.Warnf("server_requests_lost", "%d records of %s were dropped, as the recording could "+
				"not be written fast enough", x.Dropped, x.Kind))
		}
	}
	return out
}

// answerFeeds takes what servers tell of requests in their answers, which pass the proxy.
type answerFeeds struct {
	mu    sync.Mutex
	rec   *events.Recorder
	name  string
	feeds map[string]*answerFeed
}

type answerFeed struct {
	*events.ServerFeed
	counts metric.ServerCounts
}

// take records an answer, and begins a source where it is the first of its kind.
func (a *answerFeeds) take(kind string, q *metric.ServerRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clock := proxy.ServedClock(kind)
	f := a.feeds[kind]
	if f == nil {
		s := metric.ServerSource{Kind: kind, Name: a.name, ServerClock: clock, OpenedNS: time.Now().UnixNano()}
		feed, err := a.rec.Feed(context.Background(), s)
		if err != nil {
			return // the recorder tells what is wrong with the recording
		}
		f = &answerFeed{ServerFeed: feed}
		a.feeds[kind] = f
	}
	if err := q.Check(clock.Clock); err != nil {
		f.counts.Note("an answer: %v", err)
		f.Counted(f.counts)
		return
	}
	f.Record(q)
}

// sources are those of answers so far.
func (a *answerFeeds) sources() (all []metric.ServerSource) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, kind := range slices.Sorted(maps.Keys(a.feeds)) {
		all = append(all, a.feeds[kind].Source())
	}
	return all
}

// TargetFeeds takes what targets tell of requests while they are polled. It is made before the run, whose recorder it
// gets when that begins. It is safe for concurrent use.
type TargetFeeds struct {
	mu  sync.Mutex
	rec *events.Recorder // nil until the run begins
	all []*targetFeed
}

// Open begins a source; it is in the recording from its first record or count on.
func (t *TargetFeeds) Open(s metric.ServerSource) source.Feed {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := &targetFeed{of: t, s: s}
	t.all = append(t.all, f)
	return f
}

// begin gives it the recorder; nil has no targets.
func (t *TargetFeeds) begin(rec *events.Recorder) {
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.rec = rec
	}
}

// any reports whether a target tells of requests.
func (t *TargetFeeds) any() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all) > 0
}

// sources are those that told something.
func (t *TargetFeeds) sources() (out []metric.ServerSource) {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.all {
		if f.feed != nil {
			out = append(out, f.feed.Source())
		}
	}
	return out
}

// targetFeed is a source of one target.
type targetFeed struct {
	of   *TargetFeeds
	s    metric.ServerSource
	feed *events.ServerFeed // nil until there is something to tell
}

// get opens the feed; nil while there is no run, or it cannot be written, which the recorder tells.
func (f *targetFeed) get() *events.ServerFeed {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.feed == nil && f.of.rec != nil {
		f.s.OpenedNS = time.Now().UnixNano()
		if feed, err := f.of.rec.Feed(context.Background(), f.s); err == nil {
			f.feed = feed
		}
	}
	return f.feed
}

// Record implements source.Feed.
func (f *targetFeed) Record(q *metric.ServerRequest) {
	if feed := f.get(); feed != nil {
		feed.Record(q)
	}
}

// Counted implements source.Feed.
func (f *targetFeed) Counted(c metric.ServerCounts) {
	if c == (metric.ServerCounts{}) {
		return
	}
	if feed := f.get(); feed != nil {
		feed.Counted(c)
	}
}
