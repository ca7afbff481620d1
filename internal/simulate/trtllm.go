package simulate

import (
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// trtllmProfile is trtllm-serve of TensorRT-LLM 1.3: text at
// /prometheus/metrics, and at /metrics a JSON list of the iterations since it was
// last asked for, which each request empties. FlagsOff leaves out both
// return_perf_metrics and enable_iter_perf_stats.
func trtllmProfile() profile {
	return profile{name: "trtllm", model: "qwen3-8b", flag: "return_perf_metrics", path: "/prometheus/metrics", start: startTRTLLM}
}

type trtllmModel struct {
	*fleet
	f       *trtllmFamilies
	state   []*trtllmState
	pending []trtllmIteration // not yet asked for
	hits    int               // blocks of all engines
	misses  int
}

// trtllmMostPending bounds the iterations kept for a reader that never comes.
const trtllmMostPending = 1000

func startTRTLLM(w *world) (model, error) {
	w.reg.d = multiprocDialect()
	m := &trtllmModel{f: newTRTLLMFamilies(w)}
	m.fleet = newFleet(w, m)
	for i := range w.opt.Engines {
		m.state = append(m.state, m.f.engine(w, strconv.Itoa(1739+i)))
	}
	m.start()
	return m, nil
}

func (m *trtllmModel) route(u *url.URL) *answer {
	switch u.Path {
	case "/metrics":
		return m.iterations()
	case "/prometheus/metrics":
		if m.w.opt.FlagsOff {
			return missing()
		}
	case "/version":
		return jsonAnswer(http.StatusOK, `{"version":"1.3.0"}`)
	}
	return nil
}

// refresh is empty: gauges move when a request completes, and only then.
func (m *trtllmModel) refresh() {}

func (m *trtllmModel) admitted(e *engine, q *sequence) {
	s := m.state[e.index]
	s.contextRequests++
	s.contextTokens += q.PromptTokens - q.CachedTokens
	reused := q.CachedTokens / e.hw.BlockSize
	missed := e.blocksFor(q.PromptTokens) - reused
	m.hits += reused
	m.misses += missed
	m.add(m.f.reused, reused)
	m.add(m.f.iterReused, reused)
	m.add(m.f.missed, missed)
	// The counter of iterations misses each block once more for each chunk.
	m.add(m.f.iterMissed, missed*(1+q.PromptTokens/e.hw.MaxStepTokens))
}

// preempted leaves no trace but in a gauge that is rarely seen.
func (m *trtllmModel) preempted(e *engine, _ *sequence) { m.state[e.index].pauses++ }

func (m *trtllmModel) token(*engine, *sequence, time.Duration) {}

func (m *trtllmModel) stepped(e *engine, _, generated int) {
	s, took := m.state[e.index], m.w.now-e.started
	s.iteration++
	if s.contextTokens > 0 {
		m.w.reg.record(m.w.now, m.f.prefillTokens, float64(s.contextTokens), 1)
	}
	s.last = trtllmIteration{
		iter: s.iteration, took: took, active: len(e.running), queued: len(e.waiting), batch: len(e.batch),
		context: s.contextRequests, contextTokens: s.contextTokens, paused: s.pauses, generated: generated,
		used: e.hw.Blocks - 1 - e.free, free: e.free,
	}
	s.contextRequests, s.contextTokens, s.pauses = 0, 0, 0
	if !m.w.opt.FlagsOff {
		if len(m.pending) == trtllmMostPending {
			m.pending = append(m.pending[:0], m.pending[1:]...)
		}
		m.pending = append(m.pending, s.last)
	}
}

func (m *trtllmModel) finished(e *engine, q *sequence) {
	m.left(q)
	m.gauges(e)
	m.add(m.f.completed, 1)
	switch q.Reason {
	case "abort":
		return
	case "error":
		m.w.reg.record(m.w.now, m.f.errors.lazy("pytorch", m.w.opt.Model, "500"), 1, 1)
		return
	}
	f := m.f
	m.w.reg.record(m.w.now, f.success.lazy("pytorch", q.Reason, m.w.opt.Model), 1, 1)
	m.add(f.prompt, q.PromptTokens)
	m.add(f.generated, q.generated)
	m.add(f.cached, q.CachedTokens)
	m.w.reg.record(m.w.now, f.cachedPer, float64(q.CachedTokens), 1)
	// The clock of the engine starts when the request reaches it.
	m.observe(f.e2e, q.Last-q.Queued)
	m.observe(f.ttft, q.First-q.Queued)
	m.observe(f.queue, q.Scheduled-q.Queued)
	m.observe(f.prefill, q.First-q.Scheduled)
	m.observe(f.decode, q.Last-q.First)
	m.observe(f.inference, q.Last-q.Scheduled)
	if q.generated > 1 {
		m.observe(f.tpot, (q.Last-q.First)/time.Duration(q.generated-1))
	}
}

// observe records a time, but a time of zero is not seen: the engine asks
// whether there is a value, and zero is none to Python.
func (m *trtllmModel) observe(h *series, d time.Duration) {
	if d > 0 {
		m.w.reg.record(m.w.now, h, seconds(d), 1)
	}
}

func (m *trtllmModel) add(c *series, n int) {
	if n > 0 {
		m.w.reg.record(m.w.now, c, float64(n), 1)
	}
}

// gauges shows the iteration that a request completed in.
func (m *trtllmModel) gauges(e *engine) {
	s := m.state[e.index]
	i := s.last
	total := float64(e.hw.Blocks - 1)
	hits, asked := float64(m.hits), float64(m.hits+m.misses)
	for name, v := range map[string]float64{
		"num_requests_running": float64(i.active), "num_requests_waiting": float64(i.queued),
		"num_context_requests": float64(i.context), "num_generation_requests": float64(i.batch - i.context),
		"num_paused_requests": float64(i.paused), "num_scheduled_requests": float64(i.batch),
		"iteration_latency_seconds": seconds(i.took), "total_context_tokens": float64(i.contextTokens),
		"kv_cache_utilization": float64(i.used) / total, "kv_cache_used_blocks": float64(i.used),
		"kv_cache_free_blocks": float64(i.free), "kv_cache_hit_rate": hits / math.Max(1, asked),
		"avg_decoded_tokens_per_iter": float64(i.generated) / math.Max(1, float64(i.batch)),
		"prefill_batch_occupancy":     float64(i.context) / float64(e.hw.MaxSequences),
	} {
		s.gauge[name].set(v)
	}
}

// trtllmState is what is known of one engine.
type trtllmState struct {
	iteration                              int
	contextRequests, contextTokens, pauses int // of the iteration to come
	last                                   trtllmIteration
	gauge                                  map[string]*series
}

type trtllmIteration struct {
	iter, active, queued, batch, context, contextTokens, paused, generated, used, free int
	took                                                                               time.Duration
}

// iterations answers /metrics and forgets what it told.
func (m *trtllmModel) iterations() *answer {
	b := []byte{'['}
	field := func(name string, v int) {
		b = append(append(append(b, '"'), name...), `":`...)
		b = append(strconv.AppendInt(b, int64(v), 10), ',')
	}
	for n, i := range m.pending {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		field("iter", i.iter)
		b = append(b, `"iterLatencyMS":`...)
		b = append(strconv.AppendFloat(b, seconds(i.took)*1e3, 'f', -1, 64), ',')
		field("numActiveRequests", i.active)
		field("numQueuedRequests", i.queued)
		b = append(b, `"kvCacheStats":{`...)
		field("maxNumBlocks", i.used+i.free)
		field("freeNumBlocks", i.free)
		field("usedNumBlocks", i.used)
		b = append(b[:len(b)-1], `},"inflightBatchingStats":{`...)
		field("numScheduledRequests", i.batch)
		field("numContextRequests", i.context)
		field("numGenRequests", i.batch-i.context)
		field("numPausedRequests", i.paused)
		field("numCtxTokens", i.contextTokens)
		b = append(b[:len(b)-1], "}}"...)
	}
	m.pending = m.pending[:0]
	return jsonAnswer(http.StatusOK, string(append(b, ']')))
}

type trtllmFamilies struct {
	gauge             map[string]*family
	success, errors   *family
	prompt, generated *series
	cached, completed *series

	reused, missed, iterReused, iterMissed             *series
	e2e, ttft, tpot, queue, prefill, decode, inference *series
	cachedPer, prefillTokens                           *series
}

// trtllmGauges are the gauges in the order of the body, with the value that a
// fresh server shows.
func trtllmGauges(hw Hardware) []struct {
	name, help string
	v          float64
} {
	blocks := float64(hw.Blocks - 1)
	return []struct {
		name, help string
		v          float64
	}{
		{"num_requests_running", "Number of active requests", 0}, {"num_requests_waiting", "Number of queued requests", 0},
		{"max_num_active_requests", "Maximum number of active requests", float64(hw.MaxSequences)},
		{"iteration_latency_seconds", "Iteration latency in seconds", 0},
		{"gpu_memory_usage_bytes", "GPU memory usage in bytes", 25286934528},
		{"cpu_memory_usage_bytes", "CPU memory usage in bytes", 0}, {"pinned_memory_usage_bytes", "Pinned memory usage in bytes", 0},
		// Zero here means that the PyTorch backend has no such number.
		{"max_batch_size_static", "Static maximum batch size", 0}, {"max_batch_size_runtime", "Runtime maximum batch size", 0},
		{"max_num_tokens_runtime", "Runtime maximum number of tokens", 0},
		{"kv_cache_hit_rate", "KV cache hit rate", 0}, {"kv_cache_utilization", "KV cache utilization", 0},
		{"kv_cache_max_blocks", "Maximum number of KV cache blocks", blocks},
		{"kv_cache_free_blocks", "Number of free KV cache blocks", blocks}, {"kv_cache_used_blocks", "Number of used KV cache blocks", 0},
		{"kv_cache_tokens_per_block", "Number of tokens per KV cache block", float64(hw.BlockSize)},
		{"num_context_requests", "Number of context (prefill) requests", 0},
		{"num_generation_requests", "Number of generation (decode) requests", 0},
		{"num_paused_requests", "Number of paused requests", 0}, {"num_scheduled_requests", "Number of scheduled requests", 0},
		{"total_context_tokens", "Total number of context tokens", 0},
		{"avg_decoded_tokens_per_iter", "Average number of decoded tokens per iteration", 0},
		{"prefill_batch_occupancy", "Fraction of max active slots occupied by context requests.", 0},
	}
}

func newTRTLLMFamilies(w *world) *trtllmFamilies {
	r := w.reg
	f := &trtllmFamilies{gauge: map[string]*family{}}
	l := []string{"engine_type", "model_name"}
	values := []string{"pytorch", w.opt.Model}
	r.gauge("trtllm_model_config_info", "Model configuration info", "engine_type", "model_name", "pid", "dtype", "max_model_len", "quantization").
		with(0, "pytorch", w.opt.Model, "1739", "auto", strconv.Itoa(w.opt.Hardware.MaxModelLen), "none").set(1)
	r.gauge("trtllm_kv_cache_config_info", "KV cache configuration info", "engine_type", "model_name", "pid", "cache_dtype", "enable_block_reuse").
		with(0, "pytorch", w.opt.Model, "1739", "auto", "True").set(1)
	for _, g := range trtllmGauges(w.opt.Hardware) {
		f.gauge[g.name] = r.gauge("trtllm_"+g.name, g.help, append(l, "pid")...)
	}
	counter := func(name, help string) *series { return r.counter("trtllm_"+name, help, l...).lazy(values...) }
	f.cached = counter("prompt_cached_tokens_total", "Total prompt tokens served from KV cache since the process started.")
	f.success = r.counter("trtllm_request_success_total", "Count of successfully processed requests.", "engine_type", "finished_reason", "model_name")
	f.errors = r.counter("trtllm_request_error_total", "Count of failed requests.", "engine_type", "model_name", "http_code")
	f.prompt = counter("prompt_tokens_total", "Cumulative number of prompt (input) tokens processed.")
	f.generated = counter("generation_tokens_total", "Cumulative number of generation (output) tokens produced.")
	f.missed = counter("kv_cache_missed_blocks_total", "Cumulative number of KV cache blocks missed (cache misses)")
	f.iterMissed = counter("kv_cache_iter_missed_blocks_total", "Total missed KV cache blocks (context phase)")
	f.completed = counter("num_requests_completed_total", "Total number of completed requests across iterations")
	f.reused = counter("kv_cache_reused_blocks_total", "Cumulative number of KV cache blocks reused (cache hits)")
	f.iterReused = counter("kv_cache_iter_reused_blocks_total", "Total reused KV cache blocks (full + partial)")
	histogram := func(name, help string, bounds []float64) *series {
		return r.histogram("trtllm_"+name, help, bounds, l...).lazy(values...)
	}
	f.e2e = histogram("e2e_request_latency_seconds", "Histogram of end to end request latency in seconds.", latencyBounds())
	f.ttft = histogram("time_to_first_token_seconds", "Histogram of time to first token in seconds.", ttftBounds())
	f.tpot = histogram("time_per_output_token_seconds", "Histogram of time per output token in seconds.", tokenGapBounds())
	f.queue = histogram("request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", latencyBounds())
	f.prefill = histogram("request_prefill_time_seconds", "Histogram of prefill (context) phase duration in seconds.",
		[]float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 640, 2560})
	f.decode = histogram("request_decode_time_seconds", "Histogram of decode (generation) phase duration in seconds.", latencyBounds())
	f.inference = histogram("request_inference_time_seconds", "Histogram of total inference duration in seconds.", latencyBounds())
	f.cachedPer = histogram("prompt_cached_tokens_per_request", "Histogram of cached prompt tokens per request.",
		[]float64{0, 64, 128, 256, 512, 1024, 2048, 4096, 8192})
	f.prefillTokens = histogram("prefill_batch_tokens", "Histogram of total context tokens per iteration.",
		[]float64{64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768})
	return f
}

// engine makes the gauges of one engine process.
func (f *trtllmFamilies) engine(w *world, pid string) *trtllmState {
	s := &trtllmState{gauge: map[string]*series{}}
	for _, g := range trtllmGauges(w.opt.Hardware) {
		s.gauge[g.name] = f.gauge[g.name].with(0, "pytorch", w.opt.Model, pid)
		s.gauge[g.name].set(g.v)
	}
	return s
}
