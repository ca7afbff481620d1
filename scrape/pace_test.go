package scrape_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// sentAt returns when the polls were sent, in seconds since the first was due,
// the final poll left out.
func sentAt(snapshots []metric.Snapshot) []float64 {
	var out []float64
	for _, s := range snapshots {
		if s.Kind != metric.Final && s.Outcome != metric.SkippedOverlap {
			out = append(out, float64(s.SentNS-snapshots[0].DueNS)/1e9)
		}
	}
	return out
}

func TestBackOffAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := time.Now().Add(20 * time.Second)
		sink := run(t, scrape.Options{Interval: time.Second}, 30500*time.Millisecond,
			func(r *http.Request) (*http.Response, error) {
				if time.Now().Before(up) {
					return nil, errors.New("connection refused")
				}
				return steady(r)
			})
		want := []float64{0, 1, 2, 4, 8, 13, 18, 23, 24, 25, 26, 27, 28, 29, 30}
		if got := sentAt(sink.all()); !slices.Equal(got, want) {
			t.Errorf("polled at %v, want %v", got, want)
		}
	})
}

func TestSingleFailureDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		sink := run(t, scrape.Options{Interval: time.Second}, 29500*time.Millisecond,
			func(r *http.Request) (*http.Response, error) {
				if n++; n%3 == 0 {
					return respond(r, 500, ""), nil
				}
				return steady(r)
			})
		failed := 0
		for _, s := range sink.all() {
			if s.Outcome == metric.HTTPError {
				failed++
			}
		}
		if len(sink.all()) != 31 || failed != 10 {
			t.Errorf("%d polls, %d failed; want 31 and 10", len(sink.all()), failed)
		}
	})
}

func TestForeignAnswersAreRetriedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := time.Now().Add(70 * time.Second)
		sink := run(t, scrape.Options{Interval: time.Second}, 94500*time.Millisecond,
			func(r *http.Request) (*http.Response, error) {
				if time.Now().Before(up) {
					return respond(r, 200, "<html>"), nil
				}
				return steady(r)
			})
		want := []float64{0, 1, 2, 32, 62, 92, 93, 94}
		if got := sentAt(sink.all()); !slices.Equal(got, want) {
			t.Errorf("polled at %v, want %v", got, want)
		}
		warnings := 0
		for _, s := range sink.all() {
			warnings += len(s.Warnings)
		}
		if w := sink.all()[2].Warnings; warnings != 1 || len(w) != 1 || w[0].Code != "not_prometheus" {
			t.Errorf("%d warnings, the third poll has %v", warnings, w)
		}
	})
}

func TestScrapeShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// 50 ms per answer is 5 % of a second: every third tick is below 2 %.
		sink := run(t, scrape.Options{Interval: time.Second}, 20500*time.Millisecond, slow(50*time.Millisecond))
		want := []float64{0, 1, 2, 3, 4, 5, 6, 7, 10, 13, 16, 19}
		if got := sentAt(sink.all()); !slices.Equal(got, want) {
			t.Errorf("polled at %v, want %v", got, want)
		}
		if w := sink.all()[7].Warnings; len(w) != 1 || w[0].Code != "scrape_share" ||
			!strings.Contains(w[0].Text, "5.0 % of the interval; polling every 3s") {
			t.Errorf("warnings %v", w)
		}
		sink = run(t, scrape.Options{Interval: time.Second, MaxScrapeShare: 10}, 20500*time.Millisecond,
			slow(50*time.Millisecond))
		if n := len(sink.all()); n != 22 {
			t.Errorf("%d polls with a share of 10 %%, want 22", n)
		}
	})
}

// TestScrapeShareWhileFailing has a server that is slow, then overloaded: it is
// asked no more often then.
func TestScrapeShareWhileFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down, up := time.Now().Add(20*time.Second), time.Now().Add(100*time.Second)
		sink := run(t, scrape.Options{Interval: time.Second}, 120500*time.Millisecond,
			func(r *http.Request) (*http.Response, error) {
				if now := time.Now(); now.After(down) && now.Before(up) {
					return respond(r, 503, ""), nil
				}
				return slow(180 * time.Millisecond)(r) // 18 %: each ninth tick
			})
		want := []float64{0, 1, 2, 3, 4, 5, 6, 7, 16, 25, 34, 43, 52, 61, 70, 79, 88, 97, 106, 115}
		if got := sentAt(sink.all()); !slices.Equal(got, want) {
			t.Errorf("polled at %v, want %v", got, want)
		}
	})
}

func TestSlowTargetsDoNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := run(t, scrape.Options{Interval: 100 * time.Millisecond}, 30075*time.Millisecond, slow(time.Hour), steady)
		for i, s := range sink.snapshots[1] {
			if s.Outcome != metric.OK || s.SentNS != s.DueNS || s.Seq != uint64(i) {
				t.Fatalf("snapshot %d: %v, %d ns late", i, s.Outcome, s.SentNS-s.DueNS)
			}
		}
		if n := len(sink.snapshots[1]); n != 302 {
			t.Errorf("%d polls of the good target, want 302", n)
		}
		last := int64(0)
		for i, s := range sink.snapshots[0] {
			if s.Outcome.Stored() || s.DueNS < last && s.Kind != metric.Final || s.Seq != uint64(i) {
				t.Fatalf("snapshot %d: %v due %d after %d", i, s.Outcome, s.DueNS, last)
			}
			last = s.DueNS
		}
	})
}

