package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/metric"
)

// snapshotText is a final_snapshot.json: 4 latencies 100, 200, 300, 400 ns.
const snapshotText = `{"counter": 9, "timestamp_ns": 77, "state": "complete", "n_pending_tasks": 0, "metrics": [
 {"type": "counter", "name": "total_samples_issued", "value": 7},
 {"type": "counter", "name": "tracked_samples_issued", "value": 5},
 {"type": "counter", "name": "tracked_samples_completed", "value": 4},
 {"type": "counter", "name": "tracked_samples_failed", "value": 0},
 {"type": "counter", "name": "tracked_finish_reason_stop", "value": 3},
 {"type": "counter", "name": "tracked_finish_reason_length", "value": 0},
 {"type": "counter", "name": "tracked_duration_ns", "value": 2000000000},
 {"type": "counter", "name": "legacy_loadgen_window_duration_ns", "value": 1500000000},
 {"type": "series", "name": "sample_latency_ns", "count": 4, "total": 1000, "min": 100, "max": 400, "sum_sq": 300000,
  "percentiles": {"99.9": 300.0, "99.0": 300.0, "50.0": 200.0, "90.0": null}, "histogram": [[[100.0, 1000.0], 4]],
  "early_stopping_percentiles": {"99.9": null, "50.0": 250.0}},
 {"type": "series", "name": "ttft_ns", "count": 0, "total": 0, "min": 0, "max": 0, "sum_sq": 0, "percentiles": {` +
	`"50.0": 0.0}, "histogram": []},
 {"type": "series", "name": "osl", "count": 4, "total": 40, "min": 10, "max": 10, "sum_sq": 400, "percentiles": {` +
	`"50.0": 10.0}, "histogram": []},
 {"type": "series", "name": "isl", "count": 1, "total": 8, "min": 8, "max": 8, "sum_sq": 64, "percentiles": {` +
	`"50.0": 8.0}, "histogram": []}]}`

// resultText is today's result_summary.json, with a failure and texts not counted.
const resultText = `{"version": "x", "git_sha": null, "test_started_at": 0, "n_samples_issued": 3, ` +
	`"n_samples_completed": 3, "n_samples_failed": 1,
 "duration_ns": 1000000000, "state": "complete", "complete": false, "tpot": {}, "output_sequence_lengths": {}, ` +
	`"legacy_loadgen_window_duration_ns": null,
 "ttft": {"total": 30, "min": 10, "max": 20, "median": 10, "avg": 15.0, "std_dev": 7.0710678118654755, ` +
	`"percentiles": {"50.0": 10.0, "99.0": 10.0}, "histogram": {"buckets": [[1, 100]], "counts": [2]}},
 "latency": {"total": 0, "min": 0, "max": 0, "median": 0, "avg": 0.0, "std_dev": 0.0, "percentiles": {"99.0": 0.0}, ` +
	`"histogram": {"buckets": [[0, 1]], "counts": [3]}},
 "qps": 3.0, "tps": null, "run_config": null}`

// legacyText is a result_summary.json before April 2026, of run E of the design.
const legacyText = `{"version": "0", "n_samples_issued": 3, "n_samples_completed": 2, "n_samples_failed": 1, ` +
	`"duration_ns": 5300, "tpot_reporting_mode": "token_weighted",
 "ttft": {"total": 197, "min": 10, "max": 187, "median": 98.5, "avg": 98.5, "std_dev": 88.5, "percentiles": {"99": ` +
	`185.23, "50": 98.5}, "histogram": {"buckets": [], "counts": [1, 1]}},
 "tpot": {"total": 230, "min": 3, "max": 40, "median": 3, "avg": 17.692307692307693, "std_dev": 17.6, ` +
	`"percentiles": {"50": 3.0, "90": 40.0}, "histogram": null},
 "latency": {"total": 427, "min": 211, "max": 216, "median": 213.5, "avg": 213.5, "std_dev": 2.5, "percentiles": {` +
	`"90": 215.5}}, "output_sequence_lengths": null, "qps": 377358.4905660377, "tps": null}`

func summaryOf(t *testing.T, text string, o events.ReportOptions) *events.Report {
	t.Helper()
	f, err := events.Open("f.json", strings.NewReader(text), events.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "kind", f.Kind, events.KindSummary)
	r, err := f.Summarise(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Errorf("write JSON: %v", err)
	}
	return r
}

