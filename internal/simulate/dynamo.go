package simulate

import (
	"math"
	"strconv"
	"time"
)

// dynamoProfile is the frontend of NVIDIA Dynamo, and dynamoWorkerProfile the
// system port of a worker behind it. Both run the same model of both: with the
// same options, seed and clock they show the same requests from two sides.
func dynamoProfile() profile {
	return profile{name: "dynamo", model: "qwen3-8b", start: func(w *world) (model, error) { return startDynamo(w, false) }}
}

func dynamoWorkerProfile() profile {
	return profile{name: "dynamo-worker", model: "qwen3-8b", start: func(w *world) (model, error) { return startDynamo(w, true) }}
}

// dynamoModel drives the families of one side; those of the other are nil, and
// drop what they are told.
type dynamoModel struct {
	*fleet
	starting  int // requests under way without a token
	atWorkers int

	requests                                                   *family
	duration, ttft, input, output, cached, hitRate             *series
	gaps                                                       tokenGaps
	outputTokens                                               *series
	inflight, queued, disconnected, pendingRoutes              *series
	decodeBlocks, prefillTokens, lastTTFT, lastITL             map[int]*series
	served, requestBytes, responseBytes, workDuration, transit *series
	firstResponse, workInflight, uptime                        *series
	failed                                                     *family
	active, total, usage, hits                                 map[int]*series
	engineSeries                                               []*llmSeries
	hit, asked                                                 int // prompt tokens
}

func startDynamo(w *world, worker bool) (model, error) {
	w.reg.d = rustDialect()
	m := &dynamoModel{decodeBlocks: map[int]*series{}, prefillTokens: map[int]*series{}, lastTTFT: map[int]*series{}, lastITL: map[int]*series{},
		active: map[int]*series{}, total: map[int]*series{}, usage: map[int]*series{}, hits: map[int]*series{}}
	m.fleet = newFleet(w, m)
	m.arrived = func(*sequence) { m.starting++ }
	m.fleet.queued = m.received
	if worker {
		m.registerWorker(w)
	} else {
		m.registerFrontend(w)
	}
	m.start()
	return m, nil
}

// dynamoBounds are n bounds from lowest to highest in equal ratios, rounded to
// two significant digits.
func dynamoBounds(lowest, highest float64, n int) []float64 {
	var b []float64
	for i := range n {
		v := lowest * math.Pow(highest/lowest, float64(i)/float64(n-1))
		digit := math.Pow(10, math.Floor(math.Log10(v))-1)
		v, _ = strconv.ParseFloat(strconv.FormatFloat(math.Round(v/digit)*digit, 'g', 2, 64), 64)
		if len(b) == 0 || v > b[len(b)-1] {
			b = append(b, v)
		}
	}
	return b
}

