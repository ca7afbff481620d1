package histest

import "math"

// linear is the interpolation of Prometheus' histogram_quantile: a bucket's
// observations lie evenly in it, those beyond the last bound at that bound.
type linear struct{ bounds []float64 }

// Interval learns nothing: only the total counts.
func (l *linear) Interval(*Delta) {}

// Quantiles implements [Estimator].
func (l *linear) Quantiles(dst []Estimate, total *Delta, qs []float64) ([]Estimate, bool) {
	if len(l.bounds) == 0 || !total.usable(l.bounds) {
		return dst, false
	}
	n := math.Trunc(total.Count)
	limits := limitsOf(l.bounds, total)
	for _, q := range qs {
		if !(q > 0) {
			q = 0
		}
		v := linearAt(l.bounds, total.Cum, min(q, 1)*n)
		dst = append(dst, limits.estimate(v, q))
	}
	return dst, true
}

// linearAt returns the value at a rank from 0 to the number of observations. Counts that fall from one bound to
// the next are taken as level, as Prometheus does.
func linearAt(bounds, cum []float64, rank float64) float64 {
	lower, below := 0.0, 0.0
	for i, upper := range bounds {
		c := max(cum[i], below)
		if c >= rank && c > below {
			if i == 0 && upper <= 0 {
				return upper
			}
			t := (rank - below) / (c - below)
			return lower*(1-t) + upper*t
		}
		lower, below = upper, c
	}
	return bounds[len(bounds)-1]
}
