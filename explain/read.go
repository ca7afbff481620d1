package explain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// times are the sums of Facts by their canonical ids: of a histogram, and of the derived mean that has them as its
// parts.
var times = [...]struct{ name, family, derived string }{
	{"e2e", "e2e_s", "e2e_mean_s"}, {"queue", "queue_s", "queue_mean_s"}, {"prefill", "prefill_s", ""},
	{"decode", "decode_s", ""}, {"inference", "inference_s", ""}, {"ttft", "ttft_s", "ttft_mean_s"},
	{"itl", "itl_s", "itl_mean_s"},
}

// reader reads the facts of one engine out of a run.
type reader struct {
	run *summary.Run
	c   *catalog.Catalog
	*Facts
	n        int // timeslices
	by       []string
	scope    []string // labels that keep results of the engine apart
	replicas map[metric.Labels]*Replica
	totals   map[string]Total  // of histograms, by their canonical ids
	doubts   map[string]string // why a total cannot be told
}

// maxScopes bounds how many models of an engine are explained.
const maxScopes = 32

// Read returns the facts of the engines of a run that show the time of requests, the most specific first, and of an
// engine whose pack keeps models or stages apart those of each, at most 32. A run without one gives the facts of none.
// Timeslices are those the run was made with: summary.CauseSlices is what fits.
func Read(run *summary.Run) (out []*Facts) {
	c := run.Options.Catalog
	for _, engine := range engines(run) {
		scope := scopeOf(c, engine)
		parts, left := parts(run, engine, scope)
		for _, of := range parts {
			r := &reader{run: run, c: c, Facts: &Facts{Engine: engine, Of: of, Sums: map[string]Total{}}, scope: scope,
				by: append([]string{summary.ByEndpoint}, summary.PlaceLabels(c)...), replicas: map[metric.Labels]*Replica{},
				totals: map[string]Total{}, doubts: map[string]string{}}
			r.read()
			if left > 0 {
				r.Notes = append(r.Notes, fmt.Sprintf("%d more of the engine are not explained", left))
			}
			out = append(out, r.Facts)
		}
	}
	if len(out) == 0 {
		out = []*Facts{{}}
	}
	return out
}

// scopeOf are the labels by which the pack of an engine keeps results apart.
func scopeOf(c *catalog.Catalog, engine string) []string {
	for _, p := range c.Packs() {
		if p.Name == engine {
			return slices.Concat(p.Scope, p.Split)
		}
	}
	return nil
}

// parts are the values of the labels of scope in the times of requests of an engine, those of which there are most
// requests, in order; left is how many more there are. What is all of the engine has no labels.
func parts(run *summary.Run, engine string, scope []string) (out []metric.Labels, left int) {
	requests := map[metric.Labels]float64{}
	for i := range run.Metrics {
		m := &run.Metrics[i]
		f, ok := run.Options.Catalog.Family(m.Name)
		if !ok || f.Engine != engine || f.Canonical != "e2e_s" && f.Canonical != "ttft_s" {
			continue
		}
		for j := range m.Series {
			of := m.Series[j].Labels.Only(scope...)
			n := 0.0
			if h := m.Series[j].Histogram; h != nil {
				n = float64(h.Count)
			}
			requests[of] = max(requests[of], n)
		}
	}
	for i := range run.Derived {
		if d := &run.Derived[i]; d.Pack == engine && d.Canonical == "e2e_mean_s" && d.Status.Defined() {
			of := d.Labels.Only(scope...)
			requests[of] = max(requests[of], d.Denominator)
		}
	}
	out = slices.SortedFunc(maps.Keys(requests), func(a, b metric.Labels) int {
		return cmp.Or(cmp.Compare(requests[b], requests[a]), a.Compare(b))
	})
	left = max(0, len(out)-maxScopes)
	out = out[:len(out)-left]
	slices.SortFunc(out, metric.Labels.Compare)
	if len(out) < 2 {
		return []metric.Labels{{}}, 0
	}
	return out, left
}

