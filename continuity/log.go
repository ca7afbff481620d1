package continuity

import "slices"

// What is kept of a target's events, however many there are.
const (
	maxEvents = 1000
	maxMarks  = 4096
	maxNotes  = 16 // of a unit
)

// markKind is what a mark says of all units.
type markKind uint8

const (
	markRestart   markKind = iota
	markPending            // a restart was tentative: what it gained is booked at the end
	markBack               // a process came back
	markOther              // another process answers beside the present one
	markLower              // a process that ran before took over
	markExcursion          // of bodies that were not all zero
	markLeapFit            // an older copy in a gap where everything leapt
	markLeap               // everything leapt
	markFell               // a restart by values
	markDips               // a body in which units came back from a dip
	markStuck              // several units fell and stay low, but no restart explains it
	markOlder              // an older copy
	markKinds     = iota
)

// mark is one or, when there are many, several of a kind.
type mark struct {
	at, until int64
	n         int32
	kind      markKind
}

// noteKind is what a note says of one unit; those behind noteDip have an amount.
type noteKind uint8

const (
	noteBorn    noteKind = iota
	noteRestart          // of the unit alone
	noteLower            // its first value counts as its reference, although it may have been born
	noteDip
	noteHigh   // there may be so much more
	noteMoved  // the same, unless its creation time turns out to be none
	noteLow    // there may be so much less
	noteNear   // the same, unless the start times turn out to jitter
	noteFirst  // the same, unless what came since explains it
	noteRan    // the same, if several processes answer: this one may have run before
	noteUnseen // so much work may have been lost in a restart
)

type note struct {
	at, until int64
	amount    float64
	n         int
	kind      noteKind
}

// log is what happened to a target. Its size does not grow with the run beyond its limits.
type log struct {
	marks  []mark
	notes  map[int32][]note
	events []Event
	lost   int

	window window // the last one asked for
}

// window counts the marks of a stretch of time.
type window struct {
	from, to int64
	n        [markKinds]int
	ends     bool // inside a tentative restart
	begins   bool
	valid    bool
}

func (l *log) mark(kind markKind, at, until int64) {
	l.window.valid = false
	l.marks = append(l.marks, mark{at, until, 1, kind})
	if len(l.marks) < maxMarks {
		return
	}
	var single [markKinds]int // one more than where a mark of the kind waits for a second one
	kept := l.marks[:0]
	for _, m := range l.marks {
		if i := single[m.kind]; i > 0 {
			k := &kept[i-1]
			k.until, k.n, single[m.kind] = max(k.until, m.until), k.n+m.n, 0
			continue
		}
		kept = append(kept, m)
		single[m.kind] = len(kept)
	}
	l.marks = kept
}

// count returns what happened after from and not after to.
func (l *log) count(from, to int64) *window {
	w := &l.window
	if w.valid && w.from == from && w.to == to {
		return w
	}
	*w = window{from: from, to: to, valid: true}
	for _, m := range l.marks {
		if m.kind == markPending {
			w.ends = w.ends || m.at <= to && to < m.until
			w.begins = w.begins || m.at <= from && from < m.until
		} else if m.at <= to && m.until > from {
			w.n[m.kind] += int(m.n)
		}
	}
	return w
}

// note notes something about one unit.
func (t *Tracker) note(u int32, kind noteKind, at int64, amount float64) {
	if kind > noteDip && !(amount > 0) {
		return
	}
	if t.log.notes == nil {
		t.log.notes = map[int32][]note{}
	}
	all := t.log.notes[u]
	if len(all) >= maxNotes {
		for i := range all {
			if n := &all[i]; n.kind == kind {
				n.at, n.until, n.amount, n.n = min(n.at, at), max(n.until, at), n.amount+amount, n.n+1
				return
			}
		}
	}
	t.log.notes[u] = append(all, note{at, at, amount, 1, kind})
}

// withdraw removes the notes of a kind since a time: what came after shows that they were wrong.
func (l *log) withdraw(kind noteKind, since int64) {
	for u, notes := range l.notes {
		l.notes[u] = slices.DeleteFunc(notes, func(n note) bool { return n.kind == kind && n.at >= since })
	}
}

// tell notes an event for people.
func (t *Tracker) tell(e Event) {
	if len(t.log.events) < maxEvents {
		t.log.events = append(t.log.events, e)
	} else {
		t.log.lost++
	}
}

// happened marks the present poll and tells of it.
func (t *Tracker) happened(m markKind, k EventKind, e *evidence, text string) {
	t.log.mark(m, e.at, e.at)
	t.tell(Event{AtNS: e.at, Kind: k, Process: t.cur.id, Series: -1, Text: text})
}

// doubt notes the first values of a process that is counted from zero: all of them, or those that are unlikely; the
// others are in doubt only if it turns out to have run beside the one before.
func (t *Tracker) doubt(before *process, e *evidence, all bool) {
	unlikely := t.unlikely(before, e)
	for u := range t.units {
		if v := t.sight[u].value; t.sight[u].in && (all || unlikely(u)) {
			t.note(int32(u), noteLow, e.at, v)
		} else if t.sight[u].in {
			t.note(int32(u), noteRan, e.at, v)
		}
	}
}

// unlikely reports of a unit whether a process that began since can hardly have reached its value at the pace of the
// one before; where that holds of most large ones it does of all.
func (t *Tracker) unlikely(before *process, e *evidence) func(u int) bool {
	hardly := func(u int) bool { return t.sight[u].in && t.sight[u].value > 2*before.paceOf(u)*e.dt+8 }
	large, most := 0, 0
	for u := range t.units {
		large += count(t.sight[u].in && t.sight[u].value > 8)
		most += count(hardly(u))
	}
	if most < few || 2*most < large {
		return hardly
	}
	return func(u int) bool { return t.sight[u].in }
}
