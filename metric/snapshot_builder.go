package metric

import (
	"math"
	"slices"
)

// SnapshotBuilder turns the samples of one target, given one by one, into what snapshots carry: the growth of
// the dictionary and a frame of what changed. It is for sources that are no exposition, whose polls have
// hundreds of samples and not hundreds of thousands; package scrape has a faster way of its own.
//
//	f := g.Family("nv_inference_count", metric.Counter, help, "")
//	s := g.Series(f, metric.NewLabels(metric.Label{Name: "model", Value: m}))
//	g.SetInteger(g.Slot(s, metric.SampleID{Role: metric.RoleValue, Integer: true}), n)
//	g.Finish(&snapshot)
//
// The zero value is ready to use. A SnapshotBuilder has one owner.
type SnapshotBuilder struct {
	families []Family
	series   []Series
	slots    []SampleID

	familyOf map[familyKey]int
	seriesOf map[seriesKey]int
	slotOf   map[slotKey]int

	bits    []uint64 // by slot: the last value given
	sent    []uint64 // by slot: the last value a frame held
	poll    []uint32 // by slot: the last poll that gave it
	polls   uint32
	present []uint32 // slots of the last finished poll, ascending
	any     bool

	told  struct{ families, series, slots int }
	frame Delta
}

type familyKey struct {
	name string
	kind Type
}

type seriesKey struct {
	family int
	labels Labels
}

type slotKey struct {
	series int
	role   Role
	bound  uint64
	lower  uint64
}

// Family returns the index of the family of that name and type, adding it when
// it is new. Help and unit are those of the first call.
func (g *SnapshotBuilder) Family(name string, t Type, help, unit string) int {
	return g.AddFamily(Family{Name: name, Type: t, Help: help, Unit: unit})
}

// AddFamily is Family with a suffix.
func (g *SnapshotBuilder) AddFamily(f Family) int {
	if g.familyOf == nil {
		g.familyOf, g.seriesOf, g.slotOf = map[familyKey]int{}, map[seriesKey]int{}, map[slotKey]int{}
	}
	key := familyKey{f.Name, f.Type}
	i, ok := g.familyOf[key]
	if !ok {
		i = len(g.families)
		g.families = append(g.families, f)
		g.familyOf[key] = i
	}
	return i
}

// Series returns the index of the series of a family, adding it when it is new.
func (g *SnapshotBuilder) Series(family int, l Labels) int {
	key := seriesKey{family, l}
	i, ok := g.seriesOf[key]
	if !ok {
		i = len(g.series)
		g.series = append(g.series, Series{Family: family, Labels: l})
		g.seriesOf[key] = i
	}
	return i
}

// Slot returns the index of the slot of a series with the role and bounds of s, adding it when it is new.
// s.Series is ignored. Text and Integer are those of the first call.
func (g *SnapshotBuilder) Slot(series int, s SampleID) int {
	key := keyOf(series, s)
	i, ok := g.slotOf[key]
	if !ok {
		i = len(g.slots)
		s.Series = series
		g.slots = append(g.slots, s)
		g.bits, g.sent, g.poll = append(g.bits, 0), append(g.sent, 0), append(g.poll, 0)
		g.slotOf[key] = i
	}
	return i
}

// Known reports whether the series has a slot of that role and bounds, so that SampleID would not add one.
func (g *SnapshotBuilder) Known(series int, s SampleID) bool {
	_, ok := g.slotOf[keyOf(series, s)]
	return ok
}

func keyOf(series int, s SampleID) slotKey {
	return slotKey{series, s.Role, math.Float64bits(s.Bound + 0), math.Float64bits(s.Lower + 0)} // -0 is 0
}

// Set gives the value of a slot in this poll. Given twice, the last one counts.
func (g *SnapshotBuilder) Set(slot int, v float64) { g.set(slot, math.Float64bits(v)) }

// SetInteger gives the value of a slot that was made with Integer.
func (g *SnapshotBuilder) SetInteger(slot int, v uint64) { g.set(slot, v) }

// Bits returns the value last given to a slot, in the form of Delta.Bits; 0 before the first.
func (g *SnapshotBuilder) Bits(slot int) uint64 { return g.bits[slot] }

func (g *SnapshotBuilder) set(slot int, bits uint64) {
	g.bits[slot], g.poll[slot] = bits, g.polls+1
}

// Finish ends a poll: it fills s.Growth, s.Frame and s.Lines, one line for each value given, and starts the next poll.
// What s receives stays valid until the next Finish. Only a snapshot that will be recorded as stored may be given.
func (g *SnapshotBuilder) Finish(s *Snapshot) {
	g.polls++
	g.frame.Slots, g.frame.Bits = g.frame.Slots[:0], g.frame.Bits[:0]
	lines := 0
	same := g.any
	for i, poll := range g.poll {
		if poll != g.polls {
			continue
		}
		same = same && lines < len(g.present) && g.present[lines] == uint32(i)
		lines++
	}
	g.frame.Full = !same || lines != len(g.present)
	if g.frame.Full {
		g.present = slices.Grow(g.present[:0], lines)
	}
	for i, poll := range g.poll {
		if poll != g.polls {
			continue
		}
		if g.frame.Full {
			g.present = append(g.present, uint32(i))
		}
		if g.frame.Full || g.bits[i] != g.sent[i] {
			g.frame.Slots, g.frame.Bits = append(g.frame.Slots, uint32(i)), append(g.frame.Bits, g.bits[i])
		}
		g.sent[i] = g.bits[i]
	}
	s.DictDelta = DictDelta{Families: g.families[g.told.families:], Series: g.series[g.told.series:],
		Slots: g.slots[g.told.slots:]}
	s.Delta, s.Lines = g.frame, lines
	g.any = true
	g.told.families, g.told.series, g.told.slots = len(g.families), len(g.series), len(g.slots)
}

// Abandon forgets the values of a poll that failed half-way, so that the next poll begins anew. What it added
// to the dictionary is kept and told with the next finished poll.
func (g *SnapshotBuilder) Abandon() { g.polls++ }
