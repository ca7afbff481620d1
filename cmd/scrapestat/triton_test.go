package main

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/source/triton"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// startTriton starts a simulated Triton server for the scripts: TRITON is its
// Prometheus and HTTP port, TRITON_GRPC the gRPC port of the same server.
func startTriton(t *testing.T, env map[string]string) {
	t.Helper()
	sim, err := simulate.New("triton", simulate.Options{Rate: 60, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(sim)
	t.Cleanup(srv.Close)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	env["TRITON"], env["TRITON_GRPC"] = strings.TrimPrefix(srv.URL, "http://"), ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- sim.ServeGRPC(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// tritonFixture returns an answer of the statistics extension.
func tritonFixture(t *testing.T, name string) string {
	t.Helper()
	return string(testkit.Data(t, "fixtures/triton/"+name))
}

// tritonLoad is the statistics of a real server after some load.
func tritonLoad(t *testing.T) string {
	t.Helper()
	return string(testkit.Data(t, "bodies/triton-stats-load.json"))
}

// noModels is the baseline zero.
const noModels = `{"model_stats":[]}`

// tritonRun records answers ten seconds apart and analyses the recording; the
// whole of it is the window.
type tritonRun struct {
	t *testing.T
	*summary.Run
}

func newTritonRun(t *testing.T, o triton.Options, so summary.Options, bodies ...string) tritonRun {
	t.Helper()
	dir := t.TempDir()
	db, err := rundb.Create(dir, rundb.Meta{ID: "t", OriginNS: 18e17}, rundb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.AddTarget(metric.Target{URL: "triton+http://h:8000", Source: "triton"}); err != nil {
		t.Fatal(err)
	}
	d, err := triton.NewDecoder(o)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range bodies {
		s := metric.Snapshot{Seq: uint64(i), SentNS: 18e17 + int64(i)*10e9}
		d.JSON([]byte(b), &s)
		if s.Outcome != metric.OK {
			t.Fatalf("body %d: %v %s", i, s.Outcome, s.Err)
		}
		if err := db.Record(&s); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	rec, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	so.Window.What = window.Recording // two polls tell nothing of when between them the load was
	r, err := summary.Build(t.Context(), []summary.Recording{rec}, so)
	if err != nil {
		t.Fatal(err)
	}
	return tritonRun{t, r}
}

// find returns a derived quantity; labels are pairs that it must have.
func (r tritonRun) find(name string, labels ...string) *summary.Derived {
	for i := range r.Derived {
		d := &r.Derived[i]
		if d.Name != "triton_"+name {
			continue
		}
		has := true
		for k := 0; k < len(labels); k += 2 {
			v, _ := d.Labels.Get(labels[k])
			has = has && v == labels[k+1]
		}
		if has {
			return d
		}
	}
	return nil
}

// want checks a derived quantity: its value times factor, as printed.
func (r tritonRun) want(name string, factor float64, printed string, labels ...string) {
	r.t.Helper()
	d := r.find(name, labels...)
	if d == nil || !d.Status.Defined() {
		r.t.Errorf("%s %v: there is none (%+v), want %s", name, labels, d, printed)
		return
	}
	decimals := 0
	if _, frac, ok := strings.Cut(printed, "."); ok {
		decimals = len(frac)
	}
	if got := fmt.Sprintf("%.*f", decimals, d.Value*factor); got != printed {
		r.t.Errorf("%s %v: got %s, want %s", name, labels, got, printed)
	}
}

// wantStatus checks that a quantity has no value, and why; "" is that it is not
// listed at all.
func (r tritonRun) wantStatus(name, status string, labels ...string) {
	r.t.Helper()
	got := ""
	if d := r.find(name, labels...); d != nil {
		got = d.Status.String()
		if d.Value != 0 {
			r.t.Errorf("%s: value %v", name, d.Value)
		}
	}
	if got != status {
		r.t.Errorf("%s %v: status %q, want %q", name, labels, got, status)
	}
}

const us = 1e6

// T1: averages and perf_analyzer's integers of a real server, baseline zero.
func TestT1Averages(t *testing.T) {
	r := newTritonRun(t, triton.Options{}, summary.Options{}, noModels, tritonLoad(t))
	dyn := []string{"model", "dyn", "version", "1"}
	r.want("derived_avg_request_seconds", us, "16255.857", dyn...)
	r.want("derived_avg_queue_seconds", us, "8100.462", dyn...)
	r.want("derived_avg_compute_input_seconds", us, "30.736", dyn...)
	r.want("derived_avg_compute_infer_seconds", us, "7993.161", dyn...)
	r.want("derived_avg_compute_output_seconds", us, "126.272", dyn...)
	r.want("derived_avg_overhead_seconds", us, "5.227", dyn...)
	// perf_analyzer takes the version with most requests.
	for what, want := range map[string]string{"request": "13114", "queue": "3488", "compute_input": "35",
		"compute_infer": "8986", "compute_output": "598", "overhead": "6"} {
		r.want("pa_"+what+"_us", 1, want, "model", "dyn", "version", "2")
	}
	r.want("derived_invariant_violations", 1, "0", dyn...)
	r.wantStatus("derived_avg_cache_hit_seconds", "zero_denominator", dyn...)
	r.wantStatus("derived_avg_failure_seconds", "zero_denominator", dyn...)
	r.wantStatus("derived_avg_combined_seconds", "", dyn...)
	r.want("derived_avg_request_seconds", us, "13114.222", "model", "dyn", "version", "2")
	r.want("derived_avg_overhead_seconds", us, "5.683", "model", "dyn", "version", "2")
	r.want("derived_avg_request_seconds", us, "10474.874", "model", "cached")
	r.want("derived_avg_cache_hit_seconds", us, "9.613", "model", "cached")
	r.want("derived_avg_cache_miss_seconds", us, "22.840", "model", "cached")
	r.want("derived_avg_compute_infer_seconds", us, "12148.765", "model", "ens")
}

// T2: the distribution of batch sizes.
func TestT2Batches(t *testing.T) {
	r := newTritonRun(t, triton.Options{}, summary.Options{}, noModels, tritonLoad(t))
	dyn := []string{"model", "dyn", "version", "1"}
	r.want("derived_avg_batch_size", 1, "4.771277", dyn...)
	for p, want := range map[string][2]string{"50": {"4", "8"}, "90": {"10", "12"}, "99": {"14", "16"}} {
		r.want("derived_batch_size_p"+p, 1, want[0], append(dyn, "weight", "execution")...)
		r.want("derived_batch_size_p"+p, 1, want[1], append(dyn, "weight", "inference")...)
	}
	for i, want := range []string{"19965.123", "2166.051", "1312.981", "1144.340", "985.139"} {
		r.want("derived_infer_seconds_per_inference", us, want, append(dyn, "batch_size", fmt.Sprint(i+1))...)
	}
	r.want("derived_avg_batch_size", 1, "2.903846", "model", "ens")
}

// T3: a window with cache and failures, and the same as slices.
func TestT3Cache(t *testing.T) {
	r := newTritonRun(t, triton.Options{}, summary.Options{Slice: 10e9}, tritonFixture(t, "pair_cache_t0.json"),
		tritonFixture(t, "pair_cache_t1_plus10s.json"))
	for what, want := range map[string]string{"request": "25000", "queue": "3000", "compute_input": "1000",
		"compute_infer": "20000", "compute_output": "500",
		"cache_hit": "200", "cache_miss": "1200", "combined": "18200", "overhead": "3800", "failure": "50000"} {
		r.want("derived_avg_"+what+"_seconds", us, want)
	}
	for what, want := range map[string]string{"cache_hit_ratio": "0.2", "avg_batch_size": "8", "request_rate": "100",
		"inference_rate": "320", "execution_rate": "40",
		"mean_inflight": "2.5", "mean_queue_depth": "0.3", "busy_instances": "0.86"} {
		r.want("derived_"+what, 1, want)
	}
	if d := r.find("derived_failure_ratio"); d == nil || d.Numerator != 10 || d.Denominator != 1010 ||
		math.Abs(d.Value-10.0/1010) > 1e-15 {
		t.Errorf("failure ratio: %+v", d)
	}
	r.want("pa_cache_miss_us", 1, "1200")
	r.want("pa_overhead_us", 1, "3800")
	d := r.find("derived_avg_queue_seconds")
	if len(d.Slices) != 1 || math.Abs(d.Slices[0].Value-0.003) > 1e-12 || d.Slices[0].Status != catalog.OK {
		t.Errorf("slices of the queue average: %+v", d.Slices)
	}
}

// T4: strings for numbers, zeros left out.
func TestT4Averages(t *testing.T) {
	r := newTritonRun(t, triton.Options{}, summary.Options{}, noModels, tritonFixture(t, "protojson_strings.json"))
	r.want("derived_avg_request_seconds", us, "20143.321")
	r.want("pa_request_us", 1, "20143")
	r.want("derived_failure_ratio", 1, "0")
	r.wantStatus("derived_batch_size_p50", "")
}

// T5: nothing but a failure.
func TestT5Averages(t *testing.T) {
	r := newTritonRun(t, triton.Options{}, summary.Options{}, noModels, tritonFixture(t, "failonly.json"))
	r.want("derived_avg_failure_seconds", us, "3141.593")
	r.wantStatus("derived_avg_request_seconds", "zero_denominator")
	r.wantStatus("derived_avg_overhead_seconds", "zero_denominator")
	r.wantStatus("derived_avg_batch_size", "zero_denominator")
	r.wantStatus("derived_avg_cache_hit_seconds", "")
}

// T7: responses of a decoupled model.
func TestT7Responses(t *testing.T) {
	r := newTritonRun(t, triton.Options{}, summary.Options{}, noModels, tritonFixture(t, "decoupled_response_stats.json"))
	const ms = 1e3
	r.want("derived_avg_response_seconds", ms, "600.2155305", "response", "0", "stat", "success")
	r.want("derived_avg_response_seconds", ms, "600.429588", "response", "0", "stat", "fail")
	r.want("derived_avg_response_seconds", ms, "400.171478", "response", "0", "stat", "compute_infer")
	r.want("derived_avg_response_seconds", ms, "200.115405", "response", "0", "stat", "compute_output")
	r.want("derived_avg_response_seconds", ms, "400.000000", "response", "10", "stat", "cancel")
	r.wantStatus("derived_avg_response_seconds", "", "response", "0", "stat", "cancel")
	r.want("derived_first_response_seconds", ms, "600.2155305")
	r.want("derived_next_response_seconds", ms, "600.0918755") // (600183751 + 600000000) / 2 ns
	var order []string
	for _, d := range r.Derived {
		if key, ok := d.Labels.Get("response"); ok && !slices.Contains(order, key) {
			order = append(order, key)
		}
	}
	if !slices.Equal(order, []string{"0", "2", "10"}) {
		t.Errorf("order of responses: %v", order)
	}
	if d := r.find("derived_invariant_violations"); d == nil || d.Value == 0 {
		t.Error("the file is said to break the batch invariants")
	}
}

// T8: a reload. Counters of the model restart together, those that did not fall
// included.
func TestT8Reload(t *testing.T) {
	answer := func(success, queueNS int) string {
		return fmt.Sprintf(`{"model_stats":[{"name":"m","version":"1","last_inference":5,"inference_count":%d,`+
			`"execution_count":%d,"inference_stats":{`+
			`"success":{"count":%d,"ns":%d},"fail":{"count":0,"ns":0},"queue":{"count":%d,"ns":%d}}}]}`, success, success,
			success, success*1000, success, queueNS)
	}
	r := newTritonRun(t, triton.Options{}, summary.Options{}, answer(1000, 10), answer(1100, 20), answer(40, 70),
		answer(60, 74), answer(80, 78), answer(90, 80))
	for _, m := range r.Metrics {
		for _, s := range m.Series {
			if s.Counter == nil {
				continue
			}
			stat, _ := s.Labels.Get("stat")
			want := map[string]uint64{"success": 190, "queue": 190, "fail": 0}[stat]
			switch m.Name {
			case "triton_stats_requests_total":
			case "triton_stats_request_duration_nanoseconds_total":
				want = map[string]uint64{"success": 190000, "queue": 10 + 80, "fail": 0}[stat]
			default:
				continue
			}
			if !s.Counter.HasExact || s.Counter.Exact != want || s.Resets != 1 {
				t.Errorf("%s %s: %d with %d resets, want %d with 1", m.Name, stat, s.Counter.Exact, s.Resets, want)
			}
		}
	}
	r.want("derived_resets", 1, "1")
	if d := r.find("derived_avg_request_seconds"); d.Status != catalog.ResetCorrected || d.Value*1e6 != 1 {
		t.Errorf("average request: %+v", d)
	}
}

// An ensemble: exact, and as perf_analyzer adds it up. Model b is called three
// times for each request.
func TestTritonEnsemble(t *testing.T) {
	entry := func(name string, count, requestNS, queueNS, inferNS int) string {
		return fmt.Sprintf(`{"name":%q,"version":"1","last_inference":5,"inference_count":%d,"execution_count":%d,`+
			`"inference_stats":{"success":{"count":%d,"ns":%d},`+
			`"fail":{"count":0,"ns":0},"queue":{"count":%d,"ns":%d},"compute_input":{"count":%d,"ns":0},"compute_infer":{`+
			`"count":%d,"ns":%d},"compute_output":{"count":%d,"ns":0}}}`,
			name, count, count, count, requestNS, count, queueNS, count, count, inferNS, count)
	}
	body := `{"model_stats":[` + entry("e", 10, 10*5e6, 10, 10*3e6) + "," + entry("a", 10, 10*2e6, 10*4e5, 10*1e6) + "," +
		entry("b", 30, 30*1e6, 30*1e5, 30*6e5) + `]}`
	o := triton.Options{Ensembles: map[string][]string{"e": {"a", "b", "b", "b"}}}
	r := newTritonRun(t, o, summary.Options{}, noModels, body)
	r.want("derived_ensemble_queue_seconds", us, "700", "method", "exact")     // 400 + 3 x 100
	r.want("derived_ensemble_queue_seconds", us, "500", "method", "pa_compat") // 400 + 100
	r.want("derived_ensemble_compute_infer_seconds", us, "2800", "method", "exact")
	r.want("derived_ensemble_compute_infer_seconds", us, "1600", "method", "pa_compat")
	r.want("pa_queue_us", 1, "500", "model", "e")
	r.want("pa_request_us", 1, "5000", "model", "e")
	r.want("pa_overhead_us", 1, "2900", "model", "e")
	if d := r.find("derived_ensemble_queue_seconds"); len(d.Flags) != 0 {
		t.Errorf("flags %v", d.Flags)
	}
	// Model b also serves 20 requests of others.
	shared := strings.Replace(body, entry("b", 30, 30*1e6, 30*1e5, 30*6e5), entry("b", 50, 50*1e6, 50*1e5, 50*6e5), 1)
	if d := newTritonRun(t, o, summary.Options{}, noModels,
		shared).find("derived_ensemble_queue_seconds"); !slices.Contains(d.Flags, "shared_steps") {
		t.Errorf("flags %v", d.Flags)
	}
	// A composing model without statistics makes it missing, not small.
	alone := `{"model_stats":[` + entry("e", 10, 10*5e6, 10, 10*3e6) + "," + entry("a", 10, 10*2e6, 10*4e5, 10*1e6) + `]}`
	newTritonRun(t, o, summary.Options{}, noModels, alone).wantStatus("derived_ensemble_queue_seconds", "missing")
}

// One of two models is loaded again: it counts from zero, the other goes on, and one line tells of it.
func TestTritonReloadOfOne(t *testing.T) {
	entry := func(name string, count int) string {
		return fmt.Sprintf(`{"name":%q,"version":"1","last_inference":5,"inference_count":%[2]d,"execution_count":%[2]d,`+
			`"inference_stats":{"success":{"count":%[2]d,"ns":%[2]d000},"fail":{"count":0,"ns":0},`+
			`"queue":{"count":%[2]d,"ns":%[2]d}}}`, name, count)
	}
	body := func(m, n int) string { return `{"model_stats":[` + entry("m", m) + "," + entry("n", n) + `]}` }
	r := newTritonRun(t, triton.Options{}, summary.Options{}, body(1000, 5), body(1100, 10), body(40, 15), body(60, 20),
		body(90, 30))
	r.want("derived_request_rate", 1, "4.75", "model", "m") // 100 and 90 in 40 s
	r.want("derived_request_rate", 1, "0.625", "model", "n")
	r.want("derived_resets", 1, "1", "model", "m")
	r.want("derived_resets", 1, "0", "model", "n")
	if d := r.find("derived_avg_request_seconds", "model", "n"); d.Status != catalog.OK {
		t.Errorf("the other model is %v", d.Status)
	}
	var b strings.Builder
	if err := report.Text(&b, r.Run, report.Options{All: true}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "counter_reset"); n != 1 ||
		!strings.Contains(b.String(), `8 series of {model="m",version="1"}: counter_reset`) {
		t.Errorf("%d lines of the reload in\n%s", n, b.String())
	}
}

// An ensemble by the versions it calls: 20 ms a request, of which 5 are in version 1 of dyn and 4 in the newest post.
// Version 2 of dyn, which serves others ten times as often, is no part of it.
func TestTritonEnsembleVersions(t *testing.T) {
	entry := func(name, version string, count, requestUS, queueUS, inferUS int) string {
		return fmt.Sprintf(`{"name":%q,"version":%q,"last_inference":5,"inference_count":%[3]d,"execution_count":%[3]d,`+
			`"inference_stats":{"success":{"count":%[3]d,"ns":%[4]d},"fail":{"count":0,"ns":0},`+
			`"queue":{"count":%[3]d,"ns":%[5]d},"compute_input":{"count":%[3]d,"ns":0},`+
			`"compute_infer":{"count":%[3]d,"ns":%[6]d},"compute_output":{"count":%[3]d,"ns":0}}}`,
			name, version, count, count*requestUS*1000, count*queueUS*1000, count*inferUS*1000)
	}
	body := func(post int) string {
		return `{"model_stats":[` + strings.Join([]string{entry("e", "1", 10, 20000, 5, 6900),
			entry("dyn", "1", 10, 5100, 1000, 4000), entry("dyn", "2", 100, 9000, 7000, 1900),
			entry("post", "9", 5, 90000, 40000, 40000), entry("post", "10", post, 4200, 1000, 3000)}, ",") + `]}`
	}
	// Polls of before, as the versions of dyn had requests then.
	before := `{"model_stats":[` + strings.Join([]string{entry("e", "1", 0, 0, 0, 0), entry("dyn", "1", 0, 0, 0, 0),
		entry("dyn", "2", 0, 0, 0, 0), entry("post", "9", 5, 90000, 40000, 40000), entry("post", "10", 0, 0, 0, 0)}, ",") +
		`]}`
	o := triton.Options{Ensembles: map[string][]string{"e": {"dyn/1", "post"}}}
	r := newTritonRun(t, o, summary.Options{}, before, body(10))
	r.want("derived_ensemble_overhead_seconds", us, "11000", "method", "exact")
	r.want("derived_ensemble_queue_seconds", us, "2000", "method", "exact")
	r.want("derived_ensemble_compute_infer_seconds", us, "7000", "method", "exact")
	r.want("derived_ensemble_queue_seconds", us, "8000", "method", "pa_compat") // of dyn version 2
	if d := r.find("derived_ensemble_overhead_seconds"); d.Status != catalog.OK || len(d.Flags) > 0 {
		t.Errorf("overhead: %v %v", d.Status, d.Flags)
	}
	// A composing model that serves others too has a share by its calls, which is an estimate.
	r = newTritonRun(t, o, summary.Options{}, before, body(40))
	r.want("derived_ensemble_overhead_seconds", us, "11000", "method", "exact")
	if d := r.find("derived_ensemble_overhead_seconds"); d.Status != catalog.Estimate ||
		!slices.Equal(d.Flags, []string{"shared_steps"}) {
		t.Errorf("shared: %v %v", d.Status, d.Flags)
	}
}

// A real server with a sequence batcher breaks no invariant, though a batch of it has empty slots; too few slots do,
// and a stretch with failures tells nothing.
func TestTritonInvariants(t *testing.T) {
	violations := func(bodies ...string) string {
		r := newTritonRun(t, triton.Options{}, summary.Options{}, bodies...)
		text := ""
		for i := range r.Derived {
			if d := &r.Derived[i]; d.Name == "triton_derived_invariant_violations" {
				text += fmt.Sprintf("%s %v %v; ", d.Status, d.Value, d.Flags)
			}
		}
		return text
	}
	idle := string(testkit.Data(t, "bodies/triton-stats-idle.json"))
	if got := violations(idle, tritonLoad(t)); got != strings.Repeat("ok 0 []; ", 6) {
		t.Errorf("real server: %s", got)
	}
	few := func(fail int) string {
		return fmt.Sprintf(`{"model_stats":[{"name":"m","version":"1","inference_count":100,"execution_count":40,`+
			`"inference_stats":{"success":{"count":100,"ns":1000},"fail":{"count":%d,"ns":0},"queue":{"count":100,"ns":10}},`+
			`"batch_stats":[{"batch_size":2,"compute_infer":{"count":40,"ns":10}}]}]}`, fail)
	}
	if got := violations(noModels, few(0)); got != "ok 1 []; " {
		t.Errorf("80 slots of 100 inferences: %s", got)
	}
	if got := violations(noModels, few(1)); got != "missing 0 [failures]; " {
		t.Errorf("with failures: %s", got)
	}
}

// Several versions: perf_analyzer's rule takes the one whose queue grew most, and
// all are there.
func TestTritonVersions(t *testing.T) {
	entry := func(version string, count int) string {
		return fmt.Sprintf(`{"name":"m","version":%q,"inference_count":%d,"execution_count":%d,"inference_stats":{`+
			`"success":{"count":%d,"ns":%d},"fail":{"count":0,"ns":0},`+
			`"queue":{"count":%d,"ns":0},"compute_input":{"count":%d,"ns":0},"compute_infer":{"count":%d,"ns":0},`+
			`"compute_output":{"count":%d,"ns":0}}}`,
			version, count, count, count, 1000*count*len(version), count, count, count, count)
	}
	r := newTritonRun(t, triton.Options{}, summary.Options{}, noModels, `{"model_stats":[`+entry("1", 5)+","+entry("22",
		7)+`]}`)
	r.want("pa_request_us", 1, "2")
	d := r.find("pa_request_us")
	if v, _ := d.Labels.Get("version"); v != "22" || !slices.Contains(d.Flags, "several_versions") {
		t.Errorf("perf_analyzer's version is %s, flags %v", v, d.Flags)
	}
	r.want("derived_avg_request_seconds", us, "1", "version", "1")
	r.want("derived_avg_request_seconds", us, "2", "version", "22")
}

// A duration that underflowed is kept and flagged; an overhead below zero keeps
// its value and is shown as 0.
func TestTritonDoubts(t *testing.T) {
	body := `{"model_stats":[{"name":"m","version":"1","inference_count":1,"execution_count":1,"inference_stats":{` +
		`"success":{"count":1,"ns":18446744073709551000},` +
		`"fail":{"count":0,"ns":0},"queue":{"count":1,"ns":5}}},{"name":"n","version":"1","inference_count":1,` +
		`"execution_count":1,"inference_stats":{"success":{"count":1,"ns":1000},` +
		`"fail":{"count":0,"ns":0},"queue":{"count":1,"ns":900},"compute_input":{"count":1,"ns":100},"compute_infer":{` +
		`"count":1,"ns":200},"compute_output":{"count":1,"ns":0}}}]}`
	r := newTritonRun(t, triton.Options{}, summary.Options{}, noModels, body)
	if d := r.find("derived_avg_request_seconds", "model", "m"); !slices.Contains(d.Flags, "implausible") {
		t.Errorf("flags %v", d.Flags)
	}
	r.want("derived_implausible", 1, "1", "model", "m")
	if d := r.find("derived_avg_overhead_seconds", "model", "n"); math.Abs(d.Value+2e-7) > 1e-15 || d.Shown != 0 ||
		!slices.Contains(d.Flags, "negative") {
		t.Errorf("overhead %+v", d)
	}
}
