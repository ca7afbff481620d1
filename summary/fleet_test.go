package summary_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// pods is three vLLM servers of one model: two decode (b twice as busy as a) and
// one prefill, watched for 10 s. c was there for the second half only.
func pods() *fakeRun {
	f := newFake("http://a", "http://b", "http://c")
	for i, role := range []string{"decode", "decode", "prefill"} {
		f.Polled[i].Labels = metric.NewLabels(metric.Label{Name: "role", Value: role},
			metric.Label{Name: "job", Value: "pods"})
	}
	f.Polled[1].Name = "second"
	body := func(n, rate int, running, usage float64, latency float64) string {
		text := `# TYPE vllm:generation_tokens counter
vllm:generation_tokens{model_name="m",engine="0"} TOK
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m",engine="0"} RUN
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{model_name="m",engine="0"} USE
# TYPE vllm:e2e_request_latency_seconds histogram
vllm:e2e_request_latency_seconds_bucket{model_name="m",engine="0",le="1"} ONE
vllm:e2e_request_latency_seconds_bucket{model_name="m",engine="0",le="2"} N
vllm:e2e_request_latency_seconds_bucket{model_name="m",engine="0",le="+Inf"} N
vllm:e2e_request_latency_seconds_sum{model_name="m",engine="0"} SUM
vllm:e2e_request_latency_seconds_count{model_name="m",engine="0"} N
`
		one := n
		if latency > 1 {
			one = 0
		}
		return strings.NewReplacer("TOK", fmt.Sprint(n*rate), "RUN", fmt.Sprint(running), "USE", fmt.Sprint(usage),
			"ONE", fmt.Sprint(one), "SUM", fmt.Sprint(float64(n)*latency), "N", fmt.Sprint(n)).Replace(text)
	}
	for i := range 101 {
		at := float64(i) / 10
		f.Scrape(0, at, body(i, 10, 4, 0.2, 0.5))
		f.Scrape(1, at, body(i, 20, 8, 0.6, 1.5))
		if i >= 50 {
			f.Scrape(2, at, body(i, 40, 6, 0.9, 1.5))
		}
	}
	return f
}

// derivedOf has a line for each quantity of a name.
func derivedOf(list []summary.Derived, name string) (out []string) {
	for _, d := range list {
		if d.Name == name {
			out = append(out, fmt.Sprintf("%v %.4g %v", d.Labels, d.Shown, d.Status))
		}
	}
	return out
}

func TestFleet(t *testing.T) {
	r := build(t, summary.Options{By: []string{"role", "finished_reason"}, Slice: 5 * time.Second}, pods())
	if len(r.Combined) != 3 || r.Combined[0].Labels.Len() != 0 {
		t.Fatalf("%d of fleet, want all and two roles", len(r.Combined))
	}
	check := func(i int, labels string, endpoints []int, name string, want ...string) {
		t.Helper()
		f := r.Combined[i]
		if f.Labels.String() != labels || !slices.Equal(f.Endpoints, endpoints) {
			t.Errorf("fleet %d is %v of %v, want %v of %v", i, f.Labels, f.Endpoints, labels, endpoints)
		}
		if diff := cmp.Diff(want, derivedOf(f.Derived, name)); diff != "" {
			t.Errorf("%v %s: %s", f.Labels, name, diff)
		}
		for _, d := range f.Derived {
			if d.Endpoint != -1 {
				t.Errorf("%s says endpoint %d", d.Name, d.Endpoint)
			}
		}
	}
	// Little's law needs the sums: 4 + 8 running all the time, 6 for 4.9495 of the 9.9495 s that gauges stand for.
	check(0, "", []int{0, 1, 2}, "running_mean", `{model_name="m"} 14.98 ok`)
	check(1, `{role="decode"}`, []int{0, 1}, "running_mean", `{model_name="m"} 12 ok`)
	check(2, `{role="prefill"}`, []int{2}, "running_mean", `{model_name="m"} 6 ok`)
	if got := derivedOf(r.Derived, "running_mean"); len(got) != 3 {
		t.Errorf("by endpoint: %v", got)
	}
	if d := r.Combined[0].Derived[0]; len(d.Slices) != 2 || d.Slices[0].StartNS != r.Window.StartNS {
		t.Errorf("slices %+v, want two", d.Slices)
	}
}

