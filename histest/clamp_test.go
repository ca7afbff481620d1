package histest_test

import (
	"math"
	"testing"

	"github.com/scrapestat/scrapestat/histest"
)

func TestClamp(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct{ value, low, high, want float64 }{
		{5, 1, 10, 5}, {0.5, 1, 10, 1}, {12, 1, 10, 10}, {5, nan, nan, 5}, {5, 6, nan, 6}, {5, nan, 4, 4}, {3, 3, 3, 3},
	} {
		e := histest.Estimate{Value: c.value, Low: c.low, High: c.high, Flags: histest.Few}
		if e.Clamp(); e.Value != c.want || e.Flags != histest.Few {
			t.Errorf("%v in [%v, %v] is clamped to %v, want %v", c.value, c.low, c.high, e.Value, c.want)
		}
	}
}
