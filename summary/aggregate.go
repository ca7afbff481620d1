package summary

import (
	"context"
	"math"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// Aggregate is the series of a metric that agree in the labels of Options.By, taken together: the replicas of a server,
// say. Counter, Gauge, Summary or Histogram is set, by the type of the metric, unless the series could not be merged.
type Aggregate struct {
	Metric int // into Run.Metrics
	// Labels are those of Options.By that the series or their targets have, and
	// those by which series of the family must be kept apart.
	Labels metric.Labels
	Series int // how many there are
	// LeftOut is how many more there are that would have counted twice: those of
	// ranks other than 0, parts beside their total.
	LeftOut int
	// Counter has the sums of totals and rates of the series where those are defined; it has no slices.
	Counter *normalize.Counter
	// Gauge follows the rule of the catalog for the family.
	Gauge *GaugeAggregate
	// Summary has the sums of counts and sums; a server's quantiles cannot be merged.
	Summary *normalize.Summary
	// Histogram pools the observations of all series; it has no slices.
	Histogram *normalize.Histogram
	Skew      *Skew               // of the increases, counts or means of gauges; nil for less than two replicas
	Resets    int                 // of all series
	Increase  continuity.Increase // of all series together, of those that grow
	Refused   string              // why there are no numbers
	Warnings  []metric.Warning
}

// refusedText is why an increase is refused.
const refusedText = "several processes answered, which nothing tells apart"

// aggregate fills Aggregates: by metric, then by labels.
func (r *Run) aggregate() {
	if r.Options.By == nil {
		return
	}
	var members [][]*Series
	var unruled, never []string
	for i := range r.Metrics {
		m := &r.Metrics[i]
		if r.rule(m) == catalog.AggregateNever {
			never = append(never, m.Name)
			continue
		}
		switch first := &m.Series[0]; {
		case first.Counter != nil, first.Summary != nil, first.Histogram != nil,
			first.Increase.Status == continuity.Refused:
		case first.Gauge == nil:
			continue // infos, states and what is as of now
		case r.rule(m) == catalog.AggregateByType:
			unruled = append(unruled, m.Name)
			continue
		}
		for _, g := range r.groups(m, r.Options.By) {
			r.Aggregates = append(r.Aggregates, Aggregate{Metric: i, Labels: g.labels, Series: len(g.series),
				LeftOut: g.leftOut})
			members = append(members, g.series)
		}
	}
	_ = parallel(context.Background(), len(members), func(_ context.Context, i int) error { // cannot fail
		a := &r.Aggregates[i]
		a.merge(members[i], r.rule(&r.Metrics[a.Metric]), &r.Options)
		return nil
	})
	if len(never) > 0 {
		r.Warnings = append(r.Warnings, metric.Warnf("never_aggregated",
			"%d metrics describe or date things, so that no number of several means anything (%s)",
			len(never), someOf(never, 3)))
	}
	if len(unruled) > 0 {
		r.Warnings = append(r.Warnings, metric.Warnf("gauges_not_aggregated",
			"%d gauge metrics have no aggregates, as the catalog does not say how: add up, mean or largest (%s)",
			len(unruled), someOf(unruled, 3)))
	}
}

// someOf names the first n of a list.
func someOf(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:n], ", ") + ", ..."
}

func (a *Aggregate) merge(series []*Series, rule catalog.Aggregate, o *Options) {
	var counters []*normalize.Counter
	var histograms []*normalize.Histogram
	for _, s := range series {
		a.Resets += s.Resets
		a.Increase = a.Increase.Add(s.Increase)
		switch {
		case s.Counter != nil:
			counters = append(counters, s.Counter)
		case s.Summary != nil:
			a.addSummary(s.Summary)
		case s.Histogram != nil:
			histograms = append(histograms, s.Histogram)
		}
	}
	if a.Increase.Status == continuity.Refused {
		a.Refused, a.Summary = refusedText, nil
		return
	}
	a.Skew = skewOf(series, PlaceLabels(o.Catalog))
	switch {
	case a.Summary != nil:
	case len(counters) > 0:
		a.addUp(counters)
	case len(histograms) > 0:
		h, warnings, err := normalize.MergeHistograms(histograms, o.Quantiles)
		if err != nil {
			a.Refused = err.Error()
			return
		}
		h.Gain, h.FileGain = nil, nil // they hold what the estimators learned
		a.Histogram, a.Warnings = h, warnings
	default:
		a.takeGauges(series, rule)
	}
}

