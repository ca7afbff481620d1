package catalog

import (
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// omniSplit take the end-to-end time of a request apart. Distributions do not subtract, means do: every part is a sum
// over all requests by the number N of those that succeeded.
func omniSplit() map[string]func(*omniRun) []Derived {
	return map[string]func(*omniRun) []Derived{
		"omni_stages_mean":        func(o *omniRun) []Derived { return single(o.inStages().by(o.n).in(o)) },
		"omni_hops_mean":          func(o *omniRun) []Derived { return o.whole(o.hops().some(o.n), o.edges()...) },
		"omni_slack_mean":         func(o *omniRun) []Derived { return single(o.slack().by(o.n).in(o)) },
		"omni_residual_mean":      (*omniRun).residual,
		"omni_overlap_mean":       (*omniRun).overlap,
		"omni_edges_share_of_e2e": func(o *omniRun) []Derived { return o.whole(o.hops().some(o.e2e), o.edges()...) },
		"omni_check_success_count": func(o *omniRun) []Derived {
			return countDiffers(o.v.total(Term{Family: omniSuccess, Except: omniAborts}), o.n)
		},
		"omni_check_stage_count": func(o *omniRun) []Derived {
			var out []Derived
			for _, s := range o.stages {
				out = append(out, label(countDiffers(s.count, o.n), metric.NewLabels(s.label()))...)
			}
			return out
		},
		"omni_check_stage_time_missing": func(o *omniRun) []Derived {
			n := 0
			for _, s := range o.stages {
				if !s.timed {
					n++
				}
			}
			if len(o.stages) == 0 {
				return nil
			}
			return counted(float64(n))
		},
		"omni_check_edge_counts": (*omniRun).edgeCounts,
		"omni_check_continuity":  (*omniRun).continuity,
	}
}

func perRun(of func(*omniRun) []Derived) func(*View) []Derived {
	return func(v *View) []Derived {
		if o := omniOf(v); o != nil {
			return of(o)
		}
		return nil
	}
}

func (o *omniRun) queue() total {
	return o.v.total(Term{Family: omniQueueWait, Part: Sum, Optional: true})
}

func (o *omniRun) inStages() total {
	var all total
	for _, s := range o.stages {
		if s.timed {
			all = all.and(1, s.time)
		}
	}
	return all
}

// hops are the transfers of all edges.
func (o *omniRun) hops() total { return o.v.total(hopTerms()...) }

// slack is the time of all requests outside the stages, missing where no stage has a time.
func (o *omniRun) slack() total {
	stages := o.inStages()
	if stages.series == 0 || o.e2e.series == 0 {
		return total{families: stages.families}
	}
	return o.e2e.and(-1, stages)
}

// in makes a result partial when a stage has no time family, so that its time is in the slack, and when engines stand
// for stages, so that others may be hidden.
func (d Derived) in(o *omniRun) Derived {
	for _, s := range o.stages {
		if strings.HasPrefix(s.name, "engine") {
			d.Flag("stages_unknown")
			d.atBest(Partial)
		}
		if !s.timed {
			d.Flag("stage_time_missing")
			d.atBest(Partial)
		}
	}
	return d
}

// overlapped is by how much the stages are longer than the whole.
func (o *omniRun) overlapped() float64 { return max(0, -o.slack().sum) }

func (o *omniRun) overlap() []Derived {
	s := o.slack()
	s.sum = o.overlapped()
	return single(s.by(o.n).in(o))
}

// residual is what is left of the slack. A server that has no queue family, or no transfers, has nothing of them to
// subtract.
func (o *omniRun) residual() []Derived {
	rest := o.slack()
	if rest.series == 0 {
		return single(rest.by(o.n))
	}
	hops, queue := o.hops(), o.queue()
	d := rest.and(-1, hops).and(-1, queue).by(o.n).in(o)
	if d.Status.Defined() && queue.series == 0 {
		d.Flag("queue_missing")
		d.atBest(Partial)
	}
	if d.Status.Defined() && hops.series == 0 && len(o.stages) > 1 {
		d.Flag("hops_missing")
		d.atBest(Partial)
	}
	if o.overlapped() > 0 {
		d.Flag("overlapped")
	}
	return o.whole(single(d.notBelow()), o.edges()...)
}

// countDiffers is nothing when one of both is missing.
func countDiffers(t, u total) []Derived {
	if t.series == 0 || u.series == 0 {
		return nil
	}
	d := Derived{Value: t.sum - u.sum, Shown: t.sum - u.sum, Families: slices.Concat(t.families, u.families)}
	d.believe(t, u)
	return single(d)
}
