package continuity

import (
	"fmt"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// Options are what a tracker is told about its target.
type Options struct {
	// Places are the labels whose values name a replica or a device. What a new place shows first has run elsewhere
	// before and is not counted from zero. The usual ones (uuid, device, instance, pod, hostname) need not be given.
	Places []string
	// Uptimes are the families of gauges that hold the age of the process in seconds.
	Uptimes []string
}

// Tracker follows one target through its polls. It has one owner and is not safe for concurrent use.
type Tracker struct {
	o      Options
	dict   metric.Schema
	slots  []slot
	units  []unit
	unitOf []int32 // by series, -1 for none
	starts []start
	dated  []int32 // units that have a slot for their creation time
	places map[metric.Label]bool

	class  []slotKind // by slot: what a change of it needs
	body   []uint64   // by slot: as the last stored poll showed it
	spare  []uint64
	undo   []uint64 // by position in the delta: what the body had before
	rising []int32  // slots of keys that rose in the present poll
	sight  []sight  // by unit
	// off and out are nil until something happened; then an adjusted slot is out, the offset of the present process
	// and what it shows.
	off, out []uint64

	processes []*process // the present one and at most 15 others
	cur       *process
	opened    int32 // processes so far
	nameless  bool  // of a process that is forgotten
	polls     uint32
	began, at int64   // times of the first and the last stored poll
	shortest  float64 // interval of polls, seconds
	same      int     // what the times of the last body said
	ahead     bool    // the target's clock is ahead of ours
	large     int     // units of at least 100
	resync    bool    // the next step lists every slot, because the last one held some back

	starting []float64 // different start times near each other, at most 4
	older    int       // held bodies in a row
	olderAt  int64     // since when
	dipped   int       // units that ever dipped
	restarts int       // of the process
	gone     int       // processes that were excursions
	log      log
	step     Step
	bits     []uint64
	list     []uint32
}

// New returns a tracker of a target without polls.
func New(o Options) *Tracker {
	o.Places = append(slices.Clone(o.Places), "uuid", "device", "instance", "pod", "hostname")
	return &Tracker{o: o, places: map[metric.Label]bool{}}
}

// Schema returns the dictionary of the target so far, which grows with each Step. Nobody else may change it.
func (t *Tracker) Schema() *metric.Schema { return &t.dict }

// Step is one stored poll after the decision. It belongs to the tracker and is valid until its next Step.
type Step struct {
	// Delta replaces that of the snapshot. Its cumulative slots are adjusted; where nothing ever happened it is the
	// snapshot's own. It is empty where Held is set.
	Delta   metric.Delta
	Process int32   // whose body it is, from 0 in order of appearance; gauges of it belong to that process
	Held    bool    // an older copy of the body, which is no sample of anything
	Born    []int32 // series first seen that count from zero in this poll, ascending
	Events  []Event // decided in this poll
	// Tentative is set while a restart is not confirmed: the cumulative slots stay where they were meanwhile.
	Tentative bool
}

// Step takes the next poll and returns what it means; nil for a poll that is not stored, which only teaches the
// dictionary. It keeps nothing of s. A poll that does not fit the dictionary or goes back in time is refused.
func (t *Tracker) Step(s *metric.Snapshot) (*Step, error) {
	stored, at := s.Outcome.Stored(), s.AtNS()
	if stored && t.polls > 0 && at < t.at {
		return nil, fmt.Errorf("time %d ns is before the previous poll at %d ns", at, t.at)
	}
	if err := t.dict.Extend(s); err != nil {
		return nil, err
	}
	if !s.DictDelta.Empty() {
		t.grow(&s.DictDelta)
	}
	if !stored {
		return nil, nil
	}
	if d := since(at, t.at); t.polls > 0 && d > 0 && (t.shortest == 0 || d < t.shortest) {
		t.shortest = d
	}
	t.polls++
	t.at = at
	t.step = Step{Delta: s.Delta, Born: t.step.Born[:0]}
	events := len(t.log.events)
	if !t.polite(s) {
		t.decide(s)
	}
	t.step.Process, t.step.Tentative = t.cur.id, t.cur.tentative
	t.step.Events = t.log.events[events:]
	return &t.step, nil
}

// infinite are the bits of +Inf, and those that all values have which are not finite.
const infinite = 0x7ff << 52

// polite takes a poll in one pass over its changed slots if it can only be an increase: the same set of slots by the
// same process, which is settled, and nothing fell or leapt. Otherwise it changes nothing.
func (t *Tracker) polite(s *metric.Snapshot) bool {
	p, d := t.cur, &s.Delta
	if p == nil || p.last != nil || p.tentative || d.Full || !s.DictDelta.Empty() || t.resync {
		return false
	}
	dt := since(s.AtNS(), p.at)
	if !(dt > 1e-9) {
		return false
	}
	good, times := t.pass(d, dt)
	if good && times {
		e := evidence{at: s.AtNS()}
		e.start, e.aged = t.startOf(&e)
		t.same = t.sameTimes(p, &e)
		good = t.same == 1 || t.same == 0 && (e.aged || len(t.starting) >= maxStarts)
	}
	if !good {
		for i, id := range d.Slots {
			t.body[id] = t.undo[i]
		}
		return false
	}
	t.rise(d, dt)
	p.at, p.bodies = s.AtNS(), p.bodies+1
	t.emitChanged(d)
	return true
}

// pass takes over the changed slots; good reports whether none fell and not too many leapt, times whether a start or
// creation time changed.
func (t *Tracker) pass(d *metric.Delta, dt float64) (good, times bool) {
	p := t.cur
	class, body, undo, bits, rising := t.class, t.body, t.undo[:len(d.Slots)], d.Bits[:len(d.Slots)], t.rising[:0]
	good = true
	far, large := 0, 0
	for i, id := range d.Slots {
		now, before := bits[i], body[id]
		body[id], undo[i] = now, before
		more := 0.0
		switch class[id] {
		case slotBucket, slotKey: // the bits of floats from 0 on are in their order
			if before > now || now >= infinite {
				good = false
			}
			if class[id] == slotBucket {
				continue
			}
			more = math.Float64frombits(now) - math.Float64frombits(before)
		case slotNone:
			continue
		case slotSum, slotNative: // these may fall
			if now&infinite == infinite {
				good = false
			}
			continue
		case slotIdentity:
			times = true
			continue
		case slotInteger:
			if more = float64(now - before); now < before {
				more = -1
			}
		case slotAbsent:
			more = -1
		}
		if !(more >= 0 && more <= math.MaxFloat64) {
			good = false
		} else if sl := &t.slots[id]; more > 0 && sl.kind == slotKey {
			rising = append(rising, int32(i))
			if more > 8*float64(p.units[sl.unit].pace2)*dt+20 {
				far++
				v := sl.value(before)
				large += count(v >= 100 && more > 0.5*v)
			}
		}
	}
	t.rising = rising
	another := len(t.processes) > 1 && far >= 2 && 2*far >= len(rising) || large >= few && 5*large >= 4*t.large
	return good && !another, times
}

// rise notes what the rising units gained.
func (t *Tracker) rise(d *metric.Delta, dt float64) {
	if len(t.rising) == 0 {
		return
	}
	p, perSecond := t.cur, 1/dt
	row := p.path.add()
	for _, i := range t.rising {
		sl := &t.slots[d.Slots[i]]
		v, before := sl.value(d.Bits[i]), sl.value(t.undo[i])
		p.units[sl.unit].gained(v-before, perSecond, before, t.polls)
		if p.path.column[sl.unit] == 0 {
			p.path.note(sl.unit, before)
		}
		if c := p.path.column[sl.unit]; c > 0 {
			row[c-1] = v
		}
		if before < 100 && v >= 100 {
			t.large++
		}
	}
}

// emitChanged gives the step what changed; the delta of the snapshot itself while nothing happened.
func (t *Tracker) emitChanged(d *metric.Delta) {
	if t.off == nil {
		return
	}
	t.bits = append(t.bits[:0], d.Bits...)
	for i, id := range d.Slots {
		if t.slots[id].cumulative() {
			t.put(int(id), d.Bits[i], false)
			t.bits[i] = t.out[id]
		}
	}
	t.step.Delta.Bits = t.bits
}

// emit gives the step every slot, adjusted, where it cannot be told by what changed.
func (t *Tracker) emit() {
	if t.step.Held {
		t.step.Delta, t.resync = metric.Delta{}, true
		return
	}
	if t.off == nil && t.cur.last == nil && !t.resync {
		return
	}
	t.resync = false
	t.list, t.bits = t.list[:0], t.bits[:0]
	for id := range t.slots {
		s, bits := &t.slots[id], t.body[id]
		switch {
		case s.kind == slotNative && !s.live && s.told && t.off != nil:
			if bits = t.out[id]; bits == 0 || !t.slots[t.units[s.unit].key].live {
				continue // an absent native bucket is empty: what earlier processes had in it stays
			}
		case !s.live:
			continue
		case !s.cumulative() || !s.finite(bits):
		case !s.told:
			continue // of a restart that is not confirmed
		case t.off != nil:
			bits = t.out[id]
		case t.cur.last != nil:
			bits = t.cur.last[id]
		}
		t.list, t.bits = append(t.list, uint32(id)), append(t.bits, bits)
	}
	t.step.Delta = metric.Delta{Full: true, Slots: t.list, Bits: t.bits}
}
