package summary

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/scrapestat/scrapestat/internal/testkit"
)

// Acceptance row 9 of the design document windows.md: what may be late of seven boundaries.
func TestLateVectors(t *testing.T) {
	var v struct {
		Late []struct {
			Name     string
			Boundary float64   `json:"boundary_s"`
			Settle   float64   `json:"settle_s"`
			Polls    []float64 `json:"polls_s"`
			Gains    [][]float64
			Drained  bool
			Owed     *int64
			NewBy    []int64 `json:"new_by"`
			Bounds   []any
			Expect   struct {
				AtLeast int64 `json:"at_least"`
				AtMost  int64 `json:"at_most"`
				Moved   int64
				Cut     float64 `json:"cut_s"`
				Exact   bool
			}
		}
	}
	if err := json.Unmarshal(testkit.Data(t, "vectors/windows.json"), &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Late) != 7 {
		t.Errorf("%d boundaries, want 7", len(v.Late))
	}
	for _, c := range v.Late {
		count, before := lateCount{Late: Late{CutNS: int64(c.Boundary * 1e9)}}, 0.0
		for k, at := range c.Polls {
			var n, proven, maybe, lower float64
			at -= c.Boundary
			for b, gained := range c.Gains[k] {
				upper, ok := c.Bounds[b].(float64)
				if !ok {
					upper = math.Inf(1)
				}
				p, m := shares(gained, lower, upper, at, before, c.Settle)
				n, proven, maybe, lower = n+gained, proven+p, maybe+m, upper
			}
			var w *witness
			if c.Owed != nil {
				w = &witness{*c.Owed, c.NewBy[k] > 0}
			}
			count.poll(int64(math.Round((at+c.Boundary)*1e9)), n, proven, maybe, c.Drained, w)
			before = at
		}
		owed := int64(-1)
		if c.Owed != nil {
			owed = *c.Owed
		}
		got, want := count.sum(c.Drained, owed), c.Expect
		if got.AtLeast != want.AtLeast || got.AtMost != want.AtMost || got.Moved != want.Moved || got.Exact != want.Exact ||
			math.Abs(float64(got.CutNS)/1e9-want.Cut) > 1e-6 {
			t.Errorf("%s: %+v, want %+v", c.Name, got, want)
		}
	}
}
