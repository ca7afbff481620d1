package normalize_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

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

// Clip weights a gauge by the time of the window and ends the slices with it: what comes after it is in the last one.
func TestClip(t *testing.T) {
	for _, c := range []struct {
		width  time.Duration
		slices []float64
	}{{time.Second, []float64{2, 4}}, {2 * time.Second, []float64{6}}, {1500 * time.Millisecond, []float64{4, 2}}} {
		f, err := normalize.NewFold(normalize.Options{StartNS: 1e9, Slice: c.width, Clip: true,
			Quantiles: []float64{0, .2, .5, 1}})
		if err != nil {
			t.Fatal(err)
		}
		var g metric.SnapshotBuilder
		counter := g.Slot(g.Series(g.Family("c", metric.Counter, "", ""), metric.Labels{}), metric.SampleID{})
		level := g.Slot(g.Series(g.Family("g", metric.Gauge, "", ""), metric.Labels{}), metric.SampleID{})
		for i, at := range []int64{5e8, 15e8, 25e8, 35e8} {
			s := metric.Snapshot{SentNS: at}
			g.Set(counter, float64(2*i))
			g.Set(level, float64(i))
			g.Finish(&s)
			if err := f.Add(&s); err != nil {
				t.Fatal(err)
			}
		}
		r := f.Result(3e9)
		var got []float64
		for _, x := range r.Series[0].Counter.Slices {
			got = append(got, x.Total)
		}
		if last := r.Series[0].Counter.Slices; !slices.Equal(got, c.slices) || last[len(last)-1].EndNS != 3e9 {
			t.Errorf("slices of %v: %+v, want %v", c.width, last, c.slices)
		}
		// 0 stands for half a second of the two, 1 for one, 2 for half a second.
		x := r.Series[1].Gauge.Clipped
		if x.Spread != (normalize.Spread{Avg: 1, Max: 2, Std: math.Sqrt(.5)}) ||
			!slices.Equal(x.Quantiles, []float64{0, 0, 1, 2}) {
			t.Errorf("%+v", x)
		}
		if last := r.Series[1].Gauge.Slices; last[len(last)-1].Max != 2 {
			t.Errorf("the last slice of the gauge has a sample behind the window: %+v", last)
		}
	}
}
