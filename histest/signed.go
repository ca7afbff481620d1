package histest

import "math"

// Observations may be negative where a bound is. The steps of the refined estimator work on positive ones, as latencies
// and sizes are: logarithms of bounds, buckets that begin at 0. So where negative observations were counted everything
// is moved up by as much as the lowest bucket that holds any lies below 0, and the order statistics are moved back.
// Between narrow buckets, as a native histogram has them, the smooth curve is as good in the one place as in the other.

// isSigned reports whether there are negative observations for certain.
func isSigned(bounds, counts []float64, sum float64) bool {
	if len(bounds) == 0 || bounds[0] >= 0 {
		return false
	}
	for b, n := range counts[:len(bounds)] {
		if n > 0 && bounds[b] < 0 {
			return true
		}
	}
	return sum < 0
}

// signedLayout is the buckets as they are, without points; nothing is known below the first bound.
func signedLayout(bounds []float64) layout {
	l := layout{lower: make([]float64, len(bounds)+1), upper: make([]float64, len(bounds)+1)}
	copy(l.lower[1:], bounds)
	copy(l.upper, bounds)
	l.lower[0], l.upper[len(bounds)] = math.Inf(-1), math.Inf(1)
	return l
}

// movedGap is the least relative distance of moved bounds: those around 0 are too
// close to each other to remain distinct.
const movedGap = 1e-12

// moved returns the bounds and rows moved up by so much that no observation is negative. The observations of no
// lower bound, if any, come to lie at 0. ok is false where numbers are too large.
func moved(bounds []float64, r rows, counts []float64) (l layout, out rows, by float64, ok bool) {
	first := 0
	for counts[first] == 0 {
		first++
	}
	by = max(-bounds[max(first-1, 0)], 0)
	last := bounds[len(bounds)-1] + by
	at := make([]float64, len(bounds))
	for i, b := range bounds {
		at[i] = b + by
		if i > 0 {
			at[i] = max(at[i], at[i-1]+movedGap*last)
		}
	}
	out = r
	out.sum = make([]float64, len(r.sum))
	ok = last < math.MaxFloat64/4
	for i, n := range r.sizes() {
		out.sum[i] = max(r.sum[i]+n*by, 0)
		ok = ok && out.sum[i] < math.MaxFloat64/4
	}
	return newLayout(at, false), out, by, ok
}
