package normalize

import (
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
)

// result returns nil when there is nothing to tell: without a sample inside the window, except under
// ResetClamp, where AIPerf shows a count of 0 for a series that only has earlier samples. It changes nothing
// but the estimator, so histograms may be asked at once.
func (h *histogram) result(f *Accumulator, v *view) (*Histogram, []metric.Warning, track) {
	t := h.track
	t.settle(v.polls.to, v.polls)
	clamp := v.resets == ResetClamp
	if !h.seen || t.samples == 0 && !clamp || clamp && f.window.to != never && h.end == nil {
		return nil, nil, t
	}
	if h.ref == nil { // the window has not begun
		h = h.idle()
		t.open(int32(len(v.times)))
	}
	last := h.last()
	gained := make([]float64, len(last))
	for p := range last {
		gained[p] = finite(last[p] - h.ref[p])
		if h.mode == modeGauge {
			gained[p] = finite(last[p])
		}
	}
	out := &Histogram{Bounds: h.layoutOf(f), Segments: int(h.segments)}
	warnings := h.doubts(gained, v.resets)
	inexact := v.resets == ResetAdjust && h.inexact(last)
	if inexact {
		warnings = append(warnings, metric.Warning{Code: "counts_inexact",
			Text: "counts beyond 2^53: what was gained is known to the nearest number a float64 holds, so there are no " +
				"quantiles"})
	}
	if h.usesCount() {
		out.Count = truncate(gained[h.counter()])
	}
	out.Buckets = h.bucketsOf(out.Bounds, gained)
	out.NoSum = !h.common[h.sumAt()]
	if out.Count == 0 && h.mode == modeCumulative {
		return out, warnings, t
	}
	if !out.NoSum && out.Count != 0 {
		out.Sum = gained[h.sumAt()]
		out.Avg = finite(out.Sum / float64(out.Count))
	}
	if h.mode != modeGauge && t.final >= 0 { // there may be no sample inside the window under ResetClamp
		if ns := v.times[t.final] - v.times[t.reference()]; ns > 0 {
			out.HasRates = true
			out.CountRate = finite(float64(out.Count) / seconds(ns))
			out.SumRate = finite(out.Sum / seconds(ns))
		}
	}
	if out.Buckets != nil && h.est != nil && !out.NoSum && !inexact {
		h.estimate(f, out, h.total(gained, out.Count, v.resets))
	}
	if v.sliced && (t.samples > 1 || t.ref >= 0) {
		out.Slices = h.slices(f, v, out, v.times[t.reference()])
	}
	return out, warnings, t
}

// estimate sets the quantiles of what was gained.
func (h *histogram) estimate(f *Accumulator, out *Histogram, d *histest.Delta) {
	out.Late = min(f.doubtful[h.series], out.Count)
	d.Late = out.Late
	mergeable := f.o.Mergeable || f.o.MergeableFamily != nil && f.o.MergeableFamily(f.dict.FamilyOf(int(h.series)).Name)
	out.Quantiles, out.Gain = estimate(h.est, d, f.o.Quantiles, mergeable)
	if h.fileEst != nil {
		out.FileQuantiles, out.FileGain = estimate(h.fileEst, d, f.o.Quantiles, mergeable)
	}
}

// estimate returns what an estimator makes of a gain, nil for nothing, and what merging it takes if that is wanted.
func estimate(est histest.Estimator, d *histest.Delta, quantiles []float64, mergeable bool) (out []histest.Estimate,
	gain *histest.Gain) {
	if q, ok := est.Quantiles(make([]histest.Estimate, 0, len(quantiles)), d, quantiles); ok {
		out = q
	}
	if mergeable {
		gain = histest.NewGain(est, d)
	}
	return out, gain
}

// inexact reports whether counts are so large that their differences are not those of
// the server: up to 2^53 a float64 holds every whole number.
func (h *histogram) inexact(last []float64) bool {
	for p, v := range last {
		if p != h.sumAt() && h.common[p] && math.Abs(v) > 1<<53 {
			return true
		}
	}
	return false
}

// idle returns the histogram as it would be with an empty window beginning now.
func (h *histogram) idle() *histogram {
	c := *h
	c.ref, c.segments = c.prev, 1
	c.common = make([]bool, len(c.prev))
	for p := range c.common {
		c.common[p] = !math.IsNaN(c.prev[p])
	}
	return &c
}

// last returns the values at the end of the window.
func (h *histogram) last() []float64 {
	last := h.prev
	if h.end != nil {
		last = h.end
	}
	if h.late != nil {
		last = slices.Clone(last)
		for p, v := range h.late {
			last[p] += v
		}
	}
	return last
}

// usesCount reports whether the number of observations is known.
func (h *histogram) usesCount() bool { return h.common[h.counter()] }

// layoutOf returns the common bounds.
func (h *histogram) layoutOf(f *Accumulator) []Bucket {
	out := make([]Bucket, 0, h.buckets())
	for p, b := range h.bounds {
		if h.common[p] {
			out = append(out, Bucket{Text: f.dict.Slots[h.ids[p]].Text, Upper: b})
		}
	}
	return out
}

// bucketsOf returns the gains of the common bounds; nil if one of them is negative.
func (h *histogram) bucketsOf(bounds []Bucket, gained []float64) []Bucket {
	out := make([]Bucket, len(bounds))
	copy(out, bounds)
	i := 0
	for p := range h.bounds {
		if !h.common[p] {
			continue
		}
		if gained[p] < 0 {
			return nil
		}
		out[i].Count = truncate(gained[p])
		i++
	}
	return out
}

