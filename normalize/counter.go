package normalize

import (
	"math"

	"github.com/scrapestat/scrapestat/metric"
)

// number is the type of a counter's values.
type number interface{ float64 | uint64 }

// counter is the state of a counter, whose values are adjusted: they never fall but under ResetClamp.
type counter[T number] struct {
	track     track
	ref, last T // the value that gains are counted from, the last sample
	first     T // sample of one that was born inside the window and so is counted from zero
	bound     int32
	bornBound int32 // boundaries before it are before the birth
	seen      bool  // there was a sample
	born      bool
	created   metric.Created
	line      changeLog
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
		c.seen, c.ref, c.last = true, v, v
		return
	}
	if f.bound > c.bound {
		c.mark(f.bound, c.last)
	}
	c.last = v
}

// birth makes the first sample, that of poll n, count from zero.
func (c *counter[T]) birth(f *Accumulator, n int32) {
	var zero T
	if !c.seen {
		return // its sample is not finite
	}
	c.born, c.first, c.ref, c.track.ref, c.bornBound = true, c.last, zero, n-1, f.bound
}

func (f *Accumulator) setCounterCreated(s *slot, bits uint64) {
	switch h := f.holders[s.owner]; h.kind {
	case kindCounter:
		f.counters[h.index].created.Set(s.value(bits))
	case kindInteger:
		f.integers[h.index].created.Set(s.value(bits))
	}
}

// mark writes down the value at the boundaries before bound.
func (c *counter[T]) mark(bound int32, adjusted T) {
	c.bound = bound
	switch adjusted := any(adjusted).(type) {
	case float64:
		c.line.floats(bound, []float64{adjusted})
	case uint64:
		c.line.integer(bound, adjusted)
	}
}

// open begins the window at poll n.
func (c *counter[T]) open(n int32) {
	c.track.open(n)
	c.ref, c.born = c.last, false
}

// as returns the counter itself or, unborn, as AIPerf counts it: from its first sample.
func (c *counter[T]) as(unborn bool) *counter[T] {
	if !unborn {
		return c
	}
	u := *c
	u.ref, u.track.ref = c.first, -1
	return &u
}

// result returns nil when the window has no sample.
func (c *counter[T]) result(v *view) (*Counter, track) {
	t := c.track
	t.settle(v.polls.to, v.polls)
	if t.samples == 0 {
		return nil, t
	}
	out := &Counter{Sliced: v.sliced, First: float64(c.ref), Last: float64(c.last)}
	deltas := t.samples > 1 || t.ref >= 0
	out.Defined = deltas || v.resets == ResetClamp
	out.Total = gain(c.ref, c.last, v.resets)
	if ns := v.times[t.final] - v.times[t.reference()]; ns > 0 {
		out.Rate = finite(out.Total / seconds(ns))
	}
	if exact, ok := any(c.last - c.ref).(uint64); ok {
		out.HasExact = true
		if v.resets == ResetAdjust || c.last >= c.ref {
			out.Exact = exact
		}
	}
	if v.sliced && deltas {
		out.Slices = c.slices(v)
		out.SliceRates = rates(out.Slices)
	}
	return out, t
}

// slices returns the gain within each slice: the value at a boundary is that of the last sample up to it, or of the
// first sample. They add up to the total: what a sample exactly at the start gained is in the first slice, but in
// AIPerf's arithmetic in none.
func (c *counter[T]) slices(v *view) []CounterSlice {
	at := c.boundaries()
	out := make([]CounterSlice, len(v.grid))
	from := c.ref
	if v.resets == ResetClamp {
		from = at(0)
	}
	for k, s := range v.grid {
		to := c.last
		if k+1 < len(v.grid) {
			to = at(k + 1)
		}
		total := gain(from, to, v.resets)
		out[k] = CounterSlice{s, total, finite(total / seconds(s.EndNS-s.StartNS))}
		from = to
	}
	return out
}

// boundaries returns a function for the value at a boundary; after the last row that is the last one.
func (c *counter[T]) boundaries() func(boundary int) T {
	var r reader
	var row *T
	if _, whole := any(c.last).(uint64); whole {
		r = c.line.readIntegers(1)
		row, _ = any(&r.whole[0]).(*T)
	} else {
		r = c.line.readFloats(1)
		row, _ = any(&r.floats[0]).(*T)
	}
	return func(boundary int) T {
		switch {
		case c.born && int32(boundary) < c.bornBound:
			return c.ref
		case r.at(int32(boundary)):
			return *row
		}
		return c.last
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
