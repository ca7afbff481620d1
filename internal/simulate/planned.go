package simulate

import (
	"fmt"
	"strings"
	"time"
)

// Pipelines returns the names that NamedPlan knows.
func Pipelines() []string { return []string{"speech", "image", "fixed"} }

// NamedPlan returns a plan by name: "speech" is [StandardPlan], "image"
// [ImagePlan], "fixed" [FixedPlan], each with that many replicas of every stage.
func NamedPlan(name string, replicas int) (Plan, error) {
	switch name {
	case "speech":
		return StandardPlan(replicas), nil
	case "image":
		return ImagePlan(replicas), nil
	case "fixed":
		return FixedPlan(replicas, true), nil
	}
	return Plan{}, fmt.Errorf("choose pipeline: %q is unknown, have %s", name, strings.Join(Pipelines(), ", "))
}

// FixedPlan is a pipeline of three stages in which nothing varies: each request takes the same time in each stage and
// on each hop, so that its numbers are known beforehand. Its last stage makes 4 s of sound.
func FixedPlan(replicas int, overlap bool) Plan {
	return Plan{
		Overlap: overlap, Overhead: 7 * time.Millisecond, SkipShare: -1,
		Stages: []Stage{
			{
				Name: "thinker", Replicas: replicas, Slots: 16, Service: 300 * time.Millisecond, Tokens: 60, PromptTokens: 200,
				Hop: Hop{Chunks: 4, Bytes: 50_000, Tx: 3 * time.Millisecond, InFlight: time.Millisecond, Rx: 2 * time.Millisecond},
			},
			{
				Name: "talker", Replicas: replicas, Slots: 16, Service: 800 * time.Millisecond, Tokens: 100, PromptTokens: 60,
				Hop: Hop{Chunks: 5, Bytes: 9000, Tx: 500 * time.Microsecond, InFlight: 250 * time.Microsecond,
					Rx: 750 * time.Microsecond},
			},
			{Name: "code2wav", Kind: Audio, Replicas: replicas, Slots: 16, Service: 200 * time.Millisecond,
				Sound: 4 * time.Second},
		},
	}
}

// ImagePlan draws: a stage that writes what is to be seen, and one that makes an image of it in 28 steps.
func ImagePlan(replicas int) Plan {
	return Plan{
		Overhead: 4 * time.Millisecond, MaxInFlight: 8 * replicas,
		Stages: []Stage{
			{
				Name: "writer", Replicas: replicas, Slots: 16,
				Service: 500 * time.Millisecond, ServiceCV: 0.3, BatchCost: 0.01, PromptTokens: 90, Tokens: 60,
				Hop: Hop{Chunks: 1, Bytes: 6 << 20, Tx: 9 * time.Millisecond, InFlight: 2 * time.Millisecond,
					Rx: 12 * time.Millisecond, CV: 0.2},
			},
			{Name: "painter", Kind: Diffusion, Replicas: replicas, Slots: 2, Service: 700 * time.Millisecond, ServiceCV: 0.1,
				Steps: 28},
		},
	}
}

// Mean is the mean time that all chunks of a request together spend on the hop.
func (h Hop) Mean() time.Duration {
	return time.Duration(max(1, h.Chunks)) * (h.Tx + h.InFlight + h.Rx)
}

// Serial is the end-to-end time of a request that meets no queue in a plan
// without Overlap: Overhead, all stages and all hops one after the other.
func (p *Plan) Serial() time.Duration {
	sum := p.Overhead
	for i, s := range p.Stages {
		sum += s.Service
		if i+1 < len(p.Stages) {
			sum += s.Hop.Mean()
		}
	}
	return sum
}

// PipelineTotals are what a period of a Truth of the profile vllm-omni holds, to compare the split of the end-to-end
// time with. Requests belong to the period that they leave the pipeline in; times are sums over those that were served.
// Divided by Served they are means.
type PipelineTotals struct {
	Served     int
	E2E, Queue time.Duration // Queue is the wait for admission
	Stages     []StageTotals // by stage
	Hops       []HopTotals   // by the stage that the hop leaves
}

// StageTotals are the visits to one stage.
type StageTotals struct {
	Visits int
	Time   time.Duration // from submission to the end, the queue of the stage included
	Queue  time.Duration // of it
	// ByReplica counts the visits by replica.
	ByReplica []int
}

// HopTotals are the chunks between a stage and the next.
type HopTotals struct {
	Chunks, Bytes    int
	Tx, InFlight, Rx time.Duration
}

// Pipeline adds up the requests of a pipeline that left it after from and not
// after to, both since Origin. It needs Options.KeepTruth.
func (t *Truth) Pipeline(from, to time.Duration) PipelineTotals {
	var s PipelineTotals
	if t.Plan == nil {
		return s
	}
	s.Stages, s.Hops = make([]StageTotals, len(t.Plan.Stages)), make([]HopTotals, len(t.Plan.Stages)-1)
	for i := range t.Plan.Stages {
		s.Stages[i].ByReplica = make([]int, t.Plan.Stages[i].Replicas)
	}
	for i := range t.Requests {
		if r := &t.Requests[i]; r.Last > from && r.Last <= to && r.Reason == "stop" {
			s.add(r)
		}
	}
	return s
}

func (s *PipelineTotals) add(r *Request) {
	s.Served++
	s.E2E += r.Last - r.Arrival
	s.Queue += r.Scheduled - r.Arrival
	for _, v := range r.Pipeline.Stages {
		at := &s.Stages[v.Stage]
		at.Visits++
		at.Time += v.Finished - v.Submitted
		at.Queue += v.Started - v.Submitted
		at.ByReplica[v.Replica]++
	}
	for _, h := range r.Pipeline.Hops {
		at := &s.Hops[h.From]
		at.Chunks++
		at.Bytes += h.Bytes
		at.Tx += h.Tx
		at.InFlight += h.InFlight
		at.Rx += h.Rx
	}
}
