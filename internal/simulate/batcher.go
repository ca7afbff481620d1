package simulate

import (
	"math/rand/v2"
	"time"
)

// batcher is a served model that is no language model: requests wait in one queue, an idle instance takes as many as it
// may batch, and all of a batch have the same times of computation.
type batcher struct {
	w       *world
	rng     *rand.Rand
	index   int
	free    int // idle instances
	largest int // batch, in requests
	base    time.Duration
	perItem time.Duration
	queue   []*task
	active  int // requests in computation
	ran     func(batch []*task)
}

// task is one request in a batcher. Input, inference and output follow each
// other from Scheduled on, and First is their end; the response takes until Last.
type task struct {
	Request
	items              int
	input, infer, give time.Duration
	then               func(*task)
}

func (b *batcher) add(t *task) {
	t.Engine, t.Queued = b.index, b.w.now
	b.queue = append(b.queue, t)
	b.start()
}

func (b *batcher) start() {
	for b.free > 0 && len(b.queue) > 0 {
		n := min(len(b.queue), b.largest)
		batch := append([]*task(nil), b.queue[:n]...)
		b.queue = append(b.queue[:0], b.queue[n:]...)
		b.free--
		b.active += n
		b.run(batch)
	}
}

func (b *batcher) run(batch []*task) {
	items := 0
	for _, t := range batch {
		items += t.items
	}
	infer := time.Duration(lognormal(b.rng, float64(b.base)+float64(b.perItem)*float64(items), 0.1) * b.w.slowdown())
	input, give := infer/20+20*time.Microsecond, infer/40+15*time.Microsecond
	for _, t := range batch {
		t.Scheduled, t.input, t.infer, t.give = b.w.now, input, infer, give
	}
	b.w.at(b.w.now+input+infer+give, func() {
		b.free++
		b.active -= len(batch)
		if b.ran != nil {
			b.ran(batch)
		}
		for _, t := range batch {
			t.First, t.Last = b.w.now, b.w.now
			t.then(t)
		}
		b.start()
	})
}

// settle keeps a request that has ended for Truth.
func (t *task) settle(w *world) {
	w.finished++
	if w.opt.KeepTruth {
		w.requests = append(w.requests, t.Request)
	}
}
