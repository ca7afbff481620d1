package export

import (
	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/summary"
)

// derived writes the derived quantities; nothing when there are none. A quantity
// without a value has none: its status says why.
func (d *document) derived() {
	if len(d.run.Derived) == 0 {
		return
	}
	d.key("derived")
	d.open('[')
	for i := range d.run.Derived {
		q := &d.run.Derived[i]
		d.elem()
		d.open('{')
		d.strField("pack", q.Pack)
		d.strField("name", q.Name)
		if q.Unit != "" {
			d.strField("unit", q.Unit)
		}
		d.intField("endpoint", int64(q.Endpoint))
		d.labels(q.Labels)
		d.strField("status", q.Status.String())
		d.derivedValue(q.Status, q.Value, q.Shown)
		if q.HasParts {
			d.floatField("numerator", q.Numerator)
			d.floatField("denominator", q.Denominator)
		}
		d.stringList("families", q.Families)
		if len(q.Flags) > 0 {
			d.stringList("flags", q.Flags)
		}
		d.derivedSlices(q.Slices)
		d.close('}')
	}
	d.close(']')
}

// derivedValue writes a value, and what is shown for it where that differs.
func (d *document) derivedValue(s catalog.Status, value, shown float64) {
	if !s.Defined() {
		return
	}
	d.floatField("value", value)
	if shown != value {
		d.floatField("shown", shown)
	}
}

func (d *document) derivedSlices(slices []summary.DerivedSlice) {
	if len(slices) == 0 {
		return
	}
	d.key("timeslices")
	d.open('[')
	for i := range slices {
		s := &slices[i]
		d.elem()
		d.openInline('{')
		d.intField("start_ns", s.StartNS)
		d.intField("end_ns", s.EndNS)
		if s.Partial {
			d.key("is_complete")
			d.bool(false)
		}
		d.strField("status", s.Status.String())
		d.derivedValue(s.Status, s.Value, s.Shown)
		d.close('}')
	}
	d.close(']')
}
