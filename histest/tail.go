package histest

import (
	"math"
	"slices"
	"sort"
)

// Limits of the tail beyond the last bound; the values were tuned on the tuning and design families.
const (
	cvMax       = 3.0 // coefficient of variation of the excess, at most
	farExcess   = 4.0 // mean excess / that of the continued curve: two components beyond
	farCV       = 0.6 // coefficient of variation of the far component
	farShareMax = 0.5
)

// survivalNodes are the survival probabilities at the knots of a tail.
func survivalNodes() [gridCells + 1]float64 {
	var sv [gridCells + 1]float64
	far := [...]float64{0.012, 0.007, 0.004, 0.002, 0.001, 0.0004, 0.0001}
	even := len(sv) - len(far)
	for i := range even {
		sv[i] = 1 + (0.02-1)*float64(i)/float64(even-1)
	}
	copy(sv[even:], far[:])
	return sv
}

// tailNodes is a tail on the scale of normal quantiles: dz[i] above the first knot, with mass p[i] up to the next.
type tailNodes struct {
	dz [gridCells + 1]float64
	p  []float64
}

// newTailNodes returns the nodes of a normal tail that begins at the quantile z.
func newTailNodes(z float64) *tailNodes {
	t := &tailNodes{p: make([]float64, gridCells)}
	sv := survivalNodes()
	above := max(normalCDF(-z), 1e-12)
	for i, s := range sv {
		t.dz[i] = -normalQuantile(max(above*s, 1e-300))
	}
	first := t.dz[0]
	for i := range t.dz {
		t.dz[i] -= first
	}
	for i := range t.p {
		t.p[i] = (sv[i] - sv[i+1]) / (1 - sv[gridCells])
	}
	return t
}

// at returns the log-normal tail above lower whose curve has the given slope.
func (t *tailNodes) at(lower, slope float64) shape {
	s := shape{x: make([]float64, gridCells+1), p: slices.Clone(t.p)}
	for i, d := range t.dz {
		s.x[i] = lower*math.Exp(min(d/slope, 50)) + float64(i)*1e-13*lower
	}
	return s
}

// excess returns the mean excess over the lower end at a slope, relative to it.
func (t *tailNodes) excess(slope float64) float64 {
	sum, prev := 0.0, 0.0
	for i, p := range t.p {
		x := math.Expm1(min(t.dz[i+1]/slope, 50))
		sum += p * (prev + x) / 2
		prev = x
	}
	return sum
}

// openTail returns the tail above lower with the given mean: a log-normal one that begins at the normal
// quantile z, its slope chosen to meet the mean, or an exponential one where lower is not positive.
func openTail(lower, z, mean float64) shape {
	want := max(mean-lower, 1e-300)
	if lower <= 0 {
		return exponentialTail(lower, want)
	}
	t := newTailNodes(z)
	ratio := want / lower
	ln := solveFalling(math.Log(0.08), math.Log(200), func(lnSlope float64) float64 {
		return math.Log(t.excess(math.Exp(lnSlope)) / ratio)
	})
	return t.at(lower, math.Exp(ln))
}

func exponentialTail(lower, excess float64) shape {
	sv := survivalNodes()
	s := shape{x: make([]float64, gridCells+1), p: make([]float64, gridCells)}
	mean := 0.0
	for i, v := range sv {
		s.x[i] = -math.Log(v)
		if i > 0 {
			s.p[i-1] = (sv[i-1] - v) / (1 - sv[gridCells])
			mean += s.p[i-1] * (s.x[i-1] + s.x[i]) / 2
		}
	}
	for i := range s.x {
		s.x[i] = lower + s.x[i]*excess/mean
	}
	return s
}

// solveFalling returns where the falling function f crosses 0 between a and b, or the end nearest to that. It
// is the method of false position with the Illinois rule, kept from stalling by bisection.
func solveFalling(a, b float64, f func(float64) float64) float64 {
	fa := f(a)
	if !(fa > 0) {
		return a
	}
	fb := f(b)
	if !(fb < 0) {
		return b
	}
	side := 0
	for i := range 80 {
		x := a + (b-a)*(fa/(fa-fb))
		if i%4 == 3 || math.IsNaN(x) || x <= a || x >= b {
			x = (a + b) / 2
		}
		fx := f(x)
		switch {
		case fx > 0:
			a, fa = x, fx
			if side == 1 {
				fb /= 2
			}
			side = 1
		case fx < 0:
			b, fb = x, fx
			if side == -1 {
				fa /= 2
			}
			side = -1
		default:
			return x
		}
		if b-a < 1e-13*(1+math.Abs(a)) || math.Abs(fx) < 1e-14 {
			return x
		}
	}
	return (a + b) / 2
}

// farTail returns a tail of two components: the continued curve with the given slope, and observations far
// beyond it. Their shares follow from mean and variance; the far ones are log-normal with farCV.
func farTail(lower, z, slope, mean, variance float64) shape {
	near := newTailNodes(z).at(lower, slope)
	b1, b2 := 0.0, 0.0
	for i, p := range near.p {
		d := (near.x[i]+near.x[i+1])/2 - lower
		b1 += p * d
		b2 += p * d * d
	}
	excess := mean - lower
	far := func(share float64) float64 { return (excess - (1-share)*b1) / share }
	ln := solveFalling(math.Log(1e-4), math.Log(farShareMax), func(ln float64) float64 {
		share := math.Exp(ln)
		x := far(share)
		return math.Log(((1-share)*b2 + share*x*x*(1+farCV*farCV)) / (variance + excess*excess))
	})
	share := math.Exp(ln)
	return mixTail(near, lower, b1, far(share), share)
}

// mixTail adds a share of log-normal observations with mean excess far to the tail near, whose mean excess is mean.
func mixTail(near shape, lower, mean, far, share float64) shape {
	sd := math.Sqrt(math.Log(1 + farCV*farCV))
	centre := math.Log(far) - sd*sd/2
	reach := max(6*far, near.x[gridCells]-lower)
	step := min(mean*0.02, far*0.02)
	s := shape{x: make([]float64, gridCells+1), p: make([]float64, gridCells)}
	s.x[0] = lower
	for i := range gridCells {
		s.x[i+1] = lower + step*math.Pow(reach/step, float64(i)/(gridCells-1))
	}
	cum := cumulate(near.p)
	before := (1 - share) * interpolate(near.x, cum, lower)
	for i := range s.p {
		d := s.x[i+1] - lower
		upTo := (1-share)*interpolate(near.x, cum, s.x[i+1]) + share*normalCDF((math.Log(max(d, 1e-300))-centre)/sd)
		s.p[i] = max(upTo-before, 1e-15)
		before = upTo
	}
	normalise(s.p, 0)
	return s
}

// cumulate returns the running sums of p, beginning with 0.
func cumulate(p []float64) []float64 {
	c := make([]float64, len(p)+1)
	for i, x := range p {
		c[i+1] = c[i] + x
	}
	return c
}

// interpolate returns y at the value at of x, which ascends, level beyond the ends.
func interpolate(x, y []float64, at float64) float64 {
	last := len(x) - 1
	if at < x[0] {
		return y[0]
	}
	if !(at < x[last]) {
		return y[last]
	}
	j := sort.Search(len(x), func(i int) bool { return x[i] > at }) - 1
	if x[j+1] == x[j] {
		return y[j]
	}
	return y[j] + (y[j+1]-y[j])*((at-x[j])/(x[j+1]-x[j]))
}
