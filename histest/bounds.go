package histest

import (
	"math"
	"slices"
)

// closeEnough is the relative width at which the search for a bound stops; the
// outer end is taken, so the bound stays a proof.
const closeEnough = 1e-7

// proof derives what the sums of the single intervals prove of the order
// statistics (docs/percentiles.md, "Bounds").
type proof struct {
	layout
	rows rows
	upTo []float64 // observations in the buckets before b
}

// group of observations in one bucket of one interval: of its n observations at
// most high/(upper-v) lie at v or below, and at most low/(v-lower) above v.
type clause struct{ n, low, high float64 }

func newProof(bounds []float64, r rows, counts []float64) *proof {
	p := &proof{layout: newLayout(bounds, false), rows: r, upTo: cumulate(counts)}
	p.lower[0] = firstLower(bounds)
	return p
}

// tighten narrows the estimates of qs in place. It leaves them alone where the
// intervals contradict each other.
func (p *proof) tighten(dst []Estimate, qs []float64) {
	n := int(p.upTo[len(p.upTo)-1])
	at := make([]position, len(qs))
	ranks := make([]int, 0, 2*len(qs))
	for i, q := range qs {
		at[i] = positionOf(q, n)
		ranks = append(ranks, at[i].lower, at[i].upper)
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
		l, h := of(low, a.lower), of(high, a.lower)
		if a.frac > 0 {
			l, h = lerpBound(l, of(low, a.upper), a.frac), lerpBound(h, of(high, a.upper), a.frac)
		}
		if l = finiteOrNaN(l); !(l < dst[i].Low) {
			dst[i].Low = l
		}
		if h = finiteOrNaN(h); !(h > dst[i].High) {
			dst[i].High = h
		}
	}
}

// orderStatistics returns bounds of the order statistics of the given ranks,
// which ascend and count from 0. Since order statistics ascend too, each lower
// bound holds for the ranks after it, and each upper bound for those before.
func (p *proof) orderStatistics(ranks []int) (low, high []float64) {
	low, high = make([]float64, len(ranks)), make([]float64, len(ranks))
	b, of := -1, []clause(nil)
	floor := math.Inf(-1)
	for i, r := range ranks {
		for b < 0 || p.upTo[b+1] <= float64(r) {
			b++
			of = nil
		}
		if of == nil {
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
func (p *proof) clauses(b int) []clause {
	var of []clause
	for i := range p.rows.len() {
		bucket, count := p.rows.of(i)
		n, low, high := 0.0, 0.0, 0.0
		for k, c := range bucket {
			if c == b {
				n = count[k]
				continue
			}
			low += count[k] * p.lower[c]
			high += count[k] * p.upper[c]
		}
		if n == 0 {
			continue
		}
		s := p.rows.sum[i]
		margin := slack * math.Abs(s)
		q := clause{n: n, low: s - low - n*p.lower[b] + margin, high: high + n*p.upper[b] - s + margin}
		if math.IsInf(p.upper[b], 1) {
			q.high = s - margin - high // the sum of the n is at least this
		} else if q.high < 0 {
			q.low, q.high = math.Inf(1), math.Inf(1)
		}
		if q.low < 0 || math.IsNaN(q.low) || math.IsNaN(q.high) {
			q.low, q.high = math.Inf(1), math.Inf(1) // a contradiction proves nothing
			if math.IsInf(p.upper[b], 1) {
				q.high = math.Inf(-1)
			}
		}
		of = append(of, q)
	}
	return of
}

// atMost returns the greatest number of observations of bucket b at v or below.
func (p *proof) atMost(b int, of []clause, v float64) float64 {
	sum := 0.0
	if math.IsInf(p.upper[b], 1) {
		for i := range of {
			sum += of[i].n
			if of[i].high > of[i].n*v {
				sum--
			}
		}
		return sum
	}
	d := p.upper[b] - v
	for i := range of {
		if q := &of[i]; q.high >= q.n*d {
			sum += q.n
		} else {
			sum += min(q.n, math.Floor(q.high/d+1e-9))
		}
	}
	return sum
}

// atLeast returns the least number of observations of bucket b at v or below.
func (p *proof) atLeast(b int, of []clause, v float64) float64 {
	sum := 0.0
	d := v - p.lower[b]
	for i := range of {
		if q := &of[i]; q.low < q.n*d {
			sum += max(0, q.n-math.Floor(q.low/d+1e-9))
		}
	}
	return sum
}

// lowest returns a lower bound of the need-th smallest observation of bucket b,
// not below floor: there cannot be so many below it.
func (p *proof) lowest(b int, of []clause, need, floor float64) float64 {
	from, to := max(p.lower[b], floor), p.upper[b]
	if math.IsInf(to, 1) {
		to = from
		for _, q := range of {
			to = max(to, q.high/q.n)
		}
	}
	if math.IsInf(from, -1) {
		from = to
		for _, q := range of {
			from = min(from, p.upper[b]-q.high)
		}
		if math.IsInf(from, -1) {
			return from
		}
	}
	if p.atMost(b, of, from+(to-from)*1e-12) >= need {
		return from
	}
	from, _ = bracket(from, to, need, func(v float64) float64 { return p.atMost(b, of, v) })
	return from
}

// highest returns an upper bound of the need-th smallest observation: there are
// at least so many below it. It is not below floor, a lower bound.
func (p *proof) highest(b int, of []clause, need, floor float64) float64 {
	from, to := max(p.lower[b], floor), p.upper[b]
	if math.IsInf(p.lower[b], -1) {
		return to
	}
	if math.IsInf(to, 1) {
		to = from
		for _, q := range of {
			to = max(to, p.lower[b]+q.low)
		}
		if math.IsInf(to, 1) {
			return to
		}
		to += closeEnough * math.Abs(to)
	}
	if from > p.lower[b] && p.atLeast(b, of, from) >= need {
		return from
	}
	_, to = bracket(from, to, need, func(v float64) float64 { return p.atLeast(b, of, v) })
	return to
}

// bracket narrows from and to around the least v at which the rising count
// reaches need. It mixes false position, which is fast where counts are large
// and the steps small, with bisection.
func bracket(from, to, need float64, count func(v float64) float64) (float64, float64) {
	below, above := math.NaN(), math.NaN()
	for step := range 100 {
		if to-from <= closeEnough*max(math.Abs(from), math.Abs(to)) {
			break
		}
		v := from + (to-from)*((need-0.5-below)/(above-below))
		if step%3 == 2 || !(v > from) || !(v < to) {
			v = from + (to-from)/2
			if v <= from || v >= to {
				break
			}
		}
		if n := count(v); n >= need {
			to, above = v, n
		} else {
			from, below = v, n
		}
	}
	return from, to
}
