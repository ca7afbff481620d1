package histest_test

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/histest"
)

// Ten observations, of which two may be of what went before: 2 up to 1, 6 up to 2, 2 up to 4, and a sum that proves
// nothing. The median lies between the 4th and the 5th when the greatest are taken out, else between the 6th and 7th.
func TestLateClosed(t *testing.T) {
	d := hist([]float64{1, 2, 4}, 1000, 2, 8, 10, 10)
	for _, c := range []struct{ q, low, high, lateLow, lateHigh float64 }{
		{0, 0, 1, 0, 2}, {0.1, 0, 1, 0, 2}, {0.5, 1, 2, 1, 2}, {0.9, 2, 4, 1, 4}, {1, 2, 4, 1, 4},
	} {
		d.Late = 0
		checkEstimate(t, d, c.q, c.low, c.high, fewOf(c.q))
		d.Late = 2
		checkEstimate(t, d, c.q, c.lateLow, c.lateHigh, fewOf(c.q))
	}
	d.Late = 10 // nothing may be left
	checkEstimate(t, d, 0.5, math.NaN(), math.NaN(), 0)
}

func fewOf(q float64) histest.Flags {
	if rare := min(q, 1-q); rare > 0 && 10 < 1/rare*(1-1e-9) {
		return histest.Few
	}
	return 0
}

// Whatever up to so many observations are taken out, the bounds hold the quantile of the others and no number is
// farther away: against all subsets.
func TestLateOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 5))
	for range 200 {
		counts, bounds := make([]int, 4), []float64{1, 2, 4}
		var lower, upper []float64
		for b := range counts {
			for range r.IntN(4) {
				counts[b]++
				lower = append(lower, []float64{0, 1, 2, 4}[b])
				upper = append(upper, []float64{1, 2, 4, 1e9}[b])
			}
		}
		n := len(lower)
		if n < 2 {
			continue
		}
		d := hist(bounds, 1e12*float64(r.IntN(2)+1), float64(counts[0]), float64(counts[0]+counts[1]),
			float64(n-counts[3]), float64(n))
		if counts[3] > 0 {
			d.Sum = 0.5 // neither fits
		}
		d.Late = int64(r.IntN(n))
		for _, q := range grid {
			low, high := math.Inf(1), math.Inf(-1)
			for set := range 1 << n {
				if bits.OnesCount(uint(set)) > int(d.Late) {
					continue
				}
				low = min(low, histest.Quantile(without(lower, set), q))
				high = max(high, histest.Quantile(without(upper, set), q))
			}
			got, ok := newEstimator(t, histest.Linear, bounds).Quantiles(nil, d, []float64{q})
			if !ok || !near(got[0].Low, low, 1e-9) ||
				!(high > 4 && math.IsNaN(got[0].High)) && !near(got[0].High, high, 1e-9) {
				t.Fatalf("q %v of %v with %d late: %+v, want %v to %v", q, counts, d.Late, got, low, high)
			}
		}
	}
}

// without leaves out those of a set.
func without(x []float64, set int) (out []float64) {
	for i, v := range x {
		if set>>i&1 == 0 {
			out = append(out, v)
		}
	}
	return out
}

// Of observations of any size, as many as may be late are taken out at will: the bounds hold the quantiles of the rest,
// by themselves and merged, and estimates are what they are without.
func TestLateBoundsHold(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 9))
	wider := 0
	for n := range *boundsCases / 16 {
		bounds := randomBounds(r)
		var groups [][]float64
		var all []float64
		for range 1 + r.IntN(7) {
			var g []float64
			for range r.IntN(1 + r.IntN(12)) {
				g = append(g, anyObservation(r, bounds, n%5))
			}
			groups, all = append(groups, g), append(all, g...)
		}
		if len(all) < 2 {
			continue
		}
		slices.Sort(all)
		intervals, total := observed(bounds, groups...)
		late := *total
		late.Late = int64(r.IntN(len(all)))
		rest := slices.Clone(all)
		for range r.IntN(int(late.Late) + 1) {
			at := r.IntN(len(rest))
			if r.IntN(2) == 0 { // from an end
				at = []int{0, len(rest) - 1}[n%2]
			}
			rest = slices.Delete(rest, at, at+1)
		}
		for _, name := range estimators {
			e := newEstimator(t, name, bounds)
			for _, d := range intervals {
				e.Interval(d)
			}
			plain, ok := e.Quantiles(nil, total, grid)
			got, ok2 := e.Quantiles(nil, &late, grid)
			merged, err := histest.Merge(histest.NewGain(e, &late))
			if ok != ok2 || err != nil {
				t.Fatalf("case %d %s: answers %v and %v, %v", n, name, ok, ok2, err)
			}
			of, _ := merged.Quantiles(nil, grid)
			for i := range got {
				truth := histest.Quantile(rest, grid[i])
				margin := 1e-7*math.Abs(truth) + 1e-12
				for _, g := range []histest.Estimate{got[i], of[i]} {
					if g.Low > min(truth, plain[i].Low)+margin || g.High < max(truth, plain[i].High)-margin {
						t.Fatalf("case %d %s: q %v is %v, outside of %+v; all: %+v", n, name, grid[i], truth, g, plain[i])
					}
				}
				if got[i].Value != plain[i].Value || got[i].Flags != plain[i].Flags {
					t.Fatalf("case %d %s: q %v: %+v, without the late ones %+v", n, name, grid[i], got[i], plain[i])
				}
				if truth < plain[i].Low-margin || truth > plain[i].High+margin {
					wider++
				}
			}
		}
	}
	if wider < *boundsCases/16 {
		t.Errorf("only %d quantiles lie outside of the bounds that all observations have: nothing is tried", wider)
	}
}
