package summary

import (
	"slices"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/normalize"
)

// parts are the slices of a window, one after the other: their series are the same,
// and so is the memory for what those gained.
type parts struct {
	plan    *catalog.Plan
	series  []*normalize.Series
	empty   []catalog.Gain // of each series, without numbers
	gains   []catalog.Gain
	buckets []catalog.Bucket
}

func newParts(c *catalog.Catalog, sources []source) *parts {
	p := &parts{plan: c.Plan()}
	for i := range sources {
		for _, s := range sources[i].series {
			g := sources[i].emptyGain(s)
			g.Resets, g.Born = 0, false // slices do not tell where they were
			p.series, p.empty = append(p.series, s), append(p.empty, g)
		}
	}
	return p
}

// derive applies the rules to slice k.
func (p *parts) derive(k int, slice normalize.Slice, seconds float64) []catalog.Derived {
	p.gains, p.buckets = p.gains[:0], p.buckets[:0]
	for i, s := range p.series {
		p.gains = append(p.gains, p.empty[i])
		if !p.fill(&p.gains[len(p.gains)-1], s, k, slice.StartNS) {
			p.gains = p.gains[:len(p.gains)-1]
		}
	}
	return p.plan.Derive(catalog.Interval{Seconds: seconds, Gains: p.gains}, catalog.Slice)
}

// fill puts in what a series gained in slice k, which begins at start; false when
// that is not defined. The last value of a gauge is not known there; its mean stands for it.
func (p *parts) fill(g *catalog.Gain, s *normalize.Series, k int, start int64) bool {
	switch {
	case s.Counter != nil && k < len(s.Counter.Slices):
		g.Total = s.Counter.Slices[k].Total
		return true
	case s.Gauge != nil:
		i, ok := slices.BinarySearchFunc(s.Gauge.Slices, start,
			func(v normalize.GaugeSlice, at int64) int { return int(v.StartNS - at) })
		if ok {
			v := s.Gauge.Slices[i]
			g.TimeAvg, g.Min, g.Max, g.Last = v.Avg, v.Min, v.Max, v.Avg
		}
		return ok
	case s.Summary != nil && k < len(s.Summary.Slices):
		m := &s.Summary.Slices[k]
		g.Count, g.Sum, g.HasSum = float64(m.Count), m.Sum, !s.Summary.NoSum
		return !s.Summary.NoCount
	case s.Histogram != nil && k < len(s.Histogram.Slices):
		h := &s.Histogram.Slices[k]
		g.Count, g.Sum, g.HasSum = float64(h.Count), h.Sum, !s.Histogram.NoSum
		from := len(p.buckets)
		for i, n := range h.Counts {
			p.buckets = append(p.buckets, catalog.Bucket{Upper: s.Histogram.Bounds[i].Upper, Count: float64(n)})
		}
		if to := len(p.buckets); to > from {
			g.Buckets = p.buckets[from:to:to]
		}
		return true
	}
	return false
}
