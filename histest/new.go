package histest

import (
	"fmt"
	"math"
)

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
