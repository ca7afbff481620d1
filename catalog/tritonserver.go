package catalog

import "slices"

// TritonServerPack and TritonHostPack are the names of the packs of Triton's Prometheus page: of its models, and of
// the machine. The packs of its statistics extension are [TritonPack] and its neighbours, which know more.
const (
	TritonServerPack = "triton"
	TritonHostPack   = "triton-host"
)

const (
	nvInference = "nv_inference_"
	nvCache     = "nv_cache_"
)

func tritonServerPacks() []Pack {
	models := []string{nvInference, nvCache, "nv_model_", "nv_trt_llm_"}
	return []Pack{
		{Name: TritonServerPack, Title: "Triton", Prefixes: models, Scope: []string{"model", "version"},
			Rules: slices.Concat(nvThroughput(), nvTimes(), nvSaturation(), nvCacheRules(), nvTRTLLM())},
		{Name: TritonHostPack, Title: "Triton host", Prefixes: []string{"nv_gpu_", "nv_cpu_", "nv_energy_", "nv_pinned_",
			nvInference}, Rules: nvHost()},
	}
}

// nvTime is a sum of microseconds as seconds.
func nvTime(of string) []Term { return times(1e-6, increase(nvInference+of+"_duration_us")) }

// nvComputed are the requests that were computed: durations of the computation are added once for each of them, and
// not for what came from the cache.
func nvComputed() []Term {
	return minus(increase(nvInference+"request_success"), maybe(increase(nvCache+"num_hits_per_model")))
}

func nvThroughput() []Rule {
	return []Rule{
		rate("request_rate", "requests/s", "Requests answered, from the cache too.",
			increase(nvInference+"request_success")).headline("request_rate"),
		rate("inferences_s", "inferences/s", "Items of batches computed.", increase(nvInference+"count")).headline(""),
		rate("executions_s", "executions/s", "Batches computed.", increase(nvInference+"exec_count")).category(Throughput,
			Neutral),
		Rule{Name: "avg_batch_size", Unit: "inferences", Help: "Items of a batch, after batching.",
			Num: increase(nvInference + "count"), Den: increase(nvInference + "exec_count")}.
			category(Efficiency, Neutral).headline(""),
		Rule{Name: "client_batch_size", Unit: "inferences", Help: "Items of a request.", Num: increase(nvInference + "count"),
			Den: nvComputed()}.category(Throughput, Neutral),
	}
}

func nvTimes() []Rule {
	mean := func(name, help, of string, den []Term) Rule {
		return Rule{Name: name, Unit: "seconds", Help: help, Num: nvTime(of), Den: den}.category(Latency, LowerBetter)
	}
	success := increase(nvInference + "request_success")
	parts := plus(nvTime("compute_input"), nvTime("compute_infer"), nvTime("compute_output"))
	return []Rule{
		mean("avg_request", "From the arrival of a request to its answer, cache hits included.", "request",
			success).headline("e2e_mean_s"),
		mean("avg_queue", "In the queue of the scheduler.", "queue", success).headline("queue_mean_s"),
		mean("avg_compute_input", "Making the input.", "compute_input", nvComputed()),
		mean("avg_compute_infer", "In the model; each request of a batch has the whole time.", "compute_infer",
			nvComputed()).headline(""),
		mean("avg_compute_output", "Taking the output.", "compute_output", nvComputed()),
		{Name: "overhead", Unit: "seconds", Help: "Of the mean request what is neither queue nor computation.",
			Category: TimeSpent, Better: LowerBetter,
			Formula: "avg_request - avg_queue - avg_compute_*", Make: nvOverhead},
		ratio("queue_share", "Share of the latency spent in the queue.", nvTime("queue"),
			nvTime("request")).category(TimeSpent, LowerBetter).headline("queue_share"),
		ratio("compute_share", "Share of the latency spent in the computation.", parts, nvTime("request")).category(TimeSpent,
			Neutral),
		Rule{Name: "first_response_mean", Unit: "seconds", Help: "From a request to its first response.",
			Num: times(1e-3, sumOf(nvInference+"first_response_histogram_ms")),
			Den: countOf(nvInference + "first_response_histogram_ms")}.category(Latency, LowerBetter).canonical("ttft_mean_s"),
		overflow("first_response_overflow_share", nvInference+"first_response_histogram_ms"),
		nvSummary("request"), nvSummary("queue"), nvSummary("compute_input"), nvSummary("compute_infer"),
		nvSummary("compute_output"),
	}
}

