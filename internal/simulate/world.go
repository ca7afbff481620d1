package simulate

import (
	"math/rand/v2"
	"slices"
	"time"
)

// world is one simulated process: its clock, what is going to happen, and what it exposes. Time in it is the time since
// the process started. It moves only when advance is called, event by event in a fixed order, so that the state at an
// instant does not depend on how often it was looked at.
type world struct {
	opt      *Options
	reg      *registry
	origin   time.Time
	elapsed  time.Duration // of the server when this process started
	restarts uint64

	now    time.Duration
	events []event // binary heap by (at, seq)
	seq    uint64

	requests []Request
	steps    []Step
	finished uint64
	plan     *Plan // of a pipeline
	arrivals *arrivals
}

type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

func (e event) before(f event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// The random streams. Each cause of randomness has its own, so that one option does not shift the draws of another.
const (
	streamArrivals = iota + 1
	streamLengths
	streamLag
	streamHTTP
	streamPipeline
	streamEngines // and one more per engine
)

// streamClients is the stream of the requests of real clients, beyond those of any number of engines.
const streamClients = 1 << 24

func newWorld(o *Options, origin time.Time, elapsed time.Duration, restarts uint64) *world {
	w := &world{opt: o, origin: origin, elapsed: elapsed, restarts: restarts}
	w.reg = newRegistry(origin, o, w.stream(streamLag))
	return w
}

func (w *world) stream(id uint64) *rand.Rand {
	return rand.New(rand.NewPCG(w.opt.Seed, id|w.restarts<<32))
}

// at has do called at the instant t, after everything that was put there before.
func (w *world) at(t time.Duration, do func()) {
	w.seq++
	e := event{max(t, w.now), w.seq, do}
	w.events = append(w.events, e)
	for i := len(w.events) - 1; i > 0; {
		parent := (i - 1) / 2
		if !e.before(w.events[parent]) {
			break
		}
		w.events[i], w.events[parent] = w.events[parent], e
		i = parent
	}
}

// advance lets everything up to and including the instant to happen.
func (w *world) advance(to time.Duration) {
	for len(w.events) > 0 && w.events[0].at <= to {
		e := w.pop()
		w.now = e.at
		e.do()
	}
	w.now = max(w.now, to)
	w.reg.publish(w.now)
}

func (w *world) pop() event {
	first, last := w.events[0], w.events[len(w.events)-1]
	w.events[len(w.events)-1] = event{}
	w.events = w.events[:len(w.events)-1]
	if len(w.events) == 0 {
		return first
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= len(w.events) {
			break
		}
		if child+1 < len(w.events) && w.events[child+1].before(w.events[child]) {
			child++
		}
		if !w.events[child].before(last) {
			break
		}
		w.events[i] = w.events[child]
		i = child
	}
	w.events[i] = last
	return first
}

// slowdown is by how much a cold process is slower now, 1 when it is warm.
func (w *world) slowdown() float64 {
	c := w.opt.ColdStart
	if c.Slowdown <= 1 || w.now >= c.For {
		return 1
	}
	return 1 + (c.Slowdown-1)*(1-float64(w.now)/float64(c.For))
}

// arrivals is a Poisson process whose rate changes at given instants.
type arrivals struct {
	w       *world
	rng     *rand.Rand
	steps   []LoadStep // At in the time of the server, ascending, the first at 0
	turn    int        // of the rate; an arrival of an earlier turn is void
	changed bool       // by setRate
	do      func()
}

func newArrivals(w *world, do func()) *arrivals {
	steps := append([]LoadStep{{Rate: w.opt.Rate}}, w.opt.Load...)
	a := &arrivals{w: w, rng: w.stream(streamArrivals), steps: steps, do: do}
	a.plan()
	return a
}

// setRate changes the rate from now on and drops later steps.
func (a *arrivals) setRate(rate float64) {
	at := a.w.elapsed + a.w.now
	keep := slices.IndexFunc(a.steps, func(s LoadStep) bool { return s.At > at })
	if keep < 0 {
		keep = len(a.steps)
	}
	a.steps = append(a.steps[:keep:keep], LoadStep{At: at, Rate: rate})
	a.turn++
	a.changed = true
	a.plan()
}

// rate is the last rate set.
func (a *arrivals) rate() float64 { return a.steps[len(a.steps)-1].Rate }

func (a *arrivals) plan() {
	t, ok := a.next()
	if !ok {
		return
	}
	turn := a.turn
	a.w.at(t, func() {
		if turn != a.turn {
			return
		}
		a.do()
		a.plan()
	})
}

// next draws the next arrival by using up an exponential amount of hazard, the integral of the rate.
func (a *arrivals) next() (time.Duration, bool) {
	at, hazard := seconds(a.w.elapsed+a.w.now), a.rng.ExpFloat64()
	for i, s := range a.steps {
		last := i == len(a.steps)-1
		if !last && seconds(a.steps[i+1].At) <= at {
			continue
		}
		at = max(at, seconds(s.At))
		if s.Rate > 0 {
			t := at + hazard/s.Rate
			if last || t < seconds(a.steps[i+1].At) {
				return time.Duration(t*1e9) - a.w.elapsed, true
			}
		}
		if !last {
			end := seconds(a.steps[i+1].At)
			hazard -= s.Rate * (end - at)
			at = end
		}
	}
	return 0, false
}
