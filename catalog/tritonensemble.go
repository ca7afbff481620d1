package catalog

import (
	"math/big"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// fleet is the models of one endpoint, each in the version that perf_analyzer would take.
type fleet struct {
	names    []string
	view     map[string]*View
	version  map[string]string
	several  map[string]bool     // several versions had requests
	compose  map[string][]string // distinct composing models of an ensemble
	multiple map[[2]string]float64
}

func newFleet(v *View) *fleet {
	f := &fleet{view: map[string]*View{}, version: map[string]string{}, several: map[string]bool{},
		compose: map[string][]string{}, multiple: map[[2]string]float64{}}
	grown := map[string]float64{}
	for _, m := range v.split([]string{"model", "version"}) {
		name, _ := m.Scope.Get("model")
		version, _ := m.Scope.Get("version")
		queued := m.Amount(requestCount("queue")).Value
		if f.view[name] == nil {
			f.names = append(f.names, name)
		} else {
			f.several[name] = f.several[name] || queued > 0 && grown[name] > 0
			if queued <= grown[name] {
				continue
			}
		}
		f.view[name], f.version[name], grown[name] = m, version, queued
	}
	for _, name := range f.names {
		for _, g := range f.view[name].Series(tritonSteps) {
			composing, _ := g.Labels.Get("composing")
			f.compose[name] = append(f.compose[name], composing)
			f.multiple[[2]string{name, composing}] = g.Last
		}
		slices.Sort(f.compose[name])
	}
	return f
}

// leaves returns the distinct models below an ensemble that are none themselves; ok is false when one of them has no
// statistics.
func (f *fleet) leaves(name string) (out []string, ok bool) {
	ok = true
	seen := map[string]bool{name: true}
	var walk func(string)
	walk = func(name string) {
		for _, c := range f.compose[name] {
			switch {
			case seen[c]:
				continue
			case f.view[c] == nil:
				ok = false
			case len(f.compose[c]) > 0:
				seen[c] = true
				walk(c)
				continue
			}
			seen[c] = true
			out = append(out, c)
		}
	}
	walk(name)
	return out, ok
}

// ensembleParts are the statistics that an ensemble takes from its composing models.
var ensembleParts = [...]string{"queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss"}

// ensembles gives what the composing models of each ensemble took: exact, their time over the requests of the
// ensemble, and as perf_analyzer adds it up, the sum of their own averages, in which a step that is called three times
// counts once.
func ensembles(v *View) []Derived {
	f := newFleet(v)
	var out []Derived
	for _, name := range f.names {
		if len(f.compose[name]) == 0 {
			continue
		}
		leaves, complete := f.leaves(name)
		for _, part := range ensembleParts {
			for _, method := range []string{"exact", "pa_compat"} {
				d := Derived{Name: tritonName + "ensemble_" + part + "_seconds",
					Families: []string{tritonRequests, tritonRequestNS, tritonSteps},
					Labels: metric.NewLabels(metric.Label{Name: "model", Value: name},
						metric.Label{Name: "version", Value: f.version[name]}, metric.Label{Name: "method", Value: method})}
				there := f.ensemblePart(&d, name, leaves, part, method == "exact")
				if !complete {
					d.Status = Missing
				}
				if d.Shown = d.Value; there {
					out = append(out, d)
				}
			}
		}
	}
	return out
}

// ensemblePart computes one of them; false when the server has no such statistic.
func (f *fleet) ensemblePart(d *Derived, name string, leaves []string, part string, exact bool) bool {
	there := false
	for _, leaf := range leaves {
		ns, n := f.view[leaf], 0.0
		if ns == nil {
			continue
		}
		t, c := ns.Amount(requestTime(part)), ns.Amount(requestCount(part))
		there = there || t.Series > 0
		if n = c.Value; t.Resets > 0 {
			d.Status = max(d.Status, ResetCorrected)
		}
		switch {
		case exact:
			d.Numerator += t.Value
		case n > 0:
			d.Value += t.Value / n
		}
	}
	own := f.view[name].Amount(requestCount("success"))
	for _, c := range f.compose[name] {
		if v := f.view[c]; v != nil {
			calls, want := v.Amount(requestCount("success")).Value, own.Value*f.multiple[[2]string{name, c}]
			if diff := calls - want; diff > 0.01*want {
				d.Flag("shared_steps") // composing models serve other requests too
			}
		}
	}
	if exact {
		d.Denominator, d.HasParts = own.Value, true
		if own.Value == 0 {
			d.Status = ZeroDenominator
		} else {
			d.Value = d.Numerator / d.Denominator
		}
	}
	return there
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
	if len(f.compose[name]) > 0 && stat != "success" {
		return f.paSum(name, func(leaf string) (uint64, bool) { return f.paAverage(leaf, stat) })
	}
	ns, count, ok := f.exact(name, stat)
	return paQuotient(ns, count), ok
}

// paCompute is compute, or with a cache compute and cache combined.
func (f *fleet) paCompute(name string) (us uint64, ok bool) {
	if len(f.compose[name]) > 0 {
		return f.paSum(name, f.paCompute)
	}
	ns, count := new(big.Int), new(big.Int)
	parts := computeParts[:]
	if cacheOn(f.view[name]) {
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
	leaves, complete := f.leaves(name)
	for _, leaf := range leaves {
		if f.view[leaf] == nil {
			continue
		}
		if part, there := of(leaf); there {
			us += part
			ok = true
		}
	}
	return us, ok && complete
}

// exact returns the gains of a statistic as integers.
func (f *fleet) exact(name, s string) (ns, count *big.Int, ok bool) {
	v := f.view[name]
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
