package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/metric"
)

// drift is n values whose noise is remembered: an autoregression of the first
// order around mean, with the standard deviation sd.
func drift(rng *rand.Rand, n int, mean, sd, memory float64) []float64 {
	out := make([]float64, n)
	x := rng.NormFloat64() * sd
	for i := range out {
		out[i] = mean + x
		x = memory*x + math.Sqrt(1-memory*memory)*sd*rng.NormFloat64()
	}
	return out
}

// TestCoverage: the within-run interval misses a difference of 0 about as often as
// alpha says, also when slices depend on each other, where an interval that takes
// them for independent misses it five times as often.
func TestCoverage(t *testing.T) {
	none := metric.Labels{}
	check := func(memory, most float64) {
		t.Helper()
		rng := rand.New(rand.NewPCG(1, uint64(memory*1000)))
		const pairs = 200
		missed, naive := 0, 0
		for i := range pairs {
			x, y := drift(rng, 90, 100, 10, memory), drift(rng, 90, 100, 10, memory)
			r := do(t, compare.Options{MinEffect: -1}, run("a", newRun(fmt.Sprint("a", i)).gauge("g", "", none, x...)),
				run("b", newRun(fmt.Sprint("b", i)).gauge("g", "", none, y...)))
			a := find(t, r, "g", "avg", none).Against[1]
			if a.Low > 0 || a.High < 0 {
				missed++
			}
			if math.Abs(a.Difference) > 1.96*10*math.Sqrt(2.0/90) {
				naive++
			}
		}
		t.Logf("memory %v: %.1f %% missed, %.1f %% taken as independent", memory, 100*float64(missed)/pairs,
			100*float64(naive)/pairs)
		if share := float64(missed) / pairs; share > most {
			t.Errorf("memory %v: %.1f %% of the intervals of equal runs leave out 0, want at most %.0f %%", memory, 100*share,
				100*most)
		}
		if memory > 0.5 && naive < 2*missed {
			t.Errorf("memory %v: independence would miss %d, blocks %d: the test shows nothing", memory, naive, missed)
		}
	}
	check(0, 0.08)
	check(0.6, 0.10)
	check(0.8, 0.12)
}

// TestCorrection: Benjamini and Hochberg's own procedure, row by row, gives the
// rows that are found.
func TestCorrection(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var inputs []compare.Input
	const families = 40
	for side := range 2 {
		for i := range 6 {
			b := newRun(fmt.Sprint(side, i))
			for k := range families {
				mean := 100.0
				if k < 6 && side == 1 {
					mean = 100 + 3*float64(k+1)
				}
				b.counter(fmt.Sprintf("f%02d", k), metric.Labels{}, mean+4*rng.NormFloat64())
			}
			inputs = append(inputs, run([]string{"a", "b"}[side], b))
		}
	}
	r := do(t, compare.Options{MinEffect: -1}, inputs...)
	if r.Tested != families {
		t.Fatalf("%d rows tested, want %d", r.Tested, families)
	}
	found := 0
	for i := range r.Rows {
		x := r.Rows[i].Against[1]
		rank, q := 0, 1.0
		for j := range r.Rows { // the smallest p*m/rank of all p that are not smaller
			if p := r.Rows[j].Against[1].P; p >= x.P {
				rank = 0
				for k := range r.Rows {
					if r.Rows[k].Against[1].P <= p {
						rank++
					}
				}
				q = math.Min(q, p*families/float64(rank))
			}
		}
		if math.Abs(x.Q-q) > 1e-12 {
			t.Errorf("%s: q %v, want %v (p %v)", r.Rows[i].Family, x.Q, q, x.P)
		}
		if (x.Verdict == compare.Changed) != (x.Q <= 0.05) {
			t.Errorf("%s: %v with q %v", r.Rows[i].Family, x.Verdict, x.Q)
		}
		if x.Verdict == compare.Changed {
			found++
		}
	}
	if found == 0 || found > 10 {
		t.Errorf("%d rows changed, want some of the 6 that do", found)
	}
}

// TestDistance: the shares at common bounds are exact.
func TestDistance(t *testing.T) {
	a := newRun("1").histogram("h", "seconds", metric.Labels{}, []float64{1, 2, 3, 4}, 2, .5, .5, 1.5, 2.5, 2.5, 3.5, 3.5,
		9)
	b := newRun("2").histogram("h", "seconds", metric.Labels{}, []float64{1, 3, 5}, 2, .5, 2.5, 3.5, 3.5)
	d := find(t, do(t, compare.Options{}, run("a", a), run("b", b)), "h", "mean", metric.Labels{}).Against[1].Distance
	if d == nil || len(d.Shares) != 2 {
		t.Fatalf("distance %+v, want two common bounds", d)
	}
	if d.Shares[0] != (compare.Share{Bound: 1, Base: .25, Other: .25}) ||
		d.Shares[1] != (compare.Share{Bound: 3, Base: .625, Other: .5}) {
		t.Errorf("shares %+v", d.Shares)
	}
	if d.Max != 0.125 || d.At != 3 || d.Moved != 0.125 {
		t.Errorf("max %v at %v, moved %v, want 0.125 at 3, 0.125", d.Max, d.At, d.Moved)
	}
}
