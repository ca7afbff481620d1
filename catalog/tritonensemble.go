package catalog

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// served is a version of a model.
type served struct{ model, version string }

// call is what a step of an ensemble calls, and in how many steps.
type call struct {
	served
	newest bool // it names no version
	times  float64
}

// fleet is the models of one endpoint.
type fleet struct {
	names    []string            // of the models
	versions map[string][]string // of each, the newest last
	view     map[served]*View
	version  map[string]string // of each, that which perf_analyzer would take
	several  map[string]bool   // several versions had requests
	steps    map[served][]call // of ensembles, sorted
}

func newFleet(v *View) *fleet {
	f := &fleet{versions: map[string][]string{}, view: map[served]*View{}, version: map[string]string{},
		several: map[string]bool{}, steps: map[served][]call{}}
	for _, m := range v.split([]string{"model", "version"}) {
		name, _ := m.Scope.Get("model")
		version, _ := m.Scope.Get("version")
		if f.versions[name] == nil {
			f.names = append(f.names, name)
		}
		f.versions[name] = append(f.versions[name], version)
		f.view[served{name, version}] = m
	}
	for _, name := range f.names {
		slices.SortFunc(f.versions[name], compareNumbers)
		for _, version := range f.versions[name] {
			grew := f.view[served{name, version}].Amount(requestCount("queue")).Value > 0
			if grew || f.version[name] == "" {
				f.several[name] = f.several[name] || grew && f.queued(name)
				f.version[name] = version
			}
		}
	}
	for at, m := range f.view {
		for _, g := range m.Series(tritonSteps) {
			c := call{times: g.Last}
			c.model, _ = g.Labels.Get("composing")
			c.version, _ = g.Labels.Get("composing_version")
			if c.newest = c.version == "" || c.version == "-1"; c.newest {
				c.version = f.newestReady(c.model)
			}
			f.steps[at] = append(f.steps[at], c)
		}
		slices.SortFunc(f.steps[at], func(a, b call) int {
			return cmp.Or(cmp.Compare(a.model, b.model), compareNumbers(a.version, b.version))
		})
	}
	return f
}

// queued reports whether perf_analyzer's version so far had requests.
func (f *fleet) queued(name string) bool {
	v := f.view[served{name, f.version[name]}]
	return v != nil && v.Amount(requestCount("queue")).Value > 0
}

// newestReady is the version that a step calls which names none: "" of a model without statistics.
func (f *fleet) newestReady(name string) (version string) {
	for _, v := range f.versions[name] {
		ready := f.view[served{name, v}].Series(tritonReady)
		if version == "" || len(ready) == 0 || ready[0].Last > 0 {
			version = v
		}
	}
	return version
}

// leaves returns what an ensemble calls that is none itself, the times of several ways added up; ok is false when one
// of them has no statistics. Deeper than any real one they are not followed.
func (f *fleet) leaves(at served) (out []call, ok bool) {
	ok = true
	var walk func(at served, times float64, depth int)
	walk = func(at served, times float64, depth int) {
		for _, c := range f.steps[at] {
			c.times *= times
			switch {
			case f.view[c.served] == nil || depth == maxDepth:
				ok = false
			case len(f.steps[c.served]) > 0:
				walk(c.served, c.times, depth+1)
			default:
				if i := slices.IndexFunc(out, func(o call) bool { return o.served == c.served }); i >= 0 {
					out[i].times += c.times
				} else {
					out = append(out, c)
				}
			}
		}
	}
	walk(at, 1, 0)
	return out, ok
}

// maxDepth is how deep ensembles of ensembles are followed.
const maxDepth = 8

// ensembleParts are the statistics that an ensemble takes from its composing models.
var ensembleParts = [...]string{"queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss"}

// ensembles gives what the composing models of each ensemble took: exact, the time of the versions it calls over its
// requests, and as perf_analyzer adds it up, the sum of their own averages, in which a step that is called three times
// counts once. What is left of the time of its requests is its overhead.
func ensembles(v *View) []Derived {
	f := newFleet(v)
	var out []Derived
	for _, name := range f.names {
		for _, version := range f.versions[name] {
			if at := (served{name, version}); len(f.steps[at]) > 0 {
				out = f.ensemble(out, at)
			}
		}
	}
	return out
}

