// Package histest estimates quantiles of observations that are only known as bucket counts, and bounds the estimates.
//
// The input is what a histogram gained over a window ([Delta]) and, to learn where in a bucket its observations
// lie, what it gained between consecutive scrapes:
//
//	est, err := histest.New("polynomial", bounds)
//	for each pair of scrapes in the window {
//		est.Interval(&gained)
//	}
//	estimates, ok = est.Quantiles(estimates[:0], &total, []float64{0.5, 0.99})
//
// There are three estimators. "polynomial" repeats AIPerf's algorithm number for number, "linear" is
// Prometheus' histogram_quantile, and "refined" uses the sums of all intervals and is several times more
// accurate than both (docs/percentiles.md). Whatever the estimator, an [Estimate] carries an interval that
// provably holds the quantile of the true observations, given that none of them is negative (unless there is a
// negative bound) and that counts and sum belong together.
//
// An Estimator works in closed form: its cost grows with the number of buckets and intervals, never with the
// number of observations. It has one owner and is not safe for concurrent use.
package histest

import (
	"fmt"
	"math"
)

// Delta is what a histogram gained between two scrapes.
type Delta struct {
	// Bounds are the finite upper bounds, ascending. Shared, never changed.
	Bounds []float64
	// Cum is parallel to Bounds: gained observations less than or equal to the bound (cumulative, whole
	// numbers; a reset or a torn scrape can make them negative or not monotone).
	Cum []float64
	// Inf is the gain of the +Inf bucket, if HasInf.
	Inf    float64
	HasInf bool
	Sum    float64 // gained sum of the observations
	Count  float64 // gained number of observations
	// Late is how many of them, at most, may not be of the window, as they were published late. Bounds of quantiles hold
	// for what is left of the observations whichever those are; estimates are of all.
	Late int64
}

// Flags qualify an estimate.
type Flags uint8

// The flags.
const (
	Degenerate Flags = 1 << iota // no bound separates the observations: all are in one bucket
	Overflow                     // the quantile lies beyond the last finite bound
	Few                          // too few observations for this quantile: less than 1/min(q, 1-q)
	Recorded                     // no estimate: the observations themselves were recorded, or bound it
)

// Estimate is an estimated quantile with the interval in which the quantile of the true observations provably
// lies. Low and High are NaN where nothing is known.
type Estimate struct {
	Value     float64
	Low, High float64
	Flags     Flags
}

// Clamp moves the value to the nearest end of what is proven where it lies outside. AIPerf's estimates are not clamped:
// they are its numbers.
func (e *Estimate) Clamp() {
	if e.Value < e.Low {
		e.Value = e.Low
	}
	if e.Value > e.High {
		e.Value = e.High
	}
}

// Estimator learns from intervals and estimates the quantiles of their total.
type Estimator interface {
	// Interval learns from the gain between two consecutive scrapes, in time order and from the beginning of
	// the window. The polynomial estimator learns from all of them, as AIPerf goes on after the window; the
	// refined one takes as many of the first as make up the total. It keeps nothing of d.
	Interval(d *Delta)
	// Quantiles appends one estimate for each q of qs (0 to 1, any order) to dst and reports whether there is
	// an answer: there is none without observations, without a finite bound, or with a sum that is not finite
	// or is negative where no bound is. The polynomial estimator, like AIPerf, wants no negative sum. Values
	// are always finite. It may be called at any time, also repeatedly.
	Quantiles(dst []Estimate, total *Delta, qs []float64) ([]Estimate, bool)
}

// The names of the estimators, as [New] takes them and exports show them.
const (
	Polynomial = "polynomial"
	Linear     = "linear"
	Refined    = "refined"
)

// New returns the estimator of that name for a histogram with the given finite
// upper bounds, which must be ascending. The slice is kept and must not change.
func New(name string, bounds []float64) (Estimator, error) {
	for i, b := range bounds {
		if math.IsNaN(b) || math.IsInf(b, 0) {
			return nil, fmt.Errorf("make estimator %s: bound %d is %v, want a finite number", name, i, b)
		}
		if i > 0 && b <= bounds[i-1] {
			return nil, fmt.Errorf("make estimator %s: bound %d is %v after %v, want ascending bounds", name, i, b, bounds[i-1])
		}
	}
	switch name {
	case Polynomial:
		return newPolynomial(bounds), nil
	case Linear:
		return &linear{bounds: bounds}, nil
	case Refined:
		return newRefined(bounds), nil
	}
	return nil, fmt.Errorf("make estimator: unknown name %q, want %s, %s or %s", name, Polynomial, Linear, Refined)
}

// maxCount is the largest count that is taken for a count: all whole numbers up to it are exact.
const maxCount = 1 << 53

// usable reports whether d can be answered for bounds at all: it has their layout, at least one observation,
// exact counts and a finite sum, which is negative only if a bound is.
func (d *Delta) usable(bounds []float64) bool {
	if len(d.Cum) != len(bounds) || !(math.Trunc(d.Count) > 0) || !(math.Abs(d.Count) <= maxCount) {
		return false
	}
	signed := len(bounds) > 0 && bounds[0] < 0
	if !(d.Sum >= 0 || signed && d.Sum < 0) || math.IsInf(d.Sum, 0) {
		return false
	}
	for _, c := range d.Cum {
		if !(math.Abs(c) <= maxCount) {
			return false
		}
	}
	return !d.HasInf || math.Abs(d.Inf) <= maxCount
}
