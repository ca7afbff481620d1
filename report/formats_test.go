package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/summary"
)

// explained is a run of two vLLM targets with a headline quantity, one that is
// missing, and a latency; labels come from a hostile server.
func explained() *summary.Run {
	r := run(nil)
	r.Endpoints = append(r.Endpoints, summary.Endpoint{Target: metric.Target{Name: "b", URL: "http://b/metrics"}})
	labels := metric.NewLabels(metric.Label{Name: "model_name", Value: "x|`@user\n<b>[a](http://evil)"})
	d := func(endpoint int, name string, status catalog.Status, v float64) summary.Derived {
		return summary.Derived{Endpoint: endpoint, Derived: catalog.Derived{Pack: catalog.VLLMPack, Name: name,
			Unit: "tokens/s", Labels: labels, Status: status, Value: v, Shown: v,
			Category: catalog.Throughput, Headline: true, Families: []string{"vllm:generation_tokens"}, Help: "Tokens."}}
	}
	r.Derived = []summary.Derived{d(0, "output_tok_s", catalog.OK, 100), d(1, "output_tok_s", catalog.OK, 300),
		d(0, "input_tok_s", catalog.Missing, 0)}
	r.Combined = []summary.FleetResult{{Endpoints: []int{0, 1},
		Derived: []summary.Derived{d(-1, "output_tok_s", catalog.ResetCorrected, 400),
			d(-1, "input_tok_s", catalog.Missing, 0)}}}
	r.Latencies = []summary.Latency{{ID: "ttft_s", Engine: "vllm", Aggregate: summary.Aggregate{Metric: 2, Series: 2,
		Histogram: &normalize.Histogram{Count: 4, Avg: 0.25,
			Quantiles: []histest.Estimate{{Value: 0.3, Low: 0.25, High: 0.5},
				{Value: 7, Low: 5, High: math.NaN(), Flags: histest.Overflow}}}}}}
	c, err := catalog.New()
	if err != nil {
		panic(err)
	}
	r.Options.Catalog = c
	return r
}

func written(t *testing.T, format string, o report.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Write(&b, explained(), format, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFirstScreen(t *testing.T) {
	got := written(t, report.FormatText, report.Options{})
	for _, want := range []string{`(?m)^vLLM  2 targets  model_name`,
		`output_tok_s +400 tokens/s +100 \(a\) +300 \(b\) +reset corrected`,
		`ttft +4 +250 ms +300 ms \[250, 500\] +7 s \[5, \?\] o`, `(?m)^  input_tok_s: no vllm:generation_tokens`} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("no match for %q in\n%s", want, got)
		}
	}
	for _, unwanted := range []string{"COUNTER", "\n<b>", "0 tokens/s (missing"} {
		if strings.Contains(got, unwanted) {
			t.Errorf("%q occurs in\n%s", unwanted, got)
		}
	}
	if got := written(t, report.FormatText, report.Options{Families: true}); !strings.Contains(got, "COUNTER") {
		t.Errorf("no families in\n%s", got)
	}
}

// What a target sends stays text in Markdown: between backticks, in its cell.
func TestMarkdownIsEscaped(t *testing.T) {
	got := written(t, report.FormatMarkdown, report.Options{Derived: true})
	outside := regexp.MustCompile("``[^`].*?[^`]``|`[^`]+`").ReplaceAllString(got, "")
	for _, bad := range []string{"@user", "<b>", "](", "http://"} {
		if strings.Contains(outside, bad) {
			t.Errorf("%q is markup in\n%s", bad, got)
		}
	}
	columns := 0
	for line := range strings.Lines(got) {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if columns != 0 && n != columns {
			t.Errorf("a row of %d cells under %d: %s", n, columns, line)
		}
		columns = n
	}
}

// Programs get the numbers, and null where there is none.
func TestJSONAndCSV(t *testing.T) {
	var doc struct {
		Schema     string
		Quantities []map[string]any
		Latencies  []map[string]any
		Missing    []map[string]any
	}
	if err := json.Unmarshal([]byte(written(t, report.FormatJSON, report.Options{})), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != "scrapestat.show" || len(doc.Quantities) != 1 || len(doc.Latencies) != 1 || len(doc.Missing) == 0 {
		t.Fatalf("got %+v", doc)
	}
	if q := doc.Quantities[0]; q["value"] != 400.0 || q["status"] != "reset_corrected" || q["highest_target"] != "b" ||
		q["question"] != "throughput" || q["numerator"] != nil {
		t.Errorf("quantity %v", q)
	}
	if l := doc.Latencies[0]; l["p50_low"] != 0.25 || l["p99"] != 7.0 || l["p99_high"] != nil || l["unit"] != "seconds" {
		t.Errorf("latency %v", l)
	}
	lines, err := csv.NewReader(strings.NewReader(written(t, report.FormatCSV, report.Options{}))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, l := range lines {
		found[l[0]+" "+l[4]+" "+l[6]] = l[7]
	}
	if found["quantities output_tok_s value"] != "400" || found["latencies h p99_high"] != "" ||
		found["latencies h p99_low"] != "5" {
		t.Errorf("CSV %v", found)
	}
	if err := report.Write(&bytes.Buffer{}, explained(), "yaml", report.Options{}); err == nil {
		t.Error("an unknown format was written")
	}
}

// TestHardening has findings of what must not leak, by the numbers that package
// faults lists.
func TestHardening(t *testing.T) { t.Run("K16", formulas) }

// formulas has names that a spreadsheet would compute in the CSV: they stay text.
func formulas(t *testing.T) {
	r := explained()
	r.Endpoints[0].Name, r.Endpoints[1].Name = "=HYPERLINK(1)", "@SUM(1)"
	r.Metrics[0].Name = "-2+3"
	var b bytes.Buffer
	if err := report.Write(&b, r, report.FormatCSV, report.Options{Families: true, Derived: true}); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	marked := map[string]bool{}
	for _, cell := range slices.Concat(lines...) {
		if _, err := strconv.ParseFloat(cell, 64); err != nil && cell != "" && strings.ContainsRune("=@+-", rune(cell[0])) {
			t.Errorf("%q is a formula", cell)
		}
		marked[cell] = true
	}
	if !marked["'=HYPERLINK(1)"] || !marked["'@SUM(1)"] || !marked["'-2+3"] {
		t.Error("names are missing")
	}
}

// A time of which a part was not seen has fewer observations than there were, and says so.
func TestLatencyLowerBound(t *testing.T) {
	r := explained()
	r.Latencies[0].Increase = continuity.Increase{Status: continuity.LowerBound}
	var b bytes.Buffer
	if err := report.Write(&b, r, report.FormatText, report.Options{}); err != nil {
		t.Fatal(err)
	}
	if line := regexp.MustCompile(`(?m)^ttft .*`).FindString(b.String()); !strings.Contains(line, ">= 4 ") ||
		!strings.Contains(line, "lower bound") {
		t.Errorf("%q", line)
	}
}
