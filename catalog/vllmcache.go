package catalog

import (
	"math"
	"slices"
	"strconv"

	"github.com/scrapestat/scrapestat/metric"
)

// More families of vLLM.
const (
	vllmDrafts      = vllm + "spec_decode_num_drafts"
	vllmDrafted     = vllm + "spec_decode_num_draft_tokens"
	vllmAccepted    = vllm + "spec_decode_num_accepted_tokens"
	vllmAcceptedAt  = vllm + "spec_decode_num_accepted_tokens_per_pos"
	vllmPreemptions = vllm + "request_num_preemptions"
	vllmFlops       = vllm + "estimated_flops_per_gpu"
	vllmRead        = vllm + "estimated_read_bytes_per_gpu"
	vllmWritten     = vllm + "estimated_write_bytes_per_gpu"
	vllmNIXL        = vllm + "nixl_"
)

func vllmCache() []Rule {
	prompt, life := increase(vllmPrompt), vllm+"kv_block_lifetime_seconds"
	gap := vllm + "kv_block_reuse_gap_seconds"
	cached := func(name, help string, hits, queries []Term) Rule {
		return ratio(name, help, hits, queries).category(Cache, HigherBetter)
	}
	return []Rule{
		cached("prefix_hit_ratio", "Share of the tokens looked up in the prefix cache that were there; requests queued "+
			"again are looked up again.",
			increase(vllmHits), increase(vllmQueries)).headline("prefix_hit_ratio"),
		cached("external_hit_ratio", "Share of the tokens looked up in the caches of other instances that were there.",
			increase(vllm+"external_prefix_cache_hits"), increase(vllm+"external_prefix_cache_queries")),
		cached("cached_prompt_share", "Share of the prompt tokens that came from a cache.",
			increase(vllm+"prompt_tokens_cached"), prompt),
		ratio("source_share", "Share of the prompt tokens by where their KV came from.", increase(vllmSource),
			increase(vllmSource)).category(Cache, Neutral).shares("source"),
		meanOf("kv_computed_per_request", "tokens", "Prompt tokens of a request whose KV was computed.",
			vllm+"request_prefill_kv_computed_tokens").category(Cache, LowerBetter),
		cached("mm_hit_ratio", "Share of the multi-modal items that were cached.", increase(vllm+"mm_cache_hits"),
			increase(vllm+"mm_cache_queries")),
		ratio("recomputed_share", "Share of the prompt tokens computed although they were cached.",
			increase(vllm+"prompt_tokens_recomputed"), prompt).category(Cache, LowerBetter),
		meanOf("kv_block_lifetime_mean", "seconds", "From the allocation of a KV block to its eviction.",
			life).category(Cache, HigherBetter),
		meanOf("kv_block_idle_mean", "seconds", "From the last use of a KV block to its eviction.",
			vllm+"kv_block_idle_before_evict_seconds").category(Cache, Neutral),
		meanOf("kv_block_reuse_gap_mean", "seconds", "Between two uses of a KV block.", gap).category(Cache, Neutral),
		{Name: "kv_reuse_gap_by_lifetime", Unit: "ratio", Category: Cache, Better: LowerBetter,
			Formula: "kv_block_reuse_gap_mean / kv_block_lifetime_mean",
			Help:    "Mean gap between two uses by the mean lifetime of a block: below 1 the cache is useful.",
			Make:    func(v *View) []Derived { return quotientOf(v, sumOf(gap), countOf(gap), sumOf(life), countOf(life)) }},
	}
}

// quotientOf is the quotient of two quotients, that of a by b and that of c by d.
func quotientOf(v *View, a, b, c, d []Term) []Derived {
	x, someX := v.divide(a, b)
	y, someY := v.divide(c, d)
	if !someX || !someY {
		return nil
	}
	out := divided(x.Value, y.Value, slices.Concat(x.Families, y.Families)...)
	if worst := max(x.Status, y.Status); out.Status.Defined() || !worst.Defined() {
		out.Status = worst
	}
	if !out.Status.Defined() {
		out.HasParts, out.Numerator, out.Denominator = false, 0, 0
	}
	return []Derived{out}
}

// kvTokens needs the number and size of the blocks, which are labels.
func kvTokens(v *View) []Derived {
	usage, configs := v.Amount(meanOver(vllmKV)[0]), v.Series(vllmConfig)
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
		if errBlocks == nil && errSize == nil && blocks >= 1 && size >= 1 && finite(blocks*size) {
			return blocks, size, true
		}
	}
	return 0, 0, false
}

// kvCapacity is defined only when the cache was full: an empty one tells nothing of the size of requests.
func kvCapacity(v *View) []Derived {
	usage, running := v.Amount(meanOver(vllmKV)[0]), v.Amount(meanOver(vllmRunning)[0])
	if usage.Series == 0 || running.Series == 0 || usage.Value < 0.9 || running.Value <= 0 || usage.Series > 1 {
		return nil
	}
	n := math.Floor(running.Value / usage.Value)
	return []Derived{{Value: n, Shown: n, Families: []string{vllmKV, vllmRunning}}}
}

