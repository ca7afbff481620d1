package simulate

import (
	"slices"
	"strconv"
	"time"
)

// llmFamilies are the vllm:* families of autoregressive engines, in the order
// in which vLLM 0.28 to 0.30 registers them. vLLM labels them with model_name
// and engine; vLLM-Omni puts stage and replica in the place of engine.
type llmFamilies struct {
	reg *registry

	flops, readBytes, writeBytes                           *family
	running, waiting, waitingBy, sleep, kvUsage            *family
	queries, hits, extQueries, extHits, mmQueries, mmHits  *family
	preemptions, prompt, promptBy, promptCached, generated *family
	success                                                *family
	reqPrompt, reqGenerated, iteration, reqMaxGenerated    *family
	paramN, paramMaxTokens                                 *family
	ttft, itl, tpot, e2e, queue, inference                 *family
	prefill, decode, kvComputed, reqPreemptions            *family
	cacheConfig                                            *family
}

// The bucket layouts of vLLM.
func latencyBounds() []float64 {
	return []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
}

func ttftBounds() []float64 {
	return []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
}

func tokenGapBounds() []float64 {
	return []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
}

func iterationBounds() []float64 {
	return []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
}

const cacheConfigHelp = "Information of the LLMEngine CacheConfig"

// cacheConfigLabels are the labels of vllm:cache_config_info besides those of
// the engine, with the values of a server of that size.
func cacheConfigLabels(hw Hardware) [][2]string {
	itoa := strconv.Itoa
	tokens := hw.Blocks * hw.BlockSize
	return [][2]string{
		{"_block_size_resolved", "True"}, {"block_size", itoa(hw.BlockSize)}, {"cache_dtype", "auto"},
		{"enable_prefix_caching", "True"}, {"gpu_memory_utilization", "0.9"}, {"is_attention_free", "False"},
		{"kv_cache_dtype_skip_layers", "[]"},
		{"kv_cache_max_concurrency", string(appendFloat(nil, float64(tokens)/float64(hw.MaxModelLen)))},
		{"kv_cache_memory_bytes", "None"}, {"kv_cache_size_tokens", itoa(tokens)},
		{"kv_offloading_backend", "native"}, {"kv_offloading_size", "None"}, {"kv_sharing_fast_prefill", "False"},
		{"mamba_block_size", "None"}, {"mamba_cache_dtype", "auto"}, {"mamba_cache_mode", "none"},
		{"mamba_page_size_padded", "None"}, {"mamba_ssm_cache_dtype", "auto"}, {"num_cpu_blocks", "None"},
		{"num_gpu_blocks", itoa(hw.Blocks)}, {"num_gpu_blocks_override", "None"},
		{"prefix_caching_hash_algo", "sha256"}, {"prefix_match_unit", "None"}, {"sliding_window", "None"},
		{"user_specified_block_size", "False"}, {"user_specified_mamba_block_size", "False"},
	}
}

// newLLMFamilies registers the families. labels are those of every series.
func newLLMFamilies(r *registry, hw Hardware, labels []string) *llmFamilies {
	f := &llmFamilies{reg: r}
	and := func(more ...string) []string { return append(slices.Clip(labels), more...) }
	f.registerState(r, labels, and)
	f.registerRequests(r, hw, labels)
	names := make([]string, 0, 32)
	for _, l := range cacheConfigLabels(hw) {
		names = append(names, l[0])
	}
	f.cacheConfig = r.gauge("vllm:cache_config_info", cacheConfigHelp, and(names...)...)
	return f
}

