package sweep

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/check"
	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/internal/suggest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// ParseSLO reads an upper limit of a row of package headline: ttft p99 <= 450ms, error_ratio < 1%. A time needs a unit.
func ParseSLO(text string) (SLO, error) {
	s := SLO{Text: strings.Join(strings.Fields(text), " ")}
	left, right, ok := strings.Cut(text, "<")
	if !ok {
		return s, fmt.Errorf("%q: want an upper limit, such as ttft p99 <= 450ms", text)
	}
	right, atMost := strings.CutPrefix(right, "=")
	s.Strict, s.Row = !atMost, strings.Join(strings.Fields(left), "_")
	row, ok := headline.Named(s.Row)
	if !ok {
		return s, fmt.Errorf("%q: no judged quantity is called %q%s (known: %s, and other percentiles of these)", text,
			s.Row, suggest.Clause(s.Row, headline.Spellings()), strings.Join(rowNames(), ", "))
	}
	s.Row = row.Name()
	limit, err := check.ParseLimit(right)
	switch {
	case err != nil:
		return s, err
	case row.Unit == "seconds" && limit.Unit == "":
		return s, fmt.Errorf("%q: %s", text, headline.NeedsUnit(s.Row, limit.Value))
	}
	if s.Limit, err = limit.In(row.Unit); err != nil {
		return s, fmt.Errorf("%q: %w", text, err)
	}
	if !(s.Limit >= 0) {
		return s, fmt.Errorf("%q: a limit is not negative", text)
	}
	return s, nil
}

func rowNames() (out []string) {
	for _, r := range headline.Rows() {
		out = append(out, r.Name())
	}
	return out
}

