package summary

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/units"
)

// piece is what one recording contributes to a run.
type piece struct {
	meta     *rundb.Meta
	plan     plan
	warnings []metric.Warning
	results  []targetResult
}

// targetResult is what one target contributes.
type targetResult struct {
	endpoint   Endpoint
	main, warm *normalize.Result  // nil when there was no such window
	exemplars  map[int][]Exemplar // by series
	trace      *trace             // nil of a lone target
}

// result closes the account of a target.
func (t *target) result(p *plan, each normalize.Each) targetResult {
	r := targetResult{endpoint: Endpoint{Target: t.Target, StartNS: p.window.StartNS, EndNS: p.window.EndNS}}
	e := &r.endpoint
	if t.opened && t.main != nil && !p.empty {
		t.main.Doubt(t.late.doubtful())
		r.main = t.main.ResultEach(p.window.PhaseEndNS, each)
		e.EndNS, e.SlicePolls = r.main.EndNS, r.main.SlicePolls
		e.Seconds = p.resolved.SecondsBetween(r.main.RefNS, r.main.LastNS)
		divide(r.main, e.Seconds)
		last := e.EndNS
		if p.last == notEnded {
			last = max(last, t.stored)
		}
		e.Continuity = t.tracker.Target(e.StartNS-1, last)
		e.Eventful = t.eventful
	}
	if t.opened && t.warm != nil && p.warmup != nil {
		r.warm = t.warm.ResultEach(p.warmup.EndNS, each)
	}
	l := &t.ledger
	e.Ledger = l.result(e.StartNS, e.EndNS)
	if f := l.fetches(math.MinInt64, math.MaxInt64); f != nil {
		e.Fetches = *f
	}
	if !p.empty {
		last := e.EndNS
		if !p.open {
			last = p.last
		}
		e.InWindow = l.fetches(e.StartNS, last)
	}
	if p.warmup != nil {
		e.InWarmup = l.fetches(p.warmup.StartNS, p.warmup.EndNS-1)
	}
	e.Warnings = append(l.health(), l.allWarnings()...)
	if r.main != nil {
		e.Warnings, e.NonFinite = append(e.Warnings, r.main.Warnings...), r.main.NonFinite
	}
	if w := continuityWarning(&e.Continuity); w != nil {
		e.Warnings = append(e.Warnings, *w)
	}
	e.Late = t.late.result(r.main, false)
	if t.late != nil && t.late.began {
		e.InFlight = t.late.inFlightEdge
	}
	for _, w := range []*metric.Warning{lateWarning(e.Late, false), lateWarning(t.after.result(r.main, true), true)} {
		if w != nil {
			e.Warnings = append(e.Warnings, *w)
		}
	}
	e.Declared = l.declared()
	r.exemplars, r.trace = l.exemplarsOf(), t.trace.copy()
	e.Gaps, e.GapsN = l.gaps()
	return r
}

// divide makes the rates of all series those of the same time.
func divide(r *normalize.Result, seconds float64) {
	rate := func(gain float64) float64 {
		if seconds <= 0 {
			return 0
		}
		return min(max(gain/seconds, -math.MaxFloat64), math.MaxFloat64)
	}
	for i := range r.Series {
		s := &r.Series[i]
		if c := s.Counter; c != nil {
			c.Rate = rate(c.Total)
		}
		if h := s.Histogram; h != nil && h.HasRates {
			h.CountRate, h.SumRate = rate(float64(h.Count)), rate(h.Sum)
		}
		if m := s.Summary; m != nil && m.HasRates {
			m.CountRate, m.SumRate = rate(float64(m.Count)), rate(m.Sum)
		}
	}
}

// assemble makes one tree of the pieces; endpoints keep their order. It fails when ctx
// ends.
func assemble(ctx context.Context, pieces []piece, o *Options) (*Run, error) {
	first := &pieces[0]
	r := &Run{
		ID: first.meta.ID, Version: first.meta.Version, Command: first.meta.Command, Tags: map[string]string{},
		OriginNS: first.meta.OriginNS, Host: first.meta.Host, Limits: first.meta.Limits,
		Window: first.plan.window, WarmupWindow: first.plan.warmup, Phases: first.plan.phases, Options: *o,
	}
	var mains, warms []*normalize.Result
	var exemplars []map[int][]Exemplar
	var traces []*trace
	for i := range pieces {
		p := &pieces[i]
		for name, value := range p.meta.Tags {
			if _, ok := r.Tags[name]; !ok {
				r.Tags[name] = value
			}
		}
		r.Warnings = append(r.Warnings, p.warnings...)
		r.Warnings = append(r.Warnings, p.plan.warnings...)
		r.widen(p)
		for _, t := range p.results {
			r.Window.EndNS = max(r.Window.EndNS, t.endpoint.EndNS)
			r.Endpoints = append(r.Endpoints, t.endpoint)
			mains, warms = append(mains, t.main), append(warms, t.warm)
			exemplars, traces = append(exemplars, t.exemplars), append(traces, t.trace)
		}
	}
	var sources []source
	for _, step := range []func(){
		r.warnTwins, func() { r.findSame(traces, mains) },
		func() { r.Metrics = r.merge(ctx, mains, exemplars) },
		func() { r.Warmup = r.merge(ctx, warms, nil) },
		r.warnConflicts, r.warnProcesses, r.warnIdle, r.hintServers, r.supersede,
		func() { sources = r.sourcesOf(o.Catalog, mains) },
		func() { r.Derived = derive(o.Catalog, sources) },
		func() { r.fleet(sources) },
		r.aggregate, r.latencies,
	} {
		step()
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
	}
	forget(r.Metrics)
	return r, nil
}

