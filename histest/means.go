package histest

import "math"

// The prior of the bucket means: normal around the reference mean, with a standard deviation that is a multiple
// of the bucket's own. The data choose the multiple. Tuned, as what follows, on the tuning and design families.
var meanGrid = [...]float64{0.02, 0.06, 0.15, 0.4, 1}

const (
	meanPenalty   = 1.0  // evidence asked of each step to a wider prior
	meanOfLevels  = 0.06 // the multiple for groups by level, whose means are selected
	totalWeight   = 0.02 // variance of the constraint on the total sum, per variance of the sum
	overdispersed = 1.2  // squared residuals above this multiple of their expectation mean noise
)

// regression estimates by how much the mean and the variance of each bucket
// differ from the reference, from the sums of all intervals.
type regression struct {
	*fit
	params   []param
	index    []int     // parameter of each cell of the rows
	residual []float64 // by row: sum less its expectation under the reference
	delta    []float64 // by parameter: mean less reference mean
	eta      []float64 // by bucket: variance / reference variance - 1
	v        []float64 // by piece: current variance
}

// param is a mean to be estimated: that of a finite bucket in all groups, or of the +Inf bucket in one group.
type param struct {
	piece     // of one of its pieces: bucket and bounds
	variance0 float64
	low, high float64 // what the sums prove of the mean
}

func newRegression(f *fit) *regression {
	g := &regression{fit: f, eta: make([]float64, len(f.upper)), v: make([]float64, len(f.pieces))}
	nb := len(f.upper)
	ofBucket := make([]int, nb)
	for b := range nb {
		ofBucket[b] = -1
		if n := f.counts[b]; n > 0 && b != f.open.bucket {
			ofBucket[b] = len(g.params)
			g.params = append(g.params, param{})
		}
	}
	for i := range f.pieces {
		p := &f.pieces[i]
		p.param = ofBucket[p.bucket]
		if p.isOpen() {
			p.param = len(g.params)
			g.params = append(g.params, param{})
		}
		g.addPiece(p)
	}
	for k := range g.params {
		q := &g.params[k]
		q.mean0 /= q.n
		q.variance0 /= q.n
	}
	g.delta = make([]float64, len(g.params))
	g.index = make([]int, len(f.rows.bucket))
	g.residual = make([]float64, f.rows.len())
	for i := range g.residual {
		g.residual[i] = f.rows.sum[i]
		bucket, count := f.rows.of(i)
		for k, b := range bucket {
			p := f.pieceOf(i, b)
			g.residual[i] -= count[k] * p.mean0
			g.index[f.rows.start[i]+k] = p.param
		}
	}
	g.proveMeans()
	return g
}

func (g *regression) addPiece(p *piece) {
	q := &g.params[p.param]
	q.bucket, q.lower, q.upper = p.bucket, p.lower, p.upper
	q.n += p.n
	q.mean0 += p.n * p.mean0
	q.variance0 += p.n * p.var0
}

// proveMeans computes the limits of the means: in each row the observations of a bucket have what the sum
// leaves when all others are at their lower, or at their upper bounds.
func (g *regression) proveMeans() {
	for i := range g.rows.len() {
		bucket, count := g.rows.of(i)
		low, high := g.rows.dot(i, g.lower), g.rows.dot(i, g.upper)
		for k, b := range bucket {
			q, n := &g.params[g.index[g.rows.start[i]+k]], count[k]
			top := g.rows.sum[i] - (low - n*g.lower[b])
			bottom := n * g.lower[b]
			switch {
			case b == g.open.bucket: // the others are finite
				bottom = max(bottom, g.rows.sum[i]-g.finitePart(i))
			case !math.IsInf(high, 1):
				bottom = max(bottom, g.rows.sum[i]-(high-n*g.upper[b]))
			}
			q.low += bottom
			q.high += min(n*g.upper[b], top)
		}
	}
	for k := range g.params {
		g.params[k].low /= g.params[k].n
		g.params[k].high /= g.params[k].n
	}
}

// finitePart returns the greatest sum of the observations of row i below +Inf.
func (g *regression) finitePart(i int) float64 {
	sum := 0.0
	bucket, count := g.rows.of(i)
	for k, b := range bucket {
		if b != g.open.bucket {
			sum += count[k] * g.upper[b]
		}
	}
	return sum
}

// mean returns the current mean of a piece.
func (g *regression) mean(p *piece) float64 { return p.mean0 + g.delta[p.param] }

