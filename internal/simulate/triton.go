package simulate

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// tritonProfile is a Triton server, its Prometheus side and, at the paths of the inference port, its statistics
// extension, with an image model behind a response cache, an ensemble of a tokenizer and an encoder, and a canary that
// is loaded for one minute in three, each time as a new version. The generation "latencies" has the optional histogram
// and summaries. FlagsOff leaves out the GPU (--allow-gpu-metrics).
func tritonProfile() profile {
	return profile{name: "triton", model: "resnet50", flag: "--allow-gpu-metrics", start: startTriton}
}

// tritonPoll is how often Triton reads its GPUs and CPUs.
const tritonPoll = 2 * time.Second

type tritonModel struct {
	w       *world
	rng     *rand.Rand
	t       *table
	gpu     *panel // nil without --allow-gpu-metrics
	host    *panel
	models  []*tritonServed
	canary  *tritonServed
	version int
	next    int
	busy    time.Duration // computed by all models
	seen    time.Duration // of busy at the last poll
	energy  float64       // J
}

// tritonServed is one loaded version of a model. The ensemble has no batcher.
type tritonServed struct {
	*batcher
	*panel
	name, version   string
	failures, cache *panel // cache is nil without a response cache
	whole           *panel // nil with one: there is no summary of requests then
	stats           tritonStats
}

func startTriton(w *world) (model, error) {
	latencies, err := generation(w, "latencies")
	if err != nil {
		return nil, err
	}
	w.reg.d = cppDialect()
	m := &tritonModel{w: w, rng: w.stream(streamPipeline)}
	v := variant{labels: map[string][]string{
		"": {"model", "version"}, "cache": {"model", "version"}, "whole": {"model", "version"},
		"gpu": {"gpu_uuid"},
	}}
	if latencies {
		v.with = append(v.with, "latencies")
	}
	if !w.opt.FlagsOff {
		v.with = append(v.with, "gpu")
	}
	m.t = w.table("triton", v)
	m.startHost()
	ms := time.Millisecond
	m.models = []*tritonServed{
		m.load(w.opt.Model, "1", &batcher{largest: 8, base: 6 * ms, perItem: 2 * ms}, true),
		m.load("text_pipeline", "1", nil, false),
		m.load("tokenizer", "1", &batcher{largest: 4, base: ms, perItem: ms / 4}, false),
		m.load("encoder", "1", &batcher{largest: 16, base: 12 * ms, perItem: ms}, false),
	}
	m.poll()
	w.at(time.Minute, m.loadCanary)
	w.arrivals = newArrivals(w, m.arrive)
	return m, nil
}

// startHost sets what never changes.
func (m *tritonModel) startHost() {
	m.host = m.t.panel("host")
	m.host.set("pinned_memory_pool_total_bytes", 268435456)
	m.host.set("cpu_memory_total_bytes", 135018934272)
	if m.w.opt.FlagsOff {
		return
	}
	m.gpu = m.t.panel("gpu", "GPU-5f1c2d3e-0b1a-4c9d-8e7f-001122334455")
	m.gpu.set("gpu_memory_total_bytes", 25757220864)
	m.gpu.set("gpu_memory_used_bytes", 18253611008)
	m.gpu.set("gpu_power_limit", 300)
}

// load makes the series of a model that is loaded now, all at zero.
func (m *tritonModel) load(name, version string, b *batcher, cache bool) *tritonServed {
	s := &tritonServed{panel: m.t.panel("", name, version), name: name, version: version, failures: m.t.panel("failure")}
	for _, reason := range []string{"REJECTED", "CANCELED", "BACKEND", "OTHER"} {
		s.failures.show("inference_request_failure", 0, name, reason, version)
	}
	if cache {
		s.cache = m.t.panel("cache", name, version)
	} else {
		s.whole = m.t.panel("whole", name, version)
	}
	s.set("model_load_duration_secs", 2.5)
	s.batcher = b
	if b != nil {
		b.w, b.rng, b.free = m.w, m.rng, m.w.opt.Engines
		b.index = len(m.models)
		b.ran = func(batch []*task) {
			m.busy += batch[0].infer
			if size := servedItems(batch); size > 0 {
				s.grow("inference_exec_count", 1)
				s.stats.batch(size, batch[0], m.w)
			}
		}
	}
	return s
}

// loadCanary loads the canary and unloads it a minute later: its series go.
func (m *tritonModel) loadCanary() {
	m.version++
	m.canary = m.load("canary", strconv.Itoa(m.version), &batcher{largest: 8, base: 5 * time.Millisecond,
		perItem: 2 * time.Millisecond}, false)
	m.canary.index = 4
	m.w.at(m.w.now+time.Minute, func() {
		for _, p := range []*panel{m.canary.panel, m.canary.failures, m.canary.whole} {
			p.drop()
		}
		m.canary = nil
		m.w.at(m.w.now+2*time.Minute, m.loadCanary)
	})
}