func (m *dynamoModel) registerFrontend(w *world) {
	r, model := w.reg, w.opt.Model
	name := func(s string) string { return "dynamo_frontend_" + s }
	gauge := func(n, help string) *series { return r.gauge(name(n), help, "model").with(0, model) }
	histogram := func(n, help string, b []float64) *series { return r.histogram(name(n), help, b, "model").lazy(model) }
	m.cached = histogram("cached_tokens", "Number of cached tokens per request", dynamoBounds(50, 128000, 12))
	m.disconnected = r.gauge(name("disconnected_clients"), "Number of disconnected clients").with(0)
	m.inflight = gauge("inflight_requests", "Number of inflight requests")
	m.input = histogram("input_sequence_tokens", "Input sequence length in tokens", dynamoBounds(50, 128000, 12))
	m.gaps.to = histogram("inter_token_latency_seconds", "Inter-token latency in seconds", dynamoBounds(0.001, 2, 13))
	m.hitRate = histogram("kv_hit_rate", "KV cache hit rate per request", []float64{0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1})
	hw := w.opt.Hardware
	gauge("model_context_length", "Context length of the model").set(float64(hw.MaxModelLen))
	gauge("model_kv_cache_block_size", "Tokens of a KV cache block").set(float64(hw.BlockSize))
	gauge("model_total_kv_blocks", "KV cache blocks of a worker").set(float64(hw.Blocks))
	m.output = histogram("output_sequence_tokens", "Output sequence length in tokens", dynamoBounds(50, 32000, 10))
	m.outputTokens = r.counter(name("output_tokens_total"), "Total number of output tokens generated", "model").lazy(model)
	m.queued = gauge("queued_requests", "Number of requests that wait for their first token")
	m.duration = histogram("request_duration_seconds", "Duration of requests", dynamoBounds(1, 256, 10))
	m.requests = r.counter(name("requests_total"), "Total number of requests", "model", "endpoint", "request_type", "status", "error_type")
	m.pendingRoutes = gauge("router_queue_pending_requests", "Requests pending in the router queue")
	m.ttft = histogram("time_to_first_token_seconds", "Time to first token in seconds", dynamoBounds(0.001, 480, 18))
	worker := func(n, help string) map[int]*series {
		f, out := r.gauge(name(n), help, "worker_id", "dp_rank"), map[int]*series{}
		for i := range m.engines {
			out[i] = f.with(0, dynamoWorkerID, strconv.Itoa(i))
		}
		return out
	}
	m.decodeBlocks = worker("worker_active_decode_blocks", "Active decode blocks of a worker")
	m.prefillTokens = worker("worker_active_prefill_tokens", "Active prefill tokens of a worker")
	m.lastITL = worker("worker_last_inter_token_latency_seconds", "Last inter-token latency of a worker")
	m.lastTTFT = worker("worker_last_time_to_first_token_seconds", "Last time to first token of a worker")
}

const dynamoWorkerID = "7587889683284143912"

func (m *dynamoModel) registerWorker(w *world) {
	r := w.reg
	labels := []string{"dynamo_namespace", "dynamo_component", "dynamo_endpoint", "worker_id", "model"}
	values := []string{"dynamo", "backend", "generate", dynamoWorkerID, w.opt.Model}
	name := func(s string) string { return "dynamo_component_" + s }
	counter := func(n, help string) *series { return r.counter(name(n), help, labels...).with(0, values...) }
	histogram := func(n, help string) *series {
		return r.histogram(name(n), help, pythonDefaultBounds(), labels...).with(0, values...)
	}
	m.failed = r.counter(name("errors_total"), "Total number of errors", append(labels, "error_type")...)
	m.workInflight = r.gauge(name("inflight_requests"), "Requests being processed", labels...).with(0, values...)
	ranks := func(n, help string) map[int]*series {
		f, out := r.gauge(name(n), help, append(labels, "dp_rank")...), map[int]*series{}
		for i := range m.engines {
			out[i] = f.with(0, append(values[:5:5], strconv.Itoa(i))...)
		}
		return out
	}
	m.active = ranks("kvstats_active_blocks", "Active KV cache blocks")
	m.usage = ranks("kvstats_gpu_cache_usage_percent", "GPU cache usage, 0 to 1")
	m.hits = ranks("kvstats_gpu_prefix_cache_hit_rate", "GPU prefix cache hit rate")
	m.total = ranks("kvstats_total_blocks", "KV cache blocks")
	m.transit = histogram("network_transit_seconds", "Time from the frontend to the worker")
	m.requestBytes = counter("request_bytes_total", "Bytes received in requests")
	m.workDuration = histogram("request_duration_seconds", "Request processing time")
	m.served = counter("requests_total", "Total requests processed")
	m.responseBytes = counter("response_bytes_total", "Bytes sent in responses")
	m.firstResponse = histogram("time_to_first_response_seconds", "Time to the first response")
	m.uptime = r.gauge(name("system_uptime_seconds"), "Uptime of the worker", labels[:4]...).with(0, values[:4]...)
	// The engine inside passes its own families through.
	r.d = multiprocDialect()
	f := newLLMFamilies(r, w.opt.Hardware, []string{"model_name", "engine"})
	for i := range m.engines {
		m.engineSeries = append(m.engineSeries, f.series(w.opt.Hardware, w.opt.MFU, w.opt.Model, strconv.Itoa(i)))
	}
	r.d = rustDialect()
}

