package explain_test

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/explain"
)

// drawLine draws a line of a replica, in part or whole not shown; rude values are those that no server should send.
func drawLine(t *rapid.T, n int, most float64, rude bool) []float64 {
	if rapid.IntRange(0, 5).Draw(t, "hidden") == 0 {
		return nil
	}
	if rude {
		n = rapid.IntRange(0, n).Draw(t, "short")
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = rapid.Float64Range(0, most).Draw(t, "value")
		if rapid.IntRange(0, 9).Draw(t, "gap") == 0 {
			out[i] = math.NaN()
		}
		if rude && rapid.IntRange(0, 9).Draw(t, "rude") == 0 {
			out[i] = rapid.SampledFrom([]float64{math.Inf(1), math.Inf(-1), -1, math.MaxFloat64}).Draw(t, "odd")
		}
	}
	return out
}

func drawFacts(t *rapid.T, rude bool) *explain.Facts {
	f := &explain.Facts{Engine: "e", Sums: map[string]explain.Total{}, Slice: 2,
		Restarts: rapid.IntRange(0, 1).Draw(t, "restarts"), Gap: rapid.Float64Range(0, 0.1).Draw(t, "gap")}
	requests := float64(rapid.IntRange(0, 500).Draw(t, "requests"))
	left := rapid.Float64Range(0, 1e4).Draw(t, "e2e")
	f.Sums["e2e"] = explain.Total{Sum: left, Count: requests}
	for _, name := range []string{"queue", "inference"} {
		if rapid.IntRange(0, 5).Draw(t, "missing") > 0 {
			sum := rapid.Float64Range(0, left).Draw(t, name)
			f.Sums[name] = explain.Total{Sum: sum, Count: requests}
			left -= sum
		}
	}
	if in, ok := f.Sums["inference"]; ok && rapid.Bool().Draw(t, "phases") {
		p := rapid.Float64Range(0, in.Sum).Draw(t, "prefill")
		f.Sums["prefill"] = explain.Total{Sum: p, Count: requests}
		f.Sums["decode"] = explain.Total{Sum: in.Sum - p, Count: requests}
	}
	if rapid.Bool().Draw(t, "tokens") {
		f.Sums["ttft"] = explain.Total{Sum: rapid.Float64Range(0, f.Sums["e2e"].Sum).Draw(t, "ttft"),
			Count: requests + float64(rapid.IntRange(0, 20).Draw(t, "started"))}
	}
	f.Sums["itl"] = explain.Total{Sum: rapid.Float64Range(0, 1e3).Draw(t, "itl"), Count: 1e4}
	n := rapid.IntRange(0, 70).Draw(t, "slices")
	for range rapid.IntRange(0, 4).Draw(t, "replicas") {
		line := func(most float64) []float64 { return drawLine(t, n, most, rude) }
		f.Replicas = append(f.Replicas, explain.Replica{Waiting: line(20), Running: line(20), KV: line(1),
			Preemptions: line(2), Ended: line(20), Steps: line(200), StepTokens: line(5e3), Generated: line(2e3),
			GapCount: line(2e3), GapSum: line(30)})
	}
	if rude {
		for name := range f.Sums {
			if rapid.IntRange(0, 9).Draw(t, "rude") == 0 {
				odd := rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), -3, 0}).Draw(t, "odd")
				f.Sums[name] = explain.Total{Sum: odd, Count: odd}
			}
		}
	}
	return f
}

