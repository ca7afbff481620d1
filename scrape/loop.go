package scrape

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// loop polls one target. All but extra belongs to its goroutine.
type loop struct {
	c        *Collector
	target   Target
	interval time.Duration
	timeout  time.Duration
	fetcher  *fetcher
	decoder  *Decoder
	names    *nameFilter
	pace     *pace
	memory   *metric.MemoryShare
	extra    chan chan struct{} // boundary polls; the inner one is closed when recorded

	readAt   time.Time // when the last poll had its answer
	snapshot metric.Snapshot
	warnings []metric.Warning
	index    int
	seq      uint64

	triedFallback bool
	addressed     bool // it was said which address is polled
	skewed        bool // the clocks were said to differ
	initial       bool // a target of New
	based         bool // its baseline is recorded
}

func newLoop(c *Collector, index int, t Target, own http.RoundTripper) (*loop, error) {
	l := &loop{c: c, target: t, index: index, extra: make(chan chan struct{}),
		interval: cmp.Or(t.Interval, c.options.Interval)}
	l.timeout = timeoutFor(cmp.Or(t.Timeout, c.options.Timeout), l.interval)
	o := c.options
	o.Interval, o.Timeout = l.interval, cmp.Or(t.Timeout, o.Timeout)
	o.Limits = t.Limits.within(o.Limits)
	if err := o.validate(); err != nil {
		return nil, err
	}
	l.memory = c.memory.Share()
	var err error
	if t.Source == nil && t.Kind != "" && t.Kind != "prometheus" {
		return nil, fmt.Errorf("make target %s: it has no source of kind %s", t, metric.Clean(t.Kind, 40))
	}
	if t.Source == nil {
		if l.fetcher, err = newFetcher(t, o, l.timeout, own, c.nowNS); err != nil {
			return nil, err
		}
		l.decoder = newDecoder(o)
		l.decoder.dict.memory = l.memory
		l.names = newNameFilter(o.Keep)
		l.fetcher.buffers = &c.buffers
		l.decoder.relabel = t.Relabel
	}
	l.pace = newPace(l.interval, o.MaxScrapeShare)
	return l, nil
}

// continues takes over what an earlier loop of the same target knows, so that
// the dictionary its sink has learnt goes on.
func (l *loop) continues(old *loop) {
	l.seq = old.seq
	if l.decoder != nil && old.decoder != nil {
		l.decoder = old.decoder
	}
}

// run makes the baseline poll, and then periodic ones on the grid. Polls are made
// under polls, the final one under ctx. There is no final one after leave.
func (l *loop) run(ctx, polls context.Context, stop, leave <-chan struct{}, due, grid time.Time) error {
	timer := time.NewTimer(due.Sub(l.c.now()))
	defer timer.Stop()
	kind, ticks := metric.Baseline, 1
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-leave:
			return nil
		case <-stop:
			return l.final(ctx)
		case recorded := <-l.extra:
			if _, err := l.poll(polls, metric.Boundary, l.c.now(), l.timeout); err != nil {
				return err
			}
			close(recorded)
		case <-timer.C:
			// A collector that was suspended does not catch up.
			late, err := l.skip(due, ticks, l.c.now().Add(-l.step(ticks)), "the collector was suspended or starved")
			if err != nil {
				return err
			}
			due = late
			old := ticks
			if ticks, err = l.poll(polls, kind, due, l.timeout); err != nil {
				return err
			}
			if kind == metric.Baseline {
				kind = metric.Periodic
				l.baselined()
				if grid.After(due) {
					due = grid.Add(-l.interval)
				}
			}
			if due, err = l.next(due, old, ticks); err != nil {
				return err
			}
			timer.Reset(due.Sub(l.c.now()))
			continue
		}
		// A boundary poll may have run over a tick.
		var err error
		if due, err = l.skip(due, ticks, l.c.now(), overlapText); err != nil {
			return err
		}
		timer.Reset(due.Sub(l.c.now()))
	}
}

