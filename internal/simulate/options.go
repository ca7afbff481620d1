package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Options configure a simulated server. The zero value is a warm vLLM-like server under a light load. A share is a
// probability between 0 and 1; where its zero value has a default, a negative share means none.
type Options struct {
	// Now is the clock; nil means time.Now. The simulation reads it whenever the server is used, and never otherwise. A
	// reading before an earlier one counts as the earlier one.
	Now func() time.Time
	// Seed chooses the run: the same options, seed and clock give the same
	// bytes at an instant, however often the server was asked before.
	Seed uint64

	// Rate is the arrival rate in requests per second; 0 means 4. For a server
	// without any load set Load to a single step of rate 0 at 0.
	Rate float64
	// Load changes the rate at instants counted from New, in ascending order.
	Load []LoadStep

	// Model is the value of the model_name label; "" means "qwen3-8b", for the profile vllm-omni "qwen3-omni".
	Model string
	// Engines is the number of data-parallel engines, of the replicas of each stage of the standard Omni plan, of the
	// instances or workers of each model of triton and torchserve, or of GPUs; 0 means 1.
	Engines int
	// Prompt and Output are the lengths of prompts and answers in tokens; zero
	// means a mean of 512 (CV 1) and of 128 (CV 0.8).
	Prompt, Output Lengths
	// PrefixShare is the share of requests that find about half of their prompt in the prefix cache; 0 means 0.4.
	PrefixShare float64
	// AbortShare and ErrorShare are the shares of requests that the client aborts and that fail; 0 means 0.02 and 0.002.
	AbortShare, ErrorShare float64
	// Hardware sets the speed and size of an engine.
	Hardware Hardware
	// MFU lets the estimated_* families advance, as --enable-mfu-metrics does.
	MFU bool

	// LogStats is the --log-stats switch of vLLM-Omni; nil means on. When it is
	// off the vllm:* families are absent and those of Omni have no samples.
	LogStats *bool
	// Plan is the pipeline of the profile vllm-omni; nil means StandardPlan.
	Plan *Plan
	// Generation chooses the names of the Omni families by age: "g0" is that of the first /metrics, "g1" has transfers in
	// milliseconds, "g2" is that of the released documentation (vllm:omni_*), "g3" and "g4" those of mid and late 2026
	// (vllm_omni:*); "" means "g4". The profile torchserve has "legacy" (three families with a uuid label, none before the
	// first request), llamacpp "old" (a Windows build of before 2026), and triton "latencies" (the optional histogram and
	// summaries on); others refuse it.
	Generation string

	// EngineLabel lets the vllm:* families of the profile vllm-omni have the label engine, which numbers the replicas of
	// all stages in their order, in place of stage and replica; generation g0 has it anyway. BareCounters takes _total off
	// its counters.
	EngineLabel, BareCounters bool

	// FlagsOff leaves out the flag or setting without which the engine shows less or nothing; docs/simulate.md has the
	// list. Profiles whose engine has none refuse it.
	FlagsOff bool
	// Ranks is how many tensor-parallel ranks of each sglang engine report, and Priorities how many priorities its queues
	// are split by; 0 means rank 0 only, and no priorities.
	Ranks, Priorities int
	// Tear is how long after the end of a request Triton's statistics show its
	// count and not yet its time, as they are read without a lock; 0 is never.
	Tear time.Duration
	// Redirect lets /metrics answer 307 to /metrics/, as some ASGI servers do.
	Redirect bool

	// MetricLog is given every line that TorchServe writes to a metric log, whatever its mode shows at /metrics, see
	// [MetricLogs]; of the profile torchserve. It must not use the server.
	MetricLog func(file, line string)

	// ColdStart makes the server slow at first.
	ColdStart ColdStart
	// PublishDelay and PublishJitter let what happens become visible late, in order: after the delay and a random time
	// below the jitter. What gauges show is never late.
	PublishDelay, PublishJitter time.Duration
	// ExtraSeries adds so many counter samples to the body, two thirds of which change from scrape to scrape.
	ExtraSeries int
	// ExtraPath is one more path that serves the metrics, for example "/prometheus/metrics"; "" means none.
	ExtraPath string
	// KeepTruth keeps every request and observation for Truth. Memory then grows with the work done.
	KeepTruth bool
}

// LoadStep sets the arrival rate to Rate requests per second from At on.
type LoadStep struct {
	At   time.Duration
	Rate float64
}

// Lengths is a lognormal distribution of token counts with that mean and
// coefficient of variation (standard deviation by mean).
type Lengths struct{ Mean, CV float64 }

// ColdStart multiplies the duration of engine steps by Slowdown at the start of the process, falling evenly to 1 until
// For has passed: compilation, cold caches. The zero value is a warm start.
type ColdStart struct {
	For      time.Duration
	Slowdown float64
}

