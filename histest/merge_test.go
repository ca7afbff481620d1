package histest_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/histest"
)

// gainOf returns the gain of intervals, as the estimator of that name sees it.
func gainOf(t testing.TB, name string, bounds []float64, intervals []*histest.Delta) *histest.Gain {
	e := newEstimator(t, name, bounds)
	total := emptyDelta(bounds)
	for _, d := range intervals {
		e.Interval(d)
		addDelta(total, d)
	}
	return histest.NewGain(e, total)
}

// mergeOf deals intervals to n histograms in turn and merges them.
func mergeOf(t testing.TB, name string, bounds []float64, intervals []*histest.Delta, n int) *histest.Gain {
	parts := make([][]*histest.Delta, n)
	for i, d := range intervals {
		parts[i%n] = append(parts[i%n], d)
	}
	gains := make([]*histest.Gain, n)
	for i, p := range parts {
		gains[i] = gainOf(t, name, bounds, p)
	}
	m, err := histest.Merge(gains...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Without drift a merge is what one estimator makes of all intervals. The
// polynomial one sums in another order, and its answer may turn on a rounding
// only in ways its own tests allow. The refined one fits histograms of a hundred
// observations and more by themselves, so only their bounds are the same.
func TestMergeIsOneOfAll(t *testing.T) {
	tolerance := map[string]float64{"polynomial": 1e-9, "linear": 1e-9, "refined": 1e-6}
	forEach(t, estimators, func(t *rapid.T, name string) {
		intervals, total := drawCase(t)
		intervals = intervals[:min(len(intervals), 7)] // more may form groups by time
		total = emptyDelta(total.Bounds)
		for _, d := range intervals {
			addDelta(total, d)
		}
		n := rapid.IntRange(1, 5).Draw(t, "histograms")
		want, ok1 := estimate(anyT(), name, intervals, total, grid)
		got, ok2 := mergeOf(anyT(), name, total.Bounds, intervals, n).Quantiles(nil, grid)
		if ok1 != ok2 {
			t.Fatalf("answer of the merge %v, of one %v", ok2, ok1)
		}
		for i := range want {
			alone := name == "refined" && total.Inf >= 100*float64(filled(intervals, n))
			if !alone && !near(got[i].Value, want[i].Value, tolerance[name]) {
				t.Fatalf("q %v: merged %v, one %v", grid[i], got[i], want[i])
			}
			checkNear(t, got[i].Low, want[i].Low)
			checkNear(t, got[i].High, want[i].High)
		}
	})
}

func checkNear(t *rapid.T, got, want float64) {
	if !(math.IsNaN(got) && math.IsNaN(want)) && !near(got, want, 1e-6) {
		t.Fatalf("bound of the merge %v, of one %v", got, want)
	}
}

// filled is how many of n histograms get an observation when intervals are dealt
// to them.
func filled(intervals []*histest.Delta, n int) int {
	of := map[int]bool{}
	for i, d := range intervals {
		if d.Inf > 0 {
			of[i%n] = true
		}
	}
	return len(of)
}

// TestMergeLearns merges what only lone intervals teach the polynomial one: means
// and variances of buckets that decide how it places observations.
func TestMergeLearns(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		bounds := []float64{1, 2, 4, 8}
		var intervals []*histest.Delta
		total := emptyDelta(bounds)
		for range 3 + r.IntN(30) {
			d := emptyDelta(bounds)
			x := 8 * r.Float64()
			for range 1 + r.IntN(4) {
				observe(d, x)
			}
			intervals = append(intervals, d)
			addDelta(total, d)
		}
		want, _ := estimate(t, "polynomial", intervals, total, grid)
		got, _ := mergeOf(t, "polynomial", bounds, intervals, 1+r.IntN(6)).Quantiles(nil, grid)
		for i := range want {
			if !near(got[i].Value, want[i].Value, 1e-9) {
				t.Fatalf("q %v: merged %v, one %v", grid[i], got[i], want[i])
			}
		}
	}
}

func TestMergeOfManyIntervals(t *testing.T) {
	intervals, total := lognormalRun(vllmE2E, 360, 3, 3, 0.6)
	want, _ := estimate(t, "refined", intervals, total, grid)
	got, _ := mergeOf(t, "refined", vllmE2E, intervals, 4).Quantiles(nil, grid)
	again, _ := mergeOf(t, "refined", vllmE2E, intervals, 4).Quantiles(nil, grid)
	if !slices.Equal(got, again) {
		t.Errorf("merged twice: %v and %v", got, again)
	}
	for i := range want {
		if grid[i] >= 0.01 && grid[i] <= 0.99 && !near(got[i].Value, want[i].Value, 0.02) {
			t.Errorf("q %v: merged %v, one %v", grid[i], got[i], want[i])
		}
	}
}

// Replicas that share no bucket are fitted as if each were alone: the lower half
// of the order statistics are those of the one, the upper half of the other.
func TestMergeFitsEachAlone(t *testing.T) {
	fast, fastTotal := lognormalRun(vllmE2E, 200, 2, 0.6, 0.05)
	slow, slowTotal := lognormalRun(vllmE2E, 200, 3, 200, 0.1)
	m, err := histest.Merge(gainOf(t, "refined", vllmE2E, fast), gainOf(t, "refined", vllmE2E, slow))
	if err != nil {
		t.Fatal(err)
	}
	check := func(intervals []*histest.Delta, total *histest.Delta, from float64) {
		t.Helper()
		for _, share := range []float64{0, 0.1, 0.37, 0.5, 0.9, 1} {
			rank := math.Round(share * (total.Inf - 1))
			want, _ := estimate(t, "refined", intervals, total, []float64{rank / (total.Inf - 1)})
			got, ok := m.Quantiles(nil, []float64{(from + rank) / (fastTotal.Inf + slowTotal.Inf - 1)})
			if !ok || !near(got[0].Value, want[0].Value, 1e-6) {
				t.Errorf("observation %v from %v: merged %+v %v, alone %+v", rank, from, got, ok, want)
			}
		}
	}
	check(fast, fastTotal, 0)
	check(slow, slowTotal, fastTotal.Inf)
}

// Replicas with negative observations are moved by different amounts.
func TestMergeSigned(t *testing.T) {
	bounds := exponential(2, 0.01, 100, true)
	var gains []*histest.Gain
	var all []float64
	for _, mean := range []float64{-5, 0, 30} {
		intervals, _, sorted := signedRun(bounds, 100, 3, mean, 1)
		gains = append(gains, gainOf(t, "refined", bounds, intervals))
		all = append(all, sorted...)
	}
	slices.Sort(all)
	m, err := histest.Merge(gains...)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := m.Quantiles(nil, grid)
	for i, e := range got {
		truth := histest.Quantile(all, grid[i])
		if margin := 1e-7 * math.Abs(truth); !ok || e.Low > truth+margin || e.High < truth-margin ||
			math.Abs(e.Value-truth) > 0.3 {
			t.Errorf("q %v: got %+v %v, want %v", grid[i], e, ok, truth)
		}
	}
}

// TestMergeBoundsHold pools random small histograms that differ in everything
// but their bounds.
func TestMergeBoundsHold(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for n := range 4000 {
		bounds := randomBounds(r)
		name := estimators[n%len(estimators)]
		var gains []*histest.Gain
		var all []float64
		for range 1 + r.IntN(4) {
			spread := r.IntN(4)
			var groups [][]float64
			for range 1 + r.IntN(6) {
				var g []float64
				for range r.IntN(8) {
					g = append(g, anyObservation(r, bounds, spread))
				}
				groups = append(groups, g)
			}
			intervals, total := observed(bounds, groups...)
			if total.Sum < 0 {
				continue
			}
			all = append(all, slices.Concat(groups...)...)
			gains = append(gains, gainOf(t, name, bounds, intervals))
		}
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		m, err := histest.Merge(gains...)
		if err != nil {
			t.Fatalf("case %d %s: %v", n, name, err)
		}
		got, ok := m.Quantiles(nil, grid)
		if !ok {
			t.Fatalf("case %d %s: no answer", n, name)
		}
		for i, q := range grid {
			truth, e := histest.Quantile(all, q), got[i]
			margin := 1e-7*math.Abs(truth) + 1e-12
			if e.Low > truth+margin || e.High < truth-margin {
				t.Fatalf("case %d %s: q %v is %v, outside of %+v", n, name, q, truth, e)
			}
			if name == "refined" && (e.Value < e.Low || e.Value > e.High) {
				t.Fatalf("case %d: q %v: outside its own bounds: %+v", n, q, e)
			}
		}
	}
}

// TestMergeAccuracy compares the merge of four replicas of unlike speed with one
// series that has all observations of each interval. The merge knows more.
func TestMergeAccuracy(t *testing.T) {
	checkMerge(t, 0.3, 360)
	checkMerge(t, 3, 360)
	checkMerge(t, 30, 90)
}

func checkMerge(t *testing.T, rate float64, length int) {
	t.Helper()
	var merged, single []float64
	for _, c := range suiteSample(11, 40, func(c *suiteCase) bool { return c.rate == rate && c.intervals == length }) {
		one := emptyDelta(c.layout.bounds)
		var together []*histest.Delta
		var gains []*histest.Gain
		var all []float64
		for replica := range 4 {
			c.seed = uint64(100 + replica)
			s := c.simulate()
			gains = append(gains, gainOf(t, "refined", c.layout.bounds, s.intervals))
			all = append(all, s.sorted...)
			for i, d := range s.intervals {
				if replica == 0 {
					together = append(together, emptyDelta(c.layout.bounds))
				}
				addDelta(together[i], d)
			}
			addDelta(one, s.total)
		}
		slices.Sort(all)
		m, err := histest.Merge(gains...)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := m.Quantiles(nil, nine)
		b, _ := estimate(t, "refined", together, one, nine)
		floor := 0.01 * one.Sum / one.Count
		for i, q := range nine {
			truth := histest.Quantile(all, q)
			scale := max(truth, floor)
			merged = append(merged, math.Abs(a[i].Value-truth)/scale)
			single = append(single, math.Abs(b[i].Value-truth)/scale)
		}
	}
	slices.Sort(merged)
	slices.Sort(single)
	t.Logf("rate %v: mean error %.4f, of one series %.4f; median %.5f and %.5f", rate, meanOf(merged), meanOf(single),
		histest.Quantile(merged, 0.5), histest.Quantile(single, 0.5))
	if meanOf(merged) > meanOf(single) || histest.Quantile(merged, 0.5) > 0.9*histest.Quantile(single, 0.5) {
		t.Errorf("rate %v: mean error %.4f, of one series %.4f", rate, meanOf(merged), meanOf(single))
	}
}

// TestMergeManyReplicas goes beyond the memory of a merge.
func TestMergeManyReplicas(t *testing.T) {
	intervals, total := lognormalRun(vllmE2E, 9000, 2, 3, 0.6)
	want, _ := estimate(t, "linear", nil, total, nine)
	got, ok := mergeOf(t, "refined", vllmE2E, intervals, 30).Quantiles(nil, nine)
	exact := []float64{0.743, 1.118, 1.390, 2.001, 3, 4.497, 6.474, 8.050, 12.11} // of the log-normal
	for i := range exact {
		if !ok || !near(got[i].Value, exact[i], 0.03) {
			t.Errorf("q %v: %v %v, want about %v (linear %v)", nine[i], got[i], ok, exact[i], want[i].Value)
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	bounds := []float64{1, 2}
	good := gainOf(t, "refined", bounds, []*histest.Delta{hist(bounds, 3, 1, 2, 2)})
	check := func(what string, want error, other *histest.Gain) {
		t.Helper()
		if _, err := histest.Merge(good, other); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	}
	check("other bound", histest.ErrBounds, gainOf(t, "refined", []float64{1, 3}, nil))
	check("more bounds", histest.ErrBounds, gainOf(t, "refined", []float64{1, 2, 3}, nil))
	check("other estimator", histest.ErrEstimators, gainOf(t, "linear", bounds, nil))
	check("sum too large", histest.ErrContradiction,
		gainOf(t, "refined", bounds, []*histest.Delta{hist(bounds, 5, 1, 2, 2)}))
	check("sum without count", histest.ErrContradiction,
		gainOf(t, "refined", bounds, []*histest.Delta{hist(bounds, 5, 0, 0, 0)}))
	check("falling counts", histest.ErrContradiction,
		gainOf(t, "refined", bounds, []*histest.Delta{hist(bounds, 3, 2, 1, 2)}))
	check("idle", nil, gainOf(t, "refined", bounds, nil))
	if _, err := histest.Merge(); err == nil {
		t.Error("a merge of nothing succeeded")
	}
}

// TestGainIsACopy checks that a gain stays as it was while its estimator learns on.
func TestGainIsACopy(t *testing.T) {
	forEach(t, estimators, func(t *rapid.T, name string) {
		intervals, total := drawCase(t)
		e := newEstimator(anyT(), name, total.Bounds)
		for _, d := range intervals {
			e.Interval(d)
		}
		g := histest.NewGain(e, total)
		want, _ := g.Quantiles(nil, grid)
		for _, d := range slices.Concat(intervals, intervals) {
			e.Interval(d)
		}
		e.Quantiles(nil, total, grid)
		clear(total.Cum)
		if got, _ := g.Quantiles(nil, grid); !slices.Equal(values(got), values(want)) {
			t.Fatalf("%v, after more intervals %v", want, got)
		}
	})
}

// TestCoarsen checks bounds of what is known at some bounds only against those of
// all: the wider interval holds the narrower one, and nothing else changes.
func TestCoarsen(t *testing.T) {
	forEach(t, estimators, func(t *rapid.T, name string) {
		intervals, total := drawCase(t)
		if len(total.Bounds) < 2 {
			return
		}
		e := newEstimator(anyT(), name, total.Bounds)
		for _, d := range intervals {
			e.Interval(d)
		}
		fine := histest.NewGain(e, total)
		var some []float64
		for _, b := range total.Bounds {
			if rapid.Bool().Draw(t, "keep") {
				some = append(some, b)
			}
		}
		if len(some) == 0 {
			some = total.Bounds[:1]
		}
		coarse, err := fine.Coarsen(some)
		if err != nil {
			t.Fatal(err)
		}
		want, ok := fine.Quantiles(nil, grid)
		got, okCoarse := coarse.Quantiles(nil, grid)
		if ok != okCoarse {
			t.Fatalf("%s: answer %v, at some bounds %v", name, ok, okCoarse)
		}
		for i := range got {
			if got[i].Low > want[i].Low+1e-9 || got[i].High < want[i].High-1e-9 {
				t.Fatalf("%s q %v: %+v does not hold %+v", name, grid[i], got[i], want[i])
			}
		}
		if _, err := fine.Coarsen([]float64{total.Bounds[0] + 1e-7}); !errors.Is(err, histest.ErrBounds) {
			t.Fatalf("other bound: %v", err)
		}
	})
}
