package histest

import "math"

// learned is what AIPerf knows of one bucket from the intervals whose observations all fell into it.
type learned struct {
	intervals    int
	observations float64
	weighted     float64 // sum of interval mean * observations, in time order
	first        float64 // the first interval mean
	differ       bool    // another interval mean had other bits
	mean, m2     float64 // Welford's running mean and sum of squared deviations
}

// add records an interval with n observations of the given mean.
func (l *learned) add(mean, n float64) {
	l.observations += n
	l.weighted += mean * n
	if l.intervals == 0 {
		l.first = mean
	} else if mean != l.first {
		l.differ = true
	}
	l.intervals++
	d := mean - l.mean
	k := float64(l.intervals)
	l.mean += d / k
	l.m2 += d * d * ((k - 1) / k) // never 0 for d != 0, as Welford's d*(mean-new) can be
}

// meanWithin returns the weighted mean if it lies strictly inside (lower, upper).
func (l *learned) meanWithin(lower, upper float64) (mean float64, ok bool) {
	if l.intervals == 0 {
		return 0, false
	}
	mean = l.weighted / l.observations
	return mean, lower < mean && mean < upper
}

// variance returns the unweighted sample variance of the interval means, 0 with fewer than three of them.
// AIPerf's numpy gives a tiny positive variance for equal means whose computed average is off by a rounding,
// and places observations differently then, so that case is repeated here exactly.
func (l *learned) variance() float64 {
	if l.intervals < 3 {
		return 0
	}
	if l.differ {
		return l.m2 / float64(l.intervals-1)
	}
	n := l.intervals
	d := l.first - pairwiseSum(n, func(int) float64 { return l.first })/float64(n)
	return d * d * (float64(n) / float64(n-1))
}

// pairwiseSum adds n values in the order of numpy's sum of an array.
func pairwiseSum(n int, at func(i int) float64) float64 {
	return pairwise(0, n, at)
}

func pairwise(from, n int, at func(i int) float64) float64 {
	if n < 8 {
		s := 0.0
		for i := range n {
			s += at(from + i)
		}
		return s
	}
	if n > 128 {
		half := n / 2
		half -= half % 8
		return pairwise(from, half, at) + pairwise(from+half, n-half, at)
	}
	var r [8]float64
	for j := range r {
		r[j] = at(from + j)
	}
	i := 8
	for ; i < n-n%8; i += 8 {
		for j := range r {
			r[j] += at(from + i + j)
		}
	}
	s := ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
	for ; i < n; i++ {
		s += at(from + i)
	}
	return s
}

// compensated is a sum with Neumaier's correction, as Python's sum() has since 3.12.
type compensated struct{ sum, lost float64 }

func (c *compensated) add(x float64) {
	t := c.sum + x
	if math.Abs(c.sum) >= math.Abs(x) {
		c.lost += (c.sum - t) + x
	} else {
		c.lost += (x - t) + c.sum
	}
	c.sum = t
}

func (c *compensated) value() float64 { return c.sum + c.lost }
