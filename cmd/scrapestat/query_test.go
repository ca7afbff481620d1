package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/testkit"
)

// queriedRow is what tests read of a line of query --format jsonl.
type queriedRow struct {
	Run, Level, Span, Stat, Status, Metric, Kind string
	Target, Flags, Quantity                      *string
	Slice                                        *int
	T                                            float64 `json:"t_s"`
	Value, Low, High                             *float64
	N                                            *int64
	Labels                                       map[string]string
	Complete                                     bool
}

func queryRows(t *testing.T, args ...string) (out []queriedRow) {
	t.Helper()
	var stdout, talk bytes.Buffer
	if code := execute(append([]string{"query", "--format", "jsonl"}, args...), &stdout, &talk); code != exitDone {
		t.Fatalf("query %v: exit code %d: %s", args, code, talk.String())
	}
	for line := range strings.Lines(stdout.String()) {
		var r queriedRow
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		out = append(out, r)
	}
	return out
}

// TestQueryReference compares percentiles of slices by target and of all targets with those of a reference over the
// raw samples, and the sums of counts with the window.
func TestQueryReference(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for seed := 1; seed <= 2; seed++ {
		path := sweptRun(t, filepath.Join(dir, fmt.Sprintf("run%d", seed)), "a=vllm,rate=8", "b=vllm,rate=4", "--duration",
			"5m", "--seed", strconv.Itoa(seed))
		for _, by := range []string{"target", ""} {
			got := queryRows(t, path, "-m", "ttft", "--stat", "p50,p99", "--by", by, "--every", "10s", "--estimator", "linear")
			holdReference(t, seed, by, got)
		}
		counts := queryRows(t, path, "-m", "ttft", "--stat", "count", "--by", "target", "--every", "10s")
		sum := map[string]float64{}
		for _, r := range counts {
			if r.Span == "slice" {
				sum[*r.Target] += *r.Value
			}
		}
		for _, r := range counts {
			if r.Span == "window" && sum[*r.Target] != *r.Value {
				t.Errorf("seed %d, %s: slices count %v, the window %v", seed, *r.Target, sum[*r.Target], *r.Value)
			}
		}
		if seed == 1 && (sum["a"] != 2388 || sum["b"] != 1167) {
			t.Errorf("counts %v, want 2388 and 1167", sum)
		}
		if seed == 1 {
			holdPyTorch(t, path)
			holdLLMD(t, path)
		}
	}
	both := queryRows(t, "pr="+filepath.Join(dir, "run2"), "base="+filepath.Join(dir, "run1"), "-m", "ttft", "--stat",
		"p50,p99", "--by", "target", "--every", "10s")
	if len(both) != 248 || both[0].Run != "base" || both[247].Run != "pr" || both[247].T != 290 {
		t.Errorf("%d rows of two runs", len(both))
	}
	alone := queryRows(t, filepath.Join(dir, "run1"), "-m", "ttft", "--stat", "p99", "--every", "10s")
	for i, r := range queryRows(t, filepath.Join(dir, "run1"), "-m", "ttft_p99", "--by", "series", "--every", "10s") {
		if r.Level != "series" || *r.Value != *alone[i].Value || !(*r.Low <= *r.Value && *r.Value <= *r.High) {
			t.Errorf("row %d: %+v, and %+v by another name", i, r, alone[i])
		}
	}
}

// holdPyTorch checks the records for dashboards of a run.
func holdPyTorch(t *testing.T, path string) {
	t.Helper()
	var stdout, talk bytes.Buffer
	args := []string{"export", path, "--formats", "pytorch", "--estimator", "linear", "-o", "-"}
	if code := execute(args, &stdout, &talk); code != 0 {
		t.Fatal(talk.String())
	}
	var records []struct {
		Benchmark struct{ Name string }
		Model     struct{ Name string }
		Metric    struct {
			Name   string
			Values []float64 `json:"benchmark_values"`
			Extra  struct {
				Low, High []float64
				N, Series int64
			} `json:"extra_info"`
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &records); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range records {
		m := &r.Metric
		if seen[m.Name] = true; m.Name != "server_ttft_p99_ms" {
			continue
		}
		if len(m.Values) != 1 || math.Abs(m.Values[0]-94.5416667) > 1e-6 || m.Extra.Low[0] != 80 ||
			m.Extra.High[0] != 100 ||
			m.Extra.N != 3555 || m.Extra.Series != 2 || r.Model.Name != "qwen3-8b" || r.Benchmark.Name != "scrapestat" {
			t.Errorf("%+v", r)
		}
	}
	for _, name := range strings.Fields("server_ttft_p99_ms server_queue_mean_ms server_output_tok_s") {
		if !seen[name] {
			t.Errorf("no record %s among %d", name, len(records))
		}
	}
}

// llmdSeries is a time series of llm-d's report.
type llmdSeries struct {
	Units  string
	Series []map[string]any
}

// holdLLMD compares the components of llm-d's report with those of a reference that its schema takes.
func holdLLMD(t *testing.T, path string) {
	t.Helper()
	var want struct {
		Components map[string]struct {
			Aggregate map[string]map[string]any
			Series    map[string]struct {
				Units       string
				Points      int
				First, Last map[string]any
			} `json:"time_series"`
		}
	}
	if err := json.Unmarshal(testkit.Data(t, "fixtures/integrations/llmd_seed1_expected.json"), &want); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Results struct {
			Observability struct {
				Components []struct {
					Label     string `json:"component_label"`
					Replica   string `json:"replica_id"`
					Aggregate map[string]map[string]any
					Series    map[string]llmdSeries `json:"time_series"`
				}
			}
		}
	}
	var stdout, talk bytes.Buffer
	args := []string{"export", path, "--formats", "llm-d", "--slice-duration", "10s", "-o", "-"}
	if code := execute(args, &stdout, &talk); code != 0 {
		t.Fatal(talk.String())
	}
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, c := range got.Results.Observability.Components {
		w := want.Components[c.Replica]
		if c.Label != "inference-engine" || len(w.Series) == 0 {
			t.Errorf("component %s of %s", c.Label, c.Replica)
		}
		for name, stats := range w.Aggregate {
			sameStats(t, c.Replica+" "+name, c.Aggregate[name], stats)
		}
		for name, s := range w.Series {
			own := c.Series[name]
			if own.Units != s.Units || len(own.Series) != s.Points {
				t.Fatalf("%s %s: %d points of %s, want %d of %s", c.Replica, name, len(own.Series), own.Units, s.Points, s.Units)
			}
			sameStats(t, c.Replica+" "+name, own.Series[0], s.First)
			sameStats(t, c.Replica+" "+name, own.Series[s.Points-1], s.Last)
		}
		delete(want.Components, c.Replica)
	}
	if len(want.Components) > 0 {
		t.Errorf("no components of %v", want.Components)
	}
}

