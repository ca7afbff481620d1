package histest

import "math"

// tilt returns the distribution nearest to s, in relative entropy, that has the given mean and, if variance is
// positive, the given variance: the density times exp(a x + b x²). It is found by damped Newton steps on the
// convex dual. Where no distribution on the grid has such moments the result is as near as the steps came.
func tilt(s *shape, mean, variance float64) []float64 {
	d := newDual(s, mean, variance)
	value, w := d.evaluate(0, 0, nil)
	spare := make([]float64, len(w))
	var a, b float64
	for range 40 {
		g1, g2, h := d.gradient(w)
		if math.Abs(g1) < 1e-8 && math.Abs(g2) < 1e-8 {
			break
		}
		det := max(h.aa*h.bb-h.ab*h.ab, 1e-14*h.aa*h.bb+1e-300)
		stepA, stepB := -(h.bb*g1-h.ab*g2)/det, -(h.aa*g2-h.ab*g1)/det
		slope := g1*stepA + g2*stepB
		found := false
		for size, k := 1.0, 0; k < 20; size, k = size/2, k+1 {
			na, nb := a+size*stepA, b+size*stepB
			v, nw := d.evaluate(na, nb, spare)
			if !math.IsNaN(v) && !math.IsInf(v, 0) && v <= value+1e-4*size*slope+1e-13*(1+math.Abs(value)) {
				a, b, value, found = na, nb, v, true
				w, spare = nw, w
				break
			}
		}
		if !found || math.Abs(a) > 1e4 || math.Abs(b) > 1e4 {
			break
		}
	}
	return w
}

// dual is the dual problem of a tilt, in standard units: u is the distance from
// the wanted mean, q its square plus the variance within the cell, less 1.
type dual struct {
	meanOnly bool
	u, q     []float64
	logP     []float64
}

func newDual(s *shape, mean, variance float64) *dual {
	d := &dual{meanOnly: variance <= 0, u: make([]float64, len(s.p)), q: make([]float64, len(s.p)),
		logP: make([]float64, len(s.p))}
	if d.meanOnly {
		_, variance = s.moments()
		variance = max(variance, 1e-300)
	}
	scale := math.Sqrt(variance)
	for i, p := range s.p {
		d.u[i] = ((s.x[i]+s.x[i+1])/2 - mean) / scale
		w := (s.x[i+1] - s.x[i]) / scale
		d.q[i] = d.u[i]*d.u[i] + w*w/12 - 1
		d.logP[i] = math.Log(max(p, 1e-300))
	}
	return d
}

// evaluate returns the logarithm of the normalisation and the tilted masses, in dst.
func (d *dual) evaluate(a, b float64, dst []float64) (value float64, w []float64) {
	if dst == nil {
		dst = make([]float64, len(d.u))
	}
	top := math.Inf(-1)
	for i, p := range d.logP {
		dst[i] = p + a*d.u[i] + b*d.q[i]
		top = max(top, dst[i])
	}
	z := 0.0
	for i, e := range dst {
		dst[i] = math.Exp(e - top)
		z += dst[i]
	}
	for i := range dst {
		dst[i] /= z
	}
	return top + math.Log(z), dst
}

// hessian holds the second derivatives of the dual.
type hessian struct{ aa, ab, bb float64 }

func (d *dual) gradient(w []float64) (g1, g2 float64, h hessian) {
	for i, p := range w {
		pu, pq := p*d.u[i], p*d.q[i]
		g1 += pu
		g2 += pq
		h.aa += pu * d.u[i]
		h.ab += pu * d.q[i]
		h.bb += pq * d.q[i]
	}
	h.aa += 1e-10 - g1*g1
	h.ab -= g1 * g2
	h.bb += 1e-10 - g2*g2
	if d.meanOnly {
		return g1, 0, hessian{h.aa, 0, 1}
	}
	return g1, g2, h
}

// match returns s with the given mean and variance. A narrower distribution is a quadratic tilt; a wider one
// comes from flattening the density, since widening by a tilt would build a spike at the far end of the bucket.
// Only beyond the flat density is there no other way.
func match(s *shape, mean, variance float64) []float64 {
	w := tilt(s, mean, 0)
	have := s.varianceOf(w)
	if variance < have*0.995 {
		return tilt(s, mean, variance)
	}
	if variance <= have*1.005 {
		return w
	}
	for _, power := range [...]float64{0.75, 0.5, 0.25, 0} {
		flatter := shape{s.x, s.flattened(power)}
		next := tilt(&flatter, mean, 0)
		reached := s.varianceOf(next)
		if reached >= variance {
			t := min(max((variance-have)/max(reached-have, 1e-300), 0), 1)
			for i := range w {
				w[i] = w[i]*(1-t) + next[i]*t
			}
			return w
		}
		w, have = next, reached
	}
	// The cells reach from centre to centre only, so their greatest variance is a
	// little below that of the bucket; beyond it a tilt has no solution.
	last := len(s.p)
	most := 0.95 * (mean - (s.x[0]+s.x[1])/2) * ((s.x[last-1]+s.x[last])/2 - mean)
	if variance = min(variance, most); variance <= have {
		return w
	}
	even := shape{s.x, s.flattened(0)}
	return tilt(&even, mean, variance)
}

func (s *shape) varianceOf(p []float64) float64 {
	with := shape{s.x, p}
	_, v := with.moments()
	return v
}

// flattened returns the masses of the density raised to a power.
func (s *shape) flattened(power float64) []float64 {
	density := make([]float64, len(s.p))
	top := 0.0
	for i, p := range s.p {
		density[i] = max(p/(s.x[i+1]-s.x[i]), 1e-300)
		top = max(top, density[i])
	}
	for i, d := range density {
		density[i] = math.Pow(d/top, power) * (s.x[i+1] - s.x[i])
	}
	normalise(density, 0)
	return density
}
