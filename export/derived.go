package export

import (
	"strconv"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/summary"
)

// derived writes the derived quantities of endpoints; nothing when there are
// none. A quantity without a value has none: its status says why.
func (d *document) derived() {
	if len(d.run.Derived) > 0 {
		d.quantities("derived", d.run.Derived)
	}
}

// fleet writes the quantities of several endpoints together, and of the groups
// that were asked for; nothing where there is but one endpoint.
func (d *document) fleet() {
	if !hasFleet(d.run) {
		return
	}
	d.key("fleet")
	d.open('[')
	for i := range d.run.Combined {
		t := &d.run.Combined[i]
		d.elem()
		d.open('{')
		d.labels(t.Labels)
		d.key("endpoints")
		d.openInline('[')
		for _, e := range t.Endpoints {
			d.elem()
			d.buf = strconv.AppendInt(d.buf, int64(e), 10)
		}
		d.close(']')
		d.quantities("derived", t.Derived)
		d.close('}')
	}
	d.close(']')
}

// hasFleet says that the fleet tells more than its one endpoint does.
func hasFleet(r *summary.Run) bool {
	return len(r.Combined) > 1 || len(r.Combined) == 1 && len(r.Combined[0].Endpoints) > 1
}

func (d *document) quantities(name string, list []summary.Derived) {
	d.key(name)
	d.open('[')
	for i := range list {
		q := &list[i]
		d.elem()
		d.open('{')
		d.strField("pack", q.Pack)
		d.strField("name", q.Name)
		if q.Unit != "" {
			d.strField("unit", q.Unit)
		}
		if q.Canonical != "" {
			d.strField("canonical", q.Canonical)
		}
		if q.Category != catalog.Other {
			d.strField("question", q.Category.String())
		}
		if q.Better != catalog.Neutral {
			d.strField("better", q.Better.String())
		}
		if q.Headline {
			d.key("headline")
			d.bool(true)
		}
		if q.Endpoint >= 0 {
			d.intField("endpoint", int64(q.Endpoint))
		}
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
