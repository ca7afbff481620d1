package histest_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/histest"
)

// observed makes intervals of the given observations, and their total.
func observed(bounds []float64, groups ...[]float64) (intervals []*histest.Delta, total *histest.Delta) {
	total = emptyDelta(bounds)
	for _, g := range groups {
		d := emptyDelta(bounds)
		for _, x := range g {
			observe(d, x)
		}
		intervals = append(intervals, d)
		addDelta(total, d)
	}
	return intervals, total
}

func TestLoneObservationsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for range 50 {
		var groups [][]float64
		var all []float64
		for range 20 + r.IntN(200) {
			if r.IntN(3) == 0 {
				groups = append(groups, nil)
				continue
			}
			x := 2.3 * math.Exp(1.5*r.NormFloat64())
			groups = append(groups, []float64{x})
			all = append(all, x)
		}
		slices.Sort(all)
		intervals, total := observed(vllmE2E, groups...)
		got, _ := estimate(t, "refined", intervals, total, grid)
		for i, q := range grid {
			want := histest.Quantile(all, q)
			if !near(got[i].Value, want, 1e-9) || !near(got[i].Low, want, 1e-6) || !near(got[i].High, want, 1e-6) {
				t.Errorf("q %v: got %+v, want %v", q, got[i], want)
			}
		}
	}
}

// The spread of a series within one bucket shows in the spread of the sums.
func TestNarrowWithinOneBucket(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	for _, rate := range []float64{0.3, 3, 30, 300} {
		var groups [][]float64
		var all []float64
		for range 360 {
			var g []float64
			for range poisson(r, rate) {
				g = append(g, 5+5*min(max(0.4+0.06*r.NormFloat64(), 0.001), 1))
			}
			groups = append(groups, g)
			all = append(all, g...)
		}
		slices.Sort(all)
		intervals, total := observed(vllmE2E, groups...)
		got, _ := estimate(t, "refined", intervals, total, []float64{0.99})
		if want := histest.Quantile(all, 0.99); !near(got[0].Value, want, 0.01) {
			t.Errorf("rate %v: p99 is %v, want %v within 1 %%", rate, got[0].Value, want)
		}
	}
}

// Up to seven intervals are never grouped, so their order cannot matter.
func TestOrderOfIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		intervals, total := drawCase(t)
		intervals = intervals[:min(len(intervals), 7)]
		total = emptyDelta(total.Bounds)
		for _, d := range intervals {
			addDelta(total, d)
		}
		want, _ := estimate(anyT(), "refined", intervals, total, grid)
		got, _ := estimate(anyT(), "refined", rapid.Permutation(intervals).Draw(t, "order"), total, grid)
		for i := range want {
			if !near(got[i].Value, want[i].Value, 1e-6) {
				t.Fatalf("q %v: %v, in another order %v", grid[i], want[i], got[i])
			}
		}
	})
}

func TestOrderOfManyIntervals(t *testing.T) {
	intervals, total := lognormalRun(vllmE2E, 360, 3, 3, 0.6)
	want, _ := estimate(t, "refined", intervals, total, grid)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(intervals),
		func(i, j int) { intervals[i], intervals[j] = intervals[j], intervals[i] })
	got, _ := estimate(t, "refined", intervals, total, grid)
	for i := range want {
		if !near(got[i].Value, want[i].Value, 1e-6) {
			t.Errorf("q %v: %v, in another order %v", grid[i], want[i], got[i])
		}
	}
}

func TestIdleIntervalsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		intervals, total := drawCase(t)
		want, _ := estimate(anyT(), "refined", intervals, total, grid)
		at := rapid.IntRange(0, len(intervals)).Draw(t, "at")
		got, _ := estimate(anyT(), "refined", slices.Insert(intervals, at, emptyDelta(total.Bounds)), total, grid)
		for i := range want {
			if got[i].Value != want[i].Value {
				t.Fatalf("q %v: %v, with an idle interval %v", grid[i], want[i], got[i])
			}
		}
	})
}

// checkAsTotal checks that intervals which cannot be used give the answer of the
// total alone.
func checkAsTotal(t *testing.T, intervals []*histest.Delta, total *histest.Delta) {
	t.Helper()
	want, ok1 := estimate(t, "refined", nil, total, grid)
	got, ok2 := estimate(t, "refined", intervals, total, grid)
	if !ok1 || !ok2 || !slices.Equal(values(got), values(want)) {
		t.Errorf("got %v %v, the total alone gives %v %v", values(got), ok2, values(want), ok1)
	}
}

