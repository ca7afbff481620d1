package histest_test

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/internal/fuzzbound"
)

// drawBounds draws ascending positive bounds that are no whole numbers, at any scale.
func drawBounds(t *rapid.T) []float64 {
	bounds := rapid.SliceOfNDistinct(rapid.Float64Range(1e-3, 1e3), 1, 12, rapid.ID[float64]).Draw(t, "bounds")
	slices.Sort(bounds)
	for i := range bounds {
		bounds[i] *= 0.1234567
	}
	return bounds
}

// drawDelta draws an orderly delta: counts that rise and a sum that fits them.
func drawDelta(t *rapid.T, bounds []float64) *histest.Delta {
	d := &histest.Delta{Bounds: bounds, HasInf: true}
	lower, c := 0.0, 0.0
	for _, upper := range bounds {
		n := float64(rapid.IntRange(0, 50).Draw(t, "n"))
		c += n
		d.Cum = append(d.Cum, c)
		d.Sum += n * (lower + (upper-lower)*rapid.Float64Range(0.01, 1).Draw(t, "mean"))
		lower = upper
	}
	n := float64(rapid.IntRange(0, 20).Draw(t, "inf"))
	d.Sum += n * lower * rapid.Float64Range(1.001, 4).Draw(t, "tail")
	d.Inf = c + n
	d.Count = d.Inf
	return d
}

// drawCase draws intervals and their total.
func drawCase(t *rapid.T) (intervals []*histest.Delta, total *histest.Delta) {
	bounds := drawBounds(t)
	total = &histest.Delta{Bounds: bounds, Cum: make([]float64, len(bounds)), HasInf: true}
	for range rapid.IntRange(1, 8).Draw(t, "intervals") {
		d := drawDelta(t, bounds)
		intervals = append(intervals, d)
		for i, c := range d.Cum {
			total.Cum[i] += c
		}
		total.Inf += d.Inf
		total.Count += d.Count
		total.Sum += d.Sum
	}
	return intervals, total
}

func estimate(t testing.TB, name string, intervals []*histest.Delta, total *histest.Delta,
	qs []float64) ([]histest.Estimate, bool) {
	e := newEstimator(t, name, total.Bounds)
	for _, d := range intervals {
		e.Interval(d)
	}
	return e.Quantiles(nil, total, qs)
}

var grid = []float64{0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.95, 0.99, 0.999, 1}

func forEach(t *testing.T, names []string, property func(t *rapid.T, name string)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { property(t, name) })
		})
	}
}

var estimators = []string{"polynomial", "linear", "refined"}

func TestMonotoneInQuantile(t *testing.T) {
	forEach(t, estimators, func(t *rapid.T, name string) {
		intervals, total := drawCase(t)
		got, _ := estimate(anyT(), name, intervals, total, grid)
		for i := 1; i < len(got); i++ {
			a, b := got[i-1], got[i]
			if b.Value < a.Value || b.Low < a.Low || b.High < a.High {
				t.Fatalf("%v at %v and %v at %v", a, grid[i-1], b, grid[i])
			}
		}
	})
}

// anyT is for estimate within rapid, whose T is no testing.TB.
func anyT() testing.TB { return &testing.T{} }

func TestInsideBucket(t *testing.T) {
	forEach(t, []string{"polynomial", "refined"}, func(t *rapid.T, name string) {
		intervals, total := drawCase(t)
		got, _ := estimate(anyT(), name, intervals, total, grid)
		for i, e := range got {
			at := grid[i] * (total.Inf - 1)
			low, high := bucketOf(total, math.Floor(at)), bucketOf(total, math.Ceil(at))
			if e.Value < lowerOf(total, low) || e.Value > upperOf(total, high) {
				t.Fatalf("%v at %v, want it in bucket %d to %d of %v", e, grid[i], low, high, total)
			}
			if e.Low > e.High {
				t.Fatalf("%v at %v: limits crossed", e, grid[i])
			}
		}
	})
}

func bucketOf(d *histest.Delta, r float64) int {
	b := 0
	for b < len(d.Cum) && d.Cum[b] <= r {
		b++
	}
	return b
}

func lowerOf(d *histest.Delta, b int) float64 {
	if b == 0 {
		return min(0, d.Bounds[0])
	}
	return d.Bounds[b-1]
}

