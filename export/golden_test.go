package export_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden is the run of the golden files, small enough to check by hand. Its load
// lasts from 1 s to 5 s, the first second of it is warm-up; the final scrape is
// at 6 s. Polls of vllm are at full seconds, those of node at half ones.
//
//	requests{engine="0"}   0 10 20 40 70 110 110   profiling counts from 10: 100 in 5 s
//	running                1 1 2 3 4 5 5           samples from 2 s: 2 3 4 5 5
//	latency                one observation of 0.5 per second, at 4 s one of 3
func golden() *fakeRun {
	f := newFake("http://vllm:8000/metrics", "https://node:9100/api/metrics")
	f.Polled[0].Name = "prefill"
	f.Info.Warmup, f.Info.Tags = time.Second, map[string]string{"model": "m<7b>", "gpu": "1"}
	f.Info.Command = []string{"scrapestat", "collect", "vllm:8000"}
	f.Info.Limits = map[string]int64{"max_body": 1 << 20}
	f.Mark(1, metric.PhaseWarmup).Mark(2, metric.PhaseProfiling).Mark(5, metric.MarkEnd)
	bodies := []string{
		goldenBody(0, 1, 0, 0, 0), goldenBody(10, 1, 1, 1, 0.5), goldenBody(20, 2, 2, 2, 1), goldenBody(40, 3, 3, 3, 1.5),
		goldenBody(70, 4, 3, 4, 4.5), goldenBody(110, 5, 4, 5, 5), goldenBody(110, 5, 4, 5, 5),
	}
	for i, body := range bodies {
		f.Scrape(0, float64(i), body)
	}
	f.Polled[0].Polls[3].Drops = []metric.Drop{{Reason: "parse", Lines: 2, First: `line 7: "x y z"`}}
	f.Polled[0].Polls[3].Outcome, f.Polled[0].Polls[3].Lines = metric.Partial, f.Polled[0].Polls[3].Lines+2
	for i, v := range []string{"5", "6", "1", "3"} { // restarted between 2.5 s and 3.5 s
		if i == 2 {
			f.Fail(1, 2.75, metric.ConnectError, "connection refused")
		}
		f.Scrape(1, 1.5+float64(i), "# HELP requests Other text.\n# TYPE requests counter\nrequests{engine=\"0\"} "+v+
			"\n# HELP temp_us Time.\n# TYPE temp_us gauge\ntemp_us -0.25\n")
	}
	return f
}

func goldenBody(requests, running, under1, count, sum float64) string {
	text := func(v float64) string { b, _ := json.Marshal(v); return string(b) }
	return strings.NewReplacer("REQ", text(requests), "RUN", text(running), "LOW", text(under1), "CNT", text(count),
		"SUM", text(sum)).Replace(
		`# HELP requests Number of requests, "all".
# TYPE requests counter
requests{engine="0",model="it's"} REQ
requests{engine="1",model="a,b"} 7
# HELP running Running now.
# TYPE running gauge
running RUN
# HELP latency_seconds Latency.
# TYPE latency_seconds histogram
latency_seconds_bucket{le="1"} LOW
latency_seconds_bucket{le="2.5"} LOW
latency_seconds_bucket{le="+Inf"} CNT
latency_seconds_sum SUM
latency_seconds_count CNT
# HELP cache_info Configuration.
# TYPE cache_info gauge
cache_info{dtype="fp8",block="16"} 1
# TYPE odd unknown
odd{phase="x"} 0.1
# TYPE quiet gauge
# TYPE rpc summary
rpc{quantile="0.5"} 1
rpc_sum 1
rpc_count 1
`)
}

func goldenRun(t *testing.T) (*summary.Run, []export.Recording) {
	t.Helper()
	return runOfFake(t, golden(), summary.Options{Slice: time.Second})
}

func runOfFake(t *testing.T, f *fakeRun, o summary.Options) (*summary.Run, []export.Recording) {
	t.Helper()
	r, err := summary.Build(context.Background(), []summary.Recording{f}, o)
	if err != nil {
		t.Fatal(err)
	}
	return r, []export.Recording{f}
}

var inUTC = export.Options{Location: time.UTC}

func jsonOf(t *testing.T, r *summary.Run, o export.Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := export.JSON(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func checkGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestGoldenJSON(t *testing.T) {
	r, _ := goldenRun(t)
	checkGolden(t, "json-schema-1.1-slice-1s.json", jsonOf(t, r, inUTC))
	old := inUTC
	old.AIPerfSchema = export.Schema10
	clamped, _ := runOfFake(t, golden(), summary.Options{Resets: normalize.ResetClamp, Quantiles: []float64{0.5, 0.999}})
	checkGolden(t, "json-schema-1.0-clamp-p50-p99.9.json", jsonOf(t, clamped, old))
}

func csvOf(t *testing.T, r *summary.Run) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := export.CSV(&b, r, export.Options{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func jsonlOf(t *testing.T, r *summary.Run, recs []export.Recording) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := export.JSONL(context.Background(), &b, r, recs, export.Options{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGoldenCSV(t *testing.T) {
	r, _ := goldenRun(t)
	checkGolden(t, "csv-slice-1s.csv", csvOf(t, r))
}

func TestGoldenJSONL(t *testing.T) {
	r, recs := goldenRun(t)
	checkGolden(t, "jsonl.jsonl", jsonlOf(t, r, recs))
}

func buildFake(f *fakeRun, o summary.Options) (*summary.Run, error) {
	return summary.Build(context.Background(), []summary.Recording{f}, o)
}
