package window

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/window/traffic"
)

// ErrNoSuch is why Resolve refuses a phase or segment that the run does not have, or that occurs several times.
var ErrNoSuch = errors.New("no such part of the run")

// Run is what is known of a recorded run.
type Run struct {
	Marks    []metric.Mark
	OriginNS int64 // start of the recording
	// EndNS is where a run ends that has no mark "end": its last poll.
	EndNS            int64
	Interval         time.Duration // of polls
	Warmup, Cooldown time.Duration // that the recording was to leave out
	Window           Ref           // that it was to have by default
	// Told is set when the marks are the load generator's own, whoever set them; All when the stretch that was recorded
	// is what somebody asked for, so that it is the window.
	Told, All bool
	// Load is when clients issued their first request and got their last answer, nil when they told nothing.
	Load    *Stretch
	Traffic traffic.Traffic
}

// Resolve returns the window of a run that ref asks for. The errors are wrong selectors; a window of which nothing is
// left is none.
func Resolve(run Run, ref Ref) (Window, []metric.Warning, error) {
	if ref.What == Default && run.Window.What != Default {
		asked := run.Window
		asked.Warmup, asked.Cooldown = cmp.Or(ref.Warmup, asked.Warmup), cmp.Or(ref.Cooldown, asked.Cooldown)
		ref, run.Window = asked, Ref{}
	}
	r := &resolver{run: &run, ref: &ref}
	r.outline()
	if err := r.choose(); err != nil {
		return Window{}, nil, err
	}
	r.trim()
	r.idle()
	r.listPhases()
	return r.w, r.warnings, nil
}

// idle warns of a window in which no request was seen, where polls tell of requests.
func (r *resolver) idle() {
	t, w := &r.run.Traffic, &r.w
	overlaps := func(s traffic.Segment) bool { return s.Start.LowNS < w.End.AtNS && s.End.HighNS > w.Start.AtNS }
	if len(w.Parts) == 0 || t.LastNS == 0 || t.Blind || slices.ContainsFunc(t.Segments, overlaps) ||
		slices.ContainsFunc(t.Probes, overlaps) || slices.ContainsFunc(r.warnings, isNoTraffic) {
		return
	}
	r.warnings = append(r.warnings, Idle())
}

// Idle is the warning of a window in which no request was seen.
func Idle() metric.Warning {
	return metric.Warning{Code: "no_traffic", Text: "no poll of this part of the run showed a request"}
}

func isNoTraffic(w metric.Warning) bool { return w.Code == "no_traffic" }

type resolver struct {
	run      *Run
	ref      *Ref
	marks    []metric.Mark
	w        Window
	load     int64 // where the warm-up counts from
	warmup   time.Duration
	cooldown time.Duration
	warnings []metric.Warning
}

// outline reads off the marks what does not depend on the selector.
func (r *resolver) outline() {
	run := r.run
	r.marks = slices.Clone(run.Marks)
	slices.SortStableFunc(r.marks, func(a, b metric.Mark) int { return cmp.Compare(a.AtNS, b.AtNS) })
	base, ok := r.first(metric.PhaseWarmup, metric.PhaseProfiling)
	if !ok {
		base = run.OriginNS
	}
	end, ok := r.first(metric.MarkEnd)
	if !ok {
		end = max(run.EndNS, base)
	}
	r.w.Command, r.w.Traffic, r.w.LastNS = Stretch{base, end}, run.Traffic, forever
	r.w.Recording = Stretch{run.Traffic.FirstNS, run.Traffic.LastNS}
	if run.Traffic.LastNS == 0 {
		r.w.Recording = Stretch{run.OriginNS, max(run.EndNS, end)}
	}
	r.w.Phases = phasesOf(r.marks, end)
	r.warmup, r.cooldown = run.Warmup, run.Cooldown
	if r.ref.Warmup != nil {
		r.warmup = *r.ref.Warmup
	}
	if r.ref.Cooldown != nil {
		r.cooldown = *r.ref.Cooldown
	}
}

