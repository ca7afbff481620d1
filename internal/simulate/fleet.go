package simulate

import (
	"math/rand/v2"
	"time"
)

// fleet is the load model of the servers of language models: requests arrive,
// are tokenised by a front end, and go to the engine with the least load.
type fleet struct {
	w       *world
	engines []*engine
	lengths *rand.Rand
	chat    *rand.Rand // of what the front end takes
	next    int        // ID of the next request
	open    int
	arrived func(*sequence) // called at each arrival, unless nil
	queued  func(*sequence) // called when the front end is done, unless nil
}

// newFleet makes the engines, which tell out what they do; start lets requests come.
func newFleet(w *world, out engineObserver) *fleet {
	f := &fleet{w: w, lengths: w.stream(streamLengths), chat: w.stream(streamHTTP)}
	for i := range w.opt.Engines {
		f.engines = append(f.engines, newEngine(w, w.opt.Hardware, i, out))
	}
	return f
}

func (f *fleet) start() { f.w.arrivals = newArrivals(f.w, f.arrive) }

func (f *fleet) arrive() { f.enter(newSequence(f.w, f.lengths, f.next)) }

// enter takes a request that arrives now.
func (f *fleet) enter(q *sequence) {
	f.next++
	f.open++
	if f.arrived != nil {
		f.arrived(q)
	}
	front := 1500*time.Microsecond + time.Duration(q.PromptTokens)*1500*time.Nanosecond +
		time.Duration(f.chat.ExpFloat64()*3e5)
	f.w.at(f.w.now+front, func() {
		best := f.engines[0]
		for _, e := range f.engines[1:] {
			if e.load() < best.load() {
				best = e
			}
		}
		best.add(q)
		if f.queued != nil {
			f.queued(q)
		}
	})
}

// left settles a request that has finished.
func (f *fleet) left(q *sequence) {
	f.w.finished++
	f.open--
	if f.w.opt.KeepTruth {
		f.w.requests = append(f.w.requests, q.Request)
	}
}

// work is the time that the engines have computed.
func (f *fleet) work() (d time.Duration) {
	for _, e := range f.engines {
		d += e.work
	}
	return d
}

// running and waiting add up the engines.
func (f *fleet) running() (n int) {
	for _, e := range f.engines {
		n += len(e.running)
	}
	return n
}

func (f *fleet) waiting() (n int) {
	for _, e := range f.engines {
		n += len(e.waiting)
	}
	return n
}

// newSequence draws a request that arrives now.
func newSequence(w *world, rng *rand.Rand, id int) *sequence {
	o := w.opt
	limit := o.Hardware.MaxModelLen
	prompt := min(max(1, int(lognormal(rng, o.Prompt.Mean, o.Prompt.CV))), limit*3/4)
	output := max(1, int(lognormal(rng, o.Output.Mean, o.Output.CV)))
	most := min([]int{128, 256, 512, 1024, 2048}[rng.IntN(5)], limit-prompt)
	q := &sequence{allowed: unlimited, target: min(output, most)}
	q.Request = Request{ID: id, Arrival: w.now, PromptTokens: prompt, MaxTokens: most, Reason: "stop"}
	if output >= most {
		q.Reason = "length"
	}
	share, fate, cut := rng.Float64(), rng.Float64(), rng.Float64()
	if share < o.PrefixShare {
		block := o.Hardware.BlockSize
		q.CachedTokens = prompt / 2 / block * block
	}
	switch abort := max(o.AbortShare, 0); {
	case fate < abort:
		q.Reason = "abort"
	case fate < abort+max(o.ErrorShare, 0):
		q.Reason = "error"
	default:
		return q
	}
	q.target = 1 + int(cut*float64(q.target-1))
	return q
}

// served reports whether a request ended well: it was neither aborted nor failed.
func (r *Request) served() bool { return r.Reason != "abort" && r.Reason != "error" }

// tokenGaps records the gaps between tokens, those of equal length together, as most of one step are.
type tokenGaps struct {
	to  *series
	gap time.Duration
	n   int
}

func (g *tokenGaps) add(w *world, gap time.Duration) {
	if gap != g.gap {
		g.flush(w)
		g.gap = gap
	}
	g.n++
}

func (g *tokenGaps) flush(w *world) {
	w.reg.record(w.now, g.to, seconds(g.gap), g.n)
	g.n = 0
}
