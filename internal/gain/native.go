package gain

import (
	"github.com/scrapestat/scrapestat/internal/column"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// Native follows the buckets of one native histogram through the window, as
// the statistics do. Of a series that is none it does nothing.
type Native struct {
	On bool // the series is a native histogram

	gauge bool // and not cumulative
	slots []metric.SampleID
	gain  normalize.NativeGain

	open    bool // the window has begun
	created metric.Created
}

// Begin starts another series with these slots.
func (g *Native) Begin(d *metric.Schema, typ metric.Type, slots []int32) {
	*g = Native{slots: g.slots[:0], gauge: typ == metric.GaugeHistogram}
	for _, id := range slots {
		g.slots = append(g.slots, d.Slots[id])
		g.On = g.On || d.Slots[id].Role == metric.RoleNative
	}
}

// Take takes over the present sample, all of whose values are finite.
func (g *Native) Take(cursors []column.Cursor, inWindow bool) {
	if !g.On || g.gauge {
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

// Since returns what slot i gained in the window.
func (g *Native) Since(i int) (float64, bool) {
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

// Total is what the whole histogram gained in the window.
func (g *Native) Total() *normalize.NativeSample { return &g.gain.Gain }