// TestScrapeShareEnds watches a server that is slow for a while: polled less
// often, with one warning, and at the old pace when it is quick again.
func TestScrapeShareEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick := time.Now().Add(60 * time.Second)
		sink := run(t, scrape.Options{Interval: time.Second}, 240500*time.Millisecond,
			func(r *http.Request) (*http.Response, error) {
				if time.Now().Before(quick) {
					return slow(100 * time.Millisecond)(r)
				}
				return slow(time.Millisecond)(r)
			})
		at, said := sentAt(sink.all()), 0
		for _, s := range sink.all() {
			for _, w := range s.Warnings {
				if w.Code == "scrape_share" {
					said++
				}
			}
		}
		steps := map[float64]bool{}
		for i := 9; at[i] < 59; i++ {
			steps[at[i]-at[i-1]] = true
		}
		last := at[len(at)-1] - at[len(at)-2]
		if len(steps) != 1 || !steps[5] || last != 1 || said != 1 {
			t.Errorf("slow: steps %v, want 5 s; at the end %v s, want 1; %d warnings, want 1", steps, last, said)
		}
	})
}

// TestNoHerd looks at when 1,000 targets are asked within an interval.
func TestNoHerd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const targets, parts = 1000, 100
		answers := make([]fake, targets)
		for i := range answers {
			answers[i] = steady
		}
		sink := run(t, scrape.Options{Interval: time.Second, MaxScrapeShare: -1}, 4900*time.Millisecond, answers...)
		checkSpread(t, sink, 2)
	})
}

// TestNoHerdOfNewcomers adds 200 targets at the same moment.
func TestNoHerdOfNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const targets = 200
		sink := newRecording(t, targets)
		c, err := scrape.New(nil, scrape.Options{Interval: time.Second, MaxScrapeShare: -1, Dynamic: true}, sink)
		if err != nil {
			t.Fatal(err)
		}
		stop, done := make(chan struct{}), make(chan error, 1)
		go func() { done <- c.Run(t.Context(), stop) }()
		for i := range targets {
			if err := c.Add(t.Context(), i, scrape.Target{URL: "http://fake:1/metrics",
				RoundTripper: fake(steady)}); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(4900 * time.Millisecond)
		close(stop)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		checkSpread(t, sink, 4)
	})
}

// checkSpread looks at the polls of the first seconds of a run of one poll a second:
// no hundredth of a second has more than so many times its even share, or none.
func checkSpread(t *testing.T, sink *recording, most int) {
	t.Helper()
	const parts = 100
	targets := len(sink.snapshots)
	origin := sink.snapshots[0][0].DueNS
	var rounds [5][parts]int
	for _, polls := range sink.snapshots {
		for _, s := range polls {
			if s.Kind == metric.Final {
				continue
			}
			at := s.SentNS - origin
			rounds[at/1e9][at%1e9*parts/1e9]++
		}
	}
	for second, counts := range rounds {
		for part, n := range counts {
			if n > most*targets/parts || second > 0 && n == 0 && second < 4 {
				t.Errorf("second %d, part %d of %d: %d requests, an even share is %d", second, part, parts, n, targets/parts)
			}
		}
	}
}

// sluggish is a sink that takes its time, for one poll after the other.
type sluggish struct {
	*recording
	turn chan struct{}
	took time.Duration
}

func (s *sluggish) Record(x *metric.Snapshot) error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if x.Outcome != metric.SkippedOverlap {
		timer := time.NewTimer(s.took)
		defer timer.Stop()
		<-timer.C
	}
	return s.recording.Record(x)
}

// TestSaturation has twice as many targets as the recorder can take: each tick
// is polled or counted as skipped, and none is made up for later.
func TestSaturation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const targets = 20
		var list []scrape.Target
		for range targets {
			list = append(list, scrape.Target{URL: "http://fake:1/metrics", RoundTripper: fake(steady)})
		}
		sink := &sluggish{newRecording(t, targets), make(chan struct{}, 1), 100 * time.Millisecond}
		runFor(t, list, scrape.Options{Interval: time.Second}, sink, 30510*time.Millisecond)
		all := 0
		for i, polls := range sink.snapshots {
			polled, skipped := 0, 0
			for k, s := range polls[1 : len(polls)-1] {
				if k > 0 && s.DueNS-polls[k].DueNS != 1e9 {
					t.Fatalf("target %d: tick %d is %v after the one before", i, k, time.Duration(s.DueNS-polls[k].DueNS))
				}
				if s.Outcome == metric.SkippedOverlap {
					skipped++
				} else {
					polled++
				}
			}
			// An even share is 15; who waits for the third tick in place of the second is up to the scheduler.
			if polled < 5 || polled > 25 || polled+skipped < 28 {
				t.Errorf("target %d: %d polled, %d skipped", i, polled, skipped)
			}
			all += polled
		}
		if all < 270 || all > 340 { // 300, and what waits at the edges
			t.Errorf("%d polls in 30 s at ten a second", all)
		}
	})
}
