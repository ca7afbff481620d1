// Package changepoint finds where a series of values of many runs changed: steps,
// slow drifts and single outliers, with numbers alone.
//
// The steps are those of the optimal partition into segments (Jackson et al. 2005,
// by dynamic programming), of which those that a t test does not confirm are
// merged again. The p of a change counts the places where it could have been.
// Nothing is random and nothing is kept: a series that grew is given again.
package changepoint

import (
	"cmp"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/internal/student"
)

// The parameters, chosen on series that are none of the tests.
const (
	alpha      = 0.01 // of a change, over all the places where it could have been
	penalty    = 3.0  // of a change in the partition, times ln(n)
	minSegment = 3    // points: a change is confirmed from its third point on
	clip       = 4.0  // standard deviations from both sides make an outlier
	span       = 5    // points of a side that an outlier is held against
	most       = 2000 // points: older ones are left out
)

// Result is what a series holds.
type Result struct {
	Log   bool    // all values are positive: changes are relative, else differences
	Sigma float64 // standard deviation of a value around its segment, on the scale of Log
	// Inflation is by how much runs that hang together make the variance of a mean larger; 1 for runs that do not.
	Inflation float64
	Unstable  bool  // more than a tenth of the values are outliers: none is left out
	Outliers  []int // indices of values that stand alone
	Changes   []Change
	Drifts    []Drift
	Segments  []int // where segments begin, and the length of the series at the end
}

// Change is a step between two segments.
type Change struct {
	Index  int // of the first run after it
	Change float64
	// Low and High hold Change with 95 % confidence, as if its place were known.
	Low, High            float64
	P                    float64
	PointsBefore, Points int
	Minor                bool // below the margin: a boundary of segments and no alarm
	// First and Last are the indices at which it could as well have been, within 95 %.
	First, Last int
}

// Drift is a slow change in one direction from Start up to End, exclusive.
type Drift struct {
	Start, End int
	Change     float64
}

// Detect finds the changes of values in the order of the runs. A change below
// margin, relative to the values, is minor. Of more than 2,000 values the last ones
// are looked at; indices count from the first of all. It takes time quadratic in the
// number of values and memory linear in it. Values that are not finite must be left out before.
func Detect(values []float64, margin float64) Result {
	skip := max(0, len(values)-most)
	d := detector{y: slices.Clone(values[skip:]), margin: margin}
	r := Result{Log: !slices.ContainsFunc(d.y, func(v float64) bool { return !(v > 0) }), Segments: []int{0, len(d.y)},
		Inflation: 1}
	d.log = r.Log
	if d.log {
		for i, v := range d.y {
			d.y[i] = math.Log(v)
		}
	}
	r.Sigma = noise(d.y)
	if len(d.y) >= 2*minSegment && r.Sigma > 0 {
		d.run(&r)
	}
	return r.shift(skip)
}

// shift adds to all indices.
func (r Result) shift(by int) Result {
	for i := range r.Outliers {
		r.Outliers[i] += by
	}
	for i := range r.Changes {
		c := &r.Changes[i]
		c.Index, c.First, c.Last = c.Index+by, c.First+by, c.Last+by
	}
	for i := range r.Drifts {
		r.Drifts[i].Start, r.Drifts[i].End = r.Drifts[i].Start+by, r.Drifts[i].End+by
	}
	for i := range r.Segments {
		r.Segments[i] += by
	}
	return r
}

// detector is a series while it is looked at.
type detector struct {
	y      []float64
	log    bool
	margin float64
	at     []int     // where segments begin, 0 first, len(y) last
	sums   []float64 // of y before an index
	square []float64
}

func (d *detector) run(r *Result) {
	replaced, outliers := replaceOutliers(d.y, r.Sigma)
	if r.Outliers = outliers; len(outliers)*10 > len(d.y) {
		r.Unstable, r.Sigma = true, max(r.Sigma, meanSquare(d.y))
	} else {
		d.y = replaced
	}
	d.sums, d.square = make([]float64, len(d.y)+1), make([]float64, len(d.y)+1)
	for i, v := range d.y {
		d.sums[i+1], d.square[i+1] = d.sums[i]+v, d.square[i]+v*v
	}
	d.partition(r.Sigma)
	d.merge()
	r.Drifts = d.drifts()
	r.Segments = d.at
	r.Inflation = d.inflation()
	for k := 1; k+1 < len(d.at); k++ {
		r.Changes = append(r.Changes, d.change(k, r.Inflation, r.Sigma))
	}
}

// noise is the standard deviation around the segments: from the median difference of neighbours, so that steps and
// single outliers do not count.
func noise(y []float64) float64 {
	if len(y) < 2*minSegment {
		return scaledMedian(y)
	}
	return cmp.Or(scaledMedian(y), meanSquare(y))
}

