package continuity

import (
	"cmp"
	"math"
	"slices"
)

// maxProcesses is how many processes a target remembers.
const maxProcesses = 16

// young is the number of bodies up to which a restart by values alone is tentative, and after which a unit that
// stays below its mark is believed.
const young = 3

// process is one of those that answered, and what it last showed.
type process struct {
	id        int32
	first, at int64 // of its first body, and of the last accepted one
	sent      int64 // when that was asked for: what it lacks may have been made while it was on its way
	bodies    int
	zero      bool // counts from zero: it began while we watched
	tentative bool // and nothing but values shows that; its gain is not booked yet
	all       bool // of it all units fell
	sure      bool // what it shows for the first time was not there before: the process before had a complete body
	parent    *process
	start     float64   // NaN when unknown
	made      []float64 // by unit: creation times, NaN when unknown
	last      []uint64  // by slot: as last accepted; nil while that is the body itself
	known     []bool    // by unit: whether last has it
	there     []bool    // by unit: in its last complete body
	units     []record
	holds     map[int32]hold
	doubts    []doubt // by unit, of a tentative one
	gap       float64 // seconds before its first body
	whole     bool    // a complete body of it was seen
	path      path
}

// record is how a unit of a process moves, 32 bytes.
type record struct {
	pace, pace2  float32 // the two largest gains per second
	gains        uint32
	noted        uint32  // number of the poll of the note
	older, newer float64 // values noted at least 4 gains apart
}

// doubt is the first value of a unit, and whether a new process can hardly have reached it.
type doubt struct {
	value    float64
	unlikely bool
}

// hold is a unit that fell and is not believed yet.
type hold struct {
	since       int64
	bodies      int
	first, last float64
	sank        float64 // what it had when it fell again meanwhile
}

func (p *process) stretch(slots, units int) {
	if p.last != nil {
		p.last = stretch(p.last, slots)
	}
	p.known, p.there, p.units = stretch(p.known, units), stretch(p.there, units), stretch(p.units, units)
	p.path.column = stretch(p.path.column, units)
	for len(p.made) < units {
		p.made = append(p.made, math.NaN())
	}
}

// paceOf is the largest gain per second of a unit, the second largest from the fourth gain on: one leap must not
// set it.
func (p *process) paceOf(u int) float64 {
	if r := &p.units[u]; r.gains < 4 {
		return float64(r.pace)
	}
	return float64(p.units[u].pace2)
}

// leaps reports whether a gain is more than the unit ever made in that time.
func (p *process) leaps(u int, gain, dt float64) bool {
	return gain > 8*p.paceOf(u)*dt+20
}

// gained notes what a unit gained in dt seconds, from its value before.
func (r *record) gained(gain, perSecond, before float64, poll uint32) {
	if rate := float32(gain * perSecond); rate > r.pace {
		r.pace, r.pace2 = rate, r.pace
	} else if rate > r.pace2 {
		r.pace2 = rate
	}
	r.gains++
	r.note(before, poll)
}

// note keeps a value before a gain, now and then.
func (r *record) note(before float64, poll uint32) {
	if poll>>2 != r.noted>>2 {
		r.noted, r.older, r.newer = poll, r.newer, before
	}
}

// begun is when a process began, NaN when nothing shows it.
func (p *process) begun() float64 {
	if !math.IsNaN(p.start) {
		return p.start
	}
	first := math.NaN()
	for _, c := range p.made {
		if !(first <= c) && !math.IsNaN(c) {
			first = c
		}
	}
	return first
}

// named reports whether a process has a time by which it can be told from others.
func (p *process) named() bool {
	n := 0
	for _, c := range p.made {
		if !math.IsNaN(c) {
			n++
		}
	}
	return n >= 2 || !math.IsNaN(p.start)
}

