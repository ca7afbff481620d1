package histest

import "math"

// slack is the relative error granted to a sum of observations: a proof from
// sums allows for the rounding of the server and of differences.
const slack = 1e-9

// limits holds what the totals of a histogram prove about its order statistics, and qualifies estimates. Bucket
// i holds the observations in (lower(i), upper(i)]; the last one is +Inf.
type limits struct {
	bounds  []float64
	cum     []float64
	inf     float64 // observations in all
	late    int     // of them any may not be of the window
	valid   bool    // counts rise and are whole; otherwise nothing is proven
	sums    bool    // the sum fits the counts, so it proves something too
	single  bool    // all observations are in one bucket
	sum     float64
	sumLow  float64 // the least sum that fits the counts
	sumHigh float64 // the greatest
}

// limitsOf returns the limits for a delta with the layout of bounds.
func limitsOf(bounds []float64, d *Delta) limits {
	l := limits{bounds: bounds, cum: d.Cum, sum: d.Sum, inf: d.total(), late: int(d.Late)}
	l.valid = l.inf >= 1 && l.inf == math.Trunc(l.inf)
	prev, filled := 0.0, 0
	for i := range len(bounds) + 1 {
		c := l.upTo(i)
		n := c - prev
		if n < 0 || c != math.Trunc(c) {
			l.valid = false
		}
		if n > 0 {
			filled++
			l.sumLow += n * l.lower(i)
			l.sumHigh += n * l.upper(i)
		}
		prev = c
	}
	l.single = filled == 1
	l.sums = d.Sum >= l.sumLow-slack*math.Abs(d.Sum) && d.Sum <= l.sumHigh+slack*math.Abs(d.Sum)
	return l
}

// total returns the number of observations: that of +Inf, or where the exposition has no such bucket, the count.
func (d *Delta) total() float64 {
	n := d.Inf
	if !d.HasInf {
		n = math.Trunc(d.Count)
		if k := len(d.Cum); k > 0 {
			n = max(n, d.Cum[k-1])
		}
	}
	return n
}

// firstLower is the lower bound of the first bucket: observations are taken as not negative unless a bound is.
func firstLower(bounds []float64) float64 {
	if len(bounds) > 0 && bounds[0] < 0 {
		return math.Inf(-1)
	}
	return 0
}

func (l *limits) lower(i int) float64 {
	if i == 0 {
		return firstLower(l.bounds)
	}
	return l.bounds[i-1]
}

func (l *limits) upper(i int) float64 {
	if i == len(l.bounds) {
		return math.Inf(1)
	}
	return l.bounds[i]
}

// upTo returns the observations in buckets 0 to i.
func (l *limits) upTo(i int) float64 {
	if i == len(l.bounds) {
		return l.inf
	}
	return l.cum[i]
}

// estimate qualifies the estimate v of the q-quantile.
func (l *limits) estimate(v, q float64) Estimate {
	e := Estimate{Value: v, Low: math.NaN(), High: math.NaN(), Flags: fewFor(q, l.inf)}
	if l.single {
		e.Flags |= Degenerate
	}
	if !l.valid {
		return e
	}
	if k := len(l.bounds); k == 0 || float64(positionOf(q, int(l.inf)).upper) >= l.cum[k-1] {
		e.Flags |= Overflow
	}
	if l.late >= int(l.inf) {
		return e
	}
	p := positionOf(q, int(l.inf)-l.late) // lowest when the greatest are not of the window, highest when the least are not
	low, _ := l.orderStatistic(p.lower)
	_, high := l.orderStatistic(p.lower + l.late)
	if p.frac > 0 {
		low2, _ := l.orderStatistic(p.upper)
		_, high2 := l.orderStatistic(p.upper + l.late)
		low, high = lerpBound(low, low2, p.frac), lerpBound(high, high2, p.frac)
	}
	e.Low, e.High = finiteOrNaN(low), finiteOrNaN(high)
	return e
}

// fewFor returns Few when n observations do not reach as far out as the q-quantile.
func fewFor(q, n float64) Flags {
	if rare := min(q, 1-q); rare > 0 && n*(1+slack) < 1/rare {
		return Few
	}
	return 0
}

// lerpBound is lerp for bounds, which may be infinite.
func lerpBound(a, b, t float64) float64 {
	if math.IsInf(a, 0) || math.IsInf(b, 0) {
		return a + b // same sign: order statistics rise, and only one side is open
	}
	return lerp(a, b, t)
}

func finiteOrNaN(x float64) float64 {
	if math.IsInf(x, 0) {
		return math.NaN()
	}
	return x
}

// orderStatistic returns the interval that holds the r-th smallest observation (from 0): its bucket, narrowed
// by the sum. With n observations in the bucket, j-1 of them below the wanted one, and the others as low as
// they can be, n-j+1 of them share what is left of the sum and the wanted one is the smallest:
//
//	x_j <= (sum - sumLow(others) - (j-1) lower) / (n-j+1)
//
// and correspondingly from below: j of them lie at x_j at most, the others at their upper bounds.
func (l *limits) orderStatistic(r int) (low, high float64) {
	b, prev := 0, 0.0
	for ; l.upTo(b) <= float64(r); b++ {
		prev = l.upTo(b)
	}
	low, high = l.lower(b), l.upper(b)
	if !l.sums {
		return low, high
	}
	n, j := l.upTo(b)-prev, float64(r)-prev+1
	sumLow, sumHigh := l.others(b)
	margin := slack * math.Abs(l.sum)
	if !math.IsInf(sumLow, 0) && (j == 1 || !math.IsInf(low, 0)) {
		rest := l.sum + margin - sumLow
		if j > 1 {
			rest -= (j - 1) * low
		}
		high = max(low, min(high, rest/(n-j+1)))
	}
	if !math.IsInf(sumHigh, 0) && (j == n || !math.IsInf(l.upper(b), 0)) {
		rest := l.sum - margin - sumHigh
		if j < n {
			rest -= (n - j) * l.upper(b)
		}
		low = min(high, max(low, rest/j))
	}
	return low, high
}

// others returns the least and the greatest sum of the observations outside bucket b.
func (l *limits) others(b int) (low, high float64) {
	prev := 0.0
	for i := range len(l.bounds) + 1 {
		n := l.upTo(i) - prev
		prev = l.upTo(i)
		if n > 0 && i != b {
			low += n * l.lower(i)
			high += n * l.upper(i)
		}
	}
	return low, high
}

// appendZeros appends the answer for a sum of 0: every observation is 0.
func appendZeros(dst []Estimate, bounds []float64, total *Delta, qs []float64) []Estimate {
	limits := limitsOf(bounds, total)
	for _, q := range qs {
		dst = append(dst, limits.estimate(0, q))
	}
	return dst
}
