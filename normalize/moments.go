package normalize

import "math"

// passes is how often a summer wants to see its values: for the extremes, the mean, and the deviations from it.
const passes = 3

// huge values are scaled down by a power of two while they are summed.
const (
	huge  = 1e150
	scale = 0x1p-600
)

// moments computes mean, extremes and standard deviation of weighted finite values, in three passes so that
// constant values have a deviation of exactly 0 and their own value as mean.
type moments struct {
	pass       int
	n          float64
	min, max   float64
	scale      float64
	shift      float64 // scaled: the first value, then the mean
	sum, squar float64
}

// begin starts a pass, from 0 to passes-1.
func (s *moments) begin(pass int) {
	switch pass {
	case 0:
		s.min, s.max = math.Inf(1), math.Inf(-1)
	case 1:
		s.scale = 1
		if max(math.Abs(s.min), math.Abs(s.max)) > huge {
			s.scale = scale
		}
		s.shift = s.min * s.scale
	case 2:
		s.shift += s.sum / s.n
		s.sum = 0
	}
	s.pass = pass
}

// add takes a value with a positive weight.
func (s *moments) add(v, weight float64) {
	switch s.pass {
	case 0:
		s.n += weight
		s.min, s.max = min(s.min, v), max(s.max, v)
	case 1:
		s.sum += (v*s.scale - s.shift) * weight
	default:
		d := v*s.scale - s.shift
		s.sum += d * weight
		s.squar += d * d * weight
	}
}

// mean is valid from the third pass on.
func (s *moments) mean() float64 {
	return min(max(finite(s.shift/s.scale), s.min), s.max)
}

// spread returns the result: the deviation is that of a sample, n-1, and 0 for a single value.
func (s *moments) spread() Spread {
	out := Spread{Avg: s.mean(), Min: s.min, Max: s.max}
	if s.n > 1 && s.min < s.max {
		out.Std = finite(math.Sqrt(max(0, s.squar-s.sum*s.sum/s.n)/(s.n-1)) / s.scale)
	}
	return out
}