// baselined tells the collector that a target of New has its baseline.
func (l *loop) baselined() {
	if l.initial && !l.based {
		l.based = true
		l.c.baselineDone()
	}
}

func (l *loop) step(ticks int) time.Duration { return time.Duration(ticks) * l.interval }

// next returns the tick after a poll that was due. Ticks of the old pace that
// went by meanwhile were scheduled: they are recorded as skipped.
func (l *loop) next(due time.Time, old, ticks int) (time.Time, error) {
	now := l.c.now()
	missed, err := l.skip(due.Add(l.step(old)), old, now, overlapText)
	if err != nil {
		return due, err
	}
	due = missed.Add(l.step(ticks - old))
	for !due.After(now) {
		due = due.Add(l.interval)
	}
	return due, nil
}

const (
	overlapText = "due while the previous scrape was still running"
	busyText    = "due while the collector was still decoding or recording the previous scrape"
)

// skip records the ticks from due on that are not after now, and returns the first that is.
func (l *loop) skip(due time.Time, ticks int, now time.Time, why string) (time.Time, error) {
	for !due.After(now) {
		l.begin(metric.Periodic, due)
		l.snapshot.SentNS = l.c.nowNS()
		l.snapshot.Outcome, l.snapshot.Err = metric.SkippedOverlap, why
		if why == overlapText && due.After(l.readAt) {
			l.snapshot.Err = busyText // not the target's fault
		}
		if err := l.record(); err != nil {
			return due, err
		}
		due = due.Add(l.step(ticks))
	}
	return due, nil
}

// final takes the last poll of the run.
func (l *loop) final(ctx context.Context) error {
	_, err := l.poll(ctx, metric.Final, l.c.now(), min(l.timeout, l.c.options.FinalTimeout-l.c.grace()))
	return err
}

func (l *loop) begin(kind metric.Kind, due time.Time) {
	l.warnings = l.warnings[:0]
	l.snapshot = metric.Snapshot{Target: l.index, Seq: l.seq, Kind: kind, DueNS: l.c.at(due)}
}

func (l *loop) record() error {
	l.seq++
	return l.c.record(l)
}

// poll does one poll, records it, and returns the ticks to the next one.
func (l *loop) poll(ctx context.Context, kind metric.Kind, due time.Time, timeout time.Duration) (ticks int,
	err error) {
	l.begin(kind, due)
	s := &l.snapshot
	s.Warnings = l.warnings
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errDeadline)
	defer cancel()
	if l.target.Source != nil {
		return l.pollSource(ctx)
	}
	a, few := l.ask(ctx)
	l.readAt = l.c.now()
	before := len(l.decoder.present)
	if s.Outcome == metric.OK {
		l.decode(a)
	}
	if !s.Outcome.Stored() {
		l.fallback(ctx)
	} else {
		l.names.stored(l.decoder, few, before, s)
		l.skew(a)
		l.fetcher.pin(l.decoder.format)
		l.tellAddress()
		if a.final != nil {
			l.fetcher.now = a.final
		}
	}
	l.fetcher.conceal(s)
	ticks, warning := l.pace.after(s, l.fetcher.distance())
	if warning != nil {
		s.Warnings = append(s.Warnings, *warning)
	}
	l.warnings = s.Warnings
	err = l.record()
	l.decoder.dict.release() // the sink has it now
	l.fetcher.release()
	l.c.buffers.giveFrame(l.decoder.frame)
	l.decoder.frame = metric.Delta{}
	return ticks, err
}

// ask sends the request of a poll: for the kept families only, when the server
// is known to understand that or is to be tried.
func (l *loop) ask(ctx context.Context) (a answer, few bool) {
	s, f := &l.snapshot, l.fetcher
	if !l.names.use() {
		return f.fetch(ctx, f.now, s), false
	}
	a = f.fetch(ctx, l.names.url(f.now), s)
	a.final = nil // of full requests only
	why := l.names.judge(l.decoder, a, s)
	if why == "" {
		return a, true
	}
	if l.names.state == filterOn {
		l.names.state = filterWaits // it worked once: a full answer decides again
	} else {
		s.Warnings = append(s.Warnings, l.names.refuse(why))
	}
	return f.fetch(ctx, f.now, s), false
}

