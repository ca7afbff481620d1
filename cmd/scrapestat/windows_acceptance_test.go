package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// The tests of this file are rows of the table of acceptance of the design document windows.md, section 9.

// said runs a command and returns what it printed on stdout and stderr.
func said(t *testing.T, code int, args ...string) string {
	t.Helper()
	var out, talk bytes.Buffer
	if got := run(context.Background(), args, stdio{nil, &out, &talk}); got != code {
		t.Errorf("%v: exit code %d, want %d\n%s%s", args, got, code, out.String(), talk.String())
	}
	return out.String() + talk.String()
}

type shownRun struct {
	Run struct {
		Window struct {
			Rule    string
			Start   int64 `json:"start_ns"`
			Seconds float64
			Low     float64 `json:"seconds_low"`
			High    float64 `json:"seconds_high"`
		}
	}
	Derived []struct {
		Name        string
		Labels      map[string]string
		Value       float64
		Denominator float64
	}
}

// shown is what show prints of a recording of testdata/runs, by its selector.
func shown(t *testing.T, run string, args ...string) (out shownRun) {
	t.Helper()
	name, selector, _ := strings.Cut(run, "@")
	path := testkit.Path(t, "runs/"+name)
	if selector != "" {
		path += "@" + selector
	}
	var stdout, talk bytes.Buffer
	all := append([]string{"show", path, "--format", "json", "--derived"}, args...)
	if code := execute(all, &stdout, &talk); code != exitDone {
		t.Fatalf("%v: exit code %d: %s", all, code, talk.String())
	}
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func execute(args []string, out, talk *bytes.Buffer) int {
	return run(context.Background(), args, stdio{nil, out, talk})
}

// rate is a derived rate with its denominator.
func (s *shownRun) rate(t *testing.T, name string, labels ...string) (value, seconds float64) {
	t.Helper()
	for _, d := range s.Derived {
		ok := d.Name == name
		for i := 0; i < len(labels); i += 2 {
			ok = ok && d.Labels[labels[i]] == labels[i+1]
		}
		if ok {
			return d.Value, d.Denominator
		}
	}
	t.Fatalf("no %s%v", name, labels)
	return 0, 0
}

func closeTo(got, want, share float64) bool { return math.Abs(got-want) <= share*math.Abs(want) }

// Rows 1 to 6: recordings of real servers and what their clients knew.
func TestWindowsOfRecordings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		row, run, name           string
		labels                   []string
		requests                 float64
		seconds, low, high, rate float64
		near                     float64 // of the seconds
	}{
		{"1", "vllm-bench-rate4", "request_rate", nil, 145, 35.424, 0, 0, 4.093, 0.0005},
		{"2", "vllm-bench-rate4@traffic,warmup=0s", "request_rate", nil, 200, 50.408, 50.197, 50.623, 3.968, 1e-5},
		{"3", "vllm-bench-rate4@command,warmup=0s", "request_rate", nil, 200, 121.357, 0, 0, 1.648, 1e-5},
		{"4", "aiperf-rate4", "request_rate", nil, 120, 27.091, 26.858, 27.313, 4.430, 2e-5},
		{"4 with a warm-up", "aiperf-rate4@warmup=10s", "request_rate", nil, 72, 17.088, 0, 0, 4.213, 0.0005},
		{"5, metrics", "triton-steady", "request_rate", []string{"model", "dyn", "version", "2"}, 3086, 10.161, 9.656, 10.666,
			303.7, 5e-5},
		{"5, statistics", "triton-steady", "triton_derived_request_rate", []string{"model", "dyn", "version", "2"}, 3086,
			10.161, 9.656, 10.666, 303.7, 5e-5},
	} {
		s := shown(t, c.run)
		rate, seconds := s.rate(t, c.name, c.labels...)
		if !closeTo(rate, c.rate, 0.0005) || !closeTo(seconds, c.seconds, c.near) ||
			!closeTo(rate*seconds, c.requests, 1e-9) {
			t.Errorf("row %s: %v requests in %v s are %v/s, want %v in %v s, %v/s", c.row, rate*seconds, seconds, rate,
				c.requests, c.seconds, c.rate)
		}
		if w := s.Run.Window; c.low > 0 && (!closeTo(w.Low, c.low, 1e-4) || !closeTo(w.High, c.high, 1e-4)) {
			t.Errorf("row %s: between %v and %v s, want %v and %v", c.row, w.Low, w.High, c.low, c.high)
		}
	}
	text := said(t, exitDone, "show", testkit.Path(t, "runs/vllm-bench-rate4"), "--all")
	for _, want := range []string{"measured   35.4 s   from 83.5 s to 119.0 s of the run", "rates within 0.5 %",
		"warm-up    15.0 s   from the first request, at 68.5 s", "68.5 s passed before the first request"} {
		if !strings.Contains(text, want) {
			t.Errorf("row 1: %q is not shown", want)
		}
	}
	if strings.Contains(text, "1.85") {
		t.Error("row 1: the rate over the life of the command is still there")
	}
	for _, run := range []string{"vllm-bench-rate4", "aiperf-rate4", "triton-steady"} {
		if a, b := shown(t, run).Run.Window, shown(t, run+"@profiling").Run.Window; a != b {
			t.Errorf("the phase profiling of %s is %+v, the default window %+v", run, b, a)
		}
	}
	// The document has 6.936 s (6.530 to 7.343) of a server that nobody knows; the pack of BentoML tells how long requests
	// took, so that the first one dates the start back and the bounds are narrower.
	w := shown(t, "bentoml-sequential").Run.Window
	if !closeTo(w.Seconds, 6.859, 1e-4) || !closeTo(w.Low, 6.547, 1e-4) || !closeTo(w.High, 7.343, 1e-4) {
		t.Errorf("row 6: %+v", w)
	}
}

