package histest_test

import (
	"math"
	"testing"

	"github.com/scrapestat/scrapestat/histest"
)

type refinedCase struct {
	Name     string
	Les      []float64
	Counts   [][]float64
	Sums     []float64
	True     []float64
	Evidence []float64
}

// deltas returns the intervals of the case and their total.
func (c *refinedCase) deltas() (intervals []*histest.Delta, total *histest.Delta) {
	total = &histest.Delta{Bounds: c.Les, Cum: make([]float64, len(c.Les)), HasInf: true}
	for i, counts := range c.Counts {
		d := &histest.Delta{Bounds: c.Les, HasInf: true, Sum: c.Sums[i]}
		n := 0.0
		for b, k := range counts {
			n += k
			if b < len(c.Les) {
				d.Cum = append(d.Cum, n)
				total.Cum[b] += n
			}
		}
		d.Inf, d.Count = n, n
		total.Inf += n
		total.Count += n
		total.Sum += d.Sum
		intervals = append(intervals, d)
	}
	return intervals, total
}

// The reference is not clamped to the proven bounds, and ties between a lone
// observation and a rank boundary may move a quantile to the neighbouring
// observation, so single quantiles may differ.
func TestRefinedVectors(t *testing.T) {
	var file struct{ Cases []refinedCase }
	readVectors(t, "refined.json", &file)
	if len(file.Cases) < 60 {
		t.Fatalf("read %d cases, want at least 60", len(file.Cases))
	}
	differ := 0
	for _, c := range file.Cases {
		intervals, total := c.deltas()
		got, ok := estimate(t, "refined", intervals, total, nine)
		if !ok {
			t.Errorf("%s: no answer", c.Name)
			continue
		}
		for i, g := range got {
			clamped := math.Min(math.Max(c.Evidence[i], g.Low), g.High)
			if !near(g.Value, clamped, 1e-3) {
				differ++
				t.Logf("%s: %s is %v, want %v (true %v) in [%v, %v]", c.Name, nineKeys[i], g.Value, c.Evidence[i], c.True[i],
					g.Low, g.High)
			}
			if margin := 1e-7 * math.Abs(c.True[i]); c.True[i] < g.Low-margin || c.True[i] > g.High+margin {
				t.Errorf("%s: %s: truth %v outside [%v, %v]", c.Name, nineKeys[i], c.True[i], g.Low, g.High)
			}
		}
	}
	if differ > 2 {
		t.Errorf("%d quantiles differ from the reference, want at most 2 ties", differ)
	}
}
