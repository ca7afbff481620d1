package export

import (
	"math"

	"github.com/scrapestat/scrapestat/internal/column"
	"github.com/scrapestat/scrapestat/internal/gain"
	"github.com/scrapestat/scrapestat/internal/parquetwriter"
	"github.com/scrapestat/scrapestat/metric"
)

// tidyFiller turns series into rows of the tidy layout.
type tidyFiller struct {
	layout *tidyLayout
	reader column.Reader
	gain   gain.Series
	native gain.Native
	slots  []int32
	keys   []uint64 // of the labels, texts
	values []uint64
	parts  []tidyPart // by slot
}

// tidyPart is what all rows of a slot share. Texts are those of a row group.
type tidyPart struct {
	role              metric.Role // metadata has no rows
	component, leText uint64
	bound             uint64 // bits of le or quantile
	above             uint64 // bits of the lower bound of a native bucket
}

// Fill appends the rows of a series.
func (f *tidyFiller) Fill(out *parquetwriter.Group, st *column.Batch, series int, from, to int32) {
	e := &f.layout.run.Endpoints[st.Endpoint]
	f.begin(out, st, series)
	rows := 0
	for f.reader.Next() && f.reader.Poll < to {
		at := st.Times[f.reader.Poll]
		inWindow := at >= e.StartNS && at <= e.EndNS
		gains := f.gain.Grows && at <= e.EndNS && f.gain.Finite(f.reader.Cursors)
		if gains {
			f.gain.Take(f.reader.Cursors, f.reader.Poll, inWindow)
			f.native.Take(f.reader.Cursors, inWindow)
		}
		if f.reader.Poll >= from {
			rows += f.sample(out, at, inWindow, gains && inWindow)
		}
	}
	f.constants(out, st, series, rows)
}

// begin prepares what all rows of a series share.
func (f *tidyFiller) begin(out *parquetwriter.Group, st *column.Batch, series int) {
	f.slots, f.parts = column.SamplesOf(f.slots, st.Schema, series), f.parts[:0]
	f.gain.Begin(f.layout.adjustments[st.Endpoint], int32(series), st.Schema.FamilyOf(series).Type)
	for _, id := range f.slots {
		slot := &st.Schema.Slots[id]
		f.gain.Slots = append(f.gain.Slots, gain.Slot{ID: id, Role: slot.Role})
		p := tidyPart{role: slot.Role, bound: math.Float64bits(slot.Bound), above: math.Float64bits(slot.Lower)}
		if !slot.Role.Metadata() {
			p.component = out.Columns[tidyComponent].Text(slot.Role.String())
		}
		if slot.Role == metric.RoleBucket {
			p.leText = out.Columns[tidyLEText].Text(slot.Text)
		}
		f.parts = append(f.parts, p)
	}
	f.native.Begin(st.Schema, st.Schema.FamilyOf(series).Type, f.slots)
	f.reader.Open(st, f.slots)
}

// constants fills the columns in which all rows of the series are the same.
func (f *tidyFiller) constants(out *parquetwriter.Group, st *column.Batch, series, rows int) {
	if rows == 0 {
		return
	}
	e, family := &f.layout.run.Endpoints[st.Endpoint], st.Schema.FamilyOf(series)
	out.Columns[tidySeries].Run(uint64(st.FirstID+int64(series)), rows)
	text := func(column int, s string) { out.Columns[column].Run(out.Columns[column].Text(s), rows) }
	optional := func(column int, s string) {
		if s != "" {
			text(column, s)
		}
	}
	text(tidyURL, e.URL)
	optional(tidyName, e.Name)
	text(tidyMetric, family.Name)
	text(tidyType, family.Type.String())
	optional(tidyUnit, f.layout.unit(family))
	if w := f.layout.run.Window.Resolved; w != nil && e.Seconds > 0 {
		text(tidyRule, string(w.Rule))
		out.Columns[tidySeconds].Run(math.Float64bits(e.Seconds), rows)
	}
	f.keys, f.values = f.keys[:0], f.values[:0]
	for name, value := range st.Schema.Series[series].Labels.All() {
		f.keys = append(f.keys, out.Columns[tidyLabelKey].Text(name))
		f.values = append(f.values, out.Columns[tidyLabelValue].Text(value))
	}
	out.Columns[tidyLabelKey].List(f.keys, rows)
	out.Columns[tidyLabelValue].List(f.values, rows)
	total := out.Columns[tidySeries].Rows
	for _, c := range out.Columns {
		c.Null(total - c.Rows)
	}
}

// sample appends the rows of one sample, less the constant columns, and returns their number.
func (f *tidyFiller) sample(out *parquetwriter.Group, at int64, inWindow, gains bool) int {
	n, own := 0, -1.0
	for i := range f.reader.Cursors {
		c, p := &f.reader.Cursors[i], &f.parts[i]
		if p.role == metric.RoleSampleTime && c.Present {
			own = c.Value()
		}
		if p.role.Metadata() || !c.Present {
			continue
		}
		n++
		f.bound(out, p)
		out.Columns[tidyValue].Add(c.Value())
		if c.Integer {
			out.Columns[tidyUint].Run(c.Bits, 1)
		} else {
			out.Columns[tidyUint].Null(1)
		}
		d, ok := f.gain.Since(i, c)
		if f.native.On {
			d, ok = f.native.Since(i)
		}
		if gains && ok {
			out.Columns[tidyGain].Add(d)
		} else {
			out.Columns[tidyGain].Null(1)
		}
	}
	out.Columns[tidyProcess].Run(f.gain.Process(f.reader.Poll), n)
	phase := f.layout.phaseAt(at)
	if phase == "" && inWindow {
		phase = f.layout.run.Window.Phase // the final scrape
	}
	if phase == "" {
		out.Columns[tidyPhase].Null(n)
	} else {
		out.Columns[tidyPhase].Run(out.Columns[tidyPhase].Text(phase), n)
	}
	if own >= 0 && own < 1<<62 {
		out.Columns[tidySampleMS].Run(uint64(own), n)
	} else {
		out.Columns[tidySampleMS].Null(n)
	}
	flag := uint64(0)
	if inWindow {
		flag = 1
	}
	out.Columns[tidyInWindow].Run(flag, n)
	out.Columns[tidyTime].Run(uint64(at), n)
	out.Columns[tidyTimeNS].Run(uint64(at), n)
	return n
}

// bound fills the columns that tell the numbers of a sample apart.
func (f *tidyFiller) bound(out *parquetwriter.Group, p *tidyPart) {
	out.Columns[tidyComponent].Run(p.component, 1)
	le, text, quantile := out.Columns[tidyLE], out.Columns[tidyLEText], out.Columns[tidyQuantile]
	if p.role == metric.RoleNative {
		out.Columns[tidyAbove].Run(p.above, 1)
		le.Run(p.bound, 1)
		text.Null(1)
		quantile.Null(1)
		return
	}
	out.Columns[tidyAbove].Null(1)
	switch p.role {
	case metric.RoleBucket:
		le.Run(p.bound, 1)
		text.Run(p.leText, 1)
		quantile.Null(1)
	case metric.RoleQuantile:
		le.Null(1)
		text.Null(1)
		quantile.Run(p.bound, 1)
	default:
		le.Null(1)
		text.Null(1)
		quantile.Null(1)
	}
}
