package collect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/events/proxy"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// drainRequests is how long the end of a run waits for the disk.
const drainRequests = 10 * time.Second

// ClientOptions is where the client's side of a run comes from, besides callers of
// ClientRecorder.Record.
type ClientOptions struct {
	Lines  string        // a file or FIFO of lines about requests, - for In, "" for none
	In     io.Reader     // stdin
	Proxy  *ProxyOptions // nil for none
	Traces string        // where servers send traces of their requests, HOST:PORT, "" for nowhere
	Served *TargetFeeds  // of targets that tell of requests; nil for none
	Create *rundb.Meta   // of the run that the directory is to get; nil where it has one
	Memory int64         // for events that wait, and the table of requests at the end; 0 is not bounded

	maxBytes int64         // of events that wait while the recording cannot be written; 0 is the recorder's own limit
	pending  *atomic.Int64 // counts them
}

// ProxyOptions is a proxy that records the requests that pass it.
type ProxyOptions struct {
	proxy.Options
	Listen      string // host:port
	Calibration int    // requests by which it measures itself at the start
	// NoTraceparent leaves requests as they are also where servers send traces of them.
	NoTraceparent bool
}

// ClientRecorder is the client's side of a run that is being recorded: one
// recorder, which lines, a proxy and callers tell of requests.
type ClientRecorder struct {
	dir     string
	rec     *events.Recorder
	lines   *lineReader   // nil without lines
	proxy   *runningProxy // nil without a proxy
	answers answerFeeds
	served  *TargetFeeds
	// traces is nil without a receiver of them.
	traces *traceReceiver
	// shared is set when the session is not that of one source alone, as there are
	// others, or events from before: then no source starts or ends it, and beside
	// lines a proxy does not tell what is tracked.
	shared bool
	memory int64
}

// StartClient begins to record the client's side of the run in dir. The recorder,
// which makes the run where it is to be made, is opened when everything else is
// known to work.
func StartClient(ctx context.Context, dir string, o ClientOptions) (*ClientRecorder, error) {
	live, err := o.checkLines()
	if err != nil {
		return nil, err
	}
	c := &ClientRecorder{dir: dir, shared: o.Lines != "" && o.Proxy != nil, memory: o.Memory}
	if o.Create == nil && !c.shared {
		if c.shared, err = hasEvents(dir); err != nil {
			return nil, err
		}
	}
	if o.Proxy != nil {
		po := *o.Proxy
		c.answers.name, c.answers.feeds = "answers by the proxy", map[string]*answerFeed{}
		po.Served, po.Traceparent = c.answers.take, o.Traces != "" && !po.NoTraceparent
		if c.proxy, err = newProxy(ctx, po); err != nil {
			return nil, err
		}
	}
	if o.Traces != "" {
		if c.traces, err = listenTraces(ctx, o.Traces); err != nil {
			return nil, errors.Join(err, c.proxy.discard())
		}
	}
	c.rec, err = events.NewRecorder(context.WithoutCancel(ctx), dir, events.RecorderOptions{Source: o.source(),
		Create: o.Create, MaxBytes: cmp.Or(o.maxBytes, min(o.Memory/2, 256<<20)), Pending: o.pending})
	if err != nil {
		return nil, errors.Join(err, c.proxy.discard(), c.traces.discard())
	}
	c.answers.rec, c.served = c.rec, o.Served
	c.served.begin(c.rec)
	if c.traces != nil {
		if err := c.traces.start(ctx, c.rec); err != nil {
			_, closed := c.rec.Close(ctx)
			return nil, errors.Join(err, c.proxy.discard(), c.traces.discard(), closed)
		}
	}
	if c.proxy != nil {
		c.proxy.start(ctx, c.recorder(o.Lines == ""))
	}
	if o.Lines != "" {
		c.lines = startLines(context.WithoutCancel(ctx), c.recorder(true), c.rec, o.Lines, o.In, live)
	}
	return c, nil
}

// source names what told of requests, for the recording.
func (o *ClientOptions) source() string {
	switch {
	case o.Lines != "" && o.Proxy != nil:
		return "jsonl and proxy"
	case o.Proxy != nil:
		return "proxy"
	case o.Lines != "":
		return "jsonl"
	}
	return "caller"
}

// checkLines reports whether lines come as things happen.
func (o *ClientOptions) checkLines() (live bool, err error) {
	switch {
	case o.Lines == "":
		return false, nil
	case o.Lines == "-" && o.In == nil:
		return false, &OptionError{errors.New("requests from -: there is no stdin")}
	case o.Lines == "-":
		return true, nil
	}
	info, err := os.Stat(o.Lines)
	if err != nil {
		return false, fmt.Errorf("read requests: %w", err)
	}
	return !info.Mode().IsRegular(), nil
}

