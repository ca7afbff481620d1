package continuity

import (
	"cmp"
	"math"

	"github.com/scrapestat/scrapestat/metric"
)

// What counts as equal, near and inside, in seconds.
const (
	equalTime = 0.0005
	nearTime  = 1.0
	maxSkew   = 300 // a process that began so long before the last body hardly has a wrong clock: it may have run
	tolerated = 2.0 // clocks of the target and of the run may be so far apart
)

// few is the number of units from which they can bear witness for each other.
const few = 3

// sight is a unit in the present body.
type sight struct {
	in    bool // with finite values
	torn  bool // a bucket is lower than before, but not the count
	act   action
	value float64 // of its key
}

// action is what becomes of a unit of an accepted body.
type action uint8

const (
	absent    action = iota
	gain             // what it is more than before
	held             // left out
	fromZero         // it was made anew, or born
	reference        // counts from what it shows
	perSlot          // each slot by itself: some fell for good
)

// start is a slot with the start time of the process, or its age.
type start struct {
	slot int32
	age  bool
}

// evidence is what the present body shows beside the present process.
type evidence struct {
	at, sent int64
	dt       float64 // since the last accepted body, seconds
	complete bool
	start    float64 // NaN when unknown

	known, weighed  int // units of the process; of them in the body and above 0 before
	fell, freshFell int
	kept, freshKept int // did not fall and are above 0
	rose            int

	aged     bool      // start comes from an age, which is never exact
	gained   bool      // some unit did
	returned bool      // some unit came back from a dip
	paces    []float64 // by family, nil until they are asked for
	parted   bool      // units that were created since are anew
	stuck    int       // units that do not come back
	dips     int       // units that began to dip
	dipped   int32     // series of the last of them
}

// away is how long ago the last body of a process was accepted, in seconds, and never 0.
func (e *evidence) away(p *process) float64 { return max(since(e.at, p.at), 1e-9) }

func since(at, before int64) float64 { return float64(at-before) / 1e9 }

// restarts reports whether the values alone look like those of a process that began since: half of them fell, and
// 80 % can have been reached in the time. Of one or two units in the body, all of the process must have fallen.
func (e *evidence) restarts() bool {
	return e.fell > 0 && e.weighed > 0 && 2*e.fell >= e.weighed && (e.weighed >= few || e.fell >= e.known) &&
		5*e.freshFell >= 4*e.fell && 5*e.freshKept >= 4*e.kept
}

// look finds which units the body has, and when its process began.
func (t *Tracker) look(e *evidence) {
	for u := range t.units {
		s, key := &t.sight[u], t.units[u].key
		*s = sight{in: t.slots[key].live, value: t.slots[key].value(t.body[key])}
	}
	for id := range t.slots {
		if s := &t.slots[id]; s.cumulative() && s.live && !s.finite(t.body[id]) {
			t.sight[s.unit].in, t.units[s.unit].odd = false, true
		}
	}
	e.start, e.aged = t.startOf(e)
	t.ahead = t.ahead || e.start > seconds(e.at)+tolerated
	for _, u := range t.dated {
		t.ahead = t.ahead || t.createdOf(int(u), e) > seconds(e.at)+tolerated
	}
}

// startOf is when the process began by the one series that has it, or by its age, where all that show one agree.
func (t *Tracker) startOf(e *evidence) (begun float64, aged bool) {
	begun, young := math.NaN(), math.NaN()
	n, agree := 0, true
	for _, s := range t.starts {
		sl := &t.slots[s.slot]
		switch v := sl.value(t.body[s.slot]); {
		case sl.live && s.age:
			agree = agree && !(math.Abs(seconds(e.at)-v-young) > nearTime)
			young = seconds(e.at) - v
		case sl.live:
			begun, n = v, n+1
		}
	}
	if n == 0 && agree {
		begun, aged = young, !math.IsNaN(young)
	}
	if n > 1 || math.IsInf(begun, 0) {
		begun = math.NaN()
	}
	return begun, aged
}

// createdOf is the creation time of a unit in the body; NaN when there is none that can be one.
func (t *Tracker) createdOf(u int, e *evidence) float64 {
	if c := t.units[u].created; c >= 0 && t.slots[c].live && t.sight[u].in {
		if v := t.slots[c].value(t.body[c]); v > 1e9 && v <= seconds(e.at)+86400 {
			return v
		}
	}
	return math.NaN()
}

// sameTimes compares the start time of a body, else its creation times, with those of a process: 1 for equal, -1 for
// different, 0 for unknown.
func (t *Tracker) sameTimes(p *process, e *evidence) int {
	if d := math.Abs(e.start - p.start); d > nearTime {
		return -1
	} else if d <= equalTime && !e.aged {
		return 1
	} else if d >= 0 {
		return 0
	}
	both, equal, moved := 0, 0, 0
	for _, u := range t.dated {
		d := math.Abs(t.createdOf(int(u), e) - p.made[u])
		if !(d >= 0) {
			continue
		}
		both++
		if d <= equalTime {
			equal++
		} else if d > nearTime {
			moved++
		}
	}
	switch {
	case both >= 2 && 2*moved >= both:
		return -1
	case both >= 2 && 2*equal > both:
		return 1
	}
	return 0
}

// weigh counts what fell and rose since the last accepted body of the present process.
func (t *Tracker) weigh(e *evidence) {
	p := t.cur
	for u := range t.units {
		s := &t.sight[u]
		if !p.known[u] {
			continue
		}
		e.known++
		if !s.in {
			continue
		}
		before := t.lastOf(p, u)
		if before > 0 {
			e.weighed++
		}
		fresh := count(t.fresh(p, u, s.value, e.dt))
		switch {
		case t.below(p, u):
			e.fell++
			e.freshFell += fresh
			continue
		case s.value > before:
			e.rose++
		}
		if s.value > 0 {
			e.kept++
			e.freshKept += fresh
		}
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// lastOf is the key value of a unit as a process last showed it.
func (t *Tracker) lastOf(p *process, u int) float64 {
	key := t.units[u].key
	if p.last == nil {
		return t.slots[key].value(t.body[key])
	}
	return t.slots[key].value(p.last[key])
}

// below reports whether the body has less of a unit than a process last showed.
func (t *Tracker) below(p *process, u int) bool {
	key := t.units[u].key
	if t.slots[key].integer {
		return t.body[key] < p.last[key]
	}
	return t.sight[u].value < t.lastOf(p, u)
}

// fresh reports whether a process that began since its last body can have reached the value.
func (t *Tracker) fresh(p *process, u int, v, dt float64) bool {
	return v >= 0 && (v <= 8*p.paceOf(u)*dt+8 || p.known[u] && v <= t.lastOf(p, u)/8)
}

// fits reports whether the body can be a later one of a process: no unit is lower.
func (t *Tracker) fits(p *process) bool {
	some := false
	for u := range t.units {
		if !t.sight[u].in || !p.known[u] {
			continue
		}
		if t.below(p, u) {
			return false
		}
		some = some || t.lastOf(p, u) > 0
	}
	return some
}

// sentOf is when a poll was asked for, at the latest when it was answered.
func sentOf(s *metric.Snapshot) int64 { return min(cmp.Or(s.SentNS, s.AtNS()), s.AtNS()) }

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
