package export

import (
	"cmp"
	"math"
	"strconv"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// exported says that AIPerf's files have a place for a metric: it has one of the
// four types, is not the second of two types under one name, and has statistics.
func exported(m summary.Metric) bool {
	if m.Conflict || !exportedType(m.Type) {
		return false
	}
	for i := range m.Series {
		if hasStats(&m.Series[i]) {
			return true
		}
	}
	return false
}

func exportedType(t metric.Type) bool {
	return t == metric.Counter || t == metric.Gauge || t == metric.Histogram || t == metric.Unknown
}

// hasStats says that a series has a sample inside the window.
func hasStats(s *summary.Series) bool {
	return s.Counter != nil || s.Histogram != nil || s.Info != nil || s.Gauge != nil && s.Gauge.N > 0
}

func (d *document) metrics(name string, metrics []summary.Metric) {
	d.key(name)
	d.open('{')
	for i := range metrics {
		if exported(metrics[i]) {
			d.key(metrics[i].Name)
			d.metric(&metrics[i])
		}
	}
	d.close('}')
}

func (d *document) metric(m *summary.Metric) {
	d.open('{')
	d.strField("type", m.Type.String())
	d.strField("description", m.Help)
	if m.Unit != "" {
		d.strField("unit", m.Unit)
	}
	d.key("series")
	d.open('[')
	for i := range m.Series {
		if hasStats(&m.Series[i]) {
			d.elem()
			d.series(&m.Series[i])
		}
	}
	d.close(']')
	d.close('}')
}

func (d *document) series(s *summary.Series) {
	d.open('{')
	d.strField("endpoint_url", d.run.Endpoints[s.Endpoint].URL)
	d.labels(s.Labels)
	switch {
	case s.Counter != nil:
		d.counter(s.Counter)
	case s.Gauge != nil:
		d.gauge(s.Gauge)
	default:
		d.histogram(s.Histogram)
	}
	d.close('}')
}

func (d *document) labels(l metric.Labels) {
	if l == (metric.Labels{}) {
		return
	}
	d.key("labels")
	d.open('{')
	for name, value := range l.All() {
		d.strField(name, value)
	}
	d.close('}')
}

func (d *document) counter(c *normalize.Counter) {
	d.key("stats")
	d.open('{')
	d.floatField("total", c.Total)
	d.floatField("rate", c.Rate)
	if r := c.SliceRates; r != nil {
		d.floatField("rate_avg", r.Avg)
		d.floatField("rate_min", r.Min)
		d.floatField("rate_max", r.Max)
		d.floatField("rate_std", r.Std)
	}
	d.close('}')
	if !c.Sliced {
		return
	}
	d.key("timeslices")
	d.open('[')
	for i := range c.Slices {
		d.slice(&c.Slices[i].Slice)
		d.floatField("total", c.Slices[i].Total)
		d.floatField("rate", c.Slices[i].Rate)
		d.close('}')
	}
	d.close(']')
}

// slice opens a timeslice.
func (d *document) slice(s *normalize.Slice) {
	d.elem()
	d.open('{')
	d.intField("start_ns", s.StartNS)
	d.intField("end_ns", s.EndNS)
	if s.Partial {
		d.key("is_complete")
		d.bool(false)
	}
}

func (d *document) gauge(g *normalize.Gauge) {
	d.key("stats")
	d.open('{')
	d.floatField("avg", g.Avg)
	d.floatField("min", g.Min)
	d.floatField("max", g.Max)
	d.floatField("std", g.Std)
	for i, at := range d.nine {
		if at >= 0 && at < len(g.Quantiles) {
			d.floatField(nineNames[i], g.Quantiles[at])
		}
	}
	d.close('}')
	if len(g.Slices) == 0 {
		return
	}
	d.key("timeslices")
	d.open('[')
	for i := range g.Slices {
		s := &g.Slices[i]
		d.slice(&s.Slice)
		d.floatField("avg", s.Avg)
		d.floatField("min", s.Min)
		d.floatField("max", s.Max)
		d.close('}')
	}
	d.close(']')
}

func (d *document) histogram(h *normalize.Histogram) {
	d.key("stats")
	d.open('{')
	d.intField("count", h.Count)
	if h.Count != 0 {
		d.histogramStats(h)
	}
	d.close('}')
	if h.Buckets != nil {
		d.counts(bucketKeys(h.Buckets), func(i int) int64 { return h.Buckets[i].Count })
	}
	if len(h.Slices) == 0 {
		return
	}
	keys := bucketKeys(h.Bounds)
	d.key("timeslices")
	d.open('[')
	for i := range h.Slices {
		d.histogramSlice(&h.Slices[i], h.NoSum, keys)
		d.close('}')
	}
	d.close(']')
}

// histogramSlice opens the object of a slice, whose buckets have the keys, and
// leaves it to the caller to close.
func (d *document) histogramSlice(s *normalize.HistogramSlice, noSum bool, keys [][]byte) {
	d.slice(&s.Slice)
	d.intField("count", s.Count)
	if !noSum {
		d.floatField("sum", s.Sum)
		d.floatField("avg", s.Avg)
	}
	if s.Counts != nil {
		d.counts(keys, func(i int) int64 { return s.Counts[i] })
	}
}

func (d *document) histogramStats(h *normalize.Histogram) {
	if !h.NoSum {
		d.floatField("sum", h.Sum)
		d.floatField("avg", h.Avg)
	}
	if h.HasRates {
		d.floatField("count_rate", h.CountRate)
		if !h.NoSum {
			d.floatField("sum_rate", h.SumRate)
		}
	}
	for i, at := range d.nine {
		if at >= 0 && at < len(h.Quantiles) {
			d.floatField(nineEstimates[i], h.Quantiles[at].Value)
		}
	}
}

// bucketKeys returns the key of each bucket, quoted, with what comes after it.
func bucketKeys(buckets []normalize.Bucket) [][]byte {
	keys := make([][]byte, len(buckets))
	for i := range buckets {
		keys[i] = append(appendString(nil, boundText(&buckets[i])), ':', ' ')
	}
	return keys
}

// counts writes cumulative gains under the keys of their buckets, each on a line
// of its own. Most of a document with slices comes from here.
func (d *document) counts(keys [][]byte, count func(i int) int64) {
	d.key("buckets")
	d.open('{')
	b, start := d.buf, lineStart[:1+2*d.depth]
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, start...), key...)
		b = strconv.AppendInt(b, count(i), 10)
	}
	d.buf, d.first = b, len(keys) == 0
	d.close('}')
}

// boundText is the bound as AIPerf keys it: the server's text, but one spelling
// of infinity.
func boundText(b *normalize.Bucket) string {
	if math.IsInf(b.Upper, 1) {
		return "+Inf"
	}
	return cmp.Or(b.Text, string(appendFloat(nil, b.Upper)))
}
