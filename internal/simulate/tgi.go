package simulate

import (
	"net/http"
	"net/url"
)

// tgiProfile is the router of Text Generation Inference: names without _total, one family with 1025 buckets, no model
// label. A request whose client went away is counted when it came, and then never again.
func tgiProfile() profile {
	return profile{name: "tgi", model: "qwen3-8b", start: startTGI}
}

type tgiModel struct {
	noObserver
	*fleet
	*panel
	admissions int // of the step under way
}

func startTGI(w *world) (model, error) {
	w.reg.d = exporterDialect()
	m := &tgiModel{}
	m.fleet = newFleet(w, m)
	hw := w.opt.Hardware
	m.panel = w.table("tgi", variant{layouts: map[string][]float64{
		"tgiSeconds": tgiDurations(), "batch": linear(1024, 1024),
		"input": linear(hw.MaxModelLen-1, 100), "output": linear(hw.MaxModelLen, 100),
	}}).panel("")
	m.set("batch_max_total_tokens", float64((hw.Blocks-1)*hw.BlockSize))
	m.arrived = func(*sequence) { m.record("request_count", 1) }
	m.queued = func(q *sequence) {
		m.record("request_validation_duration", seconds(q.Queued-q.Arrival))
		m.record("request_input_length", float64(q.PromptTokens))
		m.record("request_max_new_tokens", float64(q.MaxTokens))
	}
	m.start()
	return m, nil
}

// linear are n bounds in equal steps up to limit.
func linear(limit, n int) []float64 {
	b := make([]float64, n)
	for i := range b {
		b[i] = float64(limit) * float64(i+1) / float64(n)
	}
	return b
}

// tgiDurations are the bounds 0.0001 x 1.5^k.
func tgiDurations() []float64 {
	b, v := make([]float64, 35), 0.0001
	for i := range b {
		v *= 1.5
		b[i] = v
	}
	return b
}

func (m *tgiModel) route(u *url.URL) *answer {
	if u.Path == "/info" {
		return jsonAnswer(http.StatusOK,
			`{"model_id":"`+m.w.opt.Model+`","version":"3.3.6","router":"text-generation-router"}`)
	}
	return nil
}

func (m *tgiModel) admitted(*engine, *sequence) { m.admissions++ }

func (m *tgiModel) stepped(e *engine, _, _ int) {
	method, took := "decode", seconds(m.w.now-e.started)
	if m.admissions > 0 {
		method = "prefill"
		m.record("batch_next_size", float64(m.admissions))
		if len(e.batch) > m.admissions {
			m.record("batch_concat", 1, "backpressure")
		}
		m.admissions = 0
	}
	m.record("batch_inference_count", 1, method)
	m.record("batch_inference_success", 1, method)
	m.record("batch_inference_duration", took, method)
	m.record("batch_forward_duration", 0.96*took, method)
	m.record("batch_decode_duration", 0.02*took, method)
}

func (m *tgiModel) finished(_ *engine, q *sequence) {
	m.left(q)
	switch {
	case q.Reason == "error":
		m.record("request_failure", 1, "generation")
	case q.served():
		inference := seconds(q.Last - q.Scheduled)
		m.record("request_success", 1)
		m.record("request_duration", seconds(q.Last-q.Arrival))
		m.record("request_queue_duration", seconds(q.Scheduled-q.Queued))
		m.record("request_inference_duration", inference)
		m.record("request_mean_time_per_token_duration", inference/float64(q.generated))
		m.record("request_generated_tokens", float64(q.generated))
		m.record("request_skipped_tokens", 0)
	}
}

func (m *tgiModel) refresh() {
	tokens := 0
	for _, e := range m.engines {
		for _, q := range e.running {
			tokens += q.PromptTokens + q.MaxTokens
		}
	}
	m.set("queue_size", float64(m.waiting()))
	m.set("batch_current_size", float64(m.running()))
	m.set("batch_current_max_tokens", float64(tokens))
}
