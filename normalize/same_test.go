package normalize_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/normalize"
)

// agree compares numbers to 1e-9, relative to the largest of them: a slice of a
// large counter cannot be better than the counter.
func agree(a, b []float64, size float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return near(x, y) || abs(x-y) <= 1e-12*size })
}

func abs(x float64) float64 { return max(x, -x) }

func spreadNumbers(s *normalize.Spread) []float64 {
	if s == nil {
		return nil
	}
	return []float64{s.Avg, s.Min, s.Max, s.Std}
}

func sameCounter(t *rapid.T, name string, got, want *normalize.Counter) {
	t.Helper()
	if (got == nil) != (want == nil) {
		t.Fatalf("%s: got %+v, want %+v", name, got, want)
	}
	if got == nil {
		return
	}
	numbers := func(c *normalize.Counter) []float64 {
		out := append([]float64{c.Total, c.Rate}, spreadNumbers(c.SliceRates)...)
		for _, s := range c.Slices {
			out = append(out, float64(s.StartNS), float64(s.EndNS), s.Total, s.Rate)
		}
		return out
	}
	partial := func(s normalize.CounterSlice) bool { return s.Partial }
	if got.Defined != want.Defined || got.Sliced != want.Sliced || len(got.Slices) != len(want.Slices) ||
		slices.IndexFunc(got.Slices, partial) != slices.IndexFunc(want.Slices, partial) ||
		!agree(numbers(got), numbers(want), 1e4) {
		t.Fatalf("%s: got %+v %v, want %+v %v", name, *got, got.SliceRates, *want, want.SliceRates)
	}
	if got.HasExact && float64(got.Exact) != got.Total {
		t.Fatalf("%s: exact %d is not the total %v", name, got.Exact, got.Total)
	}
}

func sameGauge(t *rapid.T, name string, got, want *normalize.Gauge) {
	t.Helper()
	if (got == nil) != (want == nil) {
		t.Fatalf("%s: got %+v, want %+v", name, got, want)
	}
	if got == nil {
		return
	}
	numbers := func(g *normalize.Gauge) []float64 {
		out := append([]float64{g.TimeAvg, g.First, g.Last, float64(g.N)}, spreadNumbers(&g.Spread)...)
		out = append(out, g.Quantiles...)
		for _, s := range g.Slices {
			out = append(out, float64(s.StartNS), float64(s.EndNS), s.Avg, s.Min, s.Max, float64(s.N))
		}
		return out
	}
	if !agree(numbers(got), numbers(want), 1e4) {
		t.Fatalf("%s: got %+v, want %+v", name, *got, *want)
	}
}

func estimates(all []histest.Estimate) []float64 {
	var out []float64
	for _, e := range all {
		out = append(out, e.Value, e.Low, e.High, float64(e.Flags))
	}
	return out
}

func sameHistogram(t *rapid.T, got, want *normalize.Histogram) {
	t.Helper()
	if (got == nil) != (want == nil) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	if got == nil {
		return
	}
	numbers := func(h *normalize.Histogram) []float64 {
		out := []float64{float64(h.Count), h.Sum, h.Avg, h.CountRate, h.SumRate, float64(h.Segments)}
		out = append(out, estimates(h.Quantiles)...)
		for _, s := range h.Slices {
			out = append(out, float64(s.StartNS), float64(s.EndNS), float64(s.Count), s.Sum, s.Avg)
			out = append(out, estimates(s.Quantiles)...)
		}
		return out
	}
	counts := func(h *normalize.Histogram) [][]int64 {
		var out [][]int64
		for _, s := range h.Slices {
			out = append(out, s.Counts)
		}
		return out
	}
	if got.NoSum != want.NoSum || got.HasRates != want.HasRates || !slices.Equal(got.Bounds, want.Bounds) ||
		(got.Buckets == nil) != (want.Buckets == nil) || !slices.Equal(got.Buckets, want.Buckets) ||
		!slices.EqualFunc(counts(got), counts(want), slices.Equal) || !agree(numbers(got), numbers(want), 1e4) {
		t.Fatalf("got  %+v\nwant %+v", *got, *want)
	}
}
