package check_test

import (
	"math"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/check"
	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// explainedRun has an engine whose queue is told, one of which a part is not, and one of which nothing is told.
func explainedRun() *check.Evidence {
	of := metric.NewLabels(metric.Label{Name: "stage", Value: "1"})
	return &check.Evidence{Run: &summary.Run{}, Explained: []*explain.Result{
		{Engine: "a", Requests: 90, Verdict: "queue_kv", Mean: 10, Findings: []explain.Finding{
			{ID: "errors", Seconds: math.NaN(), Share: 0.03}, {ID: "queue_kv", Seconds: 6, Share: 0.6},
			{ID: "service", Seconds: 3.6, Share: 0.36}},
			Waterfall: []explain.Row{{ID: "queue_kv", Seconds: 6}, {ID: "queue_slots", Seconds: 0.4}}},
		{Engine: "b", Requests: 90, Of: of, Verdict: "service", Mean: 10,
			Findings:  []explain.Finding{{ID: "service", Seconds: 9, Share: 0.9}},
			Waterfall: []explain.Row{{ID: "queue_unknown", Seconds: 1}}},
		{Engine: "c", Verdict: "cannot_tell", Mean: math.NaN(), Missing: []string{"queue time"},
			Findings: []explain.Finding{{ID: "cannot_tell"}}},
	}}
}

func TestExplained(t *testing.T) {
	for text, want := range map[string]check.Verdict{
		`explain:verdict{engine="a"} == queue_kv`:            check.Pass,
		`explain:verdict{engine="a"} != queue_kv`:            check.Fail,
		`explain:verdict{stage="1"} == service`:              check.Pass,
		`explain:verdict{engine="c"} == service`:             check.NoData,
		`explain:verdict{engine="c"} != cannot_tell`:         check.Fail,
		`explain:verdict == service`:                         check.Fail,
		`explain:verdict{engine="d"} == service`:             check.NoData,
		`explain:queue_kv{engine="a"} share < 5%`:            check.Fail,
		`explain:queue_kv{engine="a"} seconds <= 6s`:         check.Pass,
		`explain:queue_slots{engine="a"} share < 5%`:         check.Pass,
		`explain:queue_kv{engine="b"} share < 5%`:            check.NoData, // up to 10 % may be
		`explain:queue_kv{engine="b"} share < 20%`:           check.Pass,
		`explain:queue_unknown{engine="b"} share < 20%`:      check.Pass,
		`explain:queue_kv{engine="c"} share < 5%`:            check.NoData,
		`explain:errors{engine="a"} share < 2%`:              check.Fail,
		`explain:errors{engine="b"} share < 2%`:              check.Pass,
		`explain:restart{engine=~"a|b"} share == 0`:          check.Pass,
		`explain:errors{engine="c"} share < 2%`:              check.NoData, // of no requests
		`explain:service{engine="b"} share > 80%`:            check.Pass,
		`explain:stage_queue:1{engine="b"} share < 5%`:       check.Pass,
		`explain:decode_base{engine="a"} seconds < baseline`: check.NoData,
	} {
		d, err := check.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		r, err := (&check.Gate{Demands: []check.Assertion{d}}).Judge(explainedRun())
		if err != nil || r.Verdict != want {
			t.Errorf("%s: %s %v, want %s: %+v", text, r.Verdict, err, want, r.Answers)
		}
	}
	for text, want := range map[string]string{
		"explain:verdict == queue_kw":            `unknown finding "queue_kw"; did you mean queue_kv`,
		"explain:verdict < service":              "want explain:verdict == FINDING",
		"explain:queue_kw share < 1%":            `no finding or row "queue_kw"; did you mean queue_kv`,
		"explain:queue_kv p99 < 1s":              "known: share, seconds",
		"explain:queue_kv share < 1s":            "s",
		"explain:queue_kv by (stage) share < 1%": "tells each engine",
	} {
		if _, err := check.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if r, err := (&check.Gate{Demands: []check.Assertion{{From: check.FromExplain, Metric: "verdict"}}}).Judge(
		&check.Evidence{Run: &summary.Run{}}); err != nil || r.Verdict != check.NoData {
		t.Errorf("an export: %s %v", r.Verdict, err)
	}
}
