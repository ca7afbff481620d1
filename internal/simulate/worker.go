package simulate

import (
	"math"
	"time"
)

// replica is one copy of a stage.
type replica interface {
	// load is by how much it is loaded, for balancing.
	load() int
	// waiting is how many visits wait in it.
	waiting() int
	// submit hands a visit over whose first chunks have arrived.
	submit(v *stageRequest)
	// more tells of a further chunk of a submitted visit.
	more(v *stageRequest)
}

// stageRequest is one request in one replica of one stage.
type stageRequest struct {
	StageTruth
	job     *job
	stage   *stage
	chunks  int // of its input
	arrived int
	done    int // chunks worked off
	working bool
	began   bool
	sent    int             // chunks that went on to the next stage
	packets []time.Duration // when the sound of each chunk was ready
	next    *stageRequest
	q       *sequence // of an autoregressive stage
}

// worker is a replica of an audio or diffusion stage: it serves up to slots
// visits at once, each chunk by chunk as they come, in the order of submission.
type worker struct {
	w      *world
	slots  int
	active int
	queue  []*stageRequest
	ended  func(*stageRequest)
	packet func(*stageRequest)
	// serve draws how long the next chunk of a visit takes.
	serve func(*stageRequest) time.Duration
	work  time.Duration
}

func (k *worker) load() int    { return k.active + len(k.queue) }
func (k *worker) waiting() int { return len(k.queue) }

func (k *worker) submit(v *stageRequest) {
	k.queue = append(k.queue, v)
	k.start()
}

func (k *worker) start() {
	for k.active < k.slots && len(k.queue) > 0 {
		v := k.queue[0]
		k.queue[0] = nil
		k.queue = k.queue[1:]
		k.active++
		v.began, v.Started = true, k.w.now
		k.more(v)
	}
}

func (k *worker) more(v *stageRequest) {
	if !v.began || v.working || v.done >= v.arrived {
		return
	}
	v.working = true
	took := k.serve(v)
	k.work += took
	k.w.at(k.w.now+took, func() {
		v.working = false
		v.done++
		k.packet(v)
		if v.done < v.chunks {
			k.more(v)
			return
		}
		k.active--
		k.ended(v)
		k.start()
	})
}

// engineReplica is a replica of an autoregressive stage.
type engineReplica struct{ e *engine }

func (r engineReplica) load() int    { return len(r.e.waiting) + len(r.e.running) }
func (r engineReplica) waiting() int { return len(r.e.waiting) }

func (r engineReplica) submit(v *stageRequest) {
	s := v.stage
	target := int(math.Round(float64(s.Tokens) * v.job.size(s)))
	v.q = &sequence{target: target, visit: v}
	v.q.Request = Request{
		ID: v.job.ID, Arrival: r.e.w.now, PromptTokens: s.PromptTokens, MaxTokens: maxPlanTokens, Reason: "stop",
	}
	v.allow()
	r.e.add(v.q)
}

func (r engineReplica) more(v *stageRequest) {
	v.allow()
	r.e.wake()
}

// allow lets a sequence generate its share for the chunks that have arrived, rounded up.
func (v *stageRequest) allow() {
	v.q.allowed = (v.q.target*v.arrived + v.chunks - 1) / v.chunks
}
