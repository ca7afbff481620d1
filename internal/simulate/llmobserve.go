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
	s.running.set(float64(len(e.running)))
	s.waiting.set(float64(len(e.waiting)))
	s.capacity.set(float64(len(e.waiting)))
	s.kvUsage.set(e.usage())
}

func (s *llmSeries) admitted(e *engine, q *sequence) {
	s.queryN += q.PromptTokens
	s.hitN += q.CachedTokens
	if !s.throttled {
		s.cacheStats(e)
	}
}

func (s *llmSeries) cacheStats(e *engine) {
	s.add(e, s.queries, s.queryN)
	s.add(e, s.hits, s.hitN)
	s.queryN, s.hitN = 0, 0
}

func (s *llmSeries) preempted(e *engine, _ *sequence) { s.add(e, s.preemptions, 1) }

func (s *llmSeries) token(e *engine, q *sequence, gap time.Duration) {
	if gap >= 0 {
		if gap != s.gap {
			s.flushGaps(e)
			s.gap = gap
		}
		s.gaps++
		return
	}
	now := e.w.now
	s.reg.record(now, s.ttft, seconds(now-q.Arrival), 1)
	s.add(e, s.prompt, q.PromptTokens)
	s.add(e, s.computed, q.PromptTokens-q.CachedTokens)
	s.add(e, s.cachedBy, q.CachedTokens)
	s.add(e, s.cached, q.CachedTokens)
}

// flushGaps records the tokens that came with the same gap, as most of one
// step do.
func (s *llmSeries) flushGaps(e *engine) {
	s.reg.record(e.w.now, s.itl, seconds(s.gap), s.gaps)
	s.gaps = 0
}

func (s *llmSeries) stepped(e *engine, prompt, generated int) {
	now := e.w.now
	s.flushGaps(e)
	s.add(e, s.generated, generated)
	s.reg.record(now, s.iteration, float64(prompt+generated), 1)
	if s.mfu {
		tokens := float64(e.prefill + generated)
		s.reg.record(now, s.flops, 2*modelParameters*tokens, 1)
		s.reg.record(now, s.readBytes, modelBytes+kvTokenBytes*float64((e.hw.Blocks-1-e.free)*e.hw.BlockSize), 1)
		s.reg.record(now, s.writeBytes, kvTokenBytes*tokens, 1)
	}
	if s.throttled && now-s.scheduledAt >= time.Second {
		s.scheduledAt = now
		s.gauges(e)
		s.cacheStats(e)
	}
}

func (s *llmSeries) finished(e *engine, q *sequence) {
	now := e.w.now
	observe := func(h *series, v float64) { s.reg.record(now, h, v, 1) }
	s.add(e, s.success[q.Reason], 1)
	observe(s.e2e, seconds(q.Last-q.Arrival))
	observe(s.queue, seconds(q.Scheduled-q.Queued))
	observe(s.inference, seconds(q.Last-q.Scheduled))
	observe(s.prefill, seconds(q.First-q.Scheduled))
	observe(s.decode, seconds(q.Last-q.First))
	perToken := 0.0
	if q.generated > 1 {
		perToken = seconds(q.Last-q.First) / float64(q.generated-1)
	}
	observe(s.tpot, perToken)
	observe(s.reqPrompt, float64(q.PromptTokens))
	observe(s.reqGenerated, float64(q.generated))
	observe(s.reqMaxGen, float64(q.generated))
	observe(s.paramN, 1)
	observe(s.paramMaxTokens, float64(q.MaxTokens))
	observe(s.kvComputed, float64(q.PromptTokens-q.CachedTokens))
	observe(s.reqPreemptions, float64(q.Preemptions))
}

func (s *llmSeries) add(e *engine, c *series, n int) {
	if n > 0 {
		s.reg.record(e.w.now, c, float64(n), 1)
	}
}
