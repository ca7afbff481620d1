package export

import (
	"cmp"
	"slices"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// stateShare is the first statistic of a state set.
const stateShare = "active_share"

// quantileNote qualifies the quantiles of summaries in every JSON.
const quantileNote = "server_quantiles are the server's own at the end of the window, " +
	"over all it has seen or a time of its choice, not over the window; null is no data"

// exported reports whether AIPerf's files have a place for a metric: it has one of
// the four types, is not the second of two types under one name, and has statistics.
func exported(r *summary.Run, m summary.Metric) bool {
	return !m.Conflict && exportedType(m.Type) && slices.ContainsFunc(m.Series,
		func(s summary.Series) bool { return hasStats(asAIPerf(r, &s)) })
}

func exportedType(t metric.Type) bool {
	return t == metric.Counter || t == metric.Gauge || t == metric.Histogram || t == metric.Unknown
}

// hasStats reports whether a series has a sample inside the window.
func hasStats(s *summary.Series) bool {
	return s.Counter != nil || s.Histogram != nil || s.Info != nil || s.Gauge != nil && s.Gauge.N > 0
}

// metrics are those that AIPerf has a place for.
func (d *document) metrics(from []summary.Metric) object[jsonMetric] {
	return func(yield func(string, jsonMetric) bool) {
		for i := range from {
			if exported(d.run, from[i]) && !yield(from[i].Name, d.metric(&from[i])) {
				return
			}
		}
	}
}

func (d *document) metric(m *summary.Metric) jsonMetric {
	return jsonMetric{Type: m.Type.String(), Help: m.Help, Unit: m.Unit, Series: func(yield func(jsonSeries) bool) {
		for i := range m.Series {
			if s := asAIPerf(d.run, &m.Series[i]); hasStats(s) && !yield(d.series(s)) {
				return
			}
		}
	}}
}

// conflicts are the metrics whose name belongs to another type already; nil without.
func (d *document) conflicts(from []summary.Metric) list[jsonConflict] {
	return list[jsonConflict](func(yield func(jsonConflict) bool) {
		for i := range from {
			m := &from[i]
			if m.Conflict && exportedType(m.Type) && !yield(jsonConflict{m.Name, d.metric(m)}) {
				return
			}
		}
	}).orNone()
}

// others are the metrics whose type AIPerf does not know: summaries, infos, state
// sets and gauge histograms; nil without.
func (d *document) others(from []summary.Metric) list[jsonMetric] {
	return list[jsonMetric](func(yield func(jsonMetric) bool) {
		for i := range from {
			m := &from[i]
			if exportedType(m.Type) {
				continue
			}
			x := jsonMetric{Name: m.Name, Type: m.Type.String(), Help: m.Help, Unit: m.ShownUnit(),
				Series: listOf(m.Series, d.other)}
			if m.Type == metric.Summary {
				x.Note = quantileNote
			}
			if !yield(x) {
				return
			}
		}
	}).orNone()
}

// series are the statistics of a series, of a type that AIPerf knows.
func (d *document) series(s *summary.Series) jsonSeries {
	x := jsonSeries{URL: d.run.Endpoints[s.Endpoint].URL, Labels: labels{s.Labels}}
	switch {
	case s.Counter != nil:
		counterSeries(&x, s.Counter, d.rate(s, s.Counter.Total, s.Counter.Rate))
	case s.Gauge != nil:
		d.gauge(&x, s.Gauge)
	default:
		d.histogram(&x, s.Histogram, s)
	}
	return x
}

func (d *document) rate(s *summary.Series, gain, ours float64) float64 {
	window := d.warm
	if window == 0 {
		window = d.run.Endpoints[s.Endpoint].Seconds
	}
	return rate(d.run, s, gain, ours, window)
}

// other are those of another type.
func (d *document) other(s *summary.Series) jsonSeries {
	x := jsonSeries{URL: d.run.Endpoints[s.Endpoint].URL, Labels: labels{s.Labels}, Samples: integer(s.Samples)}
	switch {
	case s.Summary != nil:
		x.Stats, x.Quantiles, x.Slices = summaryStats(s.Summary)
	case s.Info != nil:
		x.Slices = listOf(s.Info.Slices, func(t *normalize.InfoSlice) jsonSlice {
			out := sliceOf(&t.Slice)
			out.Samples = integer(t.N)
			return out
		}).orNone()
	case s.State != nil:
		x.Stats = stats{{stateShare, float(s.State.Share)}, {"active_last", boolean(s.State.Last)},
			{"changes", integer(s.State.Changes)}}
		x.Slices = listOf(s.State.Slices, func(t *normalize.StateSlice) jsonSlice {
			out := sliceOf(&t.Slice)
			out.Share = float(t.Share)
			return out
		}).orNone()
	case s.GaugeHistogram != nil:
		h := s.GaugeHistogram
		x.Native, x.Buckets, x.Slices = h.Native, bucketsOf(h.Buckets), histogramSlices(h.Slices, h.Bounds, h.NoSum)
		x.Last = stats{{"count", integer(h.Count)}, {"sum", float(h.Sum).when(!h.NoSum)},
			{"avg", float(h.Avg).when(!h.NoSum && h.Count != 0)}}
		x.Percentiles = d.estimates(inFiles(d.run, h.Quantiles, h.FileQuantiles))
	}
	return x
}

// sliceOf is a slice without statistics.
func sliceOf(s *normalize.Slice) jsonSlice {
	out := jsonSlice{StartNS: s.StartNS, EndNS: s.EndNS}
	if s.Partial {
		out.Complete = new(bool)
	}
	return out
}

func counterSeries(x *jsonSeries, c *normalize.Counter, rate float64) {
	x.Stats = stats{{"total", float(c.Total)}, {"rate", float(rate)}}
	if r := c.SliceRates; r != nil {
		x.Stats = append(x.Stats, stat{"rate_avg", float(r.Avg)}, stat{"rate_min", float(r.Min)},
			stat{"rate_max", float(r.Max)}, stat{"rate_std", float(r.Std)})
	}
	if c.Sliced {
		x.Slices = listOf(c.Slices, func(s *normalize.CounterSlice) jsonSlice {
			out := sliceOf(&s.Slice)
			out.Total, out.Rate = float(s.Total), float(s.Rate)
			return out
		})
	}
}

func (d *document) gauge(x *jsonSeries, g *normalize.Gauge) {
	of, quantiles := gaugeOf(d.run, g)
	x.Stats = stats{{"avg", float(of.Avg)}, {"min", float(of.Min)}, {"max", float(of.Max)}, {"std", float(of.Std)}}
	for i, at := range d.nine {
		if at >= 0 && at < len(quantiles) {
			x.Stats = append(x.Stats, stat{nineNames[i], float(quantiles[at])})
		}
	}
	x.Slices = listOf(g.Slices, func(s *normalize.GaugeSlice) jsonSlice {
		out := sliceOf(&s.Slice)
		out.Avg, out.Min, out.Max = float(s.Avg), float(s.Min), float(s.Max)
		return out
	}).orNone()
}

func (d *document) histogram(x *jsonSeries, h *normalize.Histogram, s *summary.Series) {
	x.Stats = stats{{"count", integer(h.Count)}}
	if h.Count != 0 {
		x.Stats = append(x.Stats, stat{"sum", float(h.Sum).when(!h.NoSum)}, stat{"avg", float(h.Avg).when(!h.NoSum)},
			stat{"count_rate", float(d.rate(s, float64(h.Count), h.CountRate)).when(h.HasRates)}, stat{"sum_rate",
				float(d.rate(s, h.Sum, h.SumRate)).when(h.HasRates && !h.NoSum)})
		list := inFiles(d.run, h.Quantiles, h.FileQuantiles)
		for i, at := range d.nine {
			if at >= 0 && at < len(list) {
				x.Stats = append(x.Stats, stat{nineEstimates[i], float(list[at].Value)})
			}
		}
	}
	x.Buckets, x.Slices = bucketsOf(h.Buckets), histogramSlices(h.Slices, h.Bounds, h.NoSum)
}

// histogramSlices are slices whose buckets have the given bounds.
func histogramSlices(from []normalize.HistogramSlice, bounds []normalize.Bucket, noSum bool) list[jsonSlice] {
	if len(from) == 0 {
		return nil
	}
	keys := bucketKeys(bounds)
	return listOf(from, func(s *normalize.HistogramSlice) jsonSlice {
		out := sliceOf(&s.Slice)
		out.Count, out.Sum, out.Avg = integer(s.Count), float(s.Sum).when(!noSum), float(s.Avg).when(!noSum)
		if s.Counts != nil {
			out.Buckets = buckets{keys: keys, counts: s.Counts}
		}
		return out
	})
}

// summaryStats are the statistics of a summary, what the server computed itself, and the slices.
func summaryStats(s *normalize.Summary) (stats, object[scalar], list[jsonSlice]) {
	numbers := stats{{"count", integer(s.Count).when(s.Defined && !s.NoCount)},
		{"sum", float(s.Sum).when(s.Defined && !s.NoSum)},
		{"avg", float(s.Avg).when(s.Count != 0 && !s.NoSum)}, {"count_rate", float(s.CountRate).when(s.HasRates)},
		{"sum_rate", float(s.SumRate).when(s.HasRates && !s.NoSum)}}
	quantiles := object[scalar](func(yield func(string, scalar) bool) {
		for i := range s.Quantiles {
			if q := &s.Quantiles[i]; !yield(quantileText(q), float(q.Value)) {
				return
			}
		}
	})
	return numbers, quantiles.orNone(), listOf(s.Slices, func(t *normalize.SummarySlice) jsonSlice {
		out := sliceOf(&t.Slice)
		out.Count, out.Sum, out.Avg = integer(t.Count), float(t.Sum).when(!s.NoSum), float(t.Avg).when(!s.NoSum)
		return out
	}).orNone()
}

func quantileText(q *normalize.SummaryQuantile) string {
	return cmp.Or(q.Text, string(appendFloat(nil, q.Q)))
}

// estimates are those of the quantiles of the run, with their bounds; nil without.
func (d *document) estimates(from []histest.Estimate) object[jsonEstimate] {
	from = from[:min(len(from), len(d.run.Options.Quantiles))]
	if len(from) == 0 {
		return nil
	}
	return func(yield func(string, jsonEstimate) bool) {
		for i := range from {
			e := &from[i]
			x := jsonEstimate{float(e.Value), float(e.Low), float(e.High), summary.FlagNames(e.Flags)}
			if !yield(histest.PercentileName(d.run.Options.Quantiles[i]), x) {
				return
			}
		}
	}
}