func scaledMedian(y []float64) float64 {
	if len(y) < 2 {
		return 0
	}
	steps := make([]float64, len(y)-1)
	for i := range steps {
		steps[i] = math.Abs(y[i+1] - y[i])
	}
	return 1.4826 * middle(steps) / math.Sqrt2
}

func meanSquare(y []float64) float64 {
	s := 0.0
	for i := range y[1:] {
		s += (y[i+1] - y[i]) * (y[i+1] - y[i])
	}
	return math.Sqrt(s / float64(2*(len(y)-1)))
}

// Median is the middle of values, of which there must be some. It sorts a copy.
func Median(v []float64) float64 { return middle(slices.Clone(v)) }

// middle is the median of values, which it sorts.
func middle(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// replaceOutliers returns y with the median of the nearer side in place of each value that stands alone.
func replaceOutliers(y []float64, s float64) (out []float64, at []int) {
	out = slices.Clone(y)
	var some [span]float64
	median := func(v []float64) float64 { return middle(some[:copy(some[:], v)]) }
	for i := range y {
		before, after := y[max(0, i-span):i], y[i+1:min(len(y), i+1+span)]
		if len(before) < 2 || len(after) < minSegment {
			continue
		}
		mb, ma := median(before), median(after)
		b, a := y[i]-mb, y[i]-ma
		if b*a > 0 && min(math.Abs(b), math.Abs(a)) > clip*s {
			if out[i] = ma; math.Abs(b) < math.Abs(a) {
				out[i] = mb
			}
			at = append(at, i)
		}
	}
	return out, at
}

// spread is the sum of squares around the mean of y[from:to].
func (d *detector) spread(from, to int) float64 {
	s := d.sums[to] - d.sums[from]
	return max(0, d.square[to]-d.square[from]-s*s/float64(to-from))
}

// partition cuts the series so that squares by the noise and the price of changes are least; of equal costs the
// smallest previous index.
func (d *detector) partition(s float64) {
	n := len(d.y)
	price := penalty * math.Log(float64(n))
	cost, prev := make([]float64, n+1), make([]int, n+1)
	for t := range cost {
		cost[t] = math.Inf(1)
	}
	cost[0] = -price
	weight, shares := 1/(s*s), make([]float64, n) // 1/n, ..., 1/1
	for i := range shares {
		shares[i] = 1 / float64(n-i)
	}
	for t := minSegment; t <= n; t++ {
		least, at, sum, square := math.Inf(1), 0, d.sums[t], d.square[t]
		before := cost[:t-minSegment+1]
		sums, squares, share := d.sums[:len(before)], d.square[:len(before)], shares[n-t:][:len(before)]
		for j := range before { // spread, without its division
			u := sum - sums[j]
			if c := before[j] + max(0, square-squares[j]-u*u*share[j])*weight; c < least {
				least, at = c, j
			}
		}
		cost[t], prev[t] = least+price, at
	}
	d.at = []int{n}
	for t := prev[n]; t > 0; t = prev[t] {
		d.at = append(d.at, t)
	}
	d.at = append(d.at, 0)
	slices.Reverse(d.at)
}

// merge takes out the least sure change until all are sure.
func (d *detector) merge() {
	for len(d.at) > 2 {
		f := d.inflation()
		worst, worstP, worstStep := 0, -1.0, 0.0
		for k := 1; k+1 < len(d.at); k++ {
			t := d.test(k, f)
			if t.p > worstP || t.p == worstP && math.Abs(t.step) < worstStep {
				worst, worstP, worstStep = k, t.p, math.Abs(t.step)
			}
		}
		if worstP <= alpha {
			return
		}
		d.at = slices.Delete(d.at, worst, worst+1)
	}
}

// inflation is by how much the values around their segments hang together: the variance of a mean is that much larger.
func (d *detector) inflation() float64 {
	num, den := 0.0, 0.0
	for k := range d.at[1:] {
		y := d.y[d.at[k]:d.at[k+1]]
		m := Mean(y)
		for i, v := range y {
			den += (v - m) * (v - m)
			if i > 0 {
				num += (v - m) * (y[i-1] - m)
			}
		}
	}
	n := float64(len(d.y))
	r := 0.0
	if den > 0 {
		r = num / den
	}
	if r += float64(len(d.at)-1) / n; r < 2/math.Sqrt(n) {
		return 1
	}
	r = min(r, 2.0/3)
	return (1 + r) / (1 - r)
}

// tested is a change between two segments.
type tested struct{ step, p, err, df float64 }

// test compares the segments around boundary k.
func (d *detector) test(k int, f float64) tested {
	l, r := d.y[d.at[k-1]:d.at[k]], d.y[d.at[k]:d.at[k+1]]
	n1, n2 := float64(len(l)), float64(len(r))
	df := n1 + n2 - 2
	t := tested{step: Mean(r) - Mean(l), df: max(1, df/f), p: 1}
	t.err = math.Sqrt(f * (squares(l) + squares(r)) / df * (1/n1 + 1/n2))
	switch {
	case t.err == 0 && t.step != 0:
		t.p = 0
	case t.err > 0:
		places := max(1, n1+n2-2*minSegment+1)
		t.p = min(1, places*student.TwoSided(t.step/t.err, t.df))
	}
	return t
}

// change describes the change at boundary k.
func (d *detector) change(k int, f, s float64) Change {
	t := d.test(k, f)
	from, at, to := d.at[k-1], d.at[k], d.at[k+1]
	half, least := 0.0, math.Log1p(d.margin)
	if t.err > 0 {
		half = student.Quantile(0.975, t.df) * t.err
	}
	if !d.log {
		least = d.margin * max(math.Abs(Mean(d.y[from:at])), math.Abs(Mean(d.y[at:to])))
	}
	c := Change{Index: at, Change: d.value(t.step), Low: d.value(t.step - half), High: d.value(t.step + half), P: t.p,
		PointsBefore: at - from, Points: to - at, Minor: math.Abs(t.step) < least}
	c.First, c.Last = d.places(from, at, to, s)
	return c
}

// places are the first and the last index whose cost is within 3.84 of the best: the 95 % interval by likelihood.
func (d *detector) places(from, at, to int, s float64) (first, last int) {
	cost := func(i int) float64 { return (d.spread(from, i) + d.spread(i, to)) / (s * s) }
	limit := cost(at) + 3.84
	first, last = at, at
	for i := from + 1; i < to; i++ {
		if cost(i) <= limit {
			first, last = min(first, i), max(last, i)
		}
	}
	return first, last
}

// value is what a difference on the scale means.
func (d *detector) value(step float64) float64 {
	if d.log {
		return math.Expm1(step)
	}
	return step
}

// drifts takes out the longest runs of changes of one direction that a straight line explains better, by BIC.
func (d *detector) drifts() []Drift {
	var out []Drift
	for i := 1; i+1 < len(d.at); i++ {
		up, last, best := d.step(i) > 0, 0, Drift{}
		for j := i + 1; j+1 < len(d.at) && d.step(j) > 0 == up; j++ {
			from, to := d.at[i-1], d.at[j+1]
			cost, slope := line(d.y[from:to])
			if cost < d.stairs(i-1, j+1) && slope > 0 == up && slope != 0 {
				last, best = j, Drift{from, to, d.value(slope * float64(to-from-1))}
			}
		}
		if last > 0 {
			out = append(out, best)
			d.at = slices.Delete(d.at, i, last+1)
			i--
		}
	}
	return out
}

// step is the difference at boundary k.
func (d *detector) step(k int) float64 {
	return Mean(d.y[d.at[k]:d.at[k+1]]) - Mean(d.y[d.at[k-1]:d.at[k]])
}

// stairs is the BIC of the segments between two boundaries.
func (d *detector) stairs(from, to int) float64 {
	s := 0.0
	for k := from; k < to; k++ {
		s += squares(d.y[d.at[k]:d.at[k+1]])
	}
	return bic(s, d.at[to]-d.at[from], 2*(to-from)-1)
}

// line is the BIC and the slope of a straight line.
func line(y []float64) (cost, slope float64) {
	n := float64(len(y))
	m, num, den := Mean(y), 0.0, 0.0
	for i, v := range y {
		x := float64(i) - (n-1)/2
		num, den = num+x*v, den+x*x
	}
	slope = num / den
	s := 0.0
	for i, v := range y {
		e := v - m - slope*(float64(i)-(n-1)/2)
		s += e * e
	}
	return bic(s, len(y), 2), slope
}

// bic is Schwarz's criterion (1978) of a sum of squares.
func bic(squares float64, n, parameters int) float64 {
	return float64(n)*math.Log(max(squares/float64(n), 1e-300)) + float64(parameters)*math.Log(float64(n))
}

// Mean is that of values, of which there must be some; of equal ones it is their value, to the last bit.
func Mean(y []float64) float64 {
	if slices.Min(y) == slices.Max(y) {
		return y[0]
	}
	s := 0.0
	for _, v := range y {
		s += v
	}
	return s / float64(len(y))
}

// squares is the sum of squares around the mean.
func squares(y []float64) float64 {
	m, s := Mean(y), 0.0
	for _, v := range y {
		s += (v - m) * (v - m)
	}
	return s
}
