package continuity

import (
	"fmt"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// Options are what a tracker is told about its target.
type Options struct {
	// Places are the labels whose values name a replica or a device. What a new place shows first has run elsewhere
	// before and is not counted from zero. The usual ones (uuid, device, instance, pod, hostname) need not be given.
	Places []string
	// Parts are labels whose values name a part of the process, such as an engine. They are as places, but what the
	// first one of a family shows counts from zero: it is in doubt until the pace since then explains it.
	Parts []string
	// Uptime reports whether a family of gauges holds the age of the process in seconds; nil is none.
	Uptime func(family string) bool
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

	class []class // by slot
	keyed []int32 // of sweep
	// classified is set while class fits the body.
	classified bool
	body       []uint64 // by slot: as the last stored poll showed it
	spare      []uint64
	undo       []uint64 // by position in the delta: what the body had before
	news       []int32  // of rise
	sight      []sight  // by unit
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
	doubted  int64     // the first of the copies that were left out last which may be a restart; 0 is none
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
	o.Places = append(slices.Clone(o.Places), "uuid", "device", "instance", "pod", "hostname", "Hostname")
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
	polite := stored && t.polite(s)
	if !polite {
		if err := t.dict.Extend(s); err != nil {
			return nil, err
		}
		if !s.DictDelta.Empty() {
			t.grow(&s.DictDelta)
		}
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
	if polite {
		t.emitChanged(&s.Delta)
	} else {
		t.decide(s)
	}
	t.step.Process, t.step.Tentative = t.cur.id, t.cur.tentative
	t.step.Events = t.log.events[events:]
	return &t.step, nil
}

// infinite are the bits of +Inf, and those that all values have which are not finite.
const infinite = 0x7ff << 52

// polite takes a poll in one pass over its changed slots if it can only be an increase: the same set of slots by the
// same process, which is settled, and nothing fell or leapt. Otherwise, as for a poll that does not fit the
// dictionary, it changes nothing.
func (t *Tracker) polite(s *metric.Snapshot) bool {
	p, d := t.cur, &s.Delta
	if p == nil || p.last != nil || p.tentative || d.Full || !s.DictDelta.Empty() || t.resync {
		return false
	}
	dt := since(s.AtNS(), p.at)
	if !(dt > 1e-9) || len(d.Slots) > len(t.body) || len(d.Bits) != len(d.Slots) {
		return false
	}
	if !t.classified {
		t.classify()
	}
	n, keys, seen := t.sweep(d)
	good := n == len(d.Slots) && seen&classAbsent == 0
	var rose rise
	if good {
		rose = t.weighKeys(d, keys, 1/dt)
		good = !t.another(d, &rose, dt)
	}
	if good && seen&classTimes != 0 {
		e := evidence{at: s.AtNS()}
		e.start, e.aged = t.startOf(&e)
		t.same = t.sameTimes(p, &e)
		good = t.same == 1 || t.same == 0 && (e.aged || len(t.starting) >= maxStarts)
	}
	if !good {
		for i, id := range d.Slots[:n] {
			t.body[id] = t.undo[i]
		}
		return false
	}
	t.enter(d, &rose, 1/dt)
	p.at, p.sent, p.bodies = s.AtNS(), sentOf(s), p.bodies+1
	return true
}

// rise is what rose in a poll.
type rise struct {
	units int
	large int     // units that came to 100
	news  []int32 // positions in the delta of the keys whose gains change their pace
}

// sweep takes over the changed slots up to the first that fell, is not finite or is not in the body, and returns how
// many those are and what their classes have in common with any. The first positions of keyed are those of the keys.
// Floats from 0 on have bits in their order.
func (t *Tracker) sweep(d *metric.Delta) (n, keys int, seen class) {
	ids, now := d.Slots, d.Bits[:len(d.Slots)]
	undo, keyed, body := t.undo[:len(ids)], t.keyed[:len(ids)], t.body
	classes, next := t.class[:len(body)], uint32(0)
	for i, id := range ids {
		if int(id) >= len(body) || id < next {
			return i, keys, seen // the delta is damaged
		}
		c, v, last := classes[id], now[i], body[id]
		if (v < last || v >= infinite) && !c.takes(v, last) {
			return i, keys, seen
		}
		undo[i], body[id] = last, v
		keyed[keys] = int32(i)
		keys += int(c >> 7)
		seen |= c
		next = id + 1
	}
	return len(ids), keys, seen
}

// weighKeys finds what the changed keys gained.
func (t *Tracker) weighKeys(d *metric.Delta, keys int, perSecond float64) rise {
	r, units, poll := rise{news: t.news[:0]}, t.cur.units, t.polls+1
	for _, i := range t.keyed[:keys] {
		sl := &t.slots[d.Slots[i]]
		v, was := sl.value(d.Bits[i]), sl.value(t.undo[i])
		if !(v > was) {
			continue
		}
		if r.units++; was < 100 && v >= 100 {
			r.large++
		}
		u := &units[sl.unit]
		u.note(was, poll)
		if u.gains < 4 || float32((v-was)*perSecond) > u.pace2 {
			r.news = append(r.news, i)
		}
	}
	return r
}

// classify finds what a change of each slot needs.
func (t *Tracker) classify() {
	for id := range t.slots {
		t.class[id] = t.slots[id].class(t.body[id])
	}
	t.classified = true
}

// another reports whether so many units leapt that the body may be that of another process.
func (t *Tracker) another(d *metric.Delta, r *rise, dt float64) bool {
	far, large := 0, 0
	for _, i := range r.news {
		sl := &t.slots[d.Slots[i]]
		before := sl.value(t.undo[i])
		more := sl.value(d.Bits[i]) - before
		if t.cur.leaps(int(sl.unit), more, dt) {
			far++
			large += count(before >= 100 && more > 0.5*before)
		}
	}
	return len(t.processes) > 1 && far >= 2 && 2*far >= r.units || large >= few && 5*large >= 4*t.large
}

// enter takes over what rose.
func (t *Tracker) enter(d *metric.Delta, r *rise, perSecond float64) {
	p := t.cur
	for _, i := range r.news {
		sl := &t.slots[d.Slots[i]]
		v, before := sl.value(d.Bits[i]), sl.value(t.undo[i])
		p.units[sl.unit].gained(v-before, perSecond, before, t.polls+1)
		p.path.note(sl.unit, t.units[sl.unit].key, before)
	}
	t.large += r.large
	if r.units > 0 {
		t.keep(p)
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
	t.resync = t.cur.last != nil
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
		case !s.told && t.units[s.unit].odd: // as it was sent while nothing happened
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
