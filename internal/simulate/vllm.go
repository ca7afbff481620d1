package simulate

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// vllmProfile is a vLLM server: engines behind one front end that balances requests over them.
func vllmProfile() profile {
	return profile{name: "vllm", model: "qwen3-8b", start: startVLLM}
}

type vllmModel struct {
	*fleet
	process *process
	http    *httpFamilies
	series  []*llmSeries
	clients *rand.Rand // of the requests of real clients
}

func startVLLM(w *world) (model, error) {
	o := w.opt
	m := &vllmModel{process: newProcess(w), clients: w.stream(streamClients)}
	m.fleet = newFleet(w, m)
	families := newLLMTable(w, o.Hardware, []string{"model_name", "engine"})
	for i := range o.Engines {
		m.series = append(m.series, newLLMSeries(families, o.Hardware, o.Model, strconv.Itoa(i)))
	}
	m.http = newHTTPFamilies(w)
	w.at(0, func() { m.http.handle("/v1/models", "GET", "2xx", 502, 0, 800*time.Microsecond) })
	m.start()
	return m, nil
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
	m.left(q)
	status := "2xx"
	if q.Reason == "error" {
		status = "5xx"
	}
	overhead := time.Millisecond + time.Duration(m.chat.ExpFloat64()*1e6)
	m.w.at(m.w.now+overhead, func() {
		m.http.handle("/v1/chat/completions", "POST", status, 350+5*q.generated, 180+4*q.PromptTokens, m.w.now-q.Arrival)
	})
}

func (m *vllmModel) route(u *url.URL) *answer {
	if u.Path == "/version" {
		return jsonAnswer(http.StatusOK, `{"version":"0.28.0"}`)
	}
	return nil
}

func (m *vllmModel) refresh() {
	for i, e := range m.engines {
		m.series[i].gauges(e)
	}
	m.process.refresh(m.work(), m.w.finished, m.open)
}

// submit takes the request of a real client, which arrives now: it shares the
// engines with those of the load, and shows in the metrics as they do.
func (m *vllmModel) submit(r *completionRequest) *sequence {
	o := m.w.opt
	q := newSequence(m.w, m.clients, m.next)
	q.PromptTokens = min(max(1, r.promptTokens()), o.Hardware.MaxModelLen*3/4)
	q.CachedTokens = min(q.CachedTokens, q.PromptTokens/2/o.Hardware.BlockSize*o.Hardware.BlockSize)
	q.MaxTokens = o.Hardware.MaxModelLen - q.PromptTokens
	if n := r.limit(); n > 0 {
		q.MaxTokens = min(n, q.MaxTokens)
	}
	q.target, q.Reason = max(1, int(lognormal(m.clients, o.Output.Mean, o.Output.CV))), "stop"
	if q.target >= q.MaxTokens || r.IgnoreEOS {
		q.target, q.Reason = q.MaxTokens, "length"
	}
	m.enter(q)
	return q
}

// leave lets a request go whose client has: its next token is its last.
func (m *vllmModel) leave(q *sequence) {
	q.Reason, q.target = "abort", min(q.target, q.generated+1)
}
