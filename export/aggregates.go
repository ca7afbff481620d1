package export

import (
	"strconv"

	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// aggregates writes the series taken together, where that was asked for, and by
// which labels they are kept apart.
func (d *document) aggregates() {
	if d.run.Options.By == nil {
		return
	}
	d.key("aggregates")
	d.open('{')
	d.stringList("by", d.run.Options.By)
	d.key("groups")
	d.open('[')
	for i := range d.run.Aggregates {
		d.elem()
		d.open('{')
		d.aggregate(&d.run.Aggregates[i])
		d.close('}')
	}
	d.close(']')
	d.close('}')
}

// latencies writes the times that engines have in common, over all endpoints of
// an engine; nothing where no histogram is one.
func (d *document) latencies() {
	if len(d.run.Latencies) == 0 {
		return
	}
	d.key("latencies")
	d.open('[')
	for i := range d.run.Latencies {
		l := &d.run.Latencies[i]
		d.elem()
		d.open('{')
		d.strField("canonical", l.ID)
		d.strField("engine", l.Engine)
		d.aggregate(&l.Aggregate)
		d.close('}')
	}
	d.close(']')
}

// aggregate writes the fields of one, within an object.
func (d *document) aggregate(a *summary.Aggregate) {
	m := &d.run.Metrics[a.Metric]
	d.strField("metric", m.Name)
	d.strField("type", m.Type.String())
	d.labels(a.Labels)
	d.intField("series", int64(a.Series))
	if a.LeftOut > 0 {
		d.intField("left_out", int64(a.LeftOut))
	}
	d.count("resets", a.Resets)
	if a.Refused != "" {
		d.strField("refused", a.Refused)
	}
	if c := a.Counter; c != nil && c.Defined {
		d.floatField("total", c.Total)
		d.floatField("rate", c.Rate)
		if c.HasExact && c.Exact > 1<<53 {
			d.key("total_exact")
			d.buf = strconv.AppendUint(d.buf, c.Exact, 10)
		}
	}
	if g := a.Gauge; g != nil {
		d.strField("rule", g.Rule)
		d.floatField("time_avg", g.TimeAvg)
		d.floatField("min", g.Min)
		d.floatField("max", g.Max)
	}
	if a.Summary != nil {
		d.summaryOf(a.Summary)
	}
	if a.Histogram != nil {
		d.pooled(a.Histogram)
	}
	if s := a.Skew; s != nil {
		d.key("skew")
		d.open('{')
		d.intField("replicas", int64(s.Replicas))
		d.floatField("max_over_mean", s.Ratio)
		d.intField("endpoint", int64(s.Endpoint))
		d.labels(s.Labels)
		d.close('}')
	}
	d.warnings(a.Warnings)
}

// pooled writes the histogram of an aggregate.
func (d *document) pooled(h *normalize.Histogram) {
	d.intField("count", h.Count)
	if !h.NoSum {
		d.floatField("sum", h.Sum)
	}
	if !h.NoSum && h.Count != 0 {
		d.floatField("avg", h.Avg)
	}
	if h.HasRates {
		d.floatField("count_rate", h.CountRate)
	}
	if h.HasRates && !h.NoSum {
		d.floatField("sum_rate", h.SumRate)
	}
	if h.Buckets != nil {
		d.counts(bucketKeys(h.Buckets), func(i int) int64 { return h.Buckets[i].Count })
	}
	if len(h.Quantiles) > 0 {
		d.key("percentiles")
		d.open('{')
		for i, e := range h.Quantiles {
			d.estimate(i, e.Value, e.Low, e.High, summary.FlagNames(e.Flags))
		}
		d.close('}')
	}
}