// first returns the first mark of one of the names.
func (r *resolver) first(names ...string) (int64, bool) {
	for _, m := range r.marks {
		if slices.Contains(names, m.Name) {
			return m.AtNS, true
		}
	}
	return 0, false
}

// choose finds the stretch before warm-up and cool-down are taken off.
func (r *resolver) choose() error {
	switch r.ref.What {
	case Default:
		r.byDefault()
	case Traffic, Segments:
		r.byTraffic()
	case Command:
		r.whole(Command, mark(r.w.Command.StartNS), mark(r.w.Command.EndNS))
	case Recording:
		r.plain()
		r.whole(Recording, mark(r.w.Recording.StartNS), mark(r.w.Recording.EndNS))
	case Segment:
		return r.bySegment()
	case Phase:
		return r.byPhase()
	case Range:
		r.plain()
		r.byRange()
	}
	return nil
}

// plain leaves out only what the selector itself asks for, not what the recording was to leave out.
func (r *resolver) plain() {
	if r.ref.Warmup == nil {
		r.warmup = 0
	}
	if r.ref.Cooldown == nil {
		r.cooldown = 0
	}
}

// whole sets a window of one stretch.
func (r *resolver) whole(rule Rule, start, end Edge) {
	r.w.Rule, r.w.Start, r.w.End, r.load = rule, start, end, start.AtNS
	r.w.Parts = []Stretch{{start.AtNS, end.AtNS}}
}

func (r *resolver) byDefault() {
	switch {
	case r.run.All:
		r.told(Recording)
	case r.run.Told || slices.ContainsFunc(r.marks, func(m metric.Mark) bool {
		return m.Name == metric.PhaseProfiling && !m.Own() || m.Kind == metric.PhaseProfiling
	}):
		r.told(LoadGenerator)
	default:
		r.byTraffic()
		r.markedCooldown()
	}
}

// told takes the phases as marks give them.
func (r *resolver) told(rule Rule) {
	if parts := joined(r.w.Phases, metric.PhaseProfiling); len(parts) > 0 {
		last := parts[len(parts)-1].EndNS
		r.plain()
		r.whole(rule, mark(parts[0].StartNS), mark(last))
		r.w.Parts, r.w.Told = parts, true
		if r.w.Warmups = joined(r.w.Phases, metric.PhaseWarmup); len(r.w.Warmups) > 0 {
			r.w.Warmup = &Stretch{r.w.Warmups[0].StartNS, r.w.Warmups[len(r.w.Warmups)-1].EndNS}
		}
		if last < r.w.Command.EndNS {
			r.w.LastNS = last - 1 // a warm-up follows
		}
		return
	}
	start, ok := r.user(metric.PhaseProfiling)
	r.whole(rule, mark(r.w.Command.StartNS), mark(r.w.Command.EndNS))
	if ok && r.ref.Warmup == nil {
		r.cutStart(mark(start))
		r.warmup = 0
	}
	r.markedCooldown()
}

// joined returns the stretches of the phases of a kind; those that follow each other are one.
func joined(phases []PhaseSpan, kind string) (out []Stretch) {
	for _, p := range phases {
		if n := len(out); p.Kind == kind && n > 0 && out[n-1].EndNS == p.StartNS {
			out[n-1].EndNS = p.EndNS
		} else if p.Kind == kind {
			out = append(out, p.Stretch)
		}
	}
	return out
}

// markedCooldown ends the window at a mark "cooldown".
func (r *resolver) markedCooldown() {
	if at, ok := r.user(metric.PhaseCooldown); ok && r.ref.Cooldown == nil && at < r.w.End.AtNS {
		r.w.Cooldown = &Stretch{at, r.w.End.AtNS}
		r.cutEnd(mark(at))
		r.cooldown = 0
	}
}