// TestFleetOfOne checks that one endpoint is its own fleet, and that a server
// unknown to the catalog has none.
func TestFleetOfOne(t *testing.T) {
	one := pods()
	one.Polled = one.Polled[:1]
	r := build(t, summary.Options{By: []string{"endpoint"}}, one)
	if len(r.Combined) != 1 || len(r.Combined[0].Derived) != len(r.Derived) || len(r.Derived) == 0 {
		t.Errorf("%d in the fleet, %d by endpoint", len(r.Combined), len(r.Derived))
	}
	if r := build(t, summary.Options{}, replicas()); r.Combined != nil || r.Latencies != nil {
		t.Errorf("fleet %v, latencies %v of an unknown server", r.Combined, r.Latencies)
	}
}

func TestLatencies(t *testing.T) {
	r := build(t, summary.Options{Quantiles: []float64{0.5}}, pods())
	if len(r.Latencies) != 1 {
		t.Fatalf("%d latencies, want 1", len(r.Latencies))
	}
	l := r.Latencies[0]
	// 100 of 0.5 s, 100 of 1.5 s, and 50 of 1.5 s.
	if l.ID != "e2e_s" || l.Engine != "vllm" || l.Series != 3 || l.Histogram == nil || l.Histogram.Count != 250 ||
		math.Abs(l.Histogram.Avg-1.1) > 1e-9 {
		t.Errorf("got %+v %+v", l, l.Histogram)
	}
	if q := l.Histogram.Quantiles; len(q) != 1 || q[0].Low > 1.5 || q[0].High < 1.5 {
		t.Errorf("median %+v does not hold 1.5", q)
	}
	for _, m := range r.Metrics {
		for _, s := range m.Series {
			if s.Histogram != nil && s.Histogram.Gain != nil {
				t.Errorf("%s keeps what only aggregation needs", m.Name)
			}
		}
	}
}