// mine reports whether labels are of the part that is explained, or of all.
func (r *reader) mine(l metric.Labels) bool {
	for _, name := range r.scope {
		want, ok := r.Of.Get(name)
		if got, there := l.Get(name); ok && there && got != want {
			return false
		}
	}
	return true
}

// engines are those of which the run has the time of requests, the specific ones before those that they contain.
func engines(run *summary.Run) []string {
	found := map[string]bool{}
	for i := range run.Metrics {
		f, ok := run.Options.Catalog.Family(run.Metrics[i].Name)
		if ok && (f.Canonical == "e2e_s" || f.Canonical == "ttft_s") && len(run.Metrics[i].Series) > 0 {
			found[f.Engine] = true
		}
	}
	for i := range run.Derived {
		if d := &run.Derived[i]; d.Canonical == "e2e_mean_s" && d.Status.Defined() {
			found[d.Pack] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), run.Options.Catalog.CompareServers)
}

func (r *reader) read() {
	width := r.run.Options.Slice
	if r.Slice = width.Seconds(); width > 0 {
		r.n = int(math.Ceil(float64(r.run.Window.EndNS-r.run.Window.StartNS)/float64(width) - 1e-9))
	}
	endpoints := r.endpoints()
	for i := range endpoints {
		r.Restarts += r.run.Endpoints[i].Continuity.Restarts
	}
	for i := range r.run.Metrics {
		m := &r.run.Metrics[i]
		f, ok := r.c.Family(m.Name)
		if ok {
			r.client(f.Canonical, m)
		}
		if !ok || f.Canonical == "" || f.Engine != r.Engine && f.Canonical != "answers" {
			continue
		}
		for _, pool := range r.run.Pools(m, r.by) {
			pool.Series = slices.DeleteFunc(pool.Series, func(s *summary.Series) bool {
				return !endpoints[s.Endpoint] || !r.mine(s.Labels)
			})
			r.pool(f, m.Name, &pool)
		}
	}
	r.sums()
	r.unseen()
	r.quantities()
	for _, key := range slices.SortedFunc(maps.Keys(r.replicas), metric.Labels.Compare) {
		if rep := r.replicas[key]; rep.Waiting != nil || rep.Running != nil || rep.Steps != nil {
			r.Replicas = append(r.Replicas, *rep)
		}
	}
}

// client reads how busy the load generator was.
func (r *reader) client(id string, m *summary.Metric) {
	line := map[string]*[]float64{"client_cpu": &r.ClientCPU, "client_thread": &r.ClientThread}[id]
	for i := range m.Series {
		if line != nil {
			r.level(line, &m.Series[i], true)
		}
	}
}

// endpoints are those of the engine.
func (r *reader) endpoints() map[int]bool {
	at := map[int]bool{}
	for i := range r.run.Metrics {
		if f, ok := r.c.Family(r.run.Metrics[i].Name); ok && f.Engine == r.Engine {
			for j := range r.run.Metrics[i].Series {
				at[r.run.Metrics[i].Series[j].Endpoint] = true
			}
		}
	}
	return at
}

// pool reads the series of a family that are of one replica.
func (r *reader) pool(f *catalog.Family, name string, p *summary.Pool) {
	key := p.Labels.Only(r.by...)
	rep := r.replicas[key]
	if rep == nil {
		rep = &Replica{ID: key.String()}
		r.replicas[key] = rep
	}
	for _, s := range p.Series {
		r.lost(f, s)
		r.total(f.Canonical, name, s)
		switch f.Canonical {
		case "waiting":
			r.level(&rep.Waiting, s, false)
		case "running":
			r.level(&rep.Running, s, false)
		case "kv_usage":
			r.level(&rep.KV, s, true)
		case "preemption":
			r.gain(&rep.Preemptions, s)
		case "output_tokens":
			r.gain(&rep.Generated, s)
		case "e2e_s":
			r.observed(&rep.Ended, nil, s)
		case "itl_s":
			r.observed(&rep.GapCount, &rep.GapSum, s)
		case "step_tokens":
			r.observed(&rep.Steps, &rep.StepTokens, s)
		}
	}
}