// The clock of a server tells whole seconds; a difference below maxSkew says nothing and harms nothing.
const maxSkew = 5 * time.Second

// skew tells once that the clock of the server is not ours. Nothing is computed
// from it: who lays logs of the server beside our times must know.
func (l *loop) skew(a answer) {
	if l.skewed || a.header == nil {
		return
	}
	at, err := http.ParseTime(a.header.Get("Date"))
	if err != nil {
		return // it does not say
	}
	now := time.Unix(0, l.c.nowNS())
	off := at.Sub(now).Round(time.Second)
	if l.skewed = off.Abs() >= maxSkew; l.skewed {
		l.snapshot.Warnings = append(l.snapshot.Warnings, metric.Warnf("clock_skew",
			"the server's clock says %s, that of this machine %s: %v apart; times here are of this machine",
			at.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), off))
	}
}

// tellAddress tells once which of several addresses of a name is polled.
func (l *loop) tellAddress() {
	if l.addressed || l.c.options.OnAddress == nil {
		return
	}
	l.addressed = true // the first good poll knows, or there is one address
	if text, several := l.fetcher.address(); several {
		l.c.options.OnAddress(l.index, text)
	}
}

// pollSource does one poll of a source that is no exposition.
func (l *loop) pollSource(ctx context.Context) (ticks int, err error) {
	s := &l.snapshot
	l.target.Source.Poll(ctx, l.c.nowNS, s)
	l.memory.Hold(0, len(s.DictDelta.Slots)) // its own limit has judged them
	l.readAt = l.c.now()
	ticks, warning := l.pace.after(s, 0)
	if warning != nil {
		s.Warnings = append(s.Warnings, *warning)
	}
	l.warnings = s.Warnings
	return ticks, l.record()
}

// decode decodes under the semaphore, which keeps the scratch memory of many targets
// that answer at once, and their fight for the cores, in bounds.
func (l *loop) decode(a answer) {
	scratch := <-l.c.decode
	defer func() { l.c.decode <- scratch }()
	l.decoder.learn = scratch
	if l.decoder.frame.Slots == nil {
		l.decoder.frame = l.c.buffers.takeFrame()
	}
	l.memory.Hold(int64(len(a.body)), 0)
	l.decoder.Decode(&l.snapshot, Body{Bytes: a.body, ContentType: a.contentType, Cut: a.cut})
}

// fallback deals with an answer that is no metrics: it goes back to the target's own URL, and tries
// /prometheus/metrics once, where servers with JSON at /metrics have them.
func (l *loop) fallback(ctx context.Context) {
	s, f := &l.snapshot, l.fetcher
	// A panic of ours tells nothing about the path.
	foreign := s.Outcome == metric.NotPrometheus && !strings.HasPrefix(s.Err, metric.InternalError) ||
		s.Outcome == metric.HTTPError && s.Status == http.StatusNotFound
	if !foreign {
		return
	}
	if f.now != f.base {
		f.now = f.base
		return
	}
	if l.triedFallback || !strings.HasSuffix(f.base.Path, "/metrics") ||
		strings.HasSuffix(f.base.Path, "/prometheus/metrics") {
		return
	}
	l.triedFallback = true
	first := *s
	u := fallbackURL(f.base)
	a := f.fetch(ctx, u, s)
	if s.Outcome == metric.OK {
		l.decode(a)
	}
	if !s.Outcome.Stored() {
		*s = first
		return
	}
	f.base, f.now = u, u
	s.Warnings = append(s.Warnings, metric.Warning{Code: "fallback_path",
		Text: "no metrics at " + redact(l.target.URL) + " (" + first.Err + "); found them at " + redact(u.String()) +
			", which is polled from now on"})
}

func fallbackURL(u *url.URL) *url.URL {
	alt := *u
	alt.Path = strings.TrimSuffix(u.Path, "/metrics") + "/prometheus/metrics"
	alt.RawPath = ""
	return &alt
}