// sameStats compares the fields that are wanted to 1e-9, texts exactly.
func sameStats(t *testing.T, name string, got, want map[string]any) {
	t.Helper()
	for k, w := range want {
		number, isNumber := w.(float64)
		g, _ := got[k].(float64)
		if isNumber && math.Abs(g-number) > 1e-9*math.Abs(number) || !isNumber && got[k] != w {
			t.Errorf("%s: %s is %v, want %v", name, k, got[k], w)
		}
	}
}

func holdReference(t *testing.T, seed int, by string, got []queriedRow) {
	t.Helper()
	var want struct {
		Rows []struct {
			Target, Span, Stat string
			Start              float64 `json:"start_s"`
			Value              float64
			Bucket             [2]float64
			N                  int64
		}
	}
	data := testkit.Data(t, fmt.Sprintf("fixtures/integrations/stats_vllm_seed%d.json", seed))
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, w := range want.Rows {
		if (w.Target == "") != (by == "") {
			continue
		}
		i := slices.IndexFunc(got, func(r queriedRow) bool {
			return (w.Target == "" || *r.Target == w.Target) && r.Span == w.Span && r.Stat == w.Stat && r.T == w.Start
		})
		if i < 0 {
			t.Fatalf("seed %d: no row of %+v", seed, w)
		}
		found++
		if r := got[i]; math.Abs(*r.Value-w.Value) > 1e-9*w.Value || *r.N != w.N || r.Status != "ok" {
			t.Errorf("seed %d: %v of %d, want %+v", seed, *r.Value, *r.N, w)
		}
	}
	if found != len(got) || found == 0 {
		t.Errorf("seed %d by %q: %d rows, the reference has %d", seed, by, len(got), found)
	}
}

// TestQueryAgrees compares rows with the JSON of export: totals, means and percentiles of each series.
func TestQueryAgrees(t *testing.T) {
	t.Parallel()
	path := testkit.Path(t, "runs/vllm-bench-rate4")
	var stdout, talk bytes.Buffer
	args := []string{"export", path, "--formats", "json", "-o", "-", "--estimator", "refined"}
	if code := execute(args, &stdout, &talk); code != 0 {
		t.Fatal(talk.String())
	}
	var exported struct {
		Metrics map[string]struct {
			Type   string
			Series []struct {
				Labels map[string]string
				Stats  map[string]float64
			}
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &exported); err != nil {
		t.Fatal(err)
	}
	rows := map[string]queriedRow{}
	for _, r := range queryRows(t, path) {
		rows[fmt.Sprint(r.Metric, r.Labels, r.Span, r.T, r.Stat)] = r
	}
	compared := 0
	for name, m := range exported.Metrics {
		for _, s := range m.Series {
			for _, stat := range []string{"total", "rate", "count", "sum", "avg", "min", "max", "std", "p50", "p99"} {
				want, has := s.Stats[stat]
				if !has || m.Type == "counter" && stat == "rate" { // AIPerf's rates divide by another time
					continue
				}
				r, ok := rows[fmt.Sprint(name, s.Labels, "window", 0.0, stat)]
				if !ok || r.Value == nil || *r.Value != want {
					t.Errorf("%s%v %s: %+v, the JSON has %v", name, s.Labels, stat, r, want)
				}
				compared++
			}
		}
	}
	if compared < 150 {
		t.Errorf("%d numbers compared", compared)
	}
}
