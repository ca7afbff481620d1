package summary

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// ByEndpoint is the name in Options.By that stands for the endpoint, by its URL.
// A label of that name is then not seen.
const ByEndpoint = "endpoint"

// Aggregate is the series of a metric that agree in the labels of Options.By,
// taken together: the replicas of a server, say. Counter, Summary or Histogram is
// set, by the type of the metric, unless the series could not be merged.
type Aggregate struct {
	Metric int           // into Run.Metrics
	Labels metric.Labels // those of Options.By that the series have
	Series int           // how many there are
	// Counter has the sums of totals and rates of the series where those are
	// defined; it has no slices.
	Counter *normalize.Counter
	// Summary has the sums of counts and sums; a server's quantiles cannot be merged.
	Summary *normalize.Summary
	// Histogram pools the observations of all series; it has no slices.
	Histogram *normalize.Histogram
	Resets    int    // of all series
	Refused   string // why all of these are nil
	Warnings  []metric.Warning
}

// checkBy refuses label names that cannot be meant.
func (o *Options) checkBy() error {
	for i, name := range o.By {
		if name == "" {
			return errors.New("aggregate by label: its name is empty")
		}
		if slices.Contains(o.By[:i], name) {
			return fmt.Errorf("aggregate by label %q: it is named twice", name)
		}
	}
	return nil
}

// aggregate fills Aggregates: by metric, then by labels. Gauges have none.
func (r *Run) aggregate() {
	if r.Options.By == nil {
		return
	}
	gauges := 0
	var members [][]*Series
	for i := range r.Metrics {
		m := &r.Metrics[i]
		switch first := &m.Series[0]; {
		case first.Counter != nil, first.Summary != nil, first.Histogram != nil:
		case first.Gauge != nil:
			gauges++
			continue
		default:
			continue // infos, states and what is as of now
		}
		for _, g := range r.groups(m) {
			r.Aggregates = append(r.Aggregates, Aggregate{Metric: i, Labels: g.labels, Series: len(g.series)})
			members = append(members, g.series)
		}
	}
	_ = parallel(context.Background(), len(members), func(_ context.Context, i int) error { // cannot fail
		r.Aggregates[i].merge(members[i], r.Options.Quantiles)
		return nil
	})
	if gauges > 0 {
		r.Warnings = append(r.Warnings, metric.Warning{Code: "gauges_not_aggregated",
			Text: fmt.Sprintf("%d gauge metrics have no aggregates: some gauges are to be added up (queue lengths), others not (shares)", gauges)})
	}
}

// group is the series that agree in their labels.
type group struct {
	labels metric.Labels
	series []*Series
}

// groups returns the groups of a metric in the order of their labels; their
// series keep their order.
func (r *Run) groups(m *Metric) []*group {
	var out []*group
	at := map[metric.Labels]*group{}
	for i := range m.Series {
		s := &m.Series[i]
		labels := r.kept(s)
		g := at[labels]
		if g == nil {
			g = &group{labels: labels}
			at[labels] = g
			out = append(out, g)
		}
		g.series = append(g.series, s)
	}
	slices.SortFunc(out, func(a, b *group) int { return a.labels.Compare(b.labels) })
	return out
}

// kept returns the labels of a series that are named in Options.By.
func (r *Run) kept(s *Series) metric.Labels {
	if !slices.Contains(r.Options.By, ByEndpoint) {
		return s.Labels.Only(r.Options.By...)
	}
	pairs := []metric.Label{{Name: ByEndpoint, Value: r.Endpoints[s.Endpoint].URL}}
	for name, value := range s.Labels.Only(r.Options.By...).All() {
		if name != ByEndpoint {
			pairs = append(pairs, metric.Label{Name: name, Value: value})
		}
	}
	return metric.NewLabels(pairs...)
}

func (a *Aggregate) merge(series []*Series, quantiles []float64) {
	var counters []*normalize.Counter
	var histograms []*normalize.Histogram
	for _, s := range series {
		a.Resets += s.Resets
		switch {
		case s.Counter != nil:
			counters = append(counters, s.Counter)
		case s.Summary != nil:
			a.addSummary(s.Summary)
		default:
			histograms = append(histograms, s.Histogram)
		}
	}
	if a.Summary != nil {
		return
	}
	if len(counters) > 0 {
		a.addUp(counters)
		return
	}
	h, warnings, err := normalize.MergeHistograms(histograms, quantiles)
	if err != nil {
		a.Refused = err.Error()
		return
	}
	h.Gain = nil // it holds what the estimators learned
	a.Histogram, a.Warnings = h, warnings
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
		a.Warnings = append(a.Warnings, metric.Warning{Code: "single_sample",
			Text: fmt.Sprintf("%d of %d series have a single sample and are left out", undefined, len(counters))})
	}
}

// forget drops what only aggregation needs.
func forget(metrics []Metric) {
	for i := range metrics {
		for _, s := range metrics[i].Series {
			if s.Histogram != nil {
				s.Histogram.Gain = nil
			}
		}
	}
}
