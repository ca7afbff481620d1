package histest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// The reasons why [Merge] refuses.
var (
	ErrBounds        = errors.New("bucket bounds differ")
	ErrEstimators    = errors.New("estimators differ")
	ErrContradiction = errors.New("counts and sum contradict each other")
)

// Gain is what one histogram gained over a window together with what an estimator learned while watching it. It
// does not change. It is not safe for concurrent use.
type Gain struct {
	est   Estimator // nothing else feeds it
	total Delta
}

// NewGain copies what e has learned so far, and total. The copy is small, and e may go on learning.
func NewGain(e Estimator, total *Delta) *Gain {
	g := &Gain{est: e, total: *total}
	g.total.Cum = slices.Clone(total.Cum)
	switch e := e.(type) {
	case *polynomial:
		c := newPolynomial(e.bounds)
		copy(c.stats, e.stats)
		g.est = c
	case *refined:
		c := newRefined(e.bounds)
		c.history, c.parts = e.history.prefix(), e.parts
		g.est = c
	}
	return g
}

// Quantiles is that of the estimator for this gain; see [Estimator].
func (g *Gain) Quantiles(dst []Estimate, qs []float64) ([]Estimate, bool) {
	return g.est.Quantiles(dst, &g.total, qs)
}

// Coarsen returns what is known of g at some of its bounds only, ascending ones: for a merge with a histogram
// that has no others. What the estimator learned of intervals is lost, but for their total; bounds of quantiles
// stay certain, and get wider. It refuses bounds that g does not have ([ErrBounds]).
func (g *Gain) Coarsen(bounds []float64) (*Gain, error) {
	name := Linear
	switch g.est.(type) {
	case *polynomial:
		name = Polynomial
	case *refined:
		name = Refined
	}
	est, err := New(name, bounds)
	if err != nil {
		return nil, fmt.Errorf("coarsen histogram: %w", err)
	}
	out := &Gain{est: est, total: g.total}
	out.total.Bounds, out.total.Cum = bounds, make([]float64, len(bounds))
	for i, b := range bounds {
		at, ok := slices.BinarySearch(g.total.Bounds, b)
		if !ok {
			return nil, fmt.Errorf("coarsen histogram to %v: %w", b, ErrBounds)
		}
		out.total.Cum[i] = g.total.Cum[at]
	}
	est.Interval(&out.total)
	return out, nil
}

// Merge returns the gain of several histograms taken together, such as those of the replicas of a server: its
// quantiles are those of all observations pooled, with bounds as certain as those of one histogram. No
// quantiles enter it. The polynomial estimator then knows what one fed with all intervals would; the refined
// one fits each histogram by itself and pools where it places the observations, or, where they are few, has the
// intervals of all histograms, each at its place in the window. Histograms without observations add nothing.
//
// It refuses histograms of different bounds ([ErrBounds]) or estimators ([ErrEstimators]), and a total whose
// sum does not fit its counts ([ErrContradiction]): pooled with others the contradiction would no longer show,
// and the bounds would be wrong. The error tells which histogram it was, from 0. The gains stay as they are.
func Merge(gains ...*Gain) (*Gain, error) {
	if len(gains) == 0 {
		return nil, errors.New("merge histograms: none given")
	}
	first := gains[0]
	var filled []*Gain
	for i, g := range gains {
		switch {
		case !slices.Equal(g.total.Bounds, first.total.Bounds):
			return nil, fmt.Errorf("merge histogram %d of %d: %w", i, len(gains), ErrBounds)
		case !sameKind(g.est, first.est):
			return nil, fmt.Errorf("merge histogram %d of %d: %w", i, len(gains), ErrEstimators)
		case g.total.empty():
			continue
		case !g.total.sound():
			return nil, fmt.Errorf("merge histogram %d of %d: %w", i, len(gains), ErrContradiction)
		}
		filled = append(filled, g)
	}
	out := &Gain{total: poolTotals(first.total.Bounds, filled)}
	switch first.est.(type) {
	case *polynomial:
		out.est = mergePolynomial(first.total.Bounds, filled)
	case *refined:
		out.est = mergeRefined(first.total.Bounds, filled)
	default:
		out.est = &linear{bounds: first.total.Bounds}
	}
	return out, nil
}

// sameKind reports whether two estimators are the same one of this package.
func sameKind(a, b Estimator) bool {
	var ok bool
	switch a.(type) {
	case *polynomial:
		_, ok = b.(*polynomial)
	case *linear:
		_, ok = b.(*linear)
	case *refined:
		_, ok = b.(*refined)
	}
	return ok
}

// empty reports whether d is a gain of nothing.
func (d *Delta) empty() bool {
	nonZero := func(c float64) bool { return c != 0 }
	return d.Count == 0 && d.Sum == 0 && d.Inf == 0 && !slices.ContainsFunc(d.Cum, nonZero)
}

// sound reports whether counts and sum can belong together.
func (d *Delta) sound() bool {
	if !d.usable(d.Bounds) {
		return false
	}
	l := limitsOf(d.Bounds, d)
	return l.valid && l.sums
}