// open makes the process of the present body: counted from zero, or from what it shows. A tentative one is not
// booked before it is confirmed.
func (t *Tracker) open(e *evidence, zero, tentative bool) *process {
	p := &process{id: t.opened, first: e.at, zero: zero, tentative: tentative, start: e.start, parent: t.cur}
	t.opened++
	p.stretch(0, len(t.units))
	p.last = make([]uint64, len(t.slots))
	if t.cur != nil {
		copy(p.units, t.cur.units)
		p.all, p.sure = e.fell == e.weighed, t.cur.whole
		t.adjust()
		if !tentative {
			t.leave()
			copy(t.off, t.out)
			p.parent = nil
		}
	}
	if len(t.processes) >= maxProcesses {
		i := slices.IndexFunc(t.processes, func(q *process) bool { return q != t.cur && q != p.parent })
		t.nameless = t.nameless || !t.processes[i].named()
		t.processes = slices.Delete(t.processes, i, i+1)
	}
	for u := range t.units {
		s, r := &t.sight[u], &p.units[u]
		r.noted, r.older, r.newer = 0, s.value, s.value
		s.act = absent
		if !s.in {
			continue
		}
		inside := t.began != 0 && !t.ahead && t.createdOf(u, e) >= seconds(t.began)
		switch {
		case zero && (p.sure || t.slots[t.units[u].key].told):
			s.act = fromZero
		case zero:
			s.act = reference
			t.note(int32(u), noteLower, e.at, 0)
		case inside:
			s.act = fromZero
			t.note(int32(u), noteBorn, e.at, 0)
		default:
			s.act = reference
		}
	}
	t.processes, t.cur = append(t.processes, p), p
	t.take(p, e)
	t.began = cmp.Or(t.began, e.at)
	return p
}

// back makes the present body one of a process that answered before.
func (t *Tracker) back(p *process, e *evidence) {
	if p != t.cur {
		t.leave()
		for id := range t.slots {
			s := &t.slots[id]
			if t.off[id] = t.out[id]; s.unit >= 0 && p.known[s.unit] {
				t.off[id] = s.less(t.out[id], p.last[id])
			}
		}
		t.cur = p
	}
	e.dt = e.away(p)
	t.accept(p, e)
}

// leave ends the stay of the present process: what is tentative is booked, and the offsets are there to be set anew.
func (t *Tracker) leave() {
	t.adjust()
	if t.cur.tentative {
		t.book(t.cur)
	}
}

// adjust begins to keep offsets; up to the first event each slot is its own adjusted value.
func (t *Tracker) adjust() {
	if t.off != nil {
		return
	}
	t.off, t.out = make([]uint64, len(t.slots)), make([]uint64, len(t.slots))
	for id := range t.slots {
		if s := &t.slots[id]; s.told && s.cumulative() {
			t.out[id] = t.cur.last[id]
		}
	}
}

// book counts what a tentative process gained since zero: the restart is one. Nothing is ever taken back.
func (t *Tracker) book(p *process) {
	p.tentative, p.parent = false, nil
	t.adjust()
	for id := range t.slots {
		if s := &t.slots[id]; s.cumulative() {
			if t.off[id] = t.out[id]; p.known[s.unit] {
				t.put(id, p.last[id], p.sure)
			}
		}
	}
	t.restarts++
	t.log.mark(markRestart, p.first, p.first)
	t.log.mark(markPending, p.first, t.at)
	outran := t.outran(p)
	for u, d := range p.doubts {
		if d.unlikely || outran {
			t.note(int32(u), noteLow, p.first, d.value)
		}
	}
	t.tell(Event{AtNS: p.first, Kind: Restart, Process: p.id, Series: -1,
		Text: "most values fell to what a new process can have reached, and went on from there"})
}

// outran reports whether most large units showed far more at first than the process can have reached before at the
// rate that it had since.
func (t *Tracker) outran(p *process) bool {
	large, most, by := 0, 0, p.gap/max(since(p.at, p.first), 1e-9)
	for u, d := range p.doubts {
		large += count(d.value > 8)
		most += count(d.value > 1.5*by*(t.lastOf(p, u)-d.value)+8+4*math.Sqrt(d.value)) // beyond chance
	}
	return most >= few && 2*most >= large
}

