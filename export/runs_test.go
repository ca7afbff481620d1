package export_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// realRun opens a recording of a real server and analyses it by default rules.
func realRun(t *testing.T, name string) (*rundb.Run, *summary.Run) {
	t.Helper()
	rec, err := rundb.Open(testkit.Path(t, "runs/"+name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rec.Close(); err != nil {
			t.Error(err)
		}
	})
	whole := time.Duration(0) // one of them was to have a warm-up, which its client did not know of
	r, err := summary.Build(t.Context(), []summary.Recording{rec}, summary.Options{Window: window.Ref{Warmup: &whole}})
	if err != nil {
		t.Fatal(err)
	}
	return rec, r
}

// truth is what the client of a recording knows, and what we make of it.
type truth struct {
	run  string
	what string
	want float64
	near float64 // relative
	ours func(r *summary.Run) float64
	// wrong is what we say today where that is wrong, and why. When it is mended the
	// test fails until both are removed.
	wrong float64
	why   string
}

const ()

// derivedOf finds a derived quantity of a target by a pair of labels.
func derivedOf(endpoint int, name string, labels ...string) func(*summary.Run) float64 {
	return func(r *summary.Run) float64 {
		for i := range r.Derived {
			d := &r.Derived[i]
			ok := d.Endpoint == endpoint && d.Name == name && d.Status.Defined()
			for k := 0; k < len(labels); k += 2 {
				v, _ := d.Labels.Get(labels[k])
				ok = ok && v == labels[k+1]
			}
			if ok {
				return d.Value
			}
		}
		return math.NaN()
	}
}

// seriesOf adds up what value says of the series of a family.
func seriesOf(family string, value func(s *summary.Series) float64) func(*summary.Run) float64 {
	return func(r *summary.Run) float64 {
		total := 0.0
		for i := range r.Metrics {
			for k := range r.Metrics[i].Series {
				if s := &r.Metrics[i].Series[k]; r.Metrics[i].Name == family {
					total += value(s)
				}
			}
		}
		return total
	}
}

func gain(s *summary.Series) float64  { return s.Counter.Total }
func count(s *summary.Series) float64 { return float64(s.Histogram.Count) }

func truths() []truth {
	const vllm, aiperf, triton, bentoml = "vllm-bench-rate4", "aiperf-rate4", "triton-steady", "bentoml-sequential"
	return []truth{
		{run: vllm, what: "requests", want: 200, ours: seriesOf("vllm:request_success", gain)},
		{run: vllm, what: "latencies", want: 200, ours: seriesOf("vllm:e2e_request_latency_seconds", count)},
		{run: vllm, what: "prompt tokens", want: 24026, ours: seriesOf("vllm:prompt_tokens", gain)},
		{run: vllm, what: "generated tokens", want: 9600, ours: seriesOf("vllm:generation_tokens", gain)},
		{run: vllm, what: "tokens a request", want: 48, ours: derivedOf(0, "osl_mean")},
		{run: vllm, what: "requests/s", want: 3.961, near: 0.01, ours: derivedOf(0, "request_rate")},
		{run: aiperf, what: "requests", want: 120, ours: seriesOf("vllm:request_success", gain)},
		{run: aiperf, what: "latencies", want: 120, ours: seriesOf("vllm:e2e_request_latency_seconds", count)},
		{run: aiperf, what: "tokens a request", want: 40, ours: derivedOf(0, "osl_mean")},
		{run: aiperf, what: "requests/s", want: 4.405, near: 0.01, ours: derivedOf(0, "request_rate")},
		{run: triton, what: "requests in the metrics", want: 3086, ours: seriesOf("nv_inference_request_success", gain)},
		{run: triton, what: "requests/s in the metrics", want: 3086 / 10.161, near: 0.01,
			ours: derivedOf(0, "request_rate", "model", "dyn", "version", "2")},
		{run: triton, what: "requests/s in the statistics", want: 3086 / 10.161, near: 0.01,
			ours: derivedOf(1, "triton_derived_request_rate", "model", "dyn", "version", "2")},
		{run: bentoml, what: "requests", want: 200, ours: seriesOf("bentoml_service_request", gain)},
		{run: bentoml, what: "durations", want: 200, ours: seriesOf("bentoml_service_request_duration_seconds", count)},
	}
}

