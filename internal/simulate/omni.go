package simulate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// omniProfile is a vLLM-Omni server: a pipeline of stages, of which the
// autoregressive ones are engines with vllm:* families by stage and replica.
func omniProfile() profile {
	return profile{name: "vllm-omni", model: "qwen3-omni", flag: "--log-stats", start: startOmni}
}

const sampleRate = 24000

type omniModel struct {
	w        *world
	*panel        // nil without --log-stats
	numbered bool // engines have one number over all stages
	process  *process
	pipeline *pipeline
	llm      []*llmSeries // by flat engine index; empty without --log-stats
	engines  []*engine
	workers  []*worker
	gauged   []time.Duration // by stage: when its gauge was last set
}

func startOmni(w *world) (model, error) {
	gen, err := parseGeneration(w.opt.Generation)
	if err != nil {
		return nil, err
	}
	plan := StandardPlan(w.opt.Engines)
	if w.opt.Plan != nil {
		plan = *w.opt.Plan
	}
	plan = plan.withDefaults()
	if err := plan.check(); err != nil {
		return nil, err
	}
	w.plan = &plan
	if w.opt.BareCounters {
		w.reg.d = bareDialect()
	}
	m := &omniModel{w: w, numbered: w.opt.EngineLabel || gen == 0, process: newProcess(w), panel: newOmniPanel(w, gen)}
	m.pipeline = &pipeline{w: w, plan: plan, rng: w.stream(streamPipeline), out: m}
	m.startStages(plan)
	w.arrivals = newArrivals(w, m.pipeline.arrive)
	return m, nil
}

func (m *omniModel) startStages(plan Plan) {
	var llm *table
	flat := 0
	for i, s := range plan.Stages {
		st := &stage{Stage: s, index: i}
		m.pipeline.stages = append(m.pipeline.stages, st)
		m.gauged = append(m.gauged, -time.Hour)
		for r := range s.Replicas {
			labels, values := []string{"model_name", "stage", "replica"}, []string{m.w.opt.Model, strconv.Itoa(i),
				strconv.Itoa(r)}
			if m.numbered {
				labels, values = []string{"model_name", "engine"}, []string{m.w.opt.Model, strconv.Itoa(flat)}
			}
			flat++
			if s.Kind != Autoregressive {
				st.replicas = append(st.replicas, m.newWorker(st))
				continue
			}
			hw := s.hardware()
			if m.w.opt.logStats() {
				if llm == nil {
					llm = newLLMTable(m.w, hw, labels)
				}
				series := newLLMSeries(llm, hw, values...)
				series.throttled = true
				m.llm = append(m.llm, series)
			}
			e := newEngine(m.w, hw, len(m.engines), m)
			m.engines = append(m.engines, e)
			st.replicas = append(st.replicas, engineReplica{e})
		}
	}
}

func (m *omniModel) newWorker(s *stage) *worker {
	k := &worker{w: m.w, slots: s.Slots, ended: m.pipeline.ended}
	k.serve = func(v *stageRequest) time.Duration {
		mean := float64(s.Service) * v.job.size(s) / float64(v.chunks)
		return time.Duration(lognormal(m.pipeline.rng, mean, s.ServiceCV) * m.w.slowdown())
	}
	k.packet = func(v *stageRequest) {
		v.packets = append(v.packets, m.w.now)
		if s.Kind == Audio && v.done == 1 {
			m.firstPacket(v)
		}
		m.pipeline.progressed(v, v.done, v.chunks)
	}
	m.workers = append(m.workers, k)
	return k
}

func (m *omniModel) refresh() {
	var work time.Duration
	for _, e := range m.engines {
		work += e.work
	}
	for _, k := range m.workers {
		work += k.work
	}
	m.process.refresh(work, m.w.finished, m.pipeline.inFlight)
}

// The observer of the engines.

func (m *omniModel) llmOf(e *engine) engineObserver {
	if len(m.llm) == 0 {
		return noObserver{}
	}
	return m.llm[e.index]
}

func (m *omniModel) admitted(e *engine, q *sequence) {
	m.llmOf(e).admitted(e, q)
	m.queued(q.visit.stage)
}

func (m *omniModel) preempted(e *engine, q *sequence) { m.llmOf(e).preempted(e, q) }

