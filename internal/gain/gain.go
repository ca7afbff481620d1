package gain

import (
	"context"
	"fmt"
	"math"
	"sort"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/internal/column"
	"github.com/scrapestat/scrapestat/metric"
)

// Adjustment is what package continuity adds to the values of a target of which something happened, by poll. Of any
// other it is nil.
type Adjustment struct {
	Tracker  *continuity.Tracker // that saw all of the target
	Restarts []Restart           // in the order they were decided

	added   map[int32][]addition // by slot, ascending
	process []addition           // whose bodies they are, where it is not process 0
	held    map[int32]bool       // polls that are no samples
	born    map[int32]int32      // the poll in which a series appeared that counts from zero
}

// Restart is a sample that counts from zero.
type Restart struct {
	AtNS   int64
	Series int32 // -1 for all of the target
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

// Adjust reads a target of a recording; nil where nothing happened. It follows both what was recorded and what it
// becomes, and notes where the difference changes.
func Adjust(ctx context.Context, o continuity.Options, rec column.Recording, target int) (*Adjustment, error) {
	t := continuity.New(o)
	a := &Adjustment{Tracker: t, added: map[int32][]addition{}, held: map[int32]bool{}, born: map[int32]int32{}}
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
		for i := range step.Events {
			if e := &step.Events[i]; e.Kind == continuity.Restart {
				a.Restarts = append(a.Restarts, Restart{e.AtNS, e.Series})
			}
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
	if len(a.added)+len(a.process)+len(a.held)+len(a.born)+len(a.Restarts) == 0 {
		return nil, nil
	}
	return a, nil
}

// note remembers what is added to a slot from a poll on.
func (a *Adjustment) note(slot *metric.SampleID, id, poll int32, raw, adjusted uint64) {
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

// Held reports whether a poll is an older copy of the body, which is no sample.
func (a *Adjustment) Held(poll int32) bool { return a != nil && a.held[poll] }

// Process is who answered a poll, from 0.
func (g *Series) Process(poll int32) uint64 {
	if g.adjustment == nil {
		return 0
	}
	return at(g.adjustment.process, poll)
}

// Born returns the poll in which a series appeared that counts from zero; ok is false for any other.
func (a *Adjustment) Born(series int) (poll int32, ok bool) {
	if a == nil {
		return 0, false
	}
	poll, ok = a.born[int32(series)]
	return poll, ok && poll > 0
}

// Series follows one series and tells what each of its slots gained since the reference, as the statistics count it.
type Series struct {
	Slots []Slot
	Grows bool // the slots of the series are cumulative

	adjustment *Adjustment
	series     int32
	open       bool // the window has begun
}

// Slot is the state of one slot; its values are adjusted.
type Slot struct {
	ID   int32
	Role metric.Role

	seen      bool // there is a sample
	ref, last uint64
}

// Begin starts another series, whose Slots the caller appends.
func (g *Series) Begin(a *Adjustment, series int32, typ metric.Type) {
	*g = Series{adjustment: a, series: series, Slots: g.Slots[:0],
		Grows: typ == metric.Counter || typ == metric.Histogram || typ == metric.Summary}
}

// counts reports whether the slot has gains.
func (s *Slot) counts() bool {
	return s.Role != metric.RoleQuantile && !s.Role.Metadata() && s.Role != metric.RoleNative
}

// Take takes over the sample of a poll, all of whose values are finite.
func (g *Series) Take(cursors []column.Cursor, poll int32, inWindow bool) {
	if inWindow && !g.open {
		g.open = true
		for i := range g.Slots {
			g.Slots[i].ref = g.Slots[i].last
		}
	}
	if g.adjustment.Held(poll) {
		return
	}
	for i := range cursors {
		s, c := &g.Slots[i], &cursors[i]
		if !c.Present || !s.counts() {
			continue
		}
		s.last = g.adjusted(s, c, poll)
		if !s.seen {
			s.seen, s.ref = true, s.last
			if at, ok := g.adjustment.Born(int(g.series)); g.open && ok && at == poll {
				s.ref = 0
			}
		}
	}
}

func (g *Series) adjusted(s *Slot, c *column.Cursor, poll int32) uint64 {
	if g.adjustment == nil {
		return c.Bits
	}
	by := at(g.adjustment.added[s.ID], poll)
	if c.Integer {
		return c.Bits + by
	}
	return math.Float64bits(c.Value() + math.Float64frombits(by))
}

// Since returns what slot i gained up to the sample taken last.
func (g *Series) Since(i int, c *column.Cursor) (float64, bool) {
	s := &g.Slots[i]
	if !g.open || !s.seen || !s.counts() {
		return 0, false
	}
	if c.Integer {
		return float64(s.last - s.ref), true
	}
	d := math.Float64frombits(s.last) - math.Float64frombits(s.ref)
	return d, !math.IsInf(d, 0)
}

// Finite reports whether no value of a sample is NaN or infinite. Metadata does not count, nor a server's quantiles.
func (g *Series) Finite(cursors []column.Cursor) bool {
	for i := range cursors {
		role := g.Slots[i].Role
		if c := &cursors[i]; c.Present && !role.Metadata() && role != metric.RoleQuantile && !c.Finite() {
			return false
		}
	}
	return true
}
