package summary_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/testkit/fakerun"
	"github.com/scrapestat/scrapestat/summary"
)

func TestNoiseSlice(t *testing.T) {
	for _, c := range []struct{ window, interval, want time.Duration }{
		{2 * time.Minute, 333 * time.Millisecond, 1200 * time.Millisecond},
		{2 * time.Minute, time.Second, 2 * time.Second},
		{time.Second/3 + 100*time.Second, 0, 1004 * time.Millisecond}, // rounded up
		{0, 0, time.Millisecond},
	} {
		if got := summary.NoiseSlice(c.window, c.interval); got != c.want {
			t.Errorf("%v polled each %v: slices of %v, want %v", c.window, c.interval, got, c.want)
		}
	}
}

// The slices of noise depend on the window and the polls, not on when the recording was closed; one of an unknown
// interval has that of its polls.
func TestNoiseSlices(t *testing.T) {
	for _, ended := range []int64{0, 1_900_000_000 * second} {
		for _, interval := range []time.Duration{0, time.Second} {
			f := newFake("http://a/metrics")
			for i := range 301 {
				f.Scrape(0, float64(i), fmt.Sprintf("# TYPE c counter\nc %d\n", 10*i))
			}
			f.Mark(0, "profiling")
			f.Info.EndNS, f.Info.Interval = ended, interval
			f.Info.OriginNS = fakerun.Origin
			o := summary.Options{Slice: summary.NoiseSlices}
			if r := build(t, o, f); r.Options.Slice != 3*time.Second {
				t.Errorf("closed at %d, interval %v: slices of %v, want 3 s", ended, interval, r.Options.Slice)
			}
			o.Window = part("10s..40s")
			if r := build(t, o, f); r.Options.Slice != 2*time.Second {
				t.Errorf("closed at %d, interval %v: 30 s have slices of %v, want 2 s", ended, interval, r.Options.Slice)
			}
		}
	}
}