// TestRealRuns compares what we say of recordings of real servers with what their
// clients counted.
func TestRealRuns(t *testing.T) {
	same := func(a, b, near float64) bool { return math.Abs(a-b) <= max(near, 1e-6)*math.Abs(b) }
	results := map[string]*summary.Run{}
	for _, c := range truths() {
		if results[c.run] == nil {
			_, results[c.run] = realRun(t, c.run)
		}
		got := c.ours(results[c.run])
		switch {
		case c.why == "" && !same(got, c.want, c.near):
			t.Errorf("%s: %s: got %v, want %v", c.run, c.what, got, c.want)
		case c.why != "" && same(got, c.want, c.near):
			t.Errorf("%s: %s: %v is right: remove %q from the table", c.run, c.what, got, c.why)
		case c.why != "" && !same(got, c.wrong, 0):
			t.Errorf("%s: %s: got %v, neither %v nor %v (%s)", c.run, c.what, got, c.want, c.wrong, c.why)
		}
	}
}

// TestRealRunExports writes every format of every recording, and reads the JSON back.
func TestRealRunExports(t *testing.T) {
	for _, name := range []string{"vllm-bench-rate4", "aiperf-rate4", "triton-steady", "bentoml-sequential"} {
		rec, r := realRun(t, name)
		files, err := export.Write(t.Context(), t.TempDir(), export.Formats(), r, []export.Recording{rec}, export.Options{})
		if err != nil || len(files) < len(export.Formats()) {
			t.Errorf("%s: wrote %v: %v", name, files, err)
		}
		var text bytes.Buffer
		if err := export.JSON(&text, r, export.Options{}); err != nil {
			t.Fatal(err)
		}
		back, _, err := export.ReadJSON(&text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if a, b := series(r), series(back); a == 0 || a != b {
			t.Errorf("%s: %d series, %d read back", name, a, b)
		}
		for _, c := range truths() {
			if a, b := c.ours(r), c.ours(back); c.run == name && !(math.Abs(a-b) <= 1e-12*math.Abs(a)) {
				t.Errorf("%s: %s: %v, %v read back", name, c.what, a, b)
			}
		}
		var lines bytes.Buffer
		if err := export.JSONL(t.Context(), &lines, r, []export.Recording{rec}, export.Options{}); err != nil {
			t.Fatal(err)
		}
		if got, want := bytes.Count(lines.Bytes(), []byte("\n")), polls(t, rec); got != want {
			t.Errorf("%s: JSONL has %d lines of %d polls", name, got, want)
		}
	}
}

func series(r *summary.Run) (n int) {
	for i := range r.Metrics {
		n += len(r.Metrics[i].Series)
	}
	return n
}

// polls counts those that were stored and are no duplicates.
func polls(t *testing.T, rec *rundb.Run) (n int) {
	t.Helper()
	for i := range rec.Targets() {
		for s, err := range rec.Snapshots(t.Context(), i) {
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains([]metric.Outcome{metric.OK, metric.Partial}, s.Outcome) && !s.Duplicate {
				n++
			}
		}
	}
	return n
}

// TestRealAIPerf reads the files that AIPerf 0.13.0 writes of each phase. Their client had 6 and 116 requests with a
// stream.
func TestRealAIPerf(t *testing.T) {
	for phase, want := range map[string]float64{"warmup": 6, "profiling": 116} {
		text := testkit.Data(t, "runs/aiperf-0.13.0-phases/phases/"+phase+"/server_metrics.json")
		r, doc, err := export.ReadJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", phase, err)
		}
		got := 0.0
		for _, m := range r.Metrics {
			for _, s := range m.Series {
				if kind, _ := s.Labels.Get("request_type"); m.Name == "dynamo_frontend_requests" && kind == "stream" {
					got += s.Counter.Total
				}
			}
		}
		if got != want || doc.Ours || r.Window.Phase != phase || len(r.Endpoints) != 3 {
			t.Errorf("%s: %v requests, want %v; %+v, %+v, %d endpoints", phase, got, want, doc, r.Window, len(r.Endpoints))
		}
		for _, wrong := range []string{`"schema_version": 2`, `"schema_version": "1"`, `"schema_version": null`} {
			other := bytes.Replace(text, []byte(`"schema_version": 1`), []byte(wrong), 1)
			if _, _, err := export.ReadJSON(bytes.NewReader(other)); err == nil || !strings.Contains(err.Error(), "schema") {
				t.Errorf("%s with %s: %v", phase, wrong, err)
			}
		}
	}
	none := `{"schema_version":1,"phase":{"phase_name":"p"},"data":null}`
	if _, _, err := export.ReadJSON(strings.NewReader(none)); err == nil || !strings.Contains(err.Error(), "nothing was") {
		t.Errorf("a phase without data: %v", err)
	}
}
