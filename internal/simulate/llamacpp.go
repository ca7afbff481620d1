package simulate

import (
	"math"
	"net/http"
	"net/url"
	"time"
)

// llamacppProfile is llama-server: no labels, no histograms, prompt counters at
// the first token and predicted ones at the end. The two throughput gauges are
// averages since the last scrape, which each scrape begins anew; with the
// generation "old" since the start. FlagsOff leaves out --metrics: 501.
func llamacppProfile() profile {
	return profile{name: "llamacpp", model: "qwen3-8b", flag: "--metrics", start: startLlama}
}

type llamaModel struct {
	*fleet
	old     bool
	steps   int
	slots   int // busy, added up over the steps
	longest int

	prompt, promptTime, predicted, predictedTime, decodes, cached, most *series
	busy, promptRate, predictedRate, processing, deferred               *series
	kvShare, kvTokens                                                   *series

	since struct{ prompt, promptTime, predicted, predictedTime float64 } // of the averages
}

func startLlama(w *world) (model, error) {
	old, err := generation(w, "old")
	if err != nil {
		return nil, err
	}
	m := &llamaModel{old: old}
	w.reg.d = llamaDialect()
	if old {
		w.reg.d.value = appendWindows
	}
	m.fleet = newFleet(w, m)
	m.register(w.reg)
	m.start()
	return m, nil
}

// appendWindows is appendPercentG with the NaN of the C library of Windows.
func appendWindows(b []byte, v float64) []byte {
	if math.IsNaN(v) {
		return append(b, "-nan(ind)"...)
	}
	return appendPercentG(b, v)
}

func (m *llamaModel) register(r *registry) {
	counter := func(name, help string) *series { return r.counter("llamacpp:"+name, help).with(0) }
	gauge := func(name, help string) *series { return r.gauge("llamacpp:"+name, help).with(0) }
	m.prompt = counter("prompt_tokens_total", "Number of prompt tokens processed.")
	m.promptTime = counter("prompt_seconds_total", "Prompt process time")
	m.predicted = counter("tokens_predicted_total", "Number of generation tokens processed.")
	m.predictedTime = counter("tokens_predicted_seconds_total", "Predict process time")
	m.decodes = counter("n_decode_total", "Total number of llama_decode() calls")
	const busyHelp = "Average number of busy slots per llama_decode() call"
	if m.old {
		m.busy = counter("n_busy_slots_per_decode", busyHelp)
	} else {
		m.cached = counter("prompt_tokens_cached_total", "Number of prompt tokens taken from the cache.")
		m.most = counter("n_tokens_max", "Largest observed n_tokens.")
		m.busy = gauge("n_busy_slots_per_decode", busyHelp)
	}
	m.promptRate = gauge("prompt_tokens_seconds", "Average prompt throughput in tokens/s.")
	m.predictedRate = gauge("predicted_tokens_seconds", "Average generation throughput in tokens/s.")
	if m.old {
		m.kvShare = gauge("kv_cache_usage_ratio", "KV-cache usage. 1 means 100 percent usage.")
		m.kvTokens = gauge("kv_cache_tokens", "KV-cache tokens.")
	}
	m.processing = gauge("requests_processing", "Number of requests processing.")
	m.deferred = gauge("requests_deferred", "Number of requests deferred.")
}

func (m *llamaModel) route(u *url.URL) *answer {
	switch {
	case u.Path == "/metrics" && m.w.opt.FlagsOff:
		return jsonAnswer(http.StatusNotImplemented, `{"error":{"code":501,"message":"This server does not support metrics endpoint. `+
			"Start it with `--metrics`"+`","type":"not_supported_error"}}`)
	case u.Path == "/props":
		return jsonAnswer(http.StatusOK, `{"total_slots":64,"build_info":"b6800-simulated"}`)
	}
	return nil
}

func (m *llamaModel) add(s *series, v float64) {
	if v > 0 {
		m.w.reg.record(m.w.now, s, v, 1)
	}
}

func (m *llamaModel) admitted(*engine, *sequence)  {}
func (m *llamaModel) preempted(*engine, *sequence) {}

func (m *llamaModel) token(_ *engine, q *sequence, gap time.Duration) {
	m.longest = max(m.longest, q.total())
	if gap >= 0 {
		return
	}
	m.add(m.prompt, float64(q.PromptTokens-q.CachedTokens))
	m.add(m.promptTime, seconds(q.First-q.Scheduled))
	m.add(m.cached, float64(q.CachedTokens))
}

func (m *llamaModel) stepped(e *engine, _, _ int) {
	m.steps++
	m.slots += len(e.batch)
	m.add(m.decodes, 1)
}

func (m *llamaModel) finished(_ *engine, q *sequence) {
	m.left(q)
	m.add(m.predicted, float64(q.generated))
	m.add(m.predictedTime, seconds(q.Last-q.First))
}

func (m *llamaModel) refresh() {
	m.busy.set(float64(m.slots) / float64(m.steps)) // 0/0 before the first step, as in the server
	m.most.set(float64(m.longest))
	rate := func(tokens, before, time, timeBefore float64) float64 {
		if time == timeBefore {
			return 0
		}
		return (tokens - before) / (time - timeBefore)
	}
	m.promptRate.set(rate(m.prompt.value, m.since.prompt, m.promptTime.value, m.since.promptTime))
	m.predictedRate.set(rate(m.predicted.value, m.since.predicted, m.predictedTime.value, m.since.predictedTime))
	m.processing.set(float64(m.running()))
	m.deferred.set(float64(m.waiting()))
	used, blocks := 0, 0
	for _, e := range m.engines {
		used += e.hw.Blocks - 1 - e.free
		blocks += e.hw.Blocks - 1
	}
	m.kvShare.set(float64(used) / float64(blocks))
	m.kvTokens.set(float64(used * m.w.opt.Hardware.BlockSize))
}

// scraped begins the averages anew.
func (m *llamaModel) scraped() {
	if m.old {
		return
	}
	m.since.prompt, m.since.promptTime = m.prompt.value, m.promptTime.value
	m.since.predicted, m.since.predictedTime = m.predicted.value, m.predictedTime.value
}
