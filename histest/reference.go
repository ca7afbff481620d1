package histest

import (
	"cmp"
	"math"
	"slices"
)

// floorShare is the share of a piece that is spread evenly, whatever the curve says, so that no part of a
// bucket is impossible. It guards against 0 and was not tuned.
const floorShare = 1e-5

// reference makes the pieces and gives each its shape under the smooth curve
// through the counts of its group, with mean and variance.
func (f *fit) reference() {
	nb := len(f.upper)
	counts := make([]float64, f.groups*nb)
	groupN, groupSum := make([]float64, f.groups), make([]float64, f.groups)
	for i, g := range f.groupOf {
		bucket, count := f.rows.of(i)
		for k, b := range bucket {
			counts[g*nb+b] += count[k]
		}
		groupN[g] += f.size[i]
		groupSum[g] += f.rows.sum[i]
	}
	f.pieceAt = make([]int, len(counts))
	f.curves = make([]*curve, f.groups)
	for g := range f.groups {
		of := counts[g*nb : (g+1)*nb]
		if f.points < nb && slices.Max(of[f.points:]) > 0 {
			f.curves[g] = newCurve(f.upper[f.points:], of[f.points:], groupSum[g])
		}
		for b, n := range of {
			f.pieceAt[g*nb+b] = -1
			if n > 0 {
				f.pieceAt[g*nb+b] = len(f.pieces)
				f.pieces = append(f.pieces, piece{group: g, bucket: b, n: n, lower: f.lower[b], upper: f.upper[b]})
			}
		}
	}
	f.groupMean = groupSum
	for g := range groupSum {
		f.groupMean[g] /= groupN[g]
	}
	f.spread = f.pooledSpread(groupN)
	for i := range f.pieces {
		p := &f.pieces[i]
		switch {
		case p.isPoint():
			p.shape = pointAt(p.upper)
		case p.isCell():
			p.shape.x = evenGrid(p.lower, p.upper)
			p.shape.p = f.referenceCells(p, p.shape.x)
		default:
			continue
		}
		p.mean0, p.var0 = p.shape.moments()
		p.var0 = varianceFloor(p.var0, p.mean0)
	}
	f.referenceOpen(groupN)
}

// pooledSpread returns the weighted median over the groups of the standard deviation of ln x, for groups whose
// own counts do not show it. It is 0 for a single group.
func (f *fit) pooledSpread(groupN []float64) float64 {
	if f.groups < 2 {
		return 0
	}
	type weighted struct{ sd, weight float64 }
	var all []weighted
	total := 0.0
	for g, c := range f.curves {
		if !c.empty() {
			sd, central := c.spreadAtCentre()
			all = append(all, weighted{sd, groupN[g] * central})
			total += groupN[g] * central
		}
	}
	slices.SortFunc(all, func(a, b weighted) int {
		return cmp.Or(cmp.Compare(a.sd, b.sd), cmp.Compare(a.weight, b.weight))
	})
	upTo := 0.0
	for _, w := range all {
		if upTo += w.weight; upTo >= total/2 {
			return min(max(w.sd, 1e-3), 1)
		}
	}
	return 0
}

// referenceCells returns the mass of the cells of a bucket under the curve of its group. A group without a
// curve takes the log-normal distribution of its mean and the spread of the other groups, or an even one.
func (f *fit) referenceCells(p *piece, x []float64) []float64 {
	c := f.curves[p.group]
	var mass []float64
	switch {
	case !c.empty():
		mass = cells(nil, c.at, x)
	case f.spread > 0:
		centre := math.Log(max(f.groupMean[p.group], 1e-300)) - f.spread*f.spread/2
		mass = cells(nil, func(y float64) float64 { return (y - centre) / f.spread }, x)
	}
	width := x[len(x)-1] - x[0]
	if !normalise(mass, 1e-250) {
		mass = make([]float64, len(x)-1)
		for i := range mass {
			mass[i] = (x[i+1] - x[i]) / width
		}
		return mass
	}
	for i := range mass {
		mass[i] = (1-floorShare)*mass[i] + floorShare*(x[i+1]-x[i])/width
	}
	return mass
}

// normalise scales mass to 1; it reports false and leaves mass alone if there is no more than least of it.
func normalise(mass []float64, least float64) bool {
	total := 0.0
	for _, m := range mass {
		total += m
	}
	if !(total > least) || math.IsInf(total, 1) {
		return false
	}
	for i := range mass {
		mass[i] /= total
	}
	return true
}

// evenGrid cuts a bucket into cells of equal width.
func evenGrid(lower, upper float64) []float64 {
	x := make([]float64, gridCells+1)
	for i := range x {
		x[i] = lower + (upper-lower)*float64(i)/gridCells
	}
	return x
}

// flat returns cells of equal mass.
func flat() []float64 {
	p := make([]float64, gridCells)
	for i := range p {
		p[i] = 1.0 / gridCells
	}
	return p
}

func pointAt(x float64) shape {
	s := shape{x: make([]float64, gridCells+1), p: flat()}
	for i := range s.x {
		s.x[i] = x
	}
	return s
}

// openBucket is what is known beforehand of the +Inf bucket: its observations
// exceed lower by excess on average, with the variance cv2 * excess².
type openBucket struct {
	bucket             int // -1: empty
	lower, excess, cv2 float64
	quantile           []float64 // by group: normal quantile of the mass below lower
}

// variance returns the variance of the bucket for a mean.
func (o *openBucket) variance(mean, eta float64) float64 {
	e := max(mean-o.lower, 0.05*o.excess)
	return o.cv2 * (1 + eta) * e * e
}

// referenceOpen gives the pieces of the +Inf bucket the mean that the sum leaves
// for them, and the variance of a log-normal tail with that mean.
func (f *fit) referenceOpen(groupN []float64) {
	b := f.lastOpen()
	f.open = openBucket{bucket: b, cv2: 1}
	if b < 0 {
		return
	}
	o := &f.open
	o.lower = f.lower[b]
	rest := f.sum
	for i := range f.pieces {
		if p := &f.pieces[i]; !p.isOpen() {
			rest -= p.n * p.mean0
		}
	}
	o.excess = max(rest/f.counts[b]-o.lower, 0.03*math.Abs(o.lower), 1e-300)
	at := 0.0
	if c := newCurve(f.upper[f.points:], f.counts[f.points:], f.sum); !c.empty() && o.lower > 0 {
		at = c.at(math.Log(o.lower))
	}
	s := openTail(o.lower, at, o.lower+o.excess)
	_, v := s.moments()
	o.cv2 = min(max(v/(o.excess*o.excess), 0.15), cvMax*cvMax)
	o.quantile = make([]float64, f.groups)
	for i := range f.pieces {
		p := &f.pieces[i]
		if !p.isOpen() {
			continue
		}
		below := min(max(1-p.n/groupN[p.group], 1e-9), 1-1e-9)
		o.quantile[p.group] = min(max(normalQuantile(below), -3), 6)
		p.mean0 = o.lower + o.excess
		p.var0 = varianceFloor(o.cv2*o.excess*o.excess, p.mean0)
	}
}