func (f *fleet) ensemble(out []Derived, at served) []Derived {
	made := func(part, method string) Derived {
		return Derived{Name: tritonName + "ensemble_" + part + "_seconds",
			Families: []string{tritonRequests, tritonRequestNS, tritonSteps},
			Labels: metric.NewLabels(metric.Label{Name: "model", Value: at.model},
				metric.Label{Name: "version", Value: at.version}, metric.Label{Name: "method", Value: method})}
	}
	own, left := f.view[at], made("overhead", "exact")
	request, _ := own.divide([]Term{requestTime("success")}, []Term{requestCount("success")})
	left.Value, left.Status = request.Value, request.Status
	for _, part := range ensembleParts {
		d := made(part, "exact")
		if !f.exactPart(&d, at, part) {
			continue
		}
		out = append(out, d)
		left.Value -= d.Value
		left.Status = max(left.Status, d.Status)
		for _, flag := range d.Flags {
			left.Flag(flag)
		}
		if pa := made(part, "pa_compat"); at.version == f.version[at.model] {
			complete := f.paPart(&pa, at, part)
			if pa.Shown = pa.Value; !complete {
				pa.Status = Missing
			}
			out = append(out, pa)
		}
	}
	if !left.Status.Defined() {
		left.Value = 0
	}
	if left.Shown = max(0, left.Value); left.Value < 0 { // steps ran at the same time
		left.Flag("negative")
	}
	return append(out, left)
}

// exactPart computes one; false when the server has no such statistic. Of a model that serves others too, or of which
// several versions were the newest in turn, the share of the ensemble is an estimate by its calls.
func (f *fleet) exactPart(d *Derived, at served, part string) bool {
	requests := f.view[at].Amount(requestCount("success"))
	leaves, complete := f.leaves(at)
	there := false
	for _, leaf := range leaves {
		v := f.view[leaf.served]
		t := v.Amount(requestTime(part))
		there = there || t.Series > 0
		if t.Resets > 0 {
			d.atBest(ResetCorrected)
		}
		calls, want := v.Amount(requestCount("success")).Value, requests.Value*leaf.times
		switch moved := leaf.newest && f.several[leaf.model] && calls < 0.99*want; {
		case calls > 1.01*want || moved && calls > 0:
			if d.atBest(Estimate); moved {
				d.Flag("several_versions")
			} else {
				d.Flag("shared_steps")
			}
			t.Value *= want / calls
		}
		d.Numerator += t.Value
	}
	d.Denominator, d.HasParts = requests.Value, true
	switch {
	case !complete:
		d.Status, d.HasParts, d.Numerator, d.Denominator = Missing, false, 0, 0
	case requests.Value == 0:
		d.Status = ZeroDenominator
	default:
		d.Value = d.Numerator / d.Denominator
	}
	d.Shown = d.Value
	return there
}

// paPart computes one as perf_analyzer does; false when a composing model has no statistics.
func (f *fleet) paPart(d *Derived, at served, part string) bool {
	leaves, complete := f.paLeaves(at.model)
	for _, leaf := range leaves {
		v := f.view[leaf]
		t, n := v.Amount(requestTime(part)), v.Amount(requestCount(part)).Value
		if t.Resets > 0 {
			d.atBest(ResetCorrected)
		}
		if n > 0 {
			d.Value += t.Value / n
		}
	}
	return complete
}

// paLeaves returns the distinct models below an ensemble, each in perf_analyzer's version.
func (f *fleet) paLeaves(name string) (out []served, ok bool) {
	ok = true
	seen := map[string]bool{name: true}
	var walk func(name string)
	walk = func(name string) {
		for _, c := range f.steps[served{name, f.version[name]}] {
			leaf := served{c.model, f.version[c.model]}
			switch {
			case seen[c.model]:
				continue
			case f.view[leaf] == nil:
				ok = false
				continue
			}
			if seen[c.model] = true; len(f.steps[leaf]) > 0 {
				walk(c.model)
			} else {
				out = append(out, leaf)
			}
		}
	}
	walk(name)
	return out, ok
}

