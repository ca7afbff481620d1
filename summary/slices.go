package summary

import (
	"math"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/normalize"
)

// PoolSlice is what series taken together did in one slice. Its numbers are those of [Aggregate], of the slice alone.
type PoolSlice struct {
	normalize.Slice
	// Unseen is set where a target answered no poll in the slice: what it gained then is in a later slice.
	Unseen bool
	Total  float64 // of a counter
	// Avg of gauges is by the rule of the catalog, Min and Max as in [GaugeAggregate]; of observations Avg is their mean.
	Avg, Min, Max float64
	Count         int64 // observations, or samples of gauges
	Sum           float64
	Quantiles     []histest.Estimate // parallel to Options.Quantiles; nil where there is no estimate

	counts []float64 // cumulative, at the bounds of all histograms
}

// Pooled is series of a metric taken together, or one alone.
type Pooled struct {
	Aggregate
	One *Series // the series alone; nil of several
	// Rule is how the catalog takes the gauges together; AggregateByType where it does not say.
	Rule catalog.Aggregate
	// BoundsDiffer is set where histograms have different buckets: the slices have no quantiles.
	BoundsDiffer bool
	NoSum        bool        // of a histogram or summary one does not send its sum
	Slices       []PoolSlice // in time order; see Cut
}

// Together takes the series of a pool together, over the window or, those of Run.Warmup, over the warm-up.
func (r *Run) Together(m *Metric, p *Pool) Pooled {
	out := Pooled{Rule: r.rule(m)}
	out.Aggregate = Aggregate{Labels: p.Labels, Series: len(p.Series)}
	if len(p.Series) == 1 {
		out.alone(p.Series[0])
	} else if !r.merged(m, p, &out.Aggregate) {
		out.merge(p.Series, out.Rule, &r.Options)
		out.estimate(&r.Options)
	}
	if out.Refused != "" && out.Increase.Status != continuity.Refused {
		out.countOnly(p.Series)
	}
	for _, w := range out.Warnings {
		out.BoundsDiffer = out.BoundsDiffer || w.Code == "bounds_differ"
	}
	if h := out.Histogram; h != nil {
		out.NoSum = h.NoSum
	} else if s := out.Summary; s != nil {
		out.NoSum = s.NoSum
	}
	return out
}

// Cut fills Slices of what was taken together over the window; quantiles asks for theirs, which take time. Slices in
// which none of the targets answered a poll are left out, and so are all of targets whose windows begin at different
// times.
func (r *Run) Cut(a *Pooled, p *Pool, quantiles bool) {
	start := r.Endpoints[p.Series[0].Endpoint].StartNS
	for _, s := range p.Series {
		if r.Endpoints[s.Endpoint].StartNS != start || a.Refused != "" {
			return
		}
	}
	a.slice(r, p.Series, quantiles)
}

// countOnly takes histograms together that have no bucket in common.
func (a *Pooled) countOnly(series []*Series) {
	h := &normalize.Histogram{}
	for _, s := range series {
		if s.Histogram == nil {
			return
		}
		h.Count, h.Sum, h.NoSum = h.Count+s.Histogram.Count, h.Sum+s.Histogram.Sum, h.NoSum || s.Histogram.NoSum
		h.CountRate, h.HasRates = h.CountRate+s.Histogram.CountRate, h.HasRates || s.Histogram.HasRates
	}
	a.Histogram, a.Refused, a.BoundsDiffer = h, "", true
}

// alone takes a series as it is.
func (a *Pooled) alone(s *Series) {
	a.One, a.Counter, a.Summary, a.Histogram = s, s.Counter, s.Summary, s.Histogram
	a.Increase, a.Resets = s.Increase, s.Resets
	if s.Increase.Status == continuity.Refused {
		a.Refused = refusedText
	}
}

// merged finds what was taken together already when there was more to merge by.
func (r *Run) merged(m *Metric, p *Pool, a *Aggregate) bool {
	same := func(x *Aggregate) bool {
		return &r.Metrics[x.Metric] == m && x.Labels == p.Labels && x.Series == len(p.Series)
	}
	for i := range r.Aggregates {
		if x := &r.Aggregates[i]; same(x) {
			*a = *x
			return true
		}
	}
	for i := range r.Latencies {
		if x := &r.Latencies[i].Aggregate; same(x) {
			*a = *x
			return true
		}
	}
	return false
}

// estimate gives a merged histogram quantiles of its buckets alone, where what its estimators learned is gone.
func (a *Pooled) estimate(o *Options) {
	h := a.Histogram
	if h == nil || h.Quantiles != nil || h.Buckets == nil || h.NoSum {
		return
	}
	cum := make([]float64, len(h.Buckets))
	for i := range cum {
		cum[i] = float64(h.Buckets[i].Count)
	}
	h.Quantiles = estimate(o, h.Bounds, cum, float64(h.Count), h.Sum, h.Late)
}

// estimate returns the quantiles of cumulative counts; nil where there is no answer.
func estimate(o *Options, bounds []normalize.Bucket, cum []float64, count, sum float64, late int64) []histest.Estimate {
	d := &histest.Delta{Count: count, Sum: sum, Late: late}
	floor := math.Inf(-1)
	for i, b := range bounds {
		floor = max(floor, cum[i])
		if math.IsInf(b.Upper, 1) {
			d.Inf, d.HasInf = floor, true
		} else {
			d.Bounds, d.Cum = append(d.Bounds, b.Upper), append(d.Cum, floor)
		}
	}
	e, err := histest.New(o.Estimator, d.Bounds)
	if err != nil {
		return nil
	}
	if out, ok := e.Quantiles(nil, d, o.Quantiles); ok {
		return out
	}
	return nil
}

