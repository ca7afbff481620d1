package histest

import (
	"math"
	"sync"

	"gonum.org/v1/gonum/mathext"
)

// normalCDF is the distribution function of the standard normal.
func normalCDF(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }

// normalQuantile is its inverse, accurate in both tails.
func normalQuantile(p float64) float64 { return mathext.NormalQuantile(min(max(p, 0), 1)) }

// The placement needs the normal tail tens of thousands of times per series, so it is interpolated: cubic
// Hermite polynomials through tail and density at steps of 1/tailSteps, relative error below 1e-8.
const (
	tailSteps = 128
	tailEnd   = 8 // beyond, the exact function
)

type tailNode struct{ tail, slope float64 } // slope over one step

// tailTable makes the nodes when they are first needed; it never changes.
var tailTable = sync.OnceValue(func() *[tailEnd*tailSteps + 2]tailNode {
	var nodes [tailEnd*tailSteps + 2]tailNode
	for i := range nodes {
		z := float64(i) / tailSteps
		density := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
		nodes[i] = tailNode{0.5 * math.Erfc(z/math.Sqrt2), -density / tailSteps}
	}
	return &nodes
})

// normalTail returns the mass of the standard normal above z >= 0.
func normalTail(nodes *[tailEnd*tailSteps + 2]tailNode, z float64) float64 {
	if !(z < tailEnd) {
		if z > 38.5 {
			return 0
		}
		return 0.5 * math.Erfc(z/math.Sqrt2)
	}
	z *= tailSteps
	i := int(z)
	t := z - float64(i)
	a, b := nodes[i], nodes[i+1]
	d := b.tail - a.tail
	return a.tail + t*(a.slope+t*((3*d-2*a.slope-b.slope)+t*(a.slope+b.slope-2*d)))
}

// normalCells appends to dst the mass of a standard normal between successive z,
// from whichever tail is shorter, so that no cell beyond is lost to rounding.
func normalCells(dst, z []float64) []float64 {
	nodes := tailTable()
	left := normalTail(nodes, math.Abs(z[0]))
	for i, x := range z[1:] {
		right := normalTail(nodes, math.Abs(x))
		switch {
		case z[i] > 0:
			dst = append(dst, max(left-right, 0))
		case x > 0:
			dst = append(dst, max(1-right-left, 0))
		default:
			dst = append(dst, max(right-left, 0))
		}
		left = right
	}
	return dst
}