// The rates of recordings by default flags are within 1 % of what their clients measured.
func TestWindowsFitClients(t *testing.T) {
	var v struct {
		Runs []struct {
			Run    string
			Warmup int     `json:"warmup_s"`
			Rate   float64 `json:"client_rate"`
		}
	}
	if err := json.Unmarshal(testkit.Data(t, "vectors/windows.json"), &v); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, c := range v.Runs {
		if c.Rate == 0 {
			continue
		}
		compared++
		s := shown(t, fmt.Sprintf("%s@warmup=%ds", c.Run, c.Warmup))
		if rate, _ := s.rate(t, "request_rate"); !closeTo(rate, c.Rate, .01) {
			t.Errorf("%s less %d s: %v requests/s, its client had %v", c.Run, c.Warmup, rate, c.Rate)
		}
	}
	if compared != 4 {
		t.Errorf("%d rates of clients, want 4", compared)
	}
}

// Row 2: percentiles are those of all observations, as they were before the window was the traffic.
func TestWindowKeepsPercentiles(t *testing.T) {
	path := testkit.Path(t, "runs/vllm-bench-rate4")
	of := func(selector string) string {
		dir := t.TempDir()
		said(t, exitDone, "export", path+selector, "--formats", "json", "-o", dir, "--estimator", "polynomial", "-q")
		m := metricsOf(t, dir)["vllm:e2e_request_latency_seconds"].(map[string]any)
		stats := m["series"].([]any)[0].(map[string]any)["stats"].(map[string]any)
		delete(stats, "count_rate") // AIPerf's, which divides by the time between the samples
		delete(stats, "sum_rate")
		return fmt.Sprint(stats)
	}
	got, want := of("@traffic,warmup=0s"), of("@command,warmup=0s")
	if got != want || !strings.Contains(got, "count:200") {
		t.Errorf("traffic: %s\ncommand: %s", got, want)
	}
}

// Row 7: two runs, each with its own window.
func TestCompareOwnWindows(t *testing.T) {
	text := said(t, exitDone, "compare", "a="+testkit.Path(t, "runs/vllm-bench-rate4")+"@warmup=0s",
		"b="+testkit.Path(t, "runs/aiperf-rate4"), "--metric", "vllm:request_success", "--all")
	for _, want := range []string{"3.97 requests/s", "4.43 requests/s", "+11.6 %"} {
		if !strings.Contains(text, want) {
			t.Errorf("row 7: no %q in\n%s", want, text)
		}
	}
}

