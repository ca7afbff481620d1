package histest

import (
	"math"
	"slices"
)

// closeEnough is the relative width at which the search for a bound stops; the
// outer end is taken, so the bound stays a proof.
const closeEnough = 1e-7

// proof derives what the sums of the single intervals prove of the order statistics (docs/percentiles.md, "Bounds").
type proof struct {
	layout
	rows      rows
	upTo      []float64 // observations in the buckets before b
	late      int       // as in limits
	low, high []float64 // by row: least and greatest sum, without observations of no bound
	noLow     []float64 // by row: observations without a lower bound
	noHigh    []float64 // by row: observations without an upper bound
}

// clause is a number n of observations in one bucket of one interval and what the sum leaves for them: at most
// left/(distance from a bound) of them lie further from that bound.
type clause struct{ n, left float64 }

// clauses are those of one bucket that say anything.
type clauses struct {
	may   []clause // distances from the upper bound
	free  float64  // observations that may lie anywhere, as far as may goes
	must  []clause // distances from the lower bound
	total float64
}

func newProof(bounds []float64, r rows, counts []float64) *proof {
	p := &proof{layout: newLayout(bounds, false), rows: r, upTo: cumulate(counts)}
	p.lower[0] = firstLower(bounds)
	n := r.len()
	p.low, p.high, p.noLow, p.noHigh = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		bucket, count := r.of(i)
		for k, b := range bucket {
			if math.IsInf(p.lower[b], -1) {
				p.noLow[i] += count[k]
			} else {
				p.low[i] += count[k] * p.lower[b]
			}
			if math.IsInf(p.upper[b], 1) {
				p.noHigh[i] += count[k]
			} else {
				p.high[i] += count[k] * p.upper[b]
			}
		}
	}
	return p
}