// pythonDefaultBounds are the bounds of a histogram whose author gave none.
func pythonDefaultBounds() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
}

func (m *dynamoModel) record(s *series, v float64) { m.w.reg.record(m.w.now, s, v, 1) }

// received is called when a request reaches its worker.
func (m *dynamoModel) received(q *sequence) {
	m.atWorkers++
	m.record(m.transit, seconds(q.Queued-q.Arrival))
	m.record(m.requestBytes, float64(180+4*q.PromptTokens))
}

func (m *dynamoModel) engineOf(e *engine) engineObserver {
	if m.engineSeries == nil {
		return noObserver{}
	}
	return m.engineSeries[e.index]
}

func (m *dynamoModel) admitted(e *engine, q *sequence) {
	m.engineOf(e).admitted(e, q)
	m.asked += q.PromptTokens
	m.hit += q.CachedTokens
}

func (m *dynamoModel) preempted(e *engine, q *sequence) { m.engineOf(e).preempted(e, q) }

func (m *dynamoModel) token(e *engine, q *sequence, gap time.Duration) {
	m.engineOf(e).token(e, q, gap)
	m.record(m.outputTokens, 1)
	if gap >= 0 {
		m.gaps.add(m.w, gap)
		m.lastITL[e.index].set(seconds(gap))
		return
	}
	m.starting--
	m.record(m.ttft, seconds(q.First-q.Arrival))
	m.lastTTFT[e.index].set(seconds(q.First - q.Arrival))
	m.record(m.input, float64(q.PromptTokens))
	m.record(m.cached, float64(q.CachedTokens))
	m.record(m.hitRate, float64(q.CachedTokens)/float64(q.PromptTokens))
	m.record(m.firstResponse, seconds(q.First-q.Queued))
}

func (m *dynamoModel) stepped(e *engine, prompt, generated int) {
	m.engineOf(e).stepped(e, prompt, generated)
	m.gaps.flush(m.w)
	m.prefillTokens[e.index].set(float64(e.prefill))
	m.decodeBlocks[e.index].set(float64(e.hw.Blocks - 1 - e.free))
}

func (m *dynamoModel) finished(e *engine, q *sequence) {
	m.engineOf(e).finished(e, q)
	m.left(q)
	m.atWorkers--
	status, kind := "success", ""
	switch q.Reason {
	case "abort":
		status, kind = "error", "cancelled"
		if m.disconnected != nil {
			m.disconnected.value++
		}
	case "error":
		status, kind = "error", "internal"
		m.record(m.failed.lazy("dynamo", "backend", "generate", dynamoWorkerID, m.w.opt.Model, "generate"), 1)
	}
	m.record(m.requests.lazy(m.w.opt.Model, "chat_completions", "stream", status, kind), 1)
	m.record(m.duration, seconds(q.Last-q.Arrival))
	m.record(m.output, float64(q.generated))
	m.record(m.served, 1)
	m.record(m.workDuration, seconds(q.Last-q.Queued))
	m.record(m.responseBytes, float64(350+5*q.generated))
}

func (m *dynamoModel) refresh() {
	m.inflight.set(float64(m.open))
	m.queued.set(float64(m.starting))
	m.pendingRoutes.set(float64(m.open - m.atWorkers))
	m.workInflight.set(float64(m.atWorkers))
	m.uptime.set(seconds(m.w.now))
	for i, e := range m.engines {
		m.active[i].set(float64(e.hw.Blocks - 1 - e.free))
		m.total[i].set(float64(e.hw.Blocks - 1))
		m.usage[i].set(e.usage())
		m.hits[i].set(float64(m.hit) / math.Max(1, float64(m.asked)))
		if m.engineSeries != nil {
			m.engineSeries[i].gauges(e)
		}
	}
}
