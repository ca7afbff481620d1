package compare

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/compare/judge"
	"github.com/scrapestat/scrapestat/internal/student"
)

// assignVerdicts gives every row and side its verdict.
func (c *comparer) assignVerdicts(rows []*draft) {
	var p []float64
	for _, d := range rows {
		if !c.selected(d) {
			continue
		}
		c.cells(d)
		for side := 1; side < len(c.sides); side++ {
			c.compareCell(d, side)
			if v := d.Against[side].P; !math.IsNaN(v) {
				p = append(p, v)
			}
		}
	}
	q := adjust(p)
	c.result.Tested = len(p)
	for _, d := range rows {
		for side := 1; side < len(c.sides) && c.selected(d); side++ {
			a := &d.Against[side]
			if !math.IsNaN(a.P) {
				a.Q, q = q[0], q[1:]
			}
			c.decide(d, side)
		}
	}
}

// compareCell computes what there is to know of a side against the base.
func (c *comparer) compareCell(d *draft, side int) {
	nan := math.NaN()
	a := &d.Against[side]
	*a = Comparison{Verdict: Incomparable, Change: nan, Difference: nan, Low: nan, High: nan, P: nan, Q: nan, Effect: nan}
	base, other := &d.Cells[0], &d.Cells[side]
	if a.Reason = c.reason(d, side); a.Reason != "" {
		return
	}
	a.Difference = other.Value - base.Value
	if base.Value*other.Value > 0 {
		a.Change = other.Value/base.Value - 1
	}
	x, y := base.Values, other.Values
	if len(x) > 1 || len(y) > 1 {
		a.Effect = cliff(x, y)
	}
	mx, my := d.measures[0], d.measures[side]
	if len(mx) == 1 && len(my) == 1 {
		a.Distance = distance(mx[0].counts, my[0].counts)
	} else {
		a.Distance = distance(poolCounts(mx), poolCounts(my))
	}
	switch {
	case allEqual(x, y):
		a.Evidence = Exact
	case leastP(len(x), len(y)) <= c.o.Alpha:
		a.Evidence = Repeats
		a.P = mannWhitney(x, y, c.o.Alpha)
	default:
		c.withinRun(d, side)
	}
}

// reason says why a row has no comparison; "" when it has one.
func (c *comparer) reason(d *draft, side int) string {
	switch base, other := &d.Cells[0], &d.Cells[side]; {
	case d.fixed != "":
		return d.fixed
	case base.Missing != "" && other.Missing != "" && base.Missing == other.Missing:
		return base.Missing
	case base.Missing != "":
		return fmt.Sprintf("%s has none: %s", c.sides[0], base.Missing)
	case other.Missing != "":
		return fmt.Sprintf("%s has none: %s", c.sides[side], other.Missing)
	}
	for _, at := range []int{0, side} {
		for _, m := range d.measures[at] {
			if m.unsure != "" {
				return fmt.Sprintf("%s of %s: it is not judged", m.unsure, c.sides[at])
			}
		}
	}
	return c.estimates(d, side)
}

// estimates says why percentiles cannot be compared: they come from different estimators, or from different buckets
// and their provable intervals meet, so that the layouts alone may make the difference.
func (c *comparer) estimates(d *draft, side int) string {
	first := d.measures[0][0]
	for _, m := range slices.Concat(d.measures[0], d.measures[side]) {
		if m.estimator != first.estimator {
			return fmt.Sprintf("percentiles of different estimators: %s and %s", first.estimator, m.estimator)
		}
		if !slices.Equal(m.layout, first.layout) && !disjoint(d.measures[0], d.measures[side]) {
			return fmt.Sprintf("bucket layouts differ (%d and %d bounds): see the mean, and the shares at common bounds",
				len(first.layout), len(m.layout))
		}
	}
	return ""
}

// disjoint reports whether all provable intervals of one side lie below all of the other.
func disjoint(a, b []*measure) bool {
	below := func(a, b []*measure) bool {
		for _, x := range a {
			for _, y := range b {
				if !(x.high < y.low) {
					return false
				}
			}
		}
		return true
	}
	return below(a, b) || below(b, a)
}

// poolCounts pools the distributions of repeats; nil when their bounds differ.
func poolCounts(list []*measure) *counts {
	var out *counts
	for _, m := range list {
		switch {
		case m.counts == nil || out != nil && !slices.Equal(out.bounds, m.counts.bounds):
			return nil
		case out == nil:
			out = &counts{m.counts.bounds, slices.Clone(m.counts.cum)}
		default:
			for i, n := range m.counts.cum {
				out.cum[i] += n
			}
		}
	}
	return out
}

// withinRun adds the interval of the difference by what varies within the runs: batch means, by the rule of the
// headline. Percentiles in one bucket differ by what their estimator makes of sums, of which slices show no noise.
func (c *comparer) withinRun(d *draft, side int) {
	a := &d.Against[side]
	x, okX := d.spread(0)
	y, okY := d.spread(side)
	if !okX || !okY || oneBucket(slices.Concat(d.measures[0], d.measures[side])) {
		return
	}
	a.Evidence = WithinRun
	half, va, vb := 0.0, x.Err*x.Err, y.Err*y.Err
	if va+vb > 0 {
		df := (va + vb) * (va + vb) / (va*va/x.DF + vb*vb/y.DF) // Welch and Satterthwaite
		half = student.Quantile(1-c.o.Alpha/2, df) * math.Sqrt(va+vb)
	}
	a.Low, a.High = a.Difference-half, a.Difference+half
}

