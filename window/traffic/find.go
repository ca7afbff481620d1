package traffic

import (
	"cmp"
	"math"
	"slices"
)

// Edge is where traffic begins or ends: at AtNS by the estimate, and not before LowNS nor after HighNS.
type Edge struct {
	AtNS   int64  `json:"at_ns"`
	LowNS  int64  `json:"low_ns"`
	HighNS int64  `json:"high_ns"`
	Target int    `json:"target"` // the detector, by its place, that saw it
	Family string `json:"family,omitempty"`
	// About is set when nothing tells of a request before it ends: LowNS is practice then, and no proof.
	About bool `json:"about,omitempty"`
}

// Segment is traffic without gaps.
type Segment struct {
	Start    Edge    `json:"start"`
	End      Edge    `json:"end"`
	Requests float64 `json:"requests"` // that ended in it, as far as they are counted
}

// Traffic is when the targets of a run had requests.
type Traffic struct {
	Segments []Segment `json:"segments,omitempty"`
	// Probes are the first or last segments that are no part of the load: checks of health, a test request.
	Probes []Segment `json:"probes,omitempty"`
	// BusyAtStart and BusyAtEnd are set when there was traffic in the first or last stored poll: the edge is then where
	// the recording begins or ends.
	BusyAtStart bool `json:"busy_at_start,omitempty"`
	BusyAtEnd   bool `json:"busy_at_end,omitempty"`
	// InFlightAtEnd is set when requests were there in the last stored poll.
	InFlightAtEnd bool `json:"in_flight_at_end,omitempty"`
	// CountedNS is when something last was counted, and not only there; 0 for never.
	CountedNS int64 `json:"counted_ns,omitempty"`
	// RampNS is when the load first was at 0.9 of what it was in the middle, DrainNS when it last was; 0 where it always
	// was, where nothing tells, and of a load with gaps.
	RampNS  int64 `json:"ramp_ns,omitempty"`
	DrainNS int64 `json:"drain_ns,omitempty"`
	// Blind is set when no series of any target could have told of requests.
	Blind bool `json:"blind,omitempty"`
	// FirstNS and LastNS are the times of the first and the last stored poll, 0 without any.
	FirstNS int64 `json:"first_ns"`
	LastNS  int64 `json:"last_ns"`
}

// Start returns the first edge of the load; ok is false when there was no traffic.
func (t *Traffic) Start() (e Edge, ok bool) {
	if len(t.Segments) == 0 {
		return e, false
	}
	return t.Segments[0].Start, true
}

// End returns the last edge of the load.
func (t *Traffic) End() (e Edge, ok bool) {
	if len(t.Segments) == 0 {
		return e, false
	}
	return t.Segments[len(t.Segments)-1].End, true
}

// part is a segment of one target.
type part struct {
	Segment
	family      string // counts the requests
	cold, final bool
}

// Find joins what detectors of the targets of one run saw so far. It changes none of them.
func Find(detectors []*Detector) Traffic {
	var t Traffic
	var parts []part
	known := slices.ContainsFunc(detectors, func(d *Detector) bool { return d != nil && d.known })
	between := float64(gap)
	t.Blind = true
	for _, d := range detectors {
		if d == nil || d.polls == 0 {
			continue
		}
		if t.FirstNS == 0 || d.first < t.FirstNS {
			t.FirstNS = d.first
		}
		t.LastNS = max(t.LastNS, d.last)
		t.InFlightAtEnd = t.InFlightAtEnd || d.sure.above > 0
		t.Blind = t.Blind && len(d.entries) == 0
		tr := &d.guess
		if known {
			tr = &d.sure
		}
		between, t.CountedNS = max(between, 10*tr.interval()), max(t.CountedNS, tr.countedNS)
	}
	for i, d := range detectors {
		switch {
		case d == nil:
		case known:
			parts = append(parts, d.sure.parts(i, d, between)...)
		default:
			parts = append(parts, d.guess.parts(i, d, between)...)
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.Start.AtNS, b.Start.AtNS) })
	t.join(parts, between)
	t.slopes(detectors, known)
	return t
}

