package normalize_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// feed gives polls at full seconds to a fold: each writes its values with g.
func feed(t *testing.T, o normalize.Options, polls ...func(g *metric.SnapshotBuilder)) *normalize.Result {
	t.Helper()
	f, err := normalize.NewFold(o)
	if err != nil {
		t.Fatal(err)
	}
	var g metric.SnapshotBuilder
	for i, p := range polls {
		s := metric.Snapshot{Seq: uint64(i), SentNS: int64(i) * second, FirstByteNS: int64(i) * second}
		p(&g)
		g.Finish(&s)
		if err := f.Add(&s); err != nil {
			t.Fatal(err)
		}
	}
	return f.Result(0)
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty(), cmpopts.EquateApprox(1e-12, 0)); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// summaryPoll is a poll of a summary; a NaN count or sum is not sent.
func summaryPoll(count, sum, median float64) func(*metric.SnapshotBuilder) {
	return func(g *metric.SnapshotBuilder) {
		s := g.Series(g.Family("s", metric.Summary, "", ""), metric.Labels{})
		g.Set(g.Slot(s, metric.SampleID{Role: metric.RoleQuantile, Bound: 0.9, Text: "0.9"}), 2*median)
		g.Set(g.Slot(s, metric.SampleID{Role: metric.RoleQuantile, Bound: 0.5, Text: "0.5"}), median)
		if !math.IsNaN(count) {
			g.Set(g.Slot(s, metric.SampleID{Role: metric.RoleCount}), count)
		}
		if !math.IsNaN(sum) {
			g.Set(g.Slot(s, metric.SampleID{Role: metric.RoleSum}), sum)
		}
	}
}

func TestSummary(t *testing.T) {
	nan := math.NaN()
	quantiles := func(v float64) []normalize.SummaryQuantile {
		return []normalize.SummaryQuantile{{Q: 0.5, Text: "0.5", Value: v}, {Q: 0.9, Text: "0.9", Value: 2 * v}}
	}
	cut := func(from, to int64) normalize.Slice {
		return normalize.Slice{StartNS: from * second, EndNS: to * second}
	}
	check := func(o normalize.Options, want normalize.Summary, resets int, polls ...func(*metric.SnapshotBuilder)) {
		t.Helper()
		r := feed(t, o, polls...)
		if len(r.Series) != 1 || r.Series[0].Summary == nil {
			t.Fatalf("got %+v, want one summary", r.Series)
		}
		same(t, "summary", *r.Series[0].Summary, want)
		if r.Series[0].Resets != resets {
			t.Errorf("got %d resets, want %d", r.Series[0].Resets, resets)
		}
	}
	// The first sample is the reference; the quantiles are the last ones.
	check(normalize.Options{}, normalize.Summary{Defined: true, Count: 6, Sum: 12, Avg: 2, CountRate: 3, SumRate: 6,
		HasRates: true, Quantiles: quantiles(7)}, 0, summaryPoll(4, 8, 5), summaryPoll(5, 9, 6), summaryPoll(10, 20, 7))
	// No data is NaN, and costs nothing else.
	check(normalize.Options{}, normalize.Summary{Defined: true, Count: 1, Sum: 1, Avg: 1, CountRate: 1, SumRate: 1,
		HasRates: true, Quantiles: quantiles(nan)}, 0, summaryPoll(0, 0, nan), summaryPoll(1, 1, nan))
	// What comes after the window is not told.
	check(normalize.Options{StartNS: second, EndNS: 2 * second, Slice: time.Second},
		normalize.Summary{Defined: true, Count: 3, Sum: 6, Avg: 2, CountRate: 1.5, SumRate: 3, HasRates: true,
			Quantiles: quantiles(3),
			Slices:    []normalize.SummarySlice{{Slice: cut(1, 2), Count: 3, Sum: 6, Avg: 2}}}, 0,
		summaryPoll(0, 0, 1), summaryPoll(1, 2, 2), summaryPoll(3, 6, 3), summaryPoll(50, 60, 9))
	// A single sample is nothing to take a difference of.
	check(normalize.Options{}, normalize.Summary{Quantiles: quantiles(3)}, 0, summaryPoll(7, 7, 3))
	check(normalize.Options{}, normalize.Summary{Defined: true, NoCount: true, NoSum: true, Quantiles: quantiles(2)}, 0,
		summaryPoll(nan, nan, 1), summaryPoll(nan, nan, 2))
}

func value(typ metric.Type, values ...float64) []func(*metric.SnapshotBuilder) {
	var out []func(*metric.SnapshotBuilder)
	for _, v := range values {
		out = append(out, func(g *metric.SnapshotBuilder) {
			s := g.Series(g.Family("x", typ, "", ""), metric.Labels{})
			g.Set(g.Slot(s, metric.SampleID{Role: metric.RoleValue}), v)
		})
	}
	return out
}

