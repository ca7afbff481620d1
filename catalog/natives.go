package catalog

import (
	"math"
	"slices"
	"strconv"

	"github.com/scrapestat/scrapestat/metric"
)

// The families that natives read.
const (
	vllmKV          = "vllm:kv_cache_usage_perc"
	vllmConfig      = "vllm:cache_config_info"
	vllmDrafts      = "vllm:spec_decode_num_drafts"
	vllmAcceptedAt  = "vllm:spec_decode_num_accepted_tokens_per_pos"
	vllmPreemptions = "vllm:request_num_preemptions"
	vllmE2E         = "vllm:e2e_request_latency_seconds"
	vllmQueue       = "vllm:request_queue_time_seconds"
	vllmGenerated   = "vllm:generation_tokens"

	vllm   = "vllm:"
	sglang = "sglang:"
	llama  = "llamacpp:"
)

// natives are by the names that packs have for them.
func natives() map[string]native {
	out := map[string]native{"slo_attainment": sloOfEngine, "goodput": goodput, "attainment": attained, "energy": energyBy,
		"power": power, "per_energy": perEnergy}
	plain := func(all map[string]func(*View) []Derived) {
		for name, of := range all {
			out[name] = func(v *View, _ argument) []Derived { return of(v) }
		}
	}
	plain(map[string]func(*View) []Derived{"busy_slots": busySlots, "kv_tokens": kvTokens,
		"preempted_share": preemptedShare, "conditional_acceptance": conditional, "sglang_tpot": sglangTPOT,
		"batch_sizes": batchPercentiles, "batch_scaling": scaling, "triton_invariants": invariantViolations,
		"triton_resets": tritonResets, "triton_implausible": implausible, "triton_ensembles": ensembles,
		"perf_analyzer": perfAnalyzer})
	plain(omniNatives())
	return out
}

// counted is a result that is a number of things.
func counted(n float64, families ...string) []Derived {
	return []Derived{{Value: n, Shown: n, Families: families}}
}

// divided makes a quotient of two numbers.
func divided(num, den float64, families ...string) Derived {
	d := Derived{Numerator: num, Denominator: den, HasParts: true, Families: families}
	if den == 0 {
		d.Status = ZeroDenominator
		return d
	}
	d.Value = num / den
	d.Shown = d.Value
	return d
}

// after says what happened to the counters of a quantity.
func (d Derived) after(counters Amount) Derived {
	if counters.Resets > 0 {
		d.atBest(ResetCorrected)
	}
	if counters.Born {
		d.atBest(BornInWindow)
	}
	return d
}

// kvTokens needs the number and size of the blocks, which are labels.
func kvTokens(v *View) []Derived {
	usage, configs := v.Amount(Term{Family: vllmKV, Part: Mean}), v.Series(vllmConfig)
	if usage.Series == 0 {
		return nil
	}
	d := Derived{Families: []string{vllmKV, vllmConfig}, Status: Missing}
	if len(configs) == 0 {
		return []Derived{d}
	}
	total := 0.0
	for _, g := range v.Series(vllmKV) {
		blocks, size, ok := cacheConfig(configs, g)
		if !ok {
			return []Derived{d}
		}
		total += g.TimeAvg * (blocks - 1) * size
	}
	return []Derived{{Value: total, Shown: total, Families: d.Families}}
}

// cacheConfig returns the configuration of the engine that a gauge is of.
func cacheConfig(configs []*Gain, g *Gain) (blocks, size float64, ok bool) {
	engine, _ := g.Labels.Get("engine")
	for _, c := range configs {
		if of, _ := c.Labels.Get("engine"); of != engine && of != "" && engine != "" || c.Source != g.Source {
			continue
		}
		n, _ := c.Labels.Get("num_gpu_blocks")
		b, _ := c.Labels.Get("block_size")
		blocks, errBlocks := strconv.ParseFloat(n, 64)
		size, errSize := strconv.ParseFloat(b, 64)
		if errBlocks == nil && errSize == nil && blocks >= 1 && size >= 1 && !math.IsInf(blocks*size, 0) {
			return blocks, size, true
		}
	}
	return 0, 0, false
}