// addSummary adds one summary to the aggregate.
func (a *Aggregate) addSummary(s *normalize.Summary) {
	if a.Summary == nil {
		a.Summary = &normalize.Summary{}
	}
	t := a.Summary
	t.Defined = t.Defined || s.Defined
	t.Count += s.Count
	t.Sum += s.Sum
	t.CountRate += s.CountRate
	t.SumRate += s.SumRate
	t.HasRates = t.HasRates || s.HasRates
	t.NoCount, t.NoSum = t.NoCount || s.NoCount, t.NoSum || s.NoSum
	t.Avg = 0
	if t.Count != 0 && !t.NoSum && !t.NoCount {
		t.Avg = t.Sum / float64(t.Count)
	}
}

// addUp sums counters. Those of a single sample have no total.
func (a *Aggregate) addUp(counters []*normalize.Counter) {
	sum := &normalize.Counter{HasExact: true}
	undefined := 0
	for _, c := range counters {
		if !c.Defined {
			undefined++
			continue
		}
		sum.Defined = true
		sum.Total += c.Total
		sum.Rate += c.Rate
		sum.HasExact = sum.HasExact && c.HasExact && sum.Exact <= math.MaxUint64-c.Exact
		sum.Exact += c.Exact
	}
	if sum.HasExact = sum.HasExact && sum.Defined; !sum.HasExact {
		sum.Exact = 0
	}
	if limit := math.MaxFloat64; math.Abs(sum.Total) > limit || math.Abs(sum.Rate) > limit {
		a.Refused = "the sum is too large for a number"
		return
	}
	a.Counter = sum
	if undefined > 0 {
		a.Warnings = append(a.Warnings, metric.Warnf("single_sample",
			"%d of %d series have a single sample and are left out", undefined, len(counters)))
	}
}

// GaugeAggregate is gauges taken together.
type GaugeAggregate struct {
	Rule string // sum, max or mean, as the catalog has it
	// TimeAvg is the time-weighted mean: of the sum, of all series, or for max of the series where it is
	// highest. A series that was there for part of the time counts for that part.
	TimeAvg float64
	// Min and Max are of all series; for a sum they are bounds: the sum was at no time outside of them.
	Min, Max float64
}

// takeGauges applies the rule of a family of gauges.
func (a *Aggregate) takeGauges(series []*Series, rule catalog.Aggregate) {
	var there []*Series
	var all span
	for _, s := range series {
		if s.Gauge != nil && s.Gauge.N > 0 {
			all.watch(s.Gauge)
			there = append(there, s)
		}
	}
	if there == nil {
		a.Refused = "no series has a sample"
		return
	}
	g := &GaugeAggregate{Rule: rule.String(), Min: math.Inf(1), Max: math.Inf(-1)}
	if rule == catalog.AggregateSum {
		g.Min, g.Max = 0, 0
	}
	weight := 0.0
	for i, s := range there {
		v, w := s.Gauge, all.share(s.Gauge)
		switch rule {
		case catalog.AggregateSum:
			g.TimeAvg += w * v.TimeAvg
			if w == 1 {
				g.Min, g.Max = g.Min+v.Min, g.Max+v.Max
			} else { // while it was not there it added nothing
				g.Min, g.Max = g.Min+min(0, v.Min), g.Max+max(0, v.Max)
			}
			continue
		case catalog.AggregateMax:
			if i == 0 || v.TimeAvg > g.TimeAvg {
				g.TimeAvg = v.TimeAvg
			}
		default:
			weight += w
			g.TimeAvg += w * v.TimeAvg
		}
		g.Min, g.Max = min(g.Min, v.Min), max(g.Max, v.Max)
	}
	if weight > 0 {
		g.TimeAvg /= weight
	}
	if n := len(series) - len(there); n > 0 {
		a.Warnings = append(a.Warnings, metric.Warnf("no_sample",
			"%d of %d series have no finite sample and are left out", n, len(series)))
	}
	for _, v := range []float64{g.TimeAvg, g.Min, g.Max} {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			a.Refused = "the sum is too large for a number"
			return
		}
	}
	a.Gauge = g
}

// forget drops what only aggregation needs.
func forget(metrics []Metric) {
	for i := range metrics {
		for _, s := range metrics[i].Series {
			if s.Histogram != nil {
				s.Histogram.Gain, s.Histogram.FileGain = nil, nil
			}
		}
	}
}
