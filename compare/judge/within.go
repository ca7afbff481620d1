package judge

import (
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/internal/student"
)

// MinSlices is the least number of complete timeslices that tell of the noise within a run.
const MinSlices = 12

// Estimate is a quantity of one run with its noise: Err is the standard error of
// the logarithm of Value, DF its degrees of freedom; DF 0 means that the slices do
// not tell.
type Estimate struct{ Value, Err, DF float64 }

// Ratio returns the sum of num by the sum of den over the complete timeslices of a
// run; without noise when that is not above 0.
func Ratio(num, den []float64) Estimate {
	e := Quotient(num, den)
	if e.Err /= e.Value; !(e.Value > 0) {
		e.Err, e.DF = 0, 0
	}
	return e
}

// Quotient is Ratio for values of any sign: Err is the standard error of Value
// itself. Its noise is that of sums of batches of slices, long enough for what hangs
// together (batch means: Schmeiser 1982; the truncation of the autocorrelation is
// Geyer's initial positive sequence, 1992).
func Quotient(num, den []float64) Estimate {
	by := sum(den)
	e := Estimate{Value: sum(num) / by}
	if len(num) != len(den) || len(num) < MinSlices || !(by > 0) {
		return e
	}
	influence := make([]float64, len(num))
	for i := range num {
		influence[i] = num[i] - e.Value*den[i]
	}
	se, df := batchMeans(influence)
	e.Err, e.DF = se/by, df
	return e
}

// Histogram is a distribution in buckets: Cum[i] observations are at or below
// Bounds[i], the last bound is +Inf.
type Histogram struct{ Bounds, Cum []float64 }

// below is how many observations are at or below v, linear within a bucket.
func (h *Histogram) below(v float64) float64 {
	i, exact := slices.BinarySearch(h.Bounds, v)
	switch {
	case i >= len(h.Cum):
		return h.Cum[len(h.Cum)-1]
	case exact || math.IsInf(h.Bounds[i], 1):
		return h.Cum[i]
	}
	low, from := 0.0, 0.0
	if i > 0 {
		low, from = h.Bounds[i-1], h.Cum[i-1]
	}
	if math.IsInf(low, -1) {
		return h.Cum[i]
	}
	return from + (h.Cum[i]-from)*(v-low)/(h.Bounds[i]-low)
}

// At is the linear quantile of the distribution; in the last bucket its lower bound.
func (h *Histogram) At(q float64) float64 {
	target := q * h.Cum[len(h.Cum)-1]
	i, _ := slices.BinarySearch(h.Cum, target)
	low, from := 0.0, 0.0
	if i > 0 {
		low, from = h.Bounds[i-1], h.Cum[i-1]
	}
	if i >= len(h.Bounds) || math.IsInf(h.Bounds[i], 1) || h.Cum[i] == from {
		return low
	}
	return low + (h.Bounds[i]-low)*(target-from)/(h.Cum[i]-from)
}

// Quantile returns the noise of a percentile v at q of a run from the
// distributions of its timeslices, all in the same buckets: the noise of the share
// at or below v, read on the buckets of the window (Woodruff 1952).
func Quantile(v, q float64, slicesOf []Histogram) Estimate {
	e := Estimate{Value: v}
	if len(slicesOf) < MinSlices || !(v > 0) {
		return e
	}
	window := Histogram{Bounds: slicesOf[0].Bounds, Cum: make([]float64, len(slicesOf[0].Cum))}
	influence := make([]float64, len(slicesOf))
	for i := range slicesOf {
		h := &slicesOf[i]
		influence[i] = h.below(v) - q*h.Cum[len(h.Cum)-1]
		for k, n := range h.Cum {
			window.Cum[k] += n
		}
	}
	count := window.Cum[len(window.Cum)-1]
	if !(count > 0) {
		return e
	}
	se, df := batchMeans(influence)
	t := student.Quantile(0.975, df)
	low, high := window.At(max(0, q-t*se/count)), window.At(min(1, q+t*se/count))
	if low > 0 && high >= low {
		e.Err, e.DF = math.Log(high/low)/(2*t), df
	}
	return e
}

// batchMeans returns the standard error of the sum of x, whose mean is about 0, and its degrees of freedom.
func batchMeans(x []float64) (se, df float64) {
	n := len(x)
	size := int(math.Ceil(math.Sqrt(float64(n))))
	size = min(max(size, int(math.Ceil(2*autocorrelation(x)))), max(1, n/6))
	k := n / size
	batches := make([]float64, k)
	for j := range batches {
		batches[j] = sum(x[j*size : (j+1)*size])
	}
	mean, squares := sum(batches)/float64(k), 0.0
	for _, b := range batches {
		squares += (b - mean) * (b - mean)
	}
	return math.Sqrt(squares / float64(k-1) * float64(k) * float64(n) / float64(k*size)), float64(k - 1)
}

// autocorrelation is how many slices hang together: 1 for slices that do not.
func autocorrelation(x []float64) float64 {
	n, tau, c0 := len(x), 1.0, dot(x, x)
	for lag := 1; c0 > 0 && lag+1 < n/2; lag += 2 {
		pair := (dot(x[lag:], x) + dot(x[lag+1:], x)) / c0
		if pair <= 0 {
			break
		}
		tau += 2 * pair
	}
	return tau
}

// dot is the sum of products over the shorter of both.
func dot(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func sum(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s
}

// fisher is the two-sided p-value of Fisher's exact test (1922): the chance of a
// table that is no likelier than this one, given its margins.
func fisher(events, trials [2]float64) float64 {
	all, total := events[0]+events[1], trials[0]+trials[1]
	choose := func(n, k float64) float64 {
		a, _ := math.Lgamma(n + 1)
		b, _ := math.Lgamma(k + 1)
		c, _ := math.Lgamma(n - k + 1)
		return a - b - c
	}
	chance := func(k float64) float64 {
		return math.Exp(choose(trials[0], k) + choose(trials[1], all-k) - choose(total, all))
	}
	limit, p := chance(events[0])*(1+1e-7), 0.0
	from, to := max(0, all-trials[1]), min(all, trials[0])
	if to-from > 1e6 {
		return math.NaN()
	}
	for k := from; k <= to; k++ {
		if c := chance(k); c <= limit {
			p += c
		}
	}
	return min(1, p)
}