// nvSummary is the exact mean of a summary, whose quantiles are the server's.
func nvSummary(of string) Rule {
	family := nvInference + of + "_summary_us"
	return Rule{Name: "summary_" + of, Unit: "seconds", Help: "Mean by the summary of the server.",
		Num: times(1e-6, sumOf(family)), Den: countOf(family)}.
		category(Latency, LowerBetter)
}

// nvOverhead is a difference of means, which may be below zero by the microseconds that the server cuts off.
func nvOverhead(v *View) []Derived {
	request, some := v.divide(nvTime("request"), increase(nvInference+"request_success"))
	if !some {
		return nil
	}
	d := request
	d.HasParts, d.Numerator, d.Denominator = false, 0, 0
	for _, of := range []string{"queue", "compute_input", "compute_infer", "compute_output"} {
		den := nvComputed()
		if of == "queue" {
			den = increase(nvInference + "request_success")
		}
		part, _ := v.divide(nvTime(of), den)
		d.Families = append(d.Families, part.Families...)
		if d.Status.Defined() {
			d.Status = max(d.Status, part.Status)
			d.Value -= part.Value
		}
	}
	if d.Shown = max(0, d.Value); d.Value < 0 {
		d.Flag("negative")
	}
	return []Derived{d}
}

func nvSaturation() []Rule {
	pending := nvInference + "pending_request_count"
	failure := increase(nvInference + "request_failure")
	all := plus(increase(nvInference+"request_success"), failure)
	return []Rule{
		level("pending_mean", "requests", "Requests that wait for an execution.", pending).category(Saturation,
			LowerBetter).headline("waiting"),
		peak("pending_peak", "requests", "Most requests that waited.", pending).category(Saturation, LowerBetter),
		rate("waiting_mean_little", "requests", "Requests that wait, by Little's law.", nvTime("queue")).category(Saturation,
			LowerBetter),
		rate("concurrency_little", "requests", "Requests in the server, by Little's law.",
			nvTime("request")).category(Saturation, Neutral).headline("running"),
		// Each request of a batch has the whole time, so this is too high by the batch.
		rate("busy_instances", "instances", "Instances at work, when no requests share a batch; else too high.",
			nvTime("compute_infer")).
			category(Saturation, Neutral).atMost(Estimate),
		ratio("failure_ratio", "Share of the requests that failed.", failure, all).category(Errors,
			LowerBetter).headline("error_ratio"),
		ratio("failure_share", "Requests that failed for a reason, by all.", failure, all).category(Errors,
			LowerBetter).shares("reason"),
	}
}

func nvCacheRules() []Rule {
	hits, misses := increase(nvCache+"num_hits_per_model"), increase(nvCache+"num_misses_per_model")
	hitTime, missTime := times(1e-6, increase(nvCache+"hit_duration_per_model")),
		times(1e-6, increase(nvCache+"miss_duration_per_model"))
	return []Rule{
		ratio("cache_hit_ratio", "Share of the lookups of the response cache that hit.", hits,
			plus(hits, misses)).category(Cache, HigherBetter),
		Rule{Name: "avg_cache_hit", Unit: "seconds", Help: "Of a hit.", Num: hitTime, Den: hits}.category(Cache, LowerBetter),
		Rule{Name: "avg_cache_miss", Unit: "seconds", Help: "Of a lookup in vain, and the insertion.", Num: missTime,
			Den: misses}.category(Cache, LowerBetter),
		{Name: "cache_saved", Unit: "seconds",
			Help: "Time that hits spared: hits times the mean of a request that missed less that of a hit.", Category: Cache,
			Better: HigherBetter, Status: Estimate,
			Formula: "hits x ((request time - hit time) / (success - hits) - hit time / hits)", Make: nvSaved},
	}
}

