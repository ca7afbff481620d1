package faults_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
)

// set returns what time.Now returns when elapsed has passed since the program
// began and somebody has set the clock by d since: a monotonic reading that knows
// nothing of it, and a wall clock that does. There is no other way to make such
// a time but to set the clock of the machine.
func set(elapsed, d time.Duration) time.Time {
	wall := time.Unix(1_700_000_000, 0).Add(elapsed + d)
	var t time.Time
	// time.Time begins with wall and ext. With the highest bit of wall, 33 bits of
	// seconds since 1885 and 30 bits of nanoseconds follow, and ext is the
	// monotonic reading.
	words := (*[2]uint64)(unsafe.Pointer(&t))
	since := wall.Unix() - time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	words[0] = 1<<63 | uint64(since)<<30 | uint64(wall.Nanosecond())
	words[1] = uint64(elapsed) + 1
	return t
}

// TestSet shows that set does what it says: else TestClock would show nothing.
func TestSet(t *testing.T) {
	for _, d := range []time.Duration{time.Second, -time.Hour, 365 * 24 * time.Hour} {
		before, after := set(time.Second, 0), set(3*time.Second, d)
		if wall := after.UnixNano() - before.UnixNano(); wall != int64(d+2*time.Second) ||
			after.Sub(before) != 2*time.Second {
			t.Errorf("%v: the wall clock moved by %v, the monotonic one by %v", d, time.Duration(wall), after.Sub(before))
		}
	}
}

// jumping is a clock that is set while a run goes on: at each of the readings
// given it jumps once more.
type jumping struct {
	mu    sync.Mutex
	start time.Time // of the bubble, without a monotonic reading
	reads int
	jumps map[int]time.Duration
	off   time.Duration
}

func (j *jumping) now() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reads++
	j.off += j.jumps[j.reads]
	if j.reads == 1 {
		j.start = time.Now()
	}
	return set(time.Since(j.start), j.off)
}

// pattern is the n-th pattern of jumps: one to six of them, of a second to a
// year, forward, back or both.
func pattern(n int) *jumping {
	rng := rand.New(rand.NewPCG(uint64(n), 11))
	j := &jumping{jumps: map[int]time.Duration{}}
	for range 1 + rng.IntN(6) {
		const year = 365 * 24 * 3600
		d := time.Duration(min(1<<rng.IntN(26), year)) * time.Second
		if n%3 == 1 || n%3 == 2 && rng.IntN(2) == 0 {
			d = -d
		}
		j.jumps[2+rng.IntN(150)] = d
	}
	return j
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// underClock records 40 polls of two targets in a bubble of synthetic time and
// returns the result. It is the same for each clock, or the clock matters.
func underClock(t *testing.T, clock *jumping) *summary.Run {
	t.Helper()
	var run *summary.Run
	synctest.Test(t, func(t *testing.T) {
		var targets []scrape.Target
		for i := range 2 {
			n := 0
			targets = append(targets, scrape.Target{URL: fmt.Sprintf("http://t%d/metrics", i),
				RoundTripper: transport(func(r *http.Request) (*http.Response, error) {
					n++
					body := fmt.Sprintf("# TYPE c_total counter\nc_total %d.1\n# TYPE g gauge\ng %d\n# TYPE h "+
						"histogram\nh_bucket{le=\"1\"} %d\nh_bucket{le=\"+Inf\"} %d\nh_sum %d.5\nh_count %d\n",
						7*n, n*n%13, n, 2*n, 3*n, 2*n)
					<-time.After(time.Duration(n) * time.Millisecond)
					return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}}, Request: r,
						Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}, nil
				})})
		}
		// The origin is read before the first jump.
		o := scrape.Options{Interval: time.Second, MaxScrapeShare: -1, Now: clock.now, Origin: clock.now()}
		meta := metaAt(o.Origin)
		b, err := summary.NewBuilder(meta, []metric.Target{targets[0].Public(), targets[1].Public()},
			summary.Options{Slice: 5 * time.Second}, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.Mark(metric.Mark{Name: metric.PhaseProfiling, AtNS: meta.OriginNS + int64(1500*time.Millisecond)})
		c, err := scrape.New(targets, o, builderSink{b})
		if err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		// Between the polls of the two: when one were due at the moment of the end,
		// whether it is still sent would be left to the scheduler of goroutines.
		defer time.AfterFunc(40*time.Second+250*time.Millisecond, func() { close(stop) }).Stop()
		if err := c.Run(t.Context(), stop); err != nil {
			t.Fatal(err)
		}
		if run, err = b.Result(meta.OriginNS + int64(41*time.Second)); err != nil {
			t.Fatal(err)
		}
	})
	return run
}

type builderSink struct{ b *summary.Builder }

func (s builderSink) Record(p *metric.Snapshot) error { return s.b.Add(p) }

// TestClock sets the clock of the collector in 50 ways while it records: every
// number of the result is that of the run without, bit for bit.
func TestClock(t *testing.T) {
	patterns := 50
	want := underClock(t, &jumping{})
	if len(want.Metrics) != 3 || want.Endpoints[0].Ledger.Scheduled < 40 {
		t.Fatalf("the run without jumps has %d metrics, %d polls", len(want.Metrics), want.Endpoints[0].Ledger.Scheduled)
	}
	jumps := 0
	for n := range patterns {
		j := pattern(n)
		jumps += len(j.jumps)
		got := underClock(t, j)
		if j.reads < 150 {
			t.Fatalf("the clock was read %d times: jumps beyond were not made", j.reads)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("pattern %d, jumps %v: the result differs", n, j.jumps)
		}
	}
	faults.Figure(t, "clock",
		fmt.Sprintf("%d patterns, %d jumps of 1 s to 1 year both ways: every result equal bit for bit", patterns, jumps),
		"go test ./internal/faults -run TestClock")
}
