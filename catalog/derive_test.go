package catalog_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

// stats makes the gains of one model of Triton's statistics.
func stats(model string, counts, ns map[string]uint64) []catalog.Gain {
	var out []catalog.Gain
	add := func(family, stat string, v uint64) {
		out = append(out, catalog.Gain{Family: family, Type: metric.Counter, Total: float64(v), Exact: v, HasExact: true,
			Labels: metric.LabelsFromMap(map[string]string{"model": model, "version": "1", "stat": stat})})
	}
	for _, stat := range []string{"success", "fail", "queue", "compute_input", "compute_infer", "compute_output",
		"cache_hit", "cache_miss"} {
		if v, ok := counts[stat]; ok {
			add("triton_stats_requests_total", stat, v)
		}
		if v, ok := ns[stat]; ok {
			add("triton_stats_request_duration_nanoseconds_total", stat, v)
		}
	}
	return out
}

// known is the catalog of the embedded tables.
func known(t interface {
	Helper()
	Fatal(...any)
}) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func find(list []catalog.Derived, name, model string) *catalog.Derived {
	for i := range list {
		if m, _ := list[i].Labels.Get("model"); list[i].Name == name && m == model {
			return &list[i]
		}
	}
	return nil
}

// What is missing is never zero, and says so.
func TestStatuses(t *testing.T) {
	c := known(t)
	check := func(gains []catalog.Gain, seconds float64, name, want string) {
		t.Helper()
		got := "absent"
		if d := find(c.Derive(catalog.Interval{Seconds: seconds, Gains: gains}, catalog.Window), name, "m"); d != nil {
			got = d.Status.String()
			if !d.Status.Defined() && (d.Value != 0 || d.Shown != 0) {
				t.Errorf("%s: %s with value %v", name, got, d.Value)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	full := stats("m", map[string]uint64{"success": 2, "fail": 0}, map[string]uint64{"success": 8})
	check(full, 1, "triton_derived_avg_request_seconds", "ok")
	check(full, 1, "triton_derived_avg_queue_seconds", "absent")
	check(full, 1, "triton_derived_failure_ratio", "ok")
	check(full, 0, "triton_derived_request_rate", "zero_denominator")
	check(stats("m", map[string]uint64{"success": 0}, map[string]uint64{"success": 0}), 1,
		"triton_derived_avg_request_seconds", "zero_denominator")
	check(stats("m", map[string]uint64{"success": 2}, nil), 1, "triton_derived_avg_request_seconds", "missing")
	check(stats("m", map[string]uint64{"success": 2}, nil), 1, "triton_derived_failure_ratio", "missing")
	check(nil, 1, "triton_derived_avg_request_seconds", "absent")
	full[0].Resets = 1
	check(full, 1, "triton_derived_avg_request_seconds", "reset_corrected")
}

// Slices leave out what makes sense over the window only.
func TestSpans(t *testing.T) {
	s := catalog.Interval{Seconds: 1, Gains: stats("m", map[string]uint64{"success": 2}, map[string]uint64{"success": 8})}
	if find(known(t).Derive(s, catalog.Window), "triton_pa_request_us", "m") == nil ||
		find(known(t).Derive(s, catalog.Slice), "triton_pa_request_us", "m") != nil {
		t.Error("perf_analyzer's numbers are those of the window, and only those")
	}
	if !known(t).Reads("triton_stats_requests_total") || known(t).Reads("my_app_load1") {
		t.Error("the packs read families of engines, and no others")
	}
}

// Every value is its quotient, whatever the numbers and their order; no result is
// infinite or without a name.
func TestQuotients(t *testing.T) {
	c := known(t)
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(1, 1000), rapid.Uint64())
		var gains []catalog.Gain
		for _, m := range []string{"a", "b"} {
			counts, ns := map[string]uint64{}, map[string]uint64{}
			for _, stat := range []string{"success", "fail", "queue", "compute_input", "compute_infer", "compute_output",
				"cache_hit", "cache_miss"} {
				if rapid.IntRange(0, 4).Draw(t, "there") > 0 {
					counts[stat] = number.Draw(t, "count")
				}
				if rapid.IntRange(0, 4).Draw(t, "there") > 0 {
					ns[stat] = number.Draw(t, "ns")
				}
			}
			gains = append(gains, stats(m, counts, ns)...)
		}
		s := catalog.Interval{Seconds: float64(rapid.IntRange(0, 10).Draw(t, "seconds")), Gains: gains}
		got := c.Derive(s, catalog.Window)
		shuffled := catalog.Interval{Seconds: s.Seconds, Gains: rapid.Permutation(gains).Draw(t, "order")}
		again := c.Derive(shuffled, catalog.Window)
		if len(got) != len(again) {
			t.Fatalf("%d results, in another order %d", len(got), len(again))
		}
		for i, d := range got {
			if d.Name == "" || d.Pack == "" || math.IsInf(d.Value, 0) || math.IsNaN(d.Value) || d.Shown < 0 {
				t.Fatalf("%+v", d)
			}
			if d.HasParts && d.Status.Defined() && d.Value != d.Numerator/d.Denominator {
				t.Fatalf("%s is %v, want %v / %v", d.Name, d.Value, d.Numerator, d.Denominator)
			}
			if o := again[i]; o.Name != d.Name || o.Labels != d.Labels || o.Status != d.Status || o.Value != d.Value {
				t.Fatalf("%s depends on the order: %+v and %+v", d.Name, d, o)
			}
		}
	})
}
