package simulate

import (
	"net/http"
	"net/url"
	"time"
)

// tgiProfile is the router of Text Generation Inference: names without _total,
// one family with 1025 buckets, no model label. A request whose client went away
// is counted when it came, and then never again.
func tgiProfile() profile {
	return profile{name: "tgi", model: "qwen3-8b", start: startTGI}
}

type tgiModel struct {
	*fleet
	admissions int // of the step under way

	count, success                                           *series
	failure                                                  *family
	queueSize, batchSize, batchTokens, maxTokens             *series
	duration, validation, queue, inference, perToken         *series
	input, generated, maxNew, nextSize, skipped, concat      *series
	batchCount, batchSuccess, batchTime, forward, decodeTime map[string]*series
}

func startTGI(w *world) (model, error) {
	w.reg.d = exporterDialect()
	m := &tgiModel{}
	m.fleet = newFleet(w, m)
	m.register(w.reg, w.opt.Hardware)
	m.arrived = func(*sequence) { m.record(m.count, 1) }
	m.queued = func(q *sequence) {
		m.record(m.validation, seconds(q.Queued-q.Arrival))
		m.record(m.input, float64(q.PromptTokens))
		m.record(m.maxNew, float64(q.MaxTokens))
	}
	m.start()
	return m, nil
}

func (m *tgiModel) register(r *registry, hw Hardware) {
	counter := func(name, help string) *series { return r.counter(name, help).lazy() }
	byMethod := func(f *family) map[string]*series {
		return map[string]*series{"prefill": f.lazy("prefill"), "decode": f.lazy("decode")}
	}
	m.count = counter("tgi_request_count", "Total number of requests")
	m.success = counter("tgi_request_success", "Number of successful requests")
	m.failure = r.counter("tgi_request_failure", "Number of failed requests", "err")
	m.batchCount = byMethod(r.counter("tgi_batch_inference_count", "Inference calls per method (prefill or decode)", "method"))
	m.batchSuccess = byMethod(r.counter("tgi_batch_inference_success", "Number of successful inference calls per method", "method"))
	m.concat = r.counter("tgi_batch_concat", "How often the continuous batcher combined a new batch into the current batch", "reason").
		lazy("backpressure")
	m.queueSize = r.gauge("tgi_queue_size", "Current queue size").with(0)
	m.batchSize = r.gauge("tgi_batch_current_size", "Current batch size").with(0)
	m.batchTokens = r.gauge("tgi_batch_current_max_tokens", "Maximum tokens for the current batch").with(0)
	m.maxTokens = r.gauge("tgi_batch_max_total_tokens", "Maximum number of total tokens a batch may hold").with(0)
	m.maxTokens.set(float64((hw.Blocks - 1) * hw.BlockSize))
	duration := func(name, help string, labels ...string) *family {
		return r.histogram(name, help, tgiDurations(), labels...)
	}
	m.duration = duration("tgi_request_duration", "End-to-end generation latency per request").lazy()
	m.validation = duration("tgi_request_validation_duration", "Time to validate a request").lazy()
	m.queue = duration("tgi_request_queue_duration", "Time spent in the queue per request").lazy()
	m.inference = duration("tgi_request_inference_duration", "Request inference duration").lazy()
	m.perToken = duration("tgi_request_mean_time_per_token_duration", "Mean time per token per request").lazy()
	m.batchTime = byMethod(duration("tgi_batch_inference_duration", "Batch inference duration", "method"))
	m.forward = byMethod(duration("tgi_batch_forward_duration", "Batch forward duration per method", "method"))
	m.decodeTime = byMethod(duration("tgi_batch_decode_duration", "Time spent decoding a batch per method", "method"))
	linear := func(name, help string, limit int) *series {
		bounds := make([]float64, 100)
		for i := range bounds {
			bounds[i] = float64(limit) * float64(i+1) / 100
		}
		return r.histogram(name, help, bounds).lazy()
	}
	m.input = linear("tgi_request_input_length", "Input token length per request", hw.MaxModelLen-1)
	m.generated = linear("tgi_request_generated_tokens", "Generated tokens per request", hw.MaxModelLen)
	m.maxNew = linear("tgi_request_max_new_tokens", "Maximum new tokens per request", hw.MaxModelLen)
	sizes := make([]float64, 1024)
	for i := range sizes {
		sizes[i] = float64(i + 1)
	}
	m.nextSize = r.histogram("tgi_batch_next_size", "Batch sizes", sizes).lazy()
	skipped := r.summary("tgi_request_skipped_tokens", "Speculated tokens per request")
	skipped.quantiles = []float64{0, 0.5, 0.9, 0.95, 0.99, 0.999, 1}
	m.skipped = skipped.lazy()
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

func (m *tgiModel) record(s *series, v float64) { m.w.reg.record(m.w.now, s, v, 1) }

func (m *tgiModel) route(u *url.URL) *answer {
	if u.Path == "/info" {
		return jsonAnswer(http.StatusOK, `{"model_id":"`+m.w.opt.Model+`","version":"3.3.6","router":"text-generation-router"}`)
	}
	return nil
}

func (m *tgiModel) admitted(*engine, *sequence)             { m.admissions++ }
func (m *tgiModel) preempted(*engine, *sequence)            {}
func (m *tgiModel) token(*engine, *sequence, time.Duration) {}

func (m *tgiModel) stepped(e *engine, _, _ int) {
	method, took := "decode", seconds(m.w.now-e.started)
	if m.admissions > 0 {
		method = "prefill"
		m.record(m.nextSize, float64(m.admissions))
		if len(e.batch) > m.admissions {
			m.record(m.concat, 1)
		}
		m.admissions = 0
	}
	m.record(m.batchCount[method], 1)
	m.record(m.batchSuccess[method], 1)
	m.record(m.batchTime[method], took)
	m.record(m.forward[method], 0.96*took)
	m.record(m.decodeTime[method], 0.02*took)
}

func (m *tgiModel) finished(_ *engine, q *sequence) {
	m.left(q)
	switch {
	case q.Reason == "error":
		m.record(m.failure.lazy("generation"), 1)
	case q.served():
		inference := seconds(q.Last - q.Scheduled)
		m.record(m.success, 1)
		m.record(m.duration, seconds(q.Last-q.Arrival))
		m.record(m.queue, seconds(q.Scheduled-q.Queued))
		m.record(m.inference, inference)
		m.record(m.perToken, inference/float64(q.generated))
		m.record(m.generated, float64(q.generated))
		m.record(m.skipped, 0)
	}
}

func (m *tgiModel) refresh() {
	tokens := 0
	for _, e := range m.engines {
		for _, q := range e.running {
			tokens += q.PromptTokens + q.MaxTokens
		}
	}
	m.queueSize.set(float64(m.waiting()))
	m.batchSize.set(float64(m.running()))
	m.batchTokens.set(float64(tokens))
}
