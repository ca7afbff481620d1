package simulate

import (
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// vllmProfile is a vLLM server: engines behind one front end that balances
// requests over them.
func vllmProfile() profile {
	return profile{name: "vllm", model: "qwen3-8b", start: startVLLM}
}

type vllmModel struct {
	*fleet
	process *process
	http    *httpFamilies
	series  []*llmSeries
}

func startVLLM(w *world) (model, error) {
	o := w.opt
	m := &vllmModel{process: newProcess(w)}
	m.fleet = newFleet(w, m)
	families := newLLMFamilies(w.reg, o.Hardware, []string{"model_name", "engine"})
	for i := range o.Engines {
		m.series = append(m.series, families.series(o.Hardware, o.MFU, o.Model, strconv.Itoa(i)))
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
