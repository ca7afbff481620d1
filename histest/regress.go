package histest

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// ridge is a linear regression with normal prior distributions: the matrix of
// its normal equations and their right side, both divided by the noise.
type ridge struct {
	a *mat.SymDense
	r []float64
}

func newRidge(k int) *ridge { return &ridge{mat.NewSymDense(k, nil), make([]float64, k)} }

// add adds weight * z zᵀ to the matrix and weight * y * z to the right side, for
// a vector z that is zero but at the given indices.
func (g *ridge) add(index []int, z []float64, weight, y float64) {
	raw := g.a.RawSymmetric()
	for k, i := range index {
		w := weight * z[k]
		g.r[i] += w * y
		for m, j := range index {
			if j >= i {
				raw.Data[i*raw.Stride+j] += w * z[m]
			}
		}
	}
}

// scale divides both sides.
func (g *ridge) scale(by float64) {
	g.a.ScaleSym(1/by, g.a)
	for i := range g.r {
		g.r[i] /= by
	}
}

// solve chooses the scale c of the prior from the ascending grid that makes the data most likely, less a
// penalty for each step up the grid, and returns it with the posterior mean. The prior of parameter i is normal
// around 0 with standard deviation sd[i], times c where scaled[i].
func (g *ridge) solve(sd []float64, scaled []bool, grid []float64, penalty float64) (c float64, x []float64) {
	t, y := make([]float64, len(sd)), make([]float64, len(sd))
	best := math.Inf(-1)
	c, x = grid[0], make([]float64, len(sd))
	for step, scale := range grid {
		for i := range t {
			t[i] = sd[i]
			if scaled[i] {
				t[i] *= scale
			}
		}
		gain, ok := g.posterior(t, y)
		if gain -= penalty * float64(step); ok && gain > best {
			best, c = gain, scale
			for i := range x {
				x[i] = t[i] * y[i]
			}
		}
	}
	return c, x
}

// posterior solves the equations in units of the prior, (I + T A T) y = T r, and returns the logarithm of the
// evidence. ok is false if the matrix is not positive definite, as only input that is not finite makes it.
func (g *ridge) posterior(t, y []float64) (evidence float64, ok bool) {
	k := len(t)
	raw := g.a.RawSymmetric()
	m := blas64.Symmetric{N: k, Stride: k, Data: make([]float64, k*k), Uplo: blas.Upper}
	for i := range k {
		for j := i; j < k; j++ {
			m.Data[i*k+j] = raw.Data[i*raw.Stride+j] * t[i] * t[j]
		}
		m.Data[i*k+i]++
		y[i] = g.r[i] * t[i]
	}
	factor, ok := lapack64.Potrf(m)
	if !ok {
		return 0, false
	}
	lapack64.Potrs(factor, blas64.General{Rows: k, Cols: 1, Stride: 1, Data: y})
	for i := range k {
		evidence += 0.5*g.r[i]*t[i]*y[i] - math.Log(m.Data[i*k+i])
	}
	return evidence, !math.IsNaN(evidence)
}

// solveWithin returns the posterior mean under lower <= x <= upper, by coordinate descent from start.
func (g *ridge) solveWithin(sd []float64, lower, upper, start []float64) []float64 {
	x := make([]float64, len(start))
	for i, v := range start {
		x[i] = min(max(v, lower[i]), upper[i])
	}
	for range 60 {
		moved := 0.0
		for j := range x {
			own := g.a.At(j, j) + 1/(sd[j]*sd[j])
			rest := g.r[j]
			for i, v := range x {
				if i != j {
					rest -= g.a.At(j, i) * v
				}
			}
			v := min(max(rest/own, lower[j]), upper[j])
			moved = max(moved, math.Abs(v-x[j])/(math.Abs(upper[j]-lower[j])+1e-300))
			x[j] = v
		}
		if moved < 1e-7 {
			break
		}
	}
	return x
}

// within reports whether every x lies between its limits.
func within(x, lower, upper []float64) bool {
	for i, v := range x {
		if !(v >= lower[i]) || !(v <= upper[i]) {
			return false
		}
	}
	return true
}
