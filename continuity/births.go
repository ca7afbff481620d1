package continuity

import (
	"math"
	"slices"
)

// judge decides about one unit of an accepted body.
func (t *Tracker) judge(p *process, u int, e *evidence) action {
	s, r, unit := &t.sight[u], &p.units[u], &t.units[u]
	if !s.in {
		return absent
	}
	if !p.known[u] {
		r.noted, r.older, r.newer = t.polls, 0, 0
		return t.birth(p, u, e)
	}
	before, fell := t.lastOf(p, u), t.below(p, u)
	created := t.createdOf(u, e)
	moved := created-p.made[u] > nearTime && created >= seconds(p.sent)-tolerated && unit.moves < 3
	switch {
	case moved && (e.parted || fell && t.fresh(p, u, s.value, e.dt)):
		return t.anew(p, u, e)
	case moved:
		if unit.moves++; !fell && before > 0 {
			t.note(int32(u), noteMoved, e.at, before)
		}
	}
	if fell || s.torn {
		return t.hold(p, u, e, fell)
	}
	if h, ok := p.holds[int32(u)]; ok {
		delete(p.holds, int32(u))
		e.returned = e.returned || h.first < before
		if h.first < before && e.known < few && t.fresh(p, u, h.first, e.dt) {
			h.sank += before
		}
		t.note(int32(u), noteHigh, e.at, h.sank)
	}
	if s.value > before && e.dt > 1e-9 {
		r.gained(s.value-before, 1/e.dt, before, t.polls)
		p.path.note(int32(u), unit.key, before)
		e.gained = true
	}
	return gain
}

// anew restarts one unit.
func (t *Tracker) anew(p *process, u int, e *evidence) action {
	delete(p.holds, int32(u))
	r := &p.units[u]
	r.noted, r.older, r.newer = t.polls, 0, 0
	t.note(int32(u), noteRestart, e.at, 0)
	t.tell(Event{AtNS: e.at, Kind: Restart, Process: p.id, Series: t.units[u].series, Text: "the series was made anew"})
	return fromZero
}

// hold leaves out a unit that fell, or of which buckets fell. After a few bodies a fresh one restarted, as an engine
// behind a frontend does, and one with lower buckets alone is believed slot by slot.
func (t *Tracker) hold(p *process, u int, e *evidence, fell bool) action {
	s := &t.sight[u]
	h, held0 := p.holds[int32(u)]
	if !held0 {
		h = hold{since: e.at, first: s.value, last: s.value}
		t.note(int32(u), noteDip, e.at, 0)
		e.dips++
		e.dipped = t.units[u].series
		t.dipped += count(!t.units[u].dipped)
		t.units[u].dipped = true
	}
	h.bodies++
	if s.value < 0.99*h.last {
		h.sank += h.last
	}
	h.last = s.value
	if p.holds == nil {
		p.holds = map[int32]hold{}
	}
	p.holds[int32(u)] = h
	switch {
	case h.bodies < young:
	case fell && h.first < p.units[u].older && t.fresh(p, u, h.first, e.dt):
		t.note(int32(u), noteHigh, e.at, h.sank)
		return t.anew(p, u, e)
	case !fell:
		delete(p.holds, int32(u))
		return perSlot
	}
	e.stuck += count(h.bodies == young)
	return held
}

// birth decides about a unit that the process has not shown before: from zero where an earlier complete body lacked it.
func (t *Tracker) birth(p *process, u int, e *evidence) action {
	created := t.createdOf(u, e)
	if t.ahead {
		created = math.NaN()
	}
	inside := created >= seconds(p.sent)-tolerated
	unit := &t.units[u]
	strange, first := false, false // a new place that was busy before; the same of a part, which nothing shows
	if (unit.newPlace || unit.newPart) && !inside {
		pace := t.familyPace(p, unit.family, e)
		strange = t.sight[u].value > 8*max(0, pace)*e.dt+8
		first = strange && !unit.newPlace && pace < 0
	}
	switch {
	case p.zero && (p.sure || t.slots[unit.key].told):
		return fromZero
	case !p.whole, unit.odd && !inside, created < seconds(p.sent)-tolerated, strange && !first:
		t.note(int32(u), noteLower, e.at, 0)
		return reference
	case first:
		unit.gap = float32(e.dt)
		t.note(int32(u), noteFirst, e.at, t.sight[u].value)
	}
	t.note(int32(u), noteBorn, e.at, 0)
	return fromZero
}

// familyPace is the largest pace of the units of a family that the process showed; -1 where it showed none.
func (t *Tracker) familyPace(p *process, family int32, e *evidence) float64 {
	if e.paces == nil {
		e.paces = slices.Repeat([]float64{-1}, len(t.dict.Families))
		for u := range t.units {
			if f := &e.paces[t.units[u].family]; p.known[u] {
				*f = max(*f, p.paceOf(u))
			}
		}
	}
	return e.paces[family]
}
