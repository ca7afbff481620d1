package simulate

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// sglangProfile is an SGLang server. Its tokenizer side counts a request when it
// has finished; its scheduler side shows itself at each prefill and each fortieth
// decode step, and holds what it showed last.
func sglangProfile() profile {
	return profile{name: "sglang", model: "qwen3-8b", flag: "--enable-metrics", start: startSGLang}
}

const sglangLogInterval = 40 // decode steps

type sglangModel struct {
	*fleet
	schedulers []*sglangScheduler
	t          sglangTokenizer
}

// sglangTokenizer are the series of the tokenizer process.
type sglangTokenizer struct {
	requests, aborted, prompt, generated, cachedDevice, cachedTotal *series
	ttft, e2e, promptHist, uncachedHist, generatedHist              *series
	gaps                                                            tokenGaps
}

func startSGLang(w *world) (model, error) {
	w.reg.d = multiprocDialect()
	m := &sglangModel{}
	m.fleet = newFleet(w, m)
	f := newSGLangFamilies(w)
	m.t = f.tokenizer(w)
	for i := range w.opt.Engines {
		m.schedulers = append(m.schedulers, f.scheduler(w, i))
	}
	m.start()
	return m, nil
}

func (m *sglangModel) route(u *url.URL) *answer {
	switch {
	case u.Path == "/metrics" && m.w.opt.FlagsOff:
		return missing()
	case u.Path == "/version", u.Path == "/get_server_info":
		return jsonAnswer(http.StatusOK, `{"version":"0.5.20"}`)
	}
	return nil
}

// refresh is empty: nothing of an SGLang server is a function of the present but
// the time its schedulers idle.
func (m *sglangModel) refresh() {
	for i, e := range m.engines {
		idle := m.w.now - e.work
		if e.busy {
			idle -= m.w.now - e.started
		}
		m.schedulers[i].idle.set(seconds(idle))
		m.schedulers[i].forward["decode"].set(seconds(m.schedulers[i].decodeTime))
		m.schedulers[i].forward["extend"].set(seconds(m.schedulers[i].prefillTime))
	}
}

func (m *sglangModel) admitted(e *engine, q *sequence) {
	s := m.schedulers[e.index]
	s.queue.record(m.w, seconds(q.Scheduled-q.Queued))
	s.input += q.PromptTokens - q.CachedTokens
	s.hit += q.CachedTokens
	s.hitRate = float64(q.CachedTokens) / float64(q.PromptTokens)
	s.prefills = true
}

func (m *sglangModel) preempted(e *engine, q *sequence) {
	s := m.schedulers[e.index]
	s.retracted.record(m.w, 1)
	s.retractedIn.record(m.w, float64(q.PromptTokens))
	s.retractedOut.record(m.w, float64(q.generated))
	s.lastRetracted.set(1)
}

func (m *sglangModel) token(e *engine, q *sequence, gap time.Duration) {
	s := m.schedulers[e.index]
	s.decoded++
	if gap >= 0 {
		m.t.gaps.add(m.w, gap)
		return
	}
	r := m.w.reg
	r.record(m.w.now, m.t.ttft, seconds(m.w.now-q.Arrival), 1)
	s.stage["request_process"].record(m.w, seconds(q.Queued-q.Arrival))
	s.stage["prefill_forward"].record(m.w, seconds(q.First-q.Scheduled))
}

func (m *sglangModel) stepped(e *engine, _, _ int) {
	m.t.gaps.flush(m.w)
	s, took := m.schedulers[e.index], m.w.now-e.started
	if e.prefill > 0 {
		s.prefillTime += took
		s.passes["prefill_none"].record(m.w, 1)
	} else {
		s.decodeTime += took
		s.passes["decode_cuda_graph"].record(m.w, 1)
	}
	s.steps++
	if s.prefills || s.steps%sglangLogInterval == 0 {
		s.show(m.w, e)
	}
}

func (m *sglangModel) finished(e *engine, q *sequence) {
	m.left(q)
	r, now, t := m.w.reg, m.w.now, &m.t
	if q.served() {
		r.record(now, t.requests, 1, 1)
		r.record(now, t.e2e, seconds(q.Last-q.Arrival), 1)
		r.record(now, t.prompt, float64(q.PromptTokens), 1)
		r.record(now, t.generated, float64(q.generated), 1)
		if q.CachedTokens > 0 {
			r.record(now, t.cachedDevice, float64(q.CachedTokens), 1)
			r.record(now, t.cachedTotal, float64(q.CachedTokens), 1)
		}
		r.record(now, t.promptHist, float64(q.PromptTokens), 1)
		r.record(now, t.uncachedHist, float64(q.PromptTokens-q.CachedTokens), 1)
		r.record(now, t.generatedHist, float64(q.generated), 1)
	} else {
		r.record(now, t.aborted, 1, 1)
	}
	if left := slices.ContainsFunc(e.running, func(o *sequence) bool { return o.generated < o.target }); !left && len(e.waiting) == 0 {
		m.schedulers[e.index].rest(m.w, e)
	}
}

