package scrape_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// metered reads the memory of the process at two polls of a run.
type metered struct {
	polls, from, to int
	before, after   runtime.MemStats
}

func (m *metered) Record(s *metric.Snapshot) error {
	m.polls++
	switch m.polls {
	case m.from:
		runtime.ReadMemStats(&m.before)
	case m.to:
		runtime.ReadMemStats(&m.after)
	}
	return nil
}

// perPoll returns bytes and allocations of a poll of a server whose values change,
// from the answer to the sink.
func perPoll(t *testing.T, ring [][]byte) (size, mallocs float64) {
	t.Helper()
	m := &metered{from: 100, to: 400}
	synctest.Test(t, func(t *testing.T) {
		i := 0
		target := scrape.Target{URL: "http://fake/metrics", RoundTripper: fake(func(r *http.Request) (*http.Response, error) {
			i++
			body := ring[i%len(ring)]
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {classic}}, Request: r,
				ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))}, nil
		})}
		runFor(t, []scrape.Target{target}, scrape.Options{Interval: time.Second, MaxScrapeShare: -1}, m,
			420500*time.Millisecond)
	})
	n := float64(m.to - m.from)
	return float64(m.after.TotalAlloc-m.before.TotalAlloc) / n, float64(m.after.Mallocs-m.before.Mallocs) / n
}

// TestPollsReuseMemory asserts that a poll, the reading of its body included, takes
// little new memory, and no more of it when the body is larger.
func TestPollsReuseMemory(t *testing.T) {
	small, large := bodies(64), withSeries(64, 4000)
	size, mallocs := perPoll(t, small)
	largeSize, largeMallocs := perPoll(t, large)
	t.Logf("a body of %d bytes: %.0f bytes, %.1f allocations; of %d bytes: %.0f and %.1f", len(small[0]), size,
		mallocs, len(large[0]), largeSize, largeMallocs)
	if most := float64(len(small[0])) / 4; size > most || largeSize > most {
		t.Errorf("a poll takes %.0f and %.0f bytes, want at most %.0f: buffers are not used again", size, largeSize, most)
	}
	if mallocs > 40 || largeMallocs > mallocs+2 {
		t.Errorf("a poll makes %.1f and %.1f allocations, want at most 40 and as many", mallocs, largeMallocs)
	}
}

// withSeries is bodies with so many series more, each of which changes.
func withSeries(n, series int) [][]byte {
	out := bodies(n)
	for i := range out {
		for k := range series {
			out[i] = fmt.Appendf(out[i], "more{k=\"%d\"} %d\n", k, 1000+(i+k)%n)
		}
	}
	return out
}

// TestDecodesAreBounded has 50 targets answer at once: no more bodies are decoded
// at the same time than there are cores.
func TestDecodesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := 0, 0
		begin := time.Now().Add(5 * time.Second)
		var targets []scrape.Target
		for range 50 {
			targets = append(targets, scrape.Target{URL: "http://fake/metrics",
				RoundTripper: fake(func(r *http.Request) (*http.Response, error) {
					<-time.After(time.Until(begin))
					return steady(r)
				}),
				// It is asked for each new series, in the middle of decoding.
				Relabel: func(name string, l metric.Labels) (string, metric.Labels, bool) {
					mu.Lock()
					running++
					most = max(most, running)
					mu.Unlock()
					<-time.After(10 * time.Millisecond)
					mu.Lock()
					running--
					mu.Unlock()
					return name, l, true
				}})
		}
		runFor(t, targets, scrape.Options{Interval: 10 * time.Second, Timeout: 9 * time.Second, MaxScrapeShare: -1},
			newRecording(t, len(targets)), 8*time.Second)
		if most != runtime.GOMAXPROCS(0) {
			t.Errorf("%d bodies were decoded at the same time, want %d", most, runtime.GOMAXPROCS(0))
		}
	})
}