// TestRowsAddUp holds any facts to what a waterfall is: rows from 0 up that add up to the mean time of a request, the
// same whatever the order of replicas, and the same shares when everything was done twice.
func TestRowsAddUp(t *testing.T) {
	rules := explain.DefaultRules()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t, false)
		why := rapid.SampledFrom([]explain.Why{explain.Latency, explain.TTFT}).Draw(t, "why")
		r := explain.Explain(f, rules, why)
		sum := 0.0
		for _, row := range r.Waterfall {
			if sum += row.Seconds; row.Seconds < 0 && row.ID != "unexplained" {
				t.Fatalf("%s is %v", row.ID, row.Seconds)
			}
		}
		if len(r.Waterfall) > 0 && math.Abs(sum-r.Mean) > 1e-9*max(1, r.Mean) {
			t.Fatalf("rows add up to %v, the mean is %v", sum, r.Mean)
		}
		turned := *f
		turned.Replicas = slices.Clone(f.Replicas)
		slices.Reverse(turned.Replicas)
		sameShares(t, "replicas in another order", r, explain.Explain(&turned, rules, why))
		if f.Sums["e2e"].Count < 30 {
			return // twice as many may be enough
		}
		twice := *f
		twice.Sums = map[string]explain.Total{}
		for name, s := range f.Sums {
			twice.Sums[name] = explain.Total{Sum: 2 * s.Sum, Count: 2 * s.Count}
		}
		sameShares(t, "twice as much", r, explain.Explain(&twice, rules, why))
	})
}

func sameShares(t *rapid.T, what string, a, b *explain.Result) {
	if a.Verdict != b.Verdict || len(a.Waterfall) != len(b.Waterfall) {
		t.Fatalf("%s: %s and %d rows, was %s and %d", what, b.Verdict, len(b.Waterfall), a.Verdict, len(a.Waterfall))
	}
	for i := range a.Waterfall {
		if x, y := a.Waterfall[i], b.Waterfall[i]; x.ID != y.ID || math.Abs(x.Share-y.Share) > 1e-6 {
			t.Fatalf("%s: %s %v, was %s %v", what, y.ID, y.Share, x.ID, x.Share)
		}
	}
}

// TestRudeFacts holds facts that no server should send to a result that is JSON.
func TestRudeFacts(t *testing.T) {
	rules := explain.DefaultRules()
	rapid.Check(t, func(t *rapid.T) {
		why := rapid.SampledFrom([]explain.Why{explain.Latency, explain.TTFT, explain.Throughput}).Draw(t, "why")
		r := explain.Explain(drawFacts(t, true), rules, why)
		var b bytes.Buffer
		if err := explain.WriteJSON(&b, "run", []*explain.Result{r}, rules); err != nil || !json.Valid(b.Bytes()) {
			t.Fatalf("%v: %+v", err, r)
		}
	})
}

// TestPairsAddUp holds the differences of two waterfalls to that of the means, both ways, whatever either engine shows;
// a run differs from itself in nothing.
func TestPairsAddUp(t *testing.T) {
	rules := explain.DefaultRules()
	rapid.Check(t, func(t *rapid.T) {
		why := rapid.SampledFrom([]explain.Why{explain.Latency, explain.TTFT}).Draw(t, "why")
		a := explain.Explain(drawFacts(t, false), rules, why)
		b := explain.Explain(drawFacts(t, false), rules, why)
		sum := func(x, y *explain.Result) float64 {
			pairs, alone := explain.Pairs([]*explain.Result{x}, []*explain.Result{y})
			if len(pairs) != 1 || len(alone) > 0 {
				t.Fatalf("%d pairs, %d alone", len(pairs), len(alone))
			}
			total := 0.0
			for i := range pairs[0].Rows {
				total += pairs[0].Rows[i].Difference()
			}
			if d := pairs[0].Difference(); len(pairs[0].Rows) > 0 && len(x.Waterfall) > 0 && len(y.Waterfall) > 0 &&
				math.Abs(total-d) > 1e-9*max(1, x.Mean, y.Mean) {
				t.Fatalf("the rows differ by %v, the means by %v: %+v", total, d, pairs[0].Rows)
			}
			return total
		}
		if there, back := sum(a, b), sum(b, a); math.Abs(there+back) > 1e-9*max(1, math.Abs(there)) || sum(a, a) != 0 {
			t.Fatalf("%v there, %v back, %v to itself", there, back, sum(a, a))
		}
	})
}
