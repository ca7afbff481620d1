package traffic

import (
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

const (
	gap         = 5e9 // ns without traffic that part two segments, at least
	rateSpan    = 5e9 // ns over which arrivals are counted for an edge
	maxSegments = 10_000
	maxRecent   = 32 // polls kept for the rate before an end
	maxEnds     = 15 // polls with ends of requests that date the onset back
)

// poll is one stored poll as the estimates see it; the counts are of all polls up to it.
type poll struct {
	sent, at int64
	began    float64 // requests: those that ended and those that are there, or arrivals where they are counted
	ended    float64
	took     float64 // seconds of those that ended
	active   bool
	busy     bool // a level is above 0
	family   int  // the first that moved, -1 for none
}

// track is the traffic as some tiers of evidence show it.
type track struct {
	tiers    [2]Tier
	lead     int // the family that counts requests, -1 before one is known
	leadRank int
	roles    []role // by family
	scales   []float64
	early    bool // something tells of a request before it ends
	arrivals bool // requests that begin are counted

	countedNS int64 // the last poll in which something was counted
	tallied   bool  // in the poll being read

	level   float64 // requests that are there
	ended   float64
	took    float64
	arrived float64
	above   int // levels above 0 that were 0 before

	next   poll // being read
	prev   poll
	n      int   // polls
	begin  int64 // of the first
	recent []poll
	whole  profile

	doubted   int64   // since when the poll being read tells of, where not since the one before; 0 for that
	restarted bool    // before the poll being read
	lost      float64 // requests that restarts left unfinished
	back      int64   // when a server was last back within the open segment, 0 for never

	open   bool
	seg    raw
	wait   bool // the poll after the last active one ends the segment
	closed []raw
}

// raw is a segment before its edges are known.
type raw struct {
	first, before  poll // the first active poll and the one before it
	cold           bool // there is none before: the edge is not of this load
	last           poll // active
	family         int  // counts the requests
	ends           int
	high, back     int64 // onset at the latest by requests that ended; where ends alone put it
	rate           float64
	rated          bool
	low, until     int64 // the end lies between
	startsIn, pace float64
	final          bool // no poll follows the last active one
}

func newTrack(tiers ...Tier) track { return track{tiers: [2]Tier(tiers), lead: -1} }

// consider takes a family as the one that counts requests, if it does so better.
func (t *track) consider(family int, f *catalog.Family, fam *metric.Family, tier Tier, r metric.Role) {
	if by := rank(f, fam, tier, r); slices.Contains(t.tiers[:], tier) && by > t.leadRank {
		t.lead, t.leadRank = family, by
	}
}

// assign gives families their roles: levels, arrivals and durations are those of the engine that counts.
func (t *track) assign(d *Detector) {
	t.roles = make([]role, len(d.schema.Families))
	t.scales = make([]float64, len(d.schema.Families))
	engine := func(i int) string {
		if f, ok := d.catalog.Family(d.schema.Families[i].Name); ok {
			return f.Engine
		}
		return ""
	}
	for i := range d.schema.Families {
		fam := &d.schema.Families[i]
		f, ok := d.catalog.Family(fam.Name)
		if i == t.lead {
			t.roles[i] |= counts
		}
		if !ok || t.tiers[0] != Known || t.lead >= 0 && engine(t.lead) != f.Engine {
			continue
		}
		switch {
		case i == t.lead && t.leadRank == rankTimed:
			t.roles[i] |= durates
			t.scales[i] = f.Seconds(fam.Name)
		case f.Canonical == "running", f.Canonical == "waiting":
			t.roles[i] |= presents
		case f.Moves == "arrival" && fam.Type == metric.Counter:
			t.early = true
			if f.Canonical == "started" || f.Canonical == "success" { // else it counts tokens, lookups, a part of the requests
				t.roles[i] |= arrives
				t.arrivals = true
			}
		}
	}
}

// counted takes what a count or a sum of durations gained.
func (t *track) counted(e *entry, gain float64) {
	if e.sum {
		if t.roles[e.family]&durates != 0 && e.whole {
			t.took += gain * t.scales[e.family]
		}
		return
	}
	t.tallied = true
	t.move(e.family)
	if !e.whole {
		return
	}
	if t.roles[e.family]&counts != 0 {
		t.ended += gain
	}
	if t.roles[e.family]&arrives != 0 {
		t.arrived += gain
	}
}

func (t *track) move(family int) {
	if !t.next.active {
		t.next.active, t.next.family = true, family
	}
}

// present adds requests that are there.
func (t *track) present(e *entry, by float64) {
	if t.roles[e.family]&presents != 0 && e.whole {
		t.level += by
	}
}

// levelMoved takes the new value of a level. One that was above 0 since the first poll means nothing until it falls
// to 0: then there was traffic all the time.
func (t *track) levelMoved(e *entry, old float64, polls int) {
	t.present(e, e.value-old)
	if !e.rested {
		if e.value == 0 && old > 0 && polls > 0 {
			t.early = true
			t.wasBusy(e.family)
		}
		return
	}
	if up, was := e.value > 0, old > 0; up && !was {
		t.above++
		t.early = true
		if t.next.family = e.family; t.next.active {
			return
		}
		t.move(e.family)
	} else if was && !up {
		t.above--
	}
}

// wasBusy makes one segment of all from the first poll on.
func (t *track) wasBusy(family int) {
	all := t.seg
	if len(t.closed) > 0 {
		all = t.closed[0]
	} else if !t.open {
		all = raw{high: math.MaxInt64, back: math.MaxInt64, family: t.lead}
		all.first = t.prev
	}
	all.cold = true
	all.first.sent, all.first.family = t.begin, family
	all.before = poll{}
	t.closed, t.seg, t.open = nil, all, true
	t.prev.busy = true
	t.seg.last = t.prev
	t.wait = true
}

// step ends the reading of a poll.
func (t *track) step() {
	p := &t.next
	if p.busy = t.above > 0; p.busy {
		p.active = true
	}
	p.ended, p.took = t.ended, t.took
	if t.tallied {
		t.countedNS, t.tallied = p.at, false
	}
	switch {
	case t.arrivals:
		p.began = t.arrived
	case t.leadRank == rankTimed:
		if t.restarted {
			t.lost = t.prev.began - t.prev.ended
		}
		p.began = t.ended + t.level + t.lost
	}
	if t.n == 0 {
		t.begin = p.sent
	}
	t.follow(p)
	t.n++
	t.prev = *p
	t.keep(p)
	if t.open {
		t.whole.add(p.at, t.level, p.began)
	}
}

// follow moves the segments on.
func (t *track) follow(p *poll) {
	s := &t.seg
	if t.doubted != 0 {
		t.prev.sent, t.doubted = min(t.prev.sent, t.doubted), 0
	}
	if t.open && !s.rated && p.at-s.first.at >= rateSpan {
		s.rate, s.rated = mean(p.began-s.first.began, seconds(p.at-s.first.at)), true
	}
	if t.open && t.wait {
		t.end(p)
	}
	t.wait, s.final = false, false
	far := t.open && float64(p.at-max(s.last.at, t.back)) > max(gap, 10*t.interval())
	if t.restarted && t.open && !far {
		t.back = p.at
	}
	if t.restarted = false; !p.active {
		return
	}
	if far {
		t.close()
	}
	if !t.open {
		t.open, t.back = true, 0
		t.seg = raw{first: *p, before: t.prev, cold: t.n == 0, high: math.MaxInt64, back: math.MaxInt64, family: t.lead}
	}
	s.last, s.family = *p, t.lead
	if t.n > 0 {
		t.endsOf(p)
		t.end(p)
	}
	s.final = true
	t.wait = p.busy
}

// interval is the mean time between stored polls, in ns.
func (t *track) interval() float64 {
	if t.n < 2 {
		return 0
	}
	return float64(t.prev.at-t.begin) / float64(t.n-1)
}

// endsOf dates the onset back by requests that ended between two polls.
func (t *track) endsOf(p *poll) {
	n, took := p.ended-t.prev.ended, p.took-t.prev.took
	if n <= 0 || took <= 0 || t.seg.ends == maxEnds {
		return
	}
	t.seg.ends++
	m := ns(took / n)
	t.seg.high = min(t.seg.high, p.at-m)
	t.seg.back = min(t.seg.back, (p.at+t.prev.sent)/2-m)
}

// end notes that the segment ends between the previous poll and p, as far as it is known now.
func (t *track) end(p *poll) {
	s := &t.seg
	s.low, s.until, s.startsIn = t.prev.sent, p.at, p.began-t.prev.began
	from := s.first
	for i := len(t.recent) - 1; i >= 0; i-- {
		if q := &t.recent[i]; t.prev.at-q.at >= rateSpan || i == 0 && q.at > from.at {
			from = *q
			break
		}
	}
	s.pace = mean(t.prev.began-from.began, seconds(t.prev.at-from.at))
}

// keep holds the polls of the last seconds, thinned out where they are many.
func (t *track) keep(p *poll) {
	const apart = int64(rateSpan) * 5 / 4 / maxRecent
	if n := len(t.recent); n > 1 && t.recent[n-1].at-t.recent[n-2].at < apart {
		t.recent[n-1] = *p
		return
	}
	if len(t.recent) == maxRecent {
		copy(t.recent, t.recent[1:])
		t.recent = t.recent[:maxRecent-1]
	}
	t.recent = append(t.recent, *p)
}

// close ends the present segment; where there are too many the two nearest become one.
func (t *track) close() {
	t.closed = append(t.closed, t.seg)
	t.open = false
	if len(t.closed) <= maxSegments {
		return
	}
	at := 0
	for i := 1; i+1 < len(t.closed); i++ {
		if t.closed[i+1].first.at-t.closed[i].last.at < t.closed[at+1].first.at-t.closed[at].last.at {
			at = i
		}
	}
	t.closed[at].join(&t.closed[at+1])
	t.closed = slices.Delete(t.closed, at+1, at+2)
}

// join makes one segment of r and the next one.
func (r *raw) join(next *raw) {
	joined := *next
	joined.first, joined.before, joined.cold, joined.rate, joined.rated = r.first, r.before, r.cold, r.rate, r.rated
	joined.ends, joined.high, joined.back = r.ends+next.ends, min(r.high, next.high), min(r.back, next.back)
	*r = joined
}