// put adds a value to a timeslice, or keeps the largest.
func (r *reader) put(line *[]float64, startNS int64, v float64, largest bool) {
	if *line == nil {
		*line = slices.Repeat([]float64{math.NaN()}, r.n)
	}
	width := r.run.Options.Slice.Nanoseconds()
	j := int((startNS - r.run.Window.StartNS + width/2) / width) // a start may be off by what polls snap to
	if j < 0 || j >= r.n || math.IsNaN(v) {
		return
	}
	switch old := (*line)[j]; {
	case math.IsNaN(old) || largest && v > old:
		(*line)[j] = v
	case !largest:
		(*line)[j] = old + v
	}
}

func (r *reader) level(line *[]float64, s *summary.Series, largest bool) {
	if s.Gauge == nil {
		return
	}
	for _, slice := range s.Gauge.Slices {
		if slice.N > 0 {
			r.put(line, slice.StartNS, slice.Avg, largest)
		}
	}
}

func (r *reader) gain(line *[]float64, s *summary.Series) {
	if s.Counter == nil || !certain(s) {
		return
	}
	for _, slice := range s.Counter.Slices {
		r.put(line, slice.StartNS, slice.Total, false)
	}
}

func (r *reader) observed(count, sum *[]float64, s *summary.Series) {
	if s.Histogram == nil || !certain(s) {
		return
	}
	for _, slice := range s.Histogram.Slices {
		r.put(count, slice.StartNS, float64(slice.Count), false)
		if sum != nil {
			r.put(sum, slice.StartNS, slice.Sum, false)
		}
	}
}

// certain reports whether an increase may be judged as it is.
func certain(s *summary.Series) bool { return s.Increase.Status.Certain() }

// lost counts what a counter tells of requests that did not end well.
func (r *reader) lost(f *catalog.Family, s *summary.Series) {
	gained, ok := s.Gained()
	if !ok || s.Counter == nil || !certain(s) {
		return
	}
	l := &r.Losses
	switch f.Canonical {
	case "success":
		l.Ended += gained
		switch reason, _ := s.Labels.Get("finished_reason"); reason {
		case "abort":
			l.Aborts += gained
		case "error":
			l.Errors += gained
		}
	case "failure":
		l.Ended, l.Errors = l.Ended+gained, l.Errors+gained
	case "aborted":
		l.Ended, l.Aborts = l.Ended+gained, l.Aborts+gained
	case "refused":
		l.Refused += gained
	case "answers":
		l.Answers += gained
		if status, _ := s.Labels.Get("status"); strings.HasPrefix(status, "5") {
			l.Answers5xx += gained
		}
	}
}

// unseen notes the losses of which the pack of the engine has a family that the run does not have.
func (r *reader) unseen() {
	shown, known := map[string]bool{}, map[string]bool{}
	for i := range r.run.Metrics {
		if f, ok := r.c.Family(r.run.Metrics[i].Name); ok && f.Engine == r.Engine {
			shown[f.Canonical] = true
		}
	}
	for _, f := range r.c.Families() {
		known[f.Canonical] = known[f.Canonical] || f.Engine == r.Engine
	}
	if known["success"] && !shown["success"] {
		r.Unseen = append(r.Unseen, "errors, aborts (how requests ended is not shown)")
	} else if known["failure"] && !shown["failure"] {
		r.Unseen = append(r.Unseen, "errors (failures are not shown)")
	}
}

// total adds up a histogram over all series that count; an increase that is not certain is missing.
func (r *reader) total(id, name string, s *summary.Series) {
	if !certain(s) {
		if _, ok := r.doubts[id]; !ok {
			r.doubts[id] = name + ": " + s.Increase.Status.String()
		}
	} else if h := s.Histogram; h != nil && !h.NoSum {
		t := r.totals[id]
		r.totals[id] = Total{t.Sum + h.Sum, t.Count + float64(h.Count)}
	}
}