// oneBucket reports whether percentiles lie in the same bucket.
func oneBucket(list []*measure) bool {
	at := func(m *measure) int {
		i, _ := slices.BinarySearch(m.layout, m.value)
		return i
	}
	return list[0].layout != nil && !slices.ContainsFunc(list, func(m *measure) bool { return at(m) != at(list[0]) })
}

// spread is that of the median of the runs of a side. The median of more than two varies more than their mean, at most
// by the factor sqrt(pi/2) of the normal distribution.
func (d *draft) spread(side int) (e judge.Estimate, ok bool) {
	n := float64(len(d.measures[side]))
	for _, m := range d.measures[side] {
		if m.noise.DF == 0 {
			return e, false
		}
		e.Err += m.noise.Err * m.noise.Err
		e.DF += m.noise.DF
	}
	if n > 2 {
		e.Err *= math.Pi / 2
	}
	e.Err = math.Sqrt(e.Err) / n
	return e, true
}

// decide turns what is known into the verdict.
func (c *comparer) decide(d *draft, side int) {
	a := &d.Against[side]
	switch {
	case a.Reason != "":
		a.Verdict = Incomparable
	case a.Evidence == Exact || relative(d.Cells[0].Value, d.Cells[side].Value) < c.o.MinEffect:
		a.Verdict = Same
	case a.Evidence == Repeats && a.Q <= c.o.Alpha:
		a.Verdict = d.toward(a.Difference)
	case a.Evidence == Repeats && a.P <= c.o.Alpha && leastP(len(d.measures[0]), len(d.measures[side])) > c.o.Alpha/20:
		a.Verdict = NeedsRepeats
		a.Reason = fmt.Sprintf("apart, but not after correction for the rows tested: give %d runs a side", c.needed())
	case a.Evidence == Repeats:
		a.Verdict = Same
	default:
		c.decideFew(d, side)
	}
}

// decideFew is for too few runs for a test.
func (c *comparer) decideFew(d *draft, side int) {
	a := &d.Against[side]
	x, y := d.measures[0], d.measures[side]
	need := c.needed()
	switch {
	case a.Evidence == None:
		a.Verdict = NeedsRepeats
		a.Reason = fmt.Sprintf("nothing within the runs tells of noise: give %d runs a side", need)
	case a.Low <= 0 && a.High >= 0:
		a.Verdict = NeedsRepeats
		a.Reason = fmt.Sprintf("within the noise of the runs: give %d runs a side", need)
	case len(x)+len(y) > 2 && math.Abs(a.Effect) < 1:
		a.Verdict = NeedsRepeats
		a.Reason = fmt.Sprintf("the runs of both sides overlap: give %d runs a side", need)
	default:
		a.Verdict = d.toward(a.Difference)
	}
}

// toward is the verdict of a change that is one.
func (d *draft) toward(difference float64) Verdict {
	switch {
	case d.Better == catalog.Neutral:
		return Changed
	case (d.Better == catalog.HigherBetter) == (difference > 0):
		return Better
	}
	return Worse
}

// relative is the change relative to the smaller of both values, so that it is the same from either side; +Inf when
// one is 0 or their signs differ.
func relative(a, b float64) float64 {
	if a == b {
		return 0
	}
	if !(a*b > 0) {
		return math.Inf(1)
	}
	return math.Abs(b-a) / math.Min(math.Abs(a), math.Abs(b))
}

// median returns the median and its interval by order statistics, NaN where there are too few values for one.
func median(values []float64, confidence float64) (center, low, high float64) {
	s := benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds) // sorts what it is given
	sum := benchmath.AssumeNothing.Summary(s, confidence)
	low, high = sum.Lo, sum.Hi
	if math.IsInf(low, 0) || math.IsInf(high, 0) {
		low, high = math.NaN(), math.NaN()
	}
	return sum.Center, low, high
}

// mannWhitney is the p-value of Mann-Whitney's test, exact for few values. With ties benchmath's exact value depends
// on which sample comes first, as it steps over ranks that are halves; the larger one counts, so that sides can be
// swapped.
func mannWhitney(x, y []float64, alpha float64) float64 {
	t := &benchmath.Thresholds{CompareAlpha: alpha}
	p := func(x, y []float64) float64 {
		return benchmath.AssumeNothing.Compare(benchmath.NewSample(slices.Clone(x), t),
			benchmath.NewSample(slices.Clone(y), t)).P
	}
	return min(1, max(p(x, y), p(y, x)))
}

// leastP is the smallest p-value that the test can have with so many values: 2 divided by the number of ways to choose
// n of n+m.
func leastP(n, m int) float64 {
	ways := 1.0
	for i := range n {
		ways *= float64(m+i+1) / float64(i+1)
	}
	return min(1, 2/ways)
}

// needed is how many runs a side to ask for: as many as let a twentieth of the rows stand out after the correction.
func (c *comparer) needed() int {
	n := 2
	for leastP(n, n) > c.o.Alpha/20 {
		n++
	}
	return n
}

// cliff is Cliff's delta.
func cliff(x, y []float64) float64 {
	sum := 0
	for _, a := range x {
		for _, b := range y {
			switch {
			case b > a:
				sum++
			case b < a:
				sum--
			}
		}
	}
	return float64(sum) / float64(len(x)*len(y))
}

// allEqual reports whether all values are the same number.
func allEqual(x, y []float64) bool {
	return !slices.ContainsFunc(slices.Concat(x, y), func(v float64) bool {
		return math.Float64bits(v) != math.Float64bits(x[0]) && !(v == 0 && x[0] == 0)
	})
}
