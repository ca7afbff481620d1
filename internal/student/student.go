// Package student is the distribution of Student's t, as far as tests of differences need it. It uses gonum's special
// functions; gonum's own distributions would bring its linear algebra into the program, which is 3 MB.
package student

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// TwoSided returns how likely a value is that is as far from 0 as t, or farther. Infinite degrees of freedom are those
// of the normal distribution.
func TwoSided(t, df float64) float64 {
	if math.IsInf(df, 1) {
		return math.Erfc(math.Abs(t) / math.Sqrt2)
	}
	return mathext.RegIncBeta(df/2, 0.5, df/(t*t+df))
}

// Quantile returns the value below which a share p of all lies; p is above a half.
func Quantile(p, df float64) float64 {
	if math.IsInf(df, 1) {
		return mathext.NormalQuantile(p)
	}
	x := mathext.InvRegIncBeta(df/2, 0.5, 2*(1-p))
	return math.Sqrt(df * (1 - x) / x)
}
