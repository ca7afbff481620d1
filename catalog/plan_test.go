package catalog_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
)

// A plan gives of each stretch what it would give of that stretch alone: also when
// series come, go and change their places, and of families that are renamed,
// scaled and numbered anew.
func TestPlanEqualsDerive(t *testing.T) {
	c := known(t)
	labels := func(pairs ...string) metric.Labels {
		var out []metric.Label
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, metric.Label{Name: pairs[i], Value: pairs[i+1]})
		}
		return metric.NewLabels(out...)
	}
	for _, profile := range simulate.Profiles() {
		var s catalog.Interval
		if profile != "vllm" && profile != "vllm-omni" { // what simulated does not read
			s, _, _ = simulated(t, profile, simulate.Options{Rate: 6, Seed: 7}, 20, 2)
		}
		// Old spellings, also in other units, of engines that are stages.
		s.Gains = append(s.Gains,
			catalog.Gain{Family: "vllm:gpu_cache_usage_perc", Type: metric.Gauge,
				Labels: labels("model_name", "m", "engine", "7"), TimeAvg: 0.5, Last: 0.25, Max: 1},
			catalog.Gain{Family: "vllm_omni:e2e_request_latency_s", Type: metric.Histogram, Labels: labels("model_name", "m"),
				Count: 2, Sum: 3, HasSum: true}, catalog.Gain{Family: "vllm_omni:transfer_tx_time_ms", Type: metric.Histogram,
				Labels: labels("model_name", "m", "from_stage", "0", "to_stage", "1"), Count: 2, Sum: 3, HasSum: true,
				Buckets: []catalog.Bucket{{Upper: 1, Count: 1}, {Upper: 2, Count: 2}}},
			catalog.Gain{Family: "vllm:num_requests_running", Type: metric.Gauge,
				Labels: labels("model_name", "m", "engine", "0"), TimeAvg: 0.5, Last: 3, Max: 4},
			catalog.Gain{Family: "vllm:time_per_output_token_seconds", Type: metric.Histogram,
				Labels: labels("model_name", "m", "engine", "7"), Count: 2, Sum: 3, HasSum: true,
				Buckets: []catalog.Bucket{{Upper: 1, Count: 1}, {Upper: 2, Count: 2}}})
		rnd := rand.New(rand.NewPCG(1, 2))
		plan := c.Plan()
		some := 0
		for n := range 12 {
			part := catalog.Interval{Seconds: float64(1 + n), EndNS: int64(n), Gains: slices.Clone(s.Gains)}
			if n%4 == 3 { // another shape, which the next one but one keeps
				part.Gains = slices.DeleteFunc(part.Gains, func(catalog.Gain) bool { return rnd.IntN(5) == 0 })
				rnd.Shuffle(len(part.Gains), func(i, j int) { part.Gains[i], part.Gains[j] = part.Gains[j], part.Gains[i] })
			}
			for i := range part.Gains {
				g, x := &part.Gains[i], 1+rnd.Float64()
				for _, v := range []*float64{&g.Total, &g.Count, &g.Sum, &g.TimeAvg, &g.Min, &g.Max, &g.First, &g.Last} {
					*v *= x
				}
				g.Resets = rnd.IntN(2)
				g.Buckets = slices.Clone(g.Buckets)
				for k := range g.Buckets {
					g.Buckets[k].Count *= x
				}
			}
			span := catalog.Span(n % 2)
			given := slices.Clone(part.Gains)
			got, want := plan.Derive(part, span), c.Derive(part, span)
			if diff := cmp.Diff(want, got, cmpopts.EquateComparable(metric.Labels{})); diff != "" {
				t.Fatalf("%s, stretch %d (-alone +planned):\n%s", profile, n, diff)
			}
			if diff := cmp.Diff(given, part.Gains, cmpopts.EquateComparable(metric.Labels{})); diff != "" {
				t.Fatalf("%s, stretch %d: the caller's gains were changed:\n%s", profile, n, diff)
			}
			some += len(got)
		}
		if some == 0 {
			t.Errorf("%s: nothing was derived", profile)
		}
	}
}
