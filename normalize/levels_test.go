package normalize_test

import (
	"math"
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/normalize"
)

// TestLevels checks the share of the time that a gauge was above its levels: 3 s at
// 1, 1 s at 5, and the last sample stands for no time.
func TestLevels(t *testing.T) {
	levels := func(family string) []float64 {
		if family != "g" {
			t.Errorf("asked for the levels of %q", family)
		}
		return []float64{0, 1, 4.9, 5}
	}
	polls := []poll{{0, gaugeLine(1)}, {3 * second, gaugeLine(5)}, {4 * second, gaugeLine(9)}}
	r := fold(t, normalize.Options{Levels: levels}, 0, false, polls)
	if got, want := r.Series[0].Gauge.Above, []float64{1, 0.25, 0.25, 0}; !slices.Equal(got, want) {
		t.Errorf("got the shares %v, want %v", got, want)
	}
}

func TestIntervalsIn(t *testing.T) {
	c := normalize.Intervals{{Lower: 0, Upper: 1, Count: 2}, {Lower: 1, Upper: 2, Count: 3},
		{Lower: 2, Upper: 4, Count: 5}}
	check := func(lower, upper, want float64) {
		t.Helper()
		if got := c.In(normalize.Interval{Lower: lower, Upper: upper}); got != want {
			t.Errorf("within [%v, %v]: got %v, want %v", lower, upper, got, want)
		}
	}
	check(0, 2, 5)
	check(1, 2, 3)
	check(0.5, 3, 3) // buckets that reach beyond do not count
	check(0, math.Inf(1), 10)
	check(4, 5, 0)
}
