package normalize

import (
	"cmp"
	"math"
	"slices"
)

// run is a value that a gauge had in the polls from <= n < to.
type run struct {
	value float64
	from  int32
	to    int32 // open when it is the last run: the gauge still has the value
}

const open = math.MaxInt32

// gauge is the state of a gauge: its samples inside the window, equal neighbours as one run.
type gauge struct {
	track track
	cur   float64 // the last sample
	ref   float64 // the last sample before the window, when track.ref has one
	runs  []run
}

func (f *Accumulator) setGauge(s *slot, bits uint64, n int32) {
	g, v := &f.gauges[s.owner], s.value(bits)
	if !s.finite(bits) {
		g.leave(bad, n, f.window)
		return
	}
	if g.track.state != good {
		g.track.set(good, n, f.window)
	}
	g.cur = v
	if n >= f.window.from {
		g.push(v, n)
	}
}

// push begins a run at poll n.
func (g *gauge) push(v float64, n int32) {
	if k := len(g.runs) - 1; k >= 0 && g.runs[k].to == open {
		if g.runs[k].from == n {
			g.runs[k].value = v
			return
		}
		g.runs[k].to = n
	}
	g.runs = append(g.runs, run{v, n, open})
}

// leave ends the samples before poll n.
func (g *gauge) leave(state presence, n int32, w span) {
	g.track.set(state, n, w)
	k := len(g.runs) - 1
	if k < 0 || g.runs[k].to != open {
		return
	}
	g.runs[k].to = n
	if g.runs[k].from == n {
		g.runs = g.runs[:k]
	}
}

// open begins the window at poll n with the value known so far.
func (g *gauge) open(n int32) {
	g.track.open(n)
	g.ref = g.cur
	if g.track.state == good {
		g.push(g.cur, n)
	}
}

// result returns nil when the window has no sample.
func (g *gauge) result(v *view, quantiles []float64) (*Gauge, track) {
	t := g.track
	t.settle(v.polls.to, v.polls)
	if t.samples == 0 {
		return nil, t
	}
	runs := append(v.runs[:0], g.runs...)
	v.runs = runs
	runs[len(runs)-1].to = min(runs[len(runs)-1].to, v.polls.to)
	s := moments{}
	for pass := range passes {
		s.begin(pass)
		for i := range runs {
			s.add(runs[i].value, float64(runs[i].to-runs[i].from))
		}
	}
	out := &Gauge{Spread: s.spread(), N: int(t.samples), NonFinite: int(t.drops),
		First: runs[0].value, Last: runs[len(runs)-1].value}
	out.TimeAvg, out.StoodNS = g.timeAverage(runs, v, g.ref, out.Spread)
	out.Watched = v.watched
	if out.Ref = out.First; t.ref >= 0 {
		out.Ref = g.ref
	}
	if v.sliced && t.samples > 1 {
		out.Slices = gaugeSlices(runs, v)
	}
	if v.clip {
		out.Clipped = g.clipped(runs, v, quantiles)
	}
	out.Quantiles = weightedQuantiles(v.sorted(runs), int(t.samples), quantiles)
	return out, t
}

// above returns the share of the time above each level, as timeAverage weights the samples.
func (g *gauge) above(v *view, levels []float64) []float64 {
	var out []float64
	for _, level := range levels {
		runs := append(v.runs[:0], g.runs...)
		v.runs = runs
		runs[len(runs)-1].to = min(runs[len(runs)-1].to, v.polls.to)
		plain, n, ref := Spread{}, 0.0, 0.0
		if g.ref > level {
			plain.Max, ref = 1, 1
		}
		for i, r := range runs {
			w := float64(r.to - r.from)
			runs[i].value, n = 0, n+w
			if r.value > level {
				runs[i].value, plain.Max = 1, 1
				plain.Avg += w
			}
		}
		plain.Avg /= n
		share, _ := g.timeAverage(runs, v, ref, plain)
		out = append(out, share)
	}
	return out
}

// timeAverage weights each sample with the time until the next one, within the window: it begins with ref, the value
// that stood at its start, if there is one. The last sample stands until the window ends, the last before a gap for no
// time; without any time the plain mean is all there is. ns is how long they stood altogether.
func (g *gauge) timeAverage(runs []run, v *view, ref float64, plain Spread) (avg float64, ns int64) {
	scaled := 1.0
	if max(math.Abs(plain.Min), math.Abs(plain.Max)) > huge {
		scaled = scale
	}
	var sum, total float64
	shift, low, high := plain.Min*scaled, plain.Min, plain.Max
	g.stretches(runs, v, ref, func(value float64, stoodNS int64) {
		stood := seconds(stoodNS)
		ns += stoodNS
		sum += (value*scaled - shift) * stood
		total += stood
		low, high = min(low, value), max(high, value)
	})
	if total == 0 {
		return plain.Avg, 0
	}
	return min(max(finite((shift+sum/total)/scaled), low), high), ns
}