func TestStateAndInfo(t *testing.T) {
	cut := func(from, to int64) normalize.Slice {
		return normalize.Slice{StartNS: from * second, EndNS: to * second}
	}
	check := func(o normalize.Options, want normalize.State, values ...float64) {
		t.Helper()
		r := feed(t, o, value(metric.StateSet, values...)...)
		same(t, "state", *r.Series[0].State, want)
	}
	check(normalize.Options{}, normalize.State{Share: 0.75, Last: true, Changes: 2}, 1, 1, 0, 1, 1)
	check(normalize.Options{}, normalize.State{Share: 0, Last: false}, 0, 0)
	check(normalize.Options{}, normalize.State{Share: 1, Last: true}, 1)
	check(normalize.Options{}, normalize.State{Share: 1, Last: false, Changes: 1}, 1, 0)
	check(normalize.Options{Slice: 2 * time.Second},
		normalize.State{Share: 0.5, Last: true, Changes: 2, Slices: []normalize.StateSlice{
			{Slice: cut(0, 2), Share: 0.5}, {Slice: cut(2, 4), Share: 0.5}}}, 1, 0, 0, 1, 1)
	r := feed(t, normalize.Options{Slice: 2 * time.Second}, value(metric.Info, 1, 1, 1, 1, 1)...)
	same(t, "info", *r.Series[0].Info, normalize.Info{Slices: []normalize.InfoSlice{{Slice: cut(0, 2), N: 2},
		{Slice: cut(2, 4), N: 3}}})
	if s := r.Series[0]; s.Samples != 5 || s.Gauge != nil {
		t.Errorf("got %+v", s)
	}
}

func TestGaugeHistogram(t *testing.T) {
	poll := func(one, all, sum float64) func(*metric.SnapshotBuilder) {
		return func(g *metric.SnapshotBuilder) {
			s := g.Series(g.Family("q", metric.GaugeHistogram, "", ""), metric.Labels{})
			g.Set(g.Slot(s, metric.SampleID{Role: metric.RoleBucket, Bound: 1, Text: "1"}), one)
			g.Set(g.Slot(s, metric.SampleID{Role: metric.RoleBucket, Bound: math.Inf(1), Text: "+Inf"}), all)
			g.Set(g.Slot(s, metric.SampleID{Role: metric.RoleCount}), all)
			g.Set(g.Slot(s, metric.SampleID{Role: metric.RoleSum}), sum)
		}
	}
	r := feed(t, normalize.Options{Slice: time.Second, Quantiles: []float64{0.5}}, poll(1, 9, 50), poll(4, 5, 8),
		poll(0, 0, 0), poll(2, 2, 1))
	s := &r.Series[0]
	h := s.GaugeHistogram
	if h == nil || s.Resets != 0 || len(s.Warnings) != 0 {
		t.Fatalf("got %+v", s)
	}
	if h.Count != 2 || h.Sum != 1 || h.Avg != 0.5 || h.Buckets[0].Count != 2 || h.Buckets[1].Count != 2 {
		t.Errorf("got %+v, want the last sample", h)
	}
	if len(h.Quantiles) != 1 || h.Quantiles[0].Low < 0 || h.Quantiles[0].High > 1 {
		t.Errorf("got quantiles %+v", h.Quantiles)
	}
	var counts []int64
	for _, sl := range h.Slices {
		counts = append(counts, sl.Count)
	}
	same(t, "slices", counts, []int64{5, 0, 2})
	// A distribution that is empty at the end keeps its slices.
	r = feed(t, normalize.Options{Slice: time.Second}, poll(1, 9, 50), poll(4, 5, 8), poll(0, 0, 0))
	if h = r.Series[0].GaugeHistogram; h.Count != 0 || len(h.Slices) != 2 || h.Slices[0].Count != 5 {
		t.Errorf("got %+v", h)
	}
}

func TestMissingInf(t *testing.T) {
	poll := func(one, all float64) func(*metric.SnapshotBuilder) {
		return func(g *metric.SnapshotBuilder) {
			s := g.Series(g.Family("h", metric.Histogram, "", ""), metric.Labels{})
			g.Set(g.Slot(s, metric.SampleID{Role: metric.RoleBucket, Bound: 1, Text: "1"}), one)
			g.Set(g.Slot(s, metric.SampleID{Role: metric.RoleCount}), all)
			g.Set(g.Slot(s, metric.SampleID{Role: metric.RoleSum}), all)
		}
	}
	s := feed(t, normalize.Options{}, poll(1, 2), poll(3, 6)).Series[0]
	if s.Histogram.Count != 4 || len(s.Warnings) != 1 || s.Warnings[0].Code != "inf_missing" {
		t.Errorf("got %+v, warnings %v", s.Histogram, s.Warnings)
	}
}
