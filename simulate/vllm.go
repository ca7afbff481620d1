package simulate

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// vllmProfile is a vLLM server: engines behind one front end that balances
// requests over them.
func vllmProfile() profile {
	return profile{name: "vllm", model: "qwen3-8b", start: startVLLM}
}

type vllmModel struct {
	w       *world
	process *process
	http    *httpFamilies
	series  []*llmSeries
	engines []*engine
	lengths *rand.Rand
	chat    *rand.Rand
	next    int // ID of the next request
	open    int
}

func startVLLM(w *world) (model, error) {
	o := w.opt
	m := &vllmModel{w: w, process: newProcess(w), lengths: w.stream(streamLengths), chat: w.stream(streamHTTP)}
	families := newLLMFamilies(w.reg, o.Hardware, []string{"model_name", "engine"})
	for i := range o.Engines {
		m.series = append(m.series, families.series(o.Hardware, o.MFU, o.Model, strconv.Itoa(i)))
		m.engines = append(m.engines, newEngine(w, o.Hardware, i, m))
	}
	m.http = newHTTPFamilies(w)
	w.at(0, func() { m.http.handle("/v1/models", "GET", "2xx", 502, 0, 800*time.Microsecond) })
	w.arrivals = newArrivals(w, m.arrive)
	return m, nil
}

// arrive takes a request in; after tokenisation it goes to the engine with the
// least load.
func (m *vllmModel) arrive() {
	q := newSequence(m.w, m.lengths, m.next)
	m.next++
	m.open++
	front := 1500*time.Microsecond + time.Duration(q.PromptTokens)*1500*time.Nanosecond +
		time.Duration(m.chat.ExpFloat64()*3e5)
	m.w.at(m.w.now+front, func() {
		best := m.engines[0]
		for _, e := range m.engines[1:] {
			if e.load() < best.load() {
				best = e
			}
		}
		best.add(q)
	})
}

// newSequence draws a request that arrives now.
func newSequence(w *world, rng *rand.Rand, id int) *sequence {
	o := w.opt
	limit := o.Hardware.MaxModelLen
	prompt := min(max(1, int(lognormal(rng, o.Prompt.Mean, o.Prompt.CV))), limit*3/4)
	output := max(1, int(lognormal(rng, o.Output.Mean, o.Output.CV)))
	most := min([]int{128, 256, 512, 1024, 2048}[rng.IntN(5)], limit-prompt)
	q := &sequence{allowed: unlimited, target: min(output, most)}
	q.Request = Request{ID: id, Arrival: w.now, PromptTokens: prompt, MaxTokens: most, Reason: "stop"}
	if output >= most {
		q.Reason = "length"
	}
	share, fate, cut := rng.Float64(), rng.Float64(), rng.Float64()
	if share < o.PrefixShare {
		block := o.Hardware.BlockSize
		q.CachedTokens = prompt / 2 / block * block
	}
	switch abort := max(o.AbortShare, 0); {
	case fate < abort:
		q.Reason = "abort"
	case fate < abort+max(o.ErrorShare, 0):
		q.Reason = "error"
	default:
		return q
	}
	q.target = 1 + int(cut*float64(q.target-1))
	return q
}

func (m *vllmModel) admitted(e *engine, q *sequence)  { m.series[e.index].admitted(e, q) }
func (m *vllmModel) preempted(e *engine, q *sequence) { m.series[e.index].preempted(e, q) }
func (m *vllmModel) token(e *engine, q *sequence, gap time.Duration) {
	m.series[e.index].token(e, q, gap)
}

func (m *vllmModel) stepped(e *engine, prompt, generated int) {
	m.series[e.index].stepped(e, prompt, generated)
}

func (m *vllmModel) finished(e *engine, q *sequence) {
	m.series[e.index].finished(e, q)
	m.w.finished++
	m.open--
	if m.w.opt.KeepTruth {
		m.w.requests = append(m.w.requests, q.Request)
	}
	status := "2xx"
	if q.Reason == "error" {
		status = "5xx"
	}
	overhead := time.Millisecond + time.Duration(m.chat.ExpFloat64()*1e6)
	m.w.at(m.w.now+overhead, func() {
		m.http.handle("/v1/chat/completions", "POST", status, 350+5*q.generated, 180+4*q.PromptTokens, m.w.now-q.Arrival)
	})
}

func (m *vllmModel) refresh() {
	var work time.Duration
	for i, e := range m.engines {
		m.series[i].gauges(e)
		work += e.work
	}
	m.process.refresh(work, m.w.finished, m.open)
}