// sums takes the times of requests, and reads the buckets of gaps.
func (r *reader) sums() {
	for _, t := range times {
		sum, found := r.totals[t.family]
		if why, ok := r.doubts[t.family]; ok {
			r.Uncertain = append(r.Uncertain, why)
		} else if found {
			r.Sums[t.name] = sum
		} else if t.derived != "" {
			r.derived(t.name, t.derived)
		}
	}
	for i := range r.run.Latencies {
		l := &r.run.Latencies[i]
		if l.ID != "itl_s" || l.Engine != r.Engine || l.Histogram == nil || r.Gaps != nil || !r.mine(l.Labels) {
			continue
		}
		for _, b := range l.Histogram.Buckets {
			r.Gaps = append(r.Gaps, Bucket{b.Upper, float64(b.Count)})
		}
		for q, e := range l.Histogram.Quantiles {
			if r.run.Options.Quantiles[q] == 0.5 {
				r.Gap = e.Value
			}
		}
	}
}

// derived takes the parts of a mean of all endpoints of the engine.
func (r *reader) derived(name, id string) {
	if len(r.run.Combined) == 0 {
		return
	}
	var sum Total
	for i := range r.run.Combined[0].Derived {
		d := &r.run.Combined[0].Derived[i]
		if d.Pack != r.Engine || d.Canonical != id || !d.HasParts || !r.mine(d.Labels) {
			continue
		}
		if !d.Status.Certain() {
			r.Uncertain = append(r.Uncertain, d.Name+": "+d.Status.String())
			return
		}
		sum.Sum, sum.Count = sum.Sum+d.Numerator, sum.Count+d.Denominator
	}
	if sum.Count > 0 {
		r.Sums[name] = sum
	}
}

// quantities reads what is derived of all endpoints: of the engine, and of what stands beside it.
func (r *reader) quantities() {
	if len(r.run.Combined) == 0 {
		return
	}
	stages := map[string]*Stage{}
	for i := range r.run.Combined[0].Derived {
		d := &r.run.Combined[0].Derived[i]
		if !d.Status.Certain() || !d.Status.Defined() || !r.mine(d.Labels) {
			continue
		}
		q := Quantity{d.Canonical, d.Name, d.Labels, d.Shown, d.Unit, d.Families}
		if d.Pack != r.Engine {
			r.Beside = append(r.Beside, q)
			continue
		}
		r.Quantities = append(r.Quantities, q)
		if d.Canonical == "spec_acceptance_length" && d.HasParts {
			r.Drafts = d.Denominator
		}
		r.stage(stages, d)
	}
	for _, name := range slices.SortedFunc(maps.Keys(stages), numbers) {
		r.Stages = append(r.Stages, *stages[name])
	}
	r.polls()
}

// stage reads the parts of the time of a pipeline.
func (r *reader) stage(stages map[string]*Stage, d *summary.Derived) {
	name, _ := d.Labels.Get("stage")
	s := stages[name]
	if s == nil {
		s = &Stage{Name: name}
	}
	switch d.Name {
	case "stage_time_mean":
		s.Seconds = d.Value
	case "in_queue_share":
		s.Queued = d.Value
	case "omni_hops_mean":
		r.Hops = d.Value
		return
	default:
		return
	}
	stages[name] = s
}

// numbers orders names that are numbers as numbers, before what is none.
func numbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// polls reads how our own polls went at the endpoints of the engine.
func (r *reader) polls() {
	var all, lost int
	busy := 0.0
	for i := range r.endpoints() {
		e := &r.run.Endpoints[i]
		for outcome, n := range e.Ledger.InWindow {
			all += n
			if metric.Outcome(outcome) != metric.OK {
				lost += n
			}
		}
		if f := e.InWindow; f != nil && f.Total > 1 && f.LastNS > f.FirstNS {
			busy = max(busy, float64(f.AvgLatency)*float64(f.Total-1)/float64(f.LastNS-f.FirstNS))
		}
	}
	add := func(id string, v float64) {
		r.Beside = append(r.Beside, Quantity{ID: id, Name: id, Value: v, Unit: "ratio"})
	}
	if all > 0 {
		add("polls_lost", float64(lost)/float64(all))
	}
	add("scrape_share", busy)
}
