package histest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/histest"
)

var vllmE2E = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960}

// lognormalRun simulates intervals of rate observations on average.
func lognormalRun(bounds []float64, intervals int, rate, median, sigma float64) (gains []*histest.Delta,
	total *histest.Delta) {
	r := rand.New(rand.NewPCG(7, 11))
	total = &histest.Delta{Bounds: bounds, Cum: make([]float64, len(bounds)), HasInf: true}
	for range intervals {
		d := &histest.Delta{Bounds: bounds, Cum: make([]float64, len(bounds)), HasInf: true}
		for n := poisson(r, rate); n > 0; n-- {
			observe(d, median*math.Exp(sigma*r.NormFloat64()))
		}
		for i, c := range d.Cum {
			total.Cum[i] += c
		}
		total.Inf += d.Inf
		total.Count += d.Count
		total.Sum += d.Sum
		gains = append(gains, d)
	}
	return gains, total
}

func poisson(r *rand.Rand, mean float64) int {
	if mean > 50 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*r.NormFloat64())))
	}
	n, limit := 0, math.Exp(-mean)
	for p := r.Float64(); p > limit; p *= r.Float64() {
		n++
	}
	return n
}

func BenchmarkPolynomialQuantiles(b *testing.B) {
	gains, total := lognormalRun(vllmE2E, 1800, 3, 3, 0.6)
	e := newEstimator(b, "polynomial", vllmE2E)
	for _, d := range gains {
		e.Interval(d)
	}
	var dst []histest.Estimate
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = e.Quantiles(dst[:0], total, nine)
	}
}

func BenchmarkPolynomialLearn1800(b *testing.B) {
	gains, _ := lognormalRun(vllmE2E, 1800, 3, 3, 0.6)
	e := newEstimator(b, "polynomial", vllmE2E)
	b.ReportAllocs()
	for b.Loop() {
		for _, d := range gains {
			e.Interval(d)
		}
	}
}

func BenchmarkLinearQuantiles(b *testing.B) {
	_, total := lognormalRun(vllmE2E, 1800, 3, 3, 0.6)
	e := newEstimator(b, "linear", vllmE2E)
	var dst []histest.Estimate
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = e.Quantiles(dst[:0], total, nine)
	}
}

// observe adds x to d.
func observe(d *histest.Delta, x float64) {
	for i, b := range d.Bounds {
		if x <= b {
			d.Cum[i]++
		}
	}
	d.Inf++
	d.Count++
	d.Sum += x
}

func BenchmarkRefined360(b *testing.B)  { benchmarkRefined(b, 360) }
func BenchmarkRefined1800(b *testing.B) { benchmarkRefined(b, 1800) }

// benchmarkRefined measures learning and nine quantiles of one series.
func benchmarkRefined(b *testing.B, intervals int) {
	for _, rate := range []float64{0.3, 3, 30, 300} {
		gains, total := lognormalRun(vllmE2E, intervals, rate, 3, 0.6)
		b.Run(fmt.Sprint("rate=", rate), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e := newEstimator(b, "refined", vllmE2E)
				for _, d := range gains {
					e.Interval(d)
				}
				e.Quantiles(nil, total, nine)
			}
		})
	}
}

// BenchmarkRefinedSuite measures the median cost of a series of the accuracy
// suite: learning and nine quantiles with their bounds.
func BenchmarkRefinedSuite(b *testing.B) {
	for _, intervals := range []int{90, 360, 1800} {
		b.Run(fmt.Sprint("intervals=", intervals), func(b *testing.B) {
			var runs []*simulated
			for _, c := range suiteSample(17, 60, func(c *suiteCase) bool { return c.intervals == intervals }) {
				runs = append(runs, c.simulate())
			}
			var took []float64
			for n := 0; b.Loop(); n++ {
				s := runs[n%len(runs)]
				start := time.Now()
				estimate(b, "refined", s.intervals, s.total, nine)
				took = append(took, time.Since(start).Seconds()*1e3)
			}
			slices.Sort(took)
			b.ReportMetric(histest.Quantile(took, 0.5), "ms-median")
			b.ReportMetric(histest.Quantile(took, 0.95), "ms-p95")
		})
	}
}
