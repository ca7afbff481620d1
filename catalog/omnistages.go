package catalog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// omniStage is one stage of a pipeline.
type omniStage struct {
	name string
	// time is the sum over all requests of the time in the stage, count how many there were. timed is unset for a stage
	// that no family gives the time of.
	time, count, queue total
	timed              bool
	// replicas has what each replica served and generated, by its label.
	replicas       map[string]replicaLoad
	replicaFamily  string
	tokensFromVLLM bool
}

// replicaLoad is what one replica did; what is not known has no series.
type replicaLoad struct{ served, tokens total }

func (s *omniStage) label() metric.Label { return metric.Label{Name: "stage", Value: s.name} }

// omniRun is a pipeline over a stretch: section 4.2 of the design document derived-metrics.md.
type omniRun struct {
	v      *View
	n, e2e total // the requests that succeeded and their time
	stages []*omniStage
	// copies is how many servers are taken together: each has its own replica 0.
	copies int
}

// omniOf reads a pipeline; nil when there is none.
func omniOf(v *View) *omniRun {
	if v.omni != nil || !isOmni(v) {
		return v.omni
	}
	o := &omniRun{v: v, n: v.total(Term{Family: omniE2E, Part: Count}), e2e: v.total(Term{Family: omniE2E, Part: Sum}),
		copies: max(1, len(v.Series(omniE2E)))}
	for _, name := range omniStageNames(v) {
		o.stages = append(o.stages, o.stage(name))
	}
	v.omni = o
	return o
}

