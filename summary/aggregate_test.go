package summary_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scrapestat/scrapestat/summary"
)

// replicas is a run of three endpoints: a and b serve model x, c model y, and a
// has two engines. Each engine answers one request per second, which takes 0.5 s
// at a, 1.5 s at b and 3 s at c.
func replicas() *fakeRun {
	f := newFake("http://b", "http://a", "http://c")
	engine := func(labels string, n int, latency float64) string {
		under := func(bound float64) int {
			if latency > bound {
				return 0
			}
			return n
		}
		return strings.NewReplacer("LABELS", labels, "N", fmt.Sprint(n), "SUM", fmt.Sprint(float64(n)*latency),
			"ONE", fmt.Sprint(under(1)), "TWO", fmt.Sprint(under(2))).Replace(`c{LABELS} N
h_bucket{LABELS,le="1"} ONE
h_bucket{LABELS,le="2"} TWO
h_bucket{LABELS,le="+Inf"} N
h_sum{LABELS} SUM
h_count{LABELS} N
`)
	}
	const types = "# TYPE c counter\n# TYPE g gauge\n# TYPE h histogram\n"
	for i := range 11 {
		f.Scrape(0, float64(i), types+"g 3\n"+engine(`model="x",engine="0"`, i, 1.5))
		f.Scrape(1, float64(i), types+engine(`model="x",engine="0"`, i, 0.5)+engine(`model="x",engine="1"`, i, 0.5))
		f.Scrape(2, float64(i), types+engine(`model="y",engine="0"`, i, 3))
	}
	return f
}

// outlineOf has a line for each aggregate.
func outlineOf(r *summary.Run) (out []string) {
	for _, a := range r.Aggregates {
		text := fmt.Sprintf("%s%v of %d: ", r.Metrics[a.Metric].Name, a.Labels, a.Series)
		switch {
		case a.Counter != nil:
			text += fmt.Sprintf("total %g rate %g exact %d", a.Counter.Total, a.Counter.Rate, a.Counter.Exact)
		case a.Histogram != nil:
			h := a.Histogram
			text += fmt.Sprintf("count %d avg %g", h.Count, h.Avg)
			for _, b := range h.Buckets {
				text += fmt.Sprintf(" %s=%d", b.Text, b.Count)
			}
			for _, q := range h.Quantiles {
				text += fmt.Sprintf(" %.4g [%.4g, %.4g]", q.Value, q.Low, q.High)
			}
		}
		out = append(out, text+a.Refused)
	}
	return out
}

func TestAggregates(t *testing.T) {
	check := func(name string, by []string, want ...string) {
		t.Helper()
		r := build(t, summary.Options{By: by, Estimator: "refined", Quantiles: []float64{0.5}}, replicas())
		if diff := cmp.Diff(want, outlineOf(r)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for _, m := range r.Metrics {
			for _, s := range m.Series {
				if s.Histogram != nil && s.Histogram.Gain != nil {
					t.Errorf("%s: %s keeps what only aggregation needs", name, m.Name)
				}
			}
		}
	}
	check("none", nil)
	check("all", []string{},
		"c of 4: total 40 rate 4 exact 0",
		"h of 4: count 40 avg 1.375 1=20 2=30 +Inf=40 1 [1, 1]") // between 20 of 0.5 and 10 of 1.5
	check("by model", []string{"model"},
		`c{model="x"} of 3: total 30 rate 3 exact 0`, `c{model="y"} of 1: total 10 rate 1 exact 0`,
		`h{model="x"} of 3: count 30 avg 0.8333333333333334 1=20 2=30 +Inf=30 0.5 [0.5, 0.5]`,
		`h{model="y"} of 1: count 10 avg 3 1=0 2=0 +Inf=10 3 [3, 3]`)
	check("by endpoint and label", []string{"engine", "endpoint"},
		`c{endpoint="http://a",engine="0"} of 1: total 10 rate 1 exact 0`,
		`c{endpoint="http://a",engine="1"} of 1: total 10 rate 1 exact 0`,
		`c{endpoint="http://b",engine="0"} of 1: total 10 rate 1 exact 0`,
		`c{endpoint="http://c",engine="0"} of 1: total 10 rate 1 exact 0`,
		`h{endpoint="http://a",engine="0"} of 1: count 10 avg 0.5 1=10 2=10 +Inf=10 0.5 [0.5, 0.5]`,
		`h{endpoint="http://a",engine="1"} of 1: count 10 avg 0.5 1=10 2=10 +Inf=10 0.5 [0.5, 0.5]`,
		`h{endpoint="http://b",engine="0"} of 1: count 10 avg 1.5 1=0 2=10 +Inf=10 1.5 [1.5, 1.5]`,
		`h{endpoint="http://c",engine="0"} of 1: count 10 avg 3 1=0 2=0 +Inf=10 3 [3, 3]`)
	check("by a label that none has", []string{"zone"},
		"c of 4: total 40 rate 4 exact 0",
		"h of 4: count 40 avg 1.375 1=20 2=30 +Inf=40 1 [1, 1]")
}

// An aggregate of one series has the answer of that series, whatever the estimator.
func TestAggregateOfOne(t *testing.T) {
	for _, name := range []string{"polynomial", "linear", "refined"} {
		r := build(t, summary.Options{By: []string{"endpoint", "engine", "model"}, Estimator: name}, replicas())
		for _, a := range r.Aggregates {
			m := &r.Metrics[a.Metric]
			i := slices.IndexFunc(m.Series, func(s summary.Series) bool {
				url, _ := a.Labels.Get("endpoint")
				return r.Endpoints[s.Endpoint].URL == url && s.Labels == a.Labels.Without("endpoint")
			})
			one := m.Series[i]
			if a.Histogram != nil && !slices.Equal(a.Histogram.Quantiles, one.Histogram.Quantiles) {
				t.Errorf("%s %s%v: %v, the series %v", name, m.Name, a.Labels, a.Histogram.Quantiles, one.Histogram.Quantiles)
			}
		}
	}
}

func TestAggregatesAreNamed(t *testing.T) {
	r := build(t, summary.Options{By: []string{}}, replicas().Mark(0, "profiling"))
	if len(r.Warnings) != 1 || r.Warnings[0].Code != "gauges_not_aggregated" ||
		!strings.Contains(r.Warnings[0].Text, "1 gauge") {
		t.Errorf("warnings %v", r.Warnings)
	}
	f := newFake("http://a", "http://b")
	for i := range 2 {
		f.Scrape(0, float64(i), fmt.Sprintf("# TYPE h histogram\nh_bucket{le=\"1\"} %d\nh_bucket{le=\"+Inf\"} "+
			"%[1]d\nh_sum %[1]d\nh_count %[1]d\n", i))
		f.Scrape(1, float64(i), fmt.Sprintf("# TYPE h histogram\nh_bucket{le=\"2\"} %d\nh_bucket{le=\"+Inf\"} "+
			"%[1]d\nh_sum %[1]d\nh_count %[1]d\n", i))
	}
	r = build(t, summary.Options{By: []string{}}, f)
	if len(r.Aggregates) != 1 || r.Aggregates[0].Histogram != nil ||
		!strings.Contains(r.Aggregates[0].Refused, "bounds differ") {
		t.Errorf("aggregates of different buckets: %+v", r.Aggregates)
	}
	for _, by := range [][]string{{""}, {"a", "b", "a"}} {
		if _, err := tryBuild(summary.Options{By: by}, f); err == nil ||
			!strings.Contains(err.Error(), "aggregate by label") {
			t.Errorf("by %q: %v", by, err)
		}
	}
}