// arrive sends a request to one of the models.
func (m *tritonModel) arrive() {
	which, fate, hit := m.rng.Float64(), m.rng.Float64(), m.rng.Float64()
	t := &task{items: 1 + m.rng.IntN(4)}
	t.Request = Request{ID: m.next, Arrival: m.w.now, Queued: m.w.now, Reason: "stop"}
	m.next++
	switch abort := max(m.w.opt.AbortShare, 0); {
	case fate < abort:
		t.Reason = "abort"
	case fate < abort+max(m.w.opt.ErrorShare, 0):
		t.Reason = "error"
	}
	switch {
	case which < 0.4:
		m.ensemble(t)
	case which < 0.5 && m.canary != nil:
		m.submit(m.canary, t, func(t *task) { t.settle(m.w) })
	case hit < m.w.opt.PrefixShare:
		m.fromCache(m.models[0], t)
	default:
		m.submit(m.models[0], t, func(t *task) { t.settle(m.w) })
	}
}

// fromCache answers a request out of the response cache.
func (m *tritonModel) fromCache(s *tritonServed, t *task) {
	took := 150*time.Microsecond + time.Duration(m.rng.ExpFloat64()*5e4)
	m.w.at(m.w.now+took, func() {
		t.Reason = "stop"
		t.Scheduled, t.First, t.Last = t.Arrival, m.w.now, m.w.now
		s.grow("inference_request_success", 1)
		s.record("inference_request_duration_us", micros(took))
		s.cache.grow("cache_num_hits_per_model", 1)
		s.cache.record("cache_hit_duration_per_model", micros(took))
		s.stats.begin(m.w.now)
		s.stats.count(statSuccess, took)
		s.stats.count(statQueue, 0)
		s.stats.count(statHit, took)
		t.settle(m.w)
	})
}

// submit queues a request at a model and counts it when it has ended.
func (m *tritonModel) submit(s *tritonServed, t *task, then func(*task)) {
	t.then = func(t *task) {
		m.count(s, t)
		then(t)
	}
	s.add(t)
}

// ensemble sends a request through the tokenizer and the encoder. Each counts its part, and the ensemble the whole.
func (m *tritonModel) ensemble(whole *task) {
	pipeline := m.models[1]
	whole.Engine = 1
	step := func(after *task, at *tritonServed, then func(*task)) {
		part := &task{items: whole.items}
		part.Request = Request{Arrival: m.w.now, Reason: "stop"}
		if after != nil {
			part.Reason = whole.Reason
		}
		m.submit(at, part, then)
	}
	step(nil, m.models[2], func(first *task) {
		step(first, m.models[3], func(second *task) {
			whole.Scheduled = first.Scheduled
			whole.First, whole.Last = m.w.now, m.w.now
			whole.input, whole.infer, whole.give = first.input+second.input, first.infer+second.infer, first.give+second.give
			m.count(pipeline, whole)
			if whole.Reason == "stop" {
				pipeline.grow("inference_exec_count", 1)
				pipeline.stats.batch(whole.items, whole, m.w)
			}
			whole.settle(m.w)
		})
	})
}

// count adds an ended request to the counters of a model.
func (m *tritonModel) count(s *tritonServed, t *task) {
	s.stats.begin(m.w.now)
	switch t.Reason {
	case "abort":
		s.failures.grow("inference_request_failure", 1, s.name, "CANCELED", s.version)
		s.stats.count(statFail, t.Last-t.Arrival)
		return
	case "error":
		s.failures.grow("inference_request_failure", 1, s.name, "BACKEND", s.version)
		s.stats.count(statFail, t.Last-t.Arrival)
		return
	}
	times := [5]time.Duration{t.Last - t.Arrival, t.Scheduled - t.Queued, t.input, t.infer, t.give}
	s.grow("inference_request_success", 1)
	s.grow("inference_count", t.items)
	s.stats.inferences += t.items
	for i, part := range []string{"request", "queue", "compute_input", "compute_infer", "compute_output"} {
		s.record("inference_"+part+"_duration_us", micros(times[i]))
		s.stats.count([5]tritonStat{statSuccess, statQueue, statInput, statInfer, statOutput}[i], times[i])
		summaries := s.panel
		if i == 0 {
			summaries = s.whole
		}
		summaries.record("inference_"+part+"_summary_us", micros(times[i]))
	}
	s.record("inference_first_response_histogram_ms", math.Floor(float64(t.First-t.Arrival)/1e6))
	if s.cache != nil {
		s.cache.grow("cache_num_misses_per_model", 1)
		s.cache.record("cache_miss_duration_per_model", 40)
		s.stats.count(statMiss, 40*time.Microsecond)
	}
}

// micros are whole microseconds, as the server counts: it cuts the rest off.
func micros(d time.Duration) float64 { return float64(d / time.Microsecond) }

// poll reads the GPU and the CPU, and comes again.
func (m *tritonModel) poll() {
	share := math.Min(1, seconds(m.busy-m.seen)/seconds(tritonPoll)/float64(m.w.opt.Engines))
	m.seen = m.busy
	power := 62 + 190*share
	if m.w.now > 0 {
		m.energy += power * seconds(tritonPoll)
	}
	m.gpu.set("gpu_utilization", share)
	m.gpu.set("gpu_power_usage", power)
	m.gpu.set("energy_consumption", m.energy)
	m.host.set("cpu_utilization", math.Round((0.05+0.3*share)*1e4)/1e4)
	m.w.at(m.w.now+tritonPoll, m.poll)
}

func (m *tritonModel) refresh() {
	for _, s := range append(m.models[:len(m.models):len(m.models)], m.canary) {
		if s != nil && s.batcher != nil {
			s.set("inference_pending_request_count", float64(len(s.queue)))
		}
	}
}
