package export_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scrapestat/scrapestat/summary"
)

// twins is a run of two replicas that answer one request per second, one in
// 0.5 s and the other in 1.5 s, over 4 s. A third endpoint has other buckets.
func twins() *fakeRun {
	f := newFake("http://a", "http://b", "http://odd")
	for i := range 5 {
		f.Scrape(0, float64(i), fmt.Sprintf("# TYPE c counter\nc{m=\"x\"} %d\n# TYPE g gauge\ng 1\n# TYPE h histogram\n"+
			"h_bucket{m=\"x\",le=\"1\"} %[1]d\nh_bucket{m=\"x\",le=\"+Inf\"} %[1]d\nh_sum{m=\"x\"} %[2]g\nh_count{m=\"x\"} "+
			"%[1]d\n", i, 0.5*float64(i)))
		f.Scrape(1, float64(i), fmt.Sprintf("# TYPE c counter\nc{m=\"x\"} %d\n# TYPE h histogram\n"+
			"h_bucket{m=\"x\",le=\"1\"} 0\nh_bucket{m=\"x\",le=\"+Inf\"} %[1]d\nh_sum{m=\"x\"} %[2]g\nh_count{m=\"x\"} "+
			"%[1]d\n", i, 1.5*float64(i)))
		f.Scrape(2, float64(i), fmt.Sprintf("# TYPE h histogram\nh_bucket{m=\"y\",le=\"2\"} %d\nh_bucket{m=\"y\","+
			"le=\"+Inf\"} %[1]d\nh_sum{m=\"y\"} %[1]d\nh_count{m=\"y\"} %[1]d\n", i))
	}
	return f
}

func TestAggregates(t *testing.T) {
	check := func(by []string, want string) {
		t.Helper()
		doc := docOf(t, twins(), summary.Options{By: by, Estimator: "refined", Quantiles: []float64{0.999}})
		all := at(t, doc, "scrapestat", "aggregates").(tree)
		for _, g := range all["groups"].([]any) {
			if s, ok := g.(tree)["skew"].(tree); ok != (g.(tree)["series"].(float64) > 1) || ok && s["max_over_mean"] != 1.0 {
				t.Errorf("by %q: skew %v of %v series", by, s, g.(tree)["series"])
			}
			delete(g.(tree), "skew")
			if p, ok := g.(tree)["percentiles"]; ok {
				roundEstimate(at(t, p, "p99.9").(tree))
			}
		}
		text, _ := json.Marshal(all)
		if diff := cmp.Diff(want, string(text)); diff != "" {
			t.Errorf("by %q: %s", by, diff)
		}
	}
	check([]string{}, `{"by":[],"groups":[{"metric":"c","rate":2,"series":2,`+
		`"total":8,"type":"counter"},`+
		`{"metric":"h","refused":"merge histogram 2 of 3: bucket bounds differ, and none is common",`+
		`"series":3,"type":"histogram"}]}`)
	check([]string{"m", "zone"}, `{"by":["m","zone"],"groups":[{"labels":{"m":"x"},"metric":"c","rate":2,"series":2,`+
		`"total":8,"type":"counter"},`+
		`{"avg":1,"buckets":{"+Inf":8,"1":4},"count":8,"count_rate":2,"labels":{"m":"x"},"metric":"h",`+
		`"percentiles":{"p99.9":{"flags":["overflow","few"],"high":1.5,"low":1.5,"value":1.5}},`+
		`"series":2,"sum":8,"sum_rate":2,"type":"histogram"},`+
		`{"avg":1,"buckets":{"+Inf":4,"2":4},"count":4,"count_rate":1,"labels":{"m":"y"},"metric":"h",`+
		`"percentiles":{"p99.9":{"flags":["degenerate","few"],"high":1,"low":1,"value":1}},`+
		`"series":1,"sum":4,"sum_rate":1,"type":"histogram"}]}`)
}

// roundEstimate rounds away what bounds grant to the rounding of sums.
func roundEstimate(e tree) {
	for _, k := range []string{"low", "value", "high"} {
		e[k] = math.Round(e[k].(float64)*1e6) / 1e6
	}
}

// TestSlicePercentiles checks slices of 2 s, of which the first one counts from
// the first sample.
func TestSlicePercentiles(t *testing.T) {
	doc := docOf(t, twins(), summary.Options{Slice: 2 * time.Second, SliceQuantiles: true, Quantiles: []float64{0.5}})
	var got []any
	for _, s := range at(t, doc, "scrapestat", "series").([]any) {
		if s := s.(tree); s["metric"] == "h" && fmt.Sprint(s["endpoint"]) == "0" {
			got = s["slice_percentiles"].([]any)
		}
	}
	if len(got) != 2 {
		t.Fatalf("got %v, want two slices", got)
	}
	for i, s := range got {
		e := at(t, s, "percentiles", "p50").(tree)
		roundEstimate(e)
		want := tree{"value": 0.5, "low": 0.25, "high": 0.75, "flags": []any{"degenerate"}}
		if diff := cmp.Diff(want, e); diff != "" || at(t, s, "start_ns") != float64(origin+int64(i)*2*second) {
			t.Errorf("slice %d: %v %s", i, s, diff)
		}
	}
}

// What AIPerf's readers see is the same with and without them.
func TestExtrasLeaveAIPerfAlone(t *testing.T) {
	plain := docOf(t, twins(), summary.Options{Slice: time.Second})
	more := docOf(t, twins(), summary.Options{Slice: time.Second, SliceQuantiles: true, By: []string{}})
	delete(plain, "scrapestat")
	delete(more, "scrapestat")
	if diff := cmp.Diff(plain, more); diff != "" {
		t.Error(diff)
	}
}
