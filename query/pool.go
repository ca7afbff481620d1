package query

import (
	"cmp"
	"math"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// distribution is the numbers of a histogram or summary over a span.
type distribution struct {
	count           int64
	sum, rate       float64
	noSum, noCount  bool
	hasRate, hasPct bool // hasPct: the kind has percentiles
	quantiles       []histest.Estimate
	differ          bool // bounds do
}

// pool makes the rows of series taken together: of the window and its slices, or of the warm-up.
func (w *writer) pool(m *summary.Metric, p *summary.Pool, window summary.Window, span string) {
	w.row.Phase, w.row.Series, w.row.N = window.Phase, len(p.Series), -1
	ownSlices := span == SpanWindow && w.spans(SpanSlice) && w.run.Options.Slice > 0
	if !w.addable(m, p) {
		w.span(span, -1, normalize.Slice{StartNS: window.StartNS, EndNS: window.EndNS})
		w.row.Status = NotAggregated
		w.add("time_avg", math.NaN(), m.ShownUnit())
		return
	}
	t := w.run.Together(m, p)
	s := normalize.Slice{StartNS: window.StartNS, EndNS: window.EndNS}
	if w.row.Level == LevelSeries && span == SpanWindow {
		e := &w.run.Endpoints[p.Series[0].Endpoint]
		s.StartNS, s.EndNS = e.StartNS, e.EndNS
	}
	if span == SpanWarmup || w.spans(SpanWindow) {
		w.span(span, -1, s)
		w.window(m, p, &t)
	}
	if !ownSlices {
		return
	}
	if one := t.One; one != nil && one.State != nil {
		w.states(one.State, s.StartNS)
	}
	w.run.Cut(&t, p, w.wantsPercentiles())
	start := w.run.Endpoints[p.Series[0].Endpoint].StartNS
	for i := range t.Slices {
		w.span(SpanSlice, w.sliceAt(t.Slices[i].StartNS, start), t.Slices[i].Slice)
		w.slice(m, &t, &t.Slices[i])
	}
}

// addable reports whether the series can be taken together.
func (w *writer) addable(m *summary.Metric, p *summary.Pool) bool {
	if len(p.Series) == 1 {
		return true
	}
	rule := catalog.AggregateByType
	if f, ok := w.catalog.Family(m.Name); ok {
		rule = f.Aggregate
	}
	s := p.Series[0]
	if s.State != nil || s.GaugeHistogram != nil || rule == catalog.AggregateNever {
		return false
	}
	return s.Gauge == nil || rule != catalog.AggregateByType
}

// wantsPercentiles reports whether some statistic is one.
func (w *writer) wantsPercentiles() bool {
	for _, s := range w.stats {
		if _, ok := ParsePercentile(s); ok {
			return true
		}
	}
	return w.stats == nil
}

// window makes the rows of the whole span.
func (w *writer) window(m *summary.Metric, p *summary.Pool, t *summary.Pooled) {
	w.row.Status = summary.StatusWord(&t.Increase)
	unit := m.ShownUnit()
	switch {
	case t.Refused != "":
		w.refused(m, t)
	case t.Counter != nil:
		w.counter(t, unit)
	case t.Histogram != nil:
		h := t.Histogram
		w.distribution(&distribution{h.Count, h.Sum, h.CountRate, h.NoSum, false, h.HasRates, true, h.Quantiles,
			t.BoundsDiffer}, t, unit)
	case t.Summary != nil && t.Summary.Defined:
		s := t.Summary
		w.distribution(&distribution{count: s.Count, sum: s.Sum, rate: s.CountRate, noSum: s.NoSum, noCount: s.NoCount,
			hasRate: s.HasRates}, t, unit)
	case t.Summary != nil:
		w.single("count", "")
	case t.Gauge != nil:
		for _, s := range p.Series {
			if s.Gauge != nil {
				w.row.N = max(w.row.N, 0) + int64(s.Gauge.N)
			}
		}
		w.gauge(unit, "time_avg", t.Gauge.TimeAvg, t.Gauge.Min, t.Gauge.Max)
	case t.One != nil:
		w.alone(t.One, unit)
	}
}

// refused makes rows without values, which tell why.
func (w *writer) refused(m *summary.Metric, t *summary.Pooled) {
	if w.row.Status = catalog.Refused.String(); t.Increase.Status != continuity.Refused {
		w.row.Status = catalog.Missing.String()
	}
	names := []string{"total", "rate"}
	switch m.Type {
	case metric.Counter:
	case metric.Histogram, metric.Summary:
		names = []string{"count", "rate", "sum", "avg"}
	default:
		names = []string{"time_avg"}
	}
	if m.Type == metric.Histogram {
		for _, q := range w.run.Options.Quantiles {
			names = append(names, Percentile(q))
		}
	}
	for _, stat := range names {
		w.row.Low, w.row.High = math.NaN(), math.NaN()
		w.add(stat, math.NaN(), "")
	}
}

// single is the row of what a single sample gives no difference of.
func (w *writer) single(stat, unit string) {
	w.row.Status, w.row.Flags = catalog.Missing.String(), "single_sample"
	w.row.Low, w.row.High = math.NaN(), math.NaN()
	w.add(stat, math.NaN(), unit)
	w.row.Flags = ""
}

func perSecond(unit string) string { return cmp.Or(unit, "1") + "/s" }

func (w *writer) counter(t *summary.Pooled, unit string) {
	if !t.Counter.Defined {
		w.single("total", unit)
		return
	}
	w.row.Low, w.row.High = w.doubt(t)
	w.add("total", t.Counter.Total, unit)
	w.row.Low, w.row.High = math.NaN(), math.NaN()
	w.add("rate", t.Counter.Rate, perSecond(unit))
}

// doubt are the bounds of an increase that is not certain.
func (w *writer) doubt(t *summary.Pooled) (low, high float64) {
	return summary.BoundsOfStatus(summary.StatusOf(t.Increase.Status), t.Increase.Low, t.Increase.High)
}

// distribution makes the rows of a distribution.
func (w *writer) distribution(d *distribution, t *summary.Pooled, unit string) {
	status := w.row.Status
	nan := math.NaN()
	w.row.Low, w.row.High, w.row.N = nan, nan, -1
	if !d.noCount {
		if w.row.Span != SpanSlice {
			w.row.Low, w.row.High = w.doubt(t)
		}
		w.row.N = d.count
		w.add("count", float64(d.count), "")
		w.row.Low, w.row.High = nan, nan
		if d.hasRate {
			w.add("rate", d.rate, perSecond(""))
		}
	}
	if !d.noSum {
		w.add("sum", d.sum, unit)
	}
	empty := d.count == 0 && status == catalog.OK.String()
	if empty {
		w.row.Status = NoData
	}
	if !d.noSum && !d.noCount {
		w.add("avg", either(d.count != 0, d.sum/float64(d.count)), unit)
	}
	if d.hasPct {
		if d.differ && !empty {
			w.row.Status = BoundsDiffer
		}
		w.percentiles(d, unit)
	}
	w.row.Status = status
}

// either is a value where there is one.
func either(ok bool, v float64) float64 {
	if ok {
		return v
	}
	return math.NaN()
}

func (w *writer) percentiles(d *distribution, unit string) {
	nan := math.NaN()
	for i, q := range w.run.Options.Quantiles {
		if d.count == 0 || d.differ || i >= len(d.quantiles) {
			w.add(Percentile(q), nan, unit)
			continue
		}
		e := &d.quantiles[i]
		w.row.Low, w.row.High, w.row.Flags = e.Low, e.High, strings.Join(summary.FlagNames(e.Flags), " ")
		if e.Flags&histest.Recorded != 0 {
			w.row.Source = "requests"
		}
		w.add(Percentile(q), e.Value, unit)
		w.row.Low, w.row.High, w.row.Flags, w.row.Source = nan, nan, "", "metrics"
	}
}

func (w *writer) gauge(unit, stat string, mean, low, high float64) {
	w.row.Low, w.row.High = math.NaN(), math.NaN()
	w.add(stat, mean, unit)
	w.add("min", low, unit)
	w.add("max", high, unit)
}

// alone makes the rows of a series of a kind that does not grow.
func (w *writer) alone(s *summary.Series, unit string) {
	w.row.Low, w.row.High = math.NaN(), math.NaN()
	switch {
	case s.Gauge != nil:
		g := s.Gauge
		if w.row.N = int64(g.N); g.N == 0 {
			w.row.Status = NoData
			w.add("time_avg", math.NaN(), unit)
			return
		}
		w.add("avg", g.Avg, unit)
		w.gauge(unit, "time_avg", g.TimeAvg, g.Min, g.Max)
		w.add("std", g.Std, unit)
		w.add("last", g.Last, unit)
		for i, q := range w.run.Options.Quantiles {
			w.add(Percentile(q), g.Quantiles[i], unit)
		}
	case s.State != nil:
		w.add("ratio", s.State.Share, "ratio")
	case s.GaugeHistogram != nil:
		h := s.GaugeHistogram
		w.distribution(&distribution{count: h.Count, sum: h.Sum, noSum: h.NoSum, hasPct: true, quantiles: h.Quantiles},
			&summary.Pooled{}, unit)
	}
}

func (w *writer) states(s *normalize.State, start int64) {
	for i := range s.Slices {
		w.span(SpanSlice, w.sliceAt(s.Slices[i].StartNS, start), s.Slices[i].Slice)
		w.add("ratio", s.Slices[i].Share, "ratio")
	}
}

// slice makes the rows of a slice.
func (w *writer) slice(m *summary.Metric, t *summary.Pooled, s *summary.PoolSlice) {
	w.row.N, w.row.Status = -1, catalog.OK.String()
	w.row.Low, w.row.High = math.NaN(), math.NaN()
	if !t.Increase.Status.Certain() {
		w.row.Status = summary.StatusWord(&t.Increase)
	} else if s.Unseen {
		w.row.Status = catalog.Partial.String()
	}
	unit, seconds := m.ShownUnit(), float64(s.EndNS-s.StartNS)/1e9
	switch {
	case t.Counter != nil:
		w.add("total", s.Total, unit)
		w.add("rate", s.Total/seconds, perSecond(unit))
	case t.Histogram != nil:
		w.distribution(&distribution{s.Count, s.Sum, float64(s.Count) / seconds, t.NoSum, false, true, true, s.Quantiles,
			t.BoundsDiffer}, t, unit)
	case t.Summary != nil:
		w.distribution(&distribution{count: s.Count, sum: s.Sum, rate: float64(s.Count) / seconds, noSum: t.NoSum,
			noCount: t.Summary.NoCount, hasRate: true}, t, unit)
	default:
		w.row.N = s.Count
		w.gauge(unit, "avg", s.Avg, s.Min, s.Max)
	}
}
