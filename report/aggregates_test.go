package report_test

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/summary"
)

func TestAggregates(t *testing.T) {
	labels := metric.NewLabels(metric.Label{Name: "model", Value: "x"})
	counter := summary.Aggregate{Metric: 0, Labels: labels, Series: 2,
		Counter: &normalize.Counter{Defined: true, Total: 30, Rate: 1.5}}
	idle := summary.Aggregate{Metric: 0, Labels: metric.Labels{}, Series: 3, Counter: &normalize.Counter{Defined: true}}
	pooled := summary.Aggregate{Metric: 1, Labels: labels, Series: 4, Histogram: &normalize.Histogram{Count: 8, Avg: 0.28,
		Quantiles: []histest.Estimate{{Value: 0.31, Low: 0.25, High: 0.5}}}}
	refused := summary.Aggregate{Metric: 1, Labels: metric.Labels{}, Series: 5, Refused: "bucket bounds differ"}
	run := &summary.Run{
		Options:    summary.Options{By: []string{"model", "endpoint"}, Quantiles: []float64{0.99}},
		Metrics:    []summary.Metric{{Name: "things", Type: metric.Counter}, {Name: "score", Type: metric.Histogram}},
		Aggregates: []summary.Aggregate{counter, idle, pooled, refused},
	}
	check := func(o report.Options, want string) {
		t.Helper()
		var b strings.Builder
		if err := report.Text(&b, run, o); err != nil {
			t.Fatal(err)
		}
		_, got, _ := strings.Cut(b.String(), "\n\n")
		got, _, _ = strings.Cut(got, "\nestimator ")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	const warning = "\nwarnings\n  aggregate score: not_merged: bucket bounds differ\n"
	const histograms = "histograms by model, endpoint\n" +
		"HISTOGRAM  COUNT   AVG               P99  SERIES  OF\n" +
		"score          8  0.28  0.31 [0.25, 0.5]       4  {model=\"x\"}\n"
	check(report.Options{}, "counters by model, endpoint\n"+
		"COUNTER  TOTAL  PER SECOND  SERIES  OF\n"+
		"things      30         1.5       2  {model=\"x\"}\n\n"+histograms+warning)
	check(report.Options{All: true, Metric: regexp.MustCompile("score")},
		histograms+warning)

	// Letters for the flags, and what they mean below the table.
	run.Aggregates[2].Histogram.Quantiles[0] = histest.Estimate{Value: 4, Low: 3, High: math.NaN(),
		Flags: histest.Overflow | histest.Few}
	check(report.Options{All: true, Metric: regexp.MustCompile("score")}, "histograms by model, endpoint\n"+
		"HISTOGRAM  COUNT   AVG          P99  SERIES  OF\n"+
		"score          8  0.28  4 [3, ?] of       4  {model=\"x\"}\n"+
		"o: beyond the last finite bound\nf: few observations: one or two of them decide\n"+warning)
}