func TestFallsBackToTotals(t *testing.T) {
	intervals, total := lognormalRun(vllmE2E, 100, 3, 3, 0.6)
	checkAsTotal(t, intervals[1:], total)
	fall := *intervals[5]
	fall.Cum = slices.Clone(fall.Cum)
	fall.Cum[len(fall.Cum)-1] = -3
	checkAsTotal(t, append([]*histest.Delta{&fall}, intervals...), total)
	nan := *intervals[5]
	nan.Sum = math.NaN()
	checkAsTotal(t, append(slices.Clone(intervals[1:]), &nan), total)
}

// A caller may go on after the end of the window, whatever comes then.
func TestIntervalsAfterTheWindow(t *testing.T) {
	for _, n := range []int{100, 2000, 2001, 2002} { // the last ones merge neighbours, also across the end
		intervals, total := lognormalRun(vllmE2E, n, 3, 3, 0.6)
		after, _ := lognormalRun(vllmE2E, 400, 5, 8, 0.2)
		bad := *after[7]
		bad.Sum = math.Inf(1)
		want, _ := estimate(t, "refined", intervals, total, nine)
		got, ok := estimate(t, "refined", slices.Concat(intervals, after, []*histest.Delta{&bad}), total, nine)
		for i := range want {
			tolerance := 1e-9
			if n >= 2000 {
				tolerance = 0.03
			}
			if !ok || !near(got[i].Value, want[i].Value, tolerance) {
				t.Errorf("%d intervals: %s is %v, with more after the window %v %v", n, nineKeys[i], want[i].Value,
					got[i].Value, ok)
			}
		}
	}
}

// Torn scrapes show the sum of an observation one interval before its count.
func TestTornScrapes(t *testing.T) {
	intervals, total := lognormalRun(vllmE2E, 360, 3, 3, 0.6)
	want, _ := estimate(t, "refined", intervals, total, nine)
	for i := 10; i < 360; i += 60 {
		x := intervals[i].Sum / max(intervals[i].Count, 1)
		intervals[i].Sum -= x
		intervals[i-1].Sum += x
	}
	got, _ := estimate(t, "refined", intervals, total, nine)
	for i := range want {
		if !near(got[i].Value, want[i].Value, 0.05) {
			t.Errorf("%s is %v, with torn scrapes %v", nineKeys[i], want[i].Value, got[i].Value)
		}
	}
}

// A day of scrapes is kept in bounded memory and answered as well as an hour.
func TestManyIntervals(t *testing.T) {
	intervals, _ := lognormalRun(vllmE2E, 9000, 1.5, 3, 0.6)
	e := newEstimator(t, "refined", vllmE2E)
	total := emptyDelta(vllmE2E)
	for _, d := range intervals {
		e.Interval(d)
		addDelta(total, d)
	}
	got, ok := e.Quantiles(nil, total, []float64{0.5, 0.99})
	if !ok || !near(got[0].Value, 3, 0.02) || !near(got[1].Value, 3*math.Exp(0.6*2.3263), 0.04) {
		t.Errorf("got %+v %v, want about 3 and 12.1", got, ok)
	}
}

// A native histogram has hundreds of narrow buckets.
func TestManyBuckets(t *testing.T) {
	bounds := make([]float64, 160)
	for i := range bounds {
		bounds[i] = 0.001 * math.Exp2(float64(i)/10)
	}
	for _, rate := range []float64{1, 300} {
		intervals, total := lognormalRun(bounds, 1000, rate, 1, 0.8)
		got, ok := estimate(t, "refined", intervals, total, []float64{0.5, 0.99})
		if !ok || !near(got[0].Value, 1, 0.08) || !near(got[1].Value, math.Exp(0.8*2.3263), 0.1) {
			t.Errorf("rate %v: got %+v %v, want about 1 and 6.4", rate, got, ok)
		}
	}
}

// checkRefined checks the median, from totals only, against a range.
func checkRefined(t *testing.T, d *histest.Delta, low, high float64) {
	t.Helper()
	got, ok := estimate(t, "refined", []*histest.Delta{d}, d, []float64{0.5})
	if !ok || !(got[0].Value >= low) || !(got[0].Value <= high) {
		t.Errorf("%+v: got %+v %v, want it in [%v, %v]", d, got, ok, low, high)
	}
}

