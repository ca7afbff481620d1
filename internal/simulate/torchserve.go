package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// torchserveProfile is the metrics port of TorchServe 0.12 in the prometheus
// mode: gauges of the last request only, system gauges of every 60 s, and a
// counter of requests that counts the scrapes too. FlagsOff is the mode log,
// whose body is empty. The generation "legacy" is TorchServe 0.7: three
// families with a label uuid of the process, and nothing before the first
// request.
func torchserveProfile() profile {
	return profile{name: "torchserve", model: "resnet-18", flag: "metrics_mode=prometheus", start: startTorchServe}
}

const (
	torchserveHost = "torchserve-0"
	// torchserveSystem is how often the metrics of the host are collected.
	torchserveSystem = 60 * time.Second
)

type torchserveModel struct {
	w      *world
	rng    *rand.Rand
	legacy bool
	models []*torchserveServed
	log    *torchserveLog
	next   int

	ok, failed, queueTime, threadTime *series
	system                            map[string]*series
}

type torchserveServed struct {
	*batcher
	name                                           string
	requests, latency, queued, handler, prediction *series
}

func startTorchServe(w *world) (model, error) {
	legacy, err := generation(w, "legacy")
	if err != nil {
		return nil, err
	}
	w.reg.d = javaDialect()
	w.reg.d.bare = legacy
	m := &torchserveModel{w: w, rng: w.stream(streamPipeline), legacy: legacy, log: newTorchserveLog(w), system: map[string]*series{}}
	labels, end := []string{"model_name", "model_version", "hostname"}, torchserveHost
	if legacy {
		labels, end = []string{"uuid", "model_name", "model_version"}, m.uuid()
	}
	names := []string{w.opt.Model, "bert-qa"}
	m.registerModels(w, names, labels, end)
	if !legacy {
		m.registerHost(w, names)
		// A hash map decides the order of the body.
		rng := rand.New(rand.NewPCG(w.opt.Seed, 0))
		rng.Shuffle(len(w.reg.families), func(i, k int) {
			w.reg.families[i], w.reg.families[k] = w.reg.families[k], w.reg.families[i]
		})
		m.collect()
	}
	w.arrivals = newArrivals(w, m.arrive)
	return m, nil
}

// uuid is another one in each process.
func (m *torchserveModel) uuid() string {
	a, b := m.rng.Uint64(), m.rng.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>52, b&(1<<48-1))
}

func torchserveHelp(kind, unit string) string {
	return "Torchserve prometheus " + kind + " metric with unit: " + unit
}

func (m *torchserveModel) registerModels(w *world, names, labels []string, end string) {
	r := w.reg
	requests := r.counter("ts_inference_requests_total", torchserveHelp("counter", "Count"), labels...)
	latency := r.counter("ts_inference_latency_microseconds", torchserveHelp("counter", "Microseconds"), labels...)
	queued := r.counter("ts_queue_latency_microseconds", torchserveHelp("counter", "Microseconds"), labels...)
	var handler, prediction *family
	if !m.legacy {
		handler = r.gauge("HandlerTime", torchserveHelp("gauge", "ms"), "ModelName", "Level", "Hostname")
		prediction = r.gauge("PredictionTime", torchserveHelp("gauge", "ms"), "ModelName", "Level", "Hostname")
	}
	for i, name := range names {
		l := []string{name, "1.0", end}
		if m.legacy {
			l = []string{end, name, "1.0"}
		}
		s := &torchserveServed{name: name, requests: requests.lazy(l...), latency: latency.lazy(l...), queued: queued.lazy(l...),
			handler: handler.lazy(name, "Model", torchserveHost), prediction: prediction.lazy(name, "Model", torchserveHost)}
		s.batcher = &batcher{w: w, rng: m.rng, index: i, free: w.opt.Engines, largest: 4,
			base: time.Duration(14+10*i) * time.Millisecond, perItem: 3 * time.Millisecond,
			ran: func(batch []*task) { m.log.handled(batch, name) }}
		m.models = append(m.models, s)
	}
}

// registerHost registers the families of the frontend and of the host. Those of
// a GPU have none to show.
func (m *torchserveModel) registerHost(w *world, names []string) {
	r := w.reg
	counter := func(name string) *series {
		return r.counter(name, torchserveHelp("counter", "Count"), "Level", "Hostname").lazy("Host", torchserveHost)
	}
	m.ok = counter("Requests2XX")
	counter("Requests4XX")
	m.failed = counter("Requests5XX")
	gauge := func(name, unit string) *family {
		return r.gauge(name, torchserveHelp("gauge", unit), "Level", "Hostname")
	}
	m.queueTime = gauge("QueueTime", "Milliseconds").lazy("Host", torchserveHost)
	m.threadTime = gauge("WorkerThreadTime", "Milliseconds").lazy("Host", torchserveHost)
	load := r.gauge("WorkerLoadTime", torchserveHelp("gauge", "Milliseconds"), "WorkerName", "Level", "Hostname")
	for i, name := range names {
		for k := range w.opt.Engines {
			worker := fmt.Sprintf("W-%d-%s_1.0", 9000+i*w.opt.Engines+k, name)
			took := 3120 + float64(900*i+17*k)
			load.with(0, worker, "Host", torchserveHost).set(took)
			m.log.line(frontendLog, "WorkerLoadTime", "Milliseconds", took, "WorkerName:"+worker+",Level:Host", "")
		}
	}
	for _, g := range [][2]string{{"CPUUtilization", "Percent"}, {"MemoryUtilization", "Percent"}, {"MemoryUsed", "Megabytes"},
		{"MemoryAvailable", "Megabytes"}, {"DiskUtilization", "Percent"}, {"DiskUsage", "Gigabytes"}, {"DiskAvailable", "Gigabytes"}} {
		m.system[g[0]] = gauge(g[0], g[1]).with(0, "Host", torchserveHost)
	}
	for _, g := range [][2]string{{"GPUUtilization", "Percent"}, {"GPUMemoryUtilization", "Percent"}, {"GPUMemoryUsed", "Megabytes"}} {
		r.gauge(g[0], torchserveHelp("gauge", g[1]), "Level", "DeviceId", "Hostname")
	}
}

