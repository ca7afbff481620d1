package export

import (
	"math"

	"github.com/scrapestat/scrapestat/internal/column"
	"github.com/scrapestat/scrapestat/internal/gain"
	"github.com/scrapestat/scrapestat/internal/parquetwriter"
	"github.com/scrapestat/scrapestat/metric"
)

// aiperfFiller turns series into rows of AIPerf's layout.
type aiperfFiller struct {
	layout  *aiperfLayout
	reader  column.Reader
	slots   []int32
	ref     []reference   // by slot
	unknown int           // slots that ref does not have
	roles   []metric.Role // by slot
	les     []uint64      // by slot, of buckets: the text
	native  gain.Native
}

// reference is the value that increases of a slot are counted from.
type reference struct {
	bits  uint64
	known bool
}

// delta returns the increase since the reference, never below 0. Integers are
// subtracted as such, so that nothing is lost beyond 2^53.
func (r reference) delta(c *column.Cursor) float64 {
	if c.Integer {
		if c.Bits < r.bits {
			return 0
		}
		return float64(c.Bits - r.bits)
	}
	return max(c.Value()-math.Float64frombits(r.bits), 0)
}

// Fill appends the rows of a series. A sample with a value that is not finite is no sample, for a histogram as a whole.
func (f *aiperfFiller) Fill(out *parquetwriter.Group, st *column.Batch, series int, from, to int32) {
	typ := st.Schema.FamilyOf(series).Type
	f.begin(out, st, series)
	first, _ := f.layout.Polls(st)
	known, rows := false, 0
	for f.reader.Next() && f.reader.Poll < to {
		if !f.finite() {
			continue
		}
		f.native.Take(f.reader.Cursors, f.reader.Poll >= first)
		if f.reader.Poll < first || !known {
			f.remember()
			known = true
		} else if f.unknown > 0 {
			f.complement()
		}
		if f.reader.Poll < from {
			continue
		}
		n := 1
		switch {
		case f.native.On:
			n = f.nativeRows(out)
		case typ == metric.Histogram:
			n = f.histogram(out)
		case typ == metric.Counter:
			out.Columns[f.layout.value].Add(f.ref[0].delta(&f.reader.Cursors[0]))
		default:
			out.Columns[f.layout.value].Add(f.reader.Cursors[0].Value())
		}
		out.Columns[aiperfTime].Run(uint64(st.Times[f.reader.Poll]), n)
		rows += n
	}
	f.constants(out, st, series, rows)
}

// begin prepares what all rows of a series share.
func (f *aiperfFiller) begin(out *parquetwriter.Group, st *column.Batch, series int) {
	family := st.Schema.FamilyOf(series)
	f.slots, f.les, f.roles = column.SamplesOf(f.slots, st.Schema, series), f.les[:0], f.roles[:0]
	kept := f.slots[:0]
	for _, id := range f.slots {
		slot := &st.Schema.Slots[id]
		if (family.Type == metric.Histogram) == (slot.Role == metric.RoleValue) || slot.Role.Metadata() ||
			slot.Role == metric.RoleQuantile {
			continue
		}
		le := uint64(0)
		if slot.Role == metric.RoleBucket {
			le = out.Columns[f.layout.le].Text(slot.Text)
		}
		kept, f.roles, f.les = append(kept, id), append(f.roles, slot.Role), append(f.les, le)
	}
	f.slots = kept
	f.ref = append(f.ref[:0], make([]reference, len(kept))...)
	f.native.Begin(st.Schema, family.Type, kept)
	f.reader.Open(st, kept)
}

// constants fills the columns in which all rows of the series are the same.
func (f *aiperfFiller) constants(out *parquetwriter.Group, st *column.Batch, series, rows int) {
	if rows == 0 {
		return
	}
	l, family := f.layout, st.Schema.FamilyOf(series)
	text := func(column int, s string) { out.Columns[column].Run(out.Columns[column].Text(s), rows) }
	text(aiperfURL, l.run.Endpoints[st.Endpoint].URL)
	text(aiperfName, family.Name)
	text(aiperfType, family.Type.String())
	text(aiperfHelp, family.Help)
	if unit := l.metrics[st.Endpoint][series].Unit; unit != "" {
		text(aiperfUnit, unit)
	}
	for name, value := range st.Schema.Series[series].Labels.All() {
		if column, ok := l.labels[parquetwriter.ValidText(name)]; ok {
			text(column, value)
		}
	}
	total := out.Columns[aiperfTime].Rows
	for _, c := range out.Columns {
		c.Null(total - c.Rows)
	}
}

func (f *aiperfFiller) finite() bool {
	for i := range f.reader.Cursors {
		if c := &f.reader.Cursors[i]; c.Present && !c.Finite() {
			return false
		}
	}
	return true
}

// remember makes the present sample the reference.
func (f *aiperfFiller) remember() {
	f.unknown = 0
	for i := range f.ref {
		c := &f.reader.Cursors[i]
		f.ref[i] = reference{c.Bits, c.Present}
		if !c.Present {
			f.unknown++
		}
	}
}

// complement adds slots that the reference does not have: they are counted from their first sample in the window.
func (f *aiperfFiller) complement() {
	for i := range f.ref {
		if c := &f.reader.Cursors[i]; c.Present && !f.ref[i].known {
			f.ref[i] = reference{c.Bits, true}
			f.unknown--
		}
	}
}

// since returns the increase of a slot, 0 when the sample does not have it.
func (f *aiperfFiller) since(i int) float64 {
	c := &f.reader.Cursors[i]
	if !c.Present {
		return 0
	}
	return f.ref[i].delta(c)
}

// histogram appends the buckets of a sample and returns their number.
func (f *aiperfFiller) histogram(out *parquetwriter.Group) int {
	l := f.layout
	le, bucket := out.Columns[l.le], out.Columns[l.bucket]
	n, sum, count := 0, 0.0, 0.0
	for i, role := range f.roles {
		switch {
		case role == metric.RoleSum:
			sum = f.since(i)
		case role == metric.RoleCount:
			count = f.since(i)
		case f.reader.Cursors[i].Present:
			le.Run(f.les[i], 1)
			bucket.Add(f.since(i))
			n++
		}
	}
	out.Columns[l.sum].Repeat(sum, n)
	out.Columns[l.count].Repeat(count, n)
	return n
}
