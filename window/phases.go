package window

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// phasesOf lists the phases that marks make, in time order, each up to the next mark or end. The collector's own marks
// do not end those of others.
func phasesOf(marks []metric.Mark, end int64) []PhaseSpan {
	var out []PhaseSpan
	for i, m := range marks {
		to := end
		ends := func(next metric.Mark) bool { return m.Own() || !next.Own() || next.Name == metric.MarkEnd }
		if n := slices.IndexFunc(marks[i+1:], ends); n >= 0 {
			to = min(to, marks[i+1+n].AtNS)
		}
		if m.Name != metric.MarkEnd && m.AtNS < to {
			out = append(out, PhaseSpan{Name: m.Name, Kind: m.Kind, Stretch: Stretch{m.AtNS, to}})
		}
	}
	return out
}

// own reports whether the collector set the mark by itself.
func (p *PhaseSpan) own() bool { return metric.Mark{Kind: p.Kind}.Own() }

// number counts the phases of each name.
func number(phases []PhaseSpan) {
	n := map[string]int{}
	for i := range phases {
		n[phases[i].Name]++
		phases[i].Instance = n[phases[i].Name]
	}
	for i := range phases {
		phases[i].Of = n[phases[i].Name]
	}
}

func (r *resolver) byPhase() error {
	name := r.ref.Phase
	var found []PhaseSpan
	for _, p := range r.w.Phases {
		if p.Name == name && !p.own() {
			found = append(found, p)
		}
	}
	if r.ref.Instance == 0 && !slices.ContainsFunc(found, func(p PhaseSpan) bool { return p.Kind != "" }) {
		if ok, err := r.ownPhase(name); ok {
			return err
		}
	}
	number(found)
	n := r.ref.Instance
	switch {
	case len(found) == 0 || n > len(found):
		return r.unknown(name, len(found))
	case n == 0 && len(found) > 1:
		var at, how []string
		for i, p := range found {
			at = append(at, fmt.Sprintf("%.1fs..%.1fs", r.offset(p.StartNS), r.offset(p.EndNS)))
			how = append(how, fmt.Sprintf("%s/%d", name, i+1))
		}
		return fmt.Errorf("phase %q occurs %d times (%s): write %s: %w", name, len(found), strings.Join(at, ", "),
			strings.Join(how, " or "), ErrNoSuch)
	}
	p := found[max(n-1, 0)]
	r.plain()
	r.whole(Phase, mark(p.StartNS), mark(p.EndNS))
	r.w.Phase, r.w.Instance = name, p.Instance
	if p.EndNS < r.w.Command.EndNS {
		r.w.LastNS = p.EndNS - 1 // no poll is in two phases
	}
	return nil
}

// ownPhase takes the names that the collector gives to what it leaves out and to the rest.
func (r *resolver) ownPhase(name string) (bool, error) {
	if !isOwnName(name) {
		return false, nil
	}
	r.byDefault()
	if name == metric.PhaseProfiling {
		return true, nil
	}
	r.trim()
	left := r.w.Warmup
	if name == metric.PhaseCooldown {
		left = r.w.Cooldown
	}
	if left == nil {
		return true, r.unknown(name, 0)
	}
	r.warmup, r.cooldown = 0, 0
	r.whole(Phase, snapped(left.StartNS), snapped(left.EndNS))
	r.w.Phase, r.w.LastNS, r.w.Warmup, r.w.Cooldown = name, left.EndNS-1, nil, nil
	if left.EndNS >= r.w.Command.EndNS {
		r.w.LastNS = forever
	}
	return true, nil
}

func (r *resolver) unknown(name string, n int) error {
	if n > 0 {
		return fmt.Errorf("phase %q: %w: it occurs %d times", name, ErrNoSuch, n)
	}
	var known []string
	for _, p := range r.w.Phases {
		if !slices.Contains(known, p.Name) {
			known = append(known, p.Name)
		}
	}
	if len(known) == 0 {
		return fmt.Errorf("phase %q: %w: the run has no phases", name, ErrNoSuch)
	}
	return fmt.Errorf("phase %q: %w (known: %s)", name, ErrNoSuch, strings.Join(known, ", "))
}

// listPhases puts what the default window leaves out and itself among the phases of other marks: the collector's own
// marks only say when it polled.
func (r *resolver) listPhases() {
	w := &r.w
	if r.ref.What != Default {
		d, _, err := Resolve(*r.run, Ref{Warmup: r.ref.Warmup, Cooldown: r.ref.Cooldown})
		if err == nil {
			w.Phases = d.Phases
		}
		return
	}
	others := slices.DeleteFunc(w.Phases, func(p PhaseSpan) bool {
		return p.own() || p.Kind == "" && isOwnName(p.Name)
	})
	var out []PhaseSpan
	add := func(name string, s *Stretch) {
		if s != nil && s.StartNS < s.EndNS && !w.Told {
			out = append(out, PhaseSpan{Name: name, Stretch: *s})
		}
	}
	add(metric.PhaseWarmup, w.Warmup)
	if len(w.Parts) == 1 {
		add(metric.PhaseProfiling, &w.Parts[0])
	}
	add(metric.PhaseCooldown, w.Cooldown)
	out = append(out, others...) // of those that begin together the one within the other comes last
	slices.SortStableFunc(out, func(a, b PhaseSpan) int { return cmp.Compare(a.StartNS, b.StartNS) })
	number(out)
	w.Phases = out
}

// isOwnName reports whether the collector may set a mark of that name.
func isOwnName(name string) bool {
	return name == metric.PhaseProfiling || name == metric.PhaseWarmup || name == metric.PhaseCooldown
}
