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
		d.aggregate(&d.run.Aggregates[i])
	}
	d.close(']')
	d.close('}')
}

func (d *document) aggregate(a *summary.Aggregate) {
	m := &d.run.Metrics[a.Metric]
	d.open('{')
	d.strField("metric", m.Name)
	d.strField("type", m.Type.String())
	d.labels(a.Labels)
	d.intField("series", int64(a.Series))
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
	if a.Summary != nil {
		d.summaryOf(a.Summary)
	}
	if a.Histogram != nil {
		d.pooled(a.Histogram)
	}
	d.warnings(a.Warnings)
	d.close('}')
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
