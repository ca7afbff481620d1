package scrape

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// Collector polls a set of targets. Make one with New; it runs once.
type Collector struct {
	options Options
	sink    Sink
	decode  chan *slowDecoder // semaphore: one slot, and its scratch memory, per core
	shared  *http.Transport
	buffers buffers
	memory  *metric.Memory

	mu     sync.Mutex
	loops  []*loop // by index of target; nil where the caller left one out
	stints map[int]*stint
	own    []*http.Transport

	changes chan rosterChange
	started atomic.Bool
	ready   chan struct{}
	pending atomic.Int64 // targets without a baseline
	ended   chan struct{}
}

// maxSpread is the time within which all targets get their baseline.
const maxSpread = time.Second

// New checks options and targets and returns a collector that has not begun. The index of a target is its
// Snapshot.Target. Without targets Options.Dynamic must be set: they come by [Collector.Add] then.
func New(targets []Target, o Options, sink Sink) (*Collector, error) {
	o = o.WithDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if len(targets) == 0 && !o.Dynamic || sink == nil {
		return nil, errors.New("make collector: want at least one target and a sink")
	}
	if err := checkFileLimit(len(targets)); err != nil {
		return nil, err
	}
	c := &Collector{options: o, sink: sink,
		memory: metric.NewMemory(o.Limits.Memory), decode: make(chan *slowDecoder, runtime.GOMAXPROCS(0)),
		stints: map[int]*stint{}, changes: make(chan rosterChange),
		ready: make(chan struct{}), ended: make(chan struct{})}
	for range cap(c.decode) {
		c.decode <- new(slowDecoder)
	}
	c.pending.Store(int64(len(targets)))
	if len(targets) == 0 {
		close(c.ready)
	}
	idle := len(targets)
	if o.Dynamic {
		idle = max(idle, sharedIdle)
	}
	c.shared = newTransport(idle, o.Limits)
	c.own = []*http.Transport{c.shared}
	for i, t := range targets {
		l, err := newLoop(c, i, t, c.transportFor(t))
		if err != nil {
			return nil, err
		}
		l.initial = true
		c.loops = append(c.loops, l)
	}
	return c, nil
}

// transportFor returns our own transport for a target.
func (c *Collector) transportFor(t Target) *http.Transport {
	if !strings.HasPrefix(t.URL, "unix://") || t.RoundTripper != nil {
		return c.shared
	}
	own := newUnixTransport(t.URL, c.options.Limits)
	c.own = append(c.own, own)
	return own
}

// Run polls until stop closes, then takes the final polls and returns. When ctx is cancelled it aborts at once
// and returns the error of ctx; when the sink fails it aborts and returns that error. All goroutines have ended
// when it returns.
//
// The grids of the targets are spread over one interval, in their order, so that the targets do not all answer
// at the same time; the baselines are spread over at most a second. After stop a running poll is given a fifth
// of Options.FinalTimeout, and the final poll the rest.
func (c *Collector) Run(ctx context.Context, stop <-chan struct{}) error {
	if c.started.Swap(true) {
		return errors.New("run collector: it ran before; make a new one")
	}
	defer close(c.ended)
	defer c.closeIdle()
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	polls, endPolls := context.WithCancel(ctx)
	defer endPolls()

	r := targetSet{c: c, stop: stop, abort: abort, ended: make(chan *stint)}
	begin := c.now()
	done := make(chan struct{})
	var watcher sync.WaitGroup
	for i, l := range c.loops {
		r.spread(ctx, polls, l, begin, float64(i)/float64(len(c.loops)))
	}
	watcher.Go(func() { c.endPolls(stop, done, endPolls) })
	r.run(ctx, polls)
	close(done)
	watcher.Wait()
	return context.Cause(ctx)
}

// endPolls interrupts the polls that still run some time after stop.
func (c *Collector) endPolls(stop, done <-chan struct{}, end context.CancelFunc) {
	select {
	case <-done:
		return
	case <-stop:
	}
	grace := time.NewTimer(c.grace())
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
		end()
	}
}

func (c *Collector) grace() time.Duration { return c.options.FinalTimeout / 5 }

// Boundary polls each target once more, now or as soon as its running poll has ended, and returns when all are
// recorded, ctx is done or the run has ended. It may be called from any goroutine once Run was.
func (c *Collector) Boundary(ctx context.Context) {
	c.mu.Lock()
	stints := slices.Collect(maps.Values(c.stints))
	c.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range stints {
		wg.Go(func() { c.boundary(ctx, s) })
	}
	wg.Wait()
}

func (c *Collector) boundary(ctx context.Context, s *stint) {
	recorded := make(chan struct{})
	select {
	case s.loop.extra <- recorded:
	case <-ctx.Done():
		return
	case <-s.gone:
		return
	case <-c.ended:
		return
	}
	select {
	case <-recorded:
	case <-ctx.Done():
	case <-s.gone:
	case <-c.ended:
	}
}

// Ready is closed when the baseline of every target of New is recorded, whatever
// its outcome, or the target was removed. It is never closed when the run ends before.
func (c *Collector) Ready() <-chan struct{} { return c.ready }

func (c *Collector) baselineDone() {
	if c.pending.Add(-1) == 0 {
		close(c.ready)
	}
}

func (c *Collector) closeIdle() {
	for _, t := range c.own {
		t.CloseIdleConnections()
	}
}

// nowNS is the time on the axis of the run.
func (c *Collector) nowNS() int64 { return c.at(c.now()) }

func (c *Collector) now() time.Time { return c.options.Now() }

func (c *Collector) at(t time.Time) int64 {
	return c.options.Origin.UnixNano() + int64(t.Sub(c.options.Origin))
}

// record hands a snapshot to the sink.
func (c *Collector) record(l *loop) error {
	if err := c.sink.Record(&l.snapshot); err != nil {
		return fmt.Errorf("record snapshot of %s: %w", l.target, err)
	}
	return nil
}
