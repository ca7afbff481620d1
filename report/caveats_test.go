package report_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/summary"
)

// TestCrossEngine: a quantity that two engines have is a row with the letters of its caveats, rates of several models
// are added up, other quantities of several are not; caveats are told of rows alone.
func TestCrossEngine(t *testing.T) {
	r := explained()
	add := func(pack, family, name, canonical, unit, model string, q catalog.Category, v float64) {
		labels := metric.NewLabels(metric.Label{Name: "model_name", Value: model})
		if model == "" {
			labels = metric.Labels{}
		}
		d := summary.Derived{Endpoint: -1, Derived: catalog.Derived{Pack: pack, Name: name, Canonical: canonical, Unit: unit,
			Labels: labels, Status: catalog.OK, Value: v, Shown: v, Category: q, Families: []string{family}}}
		r.Combined[0].Derived = append(r.Combined[0].Derived, d)
	}
	const tpot, ended = "vllm:request_time_per_output_token_seconds", "vllm:request_success"
	add(catalog.VLLMPack, ended, "request_rate", "request_rate", "requests/s", "m1", catalog.Throughput, 3)
	add(catalog.VLLMPack, ended, "request_rate", "request_rate", "requests/s", "m2", catalog.Throughput, 4)
	add(catalog.VLLMPack, tpot, "tpot", "tpot_mean_s", "seconds", "m1", catalog.Latency, 0.01)
	add(catalog.VLLMPack, tpot, "itl", "itl_mean_s", "seconds", "m1", catalog.Latency, 0.01)
	add(catalog.VLLMPack, tpot, "queue", "queue_mean_s", "seconds", "m1", catalog.Latency, 0.01)
	add(catalog.VLLMPack, tpot, "queue", "queue_mean_s", "seconds", "m2", catalog.Latency, 0.02)
	add("tgi", "tgi_request_success", "request_rate", "request_rate", "requests/s", "", catalog.Throughput, 5)
	add("tgi", "tgi_request_success", "tpot", "tpot_mean_s", "seconds", "", catalog.Latency, 0.02)
	add("tgi", "tgi_request_success", "queue", "queue_mean_s", "seconds", "", catalog.Latency, 0.02)
	got := text(t, r, report.Options{Title: "run1", Derived: true})
	for _, want := range []string{`(?m)^request_rate +7 requests/s +5 requests/s +g$`,
		`(?m)^tpot_mean_s +10 ms +20 ms +i$`,
		`(?m)^  g: Success`, `(?m)^  i: Text Generation`} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("no match for %q in\n%s", want, got)
		}
	}
	for _, unwanted := range []string{`(?m)^itl_mean_s`, `(?m)^queue_mean_s`, `(?m)^  [^gio]: `} {
		if regexp.MustCompile(unwanted).MatchString(got) {
			t.Errorf("a match for %q in\n%s", unwanted, got)
		}
	}
}

// TestFamilyTypes: summaries and state sets have rows, and what is not known of them is a dash and null.
func TestFamilyTypes(t *testing.T) {
	r := run(nil)
	add := func(name string, typ metric.Type, s normalize.Series) {
		r.Metrics = append(r.Metrics, summary.Metric{Name: name, Type: typ, Unit: "seconds",
			Series: []summary.Series{{Series: s}}})
	}
	add("s", metric.Summary, normalize.Series{Summary: &normalize.Summary{Defined: true, Count: 4, CountRate: 2,
		HasRates: true, Avg: 0.5, Quantiles: []normalize.SummaryQuantile{{Q: 0.5, Text: "0.5", Value: 0.25}}}})
	add("unsure", metric.Summary, normalize.Series{Summary: &normalize.Summary{Count: 1, NoCount: true, NoSum: true}})
	add("state", metric.StateSet, normalize.Series{State: &normalize.State{Share: 0.25, Last: true, Changes: 3}})
	add("idle", metric.StateSet, normalize.Series{State: &normalize.State{}})
	got := text(t, r, report.Options{Families: true})
	for _, want := range []string{`(?m)^s +4 +2 +500 ms +0\.5: 250 ms`, `(?m)^unsure +- +- +-`, `(?m)^state +25 % +yes +3`,
		`1 series did not change`} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("no match for %q in\n%s", want, got)
		}
	}
	var b bytes.Buffer
	var doc struct {
		Summaries, States []map[string]any
	}
	if err := report.Write(&b, r, report.FormatJSON, report.Options{All: true}); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil || len(doc.Summaries) != 2 || len(doc.States) != 2 {
		t.Fatalf("%v: got %+v", err, doc)
	}
	if s := doc.Summaries; s[0]["avg"] != 0.5 || s[1]["count"] != nil || doc.States[0]["now"] != true {
		t.Errorf("got %+v", doc)
	}
}