// widen stretches the windows of the run over those of another recording.
func (r *Run) widen(p *piece) {
	w := &p.plan.window
	if diff := w.StartNS - r.Window.StartNS; diff > 1e9 || diff < -1e9 {
		r.Warnings = append(r.Warnings, metric.Warnf("windows_differ",
			"the window of recording %q starts %.3f s from that of the first", p.meta.ID, float64(diff)/1e9))
	}
	r.Window.StartNS = min(r.Window.StartNS, w.StartNS)
	r.Window.EndNS = max(r.Window.EndNS, w.EndNS)
	r.Window.PhaseEndNS = max(r.Window.PhaseEndNS, w.PhaseEndNS)
	switch warm := p.plan.warmup; {
	case warm == nil:
	case r.WarmupWindow == nil:
		r.WarmupWindow = warm
	default:
		wide := *r.WarmupWindow
		wide.StartNS, wide.EndNS = min(wide.StartNS, warm.StartNS), max(wide.EndNS, warm.EndNS)
		wide.PhaseEndNS = wide.EndNS
		r.WarmupWindow = &wide
	}
}

// warnTwins warns of URLs that occur more than once.
func (r *Run) warnTwins() {
	seen := map[string]int{}
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		if first, ok := seen[e.URL]; ok {
			e.Warnings = append(e.Warnings,
				metric.Warnf("duplicate_endpoint", "the same URL is also endpoint %d: its series occur twice", first))
			continue
		}
		seen[e.URL] = i
	}
}

// warnConflicts warns of names that have several types.
func (r *Run) warnConflicts() {
	types := map[string]metric.Type{}
	for _, m := range r.Metrics {
		if !m.Conflict {
			types[m.Name] = m.Type
		}
	}
	for _, m := range r.Metrics {
		if m.Conflict {
			r.Warnings = append(r.Warnings, metric.Warnf("type_conflict",
				"%s is a %v at %s and elsewhere a %v: they are kept apart",
				m.Name, m.Type, r.Endpoints[m.Series[0].Endpoint].URL, types[m.Name]))
		}
	}
}

// merge gathers the series of all endpoints under their metrics. A nil result contributes nothing.
func (r *Run) merge(ctx context.Context, results []*normalize.Result, exemplars []map[int][]Exemplar) []Metric {
	type key struct {
		name string
		typ  metric.Type
	}
	at := map[key]int{}
	named := map[string]bool{}
	var out []Metric
	for endpoint, res := range results {
		if res == nil {
			continue
		}
		for _, s := range res.Series {
			if ctx.Err() != nil {
				return nil
			}
			f := res.Dict.FamilyOf(s.Index)
			k := key{f.Name, f.Type}
			i, ok := at[k]
			if !ok {
				i = len(out)
				at[k] = i
				out = append(out, Metric{Name: f.Name, Type: f.Type, Help: f.Help, Unit: units.Infer(f.Name, f.Help),
					OwnUnit: units.InferExtended(f.Name, f.Help, f.Unit), Conflict: named[f.Name]})
				named[f.Name] = true
			}
			x := Series{Endpoint: endpoint, Labels: res.Dict.Series[s.Index].Labels, Series: s}
			if exemplars != nil {
				x.Exemplars = exemplars[endpoint][s.Index]
			}
			out[i].Series = append(out[i].Series, x)
		}
	}
	for i := range out {
		r.sort(out[i].Series)
	}
	slices.SortFunc(out, func(a, b Metric) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type, b.Type)) })
	return out
}

// sort orders series by URL, then labels as Python prints them.
func (r *Run) sort(series []Series) {
	if len(series) < 2 {
		return
	}
	type keyed struct {
		url, labels string
		series      Series
	}
	keys := make([]keyed, len(series))
	for i, s := range series {
		keys[i] = keyed{r.Endpoints[s.Endpoint].URL, PythonLabels(s.Labels), s}
	}
	slices.SortStableFunc(keys, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.url, b.url),
			cmp.Compare(a.labels, b.labels))
	})
	for i := range keys {
		series[i] = keys[i].series
	}
}
