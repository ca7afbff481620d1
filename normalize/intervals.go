package normalize

import (
	"cmp"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/histest"
)

// Interval is a bucket of a native histogram: Count observations above Lower and not above Upper. The bucket of
// zero holds both its bounds; negative buckets hold their lower one and not the upper.
type Interval struct{ Lower, Upper, Count float64 }

// Intervals are disjoint buckets, ascending. Those that are absent are empty.
type Intervals []Interval

// Since returns what a histogram gained from prev to c, appended to dst[:0]. Where the server has merged buckets since,
// what prev had in their parts is summed up first: buckets of a coarser schema, and a wider bucket of zero, hold those
// of the finer one exactly. ok is false when a bucket lost observations: the histogram began anew.
func (c Intervals) Since(dst, prev Intervals) (gained Intervals, ok bool) {
	gained = append(dst[:0], c...)
	at := 0
	for _, p := range prev {
		if p.Count == 0 {
			continue
		}
		for at > 0 && gained[at-1].Upper >= p.Upper {
			at-- // the bucket of zero may reach into the one beside it
		}
		for at < len(gained) && !p.within(gained[at]) && (gained[at].Upper < p.Upper || gained[at].Lower < p.Upper) {
			at++
		}
		if at == len(gained) || !p.within(gained[at]) {
			return gained[:0], false
		}
		gained[at].Count -= p.Count
	}
	kept := gained[:0]
	for _, b := range gained {
		if b.Count < 0 {
			return gained[:0], false
		}
		if b.Count > 0 {
			kept = append(kept, b)
		}
	}
	return kept, true
}

// outside cuts the bucket of zero, [-threshold, threshold], out of those beside
// it: at a coarse schema they begin below it, but hold nothing there.
func (c Intervals) outside(threshold float64) Intervals {
	for i := range c {
		b := &c[i]
		if b.Lower >= 0 && b.Lower < threshold && b.Upper > threshold {
			b.Lower = threshold
		}
		if b.Upper <= 0 && b.Upper > -threshold && b.Lower < -threshold {
			b.Upper = -threshold
		}
	}
	c.Sort()
	return c
}

func (p Interval) within(b Interval) bool { return b.Lower <= p.Lower && p.Upper <= b.Upper }

// Add returns the union of both, observations added up. Buckets that overlap become one.
func (c Intervals) Add(more Intervals) Intervals {
	if len(more) == 0 {
		return c
	}
	all := append(slices.Clone(c), more...)
	all.Sort()
	out := all[:1]
	for _, b := range all[1:] {
		last := &out[len(out)-1]
		if b.Lower < last.Upper || b.Lower == last.Lower && b.Upper == last.Upper {
			last.Upper = max(last.Upper, b.Upper)
			last.Count += b.Count
			continue
		}
		out = append(out, b)
	}
	return out
}

// Sort puts buckets in their order.
func (c Intervals) Sort() {
	slices.SortFunc(c, func(a, b Interval) int {
		return cmp.Or(cmp.Compare(a.Lower, b.Lower), cmp.Compare(a.Upper, b.Upper))
	})
}

// In returns the observations in buckets that lie within b.
func (c Intervals) In(b Interval) float64 {
	sum := 0.0
	byLower := func(i Interval, lower float64) int { return cmp.Compare(i.Lower, lower) }
	at, _ := slices.BinarySearchFunc(c, b.Lower, byLower)
	for ; at < len(c) && c[at].Lower <= b.Upper; at++ {
		if c[at].within(b) {
			sum += c[at].Count
		}
	}
	return sum
}

// total is the number of observations.
func (c Intervals) total() float64 {
	sum := 0.0
	for i := range c {
		sum += c[i].Count
	}
	return sum
}

// Edges returns the finite bounds of c as the estimators want them, ascending: the upper bound of each bucket, and its
// lower bound where the bucket before it ends earlier or there is none, so that what is empty stays empty.
func (c Intervals) Edges() []float64 {
	out := make([]float64, 0, 2*len(c))
	last := 0.0 // where no bound is negative, observations are not either
	if len(c) > 0 && c[0].Lower < 0 {
		last = math.Inf(-1)
	}
	for _, b := range c {
		lower := b.Lower
		if b.Lower == b.Upper && len(out) > 0 {
			lower = math.Nextafter(b.Lower, math.Inf(-1)) // a bucket of one value has some width
		}
		if lower > last {
			out, last = append(out, lower), lower
		}
		if !math.IsInf(b.Upper, 1) && (b.Upper > last || len(out) == 0) {
			out, last = append(out, b.Upper), b.Upper
		}
	}
	return out
}

// Below returns how many observations of c are known to be at most bound; bound is one of its edges.
func (c Intervals) Below(edges []float64) []float64 {
	cum := make([]float64, len(edges))
	next, sum := 0, 0.0
	for i, e := range edges {
		for next < len(c) && c[next].Upper <= e {
			sum += c[next].Count
			next++
		}
		cum[i] = sum
	}
	return cum
}

// nativeHistogram makes a histogram of what was gained: count may be more than
// the buckets hold, as NaN is in no bucket.
func nativeHistogram(spans Intervals, count, sum float64, f *Options) *Histogram {
	edges := spans.Edges()
	cum := spans.Below(edges)
	h := &Histogram{Count: truncate(count), Sum: finite(sum), Segments: 1,
		Native: &Native{Spans: spans, Estimator: f.Estimator, FileEstimator: f.FileEstimator}}
	h.Bounds = make([]Bucket, 0, len(edges)+1)
	for _, e := range edges {
		h.Bounds = append(h.Bounds, Bucket{Upper: e})
	}
	h.Bounds = append(h.Bounds, Bucket{Text: "+Inf", Upper: math.Inf(1)})
	h.Buckets = slices.Clone(h.Bounds)
	for i := range cum {
		h.Buckets[i].Count = truncate(cum[i])
	}
	h.Buckets[len(cum)].Count = truncate(max(spans.total(), 0))
	if h.Count == 0 {
		h.Sum = 0
		return h
	}
	h.Avg = finite(h.Sum / float64(h.Count))
	h.Quantiles = nativeQuantiles(edges, cum, spans.total(), h.Sum, f.Estimator, f.Quantiles)
	if f.FileEstimator != "" {
		h.FileQuantiles = nativeQuantiles(edges, cum, spans.total(), h.Sum, f.FileEstimator, f.Quantiles)
	}
	return h
}

// nativeQuantiles estimates quantiles. The estimator learns from the total alone:
// what lies between two polls has other buckets in each poll.
func nativeQuantiles(edges, cum []float64, total, sum float64, estimator string,
	quantiles []float64) []histest.Estimate {
	if len(edges) == 0 {
		return nil
	}
	est := newEstimator(estimator, edges)
	whole := make([]float64, len(cum))
	for i := range cum {
		whole[i] = math.Trunc(cum[i])
	}
	d := &histest.Delta{Bounds: edges, Cum: whole, Inf: math.Trunc(total), HasInf: true, Sum: sum,
		Count: math.Trunc(total)}
	est.Interval(d)
	q, _ := estimate(est, d, quantiles, false)
	return q
}
