package report_test

import (
	"bytes"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/report"
)

// compared is a result of one worse row whose every text is evil.
func compared(evil string) *compare.Result {
	nan := math.NaN()
	row := compare.Row{Family: evil, Stat: "mean", Labels: metric.NewLabels(metric.Label{Name: "l", Value: evil}),
		Target: evil, Unit: "seconds", Meaning: evil, Notes: []string{evil}}
	row.Cells = []compare.Cell{{Value: 1, Low: nan, High: nan}, {Value: 2, Low: 1.5, High: 2.5}}
	row.Against = []compare.Comparison{{}, {Verdict: compare.Worse, Evidence: compare.Repeats, Change: 1, Difference: 1,
		P: .002, Q: .004, Low: nan, High: nan,
		Distance: &compare.DistributionShift{Max: .5, At: 2, Shares: []compare.Share{{Bound: 2, Base: 1, Other: .5}}}}}
	gone := compare.Row{Family: evil + "2", Cells: []compare.Cell{{Missing: evil}, {Missing: evil}},
		Against: []compare.Comparison{{}, {Verdict: compare.Incomparable, Reason: evil}}}
	return &compare.Result{Alpha: .05, MinEffect: .02, Sides: []compare.Side{{Name: evil,
		Runs: make([]compare.RunInfo, 6)}, {Name: "b", Runs: make([]compare.RunInfo, 6)}},
		Differences: []compare.Difference{{Kind: "tag", Name: evil, Values: []string{evil, ""}}},
		Rows:        []compare.Row{row, gone}, Tested: 1,
		Warnings: []metric.Warning{{Code: "c", Text: evil}}}
}

// TestComparisonHostile: nothing that a run says reaches a terminal, a comment or a
// page as more than text.
func TestComparisonHostile(t *testing.T) {
	evil := "\x1b]0;x\x07<script>alert(1)</script> | [a](http://evil) @all `x` *b*\r\n# h \u202e"
	r := compared(evil)
	var text, md, page bytes.Buffer
	for _, err := range []error{report.ComparisonText(&text, r, report.ComparisonOptions{}),
		report.ComparisonMarkdown(&md, r, report.ComparisonOptions{}), report.ComparisonHTML(&page, r)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, s := range map[string]string{"text": text.String(), "markdown": md.String(), "page": page.String()} {
		if strings.ContainsAny(s, "\x1b\x07\r\u202e") {
			t.Errorf("%s: a control character came through", name)
		}
	}
	if strings.Contains(page.String(), "<script") {
		t.Error("a tag came through")
	}
	// In Markdown it is code, between more backticks than it has.
	if s := regexp.MustCompile("``[^`](?s:.*?)[^`]``").ReplaceAllString(md.String(), ""); strings.Contains(s, "@all") ||
		strings.Contains(s, "http://") || strings.Contains(s, "](") ||
		strings.Contains(s, "<script") || strings.Contains(s, "`x`") || !strings.Contains(md.String(), "@all") {
		t.Errorf("markup came through:\n%s", s)
	}
	for _, line := range strings.Split(md.String(), "\n") {
		if strings.HasPrefix(line, "|") && strings.Count(line, "|")-strings.Count(line, `\|`) != 8 &&
			!strings.Contains(line, "tag") && strings.Contains(line, "worse") {
			t.Errorf("a cell broke its row: %s", line)
		}
	}
	if s := page.String(); strings.Contains(s, "<a ") || strings.Contains(s, "src=") ||
		!strings.Contains(s, "default-src 'none'") {
		t.Error("the page links or has no policy")
	}
}

// TestComparisonSays: what a person looks for is in the first lines.
func TestComparisonSays(t *testing.T) {
	var b bytes.Buffer
	if err := report.ComparisonText(&b, compared("x"), report.ComparisonOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"x (6 runs) against b (6 runs)\n", "1 row tested, p corrected",
		"1 worse, 0 better, 0 changed; not listed: 0 the same",
		"worse    x{l=\"x\"} mean @ x  1 s  2 s [1.5 s, 2.5 s]  +100 %  p=0.002 q=0.004 n=0+0", "at most 2 s: 100 % -> 50 %",
		"cannot be compared\n  x (1): x2\n", "warning: c: x\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestDifferencesFit: settings that differ take 80 columns, and of long ones what tells them apart is shown.
func TestDifferencesFit(t *testing.T) {
	base := "bench serve --model some-organisation/some-model --dataset random --rate "
	r := &compare.Result{Sides: make([]compare.Side, 2), Differences: []compare.Difference{
		{Kind: "command", Name: "of the load", Values: []string{base + "4", base + "16 --seed 7"}}}}
	var b strings.Builder
	if err := report.ComparisonText(&b, r, report.ComparisonOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "…4 ") || !strings.Contains(b.String(), "…16 --seed 7") {
		t.Errorf("what differs is not told: %s", b.String())
	}
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "command") && texttab.Width(line) > 81 {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
}
