package lake

import (
	"math"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/internal/column"
	"github.com/scrapestat/scrapestat/internal/gain"
	"github.com/scrapestat/scrapestat/internal/parquetwriter"
	"github.com/scrapestat/scrapestat/metric"
)

// filler turns the samples of entries into rows.
type filler struct {
	reader  column.Reader
	gain    gain.Series
	native  gain.Native
	slots   []int32
	place   []int // by slot: which bucket of the entry it is, or -1
	buckets []uint64
	floats  []uint64
}

// fill appends the rows of an entry to the groups of their days.
func (f *filler) fill(groupOf func(ns int64) *parquetwriter.Group, e *entry, id int64, b *column.Batch) {
	t, typ := e.target, e.family().Type
	f.slots = column.SamplesOf(f.slots, b.Schema, e.series)
	f.gain.Begin(t.adjustment, int32(e.series), typ)
	f.place = f.place[:0]
	for _, slot := range f.slots {
		f.gain.Slots = append(f.gain.Slots, gain.Slot{ID: slot, Role: b.Schema.Slots[slot].Role})
		at := -1
		for i, s := range e.buckets() {
			if s == slot {
				at = i
			}
		}
		f.place = append(f.place, at)
	}
	f.native.Begin(b.Schema, typ, f.slots)
	f.reader.Open(b, f.slots)
	restarts := map[int64]bool{}
	verdict := continuity.Verdict{}
	if a := t.adjustment; a != nil {
		for _, r := range a.Restarts {
			if r.Series < 0 || int(r.Series) == e.series {
				restarts[r.AtNS] = true
			}
		}
		verdict = a.Tracker.Verdict(e.series, e.seen().firstNS-1, t.atNS)
	}
	from, to := e.stretch()
	refused, total := verdict.Status == continuity.Refused, 0.0
	for f.reader.Next() && f.reader.Poll < to {
		if t.adjustment.Held(f.reader.Poll) {
			continue
		}
		gains := f.gain.Grows && f.gain.Finite(f.reader.Cursors)
		if gains {
			f.gain.Take(f.reader.Cursors, f.reader.Poll, true)
			f.native.Take(f.reader.Cursors, true)
		}
		if f.reader.Poll < from {
			continue
		}
		at := b.Times[f.reader.Poll]
		g := groupOf(at)
		g.Columns[colSeries].Run(uint64(id), 1)
		g.Columns[colTime].Run(uint64(at), 1)
		if d, ok := f.sample(g, gains && !refused, len(e.buckets())); ok {
			total = d
		}
		reset := uint64(0)
		if restarts[at] {
			reset = 1
		}
		g.Columns[colReset].Run(reset, 1)
	}
	e.status = verdict.Increase(total).Status.String()
}

// sample appends the numbers of the present sample, and returns the gain of its key.
func (f *filler) sample(g *parquetwriter.Group, gains bool, buckets int) (key float64, ok bool) {
	f.buckets, f.floats = append(f.buckets[:0], make([]uint64, buckets)...), f.floats[:0]
	var value, rise, count, sum *float64
	whole := true
	for i := range f.reader.Cursors {
		c, role := &f.reader.Cursors[i], f.gain.Slots[i].Role
		if !c.Present || role.Metadata() {
			continue
		}
		if role == metric.RoleValue {
			v := c.Value()
			value = &v
		}
		d, known := f.gain.Since(i, c)
		if f.native.On {
			d, known = f.native.Since(i)
		}
		if !gains || !known {
			continue
		}
		switch role {
		case metric.RoleValue:
			rise = &d
		case metric.RoleCount:
			count = &d
		case metric.RoleSum:
			sum = &d
		case metric.RoleBucket:
			if at := f.place[i]; at >= 0 {
				f.buckets[at] = math.Float64bits(d)
				whole = whole && d == math.Trunc(d) && math.Abs(d) < 1<<53
			}
		}
	}
	for i := range f.gain.Slots { // a native bucket that is absent is empty
		if d, known := f.native.Since(i); gains && f.native.On && known && f.gain.Slots[i].Role == metric.RoleNative {
			f.floats = append(f.floats, math.Float64bits(d))
		}
	}
	double(g.Columns[colValue], value)
	double(g.Columns[colGain], rise)
	double(g.Columns[colSum], sum)
	if count != nil && *count == math.Trunc(*count) && math.Abs(*count) < 1<<53 {
		g.Columns[colCount].Run(uint64(int64(*count)), 1)
	} else {
		g.Columns[colCount].Null(1)
	}
	f.lists(g, gains, whole)
	if rise == nil {
		rise = count
	}
	if rise == nil {
		return 0, false
	}
	return *rise, true
}

// lists appends the buckets.
func (f *filler) lists(g *parquetwriter.Group, gains, whole bool) {
	ints, floats := f.buckets[:0], f.floats
	switch {
	case !gains:
	case whole:
		ints = f.buckets
		for i, bits := range ints {
			ints[i] = uint64(int64(math.Float64frombits(bits)))
		}
	default:
		floats = f.buckets
	}
	g.Columns[colBuckets].List(ints, 1)
	g.Columns[colBucketsF].List(floats, 1)
}

func double(c *parquetwriter.Chunk, v *float64) {
	if v == nil {
		c.Null(1)
		return
	}
	c.Add(*v)
}
