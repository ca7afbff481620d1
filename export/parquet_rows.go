package export

import (
	"math"

	"github.com/parquet-go/parquet-go"

	"github.com/scrapestat/scrapestat/metric"
)

// aiperfFiller turns series into rows of AIPerf's layout.
type aiperfFiller struct {
	layout  *aiperfLayout
	reader  seriesReader
	slots   []int32
	ref     []reference     // by slot
	unknown int             // slots that ref does not have
	fixed   []parquet.Value // by column: what all rows of the series have
	roles   []metric.Role   // by slot
	les     []parquet.Value // by slot, of buckets
	rows    int             // of the series whose fixed columns are still to be added
}

// reference is the value that increases of a slot are counted from.
type reference struct {
	bits  uint64
	known bool
}

// delta returns the increase since the reference, never below 0. Integers are
// subtracted as such, so that nothing is lost beyond 2^53.
func (r reference) delta(c *slotCursor) float64 {
	if c.integer {
		if c.bits < r.bits {
			return 0
		}
		return float64(c.bits - r.bits)
	}
	return max(c.value()-math.Float64frombits(r.bits), 0)
}

// fill appends the rows of a series. A sample with a value that is not finite is
// no sample, for a histogram as a whole.
func (f *aiperfFiller) fill(out *tableGroup, st *stripe, series int, from, to int32) error {
	family := st.dict.FamilyOf(series)
	f.begin(st, series)
	first, _ := f.layout.polls(st)
	known := false
	for f.reader.next() && f.reader.poll < to {
		if !f.finite() {
			continue
		}
		if f.reader.poll < first || !known {
			f.remember()
			known = true
		} else if f.unknown > 0 {
			f.complement()
		}
		if f.reader.poll < from {
			continue
		}
		at := someValue(aiperfTime, parquet.Int64Value(st.times[f.reader.poll]))
		switch family.Type {
		case metric.Histogram:
			f.histogram(out, at)
		case metric.Counter:
			f.scalar(out, at, f.ref[0].delta(&f.reader.cursors[0]))
		default:
			f.scalar(out, at, f.reader.cursors[0].value())
		}
		if out.pending+f.rows >= tableBlockRows {
			if err := f.complete(out); err != nil {
				return err
			}
		}
	}
	f.end(out)
	return nil
}

// begin prepares what all rows of a series share.
func (f *aiperfFiller) begin(st *stripe, series int) {
	l, family := f.layout, st.dict.FamilyOf(series)
	f.slots, f.les, f.roles = slotsOf(f.slots, st.dict, series), f.les[:0], f.roles[:0]
	kept := f.slots[:0]
	for _, id := range f.slots {
		slot := &st.dict.Slots[id]
		if (family.Type == metric.Histogram) == (slot.Role == metric.RoleValue) || slot.Role == metric.RoleCreated || slot.Role == metric.RoleQuantile {
			continue
		}
		kept = append(kept, id)
		f.roles = append(f.roles, slot.Role)
		f.les = append(f.les, someValue(l.le, textValue(slot.Text)))
	}
	f.slots = kept
	f.ref = append(f.ref[:0], make([]reference, len(kept))...)
	f.reader.open(st, kept)
	f.constants(st, series)
}

func (f *aiperfFiller) constants(st *stripe, series int) {
	l, family := f.layout, st.dict.FamilyOf(series)
	f.fixed = f.fixed[:0]
	for i := range l.columns {
		f.fixed = append(f.fixed, noValue(i))
	}
	text := func(column int, s string) { f.fixed[column] = someValue(column, textValue(s)) }
	text(aiperfURL, l.run.Endpoints[st.endpoint].URL)
	text(aiperfName, family.Name)
	text(aiperfType, family.Type.String())
	text(aiperfHelp, family.Help)
	if unit := l.metrics[st.endpoint][series].Unit; unit != "" {
		text(aiperfUnit, unit)
	}
	for name, value := range st.dict.Series[series].Labels.All() {
		if column, ok := l.labels[validText(name)]; ok {
			text(column, value)
		}
	}
}

func (f *aiperfFiller) finite() bool {
	for i := range f.reader.cursors {
		if c := &f.reader.cursors[i]; c.present && !c.finite() {
			return false
		}
	}
	return true
}

// remember makes the present sample the reference.
func (f *aiperfFiller) remember() {
	f.unknown = 0
	for i := range f.ref {
		c := &f.reader.cursors[i]
		f.ref[i] = reference{c.bits, c.present}
		if !c.present {
			f.unknown++
		}
	}
}

// complement adds slots that the reference does not have: they are counted from
// their first sample in the window.
func (f *aiperfFiller) complement() {
	for i := range f.ref {
		if c := &f.reader.cursors[i]; c.present && !f.ref[i].known {
			f.ref[i] = reference{c.bits, true}
			f.unknown--
		}
	}
}

// since returns the increase of a slot, 0 when the sample does not have it.
func (f *aiperfFiller) since(i int) float64 {
	c := &f.reader.cursors[i]
	if !c.present {
		return 0
	}
	return f.ref[i].delta(c)
}

func (f *aiperfFiller) scalar(out *tableGroup, at parquet.Value, v float64) {
	l := f.layout
	out.add(aiperfTime, at)
	out.add(l.value, someValue(l.value, parquet.DoubleValue(v)))
	out.add(l.sum, noValue(l.sum))
	out.add(l.count, noValue(l.count))
	out.add(l.le, noValue(l.le))
	out.add(l.bucket, noValue(l.bucket))
	f.rows++
}

func (f *aiperfFiller) histogram(out *tableGroup, at parquet.Value) {
	l := f.layout
	n, sum, count := 0, 0.0, 0.0
	for i, role := range f.roles {
		switch {
		case role == metric.RoleSum:
			sum = f.since(i)
		case role == metric.RoleCount:
			count = f.since(i)
		case f.reader.cursors[i].present:
			out.add(l.le, f.les[i])
			out.add(l.bucket, someValue(l.bucket, parquet.DoubleValue(f.since(i))))
			n++
		}
	}
	out.repeat(aiperfTime, n, at)
	out.repeat(l.value, n, noValue(l.value))
	out.repeat(l.sum, n, someValue(l.sum, parquet.DoubleValue(sum)))
	out.repeat(l.count, n, someValue(l.count, parquet.DoubleValue(count)))
	f.rows += n
}

// end adds the fixed columns of the rows of the series.
func (f *aiperfFiller) end(out *tableGroup) {
	for i := range f.fixed {
		if i != aiperfTime && i < f.layout.value {
			out.repeat(i, f.rows, f.fixed[i])
		}
	}
	out.pending += f.rows
	f.rows = 0
}

func (f *aiperfFiller) complete(out *tableGroup) error {
	f.end(out)
	return out.flush()
}
