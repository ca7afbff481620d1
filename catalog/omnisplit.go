package catalog

import (
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// omniSplitRules take the end-to-end time of a request apart. Distributions do not subtract, means do: every part is a
// sum over all requests by the number N of those that succeeded.
func omniSplitRules() []Rule {
	part := func(name, help, formula string, of func(*omniRun) []Derived) Rule {
		return Rule{Name: name, Unit: "seconds", Help: help, Category: TimeSpent, Formula: formula, Better: LowerBetter,
			Make: perRun(of)}
	}
	e2e := part("omni_e2e_mean", "From the arrival to the complete answer, of requests that succeeded.", "d(e2e_sum) / N",
		func(o *omniRun) []Derived { return o.e2e.some(o.n) })
	e2e.Headline, e2e.Canonical, e2e.Category = true, "e2e_mean_s", Latency
	queue := part("omni_queue_mean", "Wait for admission to the pipeline.", "d(request_queue_wait_s_sum) / N",
		func(o *omniRun) []Derived { return o.queue().some(o.n) })
	queue.Headline, queue.Canonical = true, "queue_mean_s"
	slack := part("omni_slack_mean", "End-to-end time outside the stages; negative where stages overlap.",
		"E2E - sum over stages", func(o *omniRun) []Derived { return single(o.slack().by(o.n).in(o)) })
	slack.Better = Neutral
	overlap := part("omni_overlap_mean", "By how much the stages add up to more than the end-to-end time.",
		"max(0, sum over stages - E2E)", (*omniRun).overlap)
	overlap.Better = HigherBetter
	return []Rule{
		e2e, queue,
		{Name: "queue_wait_share", Unit: "ratio", Help: "Wait for admission by the end-to-end time.", Category: TimeSpent,
			Better: LowerBetter,
			Num:    []Term{{Family: omniQueueWait, Part: Sum}}, Den: []Term{{Family: omniE2E, Part: Sum}}},
		part("omni_stages_mean", "Time in all stages, one after the other.", "sum over stages of d(stage time sum) / N",
			func(o *omniRun) []Derived { return single(o.inStages().by(o.n).in(o)) }),
		part("omni_hops_mean", "Time on all hops between stages, one after the other.",
			"sum over edges of d(tx + in_flight + rx) / N",
			func(o *omniRun) []Derived { return o.whole(o.hops().some(o.n), o.edges()...) }),
		slack,
		part("omni_residual_mean", "What neither stages nor hops nor queue explain: the orchestrator, scheduling. "+
			"Meaningless with overlap.",
			"slack - hops - queue", (*omniRun).residual),
		overlap,
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

// omniChecks check whether the numbers of a pipeline agree with each other.
func omniChecks() []Rule {
	check := func(name, help, formula string, of func(*omniRun) []Derived) Rule {
		return Rule{Name: name, Unit: "count", Help: help, Category: Check, Formula: formula, Better: Neutral,
			Make: perRun(of)}
	}
	return []Rule{
		check("check_success_count", "Successes less observed end-to-end times: 0.",
			"d(requests_success{finished_reason != abort}) - N",
			func(o *omniRun) []Derived {
				return countDiffers(o.v.total(Term{Family: omniSuccess, Except: omniAborts}), o.n)
			}),
		check("check_stage_count", "Visits to a stage less requests of the pipeline: those under way at the edges, "+
			"aborted, failed or made of several.",
			"d(stage count) - N", func(o *omniRun) []Derived {
				var out []Derived
				for _, s := range o.stages {
					out = append(out, label(countDiffers(s.count, o.n), metric.NewLabels(s.label()))...)
				}
				return out
			}),
		check("check_stage_time_missing", "Stages that no family gives the time of: it is in the slack.",
			"stages without a time sum", func(o *omniRun) []Derived {
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
			}),
		check("check_edge_counts",
			"The most less the fewest of the observations of size, tx, in_flight and rx of an edge: 0.",
			"max - min", (*omniRun).edgeCounts),
		check("check_continuity",
			"Continuity at 100 ms less underruns of at most 0.1 s: 0.",
			"d(audio_continuity_ok{100}) - d(audio_underrun_s_bucket{0.1})",
			(*omniRun).continuity),
	}
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
