package simulate

import (
	"slices"
	"strconv"
)

// sglangFamilies registers the families of SGLang 0.5, in the order in which its
// collectors do.
type sglangFamilies struct {
	labels   []string // of the scheduler side
	startup  *family
	counters map[string]*family
	gauges   map[string]*family
	queue    *family
	stage    *family

	requests, aborted, prompt, generated, cached *family
	ttft, itl, e2e                               *family
	promptHist, uncachedHist, generatedHist      *family
}

func sglangTTFTBounds() []float64 {
	return []float64{0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400}
}

func sglangGapBounds() []float64 {
	return []float64{0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08,
		0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8}
}

func sglangE2EBounds() []float64 {
	return append(sglangTTFTBounds(), 600, 1200, 1800, 2400)
}

// sglangTokenBounds are the bounds of the _histogram families of token counts.
func sglangTokenBounds() []float64 {
	b := []float64{100, 300, 500, 700, 1000, 1500}
	for v := 2000.0; v <= 10000; v += 1000 {
		b = append(b, v)
	}
	for v := 12500.0; v <= 30000; v += 2500 {
		b = append(b, v)
	}
	b = append(b, 35000, 40000, 60000, 80000)
	for v := 100000.0; v <= 1100000; v += 100000 {
		b = append(b, v)
	}
	return b
}

// sglangQueueBounds begin with 0.
func sglangQueueBounds() []float64 {
	b := []float64{0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 10, 15, 20}
	for v := 30.0; v <= 100; v += 10 {
		b = append(b, v)
	}
	for v := 200.0; v <= 1000; v += 100 {
		b = append(b, v)
	}
	for v := 1200.0; v <= 3000; v += 200 {
		b = append(b, v)
	}
	return b
}

// sglangStageBounds grow by 1.62, which gives them long labels.
func sglangStageBounds() []float64 {
	b, v := make([]float64, 30), 0.001
	for i := range b {
		b[i] = v
		v *= 1.62
	}
	return b
}

func newSGLangFamilies(w *world) *sglangFamilies {
	r := w.reg
	f := &sglangFamilies{labels: sglangSchedulerLabels(), counters: map[string]*family{}, gauges: map[string]*family{}}
	if w.opt.Engines == 1 {
		f.labels = f.labels[:5]
	}
	tokenizer := []string{"engine_type", "model_name"}
	f.startup = r.gauge("sglang:startup_time_seconds", "Engine startup duration by phase in seconds.", append(slices.Clip(tokenizer), "phase")...)
	f.registerScheduler(w)
	f.prompt = r.counter("sglang:prompt_tokens_total", "Number of prefill tokens processed.", tokenizer...)
	f.generated = r.counter("sglang:generation_tokens_total", "Number of generation tokens processed.", tokenizer...)
	f.cached = r.counter("sglang:cached_tokens_total", "Number of cached prompt tokens.", append(slices.Clip(tokenizer), "cache_source")...)
	f.requests = r.counter("sglang:num_requests_total", "Number of requests processed.", tokenizer...)
	f.aborted = r.counter("sglang:num_aborted_requests_total", "Number of requests aborted.", tokenizer...)
	histogram := func(name, help string, bounds []float64) *family {
		return r.histogram("sglang:"+name, help, bounds, tokenizer...)
	}
	f.promptHist = histogram("prompt_tokens_histogram", "Histogram of prompt token length.", sglangTokenBounds())
	f.uncachedHist = histogram("uncached_prompt_tokens_histogram", "Histogram of uncached prompt token length.", sglangTokenBounds())
	f.generatedHist = histogram("generation_tokens_histogram", "Histogram of generation token length.", sglangTokenBounds())
	f.ttft = histogram("time_to_first_token_seconds", "Histogram of time to first token in seconds.", sglangTTFTBounds())
	f.itl = histogram("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", sglangGapBounds())
	f.e2e = histogram("e2e_request_latency_seconds", "Histogram of end-to-end request latency in seconds.", sglangE2EBounds())
	f.queue = r.histogram("sglang:queue_time_seconds", "Histogram of queueing time in seconds.", sglangQueueBounds(), f.labels...)
	f.stage = r.histogram("sglang:per_stage_req_latency_seconds", "The latency of each stage of requests.", sglangStageBounds(), f.and("stage")...)
	return f
}

func (f *sglangFamilies) and(more string) []string { return append(slices.Clip(f.labels), more) }

// registerScheduler registers what the schedulers report.
func (f *sglangFamilies) registerScheduler(w *world) {
	r := w.reg
	counter := func(name, help string, more ...string) {
		f.counters[name] = r.counter("sglang:"+name, help, append(slices.Clip(f.labels), more...)...)
	}
	counter("prefill_effective_tokens_total", "Effective prefill tokens by mode, retractions counted once.", "mode")
	counter("scheduler_idle_seconds_total", "Wall time in which the scheduler has no work.")
	counter("forward_execution_seconds_total", "Time of forward passes by category.", "category")
	counter("cuda_graph_passes_total", "Total number of forward passes categorized by CUDA graph.", "mode")
	counter("realtime_tokens_total", "Total number of tokens processed (updated on each log interval). mode: prefill_compute, prefill_cache, decode.", "mode")
	counter("num_retracted_requests_total", "Number of retracted requests.")
	counter("num_retracted_input_tokens_total", "Number of retracted input tokens.")
	counter("num_retracted_output_tokens_total", "Number of retracted output tokens.")
	for _, g := range [][2]string{
		{"max_total_num_tokens", "Maximum total number of tokens in the KV cache pool."},
		{"page_size", "KV cache page size in tokens."}, {"num_pages", "Number of KV cache pages."},
		{"context_len", "Maximum context length."},
		{"num_running_reqs", "The number of running requests."}, {"num_queue_reqs", "The number of requests in the waiting queue."},
		{"num_grammar_queue_reqs", "The number of requests in the grammar waiting queue."},
		{"gen_throughput", "The generation throughput (token/s)."}, {"cache_hit_rate", "The prefix cache hit rate."},
		{"decode_sum_seq_lens", "The sum of all sequence lengths in decode."},
		{"token_usage", "The token usage."}, {"full_token_usage", "The token usage for full attention layers."},
		{"num_used_tokens", "The number of used tokens."},
		{"kv_available_tokens", "Number of free token slots in the KV cache pool."},
		{"kv_evictable_tokens", "Number of evictable (radix-cached) token slots in the KV cache pool."},
		{"kv_used_tokens", "Number of actively used token slots in the KV cache pool."},
		{"num_retracted_reqs", "The number of requests retracted at the last retraction."},
		{"utilization", "The utilization."},
	} {
		labels := f.labels
		if w.opt.Priorities > 0 && (g[0] == "num_running_reqs" || g[0] == "num_queue_reqs") {
			labels = f.and("priority")
		}
		f.gauges[g[0]] = r.gauge("sglang:"+g[0], g[1], labels...)
	}
}

