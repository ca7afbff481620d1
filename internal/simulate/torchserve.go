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

// torchserveProfile is the metrics port of TorchServe 0.12 in the prometheus mode: gauges of the last request only,
// system gauges of every 60 s, and a counter of requests that counts the scrapes too. FlagsOff is the mode log, whose
// body is empty. The generation "legacy" is TorchServe 0.7: three families with a label uuid of the process, and
// nothing before the first request.
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

	host *panel // nil in the generation legacy
}

type torchserveServed struct {
	*batcher
	name           string
	model, handler *panel
}

func startTorchServe(w *world) (model, error) {
	legacy, err := generation(w, "legacy")
	if err != nil {
		return nil, err
	}
	w.reg.d = javaDialect()
	w.reg.d.bare = legacy
	m := &torchserveModel{w: w, rng: w.stream(streamPipeline), legacy: legacy, log: newTorchserveLog(w)}
	v := variant{labels: map[string][]string{
		"": {"model_name", "model_version", "hostname"}, "host": {"Level", "Hostname"}, "handler": {"ModelName", "Level",
			"Hostname"},
		"worker": {"WorkerName", "Level", "Hostname"}, "device": {"Level", "DeviceId", "Hostname"},
	}}
	if !legacy {
		v.with = []string{"modern"}
		t := w.table("torchserve", v)
		m.startModels(t, func(name string) []string { return []string{name, "1.0", torchserveHost} })
		m.startHost(t)
		// A hash map decides the order of the body.
		rng := rand.New(rand.NewPCG(w.opt.Seed, 0))
		rng.Shuffle(len(w.reg.families), func(i, k int) {
			w.reg.families[i], w.reg.families[k] = w.reg.families[k], w.reg.families[i]
		})
		m.collect()
	} else {
		v.labels[""] = []string{"uuid", "model_name", "model_version"}
		id := m.uuid()
		m.startModels(w.table("torchserve", v), func(name string) []string { return []string{id, name, "1.0"} })
	}
	w.arrivals = newArrivals(w, m.arrive)
	return m, nil
}

// uuid is another one in each process.
func (m *torchserveModel) uuid() string {
	a, b := m.rng.Uint64(), m.rng.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>52, b&(1<<48-1))
}

func (m *torchserveModel) startModels(t *table, labels func(name string) []string) {
	for i, name := range []string{m.w.opt.Model, "bert-qa"} {
		s := &torchserveServed{name: name, model: t.panel("", labels(name)...)}
		if !m.legacy {
			s.handler = t.panel("handler", name, "Model", torchserveHost)
		}
		s.batcher = &batcher{w: m.w, rng: m.rng, index: i, free: m.w.opt.Engines, largest: 4,
			base: time.Duration(14+10*i) * time.Millisecond, perItem: 3 * time.Millisecond,
			ran: func(batch []*task) { m.log.handled(batch, name) }}
		m.models = append(m.models, s)
	}
}

// startHost makes the series of the frontend and of the host. The families of a GPU have none to show.
func (m *torchserveModel) startHost(t *table) {
	m.host = t.panel("host", "Host", torchserveHost)
	for i, s := range m.models {
		for k := range m.w.opt.Engines {
			worker := fmt.Sprintf("W-%d-%s_1.0", 9000+i*m.w.opt.Engines+k, s.name)
			took := 3120 + float64(900*i+17*k)
			t.panel("worker", worker, "Host", torchserveHost).set("WorkerLoadTime", took)
			m.log.line(frontendLog, "WorkerLoadTime", "Milliseconds", took, "WorkerName:"+worker+",Level:Host", "")
		}
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
		m.host.set(g.name, v)
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
	s.model.record("ts_inference_requests_total", 1) // at arrival
	m.log.model("ts_inference_requests_total", "Count", 1, s.name)
	s.add(t)
}

// ended counts a request that was answered. A failed one has no latency.
func (m *torchserveModel) ended(s *torchserveServed, t *task) {
	t.settle(m.w)
	if t.Reason == "error" {
		m.host.record("Requests5XX", 1)
		m.log.host("Requests5XX", "Count", 1)
		return
	}
	latency, queued := float64(t.Last-t.Arrival)/1e3, float64(t.Scheduled-t.Queued)/1e3
	m.host.record("Requests2XX", 1)
	s.model.record("ts_inference_latency_microseconds", latency)
	s.model.record("ts_queue_latency_microseconds", queued)
	m.log.host("Requests2XX", "Count", 1)
	m.log.model("ts_inference_latency_microseconds", "Microseconds", latency, s.name)
	m.log.model("ts_queue_latency_microseconds", "Microseconds", queued, s.name)
	m.log.host("QueueTime", "Milliseconds", hundredths(t.Scheduled-t.Queued))
	m.log.host("WorkerThreadTime", "Milliseconds", hundredths(t.input+t.give))
	m.host.show("QueueTime", hundredths(t.Scheduled-t.Queued))
	m.host.show("WorkerThreadTime", hundredths(t.input+t.give))
	s.handler.show("HandlerTime", hundredths(t.infer))
	s.handler.show("PredictionTime", hundredths(t.Last-t.Scheduled))
}

func (m *torchserveModel) refresh() {}

// scraped counts a scrape as a request that was answered.
func (m *torchserveModel) scraped() { m.host.record("Requests2XX", 1) }

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
	return &answer{status: http.StatusOK, contentType: m.w.reg.d.contentType,
		body: samplesNamed(m.w.reg.appendText(nil), names)}
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