// poolTotals adds up the totals. Where only some have a +Inf bucket, the number
// of observations of the others stands in.
func poolTotals(bounds []float64, gains []*Gain) Delta {
	pool := Delta{Bounds: bounds, Cum: make([]float64, len(bounds))}
	pool.HasInf = slices.ContainsFunc(gains, func(g *Gain) bool { return g.total.HasInf })
	for _, g := range gains {
		for i, c := range g.total.Cum {
			pool.Cum[i] += c
		}
		pool.Sum, pool.Late = pool.Sum+g.total.Sum, pool.Late+g.total.Late
		if pool.HasInf {
			pool.Inf += g.total.total()
			pool.Count += g.total.Count
		} else {
			pool.Count += g.total.total()
		}
	}
	return pool
}

func mergePolynomial(bounds []float64, gains []*Gain) *polynomial {
	out := newPolynomial(bounds)
	for _, g := range gains {
		for i, l := range g.est.(*polynomial).stats {
			out.stats[i].join(l)
		}
	}
	return out
}

// join takes in what another one learned, as if its intervals came next (Chan's update of the variance).
func (l *learned) join(m learned) {
	if m.intervals == 0 {
		return
	}
	if l.intervals == 0 {
		*l = m
		return
	}
	l.differ = l.differ || m.differ || l.first != m.first
	a, b := float64(l.intervals), float64(m.intervals)
	d := m.mean - l.mean
	l.mean += d * (b / (a + b))
	l.m2 += m.m2 + d*d*(a*b/(a+b))
	l.observations += m.observations
	l.weighted += m.weighted
	l.intervals += m.intervals
}

// mergeCap is how many intervals a merge of refined estimators keeps at most, but one of each histogram. Beyond
// it neighbours of the same histogram are merged in pairs, so that a merge costs no more than four long series,
// whatever the number of replicas.
const mergeCap = 4 * historyCap

// mergeRefined keeps the intervals of each histogram, to fit them one by one. The bounds, and histograms too
// small for that, take the intervals of all histories in the order of their relative place in their history,
// and of gains where that is the same. Where a history does not fit its total, the total is the one interval.
// Contradictions are settled within a history: the missing part is not in another one.
func mergeRefined(bounds []float64, gains []*Gain) *refined {
	out := newRefined(bounds)
	if out.history.closed {
		return out
	}
	parts, totals := make([]rows, len(gains)), make([]pooledPart, len(gains))
	all := 0
	for i, g := range gains {
		r := g.est.(*refined)
		counts := totalCounts(&g.total)
		parts[i], _, _ = r.reconcile(r.evidence(&g.total, counts), &g.total, counts)
		all += parts[i].len()
		totals[i].counts, totals[i].sum = counts, g.total.Sum
	}
	if all > mergeCap {
		for i := range parts {
			for parts[i].len() > max(1, mergeCap/len(parts)) {
				parts[i] = parts[i].halved(len(bounds) + 1)
			}
		}
	}
	out.history.interleave(parts)
	for i := range totals {
		totals[i].rows = parts[i]
	}
	if poolable(totals) {
		out.parts = totals
	}
	return out
}

// halved merges each row of even index with the next one; nb is the number of buckets.
func (r *rows) halved(nb int) rows {
	out := roomFor((r.len()+1)/2, len(r.bucket))
	counts := make([]float64, nb)
	for i := 0; i < r.len(); i += 2 {
		clear(counts)
		sum := 0.0
		for j := i; j < min(i+2, r.len()); j++ {
			bucket, count := r.of(j)
			for k, b := range bucket {
				counts[b] += count[k]
			}
			sum += r.sum[j]
		}
		out.append(counts, sum)
	}
	return out
}

// interleave fills an empty history with the rows of all parts. A count that is too large to keep closes it.
func (h *history) interleave(parts []rows) {
	type place struct {
		at        float64 // 0 to 1
		part, row int
	}
	var order []place
	for p := range parts {
		n := parts[p].len()
		for i := range n {
			order = append(order, place{(float64(i) + 0.5) / float64(n), p, i})
		}
	}
	slices.SortFunc(order, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.part, b.part))
	})
	for _, o := range order {
		bucket, count := parts[o.part].of(o.row)
		h.start = append(h.start, int32(len(h.bucket)))
		h.sum = append(h.sum, parts[o.part].sum[o.row])
		for k, b := range bucket {
			if count[k] > math.MaxUint32 {
				*h = history{closed: true}
				return
			}
			h.bucket = append(h.bucket, uint16(b))
			h.count = append(h.count, uint32(count[k]))
		}
	}
}

// prefix returns the history as it is now. It shares memory with h, which only ever appends to it or leaves it behind.
func (h *history) prefix() history {
	p := *h
	p.sum, p.start = slices.Clip(h.sum), slices.Clip(h.start)
	p.bucket, p.count = slices.Clip(h.bucket), slices.Clip(h.count)
	return p
}