// slice adds up the slices of the series.
func (a *Pooled) slice(r *Run, series []*Series, quantiles bool) {
	var grid []*PoolSlice
	width := r.Options.Slice.Nanoseconds()
	start := r.Endpoints[series[0].Endpoint].StartNS
	at := func(s normalize.Slice) *PoolSlice {
		k := int((s.StartNS - start) / width)
		for len(grid) <= k {
			grid = append(grid, nil)
		}
		if grid[k] == nil {
			grid[k] = &PoolSlice{Slice: s}
		}
		grid[k].EndNS = max(grid[k].EndNS, s.EndNS)
		grid[k].Slice.Partial = grid[k].Slice.Partial || s.Partial
		return grid[k]
	}
	g := gaugeSlices{rule: a.Rule, alone: len(series) == 1, weight: map[*PoolSlice]float64{}}
	for _, s := range series {
		switch {
		case s.Counter != nil:
			for i := range s.Counter.Slices {
				at(s.Counter.Slices[i].Slice).Total += s.Counter.Slices[i].Total
			}
		case s.Summary != nil:
			for i := range s.Summary.Slices {
				x := &s.Summary.Slices[i]
				at(x.Slice).observe(x.Count, x.Sum)
			}
		case s.Histogram != nil:
			for i := range s.Histogram.Slices {
				at(s.Histogram.Slices[i].Slice).add(&s.Histogram.Slices[i], s.Histogram, a.BoundsDiffer)
			}
		case s.Gauge != nil:
			for i := range s.Gauge.Slices {
				x := &s.Gauge.Slices[i]
				polls := r.Endpoints[s.Endpoint].SlicePolls
				k, of := int((x.StartNS-start)/width), x.N
				if k < len(polls) {
					of = int(polls[k])
				}
				g.add(at(x.Slice), x, of)
			}
		}
	}
	for k, s := range grid {
		if s != nil && a.polled(r, series, k, s) {
			g.end(s)
			s.end(a, &r.Options, quantiles)
			a.Slices = append(a.Slices, *s)
		}
	}
}

// polled reports whether one of the targets answered a poll in slice k, and notes when another one did not.
func (a *Pooled) polled(r *Run, series []*Series, k int, s *PoolSlice) bool {
	some := s.Total != 0 || s.Count != 0
	for _, x := range series {
		e := &r.Endpoints[x.Endpoint]
		if k >= len(e.SlicePolls) || e.SlicePolls[k] > 0 {
			some = true
		} else if e.Lives == nil {
			s.Unseen = true
		}
	}
	return some
}

func (s *PoolSlice) observe(count int64, sum float64) {
	s.Count += count
	s.Sum += sum
}

// add adds the slice of a histogram. Where a server's counts are not usable, those of all are not.
func (s *PoolSlice) add(x *normalize.HistogramSlice, h *normalize.Histogram, differ bool) {
	first := s.counts == nil
	s.observe(x.Count, x.Sum)
	if first {
		s.counts = make([]float64, len(h.Bounds))
	}
	if differ || len(x.Counts) != len(s.counts) {
		s.counts = s.counts[:0]
		return
	}
	for i, n := range x.Counts {
		s.counts[i] += float64(n)
	}
}

// end computes what follows from the sums.
func (s *PoolSlice) end(a *Pooled, o *Options, quantiles bool) {
	h := a.Histogram
	if (h != nil || a.Summary != nil) && s.Count > 0 && !a.NoSum {
		s.Avg = s.Sum / float64(s.Count)
	}
	if h != nil && s.Count > 0 && !h.NoSum && len(s.counts) == len(h.Bounds) && quantiles {
		s.Quantiles = estimate(o, h.Bounds, s.counts, float64(s.Count), s.Sum, 0)
	}
	s.counts = nil
}

// gaugeSlices takes the slices of gauges together.
type gaugeSlices struct {
	rule   catalog.Aggregate
	alone  bool
	weight map[*PoolSlice]float64
}

// add adds a gauge, which was in some of the polls of the slice: it counts for that part of it.
func (g *gaugeSlices) add(s *PoolSlice, x *normalize.GaugeSlice, polls int) {
	share := 1.0
	if polls > x.N {
		share = float64(x.N) / float64(polls)
	}
	first := s.Count == 0
	s.Count += int64(x.N)
	if g.alone {
		s.Avg, s.Min, s.Max = x.Avg, x.Min, x.Max
		return
	}
	if g.rule == catalog.AggregateSum {
		s.Avg += share * x.Avg
		low, high := x.Min, x.Max
		if share < 1 { // while it was not there it added nothing
			low, high = min(0, low), max(0, high)
		}
		s.Min, s.Max = s.Min+low, s.Max+high
		return
	}
	if first {
		s.Min, s.Max = x.Min, x.Max
	}
	s.Min, s.Max = min(s.Min, x.Min), max(s.Max, x.Max)
	switch {
	case g.rule == catalog.AggregateMax && (first || x.Avg > s.Avg):
		s.Avg = x.Avg
	case g.rule != catalog.AggregateMax:
		s.Avg += share * x.Avg
		g.weight[s] += share
	}
}

func (g *gaugeSlices) end(s *PoolSlice) {
	if w := g.weight[s]; w > 0 {
		s.Avg /= w
	}
}

// HasLabel reports whether a series or a target has a label of that name.
func (r *Run) HasLabel(name string) bool {
	for i := range r.Endpoints {
		if _, ok := r.Endpoints[i].Labels.Get(name); ok {
			return true
		}
	}
	for i := range r.Metrics {
		for k := range r.Metrics[i].Series {
			if _, ok := r.Metrics[i].Series[k].Labels.Get(name); ok {
				return true
			}
		}
	}
	return false
}
