package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// engine is a continuously batching engine as vLLM's: in each step every running sequence decodes one token or prefills
// a chunk of its prompt, within a budget of tokens; waiting ones are admitted while there are places and KV blocks;
// when blocks run out the youngest running sequence is preempted and later computed again.
type engine struct {
	w     *world
	hw    Hardware
	index int
	rng   *rand.Rand
	out   engineObserver

	waiting []*sequence
	running []*sequence
	batch   []*sequence // of the step under way
	free    int         // KV blocks
	busy    bool
	started time.Duration // of the step under way
	prefill int           // tokens that it prefills
	work    time.Duration // of all steps so far
	end     func()
}

// engineObserver learns what an engine does, at the instant world.now.
type engineObserver interface {
	// admitted is called when q first leaves the queue.
	admitted(e *engine, q *sequence)
	// preempted is called when q goes back into the queue.
	preempted(e *engine, q *sequence)
	// token is called for each token of q. gap is the time since the one before, negative for the first.
	token(e *engine, q *sequence, gap time.Duration)
	// stepped is called after a step that gave tokens, with the tokens of prompts it completed and those that came out.
	stepped(e *engine, prompt, generated int)
	// finished is called when q has its last token and has left the engine.
	finished(e *engine, q *sequence)
}

// sequence is one request in an engine.
type sequence struct {
	Request
	target    int // tokens to generate
	generated int
	allowed   int // tokens it may generate with the input it has so far
	computed  int // tokens in the KV cache
	chunk     int // tokens computed in the step under way
	blocks    int
	visit     *stageRequest // of a pipeline, else nil
}

const unlimited = math.MaxInt

func newEngine(w *world, hw Hardware, index int, out engineObserver) *engine {
	e := &engine{w: w, hw: hw, index: index, rng: w.stream(streamEngines + uint64(index)), out: out, free: hw.Blocks - 1}
	e.end = e.finishStep
	return e
}

func (q *sequence) total() int { return q.PromptTokens + q.generated }

// add puts a new sequence into the queue.
func (e *engine) add(q *sequence) {
	q.Engine, q.Queued = e.index, e.w.now
	e.waiting = append(e.waiting, q)
	e.wake()
}

// wake starts a step when none is under way: something can be done again.
func (e *engine) wake() {
	if !e.busy {
		e.startStep()
	}
}

// load is by how much the engine is loaded, for balancing; vLLM weighs waiting requests four times.
func (e *engine) load() int { return 4*len(e.waiting) + len(e.running) }

// usage is the share of KV blocks in use.
func (e *engine) usage() float64 {
	return float64(e.hw.Blocks-1-e.free) / float64(e.hw.Blocks-1)
}

func (e *engine) startStep() {
	e.batch, e.prefill = e.batch[:0], 0
	budget, preempted := e.scheduleRunning(e.hw.MaxStepTokens)
	if !preempted {
		e.admit(budget)
	}
	e.busy = len(e.batch) > 0
	if !e.busy {
		return
	}
	e.started = e.w.now
	e.w.at(e.w.now+e.duration(), e.end)
}

// scheduleRunning plans the next tokens of running sequences and returns what is left of the budget.
func (e *engine) scheduleRunning(budget int) (left int, preempted bool) {
	for i := 0; i < len(e.running) && budget > 0; i++ {
		q := e.running[i]
		if q.generated >= q.allowed {
			continue
		}
		n := min(q.total()-q.computed, budget)
		need := e.blocksFor(q.computed+n) - q.blocks
		for need > e.free && len(e.running) > i {
			e.preempt()
			preempted = true
		}
		if len(e.running) == i {
			break // q itself had to go
		}
		e.plan(q, n, need)
		budget -= n
	}
	return budget, preempted
}

func (e *engine) admit(budget int) {
	for len(e.waiting) > 0 && len(e.running) < e.hw.MaxSequences && budget > 0 {
		q := e.waiting[0]
		n := min(q.total()-q.CachedTokens, budget)
		need := e.blocksFor(q.CachedTokens + n)
		if need > e.free {
			return
		}
		e.waiting[0] = nil
		e.waiting = e.waiting[1:]
		e.running = append(e.running, q)
		q.computed = q.CachedTokens
		if q.Preemptions == 0 {
			q.Scheduled = e.w.now
			e.out.admitted(e, q)
		}
		e.plan(q, n, need)
		budget -= n
	}
}

func (e *engine) plan(q *sequence, tokens, blocks int) {
	q.chunk = tokens
	q.blocks += blocks
	e.free -= blocks
	e.batch = append(e.batch, q)
	if q.computed+tokens < q.total() || q.generated == 0 || tokens > 1 {
		e.prefill += tokens
	}
}

// preempt takes the youngest running sequence out and queues it first.
func (e *engine) preempt() {
	q := e.running[len(e.running)-1]
	e.running = e.running[:len(e.running)-1]
	e.free += q.blocks
	q.blocks, q.computed = 0, 0
	q.Preemptions++
	e.waiting = slices.Insert(e.waiting, 0, q)
	e.out.preempted(e, q)
}

func (e *engine) blocksFor(tokens int) int {
	return (tokens + e.hw.BlockSize - 1) / e.hw.BlockSize
}

