package catalog_test

import (
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/simulate"
)

// BenchmarkDerive derives what a slice of each simulated server gives, of a plan that knows its series.
func BenchmarkDerive(b *testing.B) {
	for _, profile := range []string{"sglang", "trtllm", "dynamo-worker", "triton", "tgi", "llamacpp"} {
		s, _, _ := simulated(b, profile, simulate.Options{Rate: 6, Seed: 7}, 20, 2)
		plan := known(b).Plan()
		b.Run(profile, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				plan.Derive(s, catalog.Slice)
			}
		})
	}
}

// A further slice costs room for its results and little beside: formulas are bound, and labels joined, once.
func TestDeriveAllocates(t *testing.T) {
	for _, profile := range []string{"sglang", "dynamo-worker", "triton"} {
		s, _, _ := simulated(t, profile, simulate.Options{Rate: 6, Seed: 7}, 20, 2)
		plan := known(t).Plan()
		results := len(plan.Derive(s, catalog.Slice))
		if n := testing.AllocsPerRun(20, func() { plan.Derive(s, catalog.Slice) }); n > float64(results) {
			t.Errorf("%s: %v allocations for %d results", profile, n, results)
		}
	}
}
