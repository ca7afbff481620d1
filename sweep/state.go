package sweep

import (
	"fmt"
	"math"
)

// The rule of states: batches of the window, the t value of one side of 95 % with their degrees of freedom, the share
// of the work done that must pile up, what must be beyond chance of it, and the least mean queue. In a closed loop,
// where the number in the server is constant, the share of it that waits.
const (
	batches    = 10
	student    = 1.860
	piled      = 0.03
	certainly  = 0.01
	leastQueue = 1
	closedWait = 0.10
)

// judge sets the state of a point by itself.
func (p *Point) judge(unit string) {
	p.Accumulation, p.Err = math.NaN(), math.NaN()
	p.MeanWaiting, p.MeanRunning = known(p.Waiting), known(p.Running)
	if p.Restarts > 0 {
		p.State = Restart
		return
	}
	if p.Why = p.lacks(); p.Why != "" {
		p.State = Unknown
		return
	}
	b, se := slope(p.inServer(), p.Slice)
	p.Accumulation, p.Err = b/p.X, se/p.X
	p.State = p.verdict(unit)
}

// verdict is the state that follows from the accumulation and the queue.
func (p *Point) verdict(unit string) State {
	waits := p.MeanWaiting >= leastQueue
	switch {
	case unit == Concurrent && p.MeanWaiting > 0 && p.MeanWaiting >= closedWait*(p.MeanWaiting+p.MeanRunning):
		return AtLimit
	case unit == Concurrent:
		return Stable
	case p.Accumulation > piled && p.Accumulation-student*p.Err > certainly && waits:
		return Over
	case p.Accumulation > piled && waits:
		return Undecided
	}
	return Stable
}

// lacks is why no state can be told, "" where one can.
func (p *Point) lacks() string {
	n := min(len(p.Waiting), len(p.Running))
	switch {
	case p.Doubt != "":
		return p.Doubt
	case p.X == 0:
		return "no requests"
	case !(p.X > 0) || math.IsInf(p.X, 0):
		return "how many requests ended is not shown"
	case len(p.Waiting) == 0 || len(p.Running) == 0:
		return "waiting or running requests are not shown"
	case n < batches:
		return fmt.Sprintf("%d timeslices of %.3g s, want %d: poll faster or measure longer", n, p.Slice, batches)
	}
	for _, b := range batched(p.inServer()) {
		if math.IsNaN(b) {
			return "stretches without polls"
		}
	}
	return ""
}

// inServer is how many requests were in the server by timeslice.
func (p *Point) inServer() []float64 {
	out := make([]float64, min(len(p.Waiting), len(p.Running)))
	for i := range out {
		out[i] = p.Waiting[i] + p.Running[i]
	}
	return out
}

// known is the mean of the numbers of a list, NaN without one.
func known(list []float64) float64 {
	sum, n := 0.0, 0.0
	for _, v := range list {
		if !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	return sum / n
}

// batched are the means of ten stretches of a list, of what is known in each. Timeslices depend on each other and would
// make any slope significant.
func batched(list []float64) (out [batches]float64) {
	m := len(list) / batches
	for i := range out {
		out[i] = known(list[i*m : (i+1)*m])
	}
	return out
}

// slope is that of a straight line through batch means, per second, and its standard error.
func slope(list []float64, slice float64) (b, se float64) {
	y := batched(list)
	dt := float64(len(list)/batches) * slice
	my, sxx, sxy, rss := known(y[:]), 0.0, 0.0, 0.0
	x := func(i int) float64 { return (float64(i) - (batches-1)/2.0) * dt }
	for i, v := range y {
		sxx, sxy = sxx+x(i)*x(i), sxy+x(i)*(v-my)
	}
	b = sxy / sxx
	for i, v := range y {
		r := v - my - b*x(i)
		rss += r * r
	}
	return b, math.Sqrt(rss / (batches - 2) / sxx)
}

// judgeAll sets the states of points of any order. One that follows an over-saturated one and begins with a queue is
// about that one's load, and so is what follows it.
func judgeAll(points []Point, unit string) {
	for i := range points {
		points[i].judge(unit)
	}
	for range points { // as long as chains may be
		changed := false
		for i := range points {
			p := &points[i]
			if p.Follows < 1 || p.Follows > len(points) || p.State == Over || p.State == Draining || p.State == Restart ||
				len(p.Waiting) == 0 || !(p.Waiting[0] >= leastQueue) {
				continue
			}
			if before := points[p.Follows-1].State; before == Over || before == Draining {
				p.State, changed = Draining, true
			}
		}
		if !changed {
			return
		}
	}
}
