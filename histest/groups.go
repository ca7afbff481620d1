package histest

import (
	"cmp"
	"math"
	"slices"
)

// Limits of the grouping. Sorting intervals that are alike by any score would make groups that do not exist, so groups
// are made only where counts vary more than chance allows. The values were tuned on the tuning and design families.
const (
	maxGroups     = 16
	maxTimeGroups = 8
	groupMin      = 40  // observations in a group, at least
	overDispersed = 1.5 // variance between intervals / that of independent observations
	drifting      = 4.0 // variance between blocks of time / that of independent observations
)

// groupKind is why rows are grouped.
type groupKind uint8

const (
	noGroups    groupKind = iota // one group: conditions were the same all the time
	timeGroups                   // conditions drifted: blocks of time
	levelGroups                  // conditions changed from interval to interval: by mean
)

// grouping puts each row into a group.
type grouping struct {
	kind    groupKind
	groupOf []int
	groups  int
}

// group decides whether the rows were observed under the same conditions.
func (f *fit) group(never bool) {
	f.grouping = grouping{groupOf: make([]int, f.rows.len()), groups: 1}
	most := min(maxGroups, int(f.n/groupMin), f.rows.len()/4)
	if most < 2 || never {
		return
	}
	d, ok := f.dispersionOf(min(most, maxTimeGroups))
	if !ok {
		return
	}
	if d.between > overDispersed && (d.drift < 0.7*d.jitter || d.within > 2*overDispersed) {
		f.kind = levelGroups
		f.groupOf, f.groups = f.splitByLevel(most)
		return
	}
	if d.blocks > drifting {
		f.kind, f.groupOf, f.groups = timeGroups, d.block, d.count
	}
}

// dispersion is how the mean logarithm of the observations varies.
type dispersion struct {
	between       float64 // between intervals, 1 for independent observations
	blocks        float64 // between blocks of time, 1 likewise
	within        float64 // between the intervals of a block, 1 likewise
	drift, jitter float64 // excess of blocks and of between, as shares of the variance
	block         []int   // block of each row
	count         int     // blocks
}

// scores returns a value on a logarithmic scale for each bucket.
func (f *fit) scores() []float64 {
	t := make([]float64, len(f.upper))
	for b := range t {
		mid := (f.lower[b] + f.upper[b]) / 2
		if math.IsInf(f.upper[b], 1) {
			mid = 1.5 * f.lower[b]
		}
		if b < f.points {
			mid = 1
			if f.points < len(f.upper) && !math.IsInf(f.upper[f.points], 1) {
				mid = f.upper[f.points] / 4
			}
		}
		t[b] = math.Log(max(mid, 1e-300))
	}
	return t
}

// dispersionOf measures with the given number of blocks; ok is false when all observations have one score.
func (f *fit) dispersionOf(blocks int) (d dispersion, ok bool) {
	score, rowCount := f.scores(), f.rows.len()
	mean, variance := moments(f.counts, score)
	if !(variance > 1e-10*(1+mean*mean)) {
		return d, false
	}
	a := make([]float64, rowCount)
	d.block, d.count = make([]int, rowCount), blocks
	upTo := 0.0
	n, sum := make([]float64, blocks), make([]float64, blocks)
	for i := range a {
		a[i] = f.rows.dot(i, score) / f.size[i]
		d.between += f.size[i] * (a[i] - mean) * (a[i] - mean)
		g := min(int((upTo+f.size[i]/2)/f.n*float64(blocks)), blocks-1)
		upTo += f.size[i]
		d.block[i] = g
		n[g] += f.size[i]
		sum[g] += f.size[i] * a[i]
	}
	d.between /= max(float64(rowCount-1), 1) * variance
	squares := 0.0
	for g := range n {
		dev := sum[g]/max(n[g], 1) - mean
		squares += n[g] * dev * dev
	}
	free := float64(blocks - 1)
	d.blocks = squares / free / variance
	d.drift = max(0, squares-free*variance) / (f.n * variance)
	d.jitter = max(0, d.between-1) / (f.n / float64(rowCount))
	d.within = f.withinBlocks(&d, a, score, variance)
	return d, true
}

// withinBlocks returns the dispersion between the intervals of the same block.
func (f *fit) withinBlocks(d *dispersion, a, score []float64, variance float64) float64 {
	nb := len(f.upper)
	counts, rowsIn := make([]float64, d.count*nb), make([]int, d.count)
	for i, g := range d.block {
		rowsIn[g]++
		bucket, count := f.rows.of(i)
		for k, b := range bucket {
			counts[g*nb+b] += count[k]
		}
	}
	mean, scale := make([]float64, d.count), make([]float64, d.count)
	for g := range mean {
		var v float64
		mean[g], v = moments(counts[g*nb:(g+1)*nb], score)
		scale[g] = max(v, 1e-3*variance)
	}
	within := 0.0
	for i, g := range d.block {
		if rowsIn[g] > 1 {
			within += f.size[i] * (a[i] - mean[g]) * (a[i] - mean[g]) / scale[g]
		}
	}
	return within / max(float64(len(a)-d.count), 1)
}

