package export

import "github.com/scrapestat/scrapestat/normalize"

// distribution writes the exact statistics of single events; nothing without
// them.
func (d *document) distribution(x *normalize.Distribution) {
	if x == nil {
		return
	}
	d.key("distribution")
	d.open('{')
	d.exact("lines", &x.Lines)
	if x.Requests != nil {
		d.exact("requests", x.Requests)
	}
	d.close('}')
}

func (d *document) exact(name string, e *normalize.Exact) {
	d.key(name)
	d.openInline('{')
	d.intField("count", int64(e.N))
	d.floatField("sum", e.Sum)
	d.floatField("avg", e.Avg)
	d.floatField("min", e.Min)
	d.floatField("max", e.Max)
	d.floatField("p50", e.P50)
	d.floatField("p90", e.P90)
	d.floatField("p95", e.P95)
	d.floatField("p99", e.P99)
	d.floatField("p99.9", e.P999)
	d.close('}')
}
