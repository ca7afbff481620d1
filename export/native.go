package export

import (
	"github.com/scrapestat/scrapestat/internal/column"
	"github.com/scrapestat/scrapestat/internal/parquetwriter"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// nativeGain follows the buckets of one native histogram through the window, as
// the statistics do. Of a series that is none it does nothing.
type nativeGain struct {
	on    bool // the series is a native histogram
	gauge bool // and not cumulative
	slots []metric.SampleID
	gain  normalize.NativeGain

	open    bool // the window has begun
	created metric.Created
}

// begin starts another series with these slots.
func (g *nativeGain) begin(d *metric.Schema, typ metric.Type, slots []int32) {
	*g = nativeGain{slots: g.slots[:0], gauge: typ == metric.GaugeHistogram}
	for _, id := range slots {
		g.slots = append(g.slots, d.Slots[id])
		g.on = g.on || d.Slots[id].Role == metric.RoleNative
	}
}

// take takes over the present sample, all of whose values are finite.
func (g *nativeGain) take(cursors []column.Cursor, inWindow bool) {
	if !g.on || g.gauge {
		return
	}
	s, restarted, buckets := normalize.NativeSample{}, false, 0
	for i := range cursors {
		c, slot := &cursors[i], &g.slots[i]
		if !c.Present {
			continue
		}
		switch slot.Role {
		case metric.RoleCount:
			s.Count = c.Value()
		case metric.RoleSum:
			s.Sum = c.Value()
		case metric.RoleCreated:
			restarted = g.created.Set(c.Value())
		case metric.RoleNative:
			buckets++
			if slot.Lower == -slot.Bound {
				s.Threshold = max(s.Threshold, slot.Bound)
			}
			if v := c.Value(); v > 0 {
				s.Spans = append(s.Spans, normalize.Interval{Lower: slot.Lower, Upper: slot.Bound, Count: v})
			}
		}
	}
	if buckets == 0 {
		return
	}
	s.Spans.Sort()
	g.gain.Take(s, restarted, inWindow)
	g.open = g.open || inWindow
}

// since returns what slot i gained in the window.
func (g *nativeGain) since(i int) (float64, bool) {
	if g.gauge || !g.open {
		return 0, false
	}
	switch slot := &g.slots[i]; slot.Role {
	case metric.RoleCount:
		return g.gain.Gain.Count, true
	case metric.RoleSum:
		return g.gain.Gain.Sum, true
	case metric.RoleNative:
		return g.gain.Gain.Spans.In(normalize.Interval{Lower: slot.Lower, Upper: slot.Bound}), true
	}
	return 0, false
}

// nativeRows appends the buckets of the present sample of a native histogram,
// what is at or below each bound of what was gained, and returns their number.
func (f *aiperfFiller) nativeRows(out *parquetwriter.Group) int {
	l, total := f.layout, f.native.gain.Gain
	le, bucket := out.Columns[l.le], out.Columns[l.bucket]
	edges := total.Spans.Edges()
	for i, n := range total.Spans.Below(edges) {
		le.Run(le.Text(boundText(&normalize.Bucket{Upper: edges[i]})), 1)
		bucket.Add(n)
	}
	all := 0.0
	for i := range total.Spans {
		all += total.Spans[i].Count
	}
	le.Run(le.Text("+Inf"), 1)
	bucket.Add(all)
	n := len(edges) + 1
	out.Columns[l.sum].Repeat(max(total.Sum, 0), n)
	out.Columns[l.count].Repeat(total.Count, n)
	return n
}
