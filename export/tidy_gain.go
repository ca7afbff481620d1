package export

import (
	"math"

	"github.com/scrapestat/scrapestat/metric"
)

// gain follows one series through the window and says what each of its slots
// gained since the reference, as the statistics count it: under the default mode
// a fall is a restart from zero, of a histogram as a whole, and so is a changed
// creation time; under clamp it is the difference to the reference, of counters
// never below 0.
type gain struct {
	clamp bool

	typ     metric.Type
	slots   []gainSlot
	open    bool   // the window has begun
	restart bool   // the creation time changed since the last sample
	created uint64 // bits of the creation time
	dated   bool   // created is known
}

// gainSlot is the state of one slot. Integers are kept as such; they wrap around,
// which differences do not notice.
type gainSlot struct {
	role      metric.Role
	prev      float64 // the last sample
	base, ref float64 // what earlier lives had reached; what gains count from
	iprev     uint64
	ibase     uint64
	iref      uint64
	seen      bool // there is a last sample
	known     bool // there is a reference
}

// begin starts another series.
func (g *gain) begin(typ metric.Type) {
	*g = gain{clamp: g.clamp, typ: typ, slots: g.slots[:0]}
}

// cumulative says that the slots of such a series only grow.
func (g *gain) cumulative() bool {
	return g.typ == metric.Counter || g.typ == metric.Histogram || g.typ == metric.Summary
}

// counts says that the slot has gains.
func (s *gainSlot) counts() bool {
	return s.role != metric.RoleQuantile && !s.role.Metadata() && s.role != metric.RoleNative
}

// monotone says that a fall of the slot is a restart: the sum of a histogram also
// falls when a negative value is observed.
func (s *gainSlot) monotone() bool { return s.counts() && s.role != metric.RoleSum }

// take takes over the present sample, all of whose values are finite. beforeNS is
// the time of the poll before, 0 when there was none.
func (g *gain) take(cursors []slotCursor, inWindow bool, beforeNS int64) {
	if inWindow && !g.open {
		g.open = true
		for i := range g.slots {
			s := &g.slots[i]
			s.known = s.seen
			s.ref, s.iref = s.prev, s.iprev
		}
	}
	fell := g.date(cursors)
	for i := range cursors {
		s, c := &g.slots[i], &cursors[i]
		if c.present && s.seen && s.monotone() && s.falls(c) {
			fell = true
		}
	}
	for i := range cursors {
		s, c := &g.slots[i], &cursors[i]
		if !c.present || !s.counts() {
			continue
		}
		if fell && !g.clamp && g.open && s.seen {
			s.again(c)
		}
		s.prev, s.iprev, s.seen = c.value(), c.bits, true
		if g.open && !s.known {
			s.known, s.ref, s.iref = true, s.prev+s.base, s.iprev+s.ibase
			if c.integer && g.fromZero(beforeNS) {
				s.iref = 0
			}
		}
	}
}

// date reports whether the creation time changed since the last sample.
func (g *gain) date(cursors []slotCursor) bool {
	for i := range cursors {
		if c := &cursors[i]; g.slots[i].role == metric.RoleCreated && c.present && c.finite() {
			g.restart = g.restart || g.dated && c.bits != g.created
			g.created, g.dated = c.bits, true
		}
	}
	restart := g.restart
	g.restart = false
	return restart
}

// fromZero says that a counter which is new was zero at the poll before, as its
// creation time tells; package normalize has the same rule.
func (g *gain) fromZero(beforeNS int64) bool {
	return beforeNS != 0 && !g.clamp && g.typ == metric.Counter && g.dated && math.Float64frombits(g.created) >= float64(beforeNS)/1e9
}

func (s *gainSlot) falls(c *slotCursor) bool {
	if c.integer {
		return c.bits < s.iprev
	}
	return c.value() < s.prev
}

// again begins another life of the slot: its present value is all gain. Negative
// values of what only grows gain nothing.
func (s *gainSlot) again(c *slotCursor) {
	if c.integer {
		s.ibase += s.iprev
		return
	}
	s.base += s.prev
	if s.monotone() {
		s.base -= min(c.value(), 0)
	}
}

// since returns what slot i gained up to the sample taken last.
func (g *gain) since(i int, c *slotCursor) (float64, bool) {
	s := &g.slots[i]
	if !g.open || !s.known || !s.counts() {
		return 0, false
	}
	clamp := g.clamp && g.typ == metric.Counter
	if c.integer {
		d := s.ibase + s.iprev - s.iref
		if g.clamp && s.iprev < s.iref {
			if clamp {
				return 0, true
			}
			return -float64(-d), true
		}
		return float64(d), true
	}
	d := s.base + s.prev - s.ref
	if clamp && d < 0 {
		d = 0
	}
	return d, !math.IsInf(d, 0)
}
