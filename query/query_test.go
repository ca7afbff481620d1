package query_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/testkit/fakerun"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/query"
	"github.com/scrapestat/scrapestat/summary"
)

// odd is a run of two targets: their histograms have different buckets, one of which saw nothing, a gauge is known to
// nobody, and a counter has a single sample.
func odd(t *testing.T, by []string) *summary.Run {
	t.Helper()
	f := fakerun.New("http://a", "http://b")
	for i := range 11 {
		n := float64(i)
		histogram := func(name, bound string, n float64) string {
			return fmt.Sprintf("# TYPE %s histogram\n%s_bucket{le=%q} %g\n%s_bucket{le=\"+Inf\"} %g\n"+
				"%s_sum %g\n%s_count %g\n", name, name, bound, n, name, n, name, n/2, name, n)
		}
		body := "# TYPE g gauge\ng 3\n# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 2\n"
		if i == 10 {
			body += "# TYPE late counter\nlate 5\n"
		}
		f.Scrape(0, n, body+histogram("vllm:time_to_first_token_seconds", "1", n)+histogram("idle_seconds", "1", 7))
		f.Scrape(1, n, body+histogram("vllm:time_to_first_token_seconds", "2", n))
	}
	f.Mark(0, metric.PhaseProfiling)
	run, err := summary.Build(t.Context(), []summary.Recording{f}, summary.Options{Slice: 5 * time.Second, By: by})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func lines(run *summary.Run, o query.Options) (out []string) {
	for r := range query.Stats(run, o) {
		target := strings.TrimPrefix(r.Target, "http://")
		out = append(out, fmt.Sprintf("%s %s %s%v %s%d %s=%g %s %d", r.Level, target, r.Metric, r.Labels, r.Span,
			r.Slice, r.Stat, r.Value, r.Status, r.N))
	}
	return out
}

func TestStats(t *testing.T) {
	run, all := odd(t, nil), odd(t, []string{})
	for _, c := range []struct {
		run  *summary.Run
		o    query.Options
		want []string
	}{
		{run, query.Options{Metrics: []string{"idle_seconds"}, Stats: []string{"count", "p50", "mean"}}, []string{
			"series a idle_seconds window-1 count=0 ok 0", "series a idle_seconds window-1 avg=NaN no_data 0",
			"series a idle_seconds window-1 p50=NaN no_data 0"}},
		{all, query.Options{Metrics: []string{"g"}}, []string{"group  g window-1 time_avg=NaN not_aggregated -1"}},
		{all, query.Options{Metrics: []string{"ttft"}, Stats: []string{"count", "p50"}, Spans: []string{"window"}}, []string{
			"group  vllm:time_to_first_token_seconds window-1 count=20 ok 20",
			"group  vllm:time_to_first_token_seconds window-1 p50=NaN bounds_differ 20"}},
		{all, query.Options{Metrics: []string{"running"}, Stats: []string{"mean"}}, []string{
			"group  vllm:num_requests_running window-1 time_avg=4 ok 22",
			"group  vllm:num_requests_running slice0 avg=4 ok 10", "group  vllm:num_requests_running slice1 avg=4 ok 12"}},
		{run, query.Options{Metrics: []string{"vllm:time_to_first_token_seconds"}, Stats: []string{"total"}}, nil},
		{run, query.Options{Metrics: []string{"nothing"}}, nil},
		{run, query.Options{Metrics: []string{"ttft mean"}, Levels: []string{query.LevelFleet}}, []string{
			"fleet  vllm:time_to_first_token_seconds window-1 avg=0.5 ok 20",
			"fleet  vllm:time_to_first_token_seconds slice0 avg=0.5 ok 10",
			"fleet  vllm:time_to_first_token_seconds slice1 avg=0.5 ok 10"}},
	} {
		got := lines(c.run, c.o)
		got = slices.DeleteFunc(got, func(l string) bool { return strings.Contains(l, "running_") })
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v:\n got %q\nwant %q", c.o, got, c.want)
		}
	}
	if got := query.Unknown(run, []string{"ttft", "tftt", "vllm:*", "x*", "derived:output_tok_s"}); len(got) != 3 {
		t.Errorf("unknown: %v", got)
	}
	if got := query.Nearest("tftt", run); !slices.Contains(got, "ttft") {
		t.Errorf("nearest: %v", got)
	}
}

// Rows stop when nobody takes them, and columns have what rows have.
func TestStatsStops(t *testing.T) {
	n := 0
	for r := range query.Stats(odd(t, nil), query.Options{Run: "x"}) {
		for _, c := range query.Columns() {
			v := c.Of(r)
			if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
				t.Errorf("%s: %v", c.Name, v)
			}
		}
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d rows", n)
	}
}

// What a target sent is text in every format: nothing that a terminal acts on, no line of its own, no formula.
func TestHostile(t *testing.T) {
	const hostile = "=cmd()\x9b31m\u202e\n\x1b[2J\xff"
	rows := func(yield func(*query.Row) bool) {
		yield(&query.Row{Run: hostile, Target: hostile, Metric: hostile, Labels: metric.NewLabels(
			metric.Label{Name: "l", Value: hostile}), Q: math.NaN(), Value: 1, Low: math.NaN(), High: math.Inf(1), Status: "ok"})
	}
	var b bytes.Buffer
	more := func() bool { return false }
	for name, write := range map[string]func() error{
		"json":  func() error { return query.WriteJSON(&b, rows, more) },
		"jsonl": func() error { return query.WriteJSONL(&b, rows) },
		"text":  func() error { _, err := query.Table(rows).WriteTo(&b); return err },
		"list":  func() error { _, err := query.List(rows).WriteTo(&b); return err },
	} {
		b.Reset()
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(b.String(), "\x1b\u009b\u202e") || strings.Count(b.String(), "\n") > 2 {
			t.Errorf("%s: %q", name, b.String())
		}
		if strings.HasPrefix(name, "json") && !json.Valid(b.Bytes()) {
			t.Errorf("%s is no JSON: %q", name, b.String())
		}
	}
	b.Reset()
	if err := query.WriteCSV(&b, rows, false); err != nil || !strings.Contains(b.String(), "\"'=cmd()") {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestPercentiles(t *testing.T) {
	for q, name := range map[float64]string{0.5: "p50", 0.999: "p99.9", 0: "p0", 1: "p100"} {
		if got := query.Percentile(q); got != name {
			t.Errorf("%v is %s, want %s", q, got, name)
		}
		if got, ok := query.ParsePercentile(name); !ok || math.Abs(got-q) > 1e-15 {
			t.Errorf("%s is %v, %v", name, got, ok)
		}
	}
	for _, name := range []string{"p", "p101", "p-1", "q50", "pNaN", "", "p+5", "p-0"} {
		if q, ok := query.ParsePercentile(name); ok {
			t.Errorf("%s is %v", name, q)
		}
	}
}
