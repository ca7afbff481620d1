package histest

import (
	"math"
)

// refined estimates from the counts and sums of all intervals (docs/percentiles.md). The steps, each in its own file:
//
//	torn.go       merge intervals whose sum contradicts their counts
//	signed.go     move negative observations to where the steps can work
//	spikes.go     take out single far observations beyond the last bound
//	groups.go     group intervals observed under the same conditions
//	curve.go      a smooth distribution through the bucket edges
//	reference.go  the reference shape of each bucket in each group
//	tail.go       shapes of the +Inf bucket
//	means.go      correct the bucket means by a regression over all sums
//	variances.go  and the variances by the squares of what is left
//	tilt.go, shapes.go  distributions with these means and variances
//	placement.go  place each observation given the sum of its interval
//	orderstat.go  read off the order statistics
//	bounds.go     what the sums prove of them
type refined struct {
	bounds  []float64
	history history
	parts   []pooledPart // of a merge, if they are to be fitted one by one
	counts  []float64    // scratch: of an interval, +Inf last
}

func newRefined(bounds []float64) *refined {
	r := &refined{bounds: bounds, counts: make([]float64, len(bounds)+1)}
	r.history.closed = len(bounds) >= math.MaxUint16
	return r
}

// Interval keeps the counts and the sum of d. After an interval that cannot be
// true (counts that fall, a sum that is not finite) no more are kept.
func (r *refined) Interval(d *Delta) {
	n, ok := r.perBucket(d)
	if !ok || math.IsNaN(d.Sum) || math.IsInf(d.Sum, 0) {
		r.history.closed = true
		return
	}
	if n == 0 && d.Sum == 0 {
		return
	}
	r.history.add(r.counts, d.Sum)
}

// perBucket fills counts and returns the number of observations; ok is false
// when the counts fall, are not whole or too large to keep.
func (r *refined) perBucket(d *Delta) (n float64, ok bool) {
	if len(d.Cum) != len(r.bounds) {
		return 0, false
	}
	ok = true
	for i := range r.counts {
		c := d.total()
		if i < len(d.Cum) {
			c = d.Cum[i]
		}
		x := c - n
		if !(x >= 0) || x > math.MaxUint32 || x != math.Trunc(x) {
			x, ok = 0, false
		}
		r.counts[i] = x
		n += x
	}
	return n, ok
}

// Quantiles implements [Estimator]. The first intervals must be those of the total, the others are left out. If
// none add up to it, the answer is that of the total alone.
func (r *refined) Quantiles(dst []Estimate, total *Delta, qs []float64) ([]Estimate, bool) {
	if len(r.bounds) == 0 || !total.usable(r.bounds) {
		return dst, false
	}
	counts := totalCounts(total)
	observations := 0.0
	for _, n := range counts {
		observations += n
	}
	if observations < 1 {
		return dst, false
	}
	if total.Sum == 0 && !isSigned(r.bounds, counts, 0) {
		return appendZeros(dst, r.bounds, total, qs), true
	}
	rows := r.evidence(total, counts)
	order, proof := r.estimate(rows, total, counts)
	limits := limitsOf(r.bounds, total)
	limits.late = 0 // values are those without it
	start := len(dst)
	for _, q := range qs {
		v := math.NaN()
		if order != nil {
			v = order.quantile(q)
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			v = linearAt(r.bounds, total.Cum, min(max(q, 0), 1)*observations)
		}
		dst = append(dst, limits.estimate(v, q))
	}
	added := dst[start:]
	if limits.valid {
		proof.tighten(added, qs)
	}
	for i := range added {
		added[i].Clamp()
	}
	if limits.late, proof.late = int(total.Late), int(total.Late); total.Late > 0 {
		for i, q := range qs {
			added[i] = limits.estimate(added[i].Value, q)
		}
		if limits.valid {
			proof.tighten(added, qs)
		}
	}
	return dst, true
}

// totalCounts returns the observations per bucket, +Inf last. Counts that fall
// from one bound to the next are taken as level.
func totalCounts(d *Delta) []float64 {
	counts := make([]float64, len(d.Cum)+1)
	upTo := 0.0
	for i := range counts {
		c := d.total()
		if i < len(d.Cum) {
			c = d.Cum[i]
		}
		c = max(math.Round(c), upTo)
		counts[i] = c - upTo
		upTo = c
	}
	return counts
}

