package explain_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/explain"
)

func pipeline(e2e, queue, hops float64, stages ...explain.Stage) *explain.Facts {
	return &explain.Facts{Engine: "vllm-omni", Slice: 2, Stages: stages, Hops: hops, Sums: map[string]explain.Total{
		"e2e": {Sum: 100 * e2e, Count: 100}, "queue": {Sum: 100 * queue, Count: 100}}}
}

func TestPipeline(t *testing.T) {
	for _, c := range []struct {
		name       string
		facts      *explain.Facts
		findings   string
		row        string
		seconds    float64
		bottleneck string
	}{
		{"a stage waits", pipeline(10, 0.5, 0.5, explain.Stage{"0", 1, 0.1}, explain.Stage{"1", 8, 0.75}),
			"stage_queue:1 service", "stage_queue:1", 6, "1"},
		{"the pipeline waits", pipeline(10, 8, 0, explain.Stage{"0", 0.5, 0}, explain.Stage{"1", 1.5, 0}),
			"queue_admission service", "queue_admission", 8, "1"},
		{"stages overlap", pipeline(4, 0, 0, explain.Stage{"0", 3, 0}, explain.Stage{"1", 3, 0}), "service", "overlap", -2,
			"0"},
		{"nothing tells", pipeline(10, 0, 0, explain.Stage{"0", 1, 0}), "service", "unexplained", 9, "0"},
		{"both wait", pipeline(10, 3, 0, explain.Stage{"0", 7, 0.9}), "stage_queue:0 queue_admission service", "stage:0", 0.7,
			"0"},
	} {
		r := explain.Explain(c.facts, explain.DefaultRules(), explain.Latency)
		var ids []string
		for _, f := range r.Findings {
			ids = append(ids, f.ID)
		}
		if got := strings.Join(ids, " "); got != c.findings || math.Abs(r.Row(c.row)-c.seconds) > 1e-12 {
			t.Errorf("%s: %s, %s is %v", c.name, got, c.row, r.Row(c.row))
		}
		if got := c.facts.Bottleneck(0.1); got != c.bottleneck {
			t.Errorf("%s: bottleneck %s", c.name, got)
		}
	}
}

// TestPipelineAddsUp draws pipelines, rude ones too: rows add up to the mean, and only the overlap is negative.
func TestPipelineAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := pipeline(rapid.Float64Range(0.001, 100).Draw(t, "e2e"), rapid.Float64Range(0, 50).Draw(t, "queue"),
			rapid.Float64Range(-1, 5).Draw(t, "hops"))
		for i := range rapid.IntRange(1, 5).Draw(t, "stages") {
			f.Stages = append(f.Stages, explain.Stage{string(rune('0' + i)),
				rapid.OneOf(rapid.Float64Range(0, 50), rapid.Just(math.NaN())).Draw(t, "time"),
				rapid.OneOf(rapid.Float64Range(0, 1), rapid.Just(7.0), rapid.Just(math.Inf(1))).Draw(t, "queued")})
		}
		r := explain.Explain(f, explain.DefaultRules(), explain.Latency)
		sum := 0.0
		for _, row := range r.Waterfall {
			sum += row.Seconds
			if row.Seconds < -1e-9 && row.ID != "overlap" || math.IsNaN(row.Seconds) {
				t.Fatalf("%s is %v", row.ID, row.Seconds)
			}
		}
		if math.Abs(sum-r.Mean) > 1e-9*(1+r.Mean) {
			t.Fatalf("the rows are %v of %v", sum, r.Mean)
		}
	})
}

func TestContributing(t *testing.T) {
	facts := pipeline(10, 8, 0, explain.Stage{"0", 2, 0})
	facts.Quantities = []explain.Quantity{{ID: "spec_acceptance_length", Name: "acceptance", Value: 1.02, Unit: "tokens"}}
	facts.Beside = []explain.Quantity{{Name: "throttled_share_power", Value: 0},
		{Name: "throttled_share_power", Value: 0.5, Unit: "ratio"}, {ID: "polls_lost", Name: "polls_lost", Value: math.NaN()}}
	facts.Replicas = []explain.Replica{{Ended: []float64{9, 9}}, {Ended: []float64{1, math.NaN()}}}
	told := func(r *explain.Result) (out []string) {
		for i := range r.Contributing {
			out = append(out, r.Contributing[i].Text())
		}
		return out
	}
	want := []string{"a step of speculation gives 1.02 tokens", "the busiest replica ended 1.89 times the mean",
		"power slowed a GPU for 50 % of the time"}
	if got := told(explain.Explain(facts, explain.DefaultRules(), explain.Latency)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	rules := explain.DefaultRules()
	if err := rules.Read(strings.NewReader(`contributing:
  - {id: throttled_power, when: throttled_share_power > 60%, says: none}
  - {id: mine, when: spec_acceptance_length <= 1.02 and e2e >= 100% of e2e, says: slow, promote: true}
`), catalog.Embedded()); err != nil {
		t.Fatal(err)
	}
	r := explain.Explain(facts, rules, explain.Latency)
	if got := told(r); !slices.Equal(got, append(want[:2:2], "slow")) || r.Verdict != "mine" ||
		rules.Of("mine").Says != "slow" {
		t.Errorf("%q, verdict %s", got, r.Verdict)
	}
	for entry, want := range map[string]string{
		"prefix_hit_ration < 1, says: x": `line 1: no quantity is called "prefix_hit_ration"; did you mean ` +
			`prefix_hit_ratio`,
		"prefix_hit_ratio = 1, says: x":           `line 1: "prefix_hit_ratio = 1": no comparison is written "="`,
		"prefix_hit_ratio < NaN, says: x":         `"NaN" is no number`,
		"prefix_hit_ratio < 1 of prefil, says: x": `no row is called "prefil"; did you mean prefill`,
		"prefix_hit_ratio < 1":                    "needs an id and says",
		"prefix_hit_ratio < 1, say: x":            `not "say"`,
		"e2e < 1 or e2e > 2, says: x":             "want QUANTITY OP NUMBER",
	} {
		text := "contributing: [{id: a, when: " + entry + "}]"
		err := explain.DefaultRules().Read(strings.NewReader(text), catalog.Embedded())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