// Hardware sets the speed and size of one engine. A step of n sequences that
// prefills p tokens takes StepBase + (n-1) StepPerSequence + p StepPerToken.
type Hardware struct {
	StepBase        time.Duration // 0 means 8ms
	StepPerSequence time.Duration // 0 means 60µs
	StepPerToken    time.Duration // 0 means 25µs
	StepNoise       float64       // relative standard deviation of a step; 0 means 0.04, negative none

	MaxSequences  int // max_num_seqs; 0 means 64
	MaxStepTokens int // max_num_batched_tokens; 0 means 2048
	MaxModelLen   int // the longest prompt and answer in tokens; 0 means 8192
	BlockSize     int // tokens in a KV block; 0 means 16
	Blocks        int // num_gpu_blocks, one of which is reserved; 0 means 2049
}

// withDefaults returns the options with every documented default filled in.
func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	orDefault(&o.Rate, 4)
	orDefault(&o.Engines, 1)
	orDefault(&o.Prompt, Lengths{Mean: 512, CV: 1})
	orDefault(&o.Output, Lengths{Mean: 128, CV: 0.8})
	orDefault(&o.PrefixShare, 0.4)
	orDefault(&o.AbortShare, 0.02)
	orDefault(&o.ErrorShare, 0.002)
	h := &o.Hardware
	orDefault(&h.StepBase, 8*time.Millisecond)
	orDefault(&h.StepPerSequence, 60*time.Microsecond)
	orDefault(&h.StepPerToken, 25*time.Microsecond)
	orDefault(&h.StepNoise, 0.04)
	orDefault(&h.MaxSequences, 64)
	orDefault(&h.MaxStepTokens, 2048)
	orDefault(&h.MaxModelLen, 8192)
	orDefault(&h.BlockSize, 16)
	orDefault(&h.Blocks, 2049)
	return o
}

// orDefault gives a field that is zero its default.
func orDefault[T comparable](field *T, value T) { *field = cmp.Or(*field, value) }

// check refuses options that no server could have. The defaults are filled in.
func (o *Options) check() error {
	h := o.Hardware
	switch {
	case o.Rate < 0:
		return fmt.Errorf("check options: Rate is %g, want requests per second", o.Rate)
	case o.Engines < 1:
		return fmt.Errorf("check options: Engines is %d, want at least 1", o.Engines)
	case o.PrefixShare > 1 || o.AbortShare > 1 || o.ErrorShare > 1 || max(o.AbortShare, 0)+max(o.ErrorShare, 0) > 1:
		return errors.New("check options: PrefixShare, AbortShare and ErrorShare are shares, want at most 1 in all")
	case o.Prompt.Mean < 1 || o.Prompt.CV < 0 || o.Output.Mean < 1 || o.Output.CV < 0:
		return errors.New("check options: Prompt and Output want a mean of at least 1 token and a CV of at least 0")
	case o.Tear < 0 || o.PublishDelay < 0 || o.PublishJitter < 0 || o.ColdStart.For < 0:
		return errors.New("check options: Tear, PublishDelay, PublishJitter and ColdStart.For want no negative duration")
	case o.Ranks < 0 || o.Priorities < 0:
		return errors.New("check options: Ranks and Priorities want 0 or more")
	case o.ExtraSeries < 0:
		return fmt.Errorf("check options: ExtraSeries is %d, want 0 or more", o.ExtraSeries)
	case h.StepBase < time.Microsecond || h.StepPerSequence < 0 || h.StepPerToken < 0 || h.StepNoise > 1:
		return errors.New("check options: Hardware wants steps of at least 1µs and a StepNoise of at most 1")
	case h.MaxSequences < 1 || h.MaxStepTokens < 1 || h.BlockSize < 1 || h.MaxModelLen < 2:
		return errors.New("check options: Hardware wants sizes of at least 1 and a MaxModelLen of at least 2")
	case (h.Blocks-1)*h.BlockSize < h.MaxModelLen:
		return fmt.Errorf("check options: %d KV blocks of %d tokens, less one, do not hold MaxModelLen %d: raise "+
			"Hardware.Blocks",
			h.Blocks, h.BlockSize, h.MaxModelLen)
	}
	for i, s := range o.Load {
		if s.Rate < 0 || s.At < 0 || i > 0 && s.At <= o.Load[i-1].At {
			return fmt.Errorf("check options: Load[%d] is %g/s from %v, want rates of 0 or more at ascending instants", i,
				s.Rate, s.At)
		}
	}
	return nil
}

func (o *Options) logStats() bool { return !o.FlagsOff && (o.LogStats == nil || *o.LogStats) }

// generation reports whether Options.Generation is the only other one that a profile has.
func generation(w *world, other string) (bool, error) {
	switch w.opt.Generation {
	case "":
		return false, nil
	case other:
		return true, nil
	}
	return false, fmt.Errorf("unknown generation %q, have %q", w.opt.Generation, other)
}