// user returns the first mark of a name that is not the collector's own, or any where marks are the load generator's.
func (r *resolver) user(name string) (int64, bool) {
	for _, m := range r.marks {
		if m.Name == name && (r.run.Told || r.run.All || !m.Own()) {
			return m.AtNS, true
		}
	}
	return 0, false
}

// byTraffic takes the traffic, or COMMAND where it cannot be told from anything else.
func (r *resolver) byTraffic() {
	t, c := &r.run.Traffic, r.w.Command
	first, ok := t.Start()
	last, _ := t.End()
	if !ok || last.HighNS <= c.StartNS || first.LowNS >= c.EndNS {
		code, text := "no_traffic", "no poll showed a request"
		if t.Blind {
			code, text = "traffic_unknown", "nothing that was polled tells of requests"
		}
		r.warnings = append(r.warnings, metric.Warning{Code: code, Text: text +
			": the numbers are of the whole run, or of COMMAND"})
		r.whole(Command, mark(c.StartNS), mark(c.EndNS))
		return
	}
	start, end := request(first), request(last)
	busy := t.BusyAtStart || start.AtNS < c.StartNS
	if busy {
		start = mark(c.StartNS)
		r.warnings = append(r.warnings, metric.Warning{Code: "busy_at_start",
			Text: "requests were in flight before the load began: they count too"})
	}
	end = r.clip(end)
	if end.AtNS <= start.AtNS {
		r.warnings = append(r.warnings, metric.Warning{Code: "traffic_short", Text: "all requests came between two polls, " +
			"so nothing tells how long they took: the numbers are of the whole run, or of COMMAND; poll more often " +
			"(--interval)"})
		r.whole(Command, mark(c.StartNS), mark(c.EndNS))
		return
	}
	if end.Kind == Snapped {
		r.w.LastNS = end.AtNS
		r.standing(end.AtNS)
	} else if n := len(t.Segments); n > 0 {
		r.w.LastNS = before(t.Probes, t.Segments[n-1].End.AtNS)
	}
	if busy && end.Kind == Snapped && r.ref.What == Default {
		r.whole(Command, start, end)
		return
	}
	r.withEvents(&start, &end)
	r.whole(Traffic, start, end)
	if r.ref.What == Segments && len(t.Segments) > 1 {
		r.segments(t)
	}
}

// clip is the end of a load within that of COMMAND, after which servers only publish what is late, unless requests go
// on as long as anybody watches.
func (r *resolver) clip(end Edge) Edge {
	at := r.w.Command.EndNS
	if r.run.Traffic.InFlightAtEnd {
		return snapped(at)
	}
	end.AtNS, end.LowNS = min(end.AtNS, at), min(end.LowNS, at)
	return end
}

// standing warns of a load that levels alone show for long before its end: a request that a server lost count of looks
// so, and a long one.
func (r *resolver) standing(end int64) {
	counted := r.run.Traffic.CountedNS
	first, _ := r.run.Traffic.Start()
	if still := end - counted; counted != 0 && still > max(5e9, 10*int64(r.run.Interval), (end-first.AtNS)/20) {
		r.warnings = append(r.warnings, metric.Warnf("load_stands", "requests are shown in flight up to the end, but "+
			"nothing was counted in the last %.1f s: where the server lost count of them, leave that time out (--to %.1fs)",
			float64(still)/1e9, r.offset(counted)))
	}
}

// segments leaves out the gaps.
func (r *resolver) segments(t *traffic.Traffic) {
	r.w.Rule, r.w.Parts = Segments, nil
	for i, s := range t.Segments {
		part := Stretch{s.Start.AtNS, s.End.AtNS}
		if i == 0 {
			part.StartNS = r.w.Start.AtNS
		}
		if i == len(t.Segments)-1 {
			part.EndNS = r.w.End.AtNS
		}
		if part.StartNS < part.EndNS {
			r.w.Parts = append(r.w.Parts, part)
		}
	}
}