// lacks holds that a distribution has no value and says why.
func lacks(t *testing.T, what string, d events.Distribution, why string) {
	t.Helper()
	if d.N != 0 || !strings.Contains(d.Reason, why) {
		t.Errorf("%s: n %d, reason %q, want none because of %q", what, d.N, d.Reason, why)
	}
}

func codes(r *events.Report) string {
	var out []string
	for _, w := range r.Warnings {
		out = append(out, w.Code)
	}
	return strings.Join(out, " ")
}

func TestSnapshot(t *testing.T) {
	r := summaryOf(t, snapshotText, events.ReportOptions{})
	equal(t, "counts", fmt.Sprint(r.Issued, r.Completed, r.Succeeded, r.Failed, r.InFlight, r.Outside), "5 4 4 0 1 2")
	equal(t, "window", r.Window, events.WindowTracked)
	nearValue(t, "qps", r.QPS, 2)
	nearValue(t, "qps of all", r.QPSAll, 2)
	nearValue(t, "tps", r.TPS, 20)
	near(t, "mean", r.Latency.Mean, 250)
	near(t, "population deviation", r.Latency.PopStdDev, math.Sqrt(12500))
	nearValue(t, "deviation", r.Latency.StdDev, math.Sqrt(50000.0/3))
	quantile(t, "latency", r.LatencyAll, 99, 300)
	if q, _ := r.Latency.Quantile(50); !q.HasEarly || q.Early != 250 {
		t.Errorf("early stopping of p50: %+v", q)
	}
	if q, _ := r.Latency.Quantile(90); !q.Missing || q.HasEarly {
		t.Errorf("p90, which is null: %+v", q)
	}
	equal(t, "reason", r.Latency.Reason, "the summary has no p97, p95, p90, p80, p75, p25, p10, p5, p1")
	lacks(t, "ttft", r.TTFT, "did the run stream")
	lacks(t, "tpot", r.TPOT, "did the run stream")
	lacks(t, "tpot by token", r.TPOTTokens, "by request alone")
	equal(t, "finish", fmt.Sprint(r.Finish), "[{stop 3}]")
	equal(t, "prompt tokens", r.ISL.N, 1)
	equal(t, "no deviation of one", r.ISL.StdDev.Known, false)
	equal(t, "warnings", codes(r), "summary_percentiles")
	equal(t, "warnings", codes(summaryOf(t, snapshotText, events.ReportOptions{Method: events.Lower,
		TPOT: events.PerAfterFirst})), "")

	r = summaryOf(t, snapshotText, events.ReportOptions{Window: events.Window{Name: events.WindowLoadGen}})
	equal(t, "window", r.Window, events.WindowLoadGen)
	nearValue(t, "duration", r.Duration, 1.5)
	nearValue(t, "qps", r.QPS, 2)
	nearValue(t, "tps", r.TPS, 40/1.5)

	r = summaryOf(t, strings.Replace(snapshotText, "complete", "interrupted", 1), events.ReportOptions{})
	equal(t, "method", r.Latency.Method, "hdr_approximate")
	equal(t, "warnings", codes(r), "summary_percentiles summary_incomplete")
}

func TestResultSummary(t *testing.T) {
	r := summaryOf(t, resultText, events.ReportOptions{MLPerfKeys: true})
	equal(t, "counts", fmt.Sprint(r.Issued, r.Completed, r.Succeeded, r.Failed, r.InFlight, r.Outside), "3 3 -1 1 0 -1")
	nearValue(t, "qps of all", r.QPSAll, 3)
	if r.QPS.Known || !strings.Contains(r.QPS.Reason, "failed ones among them") {
		t.Errorf("qps %+v", r.QPS)
	}
	equal(t, "n by total and mean", r.TTFT.N, 2)
	nearValue(t, "deviation", r.TTFT.StdDev, math.Sqrt(50))
	near(t, "population deviation", r.TTFT.PopStdDev, 5)
	equal(t, "n by the histogram", r.LatencyAll.N, 3)
	lacks(t, "latency", r.Latency, "failed requests too")
	lacks(t, "osl", r.OSL, "no output tokens")
	equal(t, "warnings", codes(r), "summary_percentiles summary_tpot summary_failed summary_incomplete")
	data, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(data), `"succeeded":null`) ||
		!strings.Contains(string(data), `"99.9":null,"99.0":10`) {
		t.Errorf("JSON %s, %v", data, err)
	}
	r = summaryOf(t, resultText, events.ReportOptions{Window: events.Window{Name: events.WindowLoadGen}})
	equal(t, "no loadgen window", r.QPSAll.Reason, "the summary has no length of the window loadgen")
}

