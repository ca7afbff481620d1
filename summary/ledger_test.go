package summary_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// TestFetches has cases 50 and 51 of aiperf.md section 8, and the fields of 1.9.
func TestFetches(t *testing.T) {
	f := newFake("u").Mark(2, metric.PhaseProfiling).Mark(8, metric.MarkEnd)
	f.Scrape(0, 0, "a 1\n").Duration = 2 * time.Millisecond
	f.Scrape(0, 1, "a 1\n").Duration = 4 * time.Millisecond // a duplicate counts, but is no update
	f.Scrape(0, 2, "# TYPE s summary\ns_sum 1\n")           // nothing AIPerf keeps: not counted
	f.Scrape(0, 3, "")
	f.Fail(0, 4, metric.HTTPError, "503 Service Unavailable")
	f.Scrape(0, 5, "a 2\n")
	f.Scrape(0, 6, "a 3\n")
	f.Scrape(0, 9, "a 4\n")
	e := build(t, summary.Options{}, f).Endpoints[0]
	want := summary.FetchStats{Total: 5, FirstNS: origin, LastNS: origin + 9*second, AvgLatency: 3 * time.Millisecond,
		AvgLatencyMS: 3,
		Unique:       4, FirstUpdateNS: origin, LastUpdateNS: origin + 9*second, AvgUpdateIntervalMS: 3000,
		MedianUpdateIntervalMS: 3000, HasMedian: true}
	if diff := cmp.Diff(want, e.Fetches); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	want = summary.FetchStats{Total: 3, FirstNS: origin + 5*second, LastNS: origin + 9*second,
		AvgLatency: 3 * time.Millisecond, AvgLatencyMS: 3,
		Unique: 3, FirstUpdateNS: origin + 5*second, LastUpdateNS: origin + 9*second, AvgUpdateIntervalMS: 2000,
		MedianUpdateIntervalMS: 2000, HasMedian: true}
	if diff := cmp.Diff(&want, e.InWindow); diff != "" {
		t.Errorf("window (-want +got):\n%s", diff)
	}
	if e.InWarmup != nil {
		t.Errorf("there was no warm-up, got %+v", e.InWarmup)
	}
	one := newFake("u")
	one.Scrape(0, 1, "a 1\n")
	if got := build(t, summary.Options{}, one).Endpoints[0].Fetches; got.Unique != 1 || got.HasMedian ||
		got.AvgUpdateIntervalMS != 0 || got.UpdateSeconds() != 0 {
		t.Errorf("one fetch: %+v", got)
	}
	if got := build(t, summary.Options{}, newFake("u")).Endpoints[0]; got.Fetches != (summary.FetchStats{}) ||
		got.InWindow != nil {
		t.Errorf("no fetch: %+v", got)
	}
}