func (f *sglangFamilies) tokenizer(w *world) sglangTokenizer {
	l := []string{"unified", w.opt.Model}
	for i, phase := range []string{"load_weight", "kv_cache_allocation", "scheduler_e2e", "tokenizer_e2e"} {
		f.startup.with(0, l[0], l[1], phase).set([]float64{74.25, 0.375, 96.5, 102.25}[i])
	}
	// A counter or histogram of the tokenizer appears with its first request.
	t := sglangTokenizer{
		requests: f.requests.lazy(l...), aborted: f.aborted.lazy(l...), prompt: f.prompt.lazy(l...), generated: f.generated.lazy(l...),
		cachedDevice: f.cached.lazy(l[0], l[1], "device"), cachedTotal: f.cached.lazy(l[0], l[1], "total"),
		ttft: f.ttft.lazy(l...), e2e: f.e2e.lazy(l...),
		promptHist: f.promptHist.lazy(l...), uncachedHist: f.uncachedHist.lazy(l...), generatedHist: f.generatedHist.lazy(l...),
	}
	t.gaps.to = f.itl.lazy(l...)
	return t
}

// scheduler makes the series of the ranks of one engine that report.
func (f *sglangFamilies) scheduler(w *world, engine int) *sglangScheduler {
	ranks := sglangRanks(w, engine)
	with := func(of *family, more ...string) (c ranked) {
		for _, l := range ranks {
			c = append(c, of.with(0, append(slices.Clip(l), more...)...))
		}
		return c
	}
	lazy := func(of *family, more ...string) (c ranked) {
		for _, l := range ranks {
			c = append(c, of.lazy(append(slices.Clip(l), more...)...))
		}
		return c
	}
	g, c := f.gauges, f.counters
	hw := w.opt.Hardware
	pages, tokens := float64(hw.Blocks-1), float64((hw.Blocks-1)*hw.BlockSize)
	with(g["max_total_num_tokens"]).set(tokens)
	with(g["page_size"]).set(float64(hw.BlockSize))
	with(g["num_pages"]).set(pages)
	with(g["context_len"]).set(float64(hw.MaxModelLen))
	with(g["num_grammar_queue_reqs"])
	with(g["kv_evictable_tokens"])
	s := &sglangScheduler{
		throughput: with(g["gen_throughput"]), hits: with(g["cache_hit_rate"]), seqLens: with(g["decode_sum_seq_lens"]),
		usage: with(g["token_usage"]), fullUsage: with(g["full_token_usage"]), used: with(g["num_used_tokens"]),
		available: with(g["kv_available_tokens"]), kvUsed: with(g["kv_used_tokens"]),
		lastRetracted: with(g["num_retracted_reqs"]), utilization: with(g["utilization"]),
		idle:    with(c["scheduler_idle_seconds_total"]),
		compute: lazy(c["realtime_tokens_total"], "prefill_compute"), cached: lazy(c["realtime_tokens_total"], "prefill_cache"),
		decode:         lazy(c["realtime_tokens_total"], "decode"),
		effectiveInput: with(c["prefill_effective_tokens_total"], "input"),
		effectiveHit:   with(c["prefill_effective_tokens_total"], "device_hit"),
		queue:          lazy(f.queue),
		retracted:      lazy(c["num_retracted_requests_total"]),
		retractedIn:    lazy(c["num_retracted_input_tokens_total"]), retractedOut: lazy(c["num_retracted_output_tokens_total"]),
		stage: map[string]ranked{}, passes: map[string]ranked{}, forward: map[string]ranked{},
	}
	s.available.set(tokens)
	for _, stage := range []string{"request_process", "prefill_forward"} {
		s.stage[stage] = lazy(f.stage, stage)
	}
	for _, mode := range []string{"prefill_none", "decode_cuda_graph"} {
		s.passes[mode] = lazy(c["cuda_graph_passes_total"], mode)
	}
	for _, category := range []string{"extend", "decode"} {
		s.forward[category] = with(c["forward_execution_seconds_total"], category)
	}
	var total []string // of all priorities, beside those of each
	if w.opt.Priorities > 0 {
		total = []string{""}
	}
	s.running, s.waiting = []ranked{with(g["num_running_reqs"], total...)}, []ranked{with(g["num_queue_reqs"], total...)}
	for p := range w.opt.Priorities {
		s.running = append(s.running, with(g["num_running_reqs"], strconv.Itoa(p)))
		s.waiting = append(s.waiting, with(g["num_queue_reqs"], strconv.Itoa(p)))
	}
	return s
}
