package histest

import "math"

// Quantile returns the q-quantile (0 to 1; values outside are clamped) of sorted by linear interpolation
// between its order statistics: numpy's default method, type 7 of Hyndman and Fan, rounded exactly as numpy
// rounds. It returns NaN for an empty slice.
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	p := positionOf(q, len(sorted))
	return lerp(sorted[p.lower], sorted[p.upper], p.frac)
}

// position is where a quantile lies between two order statistics, counted from
// 0. lower and upper are equal when frac is 0.
type position struct {
	lower, upper int
	frac         float64
}

// positionOf returns the position of the q-quantile among n > 0 observations.
func positionOf(q float64, n int) position {
	if !(q > 0) {
		q = 0
	}
	at := float64(n-1) * min(q, 1)
	p := position{lower: int(at)}
	p.frac = at - float64(p.lower)
	p.upper = p.lower
	if p.frac > 0 {
		p.upper = min(p.lower+1, n-1)
	}
	return p
}

// lerp is the interpolation of numpy: it is exact at both ends and monotone in t.
func lerp(a, b, t float64) float64 {
	if t < 0.5 {
		return a + (b-a)*t
	}
	return b - (b-a)*(1-t)
}
