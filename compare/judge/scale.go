package judge

import (
	"math"
	"slices"
)

// scale is what values are transformed by before they are averaged and compared.
type scale struct {
	to, back func(float64) float64
	relative bool // changes are relative to the base
}

// logarithm is the scale of positive quantities.
func logarithm() scale { return scale{to: math.Log, back: math.Exp, relative: true} }

// arcsine is the scale of the shares of several runs; it steadies their variance.
func arcsine() scale {
	return scale{to: func(p float64) float64 { return math.Asin(math.Sqrt(p)) }, back: func(x float64) float64 {
		s := math.Sin(min(max(x, 0), math.Pi/2))
		return s * s
	}}
}

// linear is the scale of the share of one run.
func linear() scale {
	same := func(v float64) float64 { return v }
	return scale{to: same, back: same}
}

func scaleOf(r *Row) scale {
	if r.Share {
		return arcsine()
	}
	return logarithm()
}

// fits reports whether values can be transformed.
func (s scale) fits(values []float64) bool {
	for _, v := range values {
		if s.relative && !(v > 0) || !(v >= 0) || math.IsInf(v, 0) || !s.relative && v > 1 {
			return false
		}
	}
	return true
}

// moments returns the mean of the transformed values and the sum of squares around it.
func (s scale) moments(values []float64) (mean, ss float64) {
	for _, v := range values {
		mean += s.to(v)
	}
	mean /= float64(len(values))
	for _, v := range values {
		d := s.to(v) - mean
		ss += d * d
	}
	return mean, ss
}

// center is the mean of values on their own scale, given that of the transformed ones; equal values stay what they are.
func (s scale) center(values []float64, mean float64) float64 {
	if slices.Min(values) == slices.Max(values) {
		return values[0]
	}
	return s.back(mean)
}

// change is what a difference on the scale means for a base whose transformed value is from.
func (s scale) change(from, delta float64) float64 {
	if s.relative {
		return math.Expm1(delta)
	}
	return s.back(from+delta) - s.back(from)
}

// width is a half width on the scale relative to a value; 0 where a floor has no meaning.
func (s scale) width(half float64) float64 {
	if s.relative {
		return math.Expm1(half)
	}
	return math.Inf(1)
}

// marginOn is a margin on the scale: of a share that of its steepest place, which asks for more runs than any other.
func (s scale) marginOn(margin float64) float64 {
	if s.relative {
		return math.Log1p(margin)
	}
	return margin
}

// beyond reports whether the difference is at least the margin.
func (w *work) beyond(margin float64) bool {
	if w.relative {
		return math.Abs(w.delta) >= math.Log1p(margin)
	}
	return math.Abs(w.change(w.from, w.delta)) >= margin
}

// within reports whether the difference stays within the margin with half a width to either side.
func (w *work) within(margin, half float64) bool {
	if w.relative {
		return math.Abs(w.delta)+half <= math.Log1p(margin)
	}
	return max(math.Abs(w.change(w.from, w.delta-half)), math.Abs(w.change(w.from, w.delta+half))) <= margin
}
