package changepoint_test

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/history/changepoint"
)

type change struct {
	Index             int
	Change, Low, High float64
	P                 float64
	NBefore           int `json:"n_before"`
	NAfter            int `json:"n_after"`
	Minor             bool
}

type series struct {
	Name   string
	Values []float64
	Expect struct {
		Log, Unstable  bool
		Sigma          float64
		Outliers       []int
		Changes, Minor []change
		Drifts         []changepoint.Drift
	}
}

func near(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b))
}

// vectors may be a file with further series, such as those that others published, which are not here.
var vectors = flag.String("vectors", "../../testdata/vectors/history/series.json", "`file` of series")

func TestVectors(t *testing.T) {
	b, err := os.ReadFile(*vectors)
	if err != nil {
		t.Fatal(err)
	}
	var cases []series
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	changes, drifts := 0, 0
	for _, c := range cases {
		got := changepoint.Detect(c.Values, 0.02)
		if got.Log != c.Expect.Log || got.Unstable != c.Expect.Unstable || !near(got.Sigma, c.Expect.Sigma, 1e-8) ||
			!slices.Equal(got.Outliers, c.Expect.Outliers) {
			t.Errorf("%s: %+v, want %+v", c.Name, got, c.Expect)
		}
		want := append(c.Expect.Changes, c.Expect.Minor...)
		slices.SortFunc(want, func(a, b change) int { return a.Index - b.Index })
		if len(want) != len(got.Changes) || len(got.Drifts) != len(c.Expect.Drifts) {
			t.Errorf("%s: %+v, want %+v", c.Name, got, c.Expect)
			continue
		}
		for i, w := range want {
			equal(t, c.Name, got.Changes[i], w)
		}
		for i, w := range c.Expect.Drifts {
			if g := got.Drifts[i]; g.Start != w.Start || g.End != w.End || !near(g.Change, w.Change, 1e-8) {
				t.Errorf("%s: drift %+v, want %+v", c.Name, g, w)
			}
		}
		changes, drifts = changes+len(want), drifts+len(got.Drifts)
	}
	if changes < 15 || drifts < 2 {
		t.Errorf("only %d changes and %d drifts", changes, drifts)
	}
}

func equal(t *testing.T, name string, got changepoint.Change, want change) {
	t.Helper()
	if got.Index != want.Index || got.Minor != want.Minor || got.PointsBefore != want.NBefore ||
		got.Points != want.NAfter ||
		!near(got.Change, want.Change, 1e-8) || !near(got.Low, want.Low, 1e-8) || !near(got.High, want.High, 1e-8) ||
		!near(got.P, want.P, 1e-6) {
		t.Errorf("%s: %+v, want %+v", name, got, want)
	}
	if !(got.First <= got.Index && got.Index <= got.Last && got.First > 0) {
		t.Errorf("%s: at %d, or from %d to %d", name, got.Index, got.First, got.Last)
	}
}

// noisy draws n values around 100 with the given noise, the same for the same seed.
func noisy(seed uint64, n int, sd float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		s := 0.0
		for range 12 {
			seed = seed*6364136223846793005 + 1442695040888963407
			s += float64(seed>>11) / (1 << 53)
		}
		out[i] = 100 * (1 + sd*(s-6))
	}
	return out
}

// TestStudy: what is found of steps, and how often something is found where nothing is.
func TestStudy(t *testing.T) {
	hits, silent := 0, 0
	for seed := range uint64(100) {
		v := noisy(seed*7919+1, 40, 0.01)
		if len(changepoint.Detect(v, 0.02).Changes) == 0 {
			silent++
		}
		for i := 20; i < len(v); i++ {
			v[i] *= 1.05
		}
		if c := changepoint.Detect(v, 0.02).Changes; len(c) == 1 && c[0].Index >= 18 && c[0].Index <= 22 {
			hits++
		}
	}
	t.Logf("step of 5 %% in noise of 1 %%: found %d of 100; nothing found in %d of 100 without one", hits, silent)
	if hits < 95 || silent < 97 {
		t.Errorf("found %d of 100, silent %d of 100", hits, silent)
	}
}

// TestMemory: a series of 1,000 runs takes at most 100 KB.
func TestMemory(t *testing.T) {
	v := noisy(5, 1000, 0.02)
	for i := 400; i < len(v); i++ {
		v[i] *= 1.1
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := changepoint.Detect(v, 0.02)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 100_000 || len(r.Changes) == 0 {
		t.Errorf("%d bytes, %d changes", n, len(r.Changes))
	}
}

// TestLong: of more than 2,000 values the last ones count, with their own indices.
func TestLong(t *testing.T) {
	v := noisy(3, 2100, 0.01)
	for i := 2050; i < len(v); i++ {
		v[i] *= 1.2
	}
	if c := changepoint.Detect(v, 0.02).Changes; len(c) != 1 || c[0].Index != 2050 {
		t.Errorf("%+v", c)
	}
}

// TestScale: another unit changes no finding, and the values are left as they are.
func TestScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64Range(1, 1.3), 0, 60).Draw(t, "values")
		by := math.Ldexp(1, rapid.IntRange(-8, 8).Draw(t, "power"))
		scaled := make([]float64, len(v))
		for i := range v {
			scaled[i] = v[i] * by
		}
		kept := slices.Clone(v)
		a, b := changepoint.Detect(v, 0.02), changepoint.Detect(scaled, 0.02)
		if !slices.Equal(a.Segments, b.Segments) && a.Sigma > 1e-9 {
			t.Fatalf("segments %v, in another unit %v", a.Segments, b.Segments)
		}
		if !slices.Equal(v, kept) {
			t.Fatal("the values were changed")
		}
	})
}
