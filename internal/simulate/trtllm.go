package simulate

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// trtllmProfile is trtllm-serve of TensorRT-LLM 1.3: text at /prometheus/metrics, and at /metrics a JSON list of the
// iterations since it was last asked for, which each request empties. FlagsOff leaves out both return_perf_metrics and
// enable_iter_perf_stats.
func trtllmProfile() profile {
	return profile{name: "trtllm", model: "qwen3-8b", flag: "return_perf_metrics", path: "/prometheus/metrics",
		start: startTRTLLM}
}

type trtllmModel struct {
	noObserver
	*fleet
	*panel
	state   []*trtllmState
	pending []trtllmIteration // not yet asked for
	hits    int               // blocks of all engines
	misses  int
}

// trtllmMostPending bounds the iterations kept for a reader that never comes.
const trtllmMostPending = 1000

func startTRTLLM(w *world) (model, error) {
	w.reg.d = multiprocDialect()
	labels := []string{"engine_type", "model_name"}
	t := w.table("trtllm", variant{labels: map[string][]string{"": labels, "pid": append(slices.Clip(labels), "pid")}})
	hw := w.opt.Hardware
	m := &trtllmModel{panel: t.panel("", "pytorch", w.opt.Model)}
	m.show("model_config_info", 1, "1739", "auto", strconv.Itoa(hw.MaxModelLen), "none")
	m.show("kv_cache_config_info", 1, "1739", "auto", "True")
	m.fleet = newFleet(w, m)
	for i := range w.opt.Engines {
		s := &trtllmState{panel: t.panel("pid", "pytorch", w.opt.Model, strconv.Itoa(1739+i))}
		s.set("max_num_active_requests", float64(hw.MaxSequences))
		s.set("gpu_memory_usage_bytes", 25286934528)
		s.set("kv_cache_max_blocks", float64(hw.Blocks-1))
		s.set("kv_cache_free_blocks", float64(hw.Blocks-1))
		s.set("kv_cache_tokens_per_block", float64(hw.BlockSize))
		m.state = append(m.state, s)
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
	m.grow("kv_cache_reused_blocks", reused)
	m.grow("kv_cache_iter_reused_blocks", reused)
	m.grow("kv_cache_missed_blocks", missed)
	// The counter of iterations misses each block once more for each chunk.
	m.grow("kv_cache_iter_missed_blocks", missed*(1+q.PromptTokens/e.hw.MaxStepTokens))
}

// preempted leaves no trace but in a gauge that is rarely seen.
func (m *trtllmModel) preempted(e *engine, _ *sequence) { m.state[e.index].pauses++ }

func (m *trtllmModel) stepped(e *engine, _, generated int) {
	s, took := m.state[e.index], m.w.now-e.started
	s.iteration++
	if s.contextTokens > 0 {
		m.record("prefill_batch_tokens", float64(s.contextTokens))
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
	m.grow("num_requests_completed", 1)
	switch q.Reason {
	case "abort":
		return
	case "error":
		m.record("request_error", 1, "500")
		return
	}
	m.record("request_success", 1, q.Reason)
	m.grow("prompt_tokens", q.PromptTokens)
	m.grow("generation_tokens", q.generated)
	m.grow("prompt_cached_tokens", q.CachedTokens)
	m.record("prompt_cached_tokens_per_request", float64(q.CachedTokens))
	// The clock of the engine starts when the request reaches it.
	m.observe("e2e_request_latency_seconds", q.Last-q.Queued)
	m.observe("time_to_first_token_seconds", q.First-q.Queued)
	m.observe("request_queue_time_seconds", q.Scheduled-q.Queued)
	m.observe("request_prefill_time_seconds", q.First-q.Scheduled)
	m.observe("request_decode_time_seconds", q.Last-q.First)
	m.observe("request_inference_time_seconds", q.Last-q.Scheduled)
	if q.generated > 1 {
		m.observe("time_per_output_token_seconds", (q.Last-q.First)/time.Duration(q.generated-1))
	}
}

// observe records a time, but a time of zero is not seen: the engine asks
// whether there is a value, and zero is none to Python.
func (m *trtllmModel) observe(name string, d time.Duration) {
	if d > 0 {
		m.record(name, seconds(d))
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
		s.set(name, v)
	}
}

// trtllmState is what is known of one engine.
type trtllmState struct {
	*panel
	iteration                              int
	contextRequests, contextTokens, pauses int // of the iteration to come
	last                                   trtllmIteration
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