// withEvents replaces edges by what clients said, where that is within the bounds of the polls.
func (r *resolver) withEvents(start, end *Edge) {
	l := r.run.Load
	if l == nil || start.Kind != Request || end.Kind != Request { // others had requests before or after it
		return
	}
	if !l.fits(start, end) {
		r.warnings = append(r.warnings, metric.Warning{Code: "clock_offset", Text: "the requests of the clients lie more " +
			"than 1 s outside of what the polls bound: their times are not used for the window"})
		return
	}
	*start = Edge{Kind: Event, AtNS: l.StartNS, LowNS: l.StartNS, HighNS: l.StartNS}
	*end = Edge{Kind: Event, AtNS: l.EndNS, LowNS: l.EndNS, HighNS: l.EndNS}
}

// fits reports whether a load is within what polls bound, and a second.
func (s *Stretch) fits(start, end *Edge) bool {
	const slack = int64(time.Second)
	return s.StartNS >= start.LowNS-slack && s.StartNS <= start.HighNS+slack && s.EndNS >= end.LowNS-slack &&
		s.EndNS <= end.HighNS+slack
}

// Agrees reports whether clients told of their requests, by a clock that is not another one than that of the polls.
func (r *Run) Agrees() bool {
	first, ok := r.Traffic.Start()
	last, _ := r.Traffic.End()
	start, end := request(first), request(last)
	return ok && r.Load != nil && r.Load.fits(&start, &end)
}

// before returns up to when polls count for a load that ends at an instant: until the next of these segments begins.
func before(segs []traffic.Segment, end int64) int64 {
	for _, s := range segs {
		if s.Start.AtNS > end {
			return s.Start.LowNS
		}
	}
	return forever
}

func (r *resolver) bySegment() error {
	segs := r.run.Traffic.Segments
	n := r.ref.Instance
	if n > len(segs) {
		return fmt.Errorf("segment %d: %w: there are %d", n, ErrNoSuch, len(segs))
	}
	r.plain()
	s := segs[n-1]
	start, end := request(s.Start), request(s.End)
	if n == 1 && (r.run.Traffic.BusyAtStart || start.AtNS < r.w.Command.StartNS) {
		start = mark(r.w.Command.StartNS)
	}
	r.w.Instance, r.w.LastNS = n, before(slices.Concat(segs, r.run.Traffic.Probes), s.End.AtNS)
	if n == len(segs) {
		if end = r.clip(end); end.Kind == Snapped {
			r.w.LastNS = end.AtNS
		}
	}
	r.whole(Segment, start, end)
	return nil
}

// byRange takes offsets and times, as far as there are polls; one that is left out is the edge of the default window.
func (r *resolver) byRange() {
	d, load := *r, *r
	d.warnings, load.warnings = nil, nil
	if r.ref.From.Base == NoBase || r.ref.To.Base == NoBase {
		d.byDefault()
	}
	if r.ref.From.Base == FromTraffic || r.ref.To.Base == FromTraffic {
		load.byTraffic()
	}
	at := func(p Point) Edge {
		switch p.Base {
		case Absolute:
			return snapped(p.AtNS)
		case FromTraffic:
			return snapped(load.w.Start.AtNS + int64(p.Offset))
		}
		return snapped(r.w.Command.StartNS + int64(p.Offset))
	}
	start, end, last := at(r.ref.From), d.w.End, d.w.LastNS
	if r.ref.To.Base != NoBase {
		end = at(r.ref.To)
	}
	all, asked := r.w.Recording, Stretch{start.AtNS, end.AtNS}
	if start.AtNS < all.StartNS {
		start = snapped(min(all.StartNS, end.AtNS))
	}
	if end.AtNS > all.EndNS && r.ref.To.Base != NoBase {
		end = snapped(max(all.EndNS, start.AtNS))
	}
	if got := (Stretch{start.AtNS, end.AtNS}); got != asked && got.StartNS < got.EndNS {
		r.warnings = append(r.warnings, metric.Warnf("range_cut", "%.1fs..%.1fs was asked for, and there are polls from "+
			"%.1fs to %.1fs", r.offset(asked.StartNS), r.offset(asked.EndNS), r.offset(all.StartNS), r.offset(all.EndNS)))
	}
	if r.ref.To.Base != NoBase {
		last = end.AtNS
	}
	r.whole(Range, start, end)
	r.w.LastNS = last
}