// TestLegacySummary is acceptance cases T1 to T3 by way of the old summary.
func TestLegacySummary(t *testing.T) {
	r := summaryOf(t, legacyText, events.ReportOptions{})
	equal(t, "window", r.Window, events.WindowLegacy)
	nearValue(t, "qps of all", r.QPSAll, 377358.4905660377)
	equal(t, "in flight", r.InFlight, 1)
	quantile(t, "ttft", r.TTFT, 99, 185.23)
	nearValue(t, "deviation", r.TTFT.StdDev, 88.5*math.Sqrt2)
	near(t, "latency", r.LatencyAll.Mean, 213.5)
	equal(t, "tokens", r.TPOTTokens.N, 13)
	near(t, "tpot", r.TPOTTokens.Mean, 230.0/13)
	lacks(t, "tpot", r.TPOT, "by token alone")
}

func TestSummaryTargets(t *testing.T) {
	check := func(text, target string, want events.Verdict) {
		t.Helper()
		targets, err := events.ParseTargets([]string{target})
		if err != nil {
			t.Fatal(err)
		}
		r := summaryOf(t, text, events.ReportOptions{Limits: targets})
		if v := events.Validate(r, targets, -1); v.Verdict != want {
			t.Errorf("%s: %+v, want %s", target, v, want)
		}
	}
	check(snapshotText, "qps=2.2", events.Pass)
	check(snapshotText, "latency_p99_ns<=300", events.Pass)
	check(snapshotText, "latency_p99_ns<=299", events.Fail)
	check(snapshotText, "latency_p95_ns<=300", events.NoData)
	check(snapshotText, "ttft_p99_ms<=450", events.NoData)
	check(snapshotText, "goodput>=0", events.NoData)
	check(resultText, "qps>=0", events.NoData)
	check(resultText, "qps_all=3", events.Pass)
	check(resultText, "latency_ms<=1", events.NoData)
	check(resultText, "latency_all_ms<=1", events.Pass)
}

func TestSummaryRefuses(t *testing.T) {
	check := func(text string, o events.FileOptions, ro events.ReportOptions, want string) {
		t.Helper()
		f, err := events.Open("f", strings.NewReader(text), o)
		if err == nil {
			_, err = f.Summarise(ro)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got error %v, want %q", text, err, want)
		}
	}
	auto, none := events.FileOptions{}, events.ReportOptions{}
	check(vllmText, auto, none, "of kind vllm-bench")
	check(snapshotText[:300], auto, none, "unexpected EOF")
	check(snapshotText, events.FileOptions{MaxSize: 100}, none, "larger than 100 bytes")
	check(snapshotText, auto, events.ReportOptions{Method: "best"}, `"best"`)
	check(snapshotText, auto, events.ReportOptions{Window: events.Window{Name: events.WindowSteady}},
		"no requests to make the window")
	check(snapshotText, auto, events.ReportOptions{Window: events.Window{Name: events.WindowLegacy}},
		"it has tracked and loadgen")
	check(legacyText, auto, events.ReportOptions{Window: events.Window{Name: events.WindowLoadGen}},
		"it has mlperf-legacy")
	f, err := events.Open("f", strings.NewReader(snapshotText), auto)
	if err != nil {
		t.Fatal(err)
	}
	for ev, err := range f.Stream(context.Background()) {
		if ev != nil || !errors.Is(err, events.ErrSummary) {
			t.Errorf("events of a summary: %v, %v", ev, err)
		}
	}
}

