package histest_test

import (
	"testing"

	"github.com/scrapestat/scrapestat/histest"
)

// TestPercentile: names are read as they are written, and words that are none are none.
func TestPercentile(t *testing.T) {
	for name, want := range map[string]float64{"p0": 0, "p5": 5, "p50": 50, "p99": 99, "p99.9": 99.9, "p999": 99.9,
		"p9999": 99.99, "p100": 100, "p12.5": 12.5} {
		p, ok := histest.Percentile(name)
		if !ok || p != want {
			t.Errorf("%s is %v, %v, want %v", name, p, ok, want)
		}
		if back, ok := histest.Percentile(histest.PercentileName(p / 100)); !ok || back != p {
			t.Errorf("%s is written %s", name, histest.PercentileName(p/100))
		}
	}
	for _, word := range []string{"", "p", "99", "p101", "p100.1", "p-1", "p+1", "p1e1", "pInf", "pNaN", "p9.9.9", "p0x1",
		"p1_0", "q99"} {
		if p, ok := histest.Percentile(word); ok {
			t.Errorf("%q is the percentile %v", word, p)
		}
	}
}
