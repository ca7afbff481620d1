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
		sink := run(t, scrape.Options{Interval: time.Second}, 30500*time.Millisecond, func(r *http.Request) (*http.Response, error) {
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
		sink := run(t, scrape.Options{Interval: time.Second}, 29500*time.Millisecond, func(r *http.Request) (*http.Response, error) {
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
		sink := run(t, scrape.Options{Interval: time.Second}, 94500*time.Millisecond, func(r *http.Request) (*http.Response, error) {
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
		if w := sink.all()[7].Warnings; len(w) != 1 || w[0].Code != "scrape_share" || !strings.Contains(w[0].Text, "5.0 % of the interval; polling every 3s") {
			t.Errorf("warnings %v", w)
		}
		sink = run(t, scrape.Options{Interval: time.Second, MaxScrapeShare: 10}, 20500*time.Millisecond, slow(50*time.Millisecond))
		if n := len(sink.all()); n != 22 {
			t.Errorf("%d polls with a share of 10 %%, want 22", n)
		}
	})
}

func TestSlowTargetsDoNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := run(t, scrape.Options{Interval: 100 * time.Millisecond}, 30050*time.Millisecond, slow(time.Hour), steady)
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