func upperOf(d *histest.Delta, b int) float64 {
	if b == len(d.Bounds) {
		return math.Inf(1)
	}
	return d.Bounds[b]
}

// A power of two scales without rounding, so every decision stays the same.
func TestUnitScaling(t *testing.T) {
	forEach(t, estimators, func(t *rapid.T, name string) {
		intervals, total := drawCase(t)
		factor := math.Ldexp(1, rapid.IntRange(-30, 20).Draw(t, "exponent"))
		plain, ok1 := estimate(anyT(), name, intervals, total, grid)
		bounds := scaled(total.Bounds, factor)
		for i, d := range intervals {
			intervals[i] = scaledDelta(d, bounds, factor)
		}
		got, ok2 := estimate(anyT(), name, intervals, scaledDelta(total, bounds, factor), grid)
		if ok1 != ok2 {
			t.Fatalf("answer %v, scaled %v", ok1, ok2)
		}
		for i, e := range plain {
			if !near(got[i].Value, e.Value*factor, 1e-9) {
				t.Fatalf("q %v: %v, scaled by %v %v", grid[i], e.Value, factor, got[i].Value)
			}
		}
	})
}

func scaled(v []float64, factor float64) []float64 {
	out := slices.Clone(v)
	for i := range out {
		out[i] *= factor
	}
	return out
}

func scaledDelta(d *histest.Delta, bounds []float64, factor float64) *histest.Delta {
	s := *d
	s.Bounds, s.Sum = bounds, d.Sum*factor
	return &s
}

// fuzzCase reads a histogram out of bytes: anything can occur in it.
func fuzzCase(data []byte) (bounds []float64, deltas []*histest.Delta) {
	next := func() float64 {
		var b [8]byte
		n := copy(b[:], data)
		data = data[n:]
		if b[0]&1 == 0 { // half of the numbers are small and whole
			return float64(int8(b[1]))
		}
		return math.Float64frombits(binary.LittleEndian.Uint64(b[:]))
	}
	for range 1 + int(math.Abs(float64(int8(len(data)))))%6 {
		if b := next(); !math.IsNaN(b) && !math.IsInf(b, 0) {
			bounds = append(bounds, b)
		}
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	for len(data) > 0 && len(deltas) < 40 {
		d := &histest.Delta{Bounds: bounds, HasInf: len(data)%5 > 0, Sum: next(), Count: next(), Inf: next()}
		for range bounds {
			d.Cum = append(d.Cum, next())
		}
		deltas = append(deltas, d)
	}
	return bounds, deltas
}

// checkSane fails on values that are not finite, on limits that cross and on
// answers that differ when asked again.
func checkSane(t *testing.T, name string, data []byte) {
	bounds, deltas := fuzzCase(data)
	e, err := histest.New(name, bounds)
	if err != nil || len(deltas) == 0 {
		return
	}
	for _, d := range deltas[1:] {
		e.Interval(d)
	}
	got, ok := e.Quantiles(nil, deltas[0], grid)
	if !ok && len(got) > 0 {
		t.Errorf("%s: no answer, but %v", name, got)
	}
	for i, g := range got {
		if math.IsNaN(g.Value) || math.IsInf(g.Value, 0) || math.IsInf(g.Low, 0) || math.IsInf(g.High, 0) || g.Low > g.High {
			t.Errorf("%s: q %v of %v: got %v", name, grid[i], deltas[0], g)
		}
	}
	if again, _ := e.Quantiles(nil, deltas[0], grid); ok && !slices.Equal(values(again), values(got)) {
		t.Errorf("%s: got %v, then %v", name, values(got), values(again))
	}
}

func FuzzPolynomial(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzbound.Check(t)()
		checkSane(t, "polynomial", data)
		checkSane(t, "linear", data)
	})
}

func addSeeds(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{2, 1, 0, 0, 0, 0, 0, 0, 2, 5, 0, 0, 0, 0, 0, 0, 2, 40, 0, 0, 0, 0, 0, 0, 2, 9, 0, 0, 0, 0, 0, 0, 2, 9})
	long := make([]byte, 400)
	for i := range long {
		long[i] = byte(i * 37 & 0x7e)
	}
	f.Add(long)
}

func FuzzRefined(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzbound.Check(t)()
		checkSane(t, "refined", data)
	})
}