// preemptedShare bounds the share of the requests with at least one preemption. With s of those with two or more and m
// preemptions on average, it is at least s, and at most m - s, as each of the former counts twice.
func preemptedShare(v *View) []Derived {
	twice := beyond(v, vllmPreemptions, 1)
	mean, some := v.divide(sumOf(vllmPreemptions), countOf(vllmPreemptions))
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

func vllmSpeculation() []Rule {
	drafts, drafted, accepted, at := increase(vllmDrafts), increase(vllmDrafted), increase(vllmAccepted),
		increase(vllmAcceptedAt)
	return []Rule{
		ratio("spec_acceptance_rate", "Share of the drafted tokens that were accepted.", accepted,
			drafted).category(Efficiency, HigherBetter),
		Rule{Name: "spec_mean_acceptance_length", Unit: "tokens", Help: "Tokens that a draft gave, with the bonus token.",
			Num: plus(drafts, accepted), Den: drafts}.
			category(Efficiency, HigherBetter).canonical("spec_acceptance_length"),
		ratio("spec_acceptance_at", "Share of the drafts whose token at a position was accepted.", at,
			drafts).category(Efficiency, HigherBetter).shares("position"),
		{Name: "spec_conditional_acceptance_at", Unit: "ratio", Category: Efficiency, Better: HigherBetter, Make: conditional,
			Help:    "Share accepted at a position of the drafts that were accepted up to the one before.",
			Formula: vllmAcceptedAt + " at a position / at the one before"},
		{Name: "spec_waste", Unit: "tokens", Help: "Drafted tokens that were thrown away.", Category: Efficiency,
			Better:  LowerBetter,
			Formula: vllmDrafted + " - " + vllmAccepted,
			Make:    func(v *View) []Derived { return difference(v, drafted, accepted) }},
	}
}

// difference is an amount, not a quotient: what the terms a gained more than b.
func difference(v *View, a, b []Term) []Derived {
	t := v.sum(minus(a, b))
	if t.series == 0 {
		return nil
	}
	d := Derived{Value: t.sum, Shown: t.sum, Families: t.families}
	switch {
	case t.missing:
		d.Status = Missing
	case t.resets > 0:
		d.Status = ResetCorrected
	case t.born:
		d.Status = BornInWindow
	}
	return []Derived{d}
}

// conditional divides what was accepted at a position by the position before.
func conditional(v *View) []Derived {
	at := map[int]Amount{}
	for _, g := range v.Series(vllmAcceptedAt) {
		text, _ := g.Labels.Get("position")
		if p, err := strconv.Atoi(text); err == nil && p >= 0 && p < 1<<16 {
			at[p] = v.Amount(increase(vllmAcceptedAt, "position", text)[0])
		}
	}
	before := v.Amount(increase(vllmDrafts)[0])
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

func vllmEfficiency() []Rule {
	generated := increase(vllmGenerated)
	tflops := perGPU("tflops_per_gpu", "tflops", "Estimated speed of a GPU, 10^12 operations a second.", 1e-12, generated,
		vllmFlops)
	traffic := perGPU("hbm_gbs_per_gpu", "gb/s", "Estimated memory traffic of a GPU.", 1e-9, generated, vllmRead,
		vllmWritten)
	return []Rule{
		{Name: "decode_rate_per_request", Unit: "tokens/s", Help: "Tokens that a running request gets in a second.",
			Category: Efficiency, Better: HigherBetter,
			Num: generated, Den: integral(vllmRunning)},
		tflops, traffic,
		ofPeak("mfu", "Share of the peak speed of a GPU, which --catalog tells.", tflops,
			func(in Inputs) float64 { return in.PeakTFLOPS }),
		ofPeak("memory_bandwidth_share", "Share of the peak memory bandwidth of a GPU, which --catalog tells.", traffic,
			func(in Inputs) float64 { return in.PeakGBs }),
		{Name: "arithmetic_intensity", Unit: "flop/B", Help: "Estimated operations by bytes of memory traffic.",
			Category: Efficiency,
			Num:      increase(vllmFlops), Den: plus(increase(vllmRead), increase(vllmWritten))},
	}
}

// ofPeak is a speed by what the user says is possible; nothing when he does not.
func ofPeak(name, help string, of Rule, peak func(Inputs) float64) Rule {
	return Rule{Name: name, Unit: "ratio", Help: help, Category: Efficiency, Better: HigherBetter,
		Formula: of.Name + " / peak",
		Make: func(v *View) []Derived {
			most := peak(v.Inputs())
			if most <= 0 {
				return nil
			}
			out := of.Make(v)
			for i := range out {
				d := &out[i]
				if d.Denominator *= most; d.Status.Defined() {
					d.Value /= most
					d.Shown = d.Value
				}
			}
			return out
		}}
}

func vllmTransfers() []Rule {
	bytes, seconds, failed := sumOf(vllmNIXL+"bytes_transferred"), vllmNIXL+"xfer_time_seconds",
		increase(vllmNIXL+"num_failed_transfers")
	return []Rule{
		Rule{Name: "nixl_gb_s", Unit: "gb/s", Help: "Speed of transfers of KV while they run.", Num: times(1e-9, bytes),
			Den: sumOf(seconds)}.category(Throughput, HigherBetter),
		rate("nixl_link_gb_s", "gb/s", "KV transferred over all the time.", times(1e-9, bytes)).category(Throughput, Neutral),
		latency("nixl_xfer_mean", "Time of a transfer of KV.", seconds),
		ratio("nixl_fail_ratio", "Share of the transfers of KV that failed.", failed,
			plus(countOf(seconds), failed)).category(Errors, LowerBetter),
	}
}