// Row 17: phases that come again are asked for by their number.
func TestPhaseInstances(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	said(t, exitDone, "simulate", "vllm", "--record", dir, "--duration", "60s", "--mark", "low=+0s", "--mark", "high=+10s",
		"--mark", "low2=+30s", "--mark", "high=+40s")
	text := said(t, exitUsage, "show", dir+"@high")
	if !strings.Contains(text, `phase "high" occurs 2 times (10.0s..30.0s, 40.0s..60.0s): write high/1 or high/2`) {
		t.Errorf("row 17: %s", text)
	}
	said(t, exitDone, "show", dir+"@high/2")
	said(t, exitDone, "compare", "low="+dir+"@low", "high="+dir+"@high/1")
	said(t, exitUsage, "show", dir+"@nope")
	said(t, exitUsage, "show", dir+"@segment/0")
}

// Section 6: each command that analyses runs takes a selector; a phase that there is not is wrong usage.
func TestSelectorsEverywhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := filepath.Join(dir, "r")
	said(t, exitDone, "simulate", "vllm", "--record", r, "--duration", "20s", "--requests")
	for _, line := range []string{"show RUN", "report RUN -o DIR/r.html", "export RUN --formats json -o DIR/x",
		"explain RUN", "check RUN --assert ttft_p99<1h", "check DIR/r --assert ttft_p99<1h --baseline RUN",
		"compare RUN DIR/r@5s..15s",
		"compare DIR/r@5s..15s RUN", "sweep RUN", "history add -f DIR/h.db RUN", "query RUN -m ttft", "requests report RUN",
		"requests join RUN"} {
		for part, code := range map[string]int{"@10s..20s": exitDone, "@nope": exitUsage} {
			args := strings.Fields(strings.NewReplacer("RUN", r+part, "DIR", dir).Replace(line))
			if text := said(t, code, args...); code == exitUsage && !strings.Contains(text, `phase "nope"`) {
				t.Errorf("%q: %s", args, text)
			}
		}
	}
}

