package simulate

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// sglangProfile is an SGLang server. Its tokenizer side counts a request when it has finished; its scheduler side shows
// itself at each prefill and each fortieth decode step, and holds what it showed last.
func sglangProfile() profile {
	return profile{name: "sglang", model: "qwen3-8b", flag: "--enable-metrics", start: startSGLang}
}

const sglangLogInterval = 40 // decode steps

type sglangModel struct {
	*fleet
	*panel     // of the tokenizer process
	schedulers []*sglangScheduler
	gaps       tokenGaps
}

func startSGLang(w *world) (model, error) {
	w.reg.d = multiprocDialect()
	m := &sglangModel{}
	m.fleet = newFleet(w, m)
	tokenizer := []string{"engine_type", "model_name"}
	rank := append(slices.Clip(tokenizer), "tp_rank", "pp_rank", "moe_ep_rank")
	if w.opt.Engines > 1 {
		rank = append(rank, "dp_rank")
	}
	queue := rank
	if w.opt.Priorities > 0 {
		queue = append(slices.Clip(rank), "priority")
	}
	t := w.table("sglang", variant{labels: map[string][]string{"": tokenizer, "rank": rank, "queue": queue}})
	m.panel = t.panel("", "unified", w.opt.Model)
	m.gaps.to = m.of("inter_token_latency_seconds")
	m.show("startup_time_seconds", 74.25, "load_weight")
	m.show("startup_time_seconds", 0.375, "kv_cache_allocation")
	m.show("startup_time_seconds", 96.5, "scheduler_e2e")
	m.show("startup_time_seconds", 102.25, "tokenizer_e2e")
	for i := range w.opt.Engines {
		m.schedulers = append(m.schedulers, newSGLangScheduler(t, i))
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

// refresh is empty: nothing of an SGLang server is a function of the present but the time its schedulers idle.
func (m *sglangModel) refresh() {
	for i, e := range m.engines {
		idle, s := m.w.now-e.work, m.schedulers[i]
		if e.busy {
			idle -= m.w.now - e.started
		}
		s.set("scheduler_idle_seconds", seconds(idle))
		s.set("forward_execution_seconds", seconds(s.decodeTime), "decode")
		s.set("forward_execution_seconds", seconds(s.prefillTime), "extend")
	}
}

func (m *sglangModel) admitted(e *engine, q *sequence) {
	s := m.schedulers[e.index]
	s.record("queue_time_seconds", seconds(q.Scheduled-q.Queued))
	s.input += q.PromptTokens - q.CachedTokens
	s.hit += q.CachedTokens
	s.hitRate = float64(q.CachedTokens) / float64(q.PromptTokens)
	s.prefills = true
}

func (m *sglangModel) preempted(e *engine, q *sequence) {
	s := m.schedulers[e.index]
	s.record("num_retracted_requests", 1)
	s.record("num_retracted_input_tokens", float64(q.PromptTokens))
	s.record("num_retracted_output_tokens", float64(q.generated))
	s.set("num_retracted_reqs", 1)
}

func (m *sglangModel) token(e *engine, q *sequence, gap time.Duration) {
	s := m.schedulers[e.index]
	s.decoded++
	if gap >= 0 {
		m.gaps.add(m.w, gap)
		return
	}
	m.record("time_to_first_token_seconds", seconds(m.w.now-q.Arrival))
	s.record("per_stage_req_latency_seconds", seconds(q.Queued-q.Arrival), "request_process")
	s.record("per_stage_req_latency_seconds", seconds(q.First-q.Scheduled), "prefill_forward")
}

func (m *sglangModel) stepped(e *engine, _, _ int) {
	m.gaps.flush(m.w)
	s, took := m.schedulers[e.index], m.w.now-e.started
	if e.prefill > 0 {
		s.prefillTime += took
		s.record("cuda_graph_passes", 1, "prefill_none")
	} else {
		s.decodeTime += took
		s.record("cuda_graph_passes", 1, "decode_cuda_graph")
	}
	s.steps++
	if s.prefills || s.steps%sglangLogInterval == 0 {
		s.show(m.w, e)
	}
}

func (m *sglangModel) finished(e *engine, q *sequence) {
	m.left(q)
	if q.served() {
		m.record("num_requests", 1)
		m.record("e2e_request_latency_seconds", seconds(q.Last-q.Arrival))
		m.record("prompt_tokens", float64(q.PromptTokens))
		m.record("generation_tokens", float64(q.generated))
		m.grow("cached_tokens", q.CachedTokens, "device")
		m.grow("cached_tokens", q.CachedTokens, "total")
		m.record("prompt_tokens_histogram", float64(q.PromptTokens))
		m.record("uncached_prompt_tokens_histogram", float64(q.PromptTokens-q.CachedTokens))
		m.record("generation_tokens_histogram", float64(q.generated))
	} else {
		m.record("num_aborted_requests", 1)
	}
	if left := slices.ContainsFunc(e.running, func(o *sequence) bool { return o.generated < o.target }); !left &&
		len(e.waiting) == 0 {
		m.schedulers[e.index].rest(m.w, e)
	}
}

// ranked is one panel for each rank that reports. All ranks report the same.
type ranked []*panel

func (c ranked) set(name string, v float64, more ...string) {
	for _, p := range c {
		p.set(name, v, more...)
	}
}

func (c ranked) record(name string, v float64, more ...string) {
	for _, p := range c {
		p.record(name, v, more...)
	}
}

// sglangScheduler are the series of the schedulers of one engine, and what they have not shown yet.
type sglangScheduler struct {
	ranked
	queues                  []ranked // all, then by priority
	input, hit, decoded     int
	hitRate                 float64
	prefills                bool
	steps                   int
	prefillTime, decodeTime time.Duration
	shown                   time.Duration // when
	shownTokens             int
}

func newSGLangScheduler(t *table, engine int) *sglangScheduler {
	o, hw := t.w.opt, t.w.opt.Hardware
	s := &sglangScheduler{queues: make([]ranked, 1+o.Priorities)}
	var ranks [][]string
	for r := range max(1, o.Ranks) {
		l := []string{"unified", o.Model, strconv.Itoa(r), "0", "0"}
		if o.Engines > 1 {
			l = append(l, strconv.Itoa(engine))
		}
		ranks = append(ranks, slices.Clip(l))
		s.ranked = append(s.ranked, t.panel("rank", l...))
	}
	for i := range s.queues {
		for _, l := range ranks {
			switch {
			case i > 0:
				l = append(l, strconv.Itoa(i-1))
			case o.Priorities > 0:
				l = append(l, "") // of all priorities, beside those of each
			}
			s.queues[i] = append(s.queues[i], t.panel("queue", l...))
		}
	}
	for _, p := range [][2]string{{"prefill_effective_tokens", "input"}, {"prefill_effective_tokens", "device_hit"},
		{"forward_execution_seconds", "extend"}, {"forward_execution_seconds", "decode"}} {
		for _, r := range s.ranked {
			r.show(p[0], 0, p[1])
		}
	}
	s.set("max_total_num_tokens", float64((hw.Blocks-1)*hw.BlockSize))
	s.set("page_size", float64(hw.BlockSize))
	s.set("num_pages", float64(hw.Blocks-1))
	s.set("context_len", float64(hw.MaxModelLen))
	s.set("kv_available_tokens", float64((hw.Blocks-1)*hw.BlockSize))
	return s
}

// show publishes the state of an engine, as the scheduler does when it logs.
func (s *sglangScheduler) show(w *world, e *engine) {
	s.prefills = false
	s.flush()
	for i := range s.queues {
		mine := func(q *sequence) bool { return i == 0 || q.ID%(len(s.queues)-1) == i-1 }
		s.queues[i].set("num_running_reqs", count(e.running, mine))
		s.queues[i].set("num_queue_reqs", count(e.waiting, mine))
	}
	if took := w.now - s.shown; took > 0 {
		s.set("gen_throughput", float64(s.shownTokens)/seconds(took))
	}
	s.shown, s.shownTokens = w.now, 0
	lengths := 0
	for _, q := range e.running {
		lengths += q.total()
	}
	s.set("decode_sum_seq_lens", float64(lengths))
	s.set("cache_hit_rate", s.hitRate)
	total, free := (e.hw.Blocks-1)*e.hw.BlockSize, e.free*e.hw.BlockSize
	share := math.Round(float64(total-free)/float64(total)*100) / 100
	s.pool(total-free, free, share, float64(len(e.running))/float64(e.hw.MaxSequences))
}

// rest publishes that an engine has nothing to do. The sum of sequence lengths and the hit rate are not touched.
func (s *sglangScheduler) rest(w *world, e *engine) {
	s.flush()
	for _, q := range s.queues {
		q.set("num_running_reqs", 0)
		q.set("num_queue_reqs", 0)
	}
	s.set("gen_throughput", 0)
	s.shown, s.shownTokens = w.now, 0
	s.pool(0, (e.hw.Blocks-1)*e.hw.BlockSize, 0, 0)
}

// flush publishes the live token counters.
func (s *sglangScheduler) flush() {
	if s.input > 0 {
		s.record("realtime_tokens", float64(s.input), "prefill_compute")
		s.record("prefill_effective_tokens", float64(s.input), "input")
	}
	if s.hit > 0 {
		s.record("realtime_tokens", float64(s.hit), "prefill_cache")
		s.record("prefill_effective_tokens", float64(s.hit), "device_hit")
	}
	if s.decoded > 0 {
		s.record("realtime_tokens", float64(s.decoded), "decode")
	}
	s.shownTokens += s.decoded
	s.input, s.hit, s.decoded = 0, 0, 0
}

// pool publishes the KV cache: tokens in use and free, and shares.
func (s *sglangScheduler) pool(used, free int, usage, utilization float64) {
	s.set("num_used_tokens", float64(used))
	s.set("kv_used_tokens", float64(used))
	s.set("kv_available_tokens", float64(free))
	s.set("token_usage", usage)
	s.set("full_token_usage", usage)
	s.set("utilization", utilization)
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
