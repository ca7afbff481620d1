package histest

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// normalCDF is the distribution function of the standard normal.
func normalCDF(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }

// normalQuantile is its inverse, accurate in both tails.
func normalQuantile(p float64) float64 { return mathext.NormalQuantile(min(max(p, 0), 1)) }

// normalCells appends to dst the mass of a standard normal between successive z,
// from whichever tail is shorter, so that no cell beyond is lost to rounding.
func normalCells(dst, z []float64) []float64 {
	below, above := tails(z[0])
	for _, x := range z[1:] {
		nextBelow, nextAbove := tails(x)
		if above < below {
			dst = append(dst, max(above-nextAbove, 0))
		} else {
			dst = append(dst, max(nextBelow-below, 0))
		}
		below, above = nextBelow, nextAbove
	}
	return dst
}

// tails returns the mass below and above z.
func tails(z float64) (below, above float64) {
	if math.Abs(z) > 38.5 { // beyond, Erfc is 0
		if z < 0 {
			return 0, 1
		}
		return 1, 0
	}
	t := 0.5 * math.Erfc(math.Abs(z)/math.Sqrt2)
	if z < 0 {
		return t, 1 - t
	}
	return 1 - t, t
}