// Row 19: a recording whose collector was killed has the same window.
func TestWindowAfterKill(t *testing.T) {
	dir := t.TempDir()
	db, err := rundb.Create(dir, rundb.Meta{ID: "k", OriginNS: 1}, rundb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	from, err := rundb.Open(testkit.Path(t, "runs/aiperf-rate4"))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	if _, err := db.AddTarget(from.Targets()[0]); err != nil {
		t.Fatal(err)
	}
	if err := db.Mark(from.Marks()[0]); err != nil {
		t.Fatal(err)
	}
	for s, err := range from.Snapshots(t.Context(), 0) {
		if err == nil {
			err = db.Record(s)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out, talk bytes.Buffer
	if code := execute([]string{"show", dir, "--format", "json"}, &out, &talk); code != exitDone {
		t.Fatal(talk.String())
	}
	var s shownRun
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	if w := shown(t, "aiperf-rate4").Run.Window; w.Seconds != s.Run.Window.Seconds || w.Start != s.Run.Window.Start {
		t.Errorf("row 19: %+v, want %+v", s.Run.Window, w)
	}
}

// A part of a run without a request, or without a poll, is said on the first line; one that is cut is told.
func TestWindowsWithoutRequests(t *testing.T) {
	t.Parallel()
	path := testkit.Path(t, "runs/vllm-bench-rate4")
	for selector, want := range map[string]string{"@1s..20s": "warning: no poll of this part of the run showed a request",
		"@2020-01-01T00:00:00Z..1s": "warning: no poll of this part of the run showed a request"} {
		if text := said(t, exitDone, "show", path+selector); !strings.HasPrefix(text, want) {
			t.Errorf("%s: %s", selector, text)
		}
		said(t, exitIncomplete, "show", path+selector, "--strict")
	}
	for _, selector := range []string{"@300s..400s", "@+60s..", "@2020-01-01T00:00:00Z..2021-01-01T00:00:00Z"} {
		text := said(t, exitFailed, "show", path+selector)
		if !strings.HasPrefix(text, "error: nothing is left to measure: no poll lies in the range") ||
			strings.Contains(text, "ANSWERED BY") {
			t.Errorf("%s: %s", selector, text)
		}
		said(t, exitIncomplete, "show", path+selector, "--strict")
		said(t, exitIncomplete, "check", path+selector, "--assert", "vllm:request_success rate < 1")
		said(t, exitFailed, "compare", path+selector, path)
		said(t, exitFailed, "report", path+selector, "-o", filepath.Join(t.TempDir(), "r.html"))
	}
	idle := filepath.Join(t.TempDir(), "idle") // whose marks tell the window
	said(t, exitDone, "simulate", "vllm,rate=1e-9", "--record", idle, "--warmup", "5s", "--duration", "20s")
	if text := said(t, exitDone, "show", idle); !strings.HasPrefix(text, "warning: no poll of this part of the run") {
		t.Errorf("a run without a request:\n%s", text)
	}
	text := said(t, exitDone, "show", path+"@2020-01-01T00:00:00Z..")
	if !strings.Contains(text, "measured   119.1 s  from -0.1 s to 119.0 s of the run") ||
		!strings.Contains(text, "range_cut: ") {
		t.Errorf("a range that begins before the recording:\n%s", text)
	}
}

// differences lists the paths at which two documents differ; a list that ends earlier than the other one is "end".
func differences(path string, a, b any) (out []string) {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return []string{path}
		}
		for key := range x {
			out = append(out, differences(path+"/"+key, x[key], y[key])...)
		}
	case []any:
		y, ok := b.([]any)
		if !ok {
			return []string{path}
		}
		for i := range min(len(x), len(y)) {
			out = append(out, differences(path, x[i], y[i])...)
		}
		if len(x) != len(y) {
			out = append(out, path+"/end")
		}
	default:
		if a != b {
			return []string{path}
		}
	}
	return out
}

// Row 18: AIPerf's part has the rates, gauges and slices of the window when asked for them, and nothing else differs.
func TestAIPerfRatesOfWindow(t *testing.T) {
	t.Parallel()
	for _, run := range []string{"aiperf-rate4", "triton-steady"} {
		of := func(rates string) (doc map[string]any, metrics map[string]exportedMetric) {
			dir := t.TempDir()
			said(t, exitDone, "export", testkit.Path(t, "runs/"+run), "--formats", "json,csv", "-o", dir, "--aiperf-rates",
				rates, "--slice-duration", "1s", "-q")
			b, err := os.ReadFile(filepath.Join(dir, "server_metrics_export.json"))
			if err == nil {
				err = json.Unmarshal(b, &doc)
			}
			if err != nil {
				t.Fatal(err)
			}
			return doc, readExport(t, dir).Metrics
		}
		aiperf, _ := of("aiperf")
		own, metrics := of("window")
		stats := regexp.MustCompile(`^/metrics/[^/]+/series/(stats/(rate|count_rate|sum_rate|rate_(avg|min|max|std)|` +
			`gauge_(avg|min|max|std|p\d+))|timeslices(/.*)?)$|^/scrapestat/.*/timeslices(/|$)`)
		for _, doc := range []map[string]any{aiperf, own} { // of the share of slices in which the engine worked
			derived := doc["scrapestat"].(map[string]any)["derived"].([]any)
			doc["scrapestat"].(map[string]any)["derived"] = slices.DeleteFunc(derived, func(d any) bool {
				name := d.(map[string]any)["name"]
				return name == "engine_busy_share" || name == "mean_step_time"
			})
		}
		seen := map[string]bool{}
		for _, path := range differences("", aiperf, own) {
			if parts := strings.Split(path, "/"); parts[1] == "metrics" && metrics[parts[2]].Type == "gauge" {
				path = strings.Replace(path, "/stats/", "/stats/gauge_", 1)
			}
			if !stats.MatchString(path) {
				t.Errorf("row 18, %s: %s differs", run, path)
			}
			seen[path[strings.LastIndexByte(path, '/')+1:]] = true
		}
		for _, name := range []string{"rate", "end", "gauge_avg"} {
			if run == "aiperf-rate4" && !seen[name] {
				t.Errorf("row 18, %s: nothing differs in %s: %v", run, name, seen)
			}
		}
		seconds := shown(t, run).Run.Window.Seconds
		rates := 0
		for name, m := range metrics {
			for _, s := range m.Series {
				total, counts := s.Stats["total"]
				rate := s.Stats["rate"]
				if m.Type == "histogram" {
					total, rate = s.Stats["count"], s.Stats["count_rate"]
					counts = true
				}
				if total == 0 || !counts {
					continue
				}
				if rates++; !closeTo(rate*seconds, total, 1e-9) {
					t.Errorf("row 18, %s: %s has %v at %v/s in %v s", run, name, total, rate, seconds)
				}
				sum := 0.0
				for _, x := range s.Slices {
					sum += x.Total + x.Count
				}
				if !closeTo(sum, total, 1e-9) {
					t.Errorf("row 18, %s: the slices of %s add up to %v, not %v", run, name, sum, total)
				}
				if n := len(s.Slices); n > 0 && float64(s.Slices[n-1].End-s.Slices[0].Start) > seconds*1e9+2 {
					t.Errorf("row 18, %s: the slices of %s are longer than the window", run, name)
				}
			}
		}
		if rates < 5 {
			t.Errorf("row 18, %s: only %d rates", run, rates)
		}
	}
}

// What is at the edges of a window is told: how long the load rises and falls, above 5 % on the screen too, and how
// many requests were in flight at a start that cuts a load.
func TestWindowEdgesAreTold(t *testing.T) {
	for _, c := range []struct {
		run                 string
		ramp, drain, flying float64
		note                string
	}{
		{"triton-steady", .5, 1, 0, "the load rises for 0.5 s and falls for 1.0 s"},
		{"vllm-bench-rate4", 0, 0, 2, "2 requests were in flight at the start"},
	} {
		dir := t.TempDir()
		said(t, exitDone, "export", testkit.Path(t, "runs/"+c.run), "--formats", "json", "-o", dir, "-q")
		b, err := os.ReadFile(filepath.Join(dir, "server_metrics_export.json"))
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Own struct {
				Window struct {
					Ramp   *float64 `json:"ramp_s"`
					Drain  *float64 `json:"drain_s"`
					Flying *float64 `json:"in_flight_at_start"`
				}
			} `json:"scrapestat"`
		}
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatal(err)
		}
		w := doc.Own.Window
		if w.Ramp == nil || w.Drain == nil || w.Flying == nil {
			t.Fatalf("%s: ramp, drain or requests in flight are missing: %+v", c.run, w)
		}
		if math.Abs(*w.Ramp-c.ramp) > .01 || math.Abs(*w.Drain-c.drain) > .01 || *w.Flying != c.flying {
			t.Errorf("%s: rises for %v s, falls for %v s, %v in flight", c.run, *w.Ramp, *w.Drain, *w.Flying)
		}
		text := said(t, exitDone, "show", testkit.Path(t, "runs/"+c.run), "--all")
		if !strings.Contains(text, c.note) || strings.Contains(text, "the load rises") != (c.ramp > 0) {
			t.Errorf("%s: no %q in\n%s", c.run, c.note, text)
		}
	}
}

