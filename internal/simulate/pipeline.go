package simulate

import (
	"math"
	"math/rand/v2"
	"time"
)

// pipeline moves jobs through the stages of a plan and tells its observer.
type pipeline struct {
	w      *world
	plan   Plan
	rng    *rand.Rand
	out    pipelineObserver
	stages []*stage

	queue    []*job // not admitted
	inFlight int
	arrived  int
}

// pipelineObserver learns what a pipeline does, at the instant world.now.
type pipelineObserver interface {
	// hopped is called when a chunk has arrived.
	hopped(h HopTruth)
	// left is called when a visit has ended.
	left(v *stageRequest)
	// queued is called when the queue of a stage may have changed.
	queued(s *stage)
	// ended is called when a job has left the pipeline.
	ended(j *job)
}

type stage struct {
	Stage
	index    int
	replicas []replica
	turn     int // where the search for the least loaded replica begins
}

// job is one request in the pipeline.
type job struct {
	Request
	truth  PipelineTruth
	fate   float64
	stream bool
	skip   bool
	sizes  []float64 // by stage, relative to the mean

	generated int           // tokens, in all stages
	audio     *stageRequest // of the audio stage
}

func (j *job) size(s *stage) float64 { return j.sizes[s.index] }

// arrive takes a job in.
func (p *pipeline) arrive() {
	j := &job{Request: Request{ID: p.arrived, Arrival: p.w.now, Queued: p.w.now}}
	p.arrived++
	j.fate = p.rng.Float64()
	j.stream = p.rng.Float64() < p.plan.StreamShare
	j.skip = p.rng.Float64() < p.plan.SkipShare
	tokens := 1.0
	for _, s := range p.stages {
		size := 1.0
		switch s.Kind {
		case Autoregressive:
			n := min(max(1, math.Round(float64(s.Tokens)*lognormal(p.rng, 1, s.ServiceCV))), maxPlanTokens)
			size = n / float64(s.Tokens)
			tokens = size
		case Audio:
			size = tokens // sound is as long as the codes it is made of
		}
		j.sizes = append(j.sizes, size)
	}
	p.queue = append(p.queue, j)
	p.admit()
}

func (p *pipeline) admit() {
	for len(p.queue) > 0 && (p.plan.MaxInFlight == 0 || p.inFlight < p.plan.MaxInFlight) {
		j := p.queue[0]
		p.queue[0] = nil
		p.queue = p.queue[1:]
		p.inFlight++
		j.Scheduled = p.w.now
		p.w.at(p.w.now+p.plan.Overhead, func() { p.received(p.visit(j, p.stages[0], 1)) })
	}
}

// visit chooses the replica of a stage for a job whose input has that many chunks.
func (p *pipeline) visit(j *job, s *stage, chunks int) *stageRequest {
	best := s.turn % len(s.replicas)
	for i := range s.replicas {
		if k := (s.turn + i) % len(s.replicas); s.replicas[k].load() < s.replicas[best].load() {
			best = k
		}
	}
	s.turn = best + 1
	v := &stageRequest{job: j, stage: s, chunks: chunks}
	v.Stage, v.Replica = s.index, best
	return v
}

// streamed reports whether a stage takes its input chunk by chunk.
func (p *pipeline) streamed(s *stage) bool { return p.plan.Overlap && s.Kind != Diffusion }

func (p *pipeline) submit(v *stageRequest) {
	v.Submitted = p.w.now
	v.stage.replicas[v.Replica].submit(v)
	p.out.queued(v.stage)
}

// progressed is called when that share, part of whole, of the work of a visit
// is done; it sends the chunks that are ready when the pipeline overlaps.
func (p *pipeline) progressed(v *stageRequest, part, whole int) {
	s := v.stage
	if !p.plan.Overlap || s.index+1 == len(p.stages) {
		return
	}
	for ready := part * s.Hop.Chunks / whole; v.sent < ready; {
		p.send(v, nil)
	}
}

// ended is called when a visit has done all its work.
func (p *pipeline) ended(v *stageRequest) {
	v.Finished = p.w.now
	v.job.truth.Stages = append(v.job.truth.Stages, v.StageTruth)
	p.out.left(v)
	p.out.queued(v.stage)
	switch last := v.stage.index+1 == len(p.stages); {
	case last:
		p.leave(v.job)
	case p.plan.Overlap:
		p.progressed(v, 1, 1)
	default:
		p.sendAll(v)
	}
}

// sendAll sends the chunks of a visit, each after the one before has arrived.
func (p *pipeline) sendAll(v *stageRequest) {
	if v.sent < v.stage.Hop.Chunks {
		p.send(v, func() { p.sendAll(v) })
	}
}

// send lets the next chunk of a visit leave and calls then, unless it is nil, when it has arrived.
func (p *pipeline) send(v *stageRequest, then func()) {
	from := v.stage
	if v.next == nil {
		v.next = p.visit(v.job, p.stages[from.index+1], from.Hop.Chunks)
	}
	draw := func(d time.Duration) time.Duration {
		return time.Duration(lognormal(p.rng, float64(d), from.Hop.CV))
	}
	h := HopTruth{
		From: from.index, FromReplica: v.Replica, To: from.index + 1, ToReplica: v.next.Replica,
		Chunk: v.sent, Bytes: from.Hop.Bytes, Sent: p.w.now,
		Tx: draw(from.Hop.Tx), InFlight: draw(from.Hop.InFlight), Rx: draw(from.Hop.Rx),
	}
	v.sent++
	p.w.at(p.w.now+h.Tx+h.InFlight+h.Rx, func() {
		v.job.truth.Hops = append(v.job.truth.Hops, h)
		p.out.hopped(h)
		p.received(v.next)
		if then != nil {
			then()
		}
	})
}

// received counts a chunk in, and submits the visit when it can start.
func (p *pipeline) received(v *stageRequest) {
	v.arrived++
	switch streamed := p.streamed(v.stage); {
	case streamed && v.arrived == 1, !streamed && v.arrived == v.chunks:
		p.submit(v)
	case streamed:
		v.stage.replicas[v.Replica].more(v)
	}
}

func (p *pipeline) leave(j *job) {
	j.Last = p.w.now
	p.inFlight--
	p.out.ended(j)
	p.admit()
}