// hasEvents reports whether the run in dir, if there is one, has request events.
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

// Record records an event of a request. It may be called from any goroutine.
func (c *ClientRecorder) Record(ev metric.Event) { c.recorder(true).Record(ev) }

// Now is the current instant, as events have it.
func (c *ClientRecorder) Now() int64 { return c.rec.Now() }

// LinesDone is closed when the lines have ended; nil without lines.
func (c *ClientRecorder) LinesDone() <-chan struct{} {
	if c.lines == nil {
		return nil
	}
	return c.lines.done
}

// ProxyAddr is where the proxy listens; nil without one.
func (c *ClientRecorder) ProxyAddr() net.Addr {
	if c == nil || c.proxy == nil {
		return nil
	}
	return c.proxy.ln.Addr()
}

// recording is what takes events.
type recording interface{ Record(metric.Event) }

func (c *ClientRecorder) recorder(tracking bool) recording {
	if c.shared {
		return sharedRecorder{c.rec, tracking}
	}
	return c.rec
}

// sharedRecorder is a recorder for sources that share a session: its start and end
// are no longer what one of them tells, so they become notes. What is tracked is
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
func (c *ClientRecorder) phase(name string) {
	switch name {
	case metric.PhaseProfiling:
		c.Track(true)
	case metric.PhaseWarmup, metric.MarkEnd:
		c.Track(false)
	}
}

// Track tells a proxy whether the requests from now on are tracked.
func (c *ClientRecorder) Track(tracked bool) {
	if c != nil && c.proxy != nil {
		c.proxy.p.Track(tracked)
	}
}

// Stop waits up to grace for the end of the lines, ends the proxy, writes what waits,
// and makes the table of requests.
func (c *ClientRecorder) Stop(ctx context.Context, grace time.Duration) (ClientStats, error) {
	var out ClientStats
	var errs []error
	if c.lines != nil {
		errs = append(errs, c.lines.stop(ctx, grace))
		out.FromLines, out.Lines, out.FirstNS, out.LastNS = true, c.lines.stats, c.lines.first.Load(), c.lines.last.Load()
	}
	if c.proxy != nil {
		errs = append(errs, c.proxy.stop())
		stats := c.proxy.p.Stats()
		out.Proxy = &stats
	}
	errs = append(errs, c.traces.stop())
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainRequests)
	defer cancel()
	var err error
	if out.Pending, err = c.rec.Close(drain); err == nil {
		out.Session, err = events.Rebuild(context.WithoutCancel(ctx), c.dir, events.Rules{Lenient: true,
			Memory: metric.NewMemory(cmp.Or(c.memory, math.MaxInt64))})
	}
	out.Events = c.rec.Stats()
	out.Server = append(c.answers.sources(), c.served.sources()...)
	if c.traces != nil {
		out.Server = append(out.Server, c.traces.feed.Source())
	}
	return out, errors.Join(append(errs, err)...)
}

// runningProxy is a proxy that records into a run.
type runningProxy struct {
	ln    net.Listener
	p     *proxy.Proxy
	to    *lateRecorder
	end   context.CancelFunc
	ended chan error
}

// lateRecorder is a recorder that is opened when everything else is known to work,
// before the first event.
type lateRecorder struct{ recording }

// newProxy measures the proxy and lets it listen.
func newProxy(ctx context.Context, o ProxyOptions) (_ *runningProxy, err error) {
	r := &runningProxy{ended: make(chan error, 1), to: &lateRecorder{}}
	o.Recorder = r.to
	if r.p, err = proxy.New(o.Options); err != nil {
		return nil, &OptionError{err}
	}
	if o.Calibration > 0 {
		if _, err := r.p.MeasureNull(ctx, o.Calibration); err != nil {
			return nil, err
		}
	}
	if r.ln, err = new(net.ListenConfig).Listen(ctx, "tcp", o.Listen); err != nil {
		return nil, &OptionError{fmt.Errorf("listen for the proxy: %w", err)}
	}
	return r, nil
}

// discard closes a proxy that was not started; nil is none.
func (r *runningProxy) discard() error {
	if r == nil {
		return nil
	}
	return r.ln.Close()
}

// start lets it serve until stop is called.
func (r *runningProxy) start(ctx context.Context, to recording) {
	r.to.recording = to
	ctx, r.end = context.WithCancel(context.WithoutCancel(ctx))
	go func() { r.ended <- r.p.Serve(ctx, r.ln) }()
}

// stop ends the proxy and waits for it.
func (r *runningProxy) stop() error {
	r.end()
	return <-r.ended
}
