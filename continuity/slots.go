package continuity

import (
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// slotKind is what a slot is for its unit.
type slotKind uint8

const (
	slotNone   slotKind = iota // not cumulative, or of a series without a key slot
	slotKey                    // the value that decides: of a counter, or a count
	slotBucket                 // a bucket that may not fall
	slotNative                 // a native bucket, which may be absorbed by a wider one
	slotSum                    // has no say
	slotIdentity
)

// class is what a change of a slot needs.
type class uint8

const (
	classAny     class = 0
	classGrows   class = 1 << 0 // may not fall
	classFinite  class = 1 << 1 // has no say
	classInteger class = 1 << 2 // may not fall, of 64 bits
	classTimes   class = 1 << 3
	classAbsent  class = 1 << 4 // not in the body, or not finite there
	classKey     class = 1 << 7
)

// slot is small because every changed value goes through it.
type slot struct {
	unit    int32 // -1 for none
	kind    slotKind
	live    bool // in the present body
	told    bool // some step had it
	integer bool
}

// value is what bits mean in this slot.
func (s *slot) value(bits uint64) float64 {
	if s.integer {
		return float64(bits)
	}
	return math.Float64frombits(bits)
}

func (s *slot) finite(bits uint64) bool { return s.integer || bits>>52&0x7ff != 0x7ff }

// unit is what is decided together: a series with a key slot. What a process did to it is in a record.
type unit struct {
	series, family, key int32
	created             int32   // slot of its creation time, -1 for none
	like                uint64  // its family and labels without those of a process
	newPlace, newPart   bool    // came with a label of a place, or of a part, that the target had not had
	gap                 float32 // seconds in which its first value came, where that is in doubt
	odd                 bool    // was there with a value that is not finite
	dipped              bool
	moves               int8 // of its creation time that did not restart it; from 3 on it is no creation time
}

// grow takes over the new slots of the dictionary. A unit is made here and nowhere else, when its key slot comes;
// before it has none, the slots of its series take no part.
func (t *Tracker) grow(g *metric.DictDelta) {
	first, series := len(t.slots), len(t.unitOf)
	for range g.Series {
		t.unitOf = append(t.unitOf, -1)
	}
	for i := range g.Slots {
		t.slots = append(t.slots, slot{unit: -1, integer: g.Slots[i].Integer})
	}
	for _, key := range []func(*metric.SampleID, metric.Type) bool{isKey, isLast} {
		for id := first; id < len(t.slots); id++ {
			if s := &t.dict.Slots[id]; t.unitOf[s.Series] < 0 && key(s, t.dict.FamilyOf(s.Series).Type) {
				t.makeUnit(id)
			}
		}
	}
	for id := first; id < len(t.slots); id++ {
		t.assign(int32(id))
	}
	for i := series; i < len(t.unitOf); i++ {
		for _, names := range [][]string{t.o.Places, t.o.Parts} {
			for _, place := range t.placesOf(i, names) {
				t.places[place] = true
			}
		}
	}
	t.body = stretch(t.body, len(t.slots))
	t.undo = stretch(t.undo, len(t.slots))
	t.news = stretch(t.news, len(t.slots))
	t.class, t.keyed, t.classified = stretch(t.class, len(t.slots)), stretch(t.keyed, len(t.slots)), false
	t.sight = stretch(t.sight, len(t.units))
	if t.off != nil {
		t.off, t.out = stretch(t.off, len(t.slots)), stretch(t.out, len(t.slots))
	}
	for _, p := range t.processes {
		p.stretch(len(t.slots), len(t.units))
	}
}

// stretch lengthens s by zeros.
func stretch[T any](s []T, n int) []T { return append(s, make([]T, n-len(s))...) }

// isKey reports whether the slot decides for its series.
func isKey(s *metric.SampleID, kind metric.Type) bool {
	return s.Role == metric.RoleValue && kind == metric.Counter ||
		s.Role == metric.RoleCount && (kind == metric.Histogram || kind == metric.Summary)
}

// isLast reports whether the slot holds the count of a histogram that does not send one.
func isLast(s *metric.SampleID, kind metric.Type) bool {
	return kind == metric.Histogram && s.Role == metric.RoleBucket && math.IsInf(s.Bound, 1)
}

// makeUnit makes the unit of the series of a key slot.
func (t *Tracker) makeUnit(id int) {
	s := &t.dict.Slots[id]
	f := t.dict.FamilyOf(s.Series)
	u := unit{series: int32(s.Series), family: int32(t.dict.Series[s.Series].Family), key: int32(id), created: -1}
	h := fnv.New64a()
	h.Write([]byte(f.Name))
	h.Write([]byte(t.dict.Series[s.Series].Labels.Without(processLabels()...).String()))
	u.like = h.Sum64()
	newIn := func(names []string) bool {
		isNew := func(l metric.Label) bool { return !t.places[l] }
		return t.cur != nil && slices.ContainsFunc(t.placesOf(s.Series, names), isNew)
	}
	u.newPlace, u.newPart = newIn(t.o.Places), newIn(t.o.Parts)
	t.unitOf[s.Series] = int32(len(t.units))
	t.units = append(t.units, u)
	for _, other := range t.dict.SlotsOf(s.Series) {
		t.assign(other)
	}
}

// assign gives a slot its part in the unit of its series.
func (t *Tracker) assign(id int32) {
	s, sl := &t.dict.Slots[id], &t.slots[id]
	if sl.kind != slotNone {
		return
	}
	u := t.unitOf[s.Series]
	if u < 0 {
		name := t.dict.FamilyOf(s.Series).Name
		age := t.o.Uptime != nil && t.o.Uptime(name)
		if s.Role == metric.RoleValue && (age || name == "process_start_time_seconds") {
			sl.kind = slotIdentity
			t.starts = append(t.starts, start{id, age})
		}
		return
	}
	switch {
	case id == t.units[u].key:
		sl.kind = slotKey
	case s.Role == metric.RoleBucket, s.Role == metric.RoleCount:
		sl.kind = slotBucket
	case s.Role == metric.RoleNative:
		sl.kind = slotNative
	case s.Role == metric.RoleSum:
		sl.kind = slotSum
	case s.Role == metric.RoleCreated && t.units[u].created < 0:
		sl.kind, t.units[u].created = slotIdentity, id
		t.dated = append(t.dated, u)
	default:
		return
	}
	sl.unit = u
}

// class is what a change of the slot needs, which has these bits.
func (s *slot) class(bits uint64) (c class) {
	switch {
	case !s.live, s.cumulative() && !s.finite(bits):
		return classAbsent
	case s.kind == slotIdentity:
		return classTimes
	case s.kind == slotKey:
		c = classKey
	case s.cumulative() && s.kind != slotBucket && s.integer, !s.cumulative():
		return classAny
	case s.kind != slotBucket:
		return classFinite
	}
	if s.integer {
		return c | classInteger
	}
	return c | classGrows
}

// takes reports whether bits that fell, or are those of no finite number from 0 on, are all the same of an increase.
func (c class) takes(now, before uint64) bool {
	switch {
	case c&classGrows != 0:
		return false
	case c&classInteger != 0:
		return now >= before
	}
	return c&classFinite == 0 || now&infinite != infinite
}

// cumulative reports whether the slot is adjusted.
func (s *slot) cumulative() bool { return s.kind >= slotKey && s.kind <= slotSum }

// processLabels tell the processes of one server apart.
func processLabels() []string { return []string{"pod", "pid", "instance", "worker_id"} }

// placesOf returns the labels of a series that have one of the names, which a server may spell in two ways.
func (t *Tracker) placesOf(series int, names []string) (out []metric.Label) {
	for _, name := range names {
		if v, ok := t.dict.Series[series].Labels.Get(name); ok {
			out = append(out, metric.Label{Name: strings.ToLower(name), Value: v})
		}
	}
	return out
}
