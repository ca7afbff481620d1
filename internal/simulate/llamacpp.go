package simulate

import (
	"math"
	"net/http"
	"net/url"
	"time"
)

// llamacppProfile is llama-server: no labels, no histograms, prompt counters at the first token and predicted ones at
// the end. The two throughput gauges are averages since the last scrape, which each scrape begins anew; with the
// generation "old" since the start. FlagsOff leaves out --metrics: 501.
func llamacppProfile() profile {
	return profile{name: "llamacpp", model: "qwen3-8b", flag: "--metrics", start: startLlama}
}

type llamaModel struct {
	noObserver
	*fleet
	*panel
	old     bool
	steps   int
	slots   int // busy, added up over the steps
	longest int
	since   [4]float64 // of the averages: tokens and seconds of prompts, then of answers
}

func startLlama(w *world) (model, error) {
	old, err := generation(w, "old")
	if err != nil {
		return nil, err
	}
	m, with := &llamaModel{old: old}, "new"
	w.reg.d = llamaDialect()
	if old {
		with, w.reg.d.value = "old", appendWindows
	}
	m.fleet = newFleet(w, m)
	m.panel = w.table("llamacpp", variant{with: []string{with}}).panel("")
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

func (m *llamaModel) route(u *url.URL) *answer {
	switch {
	case u.Path == "/metrics" && m.w.opt.FlagsOff:
		return jsonAnswer(http.StatusNotImplemented,
			`{"error":{"code":501,"message":"This server does not support metrics endpoint. `+
				"Start it with `--metrics`"+`","type":"not_supported_error"}}`)
	case u.Path == "/props":
		return jsonAnswer(http.StatusOK, `{"total_slots":64,"build_info":"b6800-simulated"}`)
	}
	return nil
}

func (m *llamaModel) token(_ *engine, q *sequence, gap time.Duration) {
	m.longest = max(m.longest, q.total())
	if gap >= 0 {
		return
	}
	m.grow("prompt_tokens_total", q.PromptTokens-q.CachedTokens)
	m.took("prompt_seconds_total", q.First-q.Scheduled)
	m.grow("prompt_tokens_cached_total", q.CachedTokens)
}

// took adds a time. A time of zero leaves no trace.
func (m *llamaModel) took(name string, d time.Duration) {
	if d > 0 {
		m.record(name, seconds(d))
	}
}

func (m *llamaModel) stepped(e *engine, _, _ int) {
	m.steps++
	m.slots += len(e.batch)
	m.grow("n_decode_total", 1)
}

func (m *llamaModel) finished(_ *engine, q *sequence) {
	m.left(q)
	m.grow("tokens_predicted_total", q.generated)
	m.took("tokens_predicted_seconds_total", q.Last-q.First)
}

// totals are the counters that the averages are made of.
func (m *llamaModel) totals() (v [4]float64) {
	for i, name := range []string{"prompt_tokens_total", "prompt_seconds_total", "tokens_predicted_total",
		"tokens_predicted_seconds_total"} {
		v[i] = m.of(name).value
	}
	return v
}

func (m *llamaModel) refresh() {
	m.set("n_busy_slots_per_decode", float64(m.slots)/float64(m.steps)) // 0/0 before the first step, as in the server
	m.set("n_tokens_max", float64(m.longest))
	v := m.totals()
	for i, name := range []string{"prompt_tokens_seconds", "predicted_tokens_seconds"} {
		rate := 0.0
		if took := v[2*i+1] - m.since[2*i+1]; took != 0 {
			rate = (v[2*i] - m.since[2*i]) / took
		}
		m.set(name, rate)
	}
	m.set("requests_processing", float64(m.running()))
	m.set("requests_deferred", float64(m.waiting()))
	used, blocks := 0, 0
	for _, e := range m.engines {
		used += e.hw.Blocks - 1 - e.free
		blocks += e.hw.Blocks - 1
	}
	m.set("kv_cache_usage_ratio", float64(used)/float64(blocks))
	m.set("kv_cache_tokens", float64(used*m.w.opt.Hardware.BlockSize))
}

// scraped begins the averages anew.
func (m *llamaModel) scraped() {
	if !m.old {
		m.since = m.totals()
	}
}
