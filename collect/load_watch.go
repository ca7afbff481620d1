package collect

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
	"github.com/scrapestat/scrapestat/window/traffic"
)

// loadWatch finds out from the polls when the targets have requests. It is safe for concurrent use.
type loadWatch struct {
	*summary.Load
	catalog *catalog.Catalog
	began   chan struct{} // has one when another stretch of requests began
	failed  atomic.Bool   // a poll was not understood
}

func newLoadWatch(c *catalog.Catalog) *loadWatch {
	return &loadWatch{Load: summary.NewLoad(c), catalog: c, began: make(chan struct{}, 1)}
}

// Record implements Observer.
func (w *loadWatch) Record(s *metric.Snapshot) {
	began, err := w.Add(s)
	if err != nil {
		w.failed.Store(true)
	}
	if began {
		select {
		case w.began <- struct{}{}:
		default:
		}
	}
}

// text is what there was, for the recording.
func (w *loadWatch) text() (string, error) {
	if w.failed.Load() {
		return "", nil
	}
	return traffic.Encode(w.Found(), w.catalog)
}

// schedule is when the warm-up of a run and the run itself end. It has one owner.
type schedule struct {
	o       *Options
	s       *Session
	baseNS  int64 // of the load: COMMAND's start
	firstNS int64 // of its requests, as far as is known; 0 for none
	blind   bool  // nothing tells of requests

	// warm fires when the warm-up ends and enough when the run does; neither while that is not known.
	warm, enough <-chan time.Time
	markedNS     int64 // where the warm-up ended last
}

// update looks at what the polls told up to nowNS and sets the timers.
func (p *schedule) update(nowNS int64) {
	found := p.s.load.Found()
	if p.blind = found.Blind; !p.blind {
		if start, ok := found.Start(); ok {
			p.firstNS = max(start.AtNS, p.baseNS)
		}
	}
	p.s.waitsNS.Store(0)
	if p.firstNS == 0 && !p.blind {
		p.s.waitsNS.Store(p.baseNS)
	}
	p.s.endsNS.Store(p.endNS())
	p.warm, p.enough = nil, nil
	if at := p.warmNS(); p.due(at, nowNS) {
		p.warm = time.After(time.Duration(at - nowNS))
	}
	if at := p.endNS(); at > 0 {
		p.enough = time.After(time.Duration(at - nowNS))
	}
}

// warmNS is when the warm-up ends, 0 while that is not known: it counts from the first request where something tells
// of it, and from COMMAND's start where the window is to be COMMAND.
func (p *schedule) warmNS() int64 {
	switch {
	case p.o.Warmup == 0:
		return 0
	case p.blind || p.o.Window.What == window.Command:
		return p.baseNS + int64(p.o.Warmup)
	case p.firstNS == 0:
		return 0
	}
	return p.firstNS + int64(p.o.Warmup)
}

// due reports whether a warm-up that ends then is still to be marked: there may be a mark for one that a probe, which
// is no part of the load, began.
func (p *schedule) due(atNS, nowNS int64) bool {
	const near = int64(time.Second)
	return atNS > 0 && (p.markedNS == 0 || atNS > p.markedNS+near && atNS > nowNS-near)
}

// endNS is when Options.Duration is over, 0 without one: it counts from the end of the warm-up. Where no request came
// it counts from the start, or from when Options.WaitTraffic is over.
func (p *schedule) endNS() int64 {
	from, waited := p.baseNS, p.baseNS+int64(p.o.WaitTraffic)
	warms := p.o.Warmup > 0 && p.o.Window.What != window.Command
	switch {
	case p.o.Duration == 0:
		return 0
	case p.firstNS > 0 && (warms || p.o.WaitTraffic > 0 && p.firstNS <= waited):
		from = p.firstNS
	case p.o.WaitTraffic > 0:
		from = waited
	}
	return from + int64(p.o.Warmup+p.o.Duration)
}

// warmedUp ends the warm-up, all targets being polled then: unless what the polls told meanwhile puts it off.
func (s *Session) warmedUp(ctx context.Context, p *schedule) {
	const slack = int64(time.Millisecond)
	p.update(s.Now())
	at := p.warmNS()
	if now := s.Now(); at-now < slack && p.due(at, now) {
		p.markedNS = at
		s.set(metric.Mark{Name: metric.PhaseProfiling, AtNS: max(at, now-10*slack), Kind: metric.MarkPolled})
		s.collector.Boundary(ctx)
		p.update(s.Now())
	}
}

// Waiting is what the run waits for, "" when requests came or nothing tells of them.
func (s *Session) Waiting() string {
	since := s.waitsNS.Load()
	if since == 0 {
		return ""
	}
	return "waiting for the first request (" + time.Duration(s.Now()-since).Round(time.Second).String() + ")"
}

// Remaining is how long the run goes on; below 0 where that is not known.
func (s *Session) Remaining() time.Duration {
	at := s.endsNS.Load()
	if at == 0 {
		return -1
	}
	return time.Duration(max(0, at-s.Now()))
}