// accept takes the body as the next one of a process, unit by unit.
func (t *Tracker) accept(p *process, e *evidence) {
	for id := range t.slots {
		if s := &t.slots[id]; s.kind == slotBucket && s.live && t.sight[s.unit].in && !s.integer &&
			s.value(t.body[id]) < s.value(p.last[id]) {
			t.sight[s.unit].torn = true
		}
	}
	for u := range t.units {
		act := t.judge(p, u, e)
		t.sight[u].act = act
		if act >= fromZero && !p.tentative && t.slots[t.units[u].key].told {
			t.adjust()
		}
	}
	if e.stuck >= 2 {
		t.log.mark(markStuck, e.at, e.at)
	}
	if e.returned {
		t.log.mark(markDips, e.at, e.at)
	}
	if e.dips > 0 {
		if e.dips > 1 {
			e.dipped = -1
		}
		t.tell(Event{AtNS: e.at, Kind: Dip, Process: p.id, Series: e.dipped, Text: "some values fell: left out"})
	}
	t.take(p, e)
}

// take makes the body the last one of a process, and adjusts the slots of the units that are accepted.
func (t *Tracker) take(p *process, e *evidence) {
	settled := true
	for id := range t.slots {
		s := &t.slots[id]
		if !s.cumulative() {
			continue
		}
		act := t.sight[s.unit].act
		switch bits := t.body[id]; {
		case !s.live:
			if s.kind == slotNative && act > held { // a native bucket that is absent is empty
				if p.last[id] = 0; t.off != nil && !p.tentative {
					t.out[id] = t.off[id]
				}
			}
			t.body[id] = p.last[id]
		case act == absent || act == held:
			settled = settled && (p.last[id] == bits || !p.known[s.unit])
		default:
			if t.off != nil && !p.tentative {
				t.offset(id, act, bits, p.last[id])
			}
			if p.last[id] = bits; !p.tentative {
				t.put(id, bits, act == fromZero)
			}
		}
	}
	t.large = 0
	for u := range t.units {
		s := &t.sight[u]
		p.known[u] = p.known[u] || s.act > held
		t.large += count(p.known[u] && t.lastOf(p, u) >= 100)
		if e.complete {
			p.there[u] = s.in
		}
	}
	for _, u := range t.dated {
		if c := t.createdOf(int(u), e); c > 0 {
			p.made[u] = c
		}
	}
	if math.IsNaN(p.start) {
		p.start = e.start
	}
	p.whole = p.whole || e.complete
	p.at, p.sent, p.bodies, t.older, t.doubted = e.at, e.sent, p.bodies+1, 0, 0
	if e.gained {
		t.keep(p)
	}
	if p.tentative && (p.bodies >= young || p.bodies == 2 && p.all) {
		t.book(p)
	}
	if settled {
		t.spare, p.last = p.last, nil
	}
}

// offset sets from where a slot counts.
func (t *Tracker) offset(id int, act action, bits, last uint64) {
	s := &t.slots[id]
	switch {
	case !s.told:
		t.off[id] = 0
	case act == fromZero:
		t.off[id] = t.out[id]
	case act == reference, act == perSlot && s.kind != slotSum && s.value(bits) < s.value(last):
		t.off[id] = s.less(t.out[id], bits)
	}
}

// put is the one place where an adjusted slot changes: to its offset and what the process shows. Only sums, which
// have no say, and native buckets, which wider ones absorb, may fall; integers wrap around. zero is set where the
// first sight of a slot counts from zero.
func (t *Tracker) put(id int, bits uint64, zero bool) {
	s := &t.slots[id]
	if !s.told {
		s.told = true
		if s.kind == slotKey && zero {
			t.step.Born = append(t.step.Born, t.units[s.unit].series)
		}
	}
	if t.off == nil {
		return
	}
	switch now := s.plus(t.off[id], bits); {
	case !s.finite(now):
	case s.integer, s.kind == slotSum, s.kind == slotNative, s.value(now) > s.value(t.out[id]):
		t.out[id] = now
	}
}

// plus and less are the arithmetic of a slot.
func (s *slot) plus(a, b uint64) uint64 {
	if s.integer {
		return a + b
	}
	return math.Float64bits(math.Float64frombits(a) + math.Float64frombits(b))
}

func (s *slot) less(a, b uint64) uint64 {
	if s.integer {
		return a - b
	}
	return math.Float64bits(math.Float64frombits(a) - math.Float64frombits(b))
}
