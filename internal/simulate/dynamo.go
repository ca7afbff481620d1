package simulate

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// dynamoProfile is the frontend of NVIDIA Dynamo, and dynamoWorkerProfile the system port of a worker behind it. Both
// run the same model of both: with the same options, seed and clock they show the same requests from two sides.
func dynamoProfile() profile {
	start := func(w *world) (model, error) { return startDynamo(w, false) }
	return profile{name: "dynamo", model: "qwen3-8b", start: start}
}

func dynamoWorkerProfile() profile {
	start := func(w *world) (model, error) { return startDynamo(w, true) }
	return profile{name: "dynamo-worker", model: "qwen3-8b", start: start}
}

// dynamoModel drives the families of one side; the panels of the other are nil, and drop what they are told.
type dynamoModel struct {
	*fleet
	starting  int // requests under way without a token
	atWorkers int

	front, clients, back, worker *panel
	frontRank, backRank          []*panel // by engine
	engineSeries                 []*llmSeries
	gaps                         tokenGaps
	hit, asked                   int // prompt tokens
	disconnects                  int
}

func startDynamo(w *world, worker bool) (model, error) {
	w.reg.d = rustDialect()
	m := &dynamoModel{}
	m.fleet = newFleet(w, m)
	m.frontRank, m.backRank = make([]*panel, w.opt.Engines), make([]*panel, w.opt.Engines)
	m.arrived = func(*sequence) { m.starting++ }
	m.fleet.queued = m.received
	if worker {
		m.startWorker(w)
	} else {
		m.startFrontend(w)
	}
	m.start()
	return m, nil
}

func (m *dynamoModel) startFrontend(w *world) {
	hw := w.opt.Hardware
	t := w.table("dynamo-frontend", variant{labels: map[string][]string{"": {"model"},
		"worker": {"worker_id", "dp_rank"}}})
	m.front, m.clients = t.panel("", w.opt.Model), t.panel("all")
	m.front.set("model_context_length", float64(hw.MaxModelLen))
	m.front.set("model_kv_cache_block_size", float64(hw.BlockSize))
	m.front.set("model_total_kv_blocks", float64(hw.Blocks))
	m.gaps.to = m.front.of("inter_token_latency_seconds")
	for i := range m.engines {
		m.frontRank[i] = t.panel("worker", dynamoWorkerID, strconv.Itoa(i))
	}
}

const dynamoWorkerID = "7587889683284143912"

func (m *dynamoModel) startWorker(w *world) {
	labels := []string{"dynamo_namespace", "dynamo_component", "dynamo_endpoint", "worker_id", "model"}
	values := []string{"dynamo", "backend", "generate", dynamoWorkerID, w.opt.Model}
	t := w.table("dynamo-worker", variant{labels: map[string][]string{
		"": labels, "rank": append(slices.Clip(labels), "dp_rank"), "worker": labels[:4],
	}})
	m.back, m.worker = t.panel("", values...), t.panel("worker", values[:4]...)
	// The engine inside passes its own families through.
	w.reg.d = multiprocDialect()
	f := newLLMTable(w, w.opt.Hardware, []string{"model_name", "engine"})
	for i := range m.engines {
		m.backRank[i] = t.panel("rank", append(slices.Clip(values), strconv.Itoa(i))...)
		m.engineSeries = append(m.engineSeries, newLLMSeries(f, w.opt.Hardware, w.opt.Model, strconv.Itoa(i)))
	}
	w.reg.d = rustDialect()
}

// received is called when a request reaches its worker.
func (m *dynamoModel) received(q *sequence) {
	m.atWorkers++
	m.back.record("network_transit_seconds", seconds(q.Queued-q.Arrival))
	m.back.record("request_bytes_total", float64(180+4*q.PromptTokens))
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
	m.front.record("output_tokens_total", 1)
	if gap >= 0 {
		m.gaps.add(m.w, gap)
		m.frontRank[e.index].set("worker_last_inter_token_latency_seconds", seconds(gap))
		return
	}
	m.starting--
	m.front.record("time_to_first_token_seconds", seconds(q.First-q.Arrival))
	m.frontRank[e.index].set("worker_last_time_to_first_token_seconds", seconds(q.First-q.Arrival))
	m.front.record("input_sequence_tokens", float64(q.PromptTokens))
	m.front.record("cached_tokens", float64(q.CachedTokens))
	m.front.record("kv_hit_rate", float64(q.CachedTokens)/float64(q.PromptTokens))
	m.back.record("time_to_first_response_seconds", seconds(q.First-q.Queued))
}

func (m *dynamoModel) stepped(e *engine, prompt, generated int) {
	m.engineOf(e).stepped(e, prompt, generated)
	m.gaps.flush(m.w)
	m.frontRank[e.index].set("worker_active_prefill_tokens", float64(e.prefill))
	m.frontRank[e.index].set("worker_active_decode_blocks", float64(e.hw.Blocks-1-e.free))
}

func (m *dynamoModel) finished(e *engine, q *sequence) {
	m.engineOf(e).finished(e, q)
	m.left(q)
	m.atWorkers--
	status, kind := "success", ""
	switch q.Reason {
	case "abort":
		status, kind = "error", "cancelled"
		m.disconnects++
		m.clients.set("disconnected_clients", float64(m.disconnects))
	case "error":
		status, kind = "error", "internal"
		m.back.record("errors_total", 1, "generate")
	}
	m.front.record("requests_total", 1, "chat_completions", "stream", status, kind)
	m.front.record("request_duration_seconds", seconds(q.Last-q.Arrival))
	m.front.record("output_sequence_tokens", float64(q.generated))
	m.back.record("requests_total", 1)
	m.back.record("request_duration_seconds", seconds(q.Last-q.Queued))
	m.back.record("response_bytes_total", float64(350+5*q.generated))
}

func (m *dynamoModel) refresh() {
	m.front.set("inflight_requests", float64(m.open))
	m.front.set("queued_requests", float64(m.starting))
	m.front.set("router_queue_pending_requests", float64(m.open-m.atWorkers))
	m.back.set("inflight_requests", float64(m.atWorkers))
	m.worker.set("system_uptime_seconds", seconds(m.w.now))
	for i, e := range m.engines {
		rank := m.backRank[i]
		rank.set("kvstats_active_blocks", float64(e.hw.Blocks-1-e.free))
		rank.set("kvstats_total_blocks", float64(e.hw.Blocks-1))
		rank.set("kvstats_gpu_cache_usage_percent", e.usage())
		rank.set("kvstats_gpu_prefix_cache_hit_rate", float64(m.hit)/math.Max(1, float64(m.asked)))
		if m.engineSeries != nil {
			m.engineSeries[i].gauges(e)
		}
	}
}
