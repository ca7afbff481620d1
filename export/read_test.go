package export_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

func read(t testing.TB, text string) (*summary.Run, export.Document) {
	t.Helper()
	r, d, err := export.ReadJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return r, d
}

const aiperfDoc = `{"schema_version":"1.1","aiperf_version":"0.13.0","benchmark_id":"b1",
"summary":{"endpoints_configured":["http://a/m"],"endpoints_successful":["http://a/m"],
  "start_time":"2023-11-14T22:13:20","end_time":"2023-11-14T22:13:30.5",
 "endpoint_info":{"http://a/m":{"total_fetches":3,"median_update_interval_ms":333.5}},
 "phase_time_ranges":{"profiling":{"start_ns":5,"end_ns":9},"warmup":{"start_ns":1,"end_ns":5}}},
"metrics_phase":"profiling","metrics":{
 "c":{"type":"counter","description":"C.","series":[{"endpoint_url":"http://a/m","labels":{"k":"v"},
  "stats":{"total":7.0,"rate":1.5},
   "timeslices":[{"start_ns":5,"end_ns":7,"total":3.0,"rate":1.5},{"start_ns":7,"end_ns":9,"is_complete":false,
  "total":4.0,"rate":2.0}]}]},
 "g":{"type":"gauge","description":"","unit":"ratio","series":[{"endpoint_url":"http://a/m","stats":{"avg":0.5,
  "min":0.0,"max":1.0,"std":0.1,"p50":0.4,"p99":0.9}}]},
 "u":{"type":"unknown","description":"","series":[{"endpoint_url":"http://a/m",
  "stats":{"avg":2.0}},{"endpoint_url":"http://a/m","labels":{"x":"y"},"stats":{}}]},
 "h":{"type":"histogram","description":"","series":[{"endpoint_url":"http://a/m","stats":{"count":4,"sum":3.0,
  "avg":0.75,"count_rate":2.0,"p50_estimate":0.6},
   "buckets":{"+Inf":4,"0.5":1,"1.0":3},"timeslices":[{"start_ns":5,"end_ns":7,"count":2,"sum":1.0,"avg":0.5,
  "buckets":{"0.5":1,"1.0":2,"+Inf":2}}]},
  {"endpoint_url":"http://a/m","labels":{"bad":"buckets"},"stats":{"count":4,"sum":3.0},"buckets":{"+Inf":1,"0.5":4}},
  {"endpoint_url":"http://a/m","labels":{"bad":"count"},"stats":{"count":1.5}}]}},
"input_config":{}}`

// TestReadAIPerf: AIPerf's file gives statistics, slices and buckets; what
// contradicts itself is left out and counted.
func TestReadAIPerf(t *testing.T) {
	r, d := read(t, aiperfDoc)
	if d != (export.Document{Schema: "1.1", Tool: "0.13.0"}) || r.ID != "b1" || r.Window.StartNS != 5 ||
		r.Window.EndNS != 9 || r.WarmupWindow.StartNS != 1 {
		t.Errorf("%+v, run %s, window %+v", d, r.ID, r.Window)
	}
	if e := r.Endpoints; len(e) != 1 || e[0].URL != "http://a/m" || e[0].Fetches.MedianUpdateIntervalMS != 333.5 ||
		e[0].Fetches.Total != 3 {
		t.Errorf("endpoints %+v", e)
	}
	c := metricOf(t, r, "c").Series[0]
	if v, _ := c.Labels.Get("k"); v != "v" || c.Counter.Total != 7 || !c.Counter.Defined || len(c.Counter.Slices) != 2 ||
		!c.Counter.Slices[1].Partial || c.Counter.Slices[0].Partial {
		t.Errorf("counter %+v", c.Counter)
	}
	if g := metricOf(t, r, "g"); g.Unit != "ratio" || g.Series[0].Gauge.Avg != .5 ||
		g.Series[0].Gauge.Quantiles[4] != .4 || !math.IsNaN(g.Series[0].Gauge.Quantiles[0]) {
		t.Errorf("gauge %+v", g.Series[0].Gauge)
	}
	u := metricOf(t, r, "u")
	if u.Type != metric.Unknown || len(u.Series) != 2 || u.Series[0].Gauge.N != 1 || u.Series[1].Gauge.N != 0 {
		t.Errorf("unknown %+v", u)
	}
	h := metricOf(t, r, "h")
	x := h.Series[0].Histogram
	if len(h.Series) != 2 || x.Count != 4 || x.Avg != .75 || x.CountRate != 2 || len(x.Buckets) != 3 ||
		x.Buckets[0].Upper != .5 || x.Buckets[2].Count != 4 || x.Slices[0].Counts[1] != 2 {
		t.Errorf("histogram %+v", x)
	}
	if q := x.Quantiles; q[4].Value != .6 || !math.IsNaN(q[8].Value) || !math.IsNaN(q[4].Low) {
		t.Errorf("percentiles %+v", q)
	}
	if h.Series[1].Histogram.Buckets != nil {
		t.Error("falling buckets are used")
	}
	if w := r.Warnings; len(w) != 1 || w[0].Code != "export_damaged" || !strings.HasPrefix(w[0].Text, "2 ") {
		t.Errorf("warnings %+v", w)
	}
	old, _ := read(t, `{"summary":{"start_time":"2023-11-14T22:13:20","end_time":"2023-11-14T22:13:30.5"},"metrics":{}}`)
	if got := old.Window.EndNS - old.Window.StartNS; got != 10.5e9 {
		t.Errorf("schema 1.0: window of %d ns", got)
	}
}