// offset is an instant in seconds from the base of the load.
func (r *resolver) offset(at int64) float64 { return float64(at-r.w.Command.StartNS) / 1e9 }

// trim takes warm-up and cool-down off.
func (r *resolver) trim() {
	w := &r.w
	length := Stretch{w.Start.AtNS, w.End.AtNS}.Seconds()
	if r.warmup > 0 {
		at := w.Start.AtNS + int64(r.warmup)
		w.Warmup, w.Warmups = &Stretch{r.load, min(at, w.End.AtNS)}, nil
		r.cutStart(r.startEdge(at))
	} else if w.Start.AtNS > r.load {
		w.Warmup = &Stretch{r.load, w.Start.AtNS}
	}
	if r.cooldown > 0 {
		at := w.End.AtNS - int64(r.cooldown)
		w.Cooldown = &Stretch{max(at, w.Start.AtNS), w.End.AtNS}
		r.cutEnd(snapped(at))
	}
	if w.Phase == "" && w.Rule != Range && w.Rule != Segment {
		w.Phase = metric.PhaseProfiling
	}
	if len(w.Parts) > 0 && w.Start.AtNS < w.End.AtNS {
		return
	}
	w.Parts, w.End.AtNS = nil, w.Start.AtNS
	switch of := fmt.Sprintf("%.1fs of %s", max(length, 0), w.Rule); {
	case r.warmup > 0 && r.cooldown > 0:
		w.Empty = fmt.Sprintf("the warm-up of %v and the cool-down of %v are longer than the %s", r.warmup, r.cooldown, of)
	case r.warmup > 0:
		w.Empty = fmt.Sprintf("the warm-up of %v is longer than the %s", r.warmup, of)
	case r.cooldown > 0:
		w.Empty = fmt.Sprintf("the cool-down of %v is longer than the %s", r.cooldown, of)
	case w.Rule == Range:
		w.Empty = "no poll lies in the range that was asked for"
	}
}

// startEdge is the edge after a warm-up: where the collector itself set its mark for it, all targets were polled.
func (r *resolver) startEdge(at int64) Edge {
	if r.warmup == r.run.Warmup {
		near := max(int64(time.Second), 2*int64(r.run.Interval))
		for _, m := range r.marks {
			if m.Kind == metric.MarkPolled && m.Name == metric.PhaseProfiling && m.AtNS > at-near && m.AtNS < at+near {
				return mark(m.AtNS)
			}
		}
	}
	return snapped(at)
}

// cutStart and cutEnd shorten the parts.
func (r *resolver) cutStart(e Edge) {
	r.w.Start = e
	r.w.Parts = slices.DeleteFunc(r.w.Parts, func(s Stretch) bool { return s.EndNS <= e.AtNS })
	if len(r.w.Parts) > 0 {
		r.w.Parts[0].StartNS = max(r.w.Parts[0].StartNS, e.AtNS)
	}
}

func (r *resolver) cutEnd(e Edge) {
	r.w.End, r.w.LastNS = e, e.AtNS
	r.w.Parts = slices.DeleteFunc(r.w.Parts, func(s Stretch) bool { return s.StartNS >= e.AtNS })
	if n := len(r.w.Parts); n > 0 {
		r.w.Parts[n-1].EndNS = min(r.w.Parts[n-1].EndNS, e.AtNS)
	}
}