func (f *llmFamilies) registerState(r *registry, l []string, and func(...string) []string) {
	const mfu = " (for Model Flops Utilization calculations)."
	f.flops = r.counter("vllm:estimated_flops_per_gpu", "Estimated number of floating point operations per GPU"+mfu, l...)
	f.readBytes = r.counter("vllm:estimated_read_bytes_per_gpu", "Estimated number of bytes read from memory per GPU"+mfu, l...)
	f.writeBytes = r.counter("vllm:estimated_write_bytes_per_gpu", "Estimated number of bytes written to memory per GPU"+mfu, l...)
	f.running = r.gauge("vllm:num_requests_running", "Number of requests in model execution batches.", l...)
	f.waiting = r.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", l...)
	f.waitingBy = r.gauge("vllm:num_requests_waiting_by_reason", "Number of waiting requests by reason. Reason labels: "+
		"'capacity' = waiting for scheduling capacity; 'deferred' = deferred by transient constraints (LoRA budget, KV transfer, "+
		"blocked status). Sum of all reasons equals vllm:num_requests_waiting.", and("reason")...)
	f.sleep = r.gauge("vllm:engine_sleep_state", "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is "+
		"awake; weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2.", and("sleep_state")...)
	f.kvUsage = r.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", l...)
	f.queries = r.counter("vllm:prefix_cache_queries", "Prefix cache queries, in terms of number of queried tokens.", l...)
	f.hits = r.counter("vllm:prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens.", l...)
	const external = " from KV connector cross-instance cache sharing, in terms of number of "
	f.extQueries = r.counter("vllm:external_prefix_cache_queries", "External prefix cache queries"+external+"queried tokens.", l...)
	f.extHits = r.counter("vllm:external_prefix_cache_hits", "External prefix cache hits"+external+"cached tokens.", l...)
	f.mmQueries = r.counter("vllm:mm_cache_queries", "Multi-modal cache queries, in terms of number of queried items.", l...)
	f.mmHits = r.counter("vllm:mm_cache_hits", "Multi-modal cache hits, in terms of number of cached items.", l...)
	f.preemptions = r.counter("vllm:num_preemptions", "Cumulative number of preemption from the engine.", l...)
	f.prompt = r.counter("vllm:prompt_tokens", "Number of prefill tokens processed.", l...)
	f.promptBy = r.counter("vllm:prompt_tokens_by_source", "Number of prompt tokens by source.", and("source")...)
	f.promptCached = r.counter("vllm:prompt_tokens_cached", "Number of cached prompt tokens (local + external).", l...)
	f.generated = r.counter("vllm:generation_tokens", "Number of generation tokens processed.", l...)
	f.success = r.counter("vllm:request_success", "Count of successfully processed requests.", and("finished_reason")...)
}

func (f *llmFamilies) registerRequests(r *registry, hw Hardware, l []string) {
	tokens := tokenBounds(hw.MaxModelLen)
	f.reqPrompt = r.histogram("vllm:request_prompt_tokens", "Number of prefill tokens processed.", tokens, l...)
	f.reqGenerated = r.histogram("vllm:request_generation_tokens", "Number of generation tokens processed.", tokens, l...)
	f.iteration = r.histogram("vllm:iteration_tokens_total", "Histogram of number of tokens per engine_step.", iterationBounds(), l...)
	f.reqMaxGenerated = r.histogram("vllm:request_max_num_generation_tokens",
		"Histogram of maximum number of requested generation tokens.", tokens, l...)
	f.paramN = r.histogram("vllm:request_params_n", "Histogram of the n request parameter.", []float64{1, 2, 5, 10, 20}, l...)
	f.paramMaxTokens = r.histogram("vllm:request_params_max_tokens", "Histogram of the max_tokens request parameter.", tokens, l...)
	f.ttft = r.histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", ttftBounds(), l...)
	f.itl = r.histogram("vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", tokenGapBounds(), l...)
	f.tpot = r.histogram("vllm:request_time_per_output_token_seconds",
		"Histogram of time_per_output_token_seconds per request.", tokenGapBounds(), l...)
	f.e2e = r.histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", latencyBounds(), l...)
	phase := func(name, what string) *family {
		return r.histogram("vllm:request_"+name+"_time_seconds", "Histogram of time spent in "+what+" phase for request.", latencyBounds(), l...)
	}
	f.queue = phase("queue", "WAITING")
	f.inference = phase("inference", "RUNNING")
	f.prefill = phase("prefill", "PREFILL")
	f.decode = phase("decode", "DECODE")
	f.kvComputed = r.histogram("vllm:request_prefill_kv_computed_tokens",
		"Histogram of new KV tokens computed during prefill (excluding cached tokens).", tokens, l...)
	f.reqPreemptions = r.histogram("vllm:request_num_preemptions",
		"Histogram of the number of preemptions per request.", []float64{1, 2, 3, 4, 5, 10, 20}, l...)
}

