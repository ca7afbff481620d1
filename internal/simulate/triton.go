package simulate

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// tritonProfile is a Triton server, its Prometheus side and, at the paths of the
// inference port, its statistics extension, with an image model
// behind a response cache, an ensemble of a tokenizer and an encoder, and a
// canary that is loaded for one minute in three, each time as a new version.
// The generation "latencies" has the optional histogram and summaries. FlagsOff
// leaves out the GPU (--allow-gpu-metrics).
func tritonProfile() profile {
	return profile{name: "triton", model: "resnet50", flag: "--allow-gpu-metrics", start: startTriton}
}

// tritonPoll is how often Triton reads its GPUs and CPUs.
const tritonPoll = 2 * time.Second

type tritonModel struct {
	w       *world
	rng     *rand.Rand
	f       tritonFamilies
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
	name, version                                  string
	cache                                          bool
	success, count, execs                          *series
	request, queued, input, infer, output, pending *series
	hits, misses, hitTime, missTime                *series
	first                                          *series
	summaries                                      [5]*series // request, queue, input, infer, output
	failures                                       map[string]*series
	stats                                          tritonStats
}

func startTriton(w *world) (model, error) {
	latencies, err := generation(w, "latencies")
	if err != nil {
		return nil, err
	}
	w.reg.d = cppDialect()
	m := &tritonModel{w: w, rng: w.stream(streamPipeline)}
	m.f.register(w.reg, latencies, !w.opt.FlagsOff)
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

func (m *tritonModel) load(name, version string, b *batcher, cache bool) *tritonServed {
	s := m.f.model(m.w, name, version, cache)
	s.batcher = b
	if b != nil {
		b.w, b.rng, b.free = m.w, m.rng, m.w.opt.Engines
		b.index = len(m.models)
		b.ran = func(batch []*task) {
			m.busy += batch[0].infer
			if size := servedItems(batch); size > 0 {
				m.add(s.execs, 1)
				s.stats.batch(size, batch[0], m.w)
			}
		}
	}
	return s
}

// loadCanary loads the canary and unloads it a minute later: its series go.
func (m *tritonModel) loadCanary() {
	m.version++
	m.canary = m.load("canary", strconv.Itoa(m.version), &batcher{largest: 8, base: 5 * time.Millisecond, perItem: 2 * time.Millisecond}, false)
	m.canary.index = 4
	m.w.at(m.w.now+time.Minute, func() {
		m.f.unload(m.canary)
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
		m.add(s.success, 1)
		m.micros(s.request, took)
		m.add(s.hits, 1)
		m.micros(s.hitTime, took)
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

// ensemble sends a request through the tokenizer and the encoder. Each counts
// its part, and the ensemble the whole.
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
				m.add(pipeline.execs, 1)
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
		m.add(s.failures["CANCELED"], 1)
		s.stats.count(statFail, t.Last-t.Arrival)
		return
	case "error":
		m.add(s.failures["BACKEND"], 1)
		s.stats.count(statFail, t.Last-t.Arrival)
		return
	}
	times := [5]time.Duration{t.Last - t.Arrival, t.Scheduled - t.Queued, t.input, t.infer, t.give}
	m.add(s.success, 1)
	m.add(s.count, t.items)
	s.stats.inferences += t.items
	for i, to := range [5]*series{s.request, s.queued, s.input, s.infer, s.output} {
		m.micros(to, times[i])
		s.stats.count([5]tritonStat{statSuccess, statQueue, statInput, statInfer, statOutput}[i], times[i])
		if s.summaries[i] != nil {
			m.w.reg.record(m.w.now, s.summaries[i], math.Floor(float64(times[i])/1e3), 1)
		}
	}
	if s.first != nil {
		m.w.reg.record(m.w.now, s.first, math.Floor(float64(t.First-t.Arrival)/1e6), 1)
	}
	if s.cache {
		m.add(s.misses, 1)
		m.micros(s.missTime, 40*time.Microsecond)
		s.stats.count(statMiss, 40*time.Microsecond)
	}
}

func (m *tritonModel) add(s *series, n int) { m.w.reg.record(m.w.now, s, float64(n), 1) }

// micros adds whole microseconds, as the server does: it cuts the rest off.
func (m *tritonModel) micros(s *series, d time.Duration) {
	m.w.reg.record(m.w.now, s, float64(d/time.Microsecond), 1)
}

// poll reads the GPU and the CPU, and comes again.
func (m *tritonModel) poll() {
	share := math.Min(1, seconds(m.busy-m.seen)/seconds(tritonPoll)/float64(m.w.opt.Engines))
	m.seen = m.busy
	power := 62 + 190*share
	if m.w.now > 0 {
		m.energy += power * seconds(tritonPoll)
	}
	m.f.gpu.set(share, power, m.energy)
	m.f.cpuUtilization.set(math.Round((0.05+0.3*share)*1e4) / 1e4)
	m.w.at(m.w.now+tritonPoll, m.poll)
}

func (m *tritonModel) refresh() {
	for _, s := range append(m.models[:len(m.models):len(m.models)], m.canary) {
		if s != nil && s.batcher != nil {
			s.pending.set(float64(len(s.queue)))
		}
	}
}
