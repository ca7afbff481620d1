package compare

import (
	"hash/fnv"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"
)

const (
	// replicates is how often a run is resampled: the standard error of a standard error of 400 is 3.5 %.
	replicates = 400
	// fewestSlices is below how many slices there is no interval.
	fewestSlices = 8
)

// trace is a quantity over the timeslices of one run: a quotient of sums, or a quantile of bucket counts.
type trace struct {
	num, den []float64

	counts [][]float64 // cumulative by bound, per slice; nil for a quotient
	bounds []float64   // finite, ascending; the last column of counts is +Inf
	q      float64
}

func (t *trace) len() int {
	if t.counts != nil {
		return len(t.counts)
	}
	return len(t.num)
}

// spread is how much a value varies by chance, as far as the run itself shows.
type spread struct {
	err float64 // standard error
	df  float64 // degrees of freedom it was estimated with
	ok  bool
}

// bootstrap resamples blocks of neighbouring slices, so that what depends on each other stays together (Künsch 1989),
// and returns the spread of the quantity. The blocks are as long as the slices depend on each other, see blockLength;
// a variance from blocks of l out of n slices is too small by the factor 1 - l/n. Student's distribution with one
// degree of freedom per block takes the place of percentiles of the replicates, which are too narrow for few blocks.
func (t *trace) bootstrap(seed uint64) spread {
	n := t.len()
	if n < fewestSlices {
		return spread{}
	}
	sums := t.prefix()
	l := blockLength(t.influence(sums))
	blocks := (n + l - 1) / l
	rng := rand.New(rand.NewPCG(seed, 0x5ca1ab1e))
	total := make([]float64, len(sums[0]))
	var mean, m2, k float64
	for range replicates {
		clear(total)
		for b := range blocks {
			length := min(l, n-b*l)
			at := rng.IntN(n - length + 1)
			for i := range total {
				total[i] += sums[at+length][i] - sums[at][i]
			}
		}
		v := t.value(total)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		k++
		d := v - mean
		mean += d / k
		m2 += d * (v - mean)
	}
	if k < replicates/2 {
		return spread{}
	}
	shrink := 1 - float64(l)/float64(n)
	return spread{err: math.Sqrt(m2 / (k - 1) / shrink), df: max(1, float64(n)/float64(l)-1), ok: true}
}

// prefix returns the running sums of the columns of the trace.
func (t *trace) prefix() [][]float64 {
	n, columns := t.len(), 2
	if t.counts != nil {
		columns = len(t.bounds) + 1
	}
	flat := make([]float64, (n+1)*columns)
	out := make([][]float64, n+1)
	for i := range out {
		out[i] = flat[i*columns : (i+1)*columns]
	}
	for i := range n {
		for c := range columns {
			out[i+1][c] = out[i][c] + t.column(i, c)
		}
	}
	return out
}

func (t *trace) column(i, c int) float64 {
	switch {
	case t.counts != nil:
		return t.counts[i][c]
	case c == 0:
		return t.num[i]
	}
	return t.den[i]
}

// value is the quantity of sums of the columns.
func (t *trace) value(total []float64) float64 {
	if t.counts != nil {
		return linearQuantile(t.bounds, total, t.q)
	}
	if total[1] == 0 {
		return math.NaN()
	}
	return total[0] / total[1]
}

// influence returns by how much each slice pulls the quantity from its value.
func (t *trace) influence(sums [][]float64) []float64 {
	n := t.len()
	total := sums[n]
	out := make([]float64, n)
	if t.counts == nil {
		r := total[0] / total[1]
		for i := range out {
			out[i] = t.num[i] - r*t.den[i]
		}
		return out
	}
	last := len(t.bounds)
	at, _ := bucketOf(t.bounds, total, t.q)
	at = max(0, at-1) // of the bucket that holds the quantile, the lower bound
	share := total[at] / total[last]
	for i := range out {
		out[i] = t.counts[i][at] - share*t.counts[i][last]
	}
	return out
}

// blockLength is how many slices form a block: twice the time over which they depend on each other, between the cube
// root of n, which is long enough for slices that do not, and a quarter of n. The time is 1 plus twice the sum of the
// autocorrelations up to the first pair of lags whose sum is not positive (Geyer's initial positive sequence).
func blockLength(x []float64) int {
	n := len(x)
	least, most := int(math.Ceil(math.Cbrt(float64(n)))), max(1, n/4)
	c0 := autocovariance(x, 0)
	if !(c0 > 0) {
		return min(least, most)
	}
	tau := 1.0
	for lag := 1; lag+1 < n/2; lag += 2 {
		pair := (autocovariance(x, lag) + autocovariance(x, lag+1)) / c0
		if !(pair > 0) {
			break
		}
		tau += 2 * pair
	}
	return min(max(least, int(math.Ceil(2*tau))), most)
}

// autocovariance of values whose mean is 0.
func autocovariance(x []float64, lag int) float64 {
	sum := 0.0
	for i := lag; i < len(x); i++ {
		sum += x[i] * x[i-lag]
	}
	return sum / float64(len(x))
}

// linearQuantile is Prometheus' estimate from cumulative counts, the last of which is that of +Inf.
func linearQuantile(bounds, cum []float64, q float64) float64 {
	n := cum[len(bounds)]
	if !(n > 0) || len(bounds) == 0 {
		return math.NaN()
	}
	i, lower := bucketOf(bounds, cum, q)
	if i == len(bounds) {
		return lower
	}
	below := 0.0
	if i > 0 {
		below = cum[i-1]
	}
	if cum[i] == below {
		return bounds[i]
	}
	return lower + (bounds[i]-lower)*(q*n-below)/(cum[i]-below)
}

// bucketOf is the bucket that holds a quantile and its lower bound; that of +Inf has the index len(bounds).
func bucketOf(bounds, cum []float64, q float64) (i int, lower float64) {
	rank := q * cum[len(bounds)]
	for i < len(bounds) && cum[i] < rank {
		i++
	}
	if i == 0 {
		return 0, math.Min(0, bounds[0])
	}
	return i, bounds[i-1]
}

// halfWidth is the half width of the interval of a difference of independent values with the confidence 1 - alpha, by
// Welch and Satterthwaite's degrees of freedom.
func halfWidth(a, b spread, alpha float64) float64 {
	va, vb := a.err*a.err, b.err*b.err
	if va+vb == 0 {
		return 0
	}
	df := (va + vb) * (va + vb) / (va*va/a.df + vb*vb/b.df)
	return studentQuantile(1-alpha/2, df) * math.Sqrt(va+vb)
}

// studentQuantile returns the quantile p > 1/2 of Student's t distribution with df degrees of freedom, from
// P(T > t) = I(df/(df+t²); df/2, 1/2) / 2 (Abramowitz and Stegun, 26.7.1).
func studentQuantile(p, df float64) float64 {
	x := mathext.InvRegIncBeta(df/2, 0.5, 2*(1-p))
	return math.Sqrt(df * (1 - x) / x)
}

// seedOf makes the seed of a run and a row. It does not know sides or values, so swapping sides and scaling units give
// the same intervals.
func seedOf(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}