// Quantiles are those that limits need beside those of the table.
func Quantiles(slos []SLO) []float64 {
	out := []float64{0.5, 0.99}
	for i := range slos {
		if row, ok := headline.Named(slos[i].Row); ok {
			if q, ok := row.Quantile(); ok {
				out = append(out, q)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Reading is what an engine showed in the window of a run, as a point that has no load yet.
type Reading struct {
	Engine string
	Point  Point
	GPUs   float64 // that an exporter shows, 0 for none
}

// Read returns a reading of each engine of an analysed run that shows the time of requests, the most specific first.
// The timeslices of the run are to be summary.CauseSlices.
func Read(run *summary.Run, slos []SLO, rules *explain.Rules) (out []Reading) {
	var more []headline.Row
	for i := range slos {
		if row, ok := headline.Named(slos[i].Row); ok {
			more = append(more, row)
		}
	}
	groups := headline.Of(run, run.Options.Catalog, more...)
	for _, f := range explain.Read(run) {
		r := &reading{run: run, facts: f, p: Point{Run: run.ID, StartNS: run.Window.StartNS, EndNS: run.Window.EndNS,
			X: math.NaN(), Values: map[string]Value{}, Restarts: f.Restarts, Slice: f.Slice}}
		r.seconds()
		r.headlines(groups)
		r.levels()
		r.flow()
		r.steps()
		r.hardware()
		r.explain(rules)
		out = append(out, Reading{f.Engine, r.p, gpus(run)})
	}
	return out
}

// reading is a point that is being read.
type reading struct {
	run   *summary.Run
	facts *explain.Facts
	p     Point
	ended float64
}

func (r *reading) seconds() {
	if w := r.run.Window.Resolved; w != nil {
		r.p.Seconds, _, _ = w.Bounds()
	} else {
		r.p.Seconds = float64(r.run.Window.EndNS-r.run.Window.StartNS) / 1e9
	}
}

// headlines takes the rows of the engine. What is of several models cannot be taken together here.
func (r *reading) headlines(groups []headline.Group) {
	var own []headline.Group
	for _, g := range groups {
		if g.Engine == r.facts.Engine || strings.HasPrefix(r.facts.Engine, g.Engine+"-") {
			own = append(own, g)
		}
	}
	for i := range own {
		for _, list := range [][]headline.Value{own[i].Values, own[i].Load, own[i].Context, own[i].More} {
			for k := range list {
				r.put(&list[k], len(own) > 1)
			}
		}
	}
}

func (r *reading) put(v *headline.Value, several bool) {
	name := v.Name()
	x := Value{Value: v.Value, Low: v.Low, High: v.High, Weight: v.Count, Why: v.Missing}
	if _, percentile := v.Quantile(); !percentile || math.IsNaN(x.Low) || math.IsNaN(x.High) {
		x.Low, x.High = x.Value, x.Value
		if percentile && x.Why == "" {
			x.Low, x.High = 0, math.Inf(1) // nothing bounds it
		}
	}
	if x.Why == "" {
		x.Why = v.Unsure
	}
	old, ok := r.p.Values[name]
	switch {
	case !ok:
	case several && strings.HasSuffix(v.Unit, "/s") && x.Why == "" && old.Why == "":
		x = exact(x.Value+old.Value, x.Weight+old.Weight)
	case several:
		x = Value{Value: math.NaN(), Low: math.NaN(), High: math.NaN(), Why: "of several models"}
	}
	r.p.Values[name] = x
}

// levels adds up the requests of all replicas by timeslice: a replica that is not shown makes the sum unknown.
func (r *reading) levels() {
	n := 0
	for i := range r.facts.Replicas {
		n = max(n, len(r.facts.Replicas[i].Waiting), len(r.facts.Replicas[i].Running))
	}
	sum := func(line func(*explain.Replica) []float64) (out []float64) {
		for i := range r.facts.Replicas {
			rep := &r.facts.Replicas[i]
			values := line(rep)
			switch {
			case rep.Waiting == nil && rep.Running == nil:
				continue
			case values == nil:
				return nil
			}
			if out == nil {
				out = make([]float64, n)
			}
			for j := range out {
				out[j] += values[j]
			}
		}
		return out
	}
	r.p.Waiting = sum(func(p *explain.Replica) []float64 { return p.Waiting })
	r.p.Running = sum(func(p *explain.Replica) []float64 { return p.Running })
}

// flow is what came and what ended, by the balance of flow: what ended, what more are in the server at the end, and
// what was refused.
func (r *reading) flow() {
	p := &r.p
	switch rate, ended := p.Value("request_rate"), r.facts.Sums["e2e"].Count; {
	case rate.known():
		p.X = rate.Value
	case rate.Why != "" && !math.IsNaN(rate.Value):
		p.X, p.Doubt = rate.Value, rate.Why
	case ended > 0:
		p.X = ended / p.Seconds
	default:
		p.Doubt = "requests that ended: " + rate.Why
	}
	if _, ok := r.facts.Sums["e2e"]; ok && r.facts.Sums["e2e"].Count == 0 {
		p.Doubt = "no requests"
	}
	r.ended = p.X * p.Seconds
	more, known := r.change()
	lost := &r.facts.Losses
	p.Arrivals, p.Refused = math.NaN(), 0
	if known && p.Seconds > 0 {
		p.Arrivals = (r.ended + more + lost.Refused) / p.Seconds
	}
	if lost.Refused > 0 {
		p.Refused = lost.Refused / (lost.Refused + r.ended)
	}
}

// gauges calls f with each gauge of the engine that has a canonical id and counts.
func (r *reading) gauges(id string, f func(*summary.Series)) {
	for i := range r.run.Metrics {
		m := &r.run.Metrics[i]
		family, ok := r.run.Options.Catalog.Family(m.Name)
		if !ok || family.Canonical != id || family.Engine != r.facts.Engine {
			continue
		}
		for _, pool := range r.run.Pools(m, nil) {
			for _, s := range pool.Series {
				if s.Gauge != nil && s.Gauge.N > 0 {
					f(s)
				}
			}
		}
	}
}

// change is how many more requests are in the server at the end of the window than at its start.
func (r *reading) change() (more float64, known bool) {
	seen := map[string]bool{}
	for _, id := range []string{"running", "waiting"} {
		r.gauges(id, func(s *summary.Series) {
			more += s.Gauge.Last - s.Gauge.First
			seen[id] = true
		})
	}
	peak := math.NaN()
	r.gauges("kv_usage", func(s *summary.Series) {
		if !(s.Gauge.Max <= peak) {
			peak = s.Gauge.Max
		}
	})
	r.p.Values["kv_peak"] = exact(peak, 0)
	return more, len(seen) == 2
}

// steps are those of the scheduler.
func (r *reading) steps() {
	steps, tokens := 0.0, 0.0
	for i := range r.facts.Replicas {
		rep := &r.facts.Replicas[i]
		for j := range rep.Steps {
			if !math.IsNaN(rep.Steps[j]) && !math.IsNaN(rep.StepTokens[j]) {
				steps, tokens = steps+rep.Steps[j], tokens+rep.StepTokens[j]
			}
		}
	}
	if steps > 0 {
		r.p.Values["steps_s"], r.p.Values["step_tokens"] = exact(steps/r.p.Seconds, 0), exact(tokens/steps, steps)
	}
	for _, q := range r.facts.Quantities {
		if q.ID == "prefix_hit_ratio" {
			r.p.Values[q.ID] = exact(q.Value, 0)
		}
	}
}

// hardware takes power and use of GPUs, where one exporter shows them.
func (r *reading) hardware() {
	if len(r.run.Combined) == 0 {
		return
	}
	for i := range r.run.Combined[0].Derived {
		d := &r.run.Combined[0].Derived[i]
		name := map[string]string{"avg_power": "power", "gpu_util_mean": "gpu_util"}[d.Name]
		if _, twice := r.p.Values[name]; name == "" || twice || !d.Status.Certain() || d.Labels.Len() > 0 {
			continue
		}
		v := d.Value
		if d.Unit == "percent" {
			v /= 100
		}
		r.p.Values[name] = exact(v, 0)
	}
}

// explain takes what the queue waited for.
func (r *reading) explain(rules *explain.Rules) {
	e := explain.Explain(r.facts, rules, explain.Latency)
	if len(e.Waterfall) == 0 {
		r.p.Missing = append(r.p.Missing, e.Missing...)
		return
	}
	most := 0.0
	for _, row := range e.Waterfall {
		class, queue := strings.CutPrefix(row.ID, "queue_")
		if !queue {
			continue
		}
		r.p.QueueShare += row.Share
		if row.Share > most {
			most, r.p.Bound = row.Share, class
		}
	}
	if r.p.Bound == "unknown" {
		r.p.Bound, r.p.Missing = "cannot tell", append(r.p.Missing, e.Missing...)
	}
}

// gpus counts the GPUs that exporters show.
func gpus(run *summary.Run) float64 {
	type gpu struct {
		endpoint int
		labels   metric.Labels
	}
	seen := map[gpu]bool{}
	for i := range run.Metrics {
		if f, ok := run.Options.Catalog.Family(run.Metrics[i].Name); !ok || f.Engine != "dcgm" {
			continue
		}
		for j := range run.Metrics[i].Series {
			s := &run.Metrics[i].Series[j]
			if _, of := s.Labels.Get("gpu"); of && run.Endpoints[s.Endpoint].SameAs == 0 {
				seen[gpu{s.Endpoint, s.Labels.Only("Hostname", "gpu", "GPU_I_ID")}] = true
			}
		}
	}
	return float64(len(seen))
}