// TestSummaryNonsense holds that values that make no sense are none, with a reason.
func TestSummaryNonsense(t *testing.T) {
	for _, series := range []string{`"count": -1, "total": 1, "min": 1, "max": 1`,
		`"count": 1.5, "total": 1, "min": 1, "max": 1`,
		`"count": 1e300, "total": 1, "min": 1, "max": 1`, `"count": 2, "total": null, "min": 1, "max": 1`,
		`"count": 2, "total": 1e999, "min": 1, "max": 1`,
		`"count": 2, "total": 3, "min": 2, "max": 1`, `"count": 2, "total": "3", "min": 1, "max": 2`} {
		r := summaryOf(t, `{"state": "complete", "metrics": [{"type": "series", "name": "ttft_ns", `+series+`}]}`,
			events.ReportOptions{})
		lacks(t, series, r.TTFT, "lack their number, total, minimum or maximum")
		equal(t, "issued", r.Issued, -1)
		equal(t, "qps", r.QPSAll.Reason, "the summary has no count of completed requests")
	}
	r := summaryOf(t,
		`{"state": "complete", "metrics": [{"type": "series", "name": "ttft_ns", "count": 2, "total": 1e308, "min": 1, `+
			`"max": 1e308, "sum_sq": 1e308, "percentiles": [1]}]}`, events.ReportOptions{})
	equal(t, "deviation of the absurd", r.TTFT.StdDev.Known, false)
	r = summaryOf(t,
		`{"state": "complete", "metrics": [{"type": "series", "name": "ttft_ns", "count": 2, "total": 1e-999999999, `+
			`"min": 0, "max": 1, "sum_sq": 1e-999999999}]}`, events.ReportOptions{})
	nearValue(t, "deviation of exponents of a billion", r.TTFT.StdDev, 0)
}

// TestSummaryEqualsEvents holds a snapshot, made by plain sums, against the report
// of the same requests as events.
func TestSummaryEqualsEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		latencies := rapid.SliceOfN(rapid.Int64Range(1e9, 1e9+1000), 1, 60).Draw(t, "latencies")
		var list []metric.Event
		total, squares, sorted := int64(0), new(big.Int), []float64{}
		for i, v := range latencies {
			id := fmt.Sprint(i)
			list = append(list, ev(int64(i), events.SampleIssued, id, ""), ev(int64(i)+v, events.SampleComplete, id, ""))
			total += v
			squares.Add(squares, new(big.Int).Mul(big.NewInt(v), big.NewInt(v)))
			sorted = append(sorted, float64(v))
		}
		slices.SortStableFunc(list, func(a, b metric.Event) int { return int(a.AtNS - b.AtNS) })
		slices.Sort(sorted)
		grid := map[string]float64{}
		for _, p := range events.Grid {
			k := fmt.Sprint(p)
			if !strings.Contains(k, ".") {
				k += ".0"
			}
			grid[k] = events.Percentile(events.Lower, sorted, p)
		}
		percentiles, err := json.Marshal(grid)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf(`{"state": "complete", "metrics": [{"type": "counter", "name": "tracked_samples_failed", `+
			`"value": 0}, {"type": "series", "name": "sample_latency_ns",
			"count": %d, "total": %d, "min": %d, "max": %d, "sum_sq": %s, "percentiles": %s}]}`, len(sorted), total,
			int64(sorted[0]), int64(sorted[len(sorted)-1]), squares, percentiles)
		f, err := events.Open("", strings.NewReader(text), events.FileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Summarise(events.ReportOptions{Method: events.Lower})
		if err != nil {
			t.Fatal(err)
		}
		s, err := events.Assemble(stream(list), events.Rules{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := events.Summarise(s, events.ReportOptions{Method: events.Lower})
		if err != nil {
			t.Fatal(err)
		}
		a, b := got.Latency, want.Latency
		if a.N != b.N || a.Min != b.Min || a.Max != b.Max || math.Abs(a.PopStdDev-b.PopStdDev) > 1e-6*(1+b.PopStdDev) ||
			math.Abs(a.Mean-b.Mean) > 1e-6 || a.Reason != "" {
			t.Fatalf("summary %+v\nevents  %+v", a, b)
		}
		for i := range a.Quantiles {
			if a.Quantiles[i].Value != b.Quantiles[i].Value {
				t.Fatalf("p%v: summary %v, events %v", a.Quantiles[i].P, a.Quantiles[i].Value, b.Quantiles[i].Value)
			}
		}
	})
}
