package histest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/histest"
)

// Native histograms come as buckets (lower, upper] of any width: exponential ones
// with hundreds of bounds, a zero bucket and negative ones, or custom bounds.

// exponential returns the bounds of a native histogram of the given schema
// between least and most, 2^schema buckets for each doubling, around a zero
// bucket; with the negative ones mirrored if both.
func exponential(schema int, least, most float64, both bool) []float64 {
	const zero = 0x1p-128 // Prometheus' default threshold
	bounds := []float64{zero}
	base := math.Exp2(math.Exp2(-float64(schema)))
	i := math.Floor(math.Log(least) / math.Log(base))
	for {
		b := math.Exp2(i * math.Exp2(-float64(schema)))
		bounds = append(bounds, b)
		if i++; b >= most {
			break
		}
	}
	n := len(bounds)
	bounds = append(bounds, -zero)
	if both {
		for _, b := range bounds[1:n] {
			bounds = append(bounds, -b)
		}
	}
	slices.Sort(bounds)
	return bounds
}

// signedRun simulates observations around a mean, of which some are zero.
func signedRun(bounds []float64, intervals int, rate, mean, sd float64) (gains []*histest.Delta,
	total *histest.Delta, sorted []float64) {
	r := rand.New(rand.NewPCG(5, 13))
	total = emptyDelta(bounds)
	for range intervals {
		d := emptyDelta(bounds)
		for range poisson(r, rate) {
			x := mean + sd*r.NormFloat64()
			if r.IntN(50) == 0 {
				x = 0
			}
			observe(d, x)
			sorted = append(sorted, x)
		}
		addDelta(total, d)
		gains = append(gains, d)
	}
	slices.Sort(sorted)
	return gains, total, sorted
}

// checkNative checks that bounds hold the truth and that estimates are as good
// as half a bucket, or as tolerance times the spread.
func checkNative(t *testing.T, what string, bounds []float64, gains []*histest.Delta, total *histest.Delta,
	sorted []float64, tolerance float64, names ...string) {
	t.Helper()
	spread := histest.Quantile(sorted, 0.95) - histest.Quantile(sorted, 0.05)
	for _, name := range names {
		got, ok := estimate(t, name, gains, total, grid)
		if !ok {
			t.Errorf("%s %s: no answer", what, name)
			continue
		}
		for i, e := range got {
			truth := histest.Quantile(sorted, grid[i])
			margin := 1e-7*math.Abs(truth) + 1e-12
			if e.Low > truth+margin || e.High < truth-margin {
				t.Errorf("%s %s: q %v is %v, outside %+v", what, name, grid[i], truth, e)
			}
			at, _ := slices.BinarySearch(bounds, truth)
			width := math.Inf(1)
			if at > 0 && at < len(bounds) {
				width = bounds[at] - bounds[at-1]
			}
			if grid[i] >= 0.05 && grid[i] <= 0.99 && math.Abs(e.Value-truth) > max(width, tolerance*spread) {
				t.Errorf("%s %s: q %v is %v, want %v", what, name, grid[i], e.Value, truth)
			}
		}
	}
}

func TestExponentialBuckets(t *testing.T) {
	for _, schema := range []int{0, 1, 3, 5, 8} {
		bounds := exponential(schema, 0.1, 10, false)
		for _, rate := range []float64{0.3, 5, 100} {
			gains, total := lognormalRun(bounds, 180, rate, 1, 0.5)
			sorted := lognormalSorted(180, rate, 1, 0.5)
			what := fmt.Sprintf("schema %d, %d bounds, rate %v:", schema, len(bounds), rate)
			checkNative(t, what, bounds, gains, total, sorted, 0.01, "refined")
			if rate > 1 { // of few observations the last ones are far from each other
				checkNative(t, what, bounds, gains, total, sorted, 0.03, "linear", "polynomial")
			}
		}
	}
}

// lognormalSorted are the observations of lognormalRun with the same arguments.
func lognormalSorted(intervals int, rate, median, sigma float64) []float64 {
	r := rand.New(rand.NewPCG(7, 11))
	var out []float64
	for range intervals {
		for n := poisson(r, rate); n > 0; n-- {
			out = append(out, median*math.Exp(sigma*r.NormFloat64()))
		}
	}
	slices.Sort(out)
	return out
}

