package export

import (
	"context"
	"fmt"
	"math"
	"sort"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/internal/column"
	"github.com/scrapestat/scrapestat/metric"
)

// adjustment is what package continuity adds to the values of a target of which something happened, by poll. Of any
// other it is nil.
type adjustment struct {
	added   map[int32][]addition // by slot, ascending
	process []addition           // whose bodies they are, where it is not process 0
	held    map[int32]bool       // polls that are no samples
	born    map[int32]int32      // the poll in which a series appeared that counts from zero
}

// addition holds from a poll on until the next one.
type addition struct {
	poll int32
	by   uint64 // bits of a float, or an integer
}

func at(list []addition, poll int32) uint64 {
	i := sort.Search(len(list), func(i int) bool { return list[i].poll > poll })
	if i == 0 {
		return 0
	}
	return list[i-1].by
}

// adjust reads a target of a recording; nil where nothing happened. It follows both what was recorded and what it
// becomes, and notes where the difference changes.
func adjust(ctx context.Context, o continuity.Options, rec Recording, target int) (*adjustment, error) {
	a := &adjustment{added: map[int32][]addition{}, held: map[int32]bool{}, born: map[int32]int32{}}
	t := continuity.New(o)
	var schema metric.Schema
	var raw, adjusted []uint64
	poll, process := int32(-1), int32(0)
	for s, err := range rec.Snapshots(ctx, target) {
		if err == nil {
			err = schema.Extend(s)
		}
		if err != nil {
			return nil, fmt.Errorf("read polls of target %d: %w", target, err)
		}
		grown := make([]uint64, len(schema.Slots)-len(raw))
		raw, adjusted = append(raw, grown...), append(adjusted, grown...)
		step, err := t.Step(s)
		if err != nil {
			return nil, fmt.Errorf("follow target %d: %w", target, err)
		}
		if step == nil {
			continue
		}
		poll++
		for _, series := range step.Born {
			a.born[series] = poll
		}
		if step.Process != process {
			process = step.Process
			a.process = append(a.process, addition{poll, uint64(process)})
		}
		if step.Held {
			a.held[poll] = true
			continue
		}
		for _, d := range []struct {
			delta *metric.Delta
			last  []uint64
		}{{&s.Delta, raw}, {&step.Delta, adjusted}} {
			for i, id := range d.delta.Slots {
				d.last[id] = d.delta.Bits[i]
			}
		}
		for _, delta := range []*metric.Delta{&s.Delta, &step.Delta} {
			for _, id := range delta.Slots {
				a.note(&schema.Slots[id], int32(id), poll, raw[id], adjusted[id])
			}
		}
	}
	if len(a.added)+len(a.process)+len(a.held)+len(a.born) == 0 {
		return nil, nil
	}
	return a, nil
}

// note remembers what is added to a slot from a poll on.
func (a *adjustment) note(slot *metric.SampleID, id, poll int32, raw, adjusted uint64) {
	by := adjusted - raw
	if !slot.Integer {
		by = math.Float64bits(math.Float64frombits(adjusted) - math.Float64frombits(raw) + 0)
	}
	list := a.added[id]
	switch n := len(list); {
	case n == 0 && by == 0 || n > 0 && list[n-1].by == by:
	case n > 0 && list[n-1].poll == poll:
		list[n-1].by = by
	default:
		a.added[id] = append(list, addition{poll, by})
	}
}

// gain follows one series through the window and tells what each of its slots gained since the reference, as the
// statistics count it.
type gain struct {
	adjustment *adjustment
	series     int32
	grows      bool // the slots of the series are cumulative
	slots      []gainSlot
	open       bool // the window has begun
}

// gainSlot is the state of one slot; its values are adjusted.
type gainSlot struct {
	id        int32
	role      metric.Role
	seen      bool // there is a sample
	ref, last uint64
}

// begin starts another series.
func (g *gain) begin(a *adjustment, series int32, typ metric.Type) {
	*g = gain{adjustment: a, series: series, slots: g.slots[:0],
		grows: typ == metric.Counter || typ == metric.Histogram || typ == metric.Summary}
}

// counts reports whether the slot has gains.
func (s *gainSlot) counts() bool {
	return s.role != metric.RoleQuantile && !s.role.Metadata() && s.role != metric.RoleNative
}

// take takes over the sample of a poll, all of whose values are finite.
func (g *gain) take(cursors []column.Cursor, poll int32, inWindow bool) {
	if inWindow && !g.open {
		g.open = true
		for i := range g.slots {
			g.slots[i].ref = g.slots[i].last
		}
	}
	if g.adjustment != nil && g.adjustment.held[poll] {
		return
	}
	for i := range cursors {
		s, c := &g.slots[i], &cursors[i]
		if !c.Present || !s.counts() {
			continue
		}
		s.last = g.adjusted(s, c, poll)
		if !s.seen {
			s.seen, s.ref = true, s.last
			if g.open && g.adjustment != nil && g.adjustment.born[g.series] == poll && poll > 0 {
				s.ref = 0
			}
		}
	}
}

func (g *gain) adjusted(s *gainSlot, c *column.Cursor, poll int32) uint64 {
	if g.adjustment == nil {
		return c.Bits
	}
	by := at(g.adjustment.added[s.id], poll)
	if c.Integer {
		return c.Bits + by
	}
	return math.Float64bits(c.Value() + math.Float64frombits(by))
}

// since returns what slot i gained up to the sample taken last.
func (g *gain) since(i int, c *column.Cursor) (float64, bool) {
	s := &g.slots[i]
	if !g.open || !s.seen || !s.counts() {
		return 0, false
	}
	if c.Integer {
		return float64(s.last - s.ref), true
	}
	d := math.Float64frombits(s.last) - math.Float64frombits(s.ref)
	return d, !math.IsInf(d, 0)
}

// process is who answered a poll.
func (a *adjustment) processAt(poll int32) uint64 {
	if a == nil {
		return 0
	}
	return at(a.process, poll)
}