func (m *omniModel) token(e *engine, q *sequence, gap time.Duration) {
	m.llmOf(e).token(e, q, gap)
	m.pipeline.progressed(q.visit, q.generated, q.target)
}

func (m *omniModel) stepped(e *engine, prompt, generated int) {
	m.llmOf(e).stepped(e, prompt, generated)
}

func (m *omniModel) finished(e *engine, q *sequence) {
	m.llmOf(e).finished(e, q)
	v := q.visit
	v.Started, v.Sequence = q.Scheduled, &q.Request
	v.job.PromptTokens += q.PromptTokens
	v.job.generated += q.generated
	m.pipeline.ended(v)
}

// noObserver is the observer of engines without --log-stats.
type noObserver struct{}

func (noObserver) admitted(*engine, *sequence)             {}
func (noObserver) preempted(*engine, *sequence)            {}
func (noObserver) token(*engine, *sequence, time.Duration) {}
func (noObserver) stepped(*engine, int, int)               {}
func (noObserver) finished(*engine, *sequence)             {}

// The observer of the pipeline.

func (m *omniModel) firstPacket(v *stageRequest) {
	j := v.job
	j.First = m.w.now
	if j.stream && !j.skip {
		j.truth.TTFP = m.w.now - j.Arrival
		m.record("audio_ttfp_s", seconds(j.truth.TTFP), v.names()...)
	}
}

// names are the label values of the stage and replica.
func (v *stageRequest) names() []string {
	return []string{strconv.Itoa(v.Stage), strconv.Itoa(v.Replica)}
}

func (m *omniModel) hopped(h HopTruth) {
	edge := []string{strconv.Itoa(h.From), strconv.Itoa(h.FromReplica), strconv.Itoa(h.To), strconv.Itoa(h.ToReplica)}
	m.record("transfer_size_bytes", float64(h.Bytes), edge...)
	m.record("transfer_tx_s", seconds(h.Tx), edge...)
	m.record("transfer_in_flight_s", seconds(h.InFlight), edge...)
	m.record("transfer_rx_s", seconds(h.Rx), edge...)
}

func (m *omniModel) left(v *stageRequest) {
	s := v.stage
	if s.Kind == Autoregressive {
		return
	}
	number, kind := strconv.Itoa(s.index), "diffusion"
	if s.Kind == Audio {
		kind = "generation"
		v.job.audio = v
	}
	m.record("stage_gen_time_s", seconds(v.Finished-v.Submitted), number, kind)
	m.record("stage_in_queue_s", seconds(v.Started-v.Submitted), number)
	if s.Kind == Diffusion {
		m.image(v)
	}
}

// image splits the time of a diffusion stage as its executor does.
func (m *omniModel) image(v *stageRequest) {
	took, l, n := seconds(v.Finished-v.Started), v.names(), float64(v.stage.Steps)
	exec := 0.85 * took
	m.record("diffusion_preprocess_s", 0.03*took, l...)
	m.record("diffusion_exec_s", exec, l...)
	m.record("diffusion_exec_per_step_s", exec/n, l...)
	m.record("vae_decode_s", 0.08*took, l...)
	m.record("diffusion_postprocess_s", 0.04*took, l...)
	m.record("image_ttfp_s", seconds(v.Finished-v.job.Arrival), l...)
	m.record("num_inference_steps", n)
	m.record("image_count", 1)
	m.record("image_pixels", 1024*1024)
	m.show("peak_memory_mb", 38211.5, l[0])
}

// queued sets the gauge of a stage, once a second at most and only when
// something happens, so that it can hold an old value while idle.
func (m *omniModel) queued(s *stage) {
	if m.w.now-m.gauged[s.index] < time.Second {
		return
	}
	m.gauged[s.index] = m.w.now
	n := 0
	for _, r := range s.replicas {
		n += r.waiting()
	}
	m.show("stage_waiting_requests", float64(n), strconv.Itoa(s.index))
}

