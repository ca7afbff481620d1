package histest

import "math"

// kind is how AIPerf spreads the observations of a bucket.
type kind uint8

const (
	uniform  kind = iota // evenly, around a centre
	twoPoint             // some at the lower bound, the rest at one value
	aware                // evenly from the mean to either side, by the learned variance
	blended              // half uniform, half aware
)

// placement holds the values AIPerf would generate for one bucket, in closed
// form: value(i) is the i-th of n values, non-decreasing in i.
type placement struct {
	kind         kind
	n            int
	lower, upper float64
	shift        float64 // uniform: centre minus midpoint
	mean         float64 // aware
	below, above float64 // aware: reach from the mean to either side
	atLower      int     // twoPoint: values at the lower bound
	rest         float64 // twoPoint: the other value
	moved        float64 // by the adjustment to the sum
}

func clip(x, lower, upper float64) float64 { return min(max(x, lower), upper) }

// place chooses the spread of n observations in (lower, upper]. centre is where
// a uniform spread lies; mean and variance are the learned ones, used when the
// variance is positive. The thresholds are AIPerf's (aiperf.md 3.2 step 12).
func place(n int, lower, upper, centre, mean, variance float64) placement {
	p := placement{n: n, lower: lower, upper: upper}
	width, mid := upper-lower, (lower+upper)/2
	if !(variance > 0) {
		p.shift = centre - mid
		return p
	}
	sd := math.Sqrt(variance)
	spread, offset := (4*sd)/width, math.Abs(mean-mid)/width
	if spread < 0.01 {
		p.kind = twoPoint
		d := mean - lower
		p.rest = clip(mean+variance/d, lower, upper)
		p.atLower = int(float64(n) * (variance / (variance + float64(d*d))))
		return p
	}
	p.kind, p.mean = aware, mean
	if spread < 0.2 && offset < 0.3 {
		p.kind, p.shift = blended, mean-mid
	}
	p.below = min((mean-lower)/sd, 3) * sd
	p.above = min((upper-mean)/sd, 3) * sd
	return p
}

// value returns the i-th value.
func (p *placement) value(i int) float64 {
	v := p.initial(i)
	if p.moved != 0 {
		v = clip(v+p.moved, p.lower, p.upper)
	}
	return v
}

func (p *placement) initial(i int) float64 {
	switch p.kind {
	case twoPoint:
		if i < p.atLower {
			return p.lower
		}
		return p.rest
	case aware:
		return p.aware(i)
	case blended:
		return clip(0.5*p.uniform(i)+0.5*p.aware(i), p.lower, p.upper)
	}
	return p.uniform(i)
}

func (p *placement) fraction(i int) float64 { return (float64(i) + 0.5) / float64(p.n) }

func (p *placement) uniform(i int) float64 {
	return clip(p.lower+(p.upper-p.lower)*p.fraction(i)+p.shift, p.lower, p.upper)
}

func (p *placement) aware(i int) float64 {
	f := p.fraction(i)
	if f < 0.5 {
		return clip(p.mean-p.below*(1-2*f), p.lower, p.upper)
	}
	return clip(p.mean+p.above*(2*f-1), p.lower, p.upper)
}

// sum returns the sum of the values before the adjustment: each spread is at
// most three straight lines, whose sums are arithmetic series.
func (p *placement) sum() float64 {
	switch p.kind {
	case twoPoint:
		return float64(p.atLower)*p.lower + float64(p.n-p.atLower)*p.rest
	case aware:
		return p.sumAware()
	case blended:
		return 0.5*p.sumUniform() + 0.5*p.sumAware()
	}
	return p.sumUniform()
}

// sumUniform adds the line and the part that is cut off at a bound. The index where the cut begins may be off
// by one where line and bound meet, which changes nothing.
func (p *placement) sumUniform() float64 {
	width, n := p.upper-p.lower, float64(p.n)
	if width <= 0 {
		return n * p.uniform(0)
	}
	from, to := 0, p.n
	if p.shift > 0 {
		to = int(clip(math.Ceil(n*((width-p.shift)/width)-0.5), 0, n))
	} else {
		from = int(clip(math.Ceil(n*(-p.shift/width)-0.5), 0, n))
	}
	s := float64(from)*p.lower + float64(p.n-to)*p.upper
	return s + series(p.uniform, from, to)
}

// sumAware adds the two lines that meet at the mean. Neither is ever cut off:
// below and above reach at most to the bounds.
func (p *placement) sumAware() float64 {
	half := p.n / 2
	return series(p.aware, 0, half) + series(p.aware, half, p.n)
}

// series adds line(from) ... line(to-1) of a straight line.
func series(line func(int) float64, from, to int) float64 {
	if from >= to {
		return 0
	}
	return float64(to-from) * ((line(from) + line(to-1)) / 2)
}
