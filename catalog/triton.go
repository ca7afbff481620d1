package catalog

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/scrapestat/scrapestat/metric"
)

// The families of Triton's statistics extension, and the rules of section 3.2 of the design document triton.md.
// Durations are in nanoseconds.
const (
	tritonPrefix     = "triton_stats_"
	tritonInferences = tritonPrefix + "inferences_total"
	tritonExecutions = tritonPrefix + "executions_total"
	tritonRequests   = tritonPrefix + "requests_total"
	tritonRequestNS  = tritonPrefix + "request_duration_nanoseconds_total"
	tritonBatches    = tritonPrefix + "batch_executions_total"
	tritonBatchNS    = tritonPrefix + "batch_duration_nanoseconds_total"
	tritonResponses  = tritonPrefix + "responses_total"
	tritonResponseNS = tritonPrefix + "response_duration_nanoseconds_total"
	tritonTorn       = tritonPrefix + "torn_reads_total"
	tritonSteps      = tritonPrefix + "ensemble_steps"

	tritonName = "triton_derived_"
)

// TritonPack is the name of the pack of Triton's statistics.
const TritonPack = "triton-stats"

func stat(name string) []metric.Label { return []metric.Label{{Name: "stat", Value: name}} }

func requestCount(s string) Term { return Term{Family: tritonRequests, Where: stat(s)} }
func requestTime(s string) Term {
	return Term{Family: tritonRequestNS, Where: stat(s), Factor: 1e-9}
}

// average is the mean duration of a statistic.
func average(name, s, help string) Rule {
	return Rule{Name: tritonName + name, Unit: "seconds", Help: help, Num: []Term{requestTime(s)},
		Den: []Term{requestCount(s)}}
}

func tritonPacks() []Pack {
	return []Pack{tritonPack(), tritonEnsemblePack(), tritonPerfAnalyzerPack()}
}

func tritonPack() Pack {
	return Pack{Name: TritonPack, Title: "Triton statistics", Prefixes: []string{tritonPrefix},
		Scope: []string{"model", "version"}, Check: checkTriton,
		Rules: slices.Concat(tritonAverages(), tritonRates(), tritonResponseRules(), tritonSanity())}
}

func tritonAverages() []Rule {
	return []Rule{
		average("avg_request_seconds", "success", "From the arrival of a request to its answer."),
		average("avg_queue_seconds", "queue", "In the scheduler queue."),
		average("avg_compute_input_seconds", "compute_input", "Making the input."),
		average("avg_compute_infer_seconds", "compute_infer", "In the model; each request of a batch has the whole time."),
		average("avg_compute_output_seconds", "compute_output", "Taking the output."),
		average("avg_cache_hit_seconds", "cache_hit", "Looking up a cached answer."),
		average("avg_cache_miss_seconds", "cache_miss", "Looking up in vain, and inserting."),
		{Name: tritonName + "avg_combined_seconds", Unit: "seconds",
			Help: "Compute and cache together, over misses and hits.", Make: combined},
		{Name: tritonName + "avg_overhead_seconds", Unit: "seconds",
			Help: "Request less queue and compute, or less queue and combined with a cache.", Make: overhead},
		average("avg_failure_seconds", "fail", "Of failed requests."),
	}
}

func tritonRates() []Rule {
	total := func(family string) []Term { return []Term{{Family: family}} }
	return []Rule{
		{Name: tritonName + "request_rate", Unit: "requests/s", Num: []Term{requestCount("success")}},
		{Name: tritonName + "inference_rate", Unit: "inferences/s", Num: total(tritonInferences)},
		{Name: tritonName + "execution_rate", Unit: "executions/s", Num: total(tritonExecutions)},
		{Name: tritonName + "failure_ratio", Unit: "ratio", Num: []Term{requestCount("fail")},
			Den: []Term{requestCount("fail"), requestCount("success")}},
		{Name: tritonName + "cache_hit_ratio", Unit: "ratio", Num: []Term{requestCount("cache_hit")},
			Den: []Term{requestCount("cache_hit"), requestCount("cache_miss")}},
		{Name: tritonName + "avg_batch_size", Unit: "inferences", Num: total(tritonInferences), Den: total(tritonExecutions)},
		{Name: tritonName + "batch_size", Unit: "inferences", Make: batchPercentiles},
		{Name: tritonName + "mean_inflight", Unit: "requests", Num: []Term{requestTime("success")}},
		{Name: tritonName + "mean_queue_depth", Unit: "requests", Num: []Term{requestTime("queue")}},
		{Name: tritonName + "busy_instances", Unit: "instances", Num: []Term{{Family: tritonBatchNS, Factor: 1e-9}}},
		{Name: tritonName + "infer_seconds_per_inference", Unit: "seconds", Make: scaling},
	}
}

func tritonResponseRules() []Rule {
	first := []metric.Label{{Name: "response", Value: "0"}, {Name: "stat", Value: "success"}}
	return []Rule{
		{Name: tritonName + "first_response_seconds", Unit: "seconds",
			Num: []Term{{Family: tritonResponseNS, Where: first, Factor: 1e-9}},
			Den: []Term{{Family: tritonResponses, Where: first}}},
		{Name: tritonName + "next_response_seconds", Unit: "seconds", Make: nextResponse},
		{Name: tritonName + "avg_response_seconds", Unit: "seconds", By: []string{"response", "stat"},
			Num: []Term{{Family: tritonResponseNS, Factor: 1e-9}}, Den: []Term{{Family: tritonResponses}}},
	}
}

// computeParts are the statistics that make up compute.
var computeParts = [...]string{"compute_input", "compute_infer", "compute_output"}