// AIPerf has no answer where the sum is negative, so the polynomial estimator has
// none either.
func TestNegativeBuckets(t *testing.T) {
	for _, schema := range []int{0, 3} {
		bounds := exponential(schema, 0.01, 100, true)
		for _, rate := range []float64{0.3, 5, 100} {
			for _, mean := range []float64{-3, 0, 3} {
				gains, total, sorted := signedRun(bounds, 180, rate, mean, 1)
				what := fmt.Sprintf("schema %d, %d bounds, rate %v, mean %v:", schema, len(bounds), rate, mean)
				checkNative(t, what, bounds, gains, total, sorted, 0.02, "refined")
				if rate > 1 {
					checkNative(t, what, bounds, gains, total, sorted, 0.03, "linear")
				}
				if _, ok := estimate(t, "polynomial", gains, total, nine); ok != (total.Sum >= 0) {
					t.Errorf("%s polynomial: answer %v of a sum of %v", what, ok, total.Sum)
				}
			}
		}
	}
}

// Observations of exactly 0 are in the zero bucket, whose middle is 0.
func TestZeroBucket(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 14))
	bounds := exponential(3, 0.1, 10, false)
	for _, rate := range []float64{0.3, 5, 100} {
		total := emptyDelta(bounds)
		var gains []*histest.Delta
		var sorted []float64
		for range 180 {
			d := emptyDelta(bounds)
			for range poisson(r, rate) {
				x := 0.0
				if r.IntN(4) > 0 {
					x = math.Exp(0.5 * r.NormFloat64())
				}
				observe(d, x)
				sorted = append(sorted, x)
			}
			addDelta(total, d)
			gains = append(gains, d)
		}
		slices.Sort(sorted)
		checkNative(t, fmt.Sprintf("rate %v:", rate), bounds, gains, total, sorted, 0.01, "refined")
	}
}

// A single observation per interval is its sum, below 0 too.
func TestLoneNegativeObservations(t *testing.T) {
	bounds := []float64{-8, -4, -2, -1, 0, 1, 2, 4}
	groups := [][]float64{{-7.5}, {-3}, {-2.5}, {-0.25}, {0.5}, {1.5}, {3}, {3.5}, {5}}
	intervals, total := observed(bounds, groups...)
	got, ok := estimate(t, "refined", intervals, total, []float64{0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1})
	for i, e := range got {
		want := groups[i][0]
		if !ok || math.Abs(e.Value-want) > 1e-9 || math.Abs(e.Low-want) > 1e-6 || math.Abs(e.High-want) > 1e-6 {
			t.Errorf("observation %d: got %+v %v, want %v", i, e, ok, want)
		}
	}
}

// Zero is not proven by a sum of 0 where observations may cancel out.
func TestSumOfCancellingObservations(t *testing.T) {
	bounds := []float64{-4, -2, 0, 2, 4}
	intervals, total := observed(bounds, []float64{-3, 3}, []float64{-3, 3}, []float64{-1, 1})
	got, ok := estimate(t, "refined", intervals, total, []float64{0, 1})
	if !ok || !(got[0].Value < -2) || !(got[1].Value > 2) || got[0].Low > -3 || got[1].High < 3 {
		t.Errorf("got %+v %v, want about -3 and 3", got, ok)
	}
}

// Observations below a negative first bound have no lower bound.
func TestBelowTheFirstBound(t *testing.T) {
	bounds := []float64{-2, 0, 2}
	intervals, total := observed(bounds, []float64{-9, -5, 1}, []float64{-7, 1, 1.5}, []float64{-3, -3, 0.5, 3})
	got, ok := estimate(t, "refined", intervals, total, grid)
	for i, e := range got {
		if !ok || math.IsNaN(e.Value) || !math.IsNaN(e.Low) && e.Value < e.Low || e.Value > e.High {
			t.Errorf("q %v: got %+v %v", grid[i], e, ok)
		}
	}
	if ok && !math.IsNaN(got[0].Low) && got[0].Low > -9 {
		t.Errorf("minimum %+v, want nothing known or less than -9", got[0])
	}
}

// BenchmarkNative measures one series of a wide native histogram.
func BenchmarkNative(b *testing.B) {
	for _, schema := range []int{3, 8} {
		bounds := exponential(schema, 0.01, 100, true)
		for _, rate := range []float64{3, 300} {
			gains, total := lognormalRun(bounds, 360, rate, 1, 0.5)
			b.Run(fmt.Sprintf("bounds=%d/rate=%v", len(bounds), rate), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					estimate(b, "refined", gains, total, nine)
				}
			})
		}
	}
}
