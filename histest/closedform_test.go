package histest_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/scrapestat/scrapestat/histest"
)

// randomHistogram draws a histogram with intervals that teach every placement,
// and now and then everything that can be wrong with one.
func randomHistogram(r *rand.Rand, large bool) (total *histest.Delta, intervals []*histest.Delta) {
	k := 1 + r.IntN(8)
	bounds := make([]float64, k)
	x := math.Exp(4*r.Float64() - 3)
	if r.IntN(8) == 0 {
		x = -2 * r.Float64()
	}
	if r.IntN(10) == 0 {
		x = 0
	}
	for i := range bounds {
		bounds[i] = x
		x += math.Exp(4*r.Float64()-2) * (0.1 + math.Abs(x))
	}
	size := 1 + r.IntN(60)
	if large {
		size = 1000 + r.IntN(200000)
	}
	cum, c := make([]float64, k), 0.0
	dominant := -1
	if r.IntN(3) == 0 {
		dominant = r.IntN(k)
	}
	for i := range cum {
		n := r.IntN(size)
		if i == dominant {
			n *= 40
		} else if r.IntN(4) == 0 {
			n = 0
		}
		c += float64(n)
		cum[i] = c
	}
	if r.IntN(12) == 0 {
		cum[r.IntN(k)] -= float64(r.IntN(size))
	}
	inf := cum[k-1]
	if r.IntN(2) == 0 {
		inf += float64(r.IntN(1 + size/5))
	}
	total = &histest.Delta{Bounds: bounds, Cum: cum, Inf: inf, HasInf: r.IntN(10) > 0, Count: inf}
	total.Sum = inf * math.Abs(bounds[r.IntN(k)]) * (0.2 + 1.5*r.Float64())
	for i := range bounds {
		intervals = append(intervals, teach(r, bounds, i)...)
	}
	return total, intervals
}

// teach returns intervals within bucket i whose means have a spread of its own.
func teach(r *rand.Rand, bounds []float64, i int) []*histest.Delta {
	lower := 0.0
	if i > 0 {
		lower = bounds[i-1]
	}
	width := bounds[i] - lower
	mean := lower + width*r.Float64()
	sd := width * []float64{0, 1e-9, 0.002, 0.02, 0.1, 0.4}[r.IntN(6)]
	out := make([]*histest.Delta, r.IntN(7))
	for j := range out {
		n := float64(1 + r.IntN(20))
		cum := make([]float64, len(bounds))
		for k := i; k < len(bounds); k++ {
			cum[k] = n
		}
		out[j] = hist(bounds, n*(mean+sd*r.NormFloat64()), append(cum, n)...)
		if r.IntN(9) == 0 {
			out[j].Inf++ // two buckets: teaches nothing
		}
	}
	return out
}

var closedFormCases = flag.Int("closedform.cases", 20_000,
	"`n` random histograms for the closed form of the polynomial estimator")

// TestPolynomialClosedForm compares the closed form with an array of
// observations. A case may differ where the two sums fall on different sides of
// the 0.1 % threshold of the adjustment, or means differ by rounding only.
func TestPolynomialClosedForm(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range *closedFormCases {
		total, intervals := randomHistogram(r, n%500 == 0)
		e := newEstimator(t, "polynomial", total.Bounds)
		b := brute{map[int][]float64{}, map[int][]float64{}}
		for _, d := range intervals {
			e.Interval(d)
			b.interval(d)
		}
		got, ok := e.Quantiles(nil, total, nine)
		want, sorted := b.quantiles(total)
		if !sorted {
			t.Errorf("case %d: the array of %+v is not sorted", n, total)
		}
		if ok != (want != nil) {
			t.Fatalf("case %d: %+v: answer %v, want %v", n, total, ok, want)
		}
		for i := range want {
			if !near(got[i].Value, want[i], 1e-9) {
				t.Fatalf("case %d: %+v: %s is %v, want %v", n, total, nineKeys[i], got[i].Value, want[i])
			}
		}
	}
}

// At the threshold of the adjustment, 0.1 % of the sum, the values are added one
// by one to decide.
func TestPolynomialAtThreshold(t *testing.T) {
	for _, factor := range []float64{1 - 1e-11, 1 + 1e-11} {
		total := hist([]float64{1, 2}, 1000/0.999*factor, 500, 1000, 1000)
		want, _ := (&brute{}).quantiles(total)
		checkPolynomial(t, total, nil, want...)
	}
}