// join makes segments of the run out of those of its targets.
func (t *Traffic) join(parts []part, between float64) {
	var all []part
	var count map[string]float64 // by family, of the last of all
	for _, p := range parts {
		if n := len(all); n > 0 && float64(p.Start.AtNS-all[n-1].End.AtNS) <= between {
			last := &all[n-1]
			last.Start, last.End = first(last.Start, p.Start), later(last.End, p.End)
			last.cold, last.final = last.cold || p.cold, last.final || p.final
			count[p.family] += p.Requests
			last.Requests = max(last.Requests, count[p.family])
			continue
		}
		all = append(all, p)
		count = map[string]float64{p.family: p.Requests}
	}
	if len(all) == 0 {
		return
	}
	segs := make([]Segment, len(all))
	for i := range all {
		segs[i] = all[i].Segment
	}
	t.Segments, t.Probes = load(segs)
	begin, end := len(t.Segments), 0
	for i := range all {
		if s := &all[i]; s.Start.AtNS >= t.Segments[0].Start.AtNS && s.End.AtNS <= t.Segments[len(t.Segments)-1].End.AtNS {
			begin, end = min(begin, i), i
		}
	}
	t.BusyAtStart, t.BusyAtEnd = all[begin].cold, all[end].final
}

// first is where two targets' traffic begins: with the first request at either. later is where it ends.
func first(a, b Edge) Edge {
	if b.AtNS < a.AtNS {
		a, b = b, a
	}
	a.LowNS, a.HighNS, a.About = min(a.LowNS, b.LowNS), min(a.HighNS, b.HighNS), a.About || b.About
	a.AtNS = min(max(a.AtNS, a.LowNS), a.HighNS)
	return a
}

func later(a, b Edge) Edge {
	if b.AtNS > a.AtNS {
		a, b = b, a
	}
	a.LowNS, a.HighNS = max(a.LowNS, b.LowNS), max(a.HighNS, b.HighNS)
	a.AtNS = min(max(a.AtNS, a.LowNS), a.HighNS)
	return a
}

// load tells the segments of the load from probes: first or last ones of a few requests where another has more than ten
// times as many. Where most segments hold less than four requests the load is a slow one, and not cut: unless one of
// them holds most of all requests, so that the others about it are probes.
func load(all []Segment) (segs, probes []Segment) {
	total, most := 0.0, 0.0
	for i := range all {
		total, most = total+all[i].Requests, max(most, all[i].Requests)
	}
	probe := func(s *Segment) bool { return s.Requests <= max(3, 0.01*total) && most > 10*s.Requests }
	lo, hi := 0, len(all)
	if 2*most > total || !isSlow(all) {
		for hi-lo > 1 && probe(&all[lo]) {
			lo++
		}
		for hi-lo > 1 && probe(&all[hi-1]) {
			hi--
		}
	}
	segs, probes = all[lo:hi], slices.Concat(all[:lo], all[hi:])
	if len(segs) > 1 && isSlow(segs) {
		one := Segment{Start: segs[0].Start, End: segs[len(segs)-1].End}
		for i := range segs {
			one.Requests += segs[i].Requests
		}
		segs = []Segment{one}
	}
	return segs, probes
}

// isSlow reports whether most segments hold less than four requests.
func isSlow(all []Segment) bool {
	sizes := make([]float64, len(all))
	for i := range all {
		sizes[i] = all[i].Requests
	}
	slices.Sort(sizes)
	return (sizes[len(sizes)/2]+sizes[(len(sizes)-1)/2])/2 < 4
}