// omniStageNames are the stages that any family knows, in their order.
func omniStageNames(v *View) []string {
	var names []string
	for _, gains := range v.byName {
		for _, g := range gains {
			for _, l := range []string{"stage", "from_stage", "to_stage"} {
				if name, ok := g.Labels.Get(l); ok && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	slices.SortFunc(names, compareNumbers)
	return names
}

// compareNumbers orders numbers as numbers, before what is none.
func compareNumbers(a, b string) int {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	switch {
	case errX == nil && errY == nil && x != y:
		if x < y {
			return -1
		}
		return 1
	case errX == nil && errY != nil:
		return -1
	case errX != nil && errY == nil:
		return 1
	}
	return strings.Compare(a, b)
}

// stageTimes are the families that give the time in a stage, the best first: an autoregressive stage counts its own
// queue in, as others do.
var stageTimes = [...]struct{ time, queue string }{{vllmE2E, vllmQueue}, {omniStageTime, omniInQueue}}

func (o *omniRun) stage(name string) *omniStage {
	s := &omniStage{name: name, replicas: map[string]replicaLoad{}}
	where := []metric.Label{s.label()}
	for _, f := range stageTimes {
		time := o.v.total(Term{Family: f.time, Part: Sum, Where: where})
		count := o.v.total(Term{Family: f.time, Part: Count, Where: where})
		// A stage that is no language model shows the families of one, without observations.
		if time.series == 0 || s.timed && count.sum == 0 {
			continue
		}
		s.time, s.timed, s.count = time, true, count
		s.queue = o.v.total(Term{Family: f.queue, Part: Sum, Where: where})
		if count.sum > 0 {
			break
		}
	}
	o.replicasOf(s, where)
	return s
}

// replicaCounts are the families that count the requests of each replica.
var replicaCounts = [...]string{vllmE2E, omniPrefix + "diffusion_exec_s", omniPrefix + "audio_duration_s",
	omniPrefix + "audio_rtf"}

// replicasOf finds the replicas of a stage: those that any of its series, or an edge to or from it, names.
func (o *omniRun) replicasOf(s *omniStage, where []metric.Label) {
	for _, ends := range [][2]string{{"stage", "replica"}, {"from_stage", "from_replica"}, {"to_stage", "to_replica"}} {
		for _, gains := range o.v.byName {
			for _, g := range gains {
				stage, _ := g.Labels.Get(ends[0])
				if r, ok := g.Labels.Get(ends[1]); ok && stage == s.name {
					s.replicas[r] = replicaLoad{}
				}
			}
		}
	}
	for _, family := range replicaCounts {
		if len(o.v.Series(family, where...)) == 0 {
			continue
		}
		s.replicaFamily = family
		o.eachReplica(family, where, func(r *replicaLoad, g *Gain) { r.served = r.served.and(1, gained(g, g.Count)) }, s)
		break
	}
	if len(o.v.Series(vllmGenerated, where...)) > 0 {
		s.tokensFromVLLM = true
		add := func(r *replicaLoad, g *Gain) { r.tokens = r.tokens.and(1, gained(g, g.Total)) }
		o.eachReplica(vllmGenerated, where, add, s)
	}
}

// gained is one number of a series as a total.
func gained(g *Gain, x float64) total {
	return total{sum: x, series: 1, resets: g.Resets, born: g.Born}
}

func (o *omniRun) eachReplica(family string, where []metric.Label, add func(*replicaLoad, *Gain), s *omniStage) {
	for _, g := range o.v.Series(family, where...) {
		if name, ok := g.Labels.Get("replica"); ok {
			r := s.replicas[name]
			add(&r, g)
			s.replicas[name] = r
		}
	}
}

// omniStageNatives are of each stage.
func omniStageNatives() map[string]func(*omniRun, *omniStage) []Derived {
	return map[string]func(*omniRun, *omniStage) []Derived{
		"omni_stage_time_mean": func(o *omniRun, s *omniStage) []Derived {
			return single(o.checkCount(s, s.time.by(o.n)))
		},
		"omni_stage_share_of_e2e": func(o *omniRun, s *omniStage) []Derived { return single(s.time.by(o.e2e)) },
		"omni_stage_queue_mean":   func(o *omniRun, s *omniStage) []Derived { return s.queue.some(o.n) },
		"omni_in_queue_share":     func(_ *omniRun, s *omniStage) []Derived { return s.queue.some(s.time) },
		"omni_stage_request_rate": func(o *omniRun, s *omniStage) []Derived { return s.count.some(o.v.seconds()) },
		"omni_fan_out":            func(o *omniRun, s *omniStage) []Derived { return s.count.some(o.n) },
		"omni_stage_replicas":     (*omniRun).replicaN,
		"omni_stage_utilization": func(o *omniRun, s *omniStage) []Derived {
			if !s.timed {
				return nil
			}
			return single(o.utilization(s))
		},
		"omni_replica_requests": (*omniRun).replicaRequests,
		"omni_replica_skew":     (*omniRun).skew,
	}
}

// perStage applies a function to each stage of a pipeline.
func perStage(of func(*omniRun, *omniStage) []Derived) func(*View) []Derived {
	return func(v *View) []Derived {
		o := omniOf(v)
		if o == nil {
			return nil
		}
		var out []Derived
		for _, s := range o.stages {
			for _, d := range of(o, s) {
				d.Labels = join(d.Labels, metric.NewLabels(s.label()))
				out = append(out, d)
			}
		}
		return out
	}
}

func single(d Derived) []Derived { return []Derived{d} }

// some is a quotient for stages that have a numerator at all.
func (t total) some(u total) []Derived {
	if t.series == 0 {
		return nil
	}
	return single(t.by(u))
}

// checkCount flags the time of a stage that served another number of requests than the pipeline: some were under way
// at an edge of the stretch, aborted, or made of several.
func (o *omniRun) checkCount(s *omniStage, d Derived) Derived {
	if diff := s.count.sum - o.n.sum; d.Status.Defined() && (diff > 0.01*o.n.sum || -diff > 0.01*o.n.sum) {
		d.Flag("count_differs")
	}
	return d
}

func (o *omniRun) replicaN(s *omniStage) []Derived {
	if len(s.replicas) == 0 {
		return nil
	}
	return counted(float64(o.copies * len(s.replicas)))
}

// utilization takes a stage of which no series names a replica for one replica.
func (o *omniRun) utilization(s *omniStage) Derived {
	n := o.copies * max(1, len(s.replicas))
	d := s.time.by(total{sum: o.v.Seconds * float64(n), series: 1})
	if len(s.replicas) == 0 {
		d.Flag("replicas_unknown")
		d.atBest(Partial)
	}
	return d
}

// omniBottleneck is the stage whose replicas have most to do.
func omniBottleneck(v *View) []Derived {
	o := omniOf(v)
	if o == nil {
		return nil
	}
	var most *Derived
	untimed := false
	for _, s := range o.stages {
		untimed = untimed || !s.timed
		if d := o.utilization(s).of(s.label()); d.Status.Defined() && (most == nil || d.Value > most.Value) {
			most = &d
		}
	}
	if most == nil || most.Value == 0 {
		return nil
	}
	if untimed {
		most.Flag("stage_time_missing")
		most.atBest(Partial)
	}
	return []Derived{*most}
}

func (o *omniRun) replicaRequests(s *omniStage) []Derived {
	var out []Derived
	for _, name := range s.replicaNames() {
		if r := s.replicas[name]; r.served.series > 0 {
			d := Derived{Value: r.served.sum, Shown: r.served.sum, Families: []string{s.replicaFamily}}
			d.believe(r.served)
			out = append(out, d.of(metric.Label{Name: "replica", Value: name}))
		}
	}
	return out
}

func (s *omniStage) replicaNames() []string {
	var names []string
	for name := range s.replicas {
		names = append(names, name)
	}
	slices.SortFunc(names, compareNumbers)
	return names
}

// skew is made of at least two replicas.
func (o *omniRun) skew(s *omniStage) []Derived {
	if len(s.replicas) < 2 {
		return nil
	}
	ratio := func(what, family string, of func(replicaLoad) total) Derived {
		var all total
		most := 0.0
		for _, name := range s.replicaNames() {
			x := of(s.replicas[name])
			most, all = max(most, x.sum), all.and(1, x)
		}
		d := divided(most, all.sum/float64(len(s.replicas)), family)
		d.believe(all)
		return d.of(metric.Label{Name: "of", Value: what})
	}
	var out []Derived
	if s.replicaFamily != "" {
		out = append(out, ratio("requests", s.replicaFamily, func(r replicaLoad) total { return r.served }))
	}
	if s.tokensFromVLLM {
		out = append(out, ratio("tokens", vllmGenerated, func(r replicaLoad) total { return r.tokens }))
	}
	return out
}