// ended settles a job. A client that aborts goes away just before the end, and a failure shows there.
func (m *omniModel) ended(j *job) {
	m.w.finished++
	o := m.w.opt
	m.set("num_requests_running", float64(m.pipeline.inFlight))
	m.set("num_requests_waiting", float64(len(m.pipeline.queue)))
	abort := max(o.AbortShare, 0)
	switch {
	case j.fate < abort:
		j.Reason = "abort"
		m.record("requests_success", 1, "abort")
		m.record("requests_failed", 1, "client_abort")
		m.record("num_requests_fail", 1)
	case j.fate < abort+max(o.ErrorShare, 0):
		j.Reason = "error"
		m.record("requests_failed", 1, "stage_error")
		m.record("num_requests_fail", 1)
	default:
		j.Reason = "stop"
		m.record("requests_success", 1, "stop")
		m.record("num_requests_success", 1)
		m.record("e2e_request_latency_s", seconds(j.Last-j.Arrival))
		m.record("request_queue_wait_s", seconds(j.Scheduled-j.Arrival))
		if j.audio != nil {
			m.audio(j, j.audio)
		}
	}
	if j.PromptTokens > 0 {
		m.record("prompt_tokens", float64(j.PromptTokens))
		m.record("generation_tokens", float64(j.generated))
	}
	if o.KeepTruth {
		j.OutputTokens = j.generated
		j.Pipeline = &j.truth
		m.w.requests = append(m.w.requests, j.Request)
	}
}

// audio records the sound of a job that succeeded.
func (m *omniModel) audio(j *job, v *stageRequest) {
	l := v.names()
	if j.skip {
		m.record("audio_skipped_requests", 1, l[0], l[1], "no_audio_data")
		return
	}
	frames := math.Round(seconds(v.stage.Sound) * j.size(v.stage) * sampleRate)
	sound := frames / sampleRate
	t := &j.truth
	t.Sound, t.Streamed = time.Duration(sound*1e9), j.stream
	t.RTF = seconds(v.Finished-v.Submitted) / sound
	m.record("audio_duration_s", sound, l...)
	m.record("audio_rtf", t.RTF, l...)
	m.record("audio_frames", frames, l...)
	if !j.stream {
		return
	}
	// The player starts with the first packet and needs each further one when it has played those before.
	each := t.Sound / time.Duration(len(v.packets))
	for i, at := range v.packets {
		t.Underrun = max(t.Underrun, at-v.packets[0]-time.Duration(i)*each)
	}
	m.record("audio_underrun_s", seconds(t.Underrun), l...)
	if t.Underrun <= 100*time.Millisecond {
		m.record("audio_continuity_ok", 1, l[0], l[1], "100")
	}
}

const newestGeneration = 4

// parseGeneration reads Options.Generation.
func parseGeneration(s string) (int, error) {
	if s == "" {
		return newestGeneration, nil
	}
	g := slices.Index([]string{"g0", "g1", "g2", "g3", "g4"}, s)
	if g < 0 {
		return 0, fmt.Errorf("check options: Generation is %q, want g0, g1, g2, g3 or g4", s)
	}
	return g, nil
}

// newOmniPanel makes the series of the pipeline, named as a generation of vLLM-Omni names them. Without --log-stats the
// families are declared and the panel is nil.
func newOmniPanel(w *world, gen int) *panel {
	labels, values := []string{"model_name"}, []string{w.opt.Model}
	if gen == 0 {
		labels, values = append(labels, "engine"), append(values, "0")
	}
	t := w.table("omni", variant{labels: map[string][]string{"": labels}, name: func(d *declaration) (string, float64) {
		return omniName(d, gen)
	}})
	if !w.opt.logStats() {
		return nil
	}
	return t.panel("", values...)
}

// omniName is the name of a family in a generation, "" when there is none, and its scale: those that end in _ms are in
// milliseconds. The first generation has stage_id and replica_id for the labels stage and replica.
func omniName(d *declaration, gen int) (string, float64) {
	prefix := "vllm_omni:"
	if gen < 3 {
		prefix = "vllm:omni_"
	}
	if gen == 0 {
		for i, l := range d.labels {
			if l == "stage" || l == "replica" {
				d.labels[i] += "_id"
			}
		}
	}
	old, now := d.words["old"], strconv.Itoa(gen)
	switch {
	case d.words["since"] <= now:
		return prefix + d.name, 1
	case old == "" || now != cmp.Or(d.words["at"], "0"):
		return "", 1
	case strings.HasSuffix(old, "_ms"):
		return prefix + old, 1000
	}
	return prefix + old, 1
}
