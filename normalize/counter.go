package normalize

import (
	"math"

	"github.com/scrapestat/scrapestat/metric"
)

// number is the type of a counter's values.
type number interface{ float64 | uint64 }

// counter is the state of a counter.
type counter[T number] struct {
	metric.Cumulative[T]
	track   track
	before  T // sample before the change at poll changed
	changed int32
	born    int32 // poll of the first sample
	resetAt int32 // poll of the last reset
	resets  int32
	bound   int32 // boundaries of slices before the last change
	seen    bool  // there was a sample
	created metric.Created
	line    changeLog
}

func newCounter[T number]() counter[T] {
	return counter[T]{track: newTrack(), changed: -1, resetAt: -1}
}

func (f *Accumulator) setCounter(c *counter[float64], bits uint64, n int32) {
	if !isFinite(bits) {
		c.track.set(bad, n, f.window)
		return
	}
	c.set(f, math.Float64frombits(bits), n)
}

// set takes a changed sample of poll n.
func (c *counter[T]) set(f *Accumulator, v T, n int32) {
	if c.track.state != good {
		c.track.set(good, n, f.window)
	}
	if !c.seen {
		c.seen, c.created.Moved = true, false
		c.Begin(v)
		c.born = n
		c.fromZero(f, n)
		return
	}
	if f.bound > c.bound {
		c.mark(f.bound, c.Value())
	}
	if v < c.Last || c.created.Moved {
		c.reset(f, c.Last, v, n)
	}
	c.before, c.changed = c.Last, n
	c.Last = v
}

// fromZero counts an integer from zero that is new in poll n and says it was created at or after the poll before: it
// was zero then. Only sources that are no exposition send integers; for all others AIPerf's rule holds.
func (c *counter[T]) fromZero(f *Accumulator, n int32) {
	var zero T
	_, whole := any(zero).(uint64)
	if !whole || n == 0 || f.o.Resets == ResetClamp || !c.created.Since(f.times[n-1]) {
		return
	}
	c.Ref, c.track.ref = zero, n-1
	if f.bound > c.bound {
		c.mark(f.bound, zero)
	}
}

// reset ends a life of the counter at old; v, the sample of poll n, counts from zero.
func (c *counter[T]) reset(f *Accumulator, old, v T, n int32) {
	c.created.Moved = false
	c.resets++
	c.resetAt = n
	if f.o.Resets != ResetClamp {
		c.Restart(old, v)
	}
}

// restarted handles a changed creation time at poll n, whose values are taken over already.
func (c *counter[T]) restarted(f *Accumulator, n int32) {
	switch {
	case !c.created.Moved || c.track.state != good:
	case c.born == n, c.resetAt == n:
		c.created.Moved = false
	case c.changed == n:
		// The new value was taken for an increase before the creation time came.
		c.reset(f, c.before, c.Last, n)
	default:
		if f.bound > c.bound {
			c.mark(f.bound, c.Value())
		}
		c.reset(f, c.Last, c.Last, n)
	}
}

func (f *Accumulator) setCounterCreated(s *slot, bits uint64) {
	v := s.value(bits)
	switch h := f.holders[s.owner]; h.kind {
	case kindCounter:
		if f.counters[h.index].created.Set(v) {
			f.restarts = append(f.restarts, s.owner)
		}
	case kindInteger:
		c := &f.integers[h.index]
		if c.created.Set(v) {
			f.restarts = append(f.restarts, s.owner)
		}
		if n := int32(len(f.times) - 1); c.seen && c.born == n {
			c.fromZero(f, n) // its first value came before the creation time
		}
	}
}

// mark writes down the adjusted value at the boundaries before bound.
func (c *counter[T]) mark(bound int32, adjusted T) {
	c.bound = bound
	switch adjusted := any(adjusted).(type) {
	case float64:
		c.line.floats(bound, []float64{adjusted}, nil)
	case uint64:
		c.line.integer(bound, adjusted)
	}
}

// open begins the window at poll n.
func (c *counter[T]) open(n int32) {
	c.track.open(n)
	c.Open()
	c.resets = 0
}

// result returns nil when the window has no sample.
func (c *counter[T]) result(v *view) (*Counter, track) {
	t := c.track
	t.settle(v.polls.to, v.polls)
	if t.samples == 0 {
		return nil, t
	}
	out := &Counter{Sliced: v.sliced, First: float64(c.Ref), Last: float64(c.Last)}
	deltas := t.samples > 1 || t.ref >= 0
	out.Defined = deltas || v.resets == ResetClamp
	last := c.Value()
	out.Total = gain(c.Ref, last, v.resets)
	if ns := v.times[t.final] - v.times[t.reference()]; ns > 0 {
		out.Rate = finite(out.Total / seconds(ns))
	}
	if exact, ok := any(last - c.Ref).(uint64); ok {
		out.HasExact = true
		if v.resets == ResetAdjust || last >= c.Ref {
			out.Exact = exact
		}
	}
	if v.sliced && deltas {
		out.Slices = c.slices(v)
		out.SliceRates = rates(out.Slices)
	}
	return out, t
}

// slices returns the gain within each slice: the value at a boundary is that of
// the last sample up to it, or of the first sample.
func (c *counter[T]) slices(v *view) []CounterSlice {
	last := c.Value()
	at := c.boundaries(last)
	out := make([]CounterSlice, len(v.grid))
	from := at(0)
	for k, s := range v.grid {
		to := last
		if !s.Partial {
			to = at(k + 1)
		}
		total := gain(from, to, v.resets)
		out[k] = CounterSlice{s, total, finite(total / seconds(s.EndNS-s.StartNS))}
		from = to
	}
	return out
}

// boundaries returns a function for the adjusted value at a boundary; after the last row that is last.
func (c *counter[T]) boundaries(last T) func(boundary int) T {
	var r reader
	var row *T
	if _, whole := any(last).(uint64); whole {
		r = c.line.readIntegers(1)
		row, _ = any(&r.whole[0]).(*T)
	} else {
		r = c.line.readFloats(1)
		row, _ = any(&r.floats[0]).(*T)
	}
	return func(boundary int) T {
		if r.at(int32(boundary)) {
			return *row
		}
		return last
	}
}

// gain is what a counter gained from a to b.
func gain[T number](a, b T, resets ResetMode) float64 {
	if resets == ResetClamp && b < a {
		return 0
	}
	return finite(float64(b - a))
}

// rates summarises the rates of the complete slices; nil without one.
func rates(all []CounterSlice) *Spread {
	n := len(all)
	if n > 0 && all[n-1].Partial {
		n--
	}
	if n == 0 {
		return nil
	}
	s := moments{}
	for pass := range passes {
		s.begin(pass)
		for i := range all[:n] {
			s.add(all[i].Rate, 1)
		}
	}
	spread := s.spread()
	return &spread
}