// preemptedShare bounds the share of the requests with at least one preemption. With s of those with two or more and m
// preemptions on average, it is at least s, and at most m - s, as each of the former counts twice.
func preemptedShare(v *View) []Derived {
	twice := beyond(v, vllmPreemptions, 1)
	mean, some := v.divide([]Term{{Family: vllmPreemptions, Part: Sum}},
		[]Term{{Family: vllmPreemptions, Part: Count}})
	if len(twice) == 0 || !some {
		return nil
	}
	low := twice[0]
	high := Derived{Families: mean.Families, Status: max(low.Status, mean.Status)}
	low.HasParts, low.Numerator, low.Denominator = false, 0, 0
	if high.Status.Defined() {
		high.Value = min(1, max(low.Value, mean.Value-low.Value))
		high.Shown = high.Value
	}
	low.atBest(Bound)
	high.atBest(Bound)
	return slices.Concat(label([]Derived{low}, oneLabel("bound", "lower")),
		label([]Derived{high}, oneLabel("bound", "upper")))
}

func oneLabel(name, value string) metric.Labels {
	return metric.NewLabels(metric.Label{Name: name, Value: value})
}

// conditional divides what was accepted at a position by the position before.
func conditional(v *View) []Derived {
	at := map[int]Amount{}
	for _, g := range v.Series(vllmAcceptedAt) {
		text, _ := g.Labels.Get("position")
		if p, err := strconv.Atoi(text); err == nil && p >= 0 && p < 1<<16 {
			at[p] = v.Amount(Term{Family: vllmAcceptedAt, Where: []metric.Label{{Name: "position", Value: text}}})
		}
	}
	before := v.Amount(Term{Family: vllmDrafts})
	var out []Derived
	for p := range len(at) {
		here, ok := at[p]
		if !ok || before.Series == 0 {
			break
		}
		d := divided(here.Value, before.Value, vllmAcceptedAt)
		if p == 0 {
			d.Families = append(d.Families, vllmDrafts)
		}
		if here.Resets+before.Resets > 0 {
			d.atBest(ResetCorrected)
		}
		out = append(out, label([]Derived{d}, oneLabel("position", strconv.Itoa(p)))...)
		before = here
	}
	return out
}

// sglangCountGap is how far the counts of TTFT and end-to-end latency may differ for the difference of their sums to
// mean something: requests under way at the edges of the window make them differ a little.
const sglangCountGap = 0.05

func sglangTPOT(v *View) []Derived {
	e2e, ttft := sglang+"e2e_request_latency_seconds", sglang+"time_to_first_token_seconds"
	d, some := v.divide([]Term{{Family: e2e, Part: Sum}, {Family: ttft, Part: Sum, Factor: -1}},
		[]Term{{Family: sglang + "generation_tokens"}, {Family: sglang + "num_requests", Factor: -1}})
	if !some {
		return nil
	}
	a, b := v.Amount(Term{Family: e2e, Part: Count}).Value, v.Amount(Term{Family: ttft, Part: Count}).Value
	if gap := math.Abs(a - b); d.Status.Defined() && gap > 0 {
		d.Flag("count_mismatch")
		d.atBest(Estimate)
		if gap > sglangCountGap*max(a, b) {
			d.Status, d.HasParts, d.Numerator, d.Denominator = Missing, false, 0, 0
		}
	}
	return []Derived{d}
}

// busySlots takes the window out of a mean since the start: times the calls it is a counter. A restart in the
// window leaves nothing to take it from.
func busySlots(v *View) []Derived {
	mean, calls := llama+"n_busy_slots_per_decode", llama+"n_decode"
	a, n := v.Series(mean), v.Series(calls)
	if len(a) == 0 && len(n) == 0 {
		return nil
	}
	d := Derived{Families: []string{mean, calls}}
	if len(a) != 1 || len(n) != 1 {
		d.Status = Missing
		return []Derived{d}
	}
	if n[0].Resets > 0 {
		d.Status = Missing
		d.Flag("restarted")
		return []Derived{d}
	}
	callsBefore, before := n[0].First, 0.0
	if n[0].Born {
		callsBefore = 0
	}
	if callsBefore > 0 { // before the first call the mean is not a number
		before = a[0].First * callsBefore
	}
	return []Derived{divided(a[0].Last*n[0].Last-before, n[0].Last-callsBefore, mean,
		calls).after(Amount{Born: n[0].Born})}
}