// ranked is one series for each rank that reports. All ranks report the same.
type ranked []*series

func (c ranked) set(v float64) {
	for _, s := range c {
		s.set(v)
	}
}

func (c ranked) record(w *world, v float64) {
	for _, s := range c {
		w.reg.record(w.now, s, v, 1)
	}
}

// sglangScheduler are the series of the schedulers of one engine, and what they
// have not shown yet.
type sglangScheduler struct {
	input, hit, decoded     int
	hitRate                 float64
	prefills                bool
	steps                   int
	prefillTime, decodeTime time.Duration
	shown                   time.Duration // when
	shownTokens             int

	running, waiting                                      []ranked // all, then by priority
	throughput, hits, seqLens, usage, fullUsage, used     ranked
	available, kvUsed, lastRetracted, utilization, idle   ranked
	compute, cached, decode, effectiveInput, effectiveHit ranked
	queue, retracted, retractedIn, retractedOut           ranked
	stage, passes, forward                                map[string]ranked
}

// show publishes the state of an engine, as the scheduler does when it logs.
func (s *sglangScheduler) show(w *world, e *engine) {
	s.prefills = false
	s.flush(w)
	for i := range s.running {
		mine := func(q *sequence) bool { return i == 0 || q.ID%(len(s.running)-1) == i-1 }
		s.running[i].set(count(e.running, mine))
		s.waiting[i].set(count(e.waiting, mine))
	}
	if took := w.now - s.shown; took > 0 {
		s.throughput.set(float64(s.shownTokens) / seconds(took))
	}
	s.shown, s.shownTokens = w.now, 0
	lengths := 0
	for _, q := range e.running {
		lengths += q.total()
	}
	s.seqLens.set(float64(lengths))
	s.hits.set(s.hitRate)
	s.pool(e)
}

// rest publishes that an engine has nothing to do. The sum of sequence lengths
// and the hit rate are not touched.
func (s *sglangScheduler) rest(w *world, e *engine) {
	s.flush(w)
	for i := range s.running {
		s.running[i].set(0)
		s.waiting[i].set(0)
	}
	s.throughput.set(0)
	s.shown, s.shownTokens = w.now, 0
	s.used.set(0)
	s.kvUsed.set(0)
	s.usage.set(0)
	s.fullUsage.set(0)
	s.utilization.set(0)
	s.available.set(float64((e.hw.Blocks - 1) * e.hw.BlockSize))
}

// flush publishes the live token counters.
func (s *sglangScheduler) flush(w *world) {
	for _, p := range []struct {
		to []ranked
		n  *int
	}{{[]ranked{s.compute, s.effectiveInput}, &s.input}, {[]ranked{s.cached, s.effectiveHit}, &s.hit}} {
		if *p.n > 0 {
			for _, c := range p.to {
				c.record(w, float64(*p.n))
			}
			*p.n = 0
		}
	}
	if s.decoded > 0 {
		s.decode.record(w, float64(s.decoded))
		s.shownTokens += s.decoded
		s.decoded = 0
	}
}

func (s *sglangScheduler) pool(e *engine) {
	total, free := (e.hw.Blocks-1)*e.hw.BlockSize, e.free*e.hw.BlockSize
	share := math.Round(float64(total-free)/float64(total)*100) / 100
	s.used.set(float64(total - free))
	s.kvUsed.set(float64(total - free))
	s.available.set(float64(free))
	s.usage.set(share)
	s.fullUsage.set(share)
	s.utilization.set(float64(len(e.running)) / float64(e.hw.MaxSequences))
}

func count(queue []*sequence, of func(*sequence) bool) float64 {
	n := 0
	for _, q := range queue {
		if of(q) {
			n++
		}
	}
	return float64(n)
}

// labels of the scheduler side, in the order of the label values.
func sglangSchedulerLabels() []string {
	return []string{"engine_type", "model_name", "tp_rank", "pp_rank", "moe_ep_rank", "dp_rank"}
}

// ranks are the label values of the ranks of an engine that report. dp_rank is
// "" and so absent when there is one engine only.
func sglangRanks(w *world, engine int) [][]string {
	var out [][]string
	for r := range max(1, w.opt.Ranks) {
		l := []string{"unified", w.opt.Model, strconv.Itoa(r), "0", "0"}
		if w.opt.Engines > 1 {
			l = append(l, strconv.Itoa(engine))
		}
		out = append(out, l)
	}
	return out
}
