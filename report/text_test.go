package report_test

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/summary"
)

// run is a result with one metric of each type at one endpoint.
func run(series func(typ metric.Type, s *summary.Series)) *summary.Run {
	r := &summary.Run{
		Version:   "1.2.3",
		Window:    summary.Window{Phase: "profiling", StartNS: 1e18, EndNS: 1e18 + 2e9},
		Options:   summary.Options{Quantiles: []float64{0.5, 0.99}},
		Endpoints: []summary.Endpoint{{Target: metric.Target{Name: "a", URL: "http://a/metrics"}}},
	}
	nan := math.NaN()
	for _, m := range []struct {
		name, unit string
		typ        metric.Type
		s          normalize.Series
	}{
		{"c", "tokens", metric.Counter, normalize.Series{Counter: &normalize.Counter{Defined: true, Total: 1500, Rate: 750}}},
		{"g", "ratio", metric.Gauge, normalize.Series{Gauge: &normalize.Gauge{N: 2,
			Spread: normalize.Spread{Avg: 0.5, Max: 1}, Quantiles: []float64{0.5, nan}}}},
		{"h", "seconds", metric.Histogram, normalize.Series{Histogram: &normalize.Histogram{Count: 4, Avg: 0.25,
			Quantiles: []histest.Estimate{{Value: 0.3, Low: 0.25, High: 0.5}, {Value: 7, Low: nan, High: nan}}}}},
	} {
		s := summary.Series{Series: m.s}
		if series != nil {
			series(m.typ, &s)
		}
		r.Metrics = append(r.Metrics, summary.Metric{Name: m.name, Type: m.typ, Unit: m.unit, Series: []summary.Series{s}})
	}
	return r
}

func text(t *testing.T, r *summary.Run, o report.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Text(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestText(t *testing.T) {
	has := func(got string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !regexp.MustCompile(want).MatchString(got) {
				t.Errorf("no match for %q in\n%s", want, got)
			}
		}
	}
	hasNot := func(got, unwanted string) {
		t.Helper()
		if strings.Contains(got, unwanted) {
			t.Errorf("%q occurs in\n%s", unwanted, got)
		}
	}
	t.Run("numbers", func(t *testing.T) {
		got := text(t, run(nil), report.Options{Title: "run1", Families: true})
		has(got, `(?m)^run run1$`, `by scrapestat 1\.2\.3`, `profiling 2s from 2001-09-09`, `c +1,500 tokens +750`,
			`h +4 +250 ms +300 ms \[250 ms, 500 ms\] +7 s`)
	})
	t.Run("missing is a dash", func(t *testing.T) {
		got := text(t, run(func(_ metric.Type, s *summary.Series) {
			if s.Counter != nil {
				s.Counter.Defined = false
			}
			if s.Histogram != nil {
				s.Histogram.NoSum, s.Histogram.Quantiles = true, nil
			}
		}), report.Options{All: true})
		has(got, `(?m)^c +- +-`, `(?m)^h +4 +- +- +-`, `(?m)^g .* - `)
	})
	t.Run("quiet series are counted", func(t *testing.T) {
		r := run(func(_ metric.Type, s *summary.Series) {
			if s.Counter != nil {
				s.Counter.Total = 0
			}
		})
		has(text(t, r, report.Options{Families: true}), `1 series did not change`)
		hasNot(text(t, r, report.Options{Metric: regexp.MustCompile("^g$")}), "HISTOGRAM")
	})
	t.Run("hostile text stays text", func(t *testing.T) {
		r := run(func(_ metric.Type, s *summary.Series) {
			s.Labels = metric.NewLabels(metric.Label{Name: "x", Value: "\x1b]0;owned\a\nnext\u202e"})
			s.Warnings = []metric.Warning{{Code: "w", Text: "\x1b[2J"}}
		})
		r.Endpoints[0].Name = "\x1b[31mred"
		got := text(t, r, report.Options{Title: "\x1b[0m"})
		for _, bad := range []string{"\x1b", "\a", "\u202e"} {
			hasNot(got, bad)
		}
	})
	t.Run("losses", func(t *testing.T) {
		r := run(nil)
		l := &r.Endpoints[0].Ledger
		l.Scheduled = 9
		l.Outcomes[metric.OK], l.Outcomes[metric.Partial], l.Outcomes[metric.SkippedOverlap], l.Outcomes[metric.Timeout] = 3,
			1, 2, 3
		l.FirstOf[metric.Timeout] = summary.PollError{Outcome: metric.Timeout, Text: "deadline passed"}
		l.Dropped = []metric.Drop{{Reason: "parse", Lines: 4, First: "line 7"}, {Reason: metric.DropFiltered, Lines: 50}}
		got := text(t, r, report.Options{})
		has(text(t, r, report.Options{All: true}), `(?m)^a +9 +3 +1 +2 +3 `)
		has(got, `polls +9 of 1 target, 5 failed or skipped`, `a +3 +timeout +deadline passed`, `a +4 +lines: parse +line 7`)
		hasNot(got, "filtered")
	})
	t.Run("warnings are bounded", func(t *testing.T) {
		r := run(nil)
		for i := range 30 {
			r.Warnings = append(r.Warnings, metric.Warning{Code: "gap", Text: fmt.Sprint("number ", i)})
		}
		got := text(t, r, report.Options{})
		has(got, `gap: number 0 \(29 more\)`)
		hasNot(got, "number 29")
		has(text(t, r, report.Options{All: true}), `gap: 25 more, listed in the exports`)
	})
}

// Bounds stand in the unit of their value, and times of minutes in seconds, so that a row fits a screen.
func TestPercentileInOneUnit(t *testing.T) {
	for want, e := range map[string]histest.Estimate{
		"23.5 ms [20, 33.6]": {Value: 0.0235, Low: 0.02, High: 0.0336},
		"59.9 s [59.5, 61]":  {Value: 59.9, Low: 59.5, High: 61},
		"75.2 s [60, 80]":    {Value: 75.2, Low: 60, High: 80},
		"5,430 s [3,600, ?]": {Value: 5430, Low: 3600, High: math.NaN()},
	} {
		if got := report.Percentile(e, "seconds"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	e := histest.Estimate{Value: 75200, Low: 60000, High: 80000}
	if got := report.Percentile(e, "milliseconds"); got != "75.2 s [60, 80]" {
		t.Error(got)
	}
}
