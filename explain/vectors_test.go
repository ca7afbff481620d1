package explain_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/scrapestat/scrapestat/explain"
)

// vectorCase is a case of testdata/vectors/explain/cases.json.
type vectorCase struct {
	Name  string
	Facts struct {
		Engine   string
		Sums     map[string][2]float64
		Replicas []struct {
			ID                                                 string
			Waiting, Running, KV, Preemptions, Finished, Steps []*float64
			StepTokens                                         []*float64 `json:"step_tokens"`
			ITLCount                                           []*float64 `json:"itl_count"`
			ITLSum                                             []*float64 `json:"itl_sum"`
			Generated                                          []*float64
		}
		Losses struct {
			Finished, Error, Abort, Rejected, HTTP float64
			HTTP5xx                                float64 `json:"http_5xx"`
		}
		Restarts   int
		SliceS     float64       `json:"slice_s"`
		ITLBuckets [][2]*float64 `json:"itl_buckets"`
		ITLp50     float64       `json:"itl_p50"`
		SpecDrafts float64       `json:"spec_drafts"`
	}
	Expect struct {
		Verdict   string
		Findings  []string
		Waterfall map[string]float64
		Model     []float64
		Missing   []string
	}
}

func readCases(t testing.TB) []vectorCase {
	text, err := os.ReadFile("../testdata/vectors/explain/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []vectorCase }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.Cases
}

func line(in []*float64) []float64 {
	if in == nil {
		return nil
	}
	out := make([]float64, len(in))
	for i, v := range in {
		out[i] = math.NaN()
		if v != nil {
			out[i] = *v
		}
	}
	return out
}

func (c *vectorCase) facts() *explain.Facts {
	f := &explain.Facts{Engine: c.Facts.Engine, Sums: map[string]explain.Total{}, Restarts: c.Facts.Restarts,
		Slice: c.Facts.SliceS, Gap: c.Facts.ITLp50, Drafts: c.Facts.SpecDrafts}
	for k, v := range c.Facts.Sums {
		f.Sums[k] = explain.Total{v[0], v[1]}
	}
	for _, r := range c.Facts.Replicas {
		f.Replicas = append(f.Replicas, explain.Replica{r.ID, line(r.Waiting), line(r.Running), line(r.KV),
			line(r.Preemptions), line(r.Finished), line(r.Steps), line(r.StepTokens), line(r.Generated), line(r.ITLCount),
			line(r.ITLSum)})
	}
	l := c.Facts.Losses
	f.Losses = explain.Losses{l.Finished, l.Error, l.Abort, l.Rejected, l.HTTP, l.HTTP5xx}
	for _, b := range c.Facts.ITLBuckets {
		upper := math.Inf(1)
		if b[0] != nil {
			upper = *b[0]
		}
		f.Gaps = append(f.Gaps, explain.Bucket{upper, *b[1]})
	}
	return f
}

// TestVectors holds Explain to the results of the reference (testdata/vectors/explain/explain_reference.py).
func TestVectors(t *testing.T) {
	rules := explain.DefaultRules()
	cases := readCases(t)
	if len(cases) != 70 {
		t.Fatalf("%d cases, want 70", len(cases))
	}
	for i := range cases {
		c := &cases[i]
		t.Run(c.Name, func(t *testing.T) {
			r := explain.Explain(c.facts(), rules, explain.Latency)
			var ids []string
			for _, f := range r.Findings {
				ids = append(ids, f.ID)
			}
			if r.Verdict != c.Expect.Verdict || !equal(ids, c.Expect.Findings) {
				t.Errorf("%s: %v, want %s: %v", r.Verdict, ids, c.Expect.Verdict, c.Expect.Findings)
			}
			if !equal(r.Missing, c.Expect.Missing) {
				t.Errorf("missing %q, want %q", r.Missing, c.Expect.Missing)
			}
			for id, want := range c.Expect.Waterfall {
				if got := r.Row(id); !near(got, want) {
					t.Errorf("%s is %v, want %v", id, got, want)
				}
			}
			for _, row := range r.Waterfall {
				if _, ok := c.Expect.Waterfall[row.ID]; !ok && row.ID != "unexplained" {
					t.Errorf("a row %s of %v that the reference does not have", row.ID, row.Seconds)
				}
			}
			if (r.Model != nil) != (c.Expect.Model != nil) {
				t.Fatalf("model %v, want %v", r.Model, c.Expect.Model)
			}
			if m := r.Model; m != nil {
				for i, got := range []float64{m.Base, m.Batch, m.Prefill} {
					if !near(got, c.Expect.Model[i]) {
						t.Errorf("term %d of the model is %v, want %v", i, got, c.Expect.Model[i])
					}
				}
			}
		})
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9+1e-6*math.Abs(b) }

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