// llmSeries are the series of one engine.
type llmSeries struct {
	reg *registry
	hw  Hardware
	mfu bool
	// throttled says that scheduler statistics come out once a second at most,
	// as in vLLM-Omni, else with each step.
	throttled    bool
	scheduledAt  time.Duration
	queryN, hitN int // not yet out

	running, waiting, capacity, kvUsage           *series
	queries, hits, preemptions                    *series
	flops, readBytes, writeBytes                  *series
	prompt, computed, cachedBy, cached, generated *series
	success                                       map[string]*series
	reqPrompt, reqGenerated, iteration, reqMaxGen *series
	paramN, paramMaxTokens, ttft, itl, tpot, e2e  *series
	queue, inference, prefill, decode, kvComputed *series
	reqPreemptions                                *series
	gap                                           time.Duration // of the tokens not yet recorded
	gaps                                          int
}

// series makes the series of one engine, all visible at zero.
func (f *llmFamilies) series(hw Hardware, mfu bool, values ...string) *llmSeries {
	with := func(f *family, more ...string) *series { return f.with(0, append(slices.Clip(values), more...)...) }
	s := &llmSeries{reg: f.reg, hw: hw, mfu: mfu, success: map[string]*series{}, scheduledAt: -time.Hour}
	for _, p := range []struct {
		to   **series
		from *family
	}{
		{&s.flops, f.flops}, {&s.readBytes, f.readBytes}, {&s.writeBytes, f.writeBytes},
		{&s.running, f.running}, {&s.waiting, f.waiting}, {&s.kvUsage, f.kvUsage},
		{&s.queries, f.queries}, {&s.hits, f.hits}, {&s.preemptions, f.preemptions},
		{&s.prompt, f.prompt}, {&s.cached, f.promptCached}, {&s.generated, f.generated},
		{&s.reqPrompt, f.reqPrompt}, {&s.reqGenerated, f.reqGenerated}, {&s.iteration, f.iteration},
		{&s.reqMaxGen, f.reqMaxGenerated}, {&s.paramN, f.paramN}, {&s.paramMaxTokens, f.paramMaxTokens},
		{&s.ttft, f.ttft}, {&s.itl, f.itl}, {&s.tpot, f.tpot}, {&s.e2e, f.e2e}, {&s.queue, f.queue},
		{&s.inference, f.inference}, {&s.prefill, f.prefill}, {&s.decode, f.decode},
		{&s.kvComputed, f.kvComputed}, {&s.reqPreemptions, f.reqPreemptions},
	} {
		*p.to = with(p.from)
	}
	for _, f := range []*family{f.extQueries, f.extHits, f.mmQueries, f.mmHits} {
		with(f)
	}
	s.capacity = with(f.waitingBy, "capacity")
	with(f.waitingBy, "deferred")
	with(f.sleep, "awake").set(1)
	with(f.sleep, "weights_offloaded")
	with(f.sleep, "discard_all")
	s.computed = with(f.promptBy, "local_compute")
	s.cachedBy = with(f.promptBy, "local_cache_hit")
	with(f.promptBy, "external_kv_transfer")
	for _, reason := range []string{"stop", "length", "abort", "error", "repetition"} {
		s.success[reason] = with(f.success, reason)
	}
	var config []string
	for _, l := range cacheConfigLabels(hw) {
		config = append(config, l[1])
	}
	with(f.cacheConfig, config...).set(1)
	return s
}
