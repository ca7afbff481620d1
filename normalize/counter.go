package normalize

import "math"

// number is the type of a counter's values.
type number interface{ float64 | uint64 }

// counter is the state of a counter. Its adjusted value is base + cur: base holds
// what earlier lives of the counter had reached, so that the adjusted value never
// falls. Integers wrap around, which differences do not notice.
type counter[T number] struct {
	track   track
	cur     T // the last sample
	base    T
	ref     T // adjusted value that gains are counted from
	before  T // sample before the change at poll changed
	changed int32
	born    int32 // poll of the first sample
	resetAt int32 // poll of the last reset
	resets  int32
	bound   int32 // boundaries of slices before the last change
	seen    bool  // there was a sample
	restart bool  // the creation time changed since the last sample
	created float64
	line    changeLog
}

func newCounter[T number]() counter[T] {
	return counter[T]{track: newTrack(), created: math.NaN(), changed: -1, resetAt: -1}
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
		c.seen, c.restart = true, false
		c.cur, c.ref, c.born = v, v, n
		c.fromZero(f, n)
		return
	}
	if f.bound > c.bound {
		c.mark(f.bound, c.cur)
	}
	if v < c.cur || c.restart {
		c.reset(f, c.cur, v, n)
	}
	c.before, c.changed = c.cur, n
	c.cur = v
}

// fromZero counts an integer from zero that is new in poll n and says it was
// created at or after the poll before: it was zero then. Only sources that are no
// exposition send integers; for all others AIPerf's rule holds.
func (c *counter[T]) fromZero(f *Accumulator, n int32) {
	var zero T
	if _, whole := any(zero).(uint64); !whole || n == 0 || f.o.Resets == ResetClamp || !(c.created >= float64(f.times[n-1])/1e9) {
		return
	}
	c.ref, c.track.ref = zero, n-1
	if f.bound > c.bound {
		c.mark(f.bound, zero)
	}
}

// reset ends a life of the counter at old; v, the sample of poll n, counts from
// zero.
func (c *counter[T]) reset(f *Accumulator, old, v T, n int32) {
	c.restart = false
	c.resets++
	c.resetAt = n
	if f.o.Resets == ResetClamp {
		return
	}
	c.base += old - min(v, 0)
}

// restarted handles a changed creation time at poll n, whose values are taken
// over already.
func (c *counter[T]) restarted(f *Accumulator, n int32) {
	switch {
	case !c.restart || c.track.state != good:
	case c.born == n, c.resetAt == n:
		c.restart = false
	case c.changed == n:
		// The new value was taken for an increase before the creation time came.
		c.reset(f, c.before, c.cur, n)
	default:
		if f.bound > c.bound {
			c.mark(f.bound, c.cur)
		}
		c.reset(f, c.cur, c.cur, n)
	}
}

func (f *Accumulator) setCounterCreated(s *slot, bits uint64) {
	v := s.value(bits)
	switch h := f.holders[s.owner]; h.kind {
	case kindCounter:
		if c := &f.counters[h.index]; changeCreated(&c.created, &c.restart, v) {
			f.restarts = append(f.restarts, s.owner)
		}
	case kindInteger:
		c := &f.integers[h.index]
		if changeCreated(&c.created, &c.restart, v) {
			f.restarts = append(f.restarts, s.owner)
		}
		if n := int32(len(f.times) - 1); c.seen && c.born == n {
			c.fromZero(f, n) // its first value came before the creation time
		}
	}
}

// changeCreated notes the creation time v and reports whether it differs from
// one known before.
func changeCreated(created *float64, restart *bool, v float64) bool {
	if math.IsNaN(v) || math.IsInf(v, 0) || v == *created {
		return false
	}
	known := !math.IsNaN(*created)
	*created = v
	*restart = *restart || known
	return known
}

// mark writes down the adjusted value at the boundaries before bound, where the
// sample was v.
func (c *counter[T]) mark(bound int32, v T) {
	c.bound = bound
	switch adjusted := any(c.base + v).(type) {
	case float64:
		c.line.floats(bound, []float64{adjusted}, nil)
	case uint64:
		c.line.integer(bound, adjusted)
	}
}

// open begins the window at poll n.
func (c *counter[T]) open(n int32) {
	c.track.open(n)
	var zero T
	c.base, c.ref, c.resets = zero, c.cur, 0
}

// result returns nil when the window has no sample.
func (c *counter[T]) result(v *view) (*Counter, track) {
	t := c.track
	t.settle(v.polls.to, v.polls)
	if t.samples == 0 {
		return nil, t
	}
	out := &Counter{Sliced: v.sliced, First: float64(c.ref), Last: float64(c.cur)}
	deltas := t.samples > 1 || t.ref >= 0
	out.Defined = deltas || v.resets == ResetClamp
	last := c.base + c.cur
	out.Total = gain(c.ref, last, v.resets)
	if ns := v.times[t.final] - v.times[t.reference()]; ns > 0 {
		out.Rate = finite(out.Total / seconds(ns))
	}
	if exact, ok := any(last - c.ref).(uint64); ok {
		out.HasExact = true
		if v.resets == ResetAdjust || last >= c.ref {
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
	last := c.base + c.cur
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

// boundaries returns a function for the adjusted value at a boundary; after the
// last row that is last.
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