// cacheOn reports whether a response cache was at work.
func cacheOn(v *View) bool {
	return v.Amount(requestCount("cache_hit")).Value+v.Amount(requestCount("cache_miss")).Value > 0
}

// combined is compute and cache over misses and hits, as perf_analyzer has it.
func combined(v *View) []Derived {
	if !cacheOn(v) {
		return nil
	}
	return quotient(v, combinedRule(true))
}

// combinedRule is compute, with the cache when cached is set.
func combinedRule(cached bool) *Rule {
	r := &Rule{Den: []Term{requestCount("compute_infer")}}
	for _, part := range computeParts {
		r.Num = append(r.Num, requestTime(part))
	}
	if cached {
		r.Num = append(r.Num, requestTime("cache_hit"), requestTime("cache_miss"))
		r.Den = append(r.Den, requestCount("cache_hit"))
	}
	return r
}

// overhead is what of a request is neither queue nor compute nor cache. It keeps a negative value and shows 0.
func overhead(v *View) []Derived {
	parts := []*Rule{{Num: []Term{requestTime("success")}, Den: []Term{requestCount("success")}},
		{Num: []Term{requestTime("queue")}, Den: []Term{requestCount("queue")}}, combinedRule(cacheOn(v))}
	d := Derived{Families: []string{tritonRequests, tritonRequestNS}}
	for i, r := range parts {
		part := quotient(v, r)
		if part == nil {
			return nil
		}
		d.Status = max(d.Status, part[0].Status)
		if i == 0 {
			d.Value = part[0].Value
		} else {
			d.Value -= part[0].Value
		}
	}
	if d.Shown = max(0, d.Value); d.Status.Defined() && d.Value < 0 {
		d.Flag("negative")
	}
	return []Derived{d}
}

// sized is a batch size and how often it was executed.
type sized struct{ size, executions, inferNS float64 }

// batchSizes returns the batch sizes of a model in ascending order, and how many resets their counters had.
func batchSizes(v *View) (out []sized, resets int) {
	inferNS := map[metric.Labels]float64{}
	for _, g := range v.Series(tritonBatchNS, stat("compute_infer")...) {
		inferNS[g.Labels] += g.Total
	}
	for _, g := range v.Series(tritonBatches, stat("compute_infer")...) {
		text, _ := g.Labels.Get("batch_size")
		size, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			continue
		}
		out = append(out, sized{size: float64(size), executions: g.Total, inferNS: inferNS[g.Labels]})
		resets += g.Resets
	}
	slices.SortFunc(out, func(a, b sized) int { return cmp.Compare(a.size, b.size) })
	return out, resets
}

// batchPercentiles is the exact distribution of batch sizes, as executions see it and as inferences do: the smallest
// size whose cumulative share reaches p.
func batchPercentiles(v *View) []Derived {
	sizes, resets := batchSizes(v)
	if len(sizes) == 0 {
		return nil
	}
	var out []Derived
	for _, p := range []float64{50, 90, 99} {
		for _, weight := range []string{"execution", "inference"} {
			d := Derived{Name: tritonName + "batch_size_p" + strconv.Itoa(int(p)), Families: []string{tritonBatches},
				Labels: metric.NewLabels(metric.Label{Name: "weight", Value: weight})}
			if resets > 0 {
				d.Status = ResetCorrected
			}
			var ok bool
			if d.Value, ok = batchPercentile(sizes, p, weight == "inference"); !ok {
				d.Status = ZeroDenominator
			}
			d.Shown = d.Value
			out = append(out, d)
		}
	}
	return out
}

func batchPercentile(sizes []sized, p float64, inferences bool) (float64, bool) {
	weight := func(s sized) float64 {
		if inferences {
			return s.executions * s.size
		}
		return s.executions
	}
	all, cum := 0.0, 0.0
	for _, s := range sizes {
		all += weight(s)
	}
	for _, s := range sizes {
		if cum += weight(s); cum > 0 && cum*100 >= p*all {
			return s.size, true
		}
	}
	return 0, false
}

// scaling is the time in the model per inference by batch size.
func scaling(v *View) []Derived {
	sizes, _ := batchSizes(v)
	var out []Derived
	for _, s := range sizes {
		d := Derived{Labels: metric.NewLabels(metric.Label{Name: "batch_size",
			Value: strconv.FormatFloat(s.size, 'f', -1, 64)}),
			Numerator: s.inferNS * 1e-9, Denominator: s.size * s.executions, HasParts: true,
			Families: []string{tritonBatches, tritonBatchNS}}
		if d.Denominator == 0 {
			d.Status = ZeroDenominator
		} else {
			d.Value = d.Numerator / d.Denominator
		}
		d.Shown = d.Value
		out = append(out, d)
	}
	return out
}

// nextResponse is the mean time of all successful responses but the first.
func nextResponse(v *View) []Derived {
	d := Derived{HasParts: true, Families: []string{tritonResponses, tritonResponseNS}}
	n := 0
	later := func(family string) (sum float64) {
		for _, g := range v.Series(family, stat("success")...) {
			if key, _ := g.Labels.Get("response"); key != "0" {
				sum += g.Total
				n++
			}
		}
		return sum
	}
	d.Numerator, d.Denominator = later(tritonResponseNS)*1e-9, later(tritonResponses)
	switch {
	case n == 0:
		return nil
	case d.Denominator == 0:
		d.Status = ZeroDenominator
	default:
		d.Value = d.Numerator / d.Denominator
	}
	d.Shown = d.Value
	return []Derived{d}
}

// checkTriton flags means that cannot be: early servers had durations that underflowed.
func checkTriton(v *View, d *Derived) {
	if d.Unit == "seconds" && v.Seconds > 0 && math.Abs(d.Value) > 1000*v.Seconds {
		d.Flag("implausible")
	}
}
