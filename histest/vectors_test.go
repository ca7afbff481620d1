package histest_test

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/internal/testkit"
)

var nine = []float64{0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99}

var nineKeys = []string{"p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99"}

// readVectors decodes a file of numeric cases into v.
func readVectors(t *testing.T, name string, v any) {
	t.Helper()
	if err := json.Unmarshal(testkit.Data(t, "vectors/"+name), v); err != nil {
		t.Fatalf("decode %s: %v", name, err)
	}
}

// number is a JSON number, or one of the strings "NaN", "+Inf", "-Inf".
type number float64

func (n *number) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(string(trimQuotes(data)), 64)
	*n = number(f)
	return err
}

func trimQuotes(b []byte) []byte {
	if len(b) > 1 && b[0] == '"' {
		return b[1 : len(b)-1]
	}
	return b
}

type polynomialCase struct {
	Name     string
	Les      []string
	StartIdx int `json:"start_idx"`
	FinalIdx int `json:"final_idx"`
	Scrapes  struct {
		Sums, Counts []number
		Buckets      [][]number
	}
	Totals struct {
		BucketDeltas map[string]int64 `json:"bucket_deltas"`
	}
	AIPerf map[string]number
	Linear map[string]number
}

// delta returns what the case gained between two scrapes.
func (c *polynomialCase) delta(from, to int) *histest.Delta {
	d := &histest.Delta{
		Sum:   float64(c.Scrapes.Sums[to] - c.Scrapes.Sums[from]),
		Count: float64(c.Scrapes.Counts[to] - c.Scrapes.Counts[from]),
	}
	for i, le := range c.Les {
		gain := float64(c.Scrapes.Buckets[to][i] - c.Scrapes.Buckets[from][i])
		if le == "+Inf" {
			d.Inf, d.HasInf = gain, true
			continue
		}
		d.Cum = append(d.Cum, gain)
	}
	d.Bounds = c.bounds()
	return d
}

func (c *polynomialCase) bounds() []float64 {
	var b []float64
	for _, le := range c.Les {
		if f, err := strconv.ParseFloat(le, 64); err == nil && !math.IsInf(f, 0) {
			b = append(b, f)
		}
	}
	return b
}

func TestPolynomialVectors(t *testing.T) {
	var file struct{ Cases []polynomialCase }
	readVectors(t, "polynomial.json", &file)
	if len(file.Cases) < 60 {
		t.Fatalf("read %d cases, want at least 60", len(file.Cases))
	}
	for _, c := range file.Cases {
		if c.Totals.BucketDeltas == nil {
			continue // a reset: the caller asks for no quantiles
		}
		poly, lin := newEstimator(t, "polynomial", c.bounds()), newEstimator(t, "linear", c.bounds())
		for i := c.StartIdx + 1; i < len(c.Scrapes.Sums); i++ {
			poly.Interval(c.delta(i-1, i))
		}
		total := c.delta(c.StartIdx, c.FinalIdx)
		checkNine(t, c.Name, poly, total, c.AIPerf)
		if total.Sum > 0 && !math.IsInf(total.Sum, 0) {
			checkNine(t, c.Name+" linear", lin, total, c.Linear)
		}
	}
}

func newEstimator(t testing.TB, name string, bounds []float64) histest.Estimator {
	t.Helper()
	e, err := histest.New(name, bounds)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func checkNine(t *testing.T, name string, e histest.Estimator, total *histest.Delta, want map[string]number) {
	t.Helper()
	got, ok := e.Quantiles(nil, total, nine)
	if ok != (want != nil) {
		t.Errorf("%s: answer %v (%v), want %v", name, ok, got, want)
		return
	}
	for i := range got {
		if w := float64(want[nineKeys[i]]); !near(got[i].Value, w, 1e-9) {
			t.Errorf("%s: %s is %v, want %v", name, nineKeys[i], got[i].Value, w)
		}
	}
}

func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*math.Max(math.Abs(want), 1e-300)
}

func TestAIPerfVectors(t *testing.T) {
	var file map[string]struct {
		In struct {
			Buckets map[string]float64
			Learned map[string][][2]float64
			Sum     number
			Count   float64
		}
		Out struct{ P []float64 }
	}
	var names map[string]json.RawMessage
	readVectors(t, "aiperf_cases.json", &names)
	estimator := map[string]json.RawMessage{}
	for name, raw := range names {
		if len(name) > 4 && name[:4] == "est_" {
			estimator[name] = raw
		}
	}
	data, err := json.Marshal(estimator)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for name, c := range file {
		h := fromMap(c.In.Buckets, float64(c.In.Sum), c.In.Count)
		e := newEstimator(t, "polynomial", h.Bounds)
		for le, intervals := range c.In.Learned {
			for _, m := range intervals {
				e.Interval(within(h, le, m[0], m[1]))
			}
		}
		got, ok := e.Quantiles(nil, h, nine)
		if ok != (c.Out.P != nil) {
			t.Errorf("%s: answer %v, want %v", name, ok, c.Out.P)
			continue
		}
		for i, w := range c.Out.P {
			if !near(got[i].Value, w, 1e-9) {
				t.Errorf("%s: %s is %v, want %v", name, nineKeys[i], got[i].Value, w)
			}
		}
	}
}

// fromMap makes a delta of cumulative counts by bound.
func fromMap(buckets map[string]float64, sum, count float64) *histest.Delta {
	d := &histest.Delta{Sum: sum, Count: count}
	for le, n := range buckets {
		if le == "+Inf" {
			d.Inf, d.HasInf = n, true
			continue
		}
		f, _ := strconv.ParseFloat(le, 64)
		d.Bounds = append(d.Bounds, f)
	}
	slices.Sort(d.Bounds)
	for _, b := range d.Bounds {
		for le, n := range buckets {
			if f, _ := strconv.ParseFloat(le, 64); f == b {
				d.Cum = append(d.Cum, n)
			}
		}
	}
	return d
}

// within makes an interval of n observations of the given mean, all in bucket le.
func within(h *histest.Delta, le string, mean, n float64) *histest.Delta {
	upper, _ := strconv.ParseFloat(le, 64)
	d := &histest.Delta{Bounds: h.Bounds, Cum: make([]float64, len(h.Bounds)), Inf: n, HasInf: true, Sum: mean * n,
		Count: n}
	for i, b := range h.Bounds {
		if b >= upper {
			d.Cum[i] = n
		}
	}
	return d
}
