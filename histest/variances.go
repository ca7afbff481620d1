package histest

import (
	"math"
	"slices"
)

// The prior of the relative change of the bucket variances, as for the means.
// This and what follows was tuned on the tuning and design families.
var varianceGrid = [...]float64{0.03, 0.1, 0.3, 1}

const (
	variancePenalty = 0.3
	openVarianceSD  = 0.5  // of the +Inf bucket, not scaled
	varianceCap     = 0.8  // of the greatest variance a bucket can have with its mean
	implausible     = 1.15 // of the variance of an even spread: observations are not independent
	squareCap       = 25   // a squared residual counts as at most this many expectations
)

// regressVariances estimates eta: the squares of what the means leave of the
// sums are, on average, the variances of the observations added up.
func (g *regression) regressVariances() {
	if g.rows.len() <= 3 || g.kind == levelGroups {
		return
	}
	base := make([]float64, len(g.pieces)) // variances without eta
	for i := range base {
		base[i] = g.v[i] / (1 + g.eta[g.pieces[i].bucket])
	}
	share := make([]float64, len(g.rows.bucket)) // of each cell in the variance of its row
	square := make([]float64, g.rows.len())
	for i := range square {
		e := g.left(i, g.delta)
		square[i] = e * e
		bucket, count := g.rows.of(i)
		for k, b := range bucket {
			share[g.rows.start[i]+k] = count[k] * base[g.pieceAt[g.groupOf[i]*len(g.upper)+b]]
		}
	}
	sd, scaled := make([]float64, len(g.upper)), make([]bool, len(g.upper))
	for b := range sd {
		sd[b], scaled[b] = 1, b != g.open.bucket
		if b == g.open.bucket {
			sd[b] = openVarianceSD
		}
	}
	lower, upper := g.etaLimits(base)
	eta := slices.Clone(g.eta)
	for range 5 { // the weights depend on eta
		before := eta
		eq := g.varianceEquations(share, square, eta)
		rho, x := eq.solve(sd, scaled, varianceGrid[:], variancePenalty)
		if !within(x, lower, upper) {
			scale := slices.Clone(sd)
			for b := range scale {
				if scaled[b] {
					scale[b] *= rho
				}
			}
			x = eq.solveWithin(scale, lower, upper, x)
		}
		if eta = x; change(before, eta) < 1e-7 {
			break
		}
	}
	for b, n := range g.counts {
		g.eta[b] = 0
		if n > 0 {
			g.eta[b] = eta[b]
		}
	}
	g.widenSteps(base, upper)
}

// change returns the greatest difference of two vectors.
func change(a, b []float64) float64 {
	most := 0.0
	for i, x := range a {
		most = max(most, math.Abs(x-b[i]))
	}
	return most
}

// varianceEquations returns the normal equations for eta, weighted by the
// variance of a squared residual at the current eta.
func (g *regression) varianceEquations(share, square, eta []float64) *ridge {
	eq := newRidge(len(g.upper))
	for i, y := range square {
		from, to := g.rows.start[i], g.rows.start[i+1]
		expected, plain := 0.0, 0.0
		for k := from; k < to; k++ {
			expected += share[k] * (1 + eta[g.rows.bucket[k]])
			plain += share[k]
		}
		expected = max(expected, 1e-300)
		weight := 1 / (2 * expected * expected)
		if math.IsInf(weight, 1) {
			continue // nothing but points
		}
		eq.add(g.rows.bucket[from:to], share[from:to], weight, min(y, squareCap*expected)-plain)
	}
	return eq
}

// bucketMoments returns mean and base variance of a bucket over its groups.
func (g *regression) bucketMoments(b int, base []float64) (mean, variance float64) {
	for i := range g.pieces {
		if p := &g.pieces[i]; p.bucket == b {
			mean += p.n * g.mean(p)
			variance += p.n * base[i]
		}
	}
	n := max(g.counts[b], 1)
	return mean / n, variance / n
}

func (g *regression) etaLimits(base []float64) (lower, upper []float64) {
	for b := range g.upper {
		hi := 0.0
		switch {
		case b == g.open.bucket:
			hi = cvMax*cvMax/g.open.cv2 - 1
		case g.counts[b] == 0:
			hi = 1
		case g.kind == noGroups:
			mean, variance := g.bucketMoments(b, base)
			most := max((mean-g.lower[b])*(g.upper[b]-mean), 0)
			hi = varianceCap*most/max(variance, 1e-300) - 1
		}
		lo := -1 + 1e-9
		lower, upper = append(lower, lo), append(upper, max(hi, lo+1e-6))
	}
	return lower, upper
}

// widenSteps corrects a series that sits in one bucket and whose variance comes out wider than the bucket
// allows. Its observations are not independent: all requests of an engine step share one latency, say. Then the
// means of the intervals themselves carry the spread.
func (g *regression) widenSteps(base, upper []float64) {
	b := 0
	for k, n := range g.counts {
		if n > g.counts[b] {
			b = k
		}
	}
	if g.kind != noGroups || b < g.points || b == g.open.bucket || g.counts[b] <= 0.9*g.n {
		return
	}
	_, variance := g.bucketMoments(b, base)
	even := (g.upper[b] - g.lower[b]) * (g.upper[b] - g.lower[b]) / 12
	atCap := len(g.upper) == 1 && g.eta[b] >= upper[b]-1e-9
	if !(variance*(1+g.eta[b]) > implausible*even) && !atCap || variance <= 0 {
		return
	}
	var mean, weight []float64
	for i := range g.rows.len() {
		if bucket, _ := g.rows.of(i); len(bucket) == 1 && bucket[0] == b {
			mean, weight = append(mean, g.rows.sum[i]/g.size[i]), append(weight, g.size[i])
		}
	}
	if len(mean) > 3 {
		_, v := moments(weight, mean)
		g.eta[b] = max(v, 1e-9*even)/variance - 1
	}
}
