package compare

import (
	"maps"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/compare/judge"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/normalize"
)

// histogram is mean, percentiles and rate of observations of histograms, whose observations are pooled.
func (g *group) histogram() []named {
	var count int64
	sum, rate, hasRate, noSum := 0.0, 0.0, false, false
	means, rates := newGrid(), newGrid()
	for _, s := range g.series {
		h := s.Histogram
		if h == nil {
			continue
		}
		count += h.Count
		sum += h.Sum
		rate += h.CountRate
		hasRate = hasRate || h.HasRates
		noSum = noSum || h.NoSum
		for i := range h.Slices {
			if sl := &h.Slices[i]; !sl.Partial {
				means.add(sl.StartNS, sl.Sum, float64(sl.Count))
				rates.add(sl.StartNS, float64(sl.Count), 0)
				rates.den[sl.StartNS] = seconds(&sl.Slice)
			}
		}
	}
	var mean *measure
	switch {
	case count <= 0:
		mean = absent("no observations in the window")
	case noSum:
		mean = absent("the server sends no sum")
	default:
		mean = present(sum/float64(count)*g.factor, means.noise(g.factor))
	}
	g.noteResets(mean)
	pool := g.pool()
	mean.counts = pool.counts
	out := []named{{"mean", mean}}
	for _, q := range g.quantiles {
		out = append(out, named{histest.PercentileName(q), g.percentile(pool, q, count)})
	}
	if hasRate {
		return append(out, named{"rate", present(rate, rates.noise(1))})
	}
	return append(out, named{"rate", absent("no rate: no time passed, or nothing was observed")})
}

// pool is the bucket counts of the series of a group added up.
type pool struct {
	*counts        // nil when there is none
	missing string // why
	slices  [][]float64
}

func (g *group) pool() pool {
	var out pool
	at := map[int64][]float64{}
	for _, s := range g.series {
		h := s.Histogram
		switch {
		case h == nil || h.Count <= 0:
			continue
		case len(h.Buckets) < 2:
			return pool{missing: "no usable buckets"}
		case out.counts == nil:
			out.counts = &counts{cum: make([]float64, len(h.Buckets))}
			for _, b := range h.Buckets[:len(h.Buckets)-1] {
				out.bounds = append(out.bounds, scaled(b.Upper, g.factor))
			}
		case !sameBounds(out.bounds, h.Buckets, g.factor):
			return pool{missing: "bucket bounds differ between the series that are taken together"}
		}
		for i := range h.Buckets {
			out.cum[i] += float64(h.Buckets[i].Count)
		}
		for i := range h.Slices {
			if sl := &h.Slices[i]; !sl.Partial && len(sl.Counts) == len(out.cum) {
				addCounts(at, sl.StartNS, sl.Counts)
			}
		}
	}
	if out.counts == nil {
		out.missing = "no observations in the window"
		return out
	}
	for _, start := range slices.Sorted(maps.Keys(at)) {
		out.slices = append(out.slices, at[start])
	}
	return out
}

func addCounts(at map[int64][]float64, start int64, counts []int64) {
	row := at[start]
	if row == nil {
		row = make([]float64, len(counts))
		at[start] = row
	}
	for i, n := range counts {
		row[i] += float64(n)
	}
}

// scaled is a bound in another unit: divided where that is exact, so that 35 ms is the same number as 0.035 s.
func scaled(v, factor float64) float64 {
	if inverse := math.Round(1 / factor); factor < 1 && math.Abs(inverse*factor-1) < 1e-12 {
		return v / inverse
	}
	return v * factor
}

func sameBounds(bounds []float64, buckets []normalize.Bucket, factor float64) bool {
	if len(buckets) != len(bounds)+1 {
		return false
	}
	for i, b := range bounds {
		if scaled(buckets[i].Upper, factor) != b {
			return false
		}
	}
	return true
}

// percentile is the estimate of one series, or that of all pooled.
func (g *group) percentile(p pool, q float64, count int64) *measure {
	if count <= 0 {
		return absent("no observations in the window")
	}
	e, estimator, ok := g.estimate(q)
	ok = ok && !math.IsNaN(e.Value)
	m := present(e.Value*g.factor, judge.Estimate{})
	switch {
	case ok:
		m.low, m.high, m.estimator = e.Low*g.factor, e.High*g.factor, estimator
	case len(g.series) == 1 && slices.Index(g.run.Options.Quantiles, q) < 0:
		return absent("the file has no " + histest.PercentileName(q))
	case p.counts == nil:
		return absent(p.missing)
	case len(g.series) == 1:
		return absent("no estimate of " + histest.PercentileName(q))
	default:
		h := p.histogram(p.cum)
		m = present(h.At(q), judge.Estimate{})
		m.estimator = histest.Linear + ", pooled"
	}
	if p.counts == nil {
		return m
	}
	if math.IsNaN(m.low) {
		i, _ := slices.BinarySearch(p.cum, q*p.cum[len(p.bounds)])
		m.low, m.high = math.NaN(), math.NaN() // certain without more knowledge
		if i > 0 {
			m.low = p.bounds[i-1]
		} else if p.bounds[0] >= 0 {
			m.low = 0
		}
		if i < len(p.bounds) {
			m.high = p.bounds[i]
		}
	}
	m.layout = p.bounds
	if q*p.cum[len(p.bounds)] > p.cum[len(p.bounds)-1] {
		m.notes = append(m.notes, "beyond the last bound: a guess")
	}
	hist := make([]judge.Histogram, len(p.slices))
	for i, cum := range p.slices {
		hist[i] = p.histogram(cum)
	}
	m.noise = judge.Quantile(m.value, q, hist)
	m.noise.Err *= m.value
	return m
}

// histogram is a distribution in the buckets of the pool.
func (c *counts) histogram(cum []float64) judge.Histogram {
	return judge.Histogram{Bounds: append(slices.Clip(c.bounds), math.Inf(1)), Cum: cum}
}

// estimate is the run's own estimate of a quantile of the group.
func (g *group) estimate(q float64) (e histest.Estimate, estimator string, ok bool) {
	estimator = g.run.Options.Estimator
	if len(g.series) == 1 && g.series[0].Histogram != nil {
		h := g.series[0].Histogram
		if h.Native != nil && h.Native.Estimator != "" {
			estimator = h.Native.Estimator
		}
		e, ok = estimateOf(g.run, h.Quantiles, q)
		return e, estimator, ok
	}
	if g.pooled != nil && g.pooled.Histogram != nil {
		e, ok = estimateOf(g.run, g.pooled.Histogram.Quantiles, q)
	}
	return e, estimator, ok
}

// distance compares two distributions at their common bounds; nil without one.
func distance(a, b *counts) *DistributionShift {
	if a == nil || b == nil {
		return nil
	}
	na, nb := a.cum[len(a.bounds)], b.cum[len(b.bounds)]
	if !(na > 0) || !(nb > 0) {
		return nil
	}
	d := &DistributionShift{}
	for i, bound := range a.bounds {
		j, ok := slices.BinarySearch(b.bounds, bound)
		if !ok {
			continue
		}
		s := Share{bound, a.cum[i] / na, b.cum[j] / nb}
		if gap := math.Abs(s.Base - s.Other); gap > d.Max {
			d.Max, d.At = gap, bound
		}
		if k := len(d.Shares); k > 0 {
			last := d.Shares[k-1]
			d.Moved += (bound - last.Bound) * math.Abs(s.Base-s.Other+last.Base-last.Other) / 2
		}
		d.Shares = append(d.Shares, s)
	}
	if len(d.Shares) == 0 {
		return nil
	}
	return d
}
