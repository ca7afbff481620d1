package export_test

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// csvCells writes a gauge with each text as a label value and returns the cells
// of that label.
func csvCells(t interface{ Fatal(...any) }, o export.Options, texts ...string) (out []string) {
	run := &summary.Run{Endpoints: []summary.Endpoint{{Target: metric.Target{URL: "http://a/metrics"}}},
		Options: summary.Options{Quantiles: normalize.AIPerfQuantiles()}}
	m := summary.Metric{Name: "g", Type: metric.Gauge}
	for _, text := range texts {
		m.Series = append(m.Series, summary.Series{Labels: metric.NewLabels(metric.Label{Name: "v", Value: text}),
			Series: normalize.Series{Samples: 1, Gauge: &normalize.Gauge{N: 1, Quantiles: make([]float64, 9)}}})
	}
	run.Metrics = append(run.Metrics, m)
	var b bytes.Buffer
	if err := export.CSV(&b, run, o); err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(&b)
	r.Comment, r.FieldsPerRecord = '#', -1
	records, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := slices.Index(records[0], "v")
	if column < 0 {
		t.Fatal(records)
	}
	for _, record := range records[1:] {
		out = append(out, record[column])
	}
	return out
}

// TestFormulas: no spreadsheet computes a label, and every text comes back.
func TestFormulas(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		if got := csvCells(t, export.Options{}, text); len(got) != 1 || got[0] != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if got := csvCells(t, export.Options{CSVRaw: true}, text); len(got) != 1 || got[0] != text {
			t.Errorf("%q, raw: got %q", text, got)
		}
	}
	check("=cmd|'/c calc'!A0", "'=cmd|'/c calc'!A0")
	check("@SUM(A1)", "'@SUM(A1)")
	check("+1+1", "'+1+1")
	check("-2+3", "'-2+3")
	check("\t=1", "'\t=1")
	check("'x", "''x")
	for _, same := range []string{"-1", "+Inf", "-0.5", "model", "a=b", "1-2", "x'"} {
		check(same, same)
	}
}

func TestFormulasComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("=+-@'ab1. \t,\"\n")), 1, -1, -1).Draw(t, "text")
		got := csvCells(t, export.Options{}, text)
		if len(got) != 1 || strings.TrimPrefix(got[0], "'") != text {
			t.Fatalf("%q became %q", text, got)
		}
		if c := got[0][0]; c == '=' || c == '@' || c == '\t' {
			t.Fatalf("%q is a formula still", got[0])
		}
	})
}