func TestLedger(t *testing.T) {
	f := newFake("u").Mark(0, metric.PhaseProfiling).Mark(4, metric.MarkEnd)
	f.Fail(0, 0, metric.ConnectError, "refused")
	s := f.Scrape(0, 1, "# TYPE a gauge\na 1\n# TYPE b counter\n# TYPE b gauge\n# TYPE i info\ni 1\n# TYPE h "+
		"gaugehistogram\nh_sum 1\n")
	s.Outcome, s.Lines, s.Drops = metric.Partial, 6,
		[]metric.Drop{{Reason: "parse", Lines: 2, First: "line 1"}, {Reason: "duplicate_label", Lines: 1, First: "line 9"}}
	s = f.Scrape(0, 2, "a 2\n")
	s.Drops, s.Lines = []metric.Drop{{Reason: "parse", Lines: 1, First: "line 4"}}, 2
	f.Fail(0, 3, metric.Timeout, "late")
	f.Fail(0, 3.5, metric.SkippedOverlap, "busy")
	f.Polled[0].Polls[4].SentNS = 0 // never sent
	f.Scrape(0, 5, "a 3\n")
	f.Fail(0, 9, metric.Cancelled, "")
	f.Polled[0].Polls[6].Lines, f.Polled[0].Polls[6].Drops = 4, []metric.Drop{{Reason: "sample_limit", Lines: 4}}
	e := build(t, summary.Options{}, f).Endpoints[0]
	l := e.Ledger
	if l.Scheduled != 7 || l.Outcomes != [metric.Outcomes]int{metric.OK: 2, metric.Partial: 1, metric.ConnectError: 1,
		metric.Timeout: 1, metric.SkippedOverlap: 1, metric.Cancelled: 1} {
		t.Errorf("scheduled %d, outcomes %v", l.Scheduled, l.Outcomes)
	}
	if want := [metric.Outcomes]int{metric.OK: 2, metric.Partial: 1, metric.ConnectError: 1, metric.Timeout: 1,
		metric.SkippedOverlap: 1}; l.InWindow != want {
		t.Errorf("in window: got %v, want %v", l.InWindow, want)
	}
	if l.FirstError != (summary.PollError{AtNS: origin, Outcome: metric.ConnectError, Text: "refused"}) ||
		l.FirstOf[metric.ConnectError] != l.FirstError || l.FirstOf[metric.OK] != (summary.PollError{}) ||
		l.LastError != (summary.PollError{AtNS: origin + 9*second, Outcome: metric.Cancelled}) {
		t.Errorf("errors: first %+v, last %+v", l.FirstError, l.LastError)
	}
	if l.Lines != 13 || l.Stored != 5 {
		t.Errorf("%d of %d lines stored", l.Stored, l.Lines)
	}
	if want := []metric.Drop{{Reason: "parse", Lines: 3, First: "line 1"},
		{Reason: "duplicate_label", Lines: 1, First: "line 9"},
		{Reason: "sample_limit", Lines: 4}}; !slices.Equal(l.Dropped, want) {
		t.Errorf("dropped %v, want %v", l.Dropped, want)
	}
	if l.Families != 5 || l.SeriesN != 3 || !slices.Equal(e.Declared, []string{"b"}) {
		t.Errorf("%d families, %d series, declared %v", l.Families, l.SeriesN, e.Declared)
	}
	want := []summary.Gap{{0, origin + 1*second, 1}, {origin + 2*second, origin + 5*second, 2}, {origin + 5*second, 0, 1}}
	if !slices.Equal(e.Gaps, want) || e.GapsN != 3 {
		t.Errorf("%d gaps %v, want %v", e.GapsN, e.Gaps, want)
	}
}

func TestLateness(t *testing.T) {
	f := newFake("u")
	for i := range 200 {
		s := f.Scrape(0, float64(i), "a 1\n")
		s.DueNS = s.SentNS - int64(i+1)*int64(time.Millisecond)
	}
	f.Scrape(0, 200, "a 1\n").DueNS = origin + 300*second // early is on time
	got := build(t, summary.Options{}, f).Endpoints[0].Ledger.Late
	want := summary.ScheduleDelay{Mean: 100 * time.Millisecond, P99: 198 * time.Millisecond, Max: 200 * time.Millisecond}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestBounded checks that a target which goes wrong all the time costs bounded
// memory, and that what is not kept is counted.
func TestBounded(t *testing.T) {
	f := newFake("u")
	for i := range 300 {
		s := f.Scrape(0, float64(2*i), "a 1\n")
		s.Warnings = []metric.Warning{{Code: "odd", Text: fmt.Sprint(i)}, {Code: "same", Text: "same"}}
		s.Drops = []metric.Drop{{Reason: fmt.Sprint(i), Lines: 1}}
		f.Fail(0, float64(2*i+1), metric.Timeout, "late")
	}
	e := build(t, summary.Options{}, f).Endpoints[0]
	last := e.Warnings[len(e.Warnings)-1]
	if len(e.Warnings) != 52 || e.Warnings[0].Code != "stale_target" ||
		last != (metric.Warning{Code: "more_warnings", Text: "251 more warnings were not kept"}) {
		t.Errorf("%d warnings, last %v", len(e.Warnings), last)
	}
	if len(e.Gaps) != 100 || e.GapsN != 300 {
		t.Errorf("%d gaps of %d", len(e.Gaps), e.GapsN)
	}
	lines := 0
	for _, d := range e.Ledger.Dropped {
		lines += d.Lines
	}
	if n := len(e.Ledger.Dropped); n != 50 || lines != 300 || e.Ledger.Dropped[n-1].Reason != "other" {
		t.Errorf("%d reasons, %d lines, last %v", n, lines, e.Ledger.Dropped[n-1])
	}
}

// TestMetrics checks how series of several endpoints are merged and sorted.
func TestMetrics(t *testing.T) {
	f := newFake("http://b", "http://a", "http://c")
	for n := range 2 {
		f.Scrape(0, float64(n), "# HELP m First.\n# TYPE m counter\nm{x=\"10\"} 1\nm{x=\"9\"} 1\nm{x=\"it's\"} "+
			"1\nm{x=\"é\"} 1\nm{a=\"2\",x=\"1\"} 1\nm 1\n# TYPE z gauge\nz 1\n")
		f.Scrape(1, float64(n), "# HELP m Second.\n# TYPE m counter\nm{x=\"5\"} 1\n# HELP b_seconds Time.\n# TYPE "+
			"b_seconds gauge\nb_seconds 1\n")
		f.Scrape(2, float64(n), "# TYPE m gauge\nm 1\n# TYPE y_us gauge\ny_us 1\n")
	}
	r := build(t, summary.Options{}, f.Mark(0, "profiling"))
	var got []string
	for _, m := range r.Metrics {
		got = append(got, fmt.Sprintf("%s %v %q %s|%s %v", m.Name, m.Type, m.Help, m.Unit, m.OwnUnit, m.Conflict))
		for _, s := range m.Series {
			got = append(got, r.Endpoints[s.Endpoint].URL+s.Labels.String())
		}
	}
	want := []string{`b_seconds gauge "Time." seconds| false`, "http://a",
		`m counter "First." | false`, `http://a{x="5"}`, "http://b", `http://b{a="2",x="1"}`, `http://b{x="it's"}`,
		`http://b{x="10"}`, `http://b{x="9"}`, `http://b{x="é"}`,
		`m gauge "" | true`, "http://c",
		`y_us gauge "" |microseconds false`, "http://c", `z gauge "" | false`, "http://b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(r.Warnings) != 1 || r.Warnings[0] != (metric.Warning{Code: "type_conflict",
		Text: "m is a gauge at http://c and elsewhere a counter: they are kept apart"}) {
		t.Errorf("warnings %v", r.Warnings)
	}
}