func TestGaugeAggregates(t *testing.T) {
	check := func(by []string, want ...string) {
		t.Helper()
		var got []string
		r := build(t, summary.Options{By: by}, pods())
		for _, a := range r.Aggregates {
			if g := a.Gauge; g != nil {
				got = append(got, fmt.Sprintf("%s%v %s of %d: %.3g in [%g, %g]", r.Metrics[a.Metric].Name, a.Labels, g.Rule,
					a.Series, g.TimeAvg, g.Min, g.Max))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("by %v: %s", by, diff)
		}
	}
	check([]string{}, "vllm:kv_cache_usage_perc max of 3: 0.9 in [0.2, 0.9]",
		"vllm:num_requests_running sum of 3: 15 in [12, 18]")
	check([]string{"role"}, `vllm:kv_cache_usage_perc{role="decode"} max of 2: 0.6 in [0.2, 0.6]`,
		`vllm:kv_cache_usage_perc{role="prefill"} max of 1: 0.9 in [0.9, 0.9]`,
		`vllm:num_requests_running{role="decode"} sum of 2: 12 in [12, 12]`,
		`vllm:num_requests_running{role="prefill"} sum of 1: 6 in [6, 6]`)
	check([]string{"target", "job"}, `vllm:kv_cache_usage_perc{job="pods",target="http://a"} max of 1: 0.2 in [0.2, 0.2]`,
		`vllm:kv_cache_usage_perc{job="pods",target="http://c"} max of 1: 0.9 in [0.9, 0.9]`,
		`vllm:kv_cache_usage_perc{job="pods",target="second"} max of 1: 0.6 in [0.6, 0.6]`,
		`vllm:num_requests_running{job="pods",target="http://a"} sum of 1: 4 in [4, 4]`,
		`vllm:num_requests_running{job="pods",target="http://c"} sum of 1: 6 in [6, 6]`,
		`vllm:num_requests_running{job="pods",target="second"} sum of 1: 8 in [8, 8]`)
}

func TestSkew(t *testing.T) {
	r := build(t, summary.Options{By: []string{}}, pods())
	for _, a := range r.Aggregates {
		s := a.Skew
		want := map[string]float64{"vllm:generation_tokens": 2000 / (5000.0 / 3),
			"vllm:e2e_request_latency_seconds": 100 / (250.0 / 3)}[r.Metrics[a.Metric].Name]
		if want == 0 {
			continue
		}
		if s == nil || s.Replicas != 3 || math.Abs(s.Ratio-want) > 1e-9 || a.Metric == 2 && s.Endpoint != 1 {
			t.Errorf("%s: skew %+v, want %v of 3", r.Metrics[a.Metric].Name, s, want)
		}
	}
	alone := pods()
	alone.Polled = alone.Polled[:1]
	for _, a := range build(t, summary.Options{By: []string{}}, alone).Aggregates {
		if a.Skew != nil {
			t.Errorf("%+v: one replica has a skew", a)
		}
	}
}

// TestNothingCountsTwice has a family in which ranks repeat each other, one with a
// total beside its parts, and one whose rows hold each other.
func TestNothingCountsTwice(t *testing.T) {
	f := newFake("http://a", "http://b")
	for i := range 3 {
		for target := range 2 {
			f.Scrape(target, float64(i), strings.ReplaceAll(`# TYPE sg:tokens counter
sg:tokens{tp_rank="0",pp_rank="0"} N
sg:tokens{tp_rank="1",pp_rank="0"} N
sg:tokens{tp_rank="0",pp_rank="1"} N
sg:tokens{tp_rank="1",pp_rank="1"} N
# TYPE lone counter
lone{tp_rank="3"} N
# TYPE queued counter
queued{priority=""} N
queued{priority="7"} N
# TYPE nv_inference_request_success counter
nv_inference_request_success{model="ensemble",version="1"} N
nv_inference_request_success{model="step",version="1"} N
`, "N", fmt.Sprint(i)))
		}
	}
	check := func(by []string, want ...string) {
		t.Helper()
		var got []string
		r := build(t, summary.Options{By: by}, f)
		for _, a := range r.Aggregates {
			got = append(got, fmt.Sprintf("%s%v total %g of %d, %d left out", r.Metrics[a.Metric].Name, a.Labels,
				a.Counter.Total, a.Series, a.LeftOut))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("by %v: %s", by, diff)
		}
	}
	check([]string{}, `lone total 4 of 2, 0 left out`,
		`nv_inference_request_success{model="ensemble"} total 4 of 2, 0 left out`,
		`nv_inference_request_success{model="step"} total 4 of 2, 0 left out`,
		`queued total 4 of 2, 2 left out`, `sg:tokens total 4 of 2, 6 left out`)
	check([]string{"tp_rank"}, `lone{tp_rank="3"} total 4 of 2, 0 left out`,
		`nv_inference_request_success{model="ensemble"} total 4 of 2, 0 left out`,
		`nv_inference_request_success{model="step"} total 4 of 2, 0 left out`,
		`queued total 4 of 2, 2 left out`, `sg:tokens{tp_rank="0"} total 4 of 2, 2 left out`,
		`sg:tokens{tp_rank="1"} total 4 of 2, 2 left out`)
	check([]string{"version", "priority"}, `lone total 4 of 2, 0 left out`,
		`nv_inference_request_success{model="ensemble",version="1"} total 4 of 2, 0 left out`,
		`nv_inference_request_success{model="step",version="1"} total 4 of 2, 0 left out`,
		`queued{priority=""} total 4 of 2, 0 left out`, `queued{priority="7"} total 4 of 2, 0 left out`,
		`sg:tokens total 4 of 2, 6 left out`)
}

// TestOmniBesideVLLM: a vLLM server that is watched beside a vLLM-Omni one is no
// stage of its pipeline, and the stages are no servers of vLLM.
func TestOmniBesideVLLM(t *testing.T) {
	const engines = "# TYPE vllm:request_success_total counter\n# TYPE vllm:e2e_request_latency_seconds histogram\n"
	const omni = "# TYPE vllm_omni:requests_success_total counter\n# TYPE vllm_omni:e2e_request_latency_s histogram\n"
	server := func(n float64) string {
		return engines +
			fmt.Sprintf("vllm:request_success_total{engine=\"0\",finished_reason=\"stop\",model_name=\"plain\"} %v\n", n) +
			fmt.Sprintf("vllm:e2e_request_latency_seconds_bucket{engine=\"0\",model_name=\"plain\",le=\"+Inf\"} "+
				"%v\nvllm:e2e_request_latency_seconds_sum{engine=\"0\",model_name=\"plain\"} "+
				"%v\nvllm:e2e_request_latency_seconds_count{engine=\"0\",model_name=\"plain\"} %v\n", n, n, n)
	}
	pipeline := func(n float64) string {
		return engines + omni +
			fmt.Sprintf("vllm_omni:requests_success_total{finished_reason=\"stop\",model_name=\"omni\"} %v\n"+
				"vllm:request_success_total{stage=\"0\",replica=\"0\","+
				"finished_reason=\"stop\",model_name=\"omni\"} %v\n", n, n) +
			fmt.Sprintf("vllm_omni:e2e_request_latency_s_bucket{model_name=\"omni\",le=\"+Inf\"} "+
				"%v\nvllm_omni:e2e_request_latency_s_sum{model_name=\"omni\"} "+
				"%v\nvllm_omni:e2e_request_latency_s_count{model_name=\"omni\"} %v\n", n, 2*n, n) +
			fmt.Sprintf("vllm:e2e_request_latency_seconds_bucket{stage=\"0\",replica=\"0\",model_name=\"omni\",le=\"+Inf\"} "+
				"%v\nvllm:e2e_request_latency_seconds_sum{stage=\"0\",replica=\"0\",model_name=\"omni\"} "+
				"%v\nvllm:e2e_request_latency_seconds_count{stage=\"0\",replica=\"0\",model_name=\"omni\"} %v\n", n, n, n)
	}
	f := newFake("http://plain/metrics", "http://omni/metrics").Mark(0, "profiling").Mark(10, "end")
	for at := range 11 {
		f.Scrape(0, float64(at), server(float64(30*at)))
		f.Scrape(1, float64(at), pipeline(float64(10*at)))
	}
	r, err := summary.Build(t.Context(), []summary.Recording{f}, summary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, d := range r.Combined[0].Derived {
		model, _ := d.Labels.Get("model_name")
		stage, _ := d.Labels.Get("stage")
		seen[d.Pack+" "+d.Name] = true
		if d.Pack == catalog.VLLMPack && (model == "omni" || stage != "") {
			t.Errorf("vLLM's %s is of the pipeline: %s", d.Name, d.Labels)
		}
		if d.Pack == catalog.OmniPack && (model == "plain" || strings.HasPrefix(stage, "engine")) {
			t.Errorf("vLLM-Omni's %s is of the other server: %s", d.Name, d.Labels)
		}
		if d.Pack == catalog.VLLMPack && d.Name == "request_rate" && math.Abs(d.Value-30) > 1e-9 {
			t.Errorf("vLLM's request rate is %v, want 30", d.Value)
		}
	}
	if !seen["vllm request_rate"] || !seen["vllm-omni omni_request_rate"] {
		t.Errorf("not both engines are explained: %v", seen)
	}
	for _, l := range r.Latencies {
		if _, staged := l.Labels.Get("stage"); staged != (l.Engine == "vllm-omni") && l.ID == "e2e_s" &&
			strings.HasPrefix(r.Metrics[l.Metric].Name, "vllm:e2e") {
			t.Errorf("latency %s %s is called one of %s", l.ID, l.Labels, l.Engine)
		}
	}
}
