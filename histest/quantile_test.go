package histest_test

import (
	"math"
	"testing"

	"github.com/scrapestat/scrapestat/histest"
)

func checkQuantile(t *testing.T, sorted []float64, q, want float64) {
	t.Helper()
	if got := histest.Quantile(sorted, q); got != want {
		t.Errorf("Quantile(%v, %v) = %v, want %v", sorted, q, got, want)
	}
}

func TestQuantile(t *testing.T) {
	ramp := make([]float64, 100)
	for i := range ramp {
		ramp[i] = float64(i)
	}
	checkQuantile(t, ramp, 0.01, 0.99)
	checkQuantile(t, ramp, 0.05, 4.95)
	checkQuantile(t, ramp, 0.25, 24.75)
	checkQuantile(t, ramp, 0.5, 49.5)
	checkQuantile(t, ramp, 0.9, 89.10000000000001) // as numpy rounds
	checkQuantile(t, ramp, 0.99, 98.01)
	checkQuantile(t, []float64{7}, 0.3, 7)
	checkQuantile(t, []float64{1, 2}, -1, 1)
	checkQuantile(t, []float64{1, 2}, 2, 2)
	checkQuantile(t, []float64{1, 2}, math.NaN(), 1)
	if got := histest.Quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("Quantile of nothing = %v, want NaN", got)
	}
}

func checkLinear(t *testing.T, d *histest.Delta, q, want float64) {
	t.Helper()
	got, ok := newEstimator(t, "linear", d.Bounds).Quantiles(nil, d, []float64{q})
	if !ok || !near(got[0].Value, want, 1e-12) {
		t.Errorf("linear %v of %+v: got %v %v, want %v", q, d, got, ok, want)
	}
}

func TestLinear(t *testing.T) {
	b := []float64{1, 2, 4}
	checkLinear(t, hist(b, 20, 0, 5, 10, 10), 0.5, 2)
	checkLinear(t, hist(b, 20, 0, 5, 10, 10), 0.75, 3)
	checkLinear(t, hist(b, 20, 0, 5, 10, 10), 0, 1)
	checkLinear(t, hist(b, 20, 0, 5, 10, 20), 0.9, 4)               // in +Inf: the last bound
	checkLinear(t, hist([]float64{0, 1}, 1, 10, 10, 10), 0.5, 0)    // a bucket at 0 is a point
	checkLinear(t, hist([]float64{-1, 1}, 1, 10, 10, 10), 0.5, -1)  // as is one below
	checkLinear(t, hist(b, 20, 6, 4, 10, 10), 0.7, 2+2*(7.0-6)/4.0) // a count that falls is level
}

func checkEstimate(t *testing.T, d *histest.Delta, q, low, high float64, flags histest.Flags) {
	t.Helper()
	for _, name := range estimators {
		got, ok := newEstimator(t, name, d.Bounds).Quantiles(nil, d, []float64{q})
		if !ok {
			t.Errorf("%s of %+v: no answer", name, d)
			continue
		}
		g := got[0]
		if !same(g.Low, low) || !same(g.High, high) || g.Flags != flags {
			t.Errorf("%s: q %v of %+v: got [%v, %v] flags %b, want [%v, %v] flags %b", name, q, d, g.Low, g.High, g.Flags,
				low, high, flags)
		}
	}
}

func same(a, b float64) bool { return math.IsNaN(a) && math.IsNaN(b) || near(a, b, 1e-6) }

func TestLimitsFromTotals(t *testing.T) {
	b := []float64{1, 2, 4}
	// 101 observations, the 51st is the median: 1 in (0,1], 100 in (1,2].
	checkEstimate(t, hist(b, 151, 1, 101, 101, 101), 0.5, 1, 2, 0)
	// The sum is so low that the upper half must lie near 1.
	checkEstimate(t, hist(b, 105, 1, 101, 101, 101), 0.5, 1, (105-49.0)/51, 0)
	// One observation is known exactly.
	checkEstimate(t, hist(b, 1.5, 0, 1, 1, 1), 0.5, 1.5, 1.5, histest.Degenerate|histest.Few)
	// The largest of three beyond the last bound has a limit too.
	checkEstimate(t, hist(b, 20, 0, 0, 0, 3), 1, 20.0/3, 12, histest.Degenerate|histest.Overflow)
	// A sum that does not fit proves nothing; the bounds still do.
	checkEstimate(t, hist(b, 1000, 0, 200, 200, 200), 0.5, 1, 2, histest.Degenerate)
	// Counts that fall prove nothing at all.
	checkEstimate(t, hist(b, 300, 200, 100, 200, 200), 0.5, math.NaN(), math.NaN(), 0)
	// Nothing is known below a negative bound.
	checkEstimate(t, hist([]float64{-1, 1}, 10, 100, 200, 200), 0.1, math.NaN(), -1, 0)
	// 99 observations are too few for p99, 100 are enough.
	checkEstimate(t, hist(b, 180, 1, 50, 99, 99), 0.99, 2, 4, histest.Few)
	checkEstimate(t, hist(b, 180, 1, 50, 100, 100), 0.99, 2, 4, 0)
	checkEstimate(t, hist(b, 1990, 1, 50, 999, 999), 0.999, 2, 4, histest.Few)
}

func TestNewRefuses(t *testing.T) {
	check := func(name string, bounds ...float64) {
		t.Helper()
		if e, err := histest.New(name, bounds); err == nil {
			t.Errorf("New(%q, %v) = %v, want an error", name, bounds, e)
		}
	}
	check("cubic", 1, 2)
	check("linear", 1, 1)
	check("linear", 2, 1)
	check("polynomial", 1, math.Inf(1))
	check("polynomial", math.NaN())
}

// Without a +Inf bucket the count tells how many lie beyond the last bound.
func TestMissingInf(t *testing.T) {
	check := func(d *histest.Delta, q, low, high float64, flags histest.Flags) {
		t.Helper()
		d.HasInf, d.Inf = false, 0
		checkEstimate(t, d, q, low, high, flags)
	}
	b := []float64{1, 2}
	// 200 observations, 50 of them beyond 2: their sum is 350 at most.
	check(hist(b, 500, 100, 150, 200), 0.99, 2, 0.99*(500-50-47*2.0)/3+0.01*(500-50-48*2.0)/2, histest.Overflow)
	check(hist(b, 500, 100, 150, 200), 0.25, 0, 1, 0)
	// A count that is too low gives way to the buckets.
	d := hist(b, 250, 100, 200, 200)
	d.Count = 150
	check(d, 0.99, 0.99*(250-100-2*2.0)/98+0.01*(250-100-1*2.0)/99, 2, 0)
}

// Counts that are no whole numbers, as a recording rule makes them, prove
// nothing; there is an estimate still.
func TestFractionalCounts(t *testing.T) {
	d := hist([]float64{1, 2, 4}, 300.5, 50.25, 100.75, 150.5, 150.5)
	for _, name := range estimators {
		got, ok := newEstimator(t, name, d.Bounds).Quantiles(nil, d, []float64{0.5})
		if !ok || !(got[0].Value > 1 && got[0].Value <= 2) || !math.IsNaN(got[0].Low) || !math.IsNaN(got[0].High) {
			t.Errorf("%s: got %+v %v, want a value in (1, 2] without bounds", name, got, ok)
		}
	}
}