func TestRefinedFromTotals(t *testing.T) {
	b := []float64{1, 2, 4}
	checkRefined(t, hist(b, 0, 10, 10, 10, 10), 0, 0)                      // all are 0
	checkRefined(t, hist(b, 15, 0, 10, 10, 10), 1.45, 1.55)                // one bucket, sum at its middle
	checkRefined(t, hist(b, 11, 0, 10, 10, 10), 1, 1.15)                   // near its lower end
	checkRefined(t, hist(b, 80, 0, 0, 0, 10), 4, 8)                        // all beyond the last bound
	checkRefined(t, hist(b, 7, 0, 0, 0, 1), 7, 7)                          // one, known exactly
	checkRefined(t, hist([]float64{0, 1}, 2, 10, 15, 15), 0, 0)            // most are 0
	checkRefined(t, hist([]float64{0, 1}, 2, 10, 10, 10), 0, 0)            // all are, but the sum says no
	checkRefined(t, hist([]float64{0}, 20, 0, 10), 0.5, 2)                 // no positive bound at all
	checkRefined(t, hist([]float64{-1, 1}, 2, 2, 10, 10), -1, 1)           // a negative bound
	checkRefined(t, hist([]float64{-2, -1}, 2, 2, 3, 10), -1, 10)          // none but negative bounds
	checkRefined(t, hist(b, 15, 0, 10, 8, 10), 1, 2)                       // counts that fall are level
	checkRefined(t, hist([]float64{8, 16, 32}, 300, 0, 30, 30, 30), 8, 12) // whole numbers
}

var boundsCases = flag.Int("bounds.cases", 4000, "`n` random cases for the proof of the bounds")

// TestBoundsHold draws small histograms whose observations lie anywhere, also on
// the edges of their buckets, where bounds are tightest:
//
//	go test ./histest -run TestBoundsHold -bounds.cases 1000000 -timeout 1h
func TestBoundsHold(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for n := range *boundsCases {
		bounds := randomBounds(r)
		spread := r.IntN(5)
		var groups [][]float64
		var all []float64
		for range 1 + r.IntN(7) {
			var g []float64
			for range r.IntN(1 + r.IntN(12)) {
				g = append(g, anyObservation(r, bounds, spread))
			}
			groups = append(groups, g)
			all = append(all, g...)
		}
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		intervals, total := observed(bounds, groups...)
		for _, name := range estimators {
			if name == "polynomial" && total.Sum < 0 {
				continue // as in AIPerf
			}
			checkHolds(t, n, name, intervals, total, all)
		}
	}
}

func checkHolds(t *testing.T, n int, name string, intervals []*histest.Delta, total *histest.Delta, sorted []float64) {
	t.Helper()
	got, ok := estimate(t, name, intervals, total, grid)
	if !ok {
		t.Fatalf("case %d %s: no answer for %+v", n, name, total)
	}
	for i, q := range grid {
		truth, e := histest.Quantile(sorted, q), got[i]
		margin := 1e-7*math.Abs(truth) + 1e-12
		if e.Low > truth+margin || e.High < truth-margin {
			t.Fatalf("case %d %s: q %v is %v, outside of %+v; observations %v in %v", n, name, q, truth, e, sorted, total.Bounds)
		}
		if total.Bounds[0] >= 0 && (math.IsNaN(e.Low) || math.IsNaN(e.High)) {
			t.Fatalf("case %d %s: q %v: no finite bounds: %+v", n, name, q, e)
		}
		if name == "refined" && (e.Value < e.Low || e.Value > e.High) {
			t.Fatalf("case %d: q %v: estimate outside its own bounds: %+v", n, q, e)
		}
	}
}

func randomBounds(r *rand.Rand) []float64 {
	bounds := make([]float64, 1+r.IntN(6))
	x := math.Exp(3*r.Float64() - 3)
	switch r.IntN(10) {
	case 0:
		x = 0
	case 1:
		x = -r.Float64()
	case 2:
		x = -20 * x
	}
	for i := range bounds {
		bounds[i] = x
		x += (0.1 + math.Abs(x)) * math.Exp(2*r.Float64()-1.5)
	}
	return bounds
}

// anyObservation draws from a range a little beyond the bounds: evenly, near an
// edge, log-normal, with a heavy tail or normal around 0. It is negative only
// where a bound is.
func anyObservation(r *rand.Rand, bounds []float64, spread int) float64 {
	b := bounds[r.IntN(len(bounds))]
	last := math.Abs(bounds[len(bounds)-1]) + 0.1
	switch spread {
	case 0:
		return max(min(bounds[0], 0), b*(0.7+0.6*r.Float64()))
	case 1:
		x := b
		if r.IntN(2) == 0 {
			x = math.Nextafter(b, math.Inf(1))
		}
		if bounds[0] >= 0 {
			x = max(x, 0)
		}
		return x
	case 2:
		return last * 0.3 * math.Exp(1.2*r.NormFloat64())
	}
	if spread == 4 && bounds[0] < 0 {
		return last * r.NormFloat64()
	}
	return last * 0.1 * math.Pow(1-r.Float64(), -1)
}