// A recording of our proxy tracks from its start on, a minute before the load generator sends: the QPS is that of the
// load all the same.
func TestRateOfProxiedRun(t *testing.T) {
	dir := t.TempDir()
	const origin = int64(1_790_000_000e9)
	rec, err := events.NewRecorder(t.Context(), dir, events.RecorderOptions{Source: "proxy",
		Create: &rundb.Meta{ID: "p", OriginNS: origin}})
	if err != nil {
		t.Fatal(err)
	}
	at := func(s float64) int64 { return origin + int64(s*1e9) }
	rec.Record(metric.Event{Type: events.StartTracking, AtNS: at(0)})
	for i := range 40 {
		id, from := fmt.Sprint(i), 60+float64(i)/8
		rec.Record(metric.Event{Type: events.SampleIssued, Sample: id, AtNS: at(from)})
		rec.Record(metric.Event{Type: events.SampleComplete, Sample: id, AtNS: at(from + .125)})
	}
	rec.Record(metric.Event{Type: events.StopTracking, AtNS: at(70)})
	if _, err := rec.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := said(t, exitDone, "requests", "report", dir)
	if !regexp.MustCompile(`(?m)^QPS +8[.]00 ok/s$`).MatchString(text) {
		t.Errorf("40 requests in 5 s, a minute after the start of tracking:\n%s", text)
	}
}
