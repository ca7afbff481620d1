package check_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/check"
	"github.com/scrapestat/scrapestat/metric"
)

// command is a workflow command as GitHub reads it: a level, properties and a text.
type command struct {
	level, text string
	properties  map[string]string
}

func readCommand(t *testing.T, line string) command {
	t.Helper()
	head, text, ok := strings.Cut(strings.TrimPrefix(line, "::"), "::")
	level, list, _ := strings.Cut(head, " ")
	if !ok || !strings.HasPrefix(line, "::") {
		t.Fatalf("no command: %q", line)
	}
	back := strings.NewReplacer("%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",", "%25", "%")
	c := command{level, back.Replace(text), map[string]string{}}
	for p := range strings.SplitSeq(list, ",") {
		k, v, _ := strings.Cut(p, "=")
		c.properties[k] = back.Replace(v)
	}
	return c
}

// TestWriteGitHub: ten annotations of a level, the last of which counts the others; what a target sent is text,
// whatever it looks like; an error stands at the line of its expression.
func TestWriteGitHub(t *testing.T) {
	const hostile = "a%b:c,d\n::error::@all"
	failed := check.Check{Assertion: check.Assertion{Name: "ttft: p99, " + hostile, Line: 4, Op: "<"}, Verdict: check.Fail}
	for range 14 {
		failed.Outcomes = append(failed.Outcomes, check.Outcome{Verdict: check.Fail, Limit: 0.09,
			Measurement: check.Measurement{Target: hostile, Value: 0.102, Low: 0.1, High: 0.25, Unit: "seconds",
				Labels: metric.NewLabels(metric.Label{Name: "x", Value: hostile})}})
	}
	none := check.Check{Assertion: check.Assertion{Name: "b"}, Verdict: check.NoData,
		Outcomes: []check.Outcome{{Verdict: check.NoData, Measurement: check.Measurement{Why: strings.Repeat("y", 2000)}}}}
	passed := check.Check{Assertion: check.Assertion{Name: "c"}, Verdict: check.Pass,
		Outcomes: []check.Outcome{{Verdict: check.Pass}}}
	r := check.Result{Verdict: check.Fail, Answers: []check.Check{failed, none, passed}}
	var b bytes.Buffer
	if err := r.WriteGitHub(&b, "slo,1.yaml"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 12 {
		t.Fatalf("%d lines:\n%s", len(lines), b.String())
	}
	first := readCommand(t, lines[0])
	want := fmt.Sprintf("%s of %s {x=%q} is 102 ms [100 ms, 250 ms], limit < 90 ms", failed.Name, hostile, hostile)
	if first.level != "error" || first.text != want || first.properties["title"] != failed.Name ||
		first.properties["file"] != "slo,1.yaml" || first.properties["line"] != "4" || len(first.properties) != 3 {
		t.Errorf("got %+v\nwant %q", first, want)
	}
	if last := readCommand(t, lines[9]); last.text != "and 5 more in the step summary" || last.level != "error" {
		t.Errorf("the tenth: %+v", last)
	}
	if w := readCommand(t, lines[10]); w.level != "warning" || len([]rune(w.text)) > 500 || w.properties["line"] != "" {
		t.Errorf("without data: %+v", w)
	}
	if n := readCommand(t, lines[11]); n.level != "notice" || n.text != "FAIL: 1 passed, 1 failed, 1 without data" {
		t.Errorf("the verdict: %+v", n)
	}
}

// TestLines: an expression knows the line that it stands in.
func TestLines(t *testing.T) {
	g, err := check.ReadSLO(strings.NewReader("# limits\nchecks:\n  - ttft p99 < 1s\n\n  - {check: e2e mean < 5s}\n"))
	if err != nil || g.Demands[0].Line != 3 || g.Demands[1].Line != 5 {
		t.Errorf("%+v, %v", g, err)
	}
}
