package metric_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/metric"
)

func TestCumulative(t *testing.T) {
	var c metric.Cumulative[float64]
	want := func(value, gain float64) {
		t.Helper()
		if got := c.Value(); got != value || got-c.Ref != gain {
			t.Errorf("got the value %v and the gain %v, want %v and %v", got, got-c.Ref, value, gain)
		}
	}
	c.Begin(10)
	want(10, 0)
	c.Last = 15
	want(15, 5)
	c.Restart(c.Last, 2)
	c.Last = 2
	want(17, 7)
	c.Restart(c.Last, -3) // from zero to less: nothing
	c.Last = -3
	want(17, 7)
	c.Open()
	want(-3, 0)
}

// TestCumulativeMatchesSum compares with the sum of all increases, over restarts
// and beyond the largest integer.
func TestCumulativeMatchesSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c metric.Cumulative[uint64]
		v := rapid.Uint64().Draw(t, "first")
		c.Begin(v)
		sum := uint64(0)
		for range rapid.IntRange(0, 20).Draw(t, "samples") {
			next := rapid.Uint64().Draw(t, "next")
			if next < v {
				c.Restart(v, next)
				sum += next
			} else {
				sum += next - v
			}
			c.Last, v = next, next
		}
		if got := c.Value() - c.Ref; got != sum {
			t.Fatalf("got the gain %d, want %d", got, sum)
		}
	})
}

func TestGained(t *testing.T) {
	check := func(before, now, want float64, fell bool) {
		t.Helper()
		if got, f := metric.Gained(before, now); got != want || f != fell {
			t.Errorf("%v to %v: got %v, fell %v, want %v, %v", before, now, got, f, want, fell)
		}
	}
	check(3, 5, 2, false)
	check(5, 5, 0, false)
	check(5, 3, 3, true)
	check(5, -1, -1, true)
	check(-5, -1, 4, false)
}

func TestCreated(t *testing.T) {
	var c metric.Created
	set := func(at float64, moved bool) {
		t.Helper()
		if got := c.Set(at); got != moved {
			t.Errorf("set to %v: moved %v, want %v", at, got, moved)
		}
	}
	if c.NS() != 0 || c.Since(0) {
		t.Error("a time that nobody stated is known")
	}
	set(math.NaN(), false)
	set(1.7e9, false)
	set(1.7e9, false)
	set(math.Inf(1), false)
	if c.Moved || c.NS() != 1.7e18 || !c.Since(1.7e18) || c.Since(1.7e18+1e6) {
		t.Errorf("got %d ns, moved %v, want 1.7e18, not moved", c.NS(), c.Moved)
	}
	set(1.7e9+0.5, true)
	set(1.7e9+0.5, false)
	if !c.Moved {
		t.Error("the change was forgotten")
	}
	c.Set(9e9)
	if c.NS() != 0 {
		t.Errorf("9e9 s became %d ns, want 0: no such time", c.NS())
	}
}
