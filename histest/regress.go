package histest

import (
	"math"

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

// solve chooses the scale c of the prior from the ascending grid that makes the
// data most likely, less a penalty for each step up the grid, and returns it
// with the posterior mean. The prior of parameter i is normal around 0 with
// standard deviation sd[i], times c where scaled[i].
func (g *ridge) solve(sd []float64, scaled []bool, grid []float64, penalty float64) (c float64, x []float64) {
	k := len(sd)
	t, rhs, y := make([]float64, k), mat.NewVecDense(k, nil), mat.NewVecDense(k, nil)
	m := mat.NewSymDense(k, nil)
	var chol mat.Cholesky
	best := math.Inf(-1)
	c, x = grid[0], make([]float64, k)
	raw := g.a.RawSymmetric()
	for step, scale := range grid {
		for i := range t {
			t[i] = sd[i]
			if scaled[i] {
				t[i] *= scale
			}
			rhs.SetVec(i, g.r[i]*t[i])
		}
		for i := range k {
			for j := i; j < k; j++ {
				v := raw.Data[i*raw.Stride+j] * t[i] * t[j]
				if i == j {
					v++
				}
				m.SetSym(i, j, v)
			}
		}
		if !chol.Factorize(m) || chol.SolveVecTo(y, rhs) != nil {
			continue
		}
		gain := 0.5*mat.Dot(rhs, y) - 0.5*chol.LogDet() - penalty*float64(step)
		if gain > best {
			best, c = gain, scale
			for i := range x {
				x[i] = t[i] * y.AtVec(i)
			}
		}
	}
	return c, x
}

// solveWithin returns the posterior mean under lower <= x <= upper, by
// coordinate descent from start.
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

// within says whether every x lies between its limits.
func within(x, lower, upper []float64) bool {
	for i, v := range x {
		if !(v >= lower[i]) || !(v <= upper[i]) {
			return false
		}
	}
	return true
}
