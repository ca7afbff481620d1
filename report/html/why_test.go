package html_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/report/html"
	"github.com/scrapestat/scrapestat/summary"
)

// cause is a result with a queue in half of the timeslices, of an engine whose name is markup.
func cause(engine string, queue float64) *explain.Result {
	return &explain.Result{Why: explain.Latency, Engine: engine, Verdict: "queue_kv", Mean: queue + 1, Requests: 50,
		Of: metric.NewLabels(metric.Label{Name: "model", Value: "</td><script>alert(1)</script>"}),
		Findings: []explain.Finding{{ID: "queue_kv", Seconds: queue, Share: queue / (queue + 1)},
			{ID: "service", Seconds: 1, Share: 1 / (queue + 1)}},
		Waterfall: []explain.Row{{ID: "queue_kv", Seconds: queue, Share: queue / (queue + 1)},
			{ID: "decode_base", Seconds: 1, Share: 1 / (queue + 1)}, {ID: "unexplained", Seconds: 1e-17, Share: 1e-17}},
		Classes: []string{"", "queue_kv", "queue_kv", ""}, Slice: 2, Missing: []string{"<b>power</b>"},
		Open: []string{"stalls"}, Notes: []string{"a note"}}
}

// TestWhy: the section has the causes of each run, the parts of both means beside each other, and nothing of a run is
// markup; without causes there is none.
func TestWhy(t *testing.T) {
	page := func(causes ...*explain.Result) string {
		var ins []html.Input
		for i, c := range causes {
			in := html.Input{Name: "run<i>" + "ab"[i:i+1], Run: &summary.Run{}}
			if c != nil {
				in.Causes = []*explain.Result{c}
			}
			ins = append(ins, in)
		}
		var b bytes.Buffer
		if err := html.Write(&b, ins, html.Options{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	two := page(cause("vllm", 1), cause("vllm", 3))
	for _, want := range []string{`<a href="#why">Why</a>`, `of +2 s, +2 s are queue_kv: requests waited because`,
		`<td class="num">3 s</td><td class="num">&#43;2 s</td>`, `<rect class="w0" x="1" width="2" height="10"/>`,
		`<rect class="ws" x="75" width="25" height="10"/>`, "Not known: &lt;b&gt;power", "Not ruled out: stalls"} {
		if !strings.Contains(strings.ReplaceAll(two, "of &#43;2 s, &#43;2 s", "of +2 s, +2 s"), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	for _, bad := range []string{"<script>alert", "<b>power", "run<i>", ">unexplained<"} {
		if strings.Contains(two, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if one := page(cause("vllm", 1)); strings.Count(one, `class="why"`) != 1 || strings.Contains(one, "Change</th>") {
		t.Error("a run alone has a change")
	}
	if none := page(nil); strings.Contains(none, `id="why"`) {
		t.Error("a section about nothing")
	}
	untold := page(&explain.Result{Verdict: "cannot_tell", Mean: math.NaN(), Missing: []string{"queue time"},
		Findings: []explain.Finding{{ID: "cannot_tell", Seconds: math.NaN(), Share: math.NaN()}}})
	if !strings.Contains(untold, "Not known: queue time") {
		t.Error("nobody tells that nothing is known")
	}
}