// parts returns the segments of one target with their edges. Those whose estimated edges are near are one: where only
// ends tell, a long request parts what belongs together.
func (t *track) parts(target int, d *Detector, between float64) []part {
	raws := slices.Clone(t.closed)
	if t.open {
		raws = append(raws, t.seg)
	}
	name := func(family int) string {
		if family < 0 || family >= len(d.schema.Families) {
			return ""
		}
		return d.schema.Families[family].Name
	}
	edges := func(r *raw) part {
		p := part{cold: r.cold, final: r.final, family: name(r.family)}
		p.Requests = r.last.ended - r.before.ended
		p.Start, p.End = r.onset(t.early), r.ending(t.early)
		p.Start.Target, p.Start.Family = target, name(r.first.family)
		p.End.Target, p.End.Family = target, name(r.last.family)
		return p
	}
	out := make([]part, 0, len(raws))
	at := 0 // of the last of out
	for i := range raws {
		p := edges(&raws[i])
		if n := len(out); n > 0 && float64(p.Start.AtNS-out[n-1].End.AtNS) <= between {
			raws[at].join(&raws[i])
			out[n-1] = edges(&raws[at])
			continue
		}
		out, at = append(out, p), i
	}
	return out
}

// onset is where a segment begins; early is whether something tells of a request before it ends.
func (r *raw) onset(early bool) Edge {
	if r.cold {
		return Edge{AtNS: r.first.sent, LowNS: r.first.sent, HighNS: r.first.sent}
	}
	e := Edge{LowNS: r.before.sent, HighNS: min(r.first.at, r.high)}
	switch {
	case early:
		e.LowNS = min(e.LowNS, e.HighNS)
		rate := r.rate
		if !r.rated {
			rate = mean(r.last.began-r.first.began, seconds(r.last.at-r.first.at))
		}
		e.AtNS = place(r.first.at, e.LowNS, e.HighNS, r.first.began-r.before.began, rate)
	case r.ends > 0:
		whole := mean(r.last.took-r.before.took, r.last.ended-r.before.ended)
		e.LowNS = min(e.LowNS, r.back-(r.first.at-r.before.sent)/2) - ns(2*whole)
		e.AtNS, e.About = min(r.back, e.HighNS), true
	default:
		e.LowNS = min(e.LowNS, e.HighNS)
		e.AtNS = e.LowNS + (e.HighNS-e.LowNS)/2
	}
	return e
}

// ending is where a segment ends.
func (r *raw) ending(early bool) Edge {
	e := Edge{AtNS: r.low + (r.until-r.low)/2, LowNS: r.low, HighNS: r.until}
	if r.until == 0 { // the first poll is the only one
		return Edge{AtNS: r.last.at, LowNS: r.last.sent, HighNS: r.last.at}
	}
	if early && r.ends > 0 && r.startsIn > 0 && r.pace > 0 {
		took := mean(r.last.took-r.before.took, r.last.ended-r.before.ended)
		e.AtNS = r.low + min(r.until-r.low, ns(r.startsIn/r.pace+took))
	}
	return e
}

// place is the mean place of the onset within [low, high] when n requests began between it and at, at a rate of so
// many a second: the mean of the density x^(n-1) e^(-rate x), x being the time from the onset to at, on 64 cells. A
// closed loop begins with many requests at once, which says nothing: then it is the middle.
func place(at, low, high int64, n, rate float64) int64 {
	if high <= low {
		return low
	}
	if n < 1 || rate <= 0 || n-1 > 1.5*rate*seconds(at-low)+3 {
		return low + (high-low)/2
	}
	const cells = 64
	var logs, places [cells]float64
	top := math.Inf(-1)
	for i := range cells {
		places[i] = float64(high-low) * (float64(i) + .5) / cells
		x := (float64(at-low) - places[i]) / 1e9
		logs[i] = (n-1)*math.Log(max(x, 1e-9)) - rate*x
		top = max(top, logs[i])
	}
	sum, weight := 0.0, 0.0
	for i := range cells {
		w := math.Exp(logs[i] - top)
		sum, weight = sum+places[i]*w, weight+w
	}
	return low + int64(sum/weight)
}