// collect reads the host, and comes again.
func (m *torchserveModel) collect() {
	busy := 0
	for _, s := range m.models {
		busy += s.active
	}
	used := 5200 + 11.5*float64(busy) + 64*m.rng.Float64()
	for _, g := range []struct {
		name, unit string
		v          float64
	}{
		{"CPUUtilization", "Percent", math.Min(100, 4+7.5*float64(busy))}, {"MemoryUsed", "Megabytes", used},
		{"MemoryAvailable", "Megabytes", 32000 - used}, {"MemoryUtilization", "Percent", used / 320},
		{"DiskUsage", "Gigabytes", 71.5}, {"DiskAvailable", "Gigabytes", 178.5}, {"DiskUtilization", "Percent", 28.6},
	} {
		v := math.Round(g.v*10) / 10
		m.system[g.name].set(v)
		m.log.host(g.name, g.unit, v)
	}
	m.w.at(m.w.now+torchserveSystem, m.collect)
}

func (m *torchserveModel) arrive() {
	which, fate := m.rng.IntN(len(m.models)), m.rng.Float64()
	s := m.models[which]
	t := &task{items: 1, then: func(t *task) { m.ended(s, t) }}
	t.Request = Request{ID: m.next, Arrival: m.w.now, Reason: "stop"}
	if fate < max(m.w.opt.ErrorShare, 0) {
		t.Reason = "error"
	}
	m.next++
	m.record(s.requests, 1) // at arrival
	m.log.model("ts_inference_requests_total", "Count", 1, s.name)
	s.add(t)
}

func (m *torchserveModel) record(s *series, v float64) {
	if s != nil {
		m.w.reg.record(m.w.now, s, v, 1)
	}
}

// ended counts a request that was answered. A failed one has no latency.
func (m *torchserveModel) ended(s *torchserveServed, t *task) {
	t.settle(m.w)
	if t.Reason == "error" {
		m.record(m.failed, 1)
		m.log.host("Requests5XX", "Count", 1)
		return
	}
	latency, queued := float64(t.Last-t.Arrival)/1e3, float64(t.Scheduled-t.Queued)/1e3
	m.record(m.ok, 1)
	m.record(s.latency, latency)
	m.record(s.queued, queued)
	m.log.host("Requests2XX", "Count", 1)
	m.log.model("ts_inference_latency_microseconds", "Microseconds", latency, s.name)
	m.log.model("ts_queue_latency_microseconds", "Microseconds", queued, s.name)
	m.log.host("QueueTime", "Milliseconds", hundredths(t.Scheduled-t.Queued))
	m.log.host("WorkerThreadTime", "Milliseconds", hundredths(t.input+t.give))
	ms := func(of *series, d time.Duration) {
		if of != nil {
			of.family.show(of, m.w.now)
			of.set(hundredths(d))
		}
	}
	ms(m.queueTime, t.Scheduled-t.Queued)
	ms(m.threadTime, t.input+t.give)
	ms(s.handler, t.infer)
	ms(s.prediction, t.Last-t.Scheduled)
}

func (m *torchserveModel) refresh() {}

// scraped counts a scrape as a request that was answered.
func (m *torchserveModel) scraped() { m.record(m.ok, 1) }

func (m *torchserveModel) route(u *url.URL) *answer {
	names := u.Query()["name[]"]
	switch {
	case u.Path != "/metrics":
		return nil
	case m.w.opt.FlagsOff:
		return &answer{status: http.StatusOK, contentType: m.w.reg.d.contentType}
	case len(names) == 0:
		return nil
	}
	defer m.scraped()
	return &answer{status: http.StatusOK, contentType: m.w.reg.d.contentType, body: samplesNamed(m.w.reg.appendText(nil), names)}
}

// samplesNamed keeps the samples of these names, and the headers before them.
// The names are those of samples, not of families.
func samplesNamed(body []byte, names []string) (kept []byte) {
	header := ""
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "#") {
			if strings.HasPrefix(line, "# HELP") {
				header = ""
			}
			header += line
			continue
		}
		if slices.Contains(names, line[:strings.IndexAny(line, "{ ")]) {
			kept = append(append(kept, header...), line...)
			header = ""
		}
	}
	return kept
}
