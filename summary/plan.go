package summary

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// ErrNoPhase is why Build refuses a phase that the run does not have.
var ErrNoPhase = errors.New("no such phase in the run")

// notEnded stands for the end of a run that is not known yet.
const notEnded = math.MaxInt64

// plan is the part of a run that is analysed.
type plan struct {
	window Window
	// open is set when the window goes on to the last update after PhaseEndNS.
	open bool
	// last is the last instant whose polls count, but for open windows: 1 ns before
	// the end where the next phase begins, so that no poll is in two phases.
	last   int64
	warmup *Window
	phases []Phase
	empty  bool // the run ended before the window began
	// tooShort says so as an error, where the caller asked for that window.
	tooShort error
}

// load is the shape of a run as marks, or options in their place, give it.
type load struct {
	base      int64 // start of the load: offsets count from here
	start     int64 // of profiling
	end       int64
	profEnd   int64
	cooldown  bool // profEnd is final: nothing after it counts
	hasEnd    bool
	durations bool // warm-up or cool-down was asked for by the caller
}

// sortMarks returns the marks in time order.
func sortMarks(marks []metric.Mark) []metric.Mark {
	sorted := slices.Clone(marks)
	slices.SortStableFunc(sorted, func(a, b metric.Mark) int { return cmp.Compare(a.AtNS, b.AtNS) })
	return sorted
}

// firstMark returns the first mark of one of the names.
func firstMark(marks []metric.Mark, names ...string) (int64, bool) {
	for _, m := range marks {
		if slices.Contains(names, m.Name) {
			return m.AtNS, true
		}
	}
	return 0, false
}

// findLoad reads the shape of the run off its marks, which are in time order.
// endNS is where a run ends that has no mark saying so.
func findLoad(meta *rundb.Meta, marks []metric.Mark, o *Options, endNS int64) load {
	var l load
	var ok bool
	if l.base, ok = firstMark(marks, metric.PhaseWarmup, metric.PhaseProfiling); !ok {
		l.base = meta.OriginNS
	}
	if l.end, l.hasEnd = firstMark(marks, metric.MarkEnd); !l.hasEnd {
		l.end = endNS
	}
	if o.Warmup != nil {
		l.start, l.durations = l.base+int64(*o.Warmup), true
	} else if l.start, ok = firstMark(marks, metric.PhaseProfiling); !ok {
		l.start = l.base + int64(meta.Warmup)
	}
	l.profEnd = l.end
	cooldown := meta.Cooldown
	if o.Cooldown != nil {
		cooldown, l.durations = *o.Cooldown, true
	} else if at, ok := firstMark(marks, metric.PhaseCooldown); ok && at < l.end {
		l.profEnd, l.cooldown = at, true
		return l
	}
	if cooldown > 0 && l.end != notEnded {
		l.profEnd, l.cooldown = l.end-int64(cooldown), true
	}
	return l
}

// phases lists the phases in time order, each up to the next boundary.
func (l *load) phases(marks []metric.Mark) []Phase {
	var out []Phase
	add := func(name string, start, end int64) {
		if start < end {
			out = append(out, Phase{name, start, end})
		}
	}
	add(metric.PhaseWarmup, l.base, min(l.start, l.end))
	add(metric.PhaseProfiling, l.start, l.profEnd)
	boundaries := []int64{l.start, l.profEnd, l.end}
	for _, m := range marks {
		boundaries = append(boundaries, m.AtNS)
	}
	slices.Sort(boundaries)
	for _, m := range marks {
		switch m.Name {
		case metric.PhaseWarmup, metric.PhaseProfiling, metric.PhaseCooldown, metric.MarkEnd:
			continue
		}
		if i, _ := slices.BinarySearch(boundaries, m.AtNS+1); i < len(boundaries) {
			add(m.Name, m.AtNS, boundaries[i])
		}
	}
	if l.cooldown {
		add(metric.PhaseCooldown, max(l.profEnd, l.base), l.end)
	}
	slices.SortStableFunc(out, func(a, b Phase) int { return cmp.Compare(a.StartNS, b.StartNS) })
	return out
}

// planRun chooses the window. endNS is the time of the last poll, notEnded
// while it is not known; it matters for runs without a mark "end".
func planRun(meta *rundb.Meta, marks []metric.Mark, o *Options, endNS int64) (plan, error) {
	marks = sortMarks(marks)
	l := findLoad(meta, marks, o, endNS)
	p := plan{phases: l.phases(marks)}
	switch {
	case o.From > 0 || o.To > 0:
		p.window = Window{StartNS: l.base + int64(o.From), EndNS: l.end}
		p.open = o.To == 0
		if !p.open {
			p.window.EndNS = l.base + int64(o.To)
		}
	case o.Phase == "" || o.Phase == metric.PhaseProfiling:
		p.window = Window{Phase: metric.PhaseProfiling, StartNS: l.start, EndNS: l.profEnd}
		p.open = !l.cooldown
		if l.start > l.base && l.base < l.end {
			end := min(l.start, l.end)
			p.warmup = &Window{Phase: metric.PhaseWarmup, StartNS: l.base, EndNS: end, PhaseEndNS: end}
		}
	default:
		i := slices.IndexFunc(p.phases, func(ph Phase) bool { return ph.Name == o.Phase })
		if i < 0 {
			return plan{}, unknownPhase(o.Phase, p.phases)
		}
		p.window = Window{Phase: o.Phase, StartNS: p.phases[i].StartNS, EndNS: p.phases[i].EndNS}
		p.open = p.window.EndNS == l.end
		p.last = p.window.EndNS - 1
	}
	p.last = cmp.Or(p.last, p.window.EndNS)
	p.window.PhaseEndNS = p.window.EndNS
	if p.empty = p.window.StartNS > min(p.window.EndNS, max(l.end, endNS)); !p.empty {
		return p, nil
	}
	p.window.EndNS, p.window.PhaseEndNS = p.window.StartNS, p.window.StartNS
	if l.durations || o.From > 0 || o.To > 0 {
		p.tooShort = fmt.Errorf("choose window: nothing is left of the load, which lasted %v: "+
			"shorten the warm-up, the cool-down or the offset", offset(l.base, max(l.end, l.base)))
	}
	return p, nil
}

func offset(base, at int64) time.Duration {
	return max(0, time.Duration(at-base)).Round(time.Millisecond)
}

func unknownPhase(name string, phases []Phase) error {
	var known []string
	for _, p := range phases {
		if !slices.Contains(known, p.Name) {
			known = append(known, p.Name)
		}
	}
	if len(known) == 0 {
		return fmt.Errorf("choose phase %q: %w: the run has no phases", name, ErrNoPhase)
	}
	return fmt.Errorf("choose phase %q: %w (known: %s)", name, ErrNoPhase, strings.Join(known, ", "))
}

// warnings returns the caveats of the window.
func (p *plan) warnings(o *Options) []metric.Warning {
	var out []metric.Warning
	if p.empty {
		out = append(out, metric.Warning{Code: "empty_window",
			Text: "the run ended before the window began: there are no statistics"})
	}
	n := 0
	for _, ph := range p.phases {
		if o.Phase != "" && ph.Name == o.Phase {
			n++
		}
	}
	if n > 1 {
		out = append(out, metric.Warnf("phase_repeated",
			"phase %q occurs %d times; the first one is analysed", o.Phase, n))
	}
	return out
}
