package explain_test

import (
	"math"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/metric"
)

// told is a result with rows of so many seconds, in turn an id and its time.
func toldRows(engine string, of metric.Labels, model bool, rows ...any) *explain.Result {
	r := &explain.Result{Engine: engine, Of: of, Why: explain.Latency}
	for i := 0; i < len(rows); i += 2 {
		r.Waterfall = append(r.Waterfall, explain.Row{ID: rows[i].(string), Seconds: rows[i+1].(float64)})
		r.Mean += rows[i+1].(float64)
	}
	if model {
		r.Model = &explain.StepModel{}
	}
	return r
}

// TestPairs: engines and parts find each other, and what one run does not tell apart is taken together.
func TestPairs(t *testing.T) {
	none := metric.Labels{}
	split := toldRows("vllm", none, true, "front", 0.1, "queue_kv", 1.0, "prefill", 0.2, "decode_base", 2.0,
		"decode_batch", 0.5)
	for _, c := range []struct {
		name string
		b    *explain.Result
		rows string
		top  string
		by   float64
	}{
		{"the same parts", toldRows("vllm", none, true, "front", 0.1, "queue_kv", 3.0, "prefill", 0.2, "decode_base", 2.5,
			"decode_batch", 0.5), "front queue_kv prefill decode_base decode_batch", "queue_kv", 2},
		{"decode is one", toldRows("vllm", none, false, "front", 0.1, "queue_slots", 0.5, "prefill", 0.2, "decode_base", 5.0),
			"front queue_kv queue_slots prefill decode", "decode", 2.5},
		{"another engine without a front", toldRows("tgi", none, false, "queue_kv", 1.0, "prefill", 4.3, "decode_base", 2.0),
			"queue_kv served", "served", 3.5},
		{"nearly the same", toldRows("vllm", none, true, "front", 0.11, "queue_kv", 1.01, "prefill", 0.2, "decode_base", 2.0,
			"decode_batch", 0.5), "front queue_kv prefill decode_base decode_batch", "", 0},
	} {
		pairs, alone := explain.Pairs([]*explain.Result{split}, []*explain.Result{c.b})
		if len(pairs) != 1 || len(alone) > 0 {
			t.Fatalf("%s: %d pairs, %d alone", c.name, len(pairs), len(alone))
		}
		var rows []string
		for _, r := range pairs[0].Rows {
			rows = append(rows, r.ID)
		}
		top, by := pairs[0].Largest(0.02)
		if got := strings.Join(rows, " "); got != c.rows || top != c.top || math.Abs(by-c.by) > 1e-9 {
			t.Errorf("%s: %s, %s by %v", c.name, got, top, by)
		}
	}
	model := func(name string) metric.Labels { return metric.NewLabels(metric.Label{Name: "model", Value: name}) }
	a := []*explain.Result{toldRows("vllm", model("x"), false, "prefill", 1.0), toldRows("vllm", model("y"), false)}
	b := []*explain.Result{toldRows("vllm", model("z"), false), toldRows("vllm", model("x"), false, "prefill", 2.0)}
	if pairs, alone := explain.Pairs(a, b); len(pairs) != 1 || pairs[0].B != b[1] || len(alone) != 2 {
		t.Errorf("%d pairs, %d alone", len(pairs), len(alone))
	}
}
