package export

import (
	"github.com/parquet-go/parquet-go"

	"github.com/scrapestat/scrapestat/metric"
)

// tidyFiller turns series into rows of the tidy layout.
type tidyFiller struct {
	layout *tidyLayout
	reader seriesReader
	gain   gain
	slots  []int32
	fixed  [tidyLeaves]parquet.Value // what all rows of a series have
	keys   []parquet.Value           // of the labels
	values []parquet.Value
	parts  []tidyPart // by slot
	rows   int        // of the series whose fixed columns are still to be added
}

// tidyPart is what all rows of a slot share.
type tidyPart struct {
	skip                            bool // creation times have no rows
	component, le, leText, quantile parquet.Value
}

// fill appends the rows of a series.
func (f *tidyFiller) fill(out *tableGroup, st *stripe, series int, from, to int32) error {
	e := &f.layout.run.Endpoints[st.endpoint]
	f.begin(st, series)
	counted := f.gain.cumulative()
	for f.reader.next() && f.reader.poll < to {
		at := st.times[f.reader.poll]
		inWindow := at >= e.StartNS && at <= e.EndNS
		gains := counted && at <= e.EndNS && f.finite()
		if gains {
			f.gain.take(f.reader.cursors, inWindow, before(st.times, f.reader.poll))
		}
		if f.reader.poll < from {
			continue
		}
		f.sample(out, at, inWindow, gains && inWindow)
		if out.pending+f.rows >= tableBlockRows {
			f.end(out)
			if err := out.flush(); err != nil {
				return err
			}
		}
	}
	f.end(out)
	return nil
}

// before is the time of the poll before, 0 when there is none.
func before(times []int64, poll int32) int64 {
	if poll == 0 {
		return 0
	}
	return times[poll-1]
}

// begin prepares what all rows of a series share.
func (f *tidyFiller) begin(st *stripe, series int) {
	family := st.dict.FamilyOf(series)
	f.slots, f.parts = slotsOf(f.slots, st.dict, series), f.parts[:0]
	f.gain.begin(family.Type)
	for _, id := range f.slots {
		slot := &st.dict.Slots[id]
		f.gain.slots = append(f.gain.slots, gainSlot{role: slot.Role})
		f.parts = append(f.parts, newTidyPart(slot))
	}
	f.reader.open(st, f.slots)

	e := &f.layout.run.Endpoints[st.endpoint]
	f.fixed[tidySeries] = someValue(tidySeries, parquet.Int64Value(st.firstID+int64(series)))
	f.fixed[tidyURL] = someValue(tidyURL, textValue(e.URL))
	f.fixed[tidyName] = optionalText(tidyName, e.Name)
	f.fixed[tidyMetric] = someValue(tidyMetric, textValue(family.Name))
	f.fixed[tidyType] = someValue(tidyType, textValue(family.Type.String()))
	f.fixed[tidyUnit] = optionalText(tidyUnit, f.layout.unit(family))
	f.keys, f.values = f.keys[:0], f.values[:0]
	for name, value := range st.dict.Series[series].Labels.All() {
		repetition := min(1, len(f.keys))
		f.keys = append(f.keys, textValue(name).Level(repetition, 1, tidyLabelKey))
		f.values = append(f.values, textValue(value).Level(repetition, 1, tidyLabelValue))
	}
	if len(f.keys) == 0 {
		f.keys, f.values = append(f.keys, noValue(tidyLabelKey)), append(f.values, noValue(tidyLabelValue))
	}
}

func newTidyPart(slot *metric.Slot) tidyPart {
	p := tidyPart{skip: slot.Role == metric.RoleCreated, component: someValue(tidyComponent, textValue(slot.Role.String())),
		le: noValue(tidyLE), leText: noValue(tidyLEText), quantile: noValue(tidyQuantile)}
	switch slot.Role {
	case metric.RoleBucket:
		p.le = someValue(tidyLE, parquet.DoubleValue(slot.Bound))
		p.leText = someValue(tidyLEText, textValue(slot.Text))
	case metric.RoleQuantile:
		p.quantile = someValue(tidyQuantile, parquet.DoubleValue(slot.Bound))
	}
	return p
}

// optionalText is null when s is empty.
func optionalText(column int, s string) parquet.Value {
	if s == "" {
		return noValue(column)
	}
	return someValue(column, textValue(s))
}

// finite says that no value of the sample is NaN or infinite. A creation time
// does not count.
func (f *tidyFiller) finite() bool {
	for i := range f.reader.cursors {
		if c := &f.reader.cursors[i]; c.present && !f.parts[i].skip && !c.finite() {
			return false
		}
	}
	return true
}

// sample appends the rows of one sample, less the fixed columns.
func (f *tidyFiller) sample(out *tableGroup, at int64, inWindow, gains bool) {
	n := 0
	for i := range f.reader.cursors {
		c, p := &f.reader.cursors[i], &f.parts[i]
		if p.skip || !c.present {
			continue
		}
		n++
		out.add(tidyComponent, p.component)
		out.add(tidyLE, p.le)
		out.add(tidyLEText, p.leText)
		out.add(tidyQuantile, p.quantile)
		out.add(tidyValue, someValue(tidyValue, parquet.DoubleValue(c.value())))
		exact, delta := noValue(tidyUint), noValue(tidyDelta)
		if c.integer {
			exact = someValue(tidyUint, parquet.Int64Value(int64(c.bits)))
		}
		if gains {
			if d, ok := f.gain.since(i, c); ok {
				delta = someValue(tidyDelta, parquet.DoubleValue(d))
			}
		}
		out.add(tidyUint, exact)
		out.add(tidyDelta, delta)
	}
	phase := f.layout.phaseAt(at)
	if phase == "" && inWindow {
		phase = f.layout.run.Window.Phase // the final scrape
	}
	out.repeat(tidyPhase, n, optionalText(tidyPhase, phase))
	out.repeat(tidyInWindow, n, someValue(tidyInWindow, parquet.BooleanValue(inWindow)))
	out.repeat(tidyTime, n, someValue(tidyTime, parquet.Int64Value(at)))
	out.repeat(tidyTimeNS, n, someValue(tidyTimeNS, parquet.Int64Value(at)))
	f.rows += n
}

// end adds the fixed columns of the rows of the series.
func (f *tidyFiller) end(out *tableGroup) {
	for column := tidySeries; column <= tidyUnit; column++ {
		out.repeat(column, f.rows, f.fixed[column])
	}
	for range f.rows {
		for i := range f.keys {
			out.add(tidyLabelKey, f.keys[i])
			out.add(tidyLabelValue, f.values[i])
		}
	}
	out.pending += f.rows
	f.rows = 0
}