func metricOf(t *testing.T, r *summary.Run, name string) *summary.Metric {
	t.Helper()
	for i := range r.Metrics {
		if r.Metrics[i].Name == name {
			return &r.Metrics[i]
		}
	}
	t.Fatalf("no metric %s", name)
	return nil
}

// TestReadRefuses: what is no such export is an error that says so.
func TestReadRefuses(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		if _, _, err := export.ReadJSON(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", text, err, want)
		}
	}
	check(``, "EOF")
	check(`[]`, "read JSON export")
	check(`{"a":1}`, "no summary or no metrics")
	check(`{"schema_version":"2.0","summary":{},"metrics":{}}`, `schema is "2.0"`)
	check(`{"summary":{},"metrics":{},"scrapestat":{"schema_version":99}}`, "update scrapestat")
	check(`{"summary":{},"metrics":{"x":{"type":"counter","series":[{"stats":{"total":NaN}}]}}}`, "invalid character")
}

// TestReadGolden: reading a golden file and writing it again gives the same
// metrics, byte for byte, in AIPerf's part.
func TestReadGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		r, d, err := export.ReadJSON(bytes.NewReader(data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var b bytes.Buffer
		if err := export.JSON(&b, r, export.Options{AIPerfSchema: d.Schema}); err != nil {
			t.Fatal(err)
		}
		part := func(data []byte) string {
			s := string(data)
			from := strings.Index(s, `"metrics": {`)
			to := strings.Index(s, `"input_config"`)
			if warmup := strings.Index(s, `"warmup_metrics"`); warmup > 0 && warmup < to {
				to = warmup
			}
			return s[from:to]
		}
		if got, want := part(b.Bytes()), part(data); got != want {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			t.Errorf("%s: written again it differs at %d:\n%.300s\nwant\n%.300s", name, at, got[max(0, at-150):],
				want[max(0, at-150):])
		}
	}
}

// FuzzReadJSON: no input makes the reader panic, and what it accepts can be
// written.
func FuzzReadJSON(f *testing.F) {
	f.Add([]byte(aiperfDoc))
	f.Add([]byte(`{"summary":{},"metrics":{},"scrapestat":{"endpoints":[{"url":"u"}],"options":{"quantiles":[0.5]},
  "derived":[{"name":"d","status":"ok","value":1,"endpoint":7}],
		"metrics":[{"name":"s","type":"summary","series":[{"endpoint_url":"u","stats":{"count":1,"sum":2},
  "server_quantiles":{"0.5":null}}]},{"name":"st","type":"stateset","series":[{"stats":{"active_share":0.5}}]}]}}`))
	files, _ := filepath.Glob("testdata/*.json")
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil && len(data) < 1<<16 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzbound.Check(t)()
		r, _, err := export.ReadJSON(bytes.NewReader(data))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := export.JSON(&b, r, export.Options{}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := export.ReadJSON(&b); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}
