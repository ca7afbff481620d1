package export

import (
	"math"

	"github.com/scrapestat/scrapestat/internal/column"
	"github.com/scrapestat/scrapestat/metric"
)

// gain follows one series through the window and tells what each of its slots gained since the reference, as the
// statistics count it: under the default mode a fall is a restart from zero, of a histogram as a whole, and so is a
// changed creation time; under clamp it is the difference to the reference, of counters never below 0.
type gain struct {
	clamp bool

	typ     metric.Type
	slots   []gainSlot
	open    bool // the window has begun
	created metric.Created
}

// gainSlot is the state of one slot, in the form that its values have.
type gainSlot struct {
	role  metric.Role
	seen  bool // there is a sample
	float metric.Cumulative[float64]
	whole metric.Cumulative[uint64]
}

// begin starts another series.
func (g *gain) begin(typ metric.Type) {
	*g = gain{clamp: g.clamp, typ: typ, slots: g.slots[:0]}
}

// cumulative reports whether the slots of the series only grow.
func (g *gain) cumulative() bool {
	return g.typ == metric.Counter || g.typ == metric.Histogram || g.typ == metric.Summary
}

// counts reports whether the slot has gains.
func (s *gainSlot) counts() bool {
	return s.role != metric.RoleQuantile && !s.role.Metadata() && s.role != metric.RoleNative
}

// monotone reports whether a fall of the slot is a restart: the sum of a histogram also
// falls when a negative value is observed.
func (s *gainSlot) monotone() bool { return s.counts() && s.role != metric.RoleSum }

// take takes over the present sample, all of whose values are finite. beforeNS is
// the time of the poll before, 0 when there was none.
func (g *gain) take(cursors []column.Cursor, inWindow bool, beforeNS int64) {
	if inWindow && !g.open {
		g.open = true
		for i := range g.slots {
			g.slots[i].float.Open()
			g.slots[i].whole.Open()
		}
	}
	restart := g.restarted(cursors) && !g.clamp && g.open
	for i := range cursors {
		s, c := &g.slots[i], &cursors[i]
		if !c.Present || !s.counts() {
			continue
		}
		if c.Integer {
			follow(&s.whole, c.Bits, s.seen, restart, true)
			if g.open && !s.seen && g.fromZero(beforeNS) {
				s.whole.Ref = 0
			}
		} else {
			follow(&s.float, c.Value(), s.seen, restart, s.monotone())
		}
		s.seen = true
	}
}

// follow takes the next sample of a slot.
func follow[T float64 | uint64](cum *metric.Cumulative[T], v T, seen, restart, monotone bool) {
	switch {
	case !seen:
		cum.Begin(v)
	case restart:
		cum.Restart(cum.Last, 0)
		if monotone { // negative values of a sum count; added one by one, as always
			cum.Restart(0, v)
		}
	}
	cum.Last = v
}

// restarted reports whether the series began anew since the last sample: its creation time changed, or a slot fell.
func (g *gain) restarted(cursors []column.Cursor) bool {
	fell := false
	for i := range cursors {
		s, c := &g.slots[i], &cursors[i]
		switch {
		case !c.Present:
		case s.role == metric.RoleCreated:
			g.created.Set(c.Value())
		case !s.seen || !s.monotone():
		case c.Integer:
			fell = fell || c.Bits < s.whole.Last
		default:
			fell = fell || c.Value() < s.float.Last
		}
	}
	fell, g.created.Moved = fell || g.created.Moved, false
	return fell
}

// fromZero reports whether a counter which is new was zero at the poll before, as
// its creation time tells; package normalize has the same rule.
func (g *gain) fromZero(beforeNS int64) bool {
	return beforeNS != 0 && !g.clamp && g.typ == metric.Counter && g.created.Since(beforeNS)
}

// since returns what slot i gained up to the sample taken last.
func (g *gain) since(i int, c *column.Cursor) (float64, bool) {
	s := &g.slots[i]
	if !g.open || !s.seen || !s.counts() {
		return 0, false
	}
	never := g.clamp && g.typ == metric.Counter // below 0
	if c.Integer {
		d := s.whole.Value() - s.whole.Ref
		switch {
		case !g.clamp || s.whole.Last >= s.whole.Ref:
			return float64(d), true
		case never:
			return 0, true
		}
		return -float64(-d), true
	}
	d := s.float.Value() - s.float.Ref
	if never && d < 0 {
		d = 0
	}
	return d, !math.IsInf(d, 0)
}
