package normalize

import (
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// native is the state of a native histogram. Its buckets come and go, so what it
// gained is kept as intervals and not by position.
type native struct {
	track      track
	series     int32
	gauge      bool
	count, sum int32   // slots; -1 for none
	ids        []int32 // slots of buckets
	present    int32   // slots that are there
	bad        int32   // of them those not finite
	buckets    int32   // of them buckets

	// counted is the adjusted count, before that of the last sample: what they differ by tells what the sample is. The
	// buckets themselves are raw, as they come, go and merge.
	counted, before float64
	gain            NativeGain
	last            NativeSample // of a gauge
	slices          []nativeSlice
	seen            bool
	queued          bool
	created         metric.Created
}

// NativeSample is a native histogram as one poll shows it, or what it gained.
type NativeSample struct {
	Spans      Intervals // the populated buckets
	Count, Sum float64
	Threshold  float64 // of the bucket of zero
}

// NativeGain sums up what a native histogram gains from sample to sample. The zero value has seen none.
type NativeGain struct {
	Gain   NativeSample
	Resets int // times it began anew

	prev NativeSample
	seen bool
}

// Take takes the next sample, whose Spans it keeps and does not change, and returns what was gained since the
// one before: nothing with the first. A histogram that was restarted, or whose count or any bucket fell, counts
// from zero. What is gained is added to Gain if counts is set.
func (g *NativeGain) Take(cur NativeSample, restarted, counts bool) NativeSample {
	prev, seen := g.prev, g.seen
	g.prev, g.seen = cur, true
	if !seen || !counts {
		return NativeSample{}
	}
	gained := NativeSample{Count: cur.Count - prev.Count, Sum: cur.Sum - prev.Sum, Threshold: cur.Threshold}
	var ok bool
	gained.Spans, ok = cur.Spans.Since(nil, prev.Spans)
	if restarted || !ok || gained.Count < 0 {
		g.Resets++
		gained = cur // all of it is new
		gained.Spans = slices.Clone(cur.Spans)
	}
	gained.Spans = gained.Spans.outside(cur.Threshold)
	g.Gain.add(gained)
	return gained
}

// nativeSlice is what was gained in a slice, or shown at its end by a gauge.
type nativeSlice struct {
	index int32 // of the slice; of a gauge -1 for what was there before
	NativeSample
}

func (a *NativeSample) add(b NativeSample) {
	a.Spans = a.Spans.Add(b.Spans)
	a.Count += b.Count
	a.Sum += b.Sum
}

// assignNative gives a slot to its native histogram.
func (f *Accumulator) assignNative(id int32, s *metric.SampleID) {
	h, sl := &f.holders[s.Series], &f.slots[id]
	if h.kind == kindNone {
		*h = holder{kindNative, int32(len(f.natives))}
		f.natives = append(f.natives, native{track: newTrack(), series: int32(s.Series), count: -1, sum: -1,
			gauge: f.dict.FamilyOf(s.Series).Type == metric.GaugeHistogram})
	}
	n := &f.natives[h.index]
	sl.owner = h.index
	switch s.Role {
	case metric.RoleCount:
		n.count, sl.kind = id, kindNative
	case metric.RoleSum:
		n.sum, sl.kind = id, kindNative
	case metric.RoleCreated:
		sl.kind = kindNativeCreated
	case metric.RoleNative:
		if s.Lower <= s.Bound { // false for NaN
			n.ids, sl.kind = append(n.ids, id), kindNative
		}
	}
}

// setPart takes over the bits of a slot that is looked at when its poll is
// complete: one of a native histogram, or the quantile of a summary.
func (f *Accumulator) setPart(id uint32, bits uint64, n int32) {
	s, old := &f.slots[id], f.bits[id]
	was := s.present
	if was && old == bits {
		return
	}
	f.changed, f.bits[id], s.present = n, bits, true
	if s.kind == kindQuantile {
		h := &f.histograms[s.owner]
		if !was {
			h.present++
		}
		f.queue(h, s.owner)
		return
	}
	h := &f.natives[s.owner]
	if !was {
		h.tally(1, f.dict.Slots[id].Role)
	} else if !s.finite(old) {
		h.bad--
	}
	if !s.finite(bits) {
		h.bad++
	}
	f.queueNative(s.owner)
}

// setRaw takes over the native histograms of poll n as they were sent, where the delta that was applied is adjusted.
func (f *Accumulator) setRaw(raw *metric.Delta, n int32) {
	for id := range raw.Absent(len(f.slots)) {
		if s := &f.slots[id]; s.present && s.kind == kindNative {
			f.vanishPart(id)
			s.present = false
		}
	}
	for i, id := range raw.Slots {
		if f.slots[id].kind == kindNative {
			f.setPart(id, raw.Bits[i], n)
		}
	}
}

// vanishPart is the other side of setPart.
func (f *Accumulator) vanishPart(id int) {
	s := &f.slots[id]
	if s.kind == kindQuantile {
		h := &f.histograms[s.owner]
		h.present--
		f.queue(h, s.owner)
		return
	}
	h := &f.natives[s.owner]
	h.tally(-1, f.dict.Slots[id].Role)
	if !s.finite(f.bits[id]) {
		h.bad--
	}
	f.queueNative(s.owner)
}

// tally counts the slots that are there, and the buckets among them.
func (h *native) tally(by int32, r metric.Role) {
	h.present += by
	if r == metric.RoleNative {
		h.buckets += by
	}
}

func (f *Accumulator) queueNative(index int32) {
	if h := &f.natives[index]; !h.queued {
		h.queued = true
		f.touchedNatives = append(f.touchedNatives, index)
	}
}

func (f *Accumulator) setNativeCreated(s *slot, bits uint64) {
	f.natives[s.owner].created.Set(s.value(bits))
}

// step takes over the changed slots of poll n as a sample. A poll without count or without any bucket is none.
func (h *native) step(f *Accumulator, n int32) {
	h.queued = false
	state := absent
	if h.count >= 0 && f.slots[h.count].present && h.buckets > 0 {
		state = good
		if h.bad > 0 {
			state = bad
		}
	}
	if state != h.track.state {
		h.track.set(state, n, f.window)
	}
	if state != good {
		return
	}
	cur := h.current(f)
	if h.gauge {
		cur.Spans = cur.Spans.outside(cur.Threshold)
		h.shown(f.bound-1, cur)
		h.last = cur
	} else {
		h.advance(f, cur, n >= f.window.from)
	}
	h.seen = true
}

// current reads the present values.
func (h *native) current(f *Accumulator) NativeSample {
	v := NativeSample{Spans: make(Intervals, 0, h.buckets), Count: f.slots[h.count].value(f.bits[h.count])}
	if h.sum >= 0 && f.slots[h.sum].present {
		v.Sum = f.slots[h.sum].value(f.bits[h.sum])
	}
	for _, id := range h.ids {
		if s := &f.slots[id]; s.present {
			if b := f.dict.Slots[id].Bound; f.dict.Slots[id].Lower == -b {
				v.Threshold = max(v.Threshold, b)
			}
			if c := s.value(f.bits[id]); c > 0 {
				v.Spans = append(v.Spans, Interval{f.dict.Slots[id].Lower, f.dict.Slots[id].Bound, c})
			}
		}
	}
	v.Spans.Sort()
	return v
}

// advance takes a sample; counts is set inside the window.
func (h *native) advance(f *Accumulator, cur NativeSample, counts bool) {
	seen, grown := h.seen, h.counted-h.before
	switch {
	case !seen, grown == cur.Count-h.gain.prev.Count:
	case grown == 0:
		return // it is held: a dip, or a restart that is not sure yet
	case grown != cur.Count:
		h.gain.prev, h.before = cur, h.counted // of another process
		return
	}
	h.before = h.counted
	gained := h.gain.Take(cur, seen && grown == cur.Count && cur.Count != 0, counts)
	if !seen || !counts {
		return
	}
	if f.width == 0 {
		return
	}
	index := max(f.bound-1, 0) // a sample exactly at the start is of the first slice
	if k := len(h.slices) - 1; k < 0 || h.slices[k].index != index {
		h.slices = append(h.slices, nativeSlice{index: index})
	}
	h.slices[len(h.slices)-1].add(gained)
}

// shown notes what a gauge shows in a slice; the last one stays.
func (h *native) shown(index int32, v NativeSample) {
	if k := len(h.slices) - 1; k >= 0 && h.slices[k].index == index {
		h.slices[k].NativeSample = v
		return
	}
	h.slices = append(h.slices, nativeSlice{index, v})
}

// birth makes the first sample, that of poll n, count from zero.
func (h *native) birth(f *Accumulator, n int32) {
	if !h.seen || h.gauge {
		return
	}
	h.track.ref = n - 1
	h.gain.seen, h.gain.prev, h.before = true, NativeSample{}, 0
	h.advance(f, h.current(f), true)
}

// open begins the window at poll n.
func (h *native) open(n int32) {
	h.track.open(n)
}

// result returns nil when the window has no sample. It changes nothing.
func (h *native) result(f *Accumulator, v *view) (*Histogram, []metric.Warning, track) {
	t := h.track
	t.settle(v.polls.to, v.polls)
	if !h.seen || t.samples == 0 {
		return nil, nil, t
	}
	value := h.gain.Gain
	if h.gauge {
		value = h.last
	}
	o := &f.o
	out := nativeHistogram(value.Spans, value.Count, value.Sum, o)
	out.NoSum = h.sum < 0
	if out.NoSum {
		out.Sum, out.Avg, out.Quantiles, out.FileQuantiles = 0, 0, nil, nil
	}
	if ns := v.times[t.final] - v.times[t.reference()]; ns > 0 && out.Count != 0 && !h.gauge {
		out.HasRates = true
		out.CountRate = finite(value.Count / seconds(ns))
		out.SumRate = finite(out.Sum / seconds(ns))
	}
	if v.sliced && (h.gauge || out.Count != 0 && (t.samples > 1 || t.ref >= 0)) {
		out.Slices = h.cut(v, out, v.times[t.reference()], o)
	}
	var warnings []metric.Warning
	if total := value.Spans.total(); total != value.Count {
		warnings = append(warnings, metric.Warnf("count_mismatch",
			"count gained %v, the buckets %v: NaN is in no bucket, or the server does not count at once",
			value.Count, total))
	}
	return out, warnings, t
}

// cut returns what each slice gained, of a gauge what its last sample in or before the slice showed.
func (h *native) cut(v *view, all *Histogram, first int64, o *Options) []HistogramSlice {
	var empty NativeSample
	out := make([]HistogramSlice, 0, len(v.grid))
	next, known := 0, false
	var shown NativeSample
	for k, sl := range v.grid {
		value := empty
		for next < len(h.slices) && (h.slices[next].index <= int32(k) || !h.gauge && k+1 == len(v.grid)) {
			shown, known = h.slices[next].NativeSample, true
			value.add(shown)
			next++
		}
		if h.gauge {
			value = shown
		}
		if sl.EndNS <= first || h.gauge && !known {
			continue
		}
		out = append(out, nativePart(sl, value, all, o))
	}
	return out
}

// nativePart makes a slice of its value, with the bounds of the whole.
func nativePart(sl Slice, value NativeSample, all *Histogram, o *Options) HistogramSlice {
	s := HistogramSlice{Slice: sl, Count: truncate(value.Count)}
	if !all.NoSum {
		s.Sum = finite(value.Sum)
	}
	if value.Count > 0 {
		s.Avg = finite(s.Sum / value.Count)
	}
	edges := make([]float64, 0, len(all.Bounds))
	for _, b := range all.Bounds[:len(all.Bounds)-1] {
		edges = append(edges, b.Upper)
	}
	// All of the slice is within the buckets of the whole.
	cum := value.Spans.Below(edges)
	for i := range cum {
		s.Counts = append(s.Counts, truncate(cum[i]))
	}
	s.Counts = append(s.Counts, truncate(value.Spans.total()))
	if o.SliceQuantiles && s.Count > 0 && !all.NoSum {
		own := value.Spans.Edges()
		s.Quantiles = nativeQuantiles(own, value.Spans.Below(own), value.Spans.total(), s.Sum, o.inFiles(), o.Quantiles)
	}
	return s
}

// mergeNative pools native histograms, whatever buckets each of them has.
func mergeNative(hs []*Histogram, quantiles []float64) *Histogram {
	o := Options{Estimator: hs[0].Native.Estimator, FileEstimator: hs[0].Native.FileEstimator, Quantiles: quantiles}
	var spans Intervals
	sum := 0.0
	count := int64(0)
	out := Histogram{}
	for _, h := range hs {
		spans = spans.Add(h.Native.Spans)
		sum += h.Sum
		count = addCounts(count, h.Count)
		out.CountRate, out.SumRate = finite(out.CountRate+h.CountRate), finite(out.SumRate+h.SumRate)
		out.HasRates, out.NoSum = out.HasRates || h.HasRates, out.NoSum || h.NoSum
	}
	all := nativeHistogram(slices.Clone(spans), float64(count), sum, &o)
	all.Count, all.CountRate, all.SumRate, all.HasRates, all.NoSum = count, out.CountRate, out.SumRate, out.HasRates,
		out.NoSum
	if all.NoSum {
		all.Sum, all.Avg, all.SumRate, all.Quantiles, all.FileQuantiles = 0, 0, 0, nil, nil
	}
	return all
}