// moments returns weighted mean and variance of v.
func moments(weight, v []float64) (mean, variance float64) {
	n := 0.0
	for i, w := range weight {
		n += w
		mean += w * v[i]
	}
	n = max(n, 1)
	mean /= n
	for i, w := range weight {
		variance += w * (v[i] - mean) * (v[i] - mean)
	}
	return mean, variance / n
}

// segment is a run of rows in order of their mean.
type segment struct {
	from, to int
	excess   float64 // sum of squares beyond that of independent observations
	ratio    float64 // variance / that of independent observations
}

// splitter cuts rows, ordered by the logarithm of their mean, into segments.
type splitter struct {
	f          *fit
	order      []int
	level      []float64 // ascending
	n, s1, s2  []float64 // prefix sums of weights, weighted levels and squares
	mid, width []float64
	least      float64 // observations in a segment that may be cut
}

// splitByLevel cuts the rows into at most the given number of groups of alike
// mean: repeatedly, where a cut of the most dispersed segment explains most.
func (f *fit) splitByLevel(most int) (groupOf []int, groups int) {
	sp := newSplitter(f)
	open, done := []segment{sp.segment(0, len(sp.order))}, []segment(nil)
	for len(open) > 0 && len(open)+len(done) < most {
		k := 0
		for j := range open {
			if open[j].excess > open[k].excess {
				k = j
			}
		}
		s := open[k]
		cut := sp.cut(s)
		if cut < 0 {
			done = append(done, s)
			open = slices.Delete(open, k, k+1)
			continue
		}
		open[k] = sp.segment(s.from, cut)
		open = append(open, sp.segment(cut, s.to))
	}
	done = append(done, open...)
	slices.SortFunc(done, func(a, b segment) int { return cmp.Compare(a.from, b.from) })
	groupOf = make([]int, len(sp.order))
	for g, s := range done {
		for _, i := range sp.order[s.from:s.to] {
			groupOf[i] = g
		}
	}
	return groupOf, len(done)
}

func newSplitter(f *fit) *splitter {
	n := f.rows.len()
	sp := &splitter{f: f, order: make([]int, n), level: make([]float64, n),
		n: make([]float64, n+1), s1: make([]float64, n+1), s2: make([]float64, n+1)}
	floor := 1e-6 * max(f.sum/f.n, 1e-300)
	level := make([]float64, n)
	for i := range level {
		sp.order[i] = i
		level[i] = math.Log(max(f.rows.sum[i]/f.size[i], floor))
	}
	slices.SortStableFunc(sp.order, func(a, b int) int { return cmp.Compare(level[a], level[b]) })
	for k, i := range sp.order {
		x, w := level[i], f.size[i]
		sp.level[k] = x
		sp.n[k+1], sp.s1[k+1], sp.s2[k+1] = sp.n[k]+w, sp.s1[k]+w*x, sp.s2[k]+w*x*x
	}
	for b, lower := range f.lower {
		mid, width := (lower+f.upper[b])/2, f.upper[b]-lower
		if math.IsInf(f.upper[b], 1) {
			mid, width = 1.5*lower, lower
		}
		sp.mid, sp.width = append(sp.mid, mid), append(sp.width, width)
	}
	sp.least = min(groupMin, max(2*median(f.size), 8))
	return sp
}

func (sp *splitter) segment(from, to int) segment {
	w := sp.n[to] - sp.n[from]
	mean := (sp.s1[to] - sp.s1[from]) / w
	squares := max(sp.s2[to]-sp.s2[from]-w*mean*mean, 0)
	v := sp.independent(sp.order[from:to])
	free := float64(to - from - 1)
	return segment{from, to, squares - free*v, squares / max(free, 1) / max(v, 1e-300)}
}

// independent returns the variance of the logarithm of independent observations
// in the buckets of the given rows, to first order.
func (sp *splitter) independent(rows []int) float64 {
	counts := make([]float64, len(sp.mid))
	for _, i := range rows {
		bucket, count := sp.f.rows.of(i)
		for k, b := range bucket {
			counts[b] += count[k]
		}
	}
	mean, variance := moments(counts, sp.mid)
	n, within := 0.0, 0.0
	for b, c := range counts {
		n += c
		within += c * sp.width[b] * sp.width[b] / 12
	}
	mean = max(mean, 1e-300)
	return (variance + within/n) / (mean * mean)
}

// cut returns where a segment is best cut, or -1 when it should stay whole.
func (sp *splitter) cut(s segment) int {
	if s.ratio < overDispersed || s.to-s.from < 3 || sp.n[s.to]-sp.n[s.from] < sp.least {
		return -1
	}
	best, at := math.Inf(-1), -1
	for k := s.from + 1; k < s.to; k++ {
		left, right := sp.n[k]-sp.n[s.from], sp.n[s.to]-sp.n[k]
		if left < sp.least/2 || right < sp.least/2 || !(sp.level[k] > sp.level[k-1]) {
			continue
		}
		a, b := sp.s1[k]-sp.s1[s.from], sp.s1[s.to]-sp.s1[k]
		if between := a*a/left + b*b/right; between > best {
			best, at = between, k
		}
	}
	return at
}