// stretches tells the values that stood in the window, and for how many nanoseconds, as timeAverage has them.
func (g *gauge) stretches(runs []run, v *view, ref float64, add func(value float64, stoodNS int64)) {
	stand := func(value float64, from, to int64) {
		if ns := v.stood(from, to); ns > 0 {
			add(value, ns)
		}
	}
	if first := runs[0].from; g.track.ref >= 0 && first == v.polls.from && g.track.ref == first-1 {
		stand(ref, v.times[g.track.ref], v.times[first])
	}
	for i, r := range runs {
		until := v.times[r.to-1]
		switch {
		case i+1 < len(runs) && runs[i+1].from == r.to:
			until = v.times[r.to]
		case r.to == v.polls.to:
			until = max(until, v.until)
		}
		stand(r.value, v.times[r.from], until)
	}
}

// clipped weights the values with the time for which they stood; nil where there is none.
func (g *gauge) clipped(runs []run, v *view, quantiles []float64) *Clipped {
	type stretch struct {
		value float64
		ns    int64
	}
	var all []stretch
	g.stretches(runs, v, g.ref, func(value float64, ns int64) { all = append(all, stretch{value, ns}) })
	if all == nil {
		return nil
	}
	slices.SortFunc(all, func(a, b stretch) int { return cmp.Compare(a.value, b.value) })
	s, total := moments{}, int64(0)
	for pass := range passes {
		s.begin(pass)
		for i := range all {
			s.add(all[i].value, seconds(all[i].ns))
		}
	}
	out := &Clipped{Spread: Spread{Avg: s.mean(), Min: s.min, Max: s.max}}
	if s.min < s.max {
		out.Std = finite(math.Sqrt(max(0, s.squar/s.n)) / s.scale)
	}
	for i := range all {
		total += all[i].ns
	}
	for _, q := range quantiles {
		i, below := 0, all[0].ns
		for i+1 < len(all) && float64(below) < q*float64(total) {
			i++
			below += all[i].ns
		}
		out.Quantiles = append(out.Quantiles, all[i].value)
	}
	return out
}

// watch finds out for how long the target was watched.
func (v *view) watch() {
	v.watched = &Watched{Polls: int(v.polls.to - v.polls.from)}
	if v.watched.Polls > 0 {
		v.watched.FromNS = max(v.times[max(0, v.polls.from-1)], v.from)
		if v.watched.ToNS = v.times[v.polls.to-1]; v.until > 0 {
			v.watched.ToNS = v.until
		}
		v.watched.NS = v.stood(v.watched.FromNS, v.watched.ToNS)
	}
}

// stood returns how many nanoseconds of a stretch of time lie within the window.
func (v *view) stood(from, to int64) int64 {
	if from = max(from, v.from); v.until > 0 {
		to = min(to, v.until)
	}
	if v.parts == nil {
		return max(0, to-from)
	}
	sum := int64(0)
	for _, p := range v.parts {
		sum += max(0, min(to, p[1])-max(from, p[0]))
	}
	return sum
}

// gaugeSlices summarises the samples of each slice [start, end). The last slice of the grid includes its end,
// where only the last sample can be. Slices without samples are left out.
func gaugeSlices(runs []run, v *view) []GaugeSlice {
	out := make([]GaugeSlice, 0, len(v.grid))
	next := 0
	for k, sl := range v.grid {
		from, to := v.first[k], v.first[k+1]
		for next < len(runs) && runs[next].to <= from {
			next++
		}
		if s, ok := gaugeSlice(runs[next:], from, to); ok {
			s.Slice = sl
			out = append(out, s)
		}
	}
	return out
}

// gaugeSlice summarises the polls from <= n < to; ok is false without a sample.
func gaugeSlice(runs []run, from, to int32) (s GaugeSlice, ok bool) {
	if len(runs) == 0 || max(runs[0].from, from) >= min(runs[0].to, to) {
		return s, false
	}
	first := runs[0].value // a shift, so that equal values have their own mean
	s.Min, s.Max = first, first
	sum, scaled := 0.0, 0.0
	for _, r := range runs {
		n := min(r.to, to) - max(r.from, from)
		if n <= 0 {
			break
		}
		s.N += int(n)
		s.Min, s.Max = min(s.Min, r.value), max(s.Max, r.value)
		sum += (r.value - first) * float64(n)
		scaled += (r.value*scale - first*scale) * float64(n)
	}
	if s.Avg = first + sum/float64(s.N); s.Max-s.Min > huge {
		s.Avg = finite((first*scale + scaled/float64(s.N)) / scale)
	}
	s.Avg = min(max(s.Avg, s.Min), s.Max)
	return s, true
}
