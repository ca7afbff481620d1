package simulate

import "time"

// The model behind the estimated_* families: an 8-billion-parameter model in
// 16 bits whose KV cache takes 128 KiB per token.
const (
	modelParameters = 8e9
	modelBytes      = 2 * modelParameters
	kvTokenBytes    = 128 << 10
)

// gauges shows the state of the engine now.
func (s *llmSeries) gauges(e *engine) {
	s.set("num_requests_running", float64(len(e.running)))
	s.set("num_requests_waiting", float64(len(e.waiting)))
	s.set("num_requests_waiting_by_reason", float64(len(e.waiting)), "capacity")
	s.set("kv_cache_usage_perc", e.usage())
}

func (s *llmSeries) admitted(_ *engine, q *sequence) {
	s.queryN += q.PromptTokens
	s.hitN += q.CachedTokens
	if !s.throttled {
		s.cacheStats()
	}
}

func (s *llmSeries) cacheStats() {
	s.grow("prefix_cache_queries", s.queryN)
	s.grow("prefix_cache_hits", s.hitN)
	s.queryN, s.hitN = 0, 0
}

func (s *llmSeries) preempted(*engine, *sequence) { s.grow("num_preemptions", 1) }

func (s *llmSeries) token(e *engine, q *sequence, gap time.Duration) {
	if gap >= 0 {
		s.gaps.add(e.w, gap)
		return
	}
	s.record("time_to_first_token_seconds", seconds(e.w.now-q.Arrival))
	s.grow("prompt_tokens", q.PromptTokens)
	s.grow("prompt_tokens_by_source", q.PromptTokens-q.CachedTokens, "local_compute")
	s.grow("prompt_tokens_by_source", q.CachedTokens, "local_cache_hit")
	s.grow("prompt_tokens_cached", q.CachedTokens)
	s.foundN += q.CachedTokens
}

func (s *llmSeries) stepped(e *engine, prompt, generated int) {
	s.gaps.flush(e.w)
	s.grow("generation_tokens", generated)
	s.record("iteration_tokens_total", float64(prompt-s.foundN+generated)) // what was computed, as in the server
	s.foundN = 0
	if e.w.opt.MFU {
		tokens := float64(e.prefill + generated)
		s.record("estimated_flops_per_gpu", 2*modelParameters*tokens)
		s.record("estimated_read_bytes_per_gpu", modelBytes+kvTokenBytes*float64((e.hw.Blocks-1-e.free)*e.hw.BlockSize))
		s.record("estimated_write_bytes_per_gpu", kvTokenBytes*tokens)
	}
	if s.throttled && e.w.now-s.scheduledAt >= time.Second {
		s.scheduledAt = e.w.now
		s.gauges(e)
		s.cacheStats()
	}
}

func (s *llmSeries) finished(_ *engine, q *sequence) {
	perToken := 0.0
	if q.generated > 1 {
		perToken = seconds(q.Last-q.First) / float64(q.generated-1)
	}
	s.grow("request_success", 1, q.Reason)
	s.record("e2e_request_latency_seconds", seconds(q.Last-q.Arrival))
	s.record("request_queue_time_seconds", seconds(q.Scheduled-q.Queued))
	s.record("request_inference_time_seconds", seconds(q.Last-q.Scheduled))
	s.record("request_prefill_time_seconds", seconds(q.First-q.Scheduled))
	s.record("request_decode_time_seconds", seconds(q.Last-q.First))
	s.record("request_time_per_output_token_seconds", perToken)
	s.record("request_prompt_tokens", float64(q.PromptTokens))
	s.record("request_generation_tokens", float64(q.generated))
	s.record("request_max_num_generation_tokens", float64(q.generated))
	s.record("request_params_n", 1)
	s.record("request_params_max_tokens", float64(q.MaxTokens))
	s.record("request_prefill_kv_computed_tokens", float64(q.PromptTokens-q.CachedTokens))
	s.record("request_num_preemptions", float64(q.Preemptions))
}
