package scrape_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// recording is a sink that keeps copies.
type recording struct {
	mu        sync.Mutex
	snapshots [][]metric.Snapshot // by target
	consumers []*consumer
	fail      error
	t         testing.TB
	notify    func(*metric.Snapshot)
}

func newRecording(t testing.TB, targets int) *recording {
	r := &recording{t: t, snapshots: make([][]metric.Snapshot, targets)}
	for range targets {
		r.consumers = append(r.consumers, new(consumer))
	}
	return r
}

func (r *recording) Record(s *metric.Snapshot) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.consumers[s.Target].apply(r.t, s)
	kept := *s
	kept.Body, kept.DictDelta, kept.Delta = nil, metric.DictDelta{}, metric.Delta{}
	kept.Warnings = append([]metric.Warning(nil), s.Warnings...)
	kept.Drops = append([]metric.Drop(nil), s.Drops...)
	r.snapshots[s.Target] = append(r.snapshots[s.Target], kept)
	if r.notify != nil {
		r.notify(s)
	}
	return r.fail
}

// all returns the snapshots of target 0.
func (r *recording) all() []metric.Snapshot { return r.snapshots[0] }

// fake is a RoundTripper that answers from a function.
type fake func(*http.Request) (*http.Response, error)

func (f fake) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func respond(r *http.Request, status int, body string) *http.Response {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", classic)
	w.WriteHeader(status)
	w.WriteString(body)
	resp := w.Result()
	resp.Request = r
	return resp
}

// wait blocks for d or until the request is given up.
func wait(r *http.Request, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

// run collects for d of fake time and returns what was recorded.
func run(t *testing.T, o scrape.Options, d time.Duration, answers ...fake) *recording {
	t.Helper()
	var targets []scrape.Target
	for _, f := range answers {
		targets = append(targets, scrape.Target{URL: "http://fake:1/metrics", RoundTripper: f})
	}
	sink := newRecording(t, len(targets))
	runFor(t, targets, o, sink, d)
	return sink
}

// runFor collects for d of fake time.
func runFor(t *testing.T, targets []scrape.Target, o scrape.Options, sink scrape.Sink, d time.Duration) {
	t.Helper()
	c, err := scrape.New(targets, o, sink)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	timer := time.AfterFunc(d, func() { close(stop) })
	defer timer.Stop()
	if err := c.Run(t.Context(), stop); err != nil {
		t.Fatal(err)
	}
}

func steady(r *http.Request) (*http.Response, error) { return respond(r, 200, "a 1\n"), nil }

func slow(d time.Duration) fake {
	return func(r *http.Request) (*http.Response, error) {
		if err := wait(r, d); err != nil {
			return nil, err
		}
		return steady(r)
	}
}

func TestGrid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		sink := run(t, scrape.Options{Interval: time.Second, MaxScrapeShare: -1}, 60*time.Second+time.Millisecond,
			slow(300*time.Millisecond), steady, steady, steady)
		for target, snapshots := range sink.snapshots {
			if len(snapshots) < 61 {
				t.Fatalf("target %d: %d snapshots, want 61 or more", target, len(snapshots))
			}
			for i, s := range snapshots {
				due := start.Add(time.Duration(target)*250*time.Millisecond + time.Duration(i)*time.Second)
				kind := metric.Periodic
				switch {
				case i == 0:
					kind = metric.Baseline
				case i == len(snapshots)-1:
					kind = metric.Final
					due = start.Add(60*time.Second + time.Millisecond)
				}
				if kind == metric.Final && target == 0 {
					due = time.Unix(0, s.DueNS) // it follows the poll that ran at the end
				}
				if s.Kind != kind || s.Seq != uint64(i) || s.DueNS != due.UnixNano() || s.SentNS != s.DueNS ||
					s.Outcome != metric.OK {
					t.Fatalf("target %d snapshot %d: %+v, want %v due %d", target, i, s, kind, due.UnixNano())
				}
			}
		}
	})
}

func TestBaselinesComeWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := run(t, scrape.Options{Interval: 10 * time.Second}, 29*time.Second, steady, steady)
		for i, want := range [][]float64{{0, 10, 20}, {0, 4.5, 14.5, 24.5}} {
			if got := sentAt(sink.snapshots[i]); !slices.Equal(got, want) {
				t.Errorf("target %d: polled at %v, want %v", i, got, want)
			}
		}
	})
}

func TestOverlapIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		sink := run(t, scrape.Options{Interval: time.Second, MaxScrapeShare: -1}, 10500*time.Millisecond,
			func(r *http.Request) (*http.Response, error) {
				if n++; n == 3 {
					return slow(3500 * time.Millisecond)(r)
				}
				return steady(r)
			})
		var skipped []int
		last := int64(0)
		for i, s := range sink.all() {
			if s.Outcome == metric.SkippedOverlap {
				skipped = append(skipped, i)
			}
			if s.AtNS() < last {
				t.Errorf("snapshot %d goes back in time", i)
			}
			last = s.AtNS()
		}
		if len(sink.all()) != 12 || len(skipped) != 3 || skipped[0] != 3 {
			t.Errorf("%d snapshots, skipped %v; want 12 and 3, 4, 5", len(sink.all()), skipped)
		}
	})
}

func TestSlowSinkIsToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newRecording(t, 1)
		sink.notify = func(s *metric.Snapshot) {
			if s.Seq == 1 {
				<-time.After(2500 * time.Millisecond)
			}
		}
		runFor(t, []scrape.Target{{URL: "http://fake:1/metrics", RoundTripper: fake(steady)}},
			scrape.Options{Interval: time.Second}, sink, 5500*time.Millisecond)
		got := sink.all()
		if len(got) != 7 || got[2].Outcome != metric.SkippedOverlap || !strings.Contains(got[3].Err, "collector") ||
			got[4].Outcome != metric.OK {
			t.Errorf("got %+v", got)
		}
	})
}

func TestStopEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		sink := run(t, scrape.Options{Interval: time.Second}, 2500*time.Millisecond, slow(time.Hour))
		if d := time.Since(start); d > 7500*time.Millisecond {
			t.Errorf("run ended %v after the start", d)
		}
		got := sink.all()
		if first, last := got[0], got[len(got)-1]; first.Outcome != metric.Cancelled || last.Kind != metric.Final ||
			last.Outcome != metric.Timeout {
			t.Errorf("got %v first and %v %v last", first.Outcome, last.Kind, last.Outcome)
		}
	})
}

func TestCancelAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newRecording(t, 1)
		c, err := scrape.New([]scrape.Target{{URL: "http://fake:1/metrics", RoundTripper: slow(time.Hour)}},
			scrape.Options{}, sink)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Run(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v", err)
		}
		if got := sink.all(); len(got) != 4 || got[0].Outcome != metric.Cancelled || got[1].Outcome != metric.SkippedOverlap {
			t.Errorf("got %+v", got)
		}
		if err := c.Run(t.Context(), nil); err == nil {
			t.Error("a second run gives no error")
		}
	})
}

func TestSinkErrorEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newRecording(t, 2)
		sink.fail = errors.New("disk full")
		target := scrape.Target{URL: "http://fake:1/metrics", RoundTripper: fake(steady)}
		c, err := scrape.New([]scrape.Target{target, target}, scrape.Options{}, sink)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context(), nil); !errors.Is(err, sink.fail) ||
			!strings.Contains(err.Error(), "http://fake:1/metrics") {
			t.Errorf("got error %v", err)
		}
	})
}

func TestBoundaryAndReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newRecording(t, 3)
		target := scrape.Target{URL: "http://fake:1/metrics", RoundTripper: slow(10 * time.Millisecond)}
		c, err := scrape.New([]scrape.Target{target, target, target},
			scrape.Options{Interval: time.Second, MaxScrapeShare: -1}, sink)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			defer close(stop)
			<-c.Ready()
			if d := time.Since(start); d.Truncate(time.Millisecond) != 676*time.Millisecond {
				t.Errorf("ready after %v", d)
			}
			c.Boundary(t.Context())
			if d := time.Since(start); d.Truncate(time.Millisecond) != 686*time.Millisecond {
				t.Errorf("boundary polled after %v", d)
			}
		})
		if err := c.Run(t.Context(), stop); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		c.Boundary(t.Context()) // returns: the run has ended
		for i, snapshots := range sink.snapshots {
			var kinds []metric.Kind
			for _, s := range snapshots {
				kinds = append(kinds, s.Kind)
			}
			if len(kinds) != 3 || kinds[0] != metric.Baseline || kinds[1] != metric.Boundary || kinds[2] != metric.Final {
				t.Errorf("target %d: got %v", i, kinds)
			}
		}
	})
}