// TestMerge checks the result of several collectors of one benchmark.
func TestMerge(t *testing.T) {
	one := line(9, "http://a").Mark(0, "warmup").Mark(2, "profiling").Mark(7, "end")
	two := line(9, "http://b").Mark(3.5, "profiling").Mark(8, "end")
	three := line(9, "http://a").Mark(2.25, "profiling").Mark(6, "end")
	three.Phases = append([]metric.Mark{{Name: "warmup", AtNS: origin - second}}, three.Phases...)
	one.Info.Tags, two.Info.Tags = map[string]string{"k": "1"}, map[string]string{"k": "2", "l": "3"}
	two.Info.ID = "run-2"
	two.Warned = []metric.Warning{{Code: "clock_jump", Text: "the clock jumped"}}
	r := build(t, summary.Options{}, one, two, three)
	var urls []string
	for _, e := range r.Endpoints {
		urls = append(urls, fmt.Sprintf("%s %.2f-%.2f", e.URL, float64(e.StartNS-origin)/1e9, float64(e.EndNS-origin)/1e9))
	}
	if want := []string{"http://a 2.00-8.00", "http://b 3.50-8.00", "http://a 2.25-8.00"}; !slices.Equal(urls, want) {
		t.Errorf("endpoints %q, want %q", urls, want)
	}
	if got, want := outline(r), "profiling 2-8 phase end 8 total 70"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if w := r.WarmupWindow; r.ID != "run-1" || r.Tags["k"] != "1" || r.Tags["l"] != "3" || w == nil ||
		w.StartNS != origin-second || w.EndNS != origin+9*second/4 {
		t.Errorf("identity %s, tags %v, warm-up %+v", r.ID, r.Tags, w)
	}
	if !hasWarning(r.Warnings, "clock_jump") || !hasWarning(r.Warnings, "windows_differ") ||
		!hasWarning(r.Endpoints[2].Warnings, "duplicate_endpoint") {
		t.Errorf("warnings %v, %v", r.Warnings, r.Endpoints[2].Warnings)
	}
	first := build(t, summary.Options{}, two, one)
	if w := first.WarmupWindow; w == nil || w.StartNS != origin {
		t.Errorf("warm-up of the second recording: %+v", w)
	}
}

func TestFlagNames(t *testing.T) {
	if got := summary.FlagNames(7); !slices.Equal(got, []string{"degenerate", "overflow", "few"}) {
		t.Errorf("got %v", got)
	}
	if got := summary.FlagNames(0); got != nil {
		t.Errorf("got %v", got)
	}
}