func nvSaved(v *View) []Derived {
	hits := v.Amount(increase(nvCache + "num_hits_per_model")[0])
	miss, some := v.divide(minus(nvTime("request"), times(1e-6, increase(nvCache+"hit_duration_per_model"))), nvComputed())
	hit, _ := v.divide(times(1e-6, increase(nvCache+"hit_duration_per_model")), increase(nvCache+"num_hits_per_model"))
	if hits.Series == 0 || !some {
		return nil
	}
	d := Derived{Status: max(miss.Status, hit.Status), Families: append(miss.Families, hit.Families...)}
	d.Value = hits.Value * (miss.Value - hit.Value)
	d.Shown = d.Value
	return []Derived{d}
}

// nvTRTLLM are of the backend of TensorRT-LLM, whose families mix units by a label.
func nvTRTLLM() []Rule {
	requests, blocks := "nv_trt_llm_request_metrics", "nv_trt_llm_kv_cache_block_metrics"
	disaggregated := func(of string) []Term {
		return increase("nv_trt_llm_disaggregated_serving_metrics", "disaggregated_serving_type", of)
	}
	return []Rule{
		level("trtllm_scheduled_mean", "requests", "Requests that TensorRT-LLM has scheduled.", requests, "request_type",
			"scheduled"),
		level("trtllm_waiting_mean", "requests", "Requests that wait in TensorRT-LLM.", requests, "request_type",
			"waiting").category(Saturation, LowerBetter),
		level("trtllm_active_mean", "requests", "Requests that are active in TensorRT-LLM.", requests, "request_type",
			"active"),
		ratio("kv_usage_mean", "Share of the KV blocks in use.", meanOver(blocks, "kv_cache_block_type", "used"),
			meanOver(blocks, "kv_cache_block_type", "max")).
			or(integral(blocks, "kv_cache_block_type", "fraction"), nil, OK).category(Saturation, Neutral).canonical("kv_usage"),
		Rule{Name: "kv_capacity", Unit: "tokens", Help: "Tokens that the KV cache holds.", Category: Saturation,
			Canonical: "kv_capacity", Formula: "max blocks * tokens per block", Make: nvCapacity},
		Rule{Name: "kv_transfer_mean", Unit: "seconds", Help: "Of a KV transfer.",
			Num: times(1e-3, disaggregated("kv_cache_transfer_ms")), Den: disaggregated("request_count")}.
			category(Latency, LowerBetter),
	}
}

func nvCapacity(v *View) []Derived {
	family := "nv_trt_llm_kv_cache_block_metrics"
	blocks, per := v.Amount(lastOf(family, "kv_cache_block_type", "max")[0]),
		v.Amount(lastOf(family, "kv_cache_block_type", "tokens_per")[0])
	if blocks.Series != 1 || per.Series != 1 {
		return nil
	}
	x := blocks.Value * per.Value
	return []Derived{{Value: x, Shown: x, Families: []string{family}}}
}

// nvHost are of the machine. An ensemble counts its inferences once more than its models, so energy by inference can
// be too low.
func nvHost() []Rule {
	energy := increase("nv_energy_consumption")
	return []Rule{
		tritonMeter().watts("Power of the GPUs, by the counter of energy; else of the gauge."),
		Rule{Name: "j_per_inference", Unit: "joule",
			Help: "Energy of the GPUs by inferences; those of ensembles count with those of their models.",
			Num:  energy, Den: increase(nvInference + "count"), Status: Estimate}.category(Efficiency, LowerBetter),
		level("gpu_utilization_mean", "ratio", "Share of the time a kernel ran, of all GPUs.",
			"nv_gpu_utilization").headline(""),
		peak("gpu_memory_peak", "bytes", "Most GPU memory in use.", "nv_gpu_memory_used_bytes"),
		ratio("gpu_memory_usage_mean", "Share of the GPU memory in use.", meanOver("nv_gpu_memory_used_bytes"),
			meanOver("nv_gpu_memory_total_bytes")).category(Saturation, Neutral),
		level("cpu_utilization_mean", "ratio", "Use of the CPUs.", "nv_cpu_utilization"),
		ratio("pinned_memory_usage_mean", "Share of the pool of pinned memory in use.",
			meanOver("nv_pinned_memory_pool_used_bytes"),
			meanOver("nv_pinned_memory_pool_total_bytes")).category(Saturation, Neutral),
	}
}