// tighten narrows the estimates of qs in place. It leaves them alone where the intervals contradict each other.
func (p *proof) tighten(dst []Estimate, qs []float64) {
	n := int(p.upTo[len(p.upTo)-1]) - p.late
	if n < 1 {
		return
	}
	at := make([]position, len(qs))
	ranks := make([]int, 0, 4*len(qs))
	for i, q := range qs {
		at[i] = positionOf(q, n)
		ranks = append(ranks, at[i].lower, at[i].upper, at[i].lower+p.late, at[i].upper+p.late)
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	low, high := p.orderStatistics(ranks)
	for i := range ranks {
		if !(low[i] <= high[i]) {
			return
		}
	}
	of := func(bound []float64, r int) float64 {
		i, _ := slices.BinarySearch(ranks, r)
		return bound[i]
	}
	for i, a := range at {
		l, h := of(low, a.lower), of(high, a.lower+p.late)
		if a.frac > 0 {
			l, h = lerpBound(l, of(low, a.upper), a.frac), lerpBound(h, of(high, a.upper+p.late), a.frac)
		}
		if l = finiteOrNaN(l); !(l < dst[i].Low) {
			dst[i].Low = l
		}
		if h = finiteOrNaN(h); !(h > dst[i].High) {
			dst[i].High = h
		}
	}
}

// orderStatistics returns bounds of the order statistics of the given ranks, which ascend and count from 0. Since order
// statistics ascend too, each lower bound holds for the ranks after it, and each upper bound for those before.
func (p *proof) orderStatistics(ranks []int) (low, high []float64) {
	low, high = make([]float64, len(ranks)), make([]float64, len(ranks))
	b, of := -1, clauses{}
	floor := math.Inf(-1)
	for i, r := range ranks {
		for b < 0 || p.upTo[b+1] <= float64(r) {
			b++
			of.total = 0
		}
		if of.total == 0 {
			of = p.clauses(b)
		}
		need := float64(r) - p.upTo[b] + 1
		low[i] = max(p.lowest(b, of, need, floor), floor)
		floor = low[i]
		high[i] = p.highest(b, of, need, low[i])
	}
	for i := len(ranks) - 2; i >= 0; i-- {
		high[i] = min(high[i], high[i+1])
	}
	return low, high
}

// clauses returns what each interval says of its observations in bucket b.
// Those that say nothing, as most do where intervals are crowded, are left out.
func (p *proof) clauses(b int) clauses {
	lower, upper := p.lower[b], p.upper[b]
	width := upper - lower
	out := clauses{total: p.upTo[b+1] - p.upTo[b]}
	for i := range p.rows.len() {
		bucket, count := p.rows.of(i)
		k, found := slices.BinarySearch(bucket, b)
		if !found {
			continue
		}
		n, s := count[k], p.rows.sum[i]
		margin := slack * math.Abs(s)
		above, below := math.Inf(1), math.Inf(1) // what the sum leaves over the lower, under the upper bound
		if p.noLow[i] == 0 {
			above = s - p.low[i] + margin
		}
		if math.IsInf(upper, 1) {
			below = s - margin - p.high[i] // the sum of the n is at least this
		} else if p.noHigh[i] == 0 {
			below = p.high[i] - s + margin
		}
		if above < 0 || below < 0 && !math.IsInf(upper, 1) {
			out.free += n // a contradiction proves nothing
			continue
		}
		if above < n*width {
			out.must = append(out.must, clause{n, above})
		}
		if math.IsInf(upper, 1) || below < n*width {
			out.may = append(out.may, clause{n, below})
		} else {
			out.free += n
		}
	}
	return out
}

// side is one of the two counts of a bucket as functions of v, which rise in
// unit steps: how many observations may, or must, lie at v or below.
type side interface {
	count(v float64) float64
	// jumps appends the v in (from, to] where the count rises by one.
	jumps(dst []float64, from, to float64) []float64
}

// may counts the observations that can lie at v or below.
type may struct {
	upper, free float64
	of          []clause
}

func (m may) count(v float64) float64 {
	sum, inverse := m.free, 1/(m.upper-v)
	for _, q := range m.of {
		sum += min(q.n, math.Floor(q.left*inverse+slack))
	}
	return sum
}

func (m may) jumps(dst []float64, from, to float64) []float64 {
	for _, q := range m.of {
		first, last := max(1, math.Floor(q.left/(m.upper-from))), q.n
		if to < m.upper {
			last = min(last, math.Ceil(q.left/(m.upper-to)))
		}
		for k := first; k <= last; k++ {
			dst = appendWithin(dst, m.upper-q.left/k, from, to)
		}
	}
	return dst
}

// mayOpen is may for the +Inf bucket: all but one of the observations of an
// interval can lie at the last bound, the last one where the sum allows.
type mayOpen struct {
	free float64
	of   []clause
}

func (m mayOpen) count(v float64) float64 {
	sum := m.free
	for _, q := range m.of {
		sum += q.n
		if q.left > q.n*v {
			sum--
		}
	}
	return sum
}

func (m mayOpen) jumps(dst []float64, from, to float64) []float64 {
	for _, q := range m.of {
		dst = appendWithin(dst, q.left/q.n, from, to)
	}
	return dst
}

// must counts the observations that have to lie at v or below.
type must struct {
	lower float64
	of    []clause
}

func (m must) count(v float64) float64 {
	sum, inverse := 0.0, 1/(v-m.lower)
	for _, q := range m.of {
		sum += max(0, q.n-math.Floor(q.left*inverse+slack))
	}
	return sum
}

func (m must) jumps(dst []float64, from, to float64) []float64 {
	for _, q := range m.of {
		first, last := max(1, math.Floor(q.left/(to-m.lower))), q.n
		if from > m.lower {
			last = min(last, math.Ceil(q.left/(from-m.lower)))
		}
		for k := first; k <= last; k++ {
			dst = appendWithin(dst, m.lower+q.left/k, from, to)
		}
	}
	return dst
}

func appendWithin(dst []float64, v, from, to float64) []float64 {
	if v > from && v <= to {
		return append(dst, v)
	}
	return dst
}

// lowest returns a lower bound of the need-th smallest observation of bucket b,
// not below floor: there cannot be so many below it.
func (p *proof) lowest(b int, of clauses, need, floor float64) float64 {
	from, to := max(p.lower[b], floor), p.upper[b]
	var s side = may{to, of.free, of.may}
	if of.free >= need && !math.IsInf(from, -1) {
		return from
	}
	if math.IsInf(to, 1) {
		s, to = mayOpen{of.free, of.may}, from
		for _, q := range of.may {
			to = max(to, q.left/q.n)
		}
	}
	if math.IsInf(from, -1) {
		if of.free > 0 {
			return from
		}
		from = to
		for _, q := range of.may {
			from = min(from, to-q.left)
		}
	}
	below := s.count(from + (to-from)*1e-12)
	if below >= need || to <= from {
		return from
	}
	from, _ = bracket(s, from, to, below, of.total, need)
	return from
}

// highest returns an upper bound of the need-th smallest observation: there are
// at least so many below it. It is not below floor, a lower bound.
func (p *proof) highest(b int, of clauses, need, floor float64) float64 {
	from, to := max(p.lower[b], floor), p.upper[b]
	bounded := 0.0
	for _, q := range of.must {
		bounded += q.n
	}
	if bounded < need && !math.IsInf(to, 1) || math.IsInf(p.lower[b], -1) {
		return to
	}
	if math.IsInf(to, 1) {
		if bounded < of.total {
			return to
		}
		to = from
		for _, q := range of.must {
			to = max(to, p.lower[b]+q.left)
		}
		to += closeEnough * math.Abs(to) // the last observation lies at to, not below
	}
	s := must{p.lower[b], of.must}
	below := 0.0
	if from > p.lower[b] {
		below = s.count(from)
	}
	if below >= need || to <= from {
		return from
	}
	above := s.count(to)
	if above < need {
		return to
	}
	_, to = bracket(s, from, to, below, above, need)
	return to
}

// bracket narrows from and to, where the count is below and above, around the least v at which it reaches need:
// by false position, with a bisection now and then, until few steps are left that can be listed.
func bracket(s side, from, to, below, above, need float64) (float64, float64) {
	for step := range 100 {
		if to-from <= closeEnough*max(math.Abs(from), math.Abs(to)) {
			break
		}
		if above-below <= 24 {
			if at, ok := nthJump(s, from, to, above-below, need-below); ok {
				return at, at
			}
		}
		v := from + (to-from)*((need-0.5-below)/(above-below))
		if step%3 == 2 || !(v > from) || !(v < to) {
			v = from + (to-from)/2
			if v <= from || v >= to {
				break
			}
		}
		if n := s.count(v); n >= need {
			to, above = v, n
		} else {
			from, below = v, n
		}
	}
	return from, to
}

// nthJump returns the n-th of the given number of steps between from and to; ok
// is false if rounding at the ends makes their number another one.
func nthJump(s side, from, to, steps, n float64) (at float64, ok bool) {
	var room [32]float64
	all := s.jumps(room[:0], from, to)
	if float64(len(all)) != steps {
		return 0, false
	}
	slices.Sort(all)
	return all[int(n)-1], true
}
