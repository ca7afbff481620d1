package html_test

import (
	"math"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/report/html"
)

var inf = math.Inf(1)

// watch gives a timeline the values of one slot, one a second.
func watch(t *testing.T, typ metric.Type, values ...float64) *html.Timeline {
	t.Helper()
	line := html.NewTimeline(html.TimelineOptions{OriginNS: origin, Interval: time.Second})
	var g metric.SnapshotBuilder
	slot := g.Slot(g.Series(g.Family("f", typ, "", ""), metric.Labels{}), metric.SampleID{Role: metric.RoleValue})
	for i, v := range values {
		s := poll(i, origin+int64(i)*second)
		if math.IsNaN(v) {
			s.Outcome = metric.Timeout
		} else {
			g.Set(slot, v)
			g.Finish(s)
		}
		if err := line.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	return line
}

func TestTimelineRates(t *testing.T) {
	check := func(typ metric.Type, values []float64, want ...float64) {
		t.Helper()
		got := html.Drawn(watch(t, typ, values...))
		if len(want) == 0 && len(got) == 0 {
			return
		}
		if len(got) != 1 || len(got[0]) != len(want) {
			t.Fatalf("%v: got %v, want one series %v", values, got, want)
		}
		for i, w := range want {
			if g := float64(got[0][i]); math.Abs(g-w) > 1e-3*math.Max(1, math.Abs(w)) && !(math.IsNaN(g) && math.IsNaN(w)) {
				t.Errorf("%v: got %v, want %v", values, got[0], want)
				return
			}
		}
	}
	nan := math.NaN()
	// The last stretch has just begun: nothing is known of it.
	check(metric.Counter, []float64{0, 10, 30, 30, 40}, 10, 20, 0, 10, nan)
	check(metric.Counter, []float64{5000, 6000, 5, 15, 25, 35}, 1000, 0, 15, 10, 10, nan) // a restart, sure a body later
	check(metric.Counter, []float64{0, 10, nan, nan, 40, 50}, 10, nan, nan, nan, 10, nan) // nobody knows when
	// a level stands until it changes
	check(metric.Gauge, []float64{1, 3, 3, 7}, 1, 3, 3, 7)
	check(metric.Gauge, []float64{1, nan, nan, nan, 7, 8}, nan, nan, nan, nan, 7, 8) // not beyond a gap
	check(metric.Counter, []float64{5, 5, 5})                                        // nothing moved
	check(metric.Gauge, []float64{5, 5, 5})
}

// Whatever the length of the run, a timeline keeps its size, and all that a
// counter gained is in it.
func TestTimelineKeepsItsSize(t *testing.T) {
	values := make([]float64, 5000)
	for i := range values {
		values[i] = float64(3 * i)
	}
	got := html.Drawn(watch(t, metric.Counter, values...))
	if len(got) != 1 || len(got[0]) > 360 || len(got[0]) < 180 {
		t.Fatalf("got %d series of %d stretches, want 1 of 180 to 360", len(got), len(got[0]))
	}
	for i, v := range got[0] {
		if math.Abs(float64(v)-3) > 1e-2 && v == v {
			t.Errorf("stretch %d has a rate of %v, want 3", i, v)
		}
	}
}

func TestTimelineIgnoresWhatItHas(t *testing.T) {
	line := watch(t, metric.Counter, 0, 10, 20)
	s := poll(1, origin+second)
	s.Delta = metric.Delta{Slots: []uint32{9999}, Bits: []uint64{1}}
	if err := line.Add(s); err != nil {
		t.Errorf("a poll that was added before: got %v, want nothing", err)
	}
	s.Seq = 7
	if err := line.Add(s); err == nil {
		t.Error("a slot that nobody declared: want an error")
	}
	s.Target = -1
	if err := line.Add(s); err == nil {
		t.Error("target -1: want an error")
	}
}