// evidence returns the intervals of the total, or the total as a single one if they are not known.
func (r *refined) evidence(total *Delta, counts []float64) rows {
	if all := r.history.upTo(counts, total.Sum); all.len() > 1 {
		return all
	}
	return single(total, counts)
}

func single(total *Delta, counts []float64) rows {
	one := newRows()
	one.append(counts, total.Sum)
	return one
}

// tornShare is the share of contradictory intervals beyond which sums and counts do not belong together at all
// and only totals are used. Tuned on torn cases of the tuning families.
const tornShare = 0.2

// estimate runs the steps. The order statistics are nil where numbers are too large for them.
func (r *refined) estimate(all rows, total *Delta, counts []float64) (*ordered, *proof) {
	merged, l, integer := r.reconcile(all, total, counts)
	proof := newProof(r.bounds, merged.clone(), counts)
	if merged.squares() > maxSquares {
		merged, _ = mergeTorn(single(total, counts), &l)
	}
	if len(r.parts) > 0 && adds(r.parts, counts) {
		return r.pool(r.parts, counts), proof
	}
	f, by, ok := r.fit(l, merged, integer, counts, total.Sum)
	if !ok {
		return nil, proof
	}
	order := newOrdered(f, f.place())
	order.moved = by
	return order, proof
}

// fit runs the steps up to the shapes, for observations moved by so much; ok is
// false where numbers are too large. It takes over the rows.
func (r *refined) fit(l layout, merged rows, integer bool, counts []float64, sum float64) (f *fit, by float64,
	ok bool) {
	if isSigned(r.bounds, counts, sum) {
		integer = false
		if l, merged, by, ok = moved(r.bounds, merged, counts); !ok {
			return nil, 0, false
		}
	}
	return fitPieces(l, merged, integer), by, true
}

// reconcile merges intervals that contradict themselves with their neighbours, or takes the total as the only
// one where too many do. It returns the layout for them too, and whether the observations are whole numbers.
func (r *refined) reconcile(all rows, total *Delta, counts []float64) (merged rows, l layout, integer bool) {
	integer = wholeNumbers(r.bounds, &all)
	l = newLayout(r.bounds, integer)
	signed := isSigned(r.bounds, counts, total.Sum)
	if signed {
		integer, l = false, signedLayout(r.bounds)
	}
	merged, contradictions := mergeTorn(all, &l)
	if all.len() > 1 && float64(contradictions) > tornShare*float64(all.len()) {
		if integer = false; !signed {
			l = newLayout(r.bounds, false)
		}
		merged, _ = mergeTorn(single(total, counts), &l)
	}
	return merged, l, integer
}

// maxSquares bounds the work of the regressions, which grows with the squared number of buckets that an
// interval reaches. Only crowded intervals of wide native histograms exceed it: 1,800 that reach 48 buckets
// each. Such fine buckets leave the sums little to add, so the totals serve as well.
const maxSquares = 4 << 20

// maxRegressed is the number of filled buckets beyond which neither groups are formed nor means and variances
// corrected, work that grows with its cube: such narrow buckets say by themselves where their observations lie.
// Prometheus keeps at most 160 buckets of a native histogram unless told otherwise.
const maxRegressed = 200

// filled returns the number of buckets that hold observations.
func (f *fit) filled() int {
	n := 0
	for _, c := range f.counts {
		if c > 0 {
			n++
		}
	}
	return n
}

// squares returns the sum of the squared number of buckets of each row.
func (r *rows) squares() int {
	n := 0
	for i := range r.len() {
		bucket, _ := r.of(i)
		n += len(bucket) * len(bucket)
	}
	return n
}

// fitPieces runs the steps from the consistent rows to the shapes of all pieces.
func fitPieces(l layout, merged rows, integer bool) *fit {
	f := newFit(l, merged, integer)
	f.takeSpikes()
	fine := f.filled() > maxRegressed
	f.group(fine)
	f.reference()
	g := newRegression(f)
	for range 2 {
		if fine {
			break
		} // the variances weight the means, and the other way round
		g.regressMeans()
		g.regressVariances()
	}
	g.shapePieces()
	return f
}
