package simulate

import (
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// Truth is what really happened in one simulated process, kept when Options.KeepTruth is set. All instants are
// durations since Origin. The slices belong to the server: they may be read for as long as wanted, as it only appends
// to them, and must not be changed.
type Truth struct {
	// Origin is the start of the process, and Until the instant of the report.
	Origin time.Time
	Until  time.Duration
	// Plan is the pipeline of the profile vllm-omni with its defaults filled in, else nil.
	Plan *Plan
	// Requests are those that finished, in that order; of a pipeline, those that left the pipeline.
	Requests []Request
	// Steps are the steps of all engines, in the order they ended.
	Steps []Step
	// Series are the counters, histograms and summaries with all that was recorded in them, in the order of the families.
	// What is recorded shows in a scrape from Published on.
	Series []SeriesTruth
}

// Request is one request in one engine. Prefill is First-Scheduled, decode is Last-First, queue is Scheduled-Queued,
// end to end is Last-Arrival. In a triton or torchserve server Engine is the number of the model, and First, the end of
// its computation, equals Last.
type Request struct {
	ID, Engine                              int
	Arrival, Queued, Scheduled, First, Last time.Duration
	PromptTokens, CachedTokens, MaxTokens   int
	OutputTokens                            int
	Preemptions                             int
	Reason                                  string          // stop, length, abort, error
	Tokens                                  []time.Duration // when each token came; the first at First
	Pipeline                                *PipelineTruth  // of the profile vllm-omni, else nil
}

// PipelineTruth is what one request met in a pipeline. Its Request has Queued equal to Arrival, Scheduled at the
// admission to the pipeline, First at the first packet of sound, if any, and Last when it left the pipeline. Its tokens
// are those of all stages.
type PipelineTruth struct {
	Stages []StageTruth // in the order they ended
	Hops   []HopTruth   // in the order they arrived

	Streamed bool          // the client takes the sound as it comes
	Sound    time.Duration // that was made; 0 without audio
	TTFP     time.Duration // from arrival to the first packet, when streamed
	Underrun time.Duration // the worst, when streamed
	RTF      float64       // stage time of the audio stage by Sound
}

// StageTruth is one visit to a replica of a stage. Finished-Submitted is what the metrics call the time in the stage;
// Started-Submitted of it was queue. Sequence is the request in the engine of an autoregressive stage, else nil.
type StageTruth struct {
	Stage, Replica               int
	Submitted, Started, Finished time.Duration
	Sequence                     *Request
}

// HopTruth is one chunk on its way between replicas of two stages. It arrived at Sent+Tx+InFlight+Rx.
type HopTruth struct {
	From, FromReplica, To, ToReplica int
	Chunk, Bytes                     int
	Sent, Tx, InFlight, Rx           time.Duration
}

// Step is one step of an engine that gave tokens: Batch sequences took part,
// Prompt tokens of prompts were completed and Generated tokens came out at End.
type Step struct {
	Engine                   int
	Start, End               time.Duration
	Batch, Prompt, Generated int
}

// SeriesTruth is all that was recorded in one series: the increments of a counter, the observations of a histogram or
// summary. Family is the name without _total.
type SeriesTruth struct {
	Family       string
	Type         metric.Type
	Labels       metric.Labels
	Observations []Observation
}

// Observation is one recorded value: what happened At shows in the exposition from Published on.
type Observation struct {
	At, Published time.Duration
	Value         float64
}

func (w *world) truth() Truth {
	t := Truth{Origin: w.origin, Until: w.now, Plan: w.plan, Requests: slices.Clip(w.requests),
		Steps: slices.Clip(w.steps)}
	if !w.opt.KeepTruth {
		return t
	}
	for _, f := range w.reg.families {
		if f.typ == metric.Gauge {
			continue
		}
		for _, s := range f.all {
			if len(s.kept) > 0 {
				t.Series = append(t.Series, SeriesTruth{f.truthName(), f.typ, s.labels, slices.Clip(s.kept)})
			}
		}
	}
	return t
}