func (e *engine) duration() time.Duration {
	d := float64(e.hw.StepBase) +
		float64(len(e.batch)-1)*float64(e.hw.StepPerSequence) +
		float64(e.prefill)*float64(e.hw.StepPerToken)
	if e.hw.StepNoise > 0 {
		d *= 1 + e.hw.StepNoise*max(-3, min(3, e.rng.NormFloat64()))
	}
	return max(1, time.Duration(d*e.w.slowdown()))
}

func (e *engine) finishStep() {
	now := e.w.now
	e.work += now - e.started
	prompt, generated, done := 0, 0, false
	for _, q := range e.batch {
		if q.computed += q.chunk; q.computed < q.total() {
			continue
		}
		if q.generated == 0 {
			prompt += q.PromptTokens
		}
		generated++
		e.give(q)
		done = done || q.generated == q.target
	}
	if generated > 0 {
		if e.w.opt.KeepTruth {
			e.w.steps = append(e.w.steps, Step{e.index, e.started, now, len(e.batch), prompt, generated})
		}
		e.out.stepped(e, prompt, generated)
	}
	if done {
		e.release()
	}
	e.startStep()
}

// give lets a sequence have its next token now.
func (e *engine) give(q *sequence) {
	now, gap := e.w.now, time.Duration(-1)
	if q.generated == 0 {
		q.First = now
	} else {
		gap = now - q.Last
	}
	q.generated++
	q.Last = now
	if e.w.opt.KeepTruth {
		q.Tokens = append(q.Tokens, now)
	}
	e.out.token(e, q, gap)
}

// release lets the sequences go that have all their tokens.
func (e *engine) release() {
	keep := e.running[:0]
	for _, q := range e.running {
		if q.generated < q.target {
			keep = append(keep, q)
			continue
		}
		e.free += q.blocks
		q.blocks, q.OutputTokens = 0, q.generated
		e.out.finished(e, q)
	}
	clear(e.running[len(keep):])
	e.running = keep
}

// cacheConfigLabels are the labels of vllm:cache_config_info besides those of
// the engine, with the values of a server of that size.
func cacheConfigLabels(hw Hardware) [][2]string {
	itoa := strconv.Itoa
	tokens := hw.Blocks * hw.BlockSize
	return [][2]string{
		{"_block_size_resolved", "True"}, {"block_size", itoa(hw.BlockSize)}, {"cache_dtype", "auto"},
		{"enable_prefix_caching", "True"}, {"gpu_memory_utilization", "0.9"}, {"is_attention_free", "False"},
		{"kv_cache_dtype_skip_layers", "[]"},
		{"kv_cache_max_concurrency", string(appendFloat(nil, float64(tokens)/float64(hw.MaxModelLen)))},
		{"kv_cache_memory_bytes", "None"}, {"kv_cache_size_tokens", itoa(tokens)},
		{"kv_offloading_backend", "native"}, {"kv_offloading_size", "None"}, {"kv_sharing_fast_prefill", "False"},
		{"mamba_block_size", "None"}, {"mamba_cache_dtype", "auto"}, {"mamba_cache_mode", "none"},
		{"mamba_page_size_padded", "None"}, {"mamba_ssm_cache_dtype", "auto"}, {"num_cpu_blocks", "None"},
		{"num_gpu_blocks", itoa(hw.Blocks)}, {"num_gpu_blocks_override", "None"},
		{"prefix_caching_hash_algo", "sha256"}, {"prefix_match_unit", "None"}, {"sliding_window", "None"},
		{"user_specified_block_size", "False"}, {"user_specified_mamba_block_size", "False"},
	}
}

// newLLMTable registers the vllm:* families of autoregressive engines, in the order in which vLLM 0.28 to 0.30 does.
// vLLM labels them with model_name and engine; vLLM-Omni puts stage and replica in the place of engine.
func newLLMTable(w *world, hw Hardware, labels []string) *table {
	config := slices.Clip(labels)
	for _, l := range cacheConfigLabels(hw) {
		config = append(config, l[0])
	}
	return w.table("llm", variant{
		labels:  map[string][]string{"": labels, "config": config},
		layouts: map[string][]float64{"tokens": tokenBounds(hw.MaxModelLen)},
	})
}

// llmSeries are the series of one engine.
type llmSeries struct {
	*panel
	// throttled lets scheduler statistics come out once a second at most, as in vLLM-Omni, else with each step.
	throttled    bool
	scheduledAt  time.Duration
	queryN, hitN int // not yet out
	foundN       int // cached prompt tokens of the step
	gaps         tokenGaps
}

// newLLMSeries makes the series of one engine, all visible at zero.
func newLLMSeries(t *table, hw Hardware, values ...string) *llmSeries {
	s := &llmSeries{panel: t.panel("", values...), scheduledAt: -time.Hour}
	s.gaps.to = s.of("inter_token_latency_seconds")
	s.set("engine_sleep_state", 1, "awake")
	for _, l := range cacheConfigLabels(hw) {
		values = append(slices.Clip(values), l[1])
	}
	t.panel("config", values...).set("cache_config_info", 1)
	return s
}