// total makes the input of the estimator for whole numbers of observations. Gains that are not monotone, as
// only a torn poll or a faulty server shows them, are raised to the bucket before under ResetAdjust.
func (h *histogram) total(gained []float64, count int64, resets ResetMode) *histest.Delta {
	whole := make([]float64, len(gained))
	floor := math.Inf(-1)
	for p := range gained {
		whole[p] = math.Trunc(gained[p])
		if resets == ResetAdjust && p < h.buckets() && h.common[p] {
			floor = max(floor, whole[p])
			whole[p] = floor
		}
	}
	d := &histest.Delta{}
	h.fill(d, make([]float64, len(h.estAt)), whole)
	d.Count = float64(count)
	d.Sum = gained[h.sumAt()]
	return d
}

// slices returns what was gained within each slice, as those of counters do. Slices that end before the first sample
// are left out, as are, under ResetClamp, those whose count or sum falls.
func (h *histogram) slices(f *Accumulator, v *view, all *Histogram, first int64) []HistogramSlice {
	r := h.line.readFloats(len(h.prev))
	last := h.last()
	at := func(boundary int) []float64 {
		switch {
		case h.first != nil && int32(boundary) < h.bornBound:
			return h.ref
		case r.at(int32(boundary)):
			return r.floats
		}
		return last
	}
	blank := h.blank(f, all, v.resets == ResetAdjust && h.inexact(last))
	lower := slices.Clone(h.ref)
	if v.resets == ResetClamp {
		copy(lower, at(0))
	}
	gained := make([]float64, len(last))
	counts := make([]int64, 0, len(v.grid)*len(all.Bounds))
	out := make([]HistogramSlice, 0, len(v.grid))
	for k, sl := range v.grid {
		upper := last
		if k+1 < len(v.grid) {
			upper = at(k + 1)
		}
		for p, u := range upper {
			gained[p] = finite(u - lower[p])
			if h.mode == modeGauge {
				gained[p] = finite(u)
			}
		}
		copy(lower, upper)
		if sl.EndNS <= first {
			continue
		}
		s, ok := h.slice(gained, &counts, v.resets)
		if !ok {
			continue
		}
		s.Slice = sl
		if blank != nil && s.Counts != nil {
			d := h.total(gained, s.Count, v.resets)
			s.Quantiles, _ = estimate(blank, d, f.o.Quantiles, false)
		}
		out = append(out, s)
	}
	return out
}

// blank returns an estimator that has learnt nothing, for slices; nil when their
// quantiles are not asked for or not possible.
func (h *histogram) blank(f *Accumulator, all *Histogram, inexact bool) histest.Estimator {
	if !f.o.SliceQuantiles || h.est == nil || all.NoSum || inexact {
		return nil
	}
	return newEstimator(f.o.inFiles(), h.estBounds) // only files have them
}

// slice makes a slice of its gains; counts is where the bucket counts go.
func (h *histogram) slice(gained []float64, counts *[]int64, resets ResetMode) (s HistogramSlice, ok bool) {
	count := 0.0
	if h.usesCount() {
		count = gained[h.counter()]
		if count < 0 {
			return s, false
		}
		s.Count = truncate(count)
	}
	if h.common[h.sumAt()] {
		s.Sum = gained[h.sumAt()]
		if s.Sum < 0 && resets == ResetClamp {
			return s, false
		}
	}
	if count > 0 {
		s.Avg = finite(s.Sum / count)
	}
	begin := len(*counts)
	for p := range h.bounds {
		if !h.common[p] {
			continue
		}
		if gained[p] < 0 {
			*counts = (*counts)[:begin]
			return s, true
		}
		*counts = append(*counts, truncate(gained[p]))
	}
	s.Counts = (*counts)[begin:len(*counts):len(*counts)]
	return s, true
}

// truncate makes a whole number of a gain, towards 0.
func truncate(v float64) int64 {
	switch {
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v <= math.MinInt64:
		return math.MinInt64
	}
	return int64(v)
}

// doubts returns warnings about gains that contradict each other.
func (h *histogram) doubts(gained []float64, resets ResetMode) []metric.Warning {
	var out []metric.Warning
	warn := func(code, format string, args ...any) {
		out = append(out, metric.Warnf(code, format, args...))
	}
	if h.segments > 1 {
		text := "counts are those of the common bounds"
		if resets == ResetClamp {
			text = "as in AIPerf those of the first sample count, missing ones as 0"
		}
		warn("buckets_changed", "the buckets changed inside the window (%d layouts): %s", h.segments, text)
	}
	before := math.Inf(-1)
	for p := range h.bounds {
		if !h.common[p] {
			continue
		}
		if gained[p] < before {
			warn("buckets_not_monotone", "bucket %v gained %v, fewer than the one below it with %v", h.bounds[p], gained[p],
				before)
			break
		}
		before = gained[p]
	}
	count, inf := h.countAt(), h.infAt()
	switch {
	case !h.common[count] && inf >= 0 && h.common[inf]:
		warn("count_missing", "no _count in every sample: the +Inf bucket stands in")
	case !h.common[count] && h.mode == modeSummary:
		warn("count_missing", "no _count in every sample: the number of observations is unknown")
	case !h.common[count]:
		warn("count_missing", "no _count and no +Inf bucket in every sample: the number of observations is unknown")
	case h.mode == modeSummary:
	case inf < 0 || !h.common[inf]:
		warn("inf_missing", "no +Inf bucket in every sample: _count stands in")
	case gained[inf] != gained[count]:
		warn("count_mismatch", "_count gained %v, the +Inf bucket %v", gained[count], gained[inf])
	}
	if !h.common[h.sumAt()] && h.mode == modeSummary {
		warn("sum_missing", "no _sum in every sample: no average")
	} else if !h.common[h.sumAt()] {
		warn("sum_missing", "no _sum in every sample: no average and no quantiles")
	}
	return out
}
