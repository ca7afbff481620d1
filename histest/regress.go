package histest

import "math"

// ridge is a linear regression with normal prior distributions: the matrix of its normal equations, of which the upper
// triangle is kept, row by row, and their right side, both divided by the noise.
type ridge struct {
	a []float64
	r []float64
}

func newRidge(k int) *ridge { return &ridge{make([]float64, k*k), make([]float64, k)} }

// add adds weight * z zᵀ to the matrix and weight * y * z to the right side, for
// a vector z that is zero but at the given indices.
func (g *ridge) add(index []int, z []float64, weight, y float64) {
	n := len(g.r)
	for k, i := range index {
		w := weight * z[k]
		g.r[i] += w * y
		for m, j := range index {
			if j >= i {
				g.a[i*n+j] += w * z[m]
			}
		}
	}
}

// scale divides both sides.
func (g *ridge) scale(by float64) {
	for i := range g.a {
		g.a[i] *= 1 / by
	}
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
	m := make([]float64, k*k)
	for i := range k {
		for j := i; j < k; j++ {
			m[i*k+j] = g.a[i*k+j] * t[i] * t[j]
		}
		m[i*k+i]++
		y[i] = g.r[i] * t[i]
	}
	if !cholesky(m, y) {
		return 0, false
	}
	for i := range k {
		evidence += 0.5*g.r[i]*t[i]*y[i] - math.Log(m[i*k+i])
	}
	return evidence, !math.IsNaN(evidence)
}

// cholesky factors the symmetric matrix m, given by its upper triangle row by row, into UᵀU in place and turns y
// into the solution of m x = y (Golub and Van Loan, Matrix Computations, 4.2). It reports whether m is positive
// definite. Sums have one order on every processor, which those of a library's assembly have not.
func cholesky(m, y []float64) bool {
	k := len(y)
	for i := range k {
		row := m[i*k : (i+1)*k]
		if !(row[i] > 0) {
			return false
		}
		row[i] = math.Sqrt(row[i])
		y[i] /= row[i]
		for j := i + 1; j < k; j++ {
			row[j] /= row[i]
			y[j] -= row[j] * y[i]
		}
		for j := i + 1; j < k; j++ {
			below := m[j*k : (j+1)*k]
			for p := j; p < k; p++ {
				below[p] -= row[j] * row[p]
			}
		}
	}
	for i := k - 1; i >= 0; i-- {
		for j := i + 1; j < k; j++ {
			y[i] -= m[i*k+j] * y[j]
		}
		y[i] /= m[i*k+i]
	}
	return true
}

// solveWithin returns the posterior mean under lower <= x <= upper, by coordinate descent from start.
func (g *ridge) solveWithin(sd []float64, lower, upper, start []float64) []float64 {
	n := len(start)
	x := make([]float64, n)
	for i, v := range start {
		x[i] = min(max(v, lower[i]), upper[i])
	}
	for range 60 {
		moved := 0.0
		for j := range x {
			own := g.a[j*n+j] + 1/(sd[j]*sd[j])
			rest := g.r[j]
			for i, v := range x {
				if i != j {
					rest -= g.a[min(i, j)*n+max(i, j)] * v
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
