package metric

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// Replay is what one target shows after each of its polls: the state that its
// snapshots are differences of. It is the one place that applies them.
//
//	var r metric.Replay
//	for s := range snapshots {
//		err := r.Step(s)
//		...
//	}
//
// The zero value is a target without polls. A Replay has one owner. Who keeps the values of slots in a form of
// its own needs the schema only, and [Schema.Extend] in place of Step.
type Replay struct {
	Schema
	Bits    []uint64 // by slot: as last seen, as in Delta.Bits
	Present []bool   // by slot: whether the last stored poll showed it
	Sets    int      // counts how often the set of present slots changed
}

// Step applies the next poll of the target. One that does not fit, as only a damaged recording has, is refused
// and changes nothing. It keeps nothing of s, and allocates only when the schema grows.
func (r *Replay) Step(s *Snapshot) error {
	if err := r.Extend(s); err != nil {
		return err
	}
	if n := len(r.Slots) - len(r.Bits); n > 0 {
		r.Bits = append(r.Bits, make([]uint64, n)...)
		r.Present = append(r.Present, make([]bool, n)...)
	}
	if !s.Outcome.Stored() {
		return nil
	}
	moved := false
	for slot := range s.Delta.Absent(len(r.Slots)) {
		moved = moved || r.Present[slot]
		r.Present[slot] = false
	}
	for i, slot := range s.Delta.Slots {
		r.Bits[slot] = s.Delta.Bits[i]
		if !r.Present[slot] {
			r.Present[slot], moved = true, true
		}
	}
	if moved {
		r.Sets++
	}
	return nil
}

// Extend adds what s brings to the schema and checks that its samples fit it. A
// snapshot that does not fit is refused and changes nothing.
func (d *Schema) Extend(s *Snapshot) error {
	if s.Outcome.Stored() {
		if err := s.Delta.Check(len(d.Slots) + len(s.DictDelta.Slots)); err != nil {
			return err
		}
	}
	if s.DictDelta.Empty() {
		return nil
	}
	return d.Grow(&s.DictDelta)
}

// Check returns an error when f breaks its own rules or lists a slot that a schema of so many slots does not have.
func (f *Delta) Check(slots int) error {
	if len(f.Slots) != len(f.Bits) {
		return fmt.Errorf("damaged delta: %d slots with %d values", len(f.Slots), len(f.Bits))
	}
	for i, slot := range f.Slots {
		if int(slot) >= slots {
			return fmt.Errorf("damaged delta: slot %d of %d", slot, slots)
		}
		if i > 0 && f.Slots[i-1] >= slot {
			return fmt.Errorf("damaged delta: slot %d after %d", slot, f.Slots[i-1])
		}
	}
	return nil
}

// Absent yields the slots, of so many, that a full delta does not list, in ascending order; none of another delta.
func (f *Delta) Absent(slots int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if !f.Full {
			return
		}
		next := 0
		for slot := range slots {
			if next < len(f.Slots) && int(f.Slots[next]) == slot {
				next++
			} else if !yield(slot) {
				return
			}
		}
	}
}

// Float returns what bits mean in this slot.
func (s *SampleID) Float(bits uint64) float64 {
	if s.Integer {
		return float64(bits)
	}
	return math.Float64frombits(bits)
}

// Clone returns a copy that shares no memory with s and stays valid when s is reused. It leaves out the Body.
func (s *Snapshot) Clone() *Snapshot {
	c := *s
	c.Body = nil
	c.Drops, c.Warnings = slices.Clone(s.Drops), slices.Clone(s.Warnings)
	c.DictDelta = DictDelta{
		Families: slices.Clone(s.DictDelta.Families),
		Series:   slices.Clone(s.DictDelta.Series),
		Slots:    slices.Clone(s.DictDelta.Slots),
	}
	c.Delta.Slots, c.Delta.Bits = slices.Clone(s.Delta.Slots), slices.Clone(s.Delta.Bits)
	c.Observations, c.Exemplars = slices.Clone(s.Observations), slices.Clone(s.Exemplars)
	for i := range c.Observations {
		c.Observations[i].Requests = slices.Clone(c.Observations[i].Requests)
	}
	return &c
}