// paStats are the statistics that perf_analyzer prints, with its names.
var paStats = [...]struct{ name, stat string }{
	{"request_us", "success"}, {"queue_us", "queue"}, {"compute_input_us", "compute_input"},
	{"compute_infer_us", "compute_infer"},
	{"compute_output_us", "compute_output"}, {"cache_hit_us", "cache_hit"}, {"cache_miss_us", "cache_miss"},
}

// perfAnalyzer gives the whole microseconds that perf_analyzer prints, so that old reports can be compared: section 2
// of the design document triton.md.
func perfAnalyzer(v *View) []Derived {
	f := newFleet(v)
	var out []Derived
	for _, name := range f.names {
		add := func(what string, us uint64) {
			d := Derived{Name: "triton_pa_" + what, Value: float64(us), Shown: float64(us),
				Families: []string{tritonRequests, tritonRequestNS},
				Labels: metric.NewLabels(metric.Label{Name: "model", Value: name},
					metric.Label{Name: "version", Value: f.version[name]})}
			if f.several[name] {
				d.Flag("several_versions")
			}
			out = append(out, d)
		}
		for _, s := range paStats {
			if us, ok := f.paAverage(name, s.stat); ok {
				add(s.name, us)
			}
		}
		request, ok := f.paAverage(name, "success")
		queue, okQueue := f.paAverage(name, "queue")
		compute, okCompute := f.paCompute(name)
		if ok && okQueue && okCompute {
			add("compute_us", compute)
			add("overhead_us", request-min(request, queue+compute))
		}
	}
	return out
}

// paAverage is ns / (count * 1000), 0 for a count of 0; of an ensemble the sum of those of its composing models, but
// for the request itself.
func (f *fleet) paAverage(name, stat string) (us uint64, ok bool) {
	if f.isEnsemble(name) && stat != "success" {
		return f.paSum(name, func(leaf string) (uint64, bool) { return f.paAverage(leaf, stat) })
	}
	ns, count, ok := f.exact(name, stat)
	return paQuotient(ns, count), ok
}

func (f *fleet) isEnsemble(name string) bool { return len(f.steps[served{name, f.version[name]}]) > 0 }

// paCompute is compute, or with a cache compute and cache combined.
func (f *fleet) paCompute(name string) (us uint64, ok bool) {
	if f.isEnsemble(name) {
		return f.paSum(name, f.paCompute)
	}
	ns, count := new(big.Int), new(big.Int)
	parts := computeParts[:]
	if cacheOn(f.view[served{name, f.version[name]}]) {
		parts = append(slices.Clone(parts), "cache_hit", "cache_miss")
	}
	for i, part := range parts {
		t, c, ok := f.exact(name, part)
		if !ok {
			return 0, false
		}
		ns.Add(ns, t)
		if i == 0 || part == "cache_hit" {
			count.Add(count, c)
		}
	}
	return paQuotient(ns, count), true
}

func (f *fleet) paSum(name string, of func(leaf string) (uint64, bool)) (us uint64, ok bool) {
	leaves, complete := f.paLeaves(name)
	for _, leaf := range leaves {
		if part, there := of(leaf.model); there {
			us += part
			ok = true
		}
	}
	return us, ok && complete
}

// exact returns the gains of a statistic as integers.
func (f *fleet) exact(name, s string) (ns, count *big.Int, ok bool) {
	v := f.view[served{name, f.version[name]}]
	t, c := v.Series(tritonRequestNS, stat(s)...), v.Series(tritonRequests, stat(s)...)
	if len(t) != 1 || len(c) != 1 || !t[0].HasExact || !c[0].HasExact {
		return new(big.Int), new(big.Int), false
	}
	return new(big.Int).SetUint64(t[0].Exact), new(big.Int).SetUint64(c[0].Exact), true
}

func paQuotient(ns, count *big.Int) uint64 {
	if count.Sign() == 0 {
		return 0
	}
	return new(big.Int).Quo(ns, new(big.Int).Mul(count, big.NewInt(1000))).Uint64()
}
