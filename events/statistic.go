package events

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/histest"
)

// The methods of percentiles, by numpy's names.
const (
	Linear      = "linear"       // between the neighbours at (n-1)p: numpy's default
	Lower       = "lower"        // the value at or below (n-1)p
	InvertedCDF = "inverted_cdf" // the smallest value that p of all do not exceed
)

// Methods are the values of ReportOptions.Method.
var Methods = []string{Linear, Lower, InvertedCDF}

// Grid is the percentiles of a report: those of MLPerf's.
var Grid = []float64{99.9, 99, 97, 95, 90, 80, 75, 50, 25, 10, 5, 1}

// Percentile returns the p-th percentile (0 to 100) of sorted values, NaN of none.
func Percentile(method string, sorted []float64, p float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	switch method {
	case Lower:
		return sorted[int(math.Floor(float64(n-1)*(p/100)))]
	case InvertedCDF:
		return sorted[min(max(int(math.Ceil(p*float64(n)/100))-1, 0), n-1)]
	}
	return histest.Quantile(sorted, p/100)
}

// Weighted is a value that stands for N equal ones.
type Weighted struct {
	Value float64
	N     int
}

// weightedAt is the smallest value such that it and those before have p percent of all weight. NaN of none.
func weightedAt(sorted []Weighted, p float64, total int) float64 {
	sum := 0
	for _, w := range sorted {
		if sum += w.N; w.N > 0 && float64(sum) >= p*float64(total)/100 {
			return w.Value
		}
	}
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[len(sorted)-1].Value
}

// confidence is 1-c of the early stopping estimates: c is 0.99.
const confidence = 0.01

// EarlyStopping returns MLPerf's conservative estimate of the p-th percentile of sorted values: the value that exceeds
// the true percentile with a confidence of 99 %, whatever the distribution. ok is false below the median and for too
// few values: it takes 11 for p50, 130 for p95, 219 for p97, 6636 for p99.9.
//
// With h+t = n the estimate is the t-th highest value for the largest t >= 1 with I_p(h, t+1) < 0.01. For whole
// numbers that incomplete beta function is the binomial probability of at most t values of n above the percentile,
// which grows with t, so one sum over t finds it.
func EarlyStopping(sorted []float64, p float64) (estimate float64, ok bool) {
	n := len(sorted)
	if n == 0 || !(p >= 50 && p < 100) {
		return 0, false
	}
	q := p / 100
	lp, lq := math.Log(q), math.Log1p(-q)
	term := float64(n) * lp // log of the probability of exactly t
	sum := math.Exp(term)
	t := 0
	for t < n-1 {
		term += math.Log(float64(n-t)) - math.Log(float64(t+1)) + lq - lp
		next := sum + math.Exp(term)
		if next >= confidence {
			break
		}
		sum = next
		t++
	}
	if t < 1 {
		return 0, false
	}
	return sorted[n-t], true
}

// Value is a number, or the reason why there is none.
type Value struct {
	Known  bool
	V      float64 // meaningless unless Known; never NaN or infinite
	Reason string  // "" when Known
}

func known(v float64) Value {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Value{Reason: "the number is not finite"}
	}
	return Value{Known: true, V: v}
}

func unknown(format string, args ...any) Value { return Value{Reason: fmt.Sprintf(format, args...)} }

// per divides, passing on why it cannot.
func per(n float64, d Value) Value {
	if !d.Known {
		return d
	}
	if d.V <= 0 {
		return unknown("the window has no length")
	}
	return known(n / d.V)
}

// MarshalJSON writes {"value": 1.5}, or {"value": null, "reason": "..."}.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.Known {
		return append(strconv.AppendFloat([]byte(`{"value":`), v.V, 'g', -1, 64), '}'), nil
	}
	return fmt.Appendf(nil, `{"value":null,"reason":%s}`, quoteJSON(v.Reason)), nil
}

// Quantile is one percentile of a distribution.
type Quantile struct {
	Key   string  // "99", or "99.0" as MLPerf's tools write it
	P     float64 // percent
	Value float64
	// Missing reports whether a summary does not have it: Value means nothing.
	Missing bool
	// Early is the early stopping estimate, when HasEarly.
	Early    float64
	HasEarly bool
}

// Distribution is the statistics of a value that requests have. With N = 0 only Reason says something.
type Distribution struct {
	N         int    // values; of a weighting by tokens: tokens
	Missing   int    // requests that should have the value and do not
	Reason    string // why there is no value, or why some are missing; "" if none are
	Total     float64
	Mean      float64
	Min, Max  float64
	StdDev    Value      // of a sample (n-1)
	PopStdDev float64    // NaN where a summary does not have it
	Quantiles []Quantile // in the order of Grid; none for N = 0
	Method    string
}

// Quantile returns the percentile p of the grid.
func (d *Distribution) Quantile(p float64) (q Quantile, ok bool) {
	for _, q := range d.Quantiles {
		if q.P == p {
			return q, true
		}
	}
	return Quantile{}, false
}

// key names a percentile: "99", or "99.0" for MLPerf's tools.
func key(p float64, compat bool) string {
	s := strconv.FormatFloat(p, 'f', -1, 64)
	if compat && !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// distribute computes the statistics of values, which it sorts.
func distribute(values []float64, method string, compat bool) Distribution {
	d := Distribution{Method: method}
	slices.Sort(values)
	d.moments(len(values), func(i int) (float64, int) { return values[i], 1 })
	if d.N == 0 {
		return d
	}
	for _, p := range Grid {
		q := Quantile{Key: key(p, compat), P: p, Value: Percentile(method, values, p)}
		q.Early, q.HasEarly = EarlyStopping(values, p)
		d.Quantiles = append(d.Quantiles, q)
	}
	return d
}

// distributeWeighted is distribute where each value counts N times. Percentiles are those of the inverted distribution
// function.
func distributeWeighted(values []Weighted, compat bool) Distribution {
	d := Distribution{Method: InvertedCDF}
	slices.SortFunc(values, func(a, b Weighted) int { return cmp.Compare(a.Value, b.Value) })
	d.moments(len(values), func(i int) (float64, int) { return values[i].Value, values[i].N })
	if d.N == 0 {
		return d
	}
	for _, p := range Grid {
		d.Quantiles = append(d.Quantiles, Quantile{Key: key(p, compat), P: p, Value: weightedAt(values, p, d.N)})
	}
	return d
}

// moments sets number, total, extremes and deviations of n sorted values, each of which counts so many times.
func (d *Distribution) moments(n int, at func(i int) (v float64, times int)) {
	for i := range n {
		v, times := at(i)
		d.N += times
		d.Total += v * float64(times)
	}
	if d.N == 0 {
		return
	}
	d.Min, _ = at(0)
	d.Max, _ = at(n - 1)
	d.Mean = d.Total / float64(d.N)
	squares := 0.0
	for i := range n {
		v, times := at(i)
		squares += (v - d.Mean) * (v - d.Mean) * float64(times)
	}
	d.PopStdDev = math.Sqrt(squares / float64(d.N))
	if d.StdDev = unknown("one value has no deviation"); d.N > 1 {
		d.StdDev = known(math.Sqrt(squares / float64(d.N-1)))
	}
}
