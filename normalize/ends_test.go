package normalize_test

import (
	"fmt"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// The two ends of a counter and of a gauge are samples of the same polls, so that
// a mean since the start can be turned into one of the window.
func TestEnds(t *testing.T) {
	check := func(startSeconds int64, values []float64, want string) {
		t.Helper()
		f, err := normalize.NewFold(normalize.Options{StartNS: startSeconds * 1e9})
		if err != nil {
			t.Fatal(err)
		}
		var g metric.SnapshotBuilder
		counter := g.Slot(g.Series(g.Family("c", metric.Counter, "", ""), metric.Labels{}), metric.SampleID{})
		gauge := g.Slot(g.Series(g.Family("g", metric.Gauge, "", ""), metric.Labels{}), metric.SampleID{})
		for poll, v := range values {
			s := metric.Snapshot{SentNS: int64(poll) * 1e9}
			g.Set(counter, v)
			g.Set(gauge, v)
			g.Finish(&s)
			if err := f.Add(&s); err != nil {
				t.Fatal(err)
			}
		}
		got := ""
		r := f.Result(0)
		for i := range r.Series {
			if c := r.Series[i].Counter; c != nil {
				got += fmt.Sprintf("counter %v-%v total %v; ", c.First, c.Last, c.Total)
			}
			if v := r.Series[i].Gauge; v != nil {
				got += fmt.Sprintf("gauge %v-%v first %v", v.Ref, v.Last, v.First)
			}
		}
		if got != want {
			t.Errorf("%v from %d s: got %q, want %q", values, startSeconds, got, want)
		}
	}
	check(0, []float64{3, 5, 9}, "counter 3-9 total 6; gauge 3-9 first 3")
	check(1, []float64{3, 5, 9}, "counter 3-9 total 6; gauge 3-9 first 5")
	check(2, []float64{3, 5, 5, 5}, "counter 5-5 total 0; gauge 5-5 first 5")
}
