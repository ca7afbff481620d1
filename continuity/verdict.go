package continuity

import "math"

// Verdict returns what is known of a series in a window: from is the time of its reference, to that of its last
// sample. Only what happened after from and not after to counts, but every decision knows the whole recording so far.
// A series that is not cumulative has the zero value.
func (t *Tracker) Verdict(series int, from, to int64) Verdict {
	v := Verdict{}
	if series < 0 || series >= len(t.unitOf) || t.unitOf[series] < 0 {
		return v
	}
	u := t.unitOf[series]
	w := t.log.count(from, to)
	v.Restarts = w.n[markRestart]
	lower := t.count(u, from, to, &v)
	t.pending(int(u), to, w, &v)
	switch status := t.of(w, from, to); {
	case status == Refused:
		v.Status = Refused
	case lower || status == LowerBound:
		v.Status = LowerBound
	case status == Ambiguous:
		v.Status, v.Low, v.High = Ambiguous, math.Inf(-1), math.Inf(1)
	case v.Status == Ambiguous || math.IsInf(v.High, 1):
		v.Status = Ambiguous
	case v.Restarts > 0:
		v.Status = Corrected
	case v.Births > 0:
		v.Status = Born
	}
	return v
}

// Pending reports whether a restart was tentative between the polls about an instant: what was gained before it is
// booked after it.
func (t *Tracker) Pending(at int64) bool { return t.log.count(at-1, at-1).ends }

// count adds up the notes of a unit; lower reports whether a part of its gain is unknown.
func (t *Tracker) count(u int32, from, to int64, v *Verdict) (lower bool) {
	for _, n := range t.log.notes[u] {
		if n.at > to || n.until <= from {
			continue
		}
		switch n.kind {
		case noteBorn:
			v.Births += n.n
		case noteRestart:
			v.Restarts += n.n
		case noteLower:
			lower = true
		case noteDip:
			v.Dips += n.n
		case noteHigh:
			v.High += n.amount
		case noteMoved:
			if t.units[u].moves < 3 {
				v.High += n.amount
			}
		case noteLow:
			v.Low -= n.amount
		case noteNear:
			if len(t.starting) < 3 {
				v.Low -= n.amount
			}
		case noteFirst:
			if n.amount > 2*t.cur.paceOf(int(u))*float64(t.units[u].gap)+8 {
				v.Low -= n.amount
			}
		case noteRan:
			if w := t.log.count(from, to); w.n[markBack]+w.n[markOther] > 0 {
				v.Low -= n.amount
			}
		case noteUnseen:
			v.Unseen += n.amount
		}
	}
	return lower
}

// pending adds what is not settled at the end of the window.
func (t *Tracker) pending(u int, to int64, w *window, v *Verdict) {
	if w.ends || t.older >= young && to >= t.olderAt {
		v.High = math.Inf(1)
	}
	if w.begins {
		v.Low, v.Status = math.Inf(-1), Ambiguous
	}
	if p := t.cur; p != nil && p.tentative && to >= p.first && p.known[u] {
		v.High, v.Restarts = v.High+max(0, t.lastOf(p, u)), v.Restarts+1
	}
	for _, p := range t.processes {
		if h, ok := p.holds[int32(u)]; ok && to >= h.since {
			v.short, v.anew = math.Abs(t.lastOf(p, u)-h.last), max(0, h.last)
		}
	}
}

// of is the status that all series of the target share.
func (t *Tracker) of(w *window, from, to int64) Status {
	n := &w.n
	mixed := n[markExcursion] > 1 || n[markLeapFit] > 1 || n[markFell] > 0 && n[markLower]+n[markLeap] > 1
	several := n[markBack]+n[markOther] > 0
	dips, older := float64(n[markDips]), float64(n[markOlder])
	polls := float64(t.polls)
	if span := since(t.at, t.began); span > 0 {
		polls *= min(1, since(to, from)/span)
	}
	switch {
	case mixed, several && !t.named():
		return Refused
	case several || n[markLower]+n[markExcursion] > 0:
		return LowerBound
	case older >= 5 && older >= 0.4*polls: // more than a cache sends: the first leap may have been to another process
		return Ambiguous
	case n[markLeap] > 0 && n[markFell] > 0, n[markStuck] > 0, dips >= 5 && dips >= 0.1*polls && t.dipped >= 2:
		return Ambiguous
	case n[markRestart] > 0:
		return Corrected
	}
	return OK
}

// named reports whether the times of each process tell it from all others.
func (t *Tracker) named() bool {
	if t.nameless || t.answered() > maxProcesses {
		return false
	}
	for i, p := range t.processes {
		if !p.named() {
			return false
		}
		for _, q := range t.processes[:i] {
			if d := math.Abs(p.begun() - q.begun()); d <= equalTime {
				return false
			}
		}
	}
	return true
}

// answered is how many processes there are, without those that followed one by a restart.
func (t *Tracker) answered() int { return max(1, int(t.opened)-t.gone-t.restarts) }

// Target returns what happened to the target after from and not after to.
func (t *Tracker) Target(from, to int64) Summary {
	w := t.log.count(from, to)
	s := Summary{Status: t.of(w, from, to), Processes: 1, Restarts: w.n[markRestart], HeldBodies: w.n[markOlder],
		Lost: t.log.lost}
	if p := t.cur; s.Status < Ambiguous && p != nil && p.tentative && to >= p.first {
		s.Status, s.Restarts = Ambiguous, s.Restarts+1
	}
	switch {
	case s.Status == Refused:
		s.Processes = 0
	case w.n[markBack]+w.n[markOther] > 0:
		s.Processes = max(2, t.answered())
	case w.n[markLower]+w.n[markExcursion] > 0:
		s.Processes = 2
	}
	for _, notes := range t.log.notes {
		for _, n := range notes {
			if n.kind == noteDip && n.at <= to && n.until > from {
				s.Dips += n.n
			}
		}
	}
	for _, e := range t.log.events {
		if from < e.AtNS && e.AtNS <= to {
			s.Events = append(s.Events, e)
		}
	}
	return s
}