// updateVariances sets v from the current means and eta.
func (g *regression) updateVariances() {
	for i := range g.pieces {
		p := &g.pieces[i]
		g.v[i] = p.var0 * (1 + g.eta[p.bucket])
		if p.isOpen() {
			g.v[i] = g.open.variance(g.mean(p), g.eta[p.bucket])
		}
	}
}

// rowVariance returns the variance of the sum of each row.
func (g *regression) rowVariance() []float64 {
	v := make([]float64, g.rows.len())
	for i := range v {
		bucket, count := g.rows.of(i)
		for k, b := range bucket {
			v[i] += count[k] * g.v[g.pieceAt[g.groupOf[i]*len(g.upper)+b]]
		}
		v[i] = max(v[i], 1e-300)
	}
	return v
}

// regressMeans estimates delta by a regression of all interval sums on their counts. Counts of different
// buckets hardly vary against each other at high rates, so only the prior keeps the solution meaningful.
func (g *regression) regressMeans() {
	g.updateVariances()
	v := g.rowVariance()
	eq := g.meanEquations(v)
	sd, scaled := g.meanPrior()
	grid := meanGrid[:]
	if g.kind == levelGroups {
		grid = []float64{meanOfLevels}
	}
	c, delta := eq.solve(sd, scaled, grid, meanPenalty)
	if free := g.rows.len(); free > len(g.params)+5 {
		if noise := g.noise(delta, v); noise > overdispersed {
			eq.scale(noise)
			c, delta = eq.solve(sd, scaled, grid, meanPenalty)
		}
	}
	for i := range sd {
		if scaled[i] {
			sd[i] *= c
		}
	}
	lower, upper := g.meanLimits()
	if !within(delta, lower, upper) {
		delta = eq.solveWithin(sd, lower, upper, delta)
	}
	g.delta = delta
	g.updateVariances()
}

// meanEquations returns the normal equations: one for each row, and a soft one for the total.
func (g *regression) meanEquations(v []float64) *ridge {
	eq := newRidge(len(g.params))
	total, all := 0.0, 0.0
	for i := range v {
		from, to := g.rows.start[i], g.rows.start[i+1]
		eq.add(g.index[from:to], g.rows.count[from:to], 1/v[i], g.residual[i])
		total += v[i]
		all += g.residual[i]
	}
	index, n := make([]int, len(g.params)), make([]float64, len(g.params))
	for k := range g.params {
		index[k], n[k] = k, g.params[k].n
	}
	eq.add(index, n, 1/(totalWeight*total), all)
	return eq
}

func (g *regression) meanPrior() (sd []float64, scaled []bool) {
	sd, scaled = make([]float64, len(g.params)), make([]bool, len(g.params))
	for k := range g.params {
		q := &g.params[k]
		switch {
		case q.isPoint():
			sd[k], scaled[k] = 1e-15, true
		case q.isOpen():
			sd[k] = max(q.mean0-q.lower, 1e-300)
		default:
			sd[k], scaled[k] = math.Sqrt(q.variance0), true
		}
	}
	return sd, scaled
}

// noise returns the squared residuals relative to their expectation.
func (g *regression) noise(delta, v []float64) float64 {
	sum := 0.0
	for i := range v {
		e := g.left(i, delta)
		sum += e * e / v[i]
	}
	t := float64(len(v))
	return sum / (t - min(float64(len(delta)), t/2))
}

// left returns the residual of row i after the correction by delta.
func (g *regression) left(i int, delta []float64) float64 {
	e := g.residual[i]
	for k := g.rows.start[i]; k < g.rows.start[i+1]; k++ {
		e -= g.rows.count[k] * delta[g.index[k]]
	}
	return e
}

// meanLimits returns the limits of delta: what is proven, and a little away from the edges of the bucket.
func (g *regression) meanLimits() (lower, upper []float64) {
	for k := range g.params {
		q := &g.params[k]
		lo, hi := 0.0, 0.0
		switch {
		case q.isPoint():
		case q.isOpen():
			edge := 0.01 * (q.mean0 - q.lower)
			lo, hi = max(q.low, q.lower+edge), max(q.high, q.lower+2*edge)
			lo, hi = lo-q.mean0, hi-q.mean0
		default:
			edge := 0.005 * q.width()
			lo, hi = max(q.low, q.lower+edge)-q.mean0, min(q.high, q.upper-edge)-q.mean0
		}
		if lo > hi {
			lo = (lo + hi) / 2
			hi = lo
		}
		lower, upper = append(lower, lo), append(upper, hi)
	}
	return lower, upper
}
