package continuity

import (
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// maxStarts is how many start times near each other are told apart.
const maxStarts = 4

// decide takes a poll that is more than an increase, or may be.
func (t *Tracker) decide(s *metric.Snapshot) {
	e, events := &evidence{at: s.AtNS(), sent: sentOf(s), complete: s.Outcome == metric.OK, dipped: -1}, len(t.log.events)
	if p := t.cur; p != nil && p.last == nil {
		p.last, t.spare = append(t.spare[:0], t.body...), nil
	}
	for id := range s.Delta.Absent(len(t.slots)) {
		t.slots[id].live = false
	}
	for i, id := range s.Delta.Slots {
		t.body[id], t.slots[id].live = s.Delta.Bits[i], true
	}
	t.classified = false
	t.look(e)
	switch {
	case t.cur == nil:
		t.open(e, false, false)
	default:
		e.dt = e.away(t.cur)
		t.same = t.sameTimes(t.cur, e)
		_ = t.byTimes(e) || t.byPresence(e) || t.byPast(e) || t.byValues(e)
	}
	for i := range t.log.events[events:] {
		if n := &t.log.events[events+i]; n.AtNS == e.at {
			n.Process = t.cur.id
		}
	}
	slices.Sort(t.step.Born)
	t.emit()
}

// byTimes decides by start and creation times (rules 1 and 2).
func (t *Tracker) byTimes(e *evidence) bool {
	if e.parted = t.parted(e); e.parted {
		t.accept(t.cur, e)
		return true
	}
	if t.same == 1 {
		return false
	}
	for _, p := range slices.Backward(t.processes) {
		if p != t.cur && t.sameTimes(p, e) == 1 {
			t.happened(markBack, Back, e, "the start or creation times are those of a process that answered before")
			t.back(p, e)
			return true
		}
	}
	if t.same == 0 {
		t.near(e)
		return false
	}
	t.weigh(e)
	begun, newest := t.begun(e), math.Inf(-1)
	for _, p := range t.processes {
		newest = max(newest, atLeast(p.begun()))
	}
	last := seconds(t.cur.at)
	switch {
	case begun >= last-tolerated && begun <= seconds(e.at)+tolerated:
		t.restart(e, "the start or creation times moved to after the last body")
		if begun < last-0.02 {
			t.doubt(t.cur, e, true)
		}
	case begun > newest+nearTime && e.restarts():
		before := t.cur
		t.restart(e, "the times moved, to before the last body, and the values fell")
		t.doubt(before, e, begun < last-maxSkew)
	case begun > newest+nearTime:
		t.happened(markLower, Takeover, e, "another process answers that ran before")
		t.open(e, false, false)
	default:
		t.happened(markOther, Other, e, "an older process answers")
		t.open(e, false, false)
	}
	return true
}

// parted reports whether a part of the process was made anew, as a server does that loads one of its models again: some
// units were created since the last body, and fell; the others have their creation times, and did not.
func (t *Tracker) parted(e *evidence) bool {
	p, same, fell := t.cur, 0, 0
	if t.ahead || math.Abs(e.start-p.start) > nearTime {
		return false
	}
	for _, u := range t.dated {
		switch d := t.createdOf(int(u), e) - p.made[u]; {
		case math.IsNaN(d):
		case math.Abs(d) <= equalTime && !t.below(p, int(u)):
			same++
		case d > nearTime && p.made[u]+d >= seconds(p.sent)-equalTime:
			fell += count(t.below(p, int(u)))
		default:
			return false
		}
	}
	return same > 0 && fell > 0
}

// near notes start times that differ by less than a second: one such change may be a fork, several are jitter.
func (t *Tracker) near(e *evidence) {
	p, begun := t.cur, e.start
	if len(t.starting) >= maxStarts || e.aged || math.IsNaN(begun) != math.IsNaN(p.start) {
		return
	}
	if math.IsNaN(begun) {
		both, moved := 0, 0
		for _, u := range t.dated {
			if d := math.Abs(t.createdOf(int(u), e) - p.made[u]); d >= 0 {
				both++
				moved += count(d > 0.005)
			}
		}
		if both < 2 || 2*moved < both {
			return
		}
		begun = t.begun(e)
	}
	p.start = e.start
	if begun = math.Round(begun * 1000); !slices.Contains(t.starting, begun) {
		t.starting = append(t.starting, begun)
	}
	for u := range t.units {
		if s := &t.sight[u]; s.in {
			t.note(int32(u), noteNear, e.at, s.value-t.lastOf(p, u))
		}
	}
}

// begun is when the process of the body began, NaN when nothing shows it.
func (t *Tracker) begun(e *evidence) float64 {
	first := e.start
	if math.IsNaN(first) {
		for _, u := range t.dated {
			if c := t.createdOf(int(u), e); !(first <= c) && !math.IsNaN(c) {
				first = c
			}
		}
	}
	return first
}

// byPresence decides a body that lacks most series of the process (rule 3).
func (t *Tracker) byPresence(e *evidence) bool {
	p := t.cur
	if all, both := t.common(p); !e.complete || all < 4 || 2*both >= all {
		return false
	}
	for _, q := range t.processes {
		if all, both := t.common(q); q != p && all > 0 && 5*both >= 4*all {
			t.happened(markBack, Back, e, "the series are those of a process that answered before")
			t.back(q, e)
			return true
		}
	}
	values := map[uint64]float64{}
	for u := range t.units {
		if t.sight[u].in {
			values[t.units[u].like] = t.sight[u].value
		}
	}
	weighed, fresh := 0, 0
	for u := range t.units {
		if v, ok := values[t.units[u].like]; ok && p.there[u] && t.lastOf(p, u) > 0 {
			weighed++
			fresh += count(t.fresh(p, u, v, e.dt))
		}
	}
	begun := t.begun(e)
	if begun >= seconds(p.at)-0.02 || math.IsNaN(begun) && weighed >= few && 5*fresh >= 4*weighed {
		t.restart(e, "the labels of most series changed, and they began anew")
		return true
	}
	t.happened(markLower, Takeover, e, "the labels of most series changed: another process answers that ran before")
	t.open(e, false, false)
	return true
}

// common counts the units of the last complete body of a process, and those of them that the present body has.
func (t *Tracker) common(p *process) (all, both int) {
	for u := range t.units {
		if p.there[u] {
			all++
			both += count(t.sight[u].in)
		}
	}
	return all, both
}

// byPast decides whether the body goes on from one before the present process (rules 4 and 5).
func (t *Tracker) byPast(e *evidence) bool {
	t.weigh(e)
	p := t.cur
	if p.tentative && t.fits(p.parent) && t.excursion(e) {
		return true
	}
	if e.rose < e.fell {
		return false
	}
	for _, q := range t.processes {
		if q == p || t.same == 1 && t.sameTimes(q, e) != 1 || !t.fits(q) {
			continue
		}
		rose, nearer, far := 0, 0, 0
		for u := range t.units {
			s := &t.sight[u]
			if !s.in || !p.known[u] || !q.known[u] || !(s.value > t.lastOf(p, u)) {
				continue
			}
			rose++
			nearer += count(t.lastOf(q, u) > t.lastOf(p, u))
			far += count(p.leaps(u, s.value-t.lastOf(p, u), e.dt))
		}
		if rose >= 2 && 10*nearer > 7*rose && 2*far >= rose {
			t.happened(markBack, Back, e, "the values go on from those of a process that answered before")
			t.log.mark(markOther, e.at, e.at)
			t.back(q, e)
			return true
		}
	}
	return false
}

// excursion returns to the process before a tentative one. One or two units may just have grown again as much: then it
// was a restart if they had fallen by half and did not leap since, and may have been one if they had fallen less.
func (t *Tracker) excursion(e *evidence) bool {
	p, q := t.cur, t.cur.parent
	some, leapt, deep := false, false, true
	for u := range t.units {
		if p.known[u] {
			some = some || t.lastOf(p, u) != 0
			leapt = leapt || t.sight[u].in && p.leaps(u, t.sight[u].value-t.lastOf(p, u), e.dt)
			deep = deep && (!q.known[u] || p.units[u].older <= t.lastOf(q, u)/2)
		}
	}
	if e.known < few && some && !leapt {
		for u := range t.units {
			if q.known[u] && !deep {
				t.note(int32(u), noteLow, p.first, t.lastOf(q, u))
			}
		}
		t.book(p)
		return false
	}
	for u := range t.units {
		if q.known[u] && e.known < few {
			t.note(int32(u), noteHigh, p.first, t.lastOf(q, u))
		}
	}
	if some {
		t.log.mark(markExcursion, p.first, p.first)
	}
	t.tell(Event{AtNS: p.first, Kind: Excursion, Process: p.id, Series: -1,
		Text: "the values fell, and then went on from where they had been"})
	t.processes = slices.DeleteFunc(t.processes, func(o *process) bool { return o == p })
	t.gone++
	t.cur = q
	t.back(q, e)
	return true
}

// byValues decides by what fell and rose (rules 6 to 11).
func (t *Tracker) byValues(e *evidence) bool {
	p := t.cur
	t.findLeaps(e)
	if e.fell == 0 {
		t.accept(p, e)
		return true
	}
	anew, fit := e.restarts(), t.olderCopy(e)
	switch {
	case fit != offPath && e.away(p) > 60+4*t.shortest && (t.same == 1 || !anew):
		t.happened(markOther, Other, e, "another process answers: older values for longer than a cache holds them")
		t.open(e, false, false)
	case fit != offPath:
		t.keepOut(e, anew && t.same != 1)
	case e.fell >= 2 && e.rose >= 2 && 5*e.fell >= e.weighed && 10*e.rose >= e.weighed && !anew:
		t.other(e, markOther, Other, "some values fell while others rose: another process answers")
	case anew:
		t.begin(e)
	case 2*e.fell < e.weighed || e.weighed <= 2:
		t.accept(p, e)
	default:
		t.other(e, markLower, Takeover, "most values fell, but not to those of a new process: another one answers")
	}
	return true
}

// olderCopy finds whether the body is one of the recent past of the process (rule 8).
func (t *Tracker) olderCopy(e *evidence) fit {
	if e.rose > 0 {
		return offPath
	}
	p := t.cur
	at := t.place(p, e)
	if at == onLeap && t.same != 1 || at == offUpLeap {
		t.log.mark(markLeapFit, e.at, e.at)
		for u := range t.units {
			if t.sight[u].in && p.known[u] {
				t.note(int32(u), noteLow, e.at, t.lastOf(p, u)-t.sight[u].value)
			}
		}
	}
	if at == offPath && t.same == 1 && !e.restarts() && since(e.at, p.first) <= 60+4*t.shortest && t.beforeFirst(p) {
		return onPath
	}
	return at
}

// beforeFirst reports whether the body is not above the first one of a process in any unit.
func (t *Tracker) beforeFirst(p *process) bool {
	for u := range t.units {
		if !t.sight[u].in || !p.known[u] {
			continue
		}
		first := t.lastOf(p, u)
		if c := p.path.column[u]; c > 0 {
			first = p.path.rows[c-1]
		}
		if t.sight[u].value > first {
			return false
		}
	}
	return true
}

// keepOut leaves out an older copy of the body; doubtful when it may be a restart. Of several in a row each later one
// may be another, which had gained what it shows.
func (t *Tracker) keepOut(e *evidence, doubtful bool) {
	for u := range t.units {
		if !doubtful || !t.sight[u].in || !t.cur.known[u] || !t.below(t.cur, u) {
			continue
		}
		more := t.sight[u].value
		if t.doubted == 0 {
			more = t.lastOf(t.cur, u)
		}
		t.note(int32(u), noteHigh, e.at, more)
	}
	if doubtful && t.doubted == 0 {
		t.doubted = e.at
	}
	if t.older++; t.older == 1 {
		t.olderAt = e.at
	}
	t.happened(markOlder, OlderBody, e, "an older copy of the body, as a cache sends it: left out")
	t.step.Held = true
}

// other makes the body that of another process: one that it fits, or a new one.
func (t *Tracker) other(e *evidence, m markKind, k EventKind, text string) {
	for _, q := range slices.Backward(t.processes) {
		if q != t.cur && t.fits(q) {
			t.happened(markBack, Back, e, "the values go on from those of a process that answered before")
			t.log.mark(markOther, e.at, e.at)
			t.back(q, e)
			return
		}
	}
	t.happened(m, k, e, text)
	t.open(e, false, false)
}

// begin opens a process that counts from zero, by the values alone, unless an earlier one can have gone on (rule 7).
func (t *Tracker) begin(e *evidence) {
	p := t.cur
	for _, q := range slices.Backward(t.processes) {
		if q != p && t.goesOn(q, e) {
			t.happened(markBack, Back, e, "the values go on from those of a process that answered before")
			t.log.mark(markOther, e.at, e.at)
			t.back(q, e)
			return
		}
	}
	if p.tentative {
		t.book(p)
	}
	if t.doubted != 0 { // the bodies that were left out were those of the new process
		t.log.withdraw(noteHigh, t.doubted)
	}
	t.log.mark(markFell, e.at, e.at)
	n, unlikely := t.open(e, true, true), t.unlikely(p, e)
	n.gap, n.doubts = e.dt, make([]doubt, len(t.units))
	for u := range t.units {
		if s := &t.sight[u]; s.in {
			n.doubts[u] = doubt{s.value, unlikely(u)}
		}
	}
}

// goesOn reports whether the body is what an earlier process can have reached meanwhile, and most of it it had before.
func (t *Tracker) goesOn(q *process, e *evidence) bool {
	if !t.fits(q) {
		return false
	}
	both, most, live := 0, 0, false
	for u := range t.units {
		s := &t.sight[u]
		if !s.in || !q.known[u] {
			continue
		}
		last := t.lastOf(q, u)
		pace := float64(q.units[u].pace2)
		if t.cur.known[u] {
			pace = max(pace, float64(t.cur.units[u].pace2))
		}
		if s.value-last > 8*pace*e.away(q)+8 {
			return false
		}
		both++
		most += count(last >= s.value/2)
		live = live || s.value > last && last > 0 || s.value == last
	}
	return live && 2*most >= both
}

// findLeaps notes bodies in which all large units leapt: nobody can tell whether they are those of the same process.
func (t *Tracker) findLeaps(e *evidence) {
	if t.same == 1 {
		return
	}
	p := t.cur
	large, leapt, huge, leaptFar := 0, 0, 0, 0
	for u := range t.units {
		if !t.sight[u].in || !p.known[u] || t.lastOf(p, u) < 100 {
			continue
		}
		v, last := t.sight[u].value, t.lastOf(p, u)
		large++
		leapt += count(v > 1.5*last && p.leaps(u, v-last, e.dt))
		if last >= 1000 && p.units[u].gains >= 4 {
			huge++
			leaptFar += count(v > 3*last && v-last > 100*float64(p.units[u].pace2)*e.dt+1000)
		}
	}
	if large >= few && 5*leapt >= 4*large {
		t.log.mark(markLeap, e.at, e.at)
		if e.fell > 0 { // as another process would have it
			t.log.mark(markFell, e.at, e.at)
		}
	}
	if huge < few || 5*leaptFar < 4*huge {
		return
	}
	for u := range t.units {
		if t.sight[u].in && p.known[u] {
			t.note(int32(u), noteLow, e.at, max(0, t.sight[u].value-t.lastOf(p, u)))
		}
	}
}

// restart makes the body the first of a process that counts from zero.
func (t *Tracker) restart(e *evidence, text string) {
	p := t.cur
	for u := range t.units {
		if p.known[u] {
			t.note(int32(u), noteUnseen, e.at, p.paceOf(u)*e.dt)
		}
	}
	t.happened(markRestart, Restart, e, text)
	t.restarts++
	t.open(e, true, false)
}

func atLeast(begun float64) float64 {
	if math.IsNaN(begun) {
		return math.Inf(-1)
	}
	return begun
}
