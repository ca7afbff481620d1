package scrape_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// TestHardeningMemory has a finding by the number that package faults lists: what one
// target makes up costs that target its series, and no other.
func TestHardeningMemory(t *testing.T) {
	t.Run("K21", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var asked [3]atomic.Int64
			server := func(target, lines int) scrape.Target {
				return scrape.Target{URL: fmt.Sprintf("http://t%d/metrics", target), RoundTripper: fake(
					func(r *http.Request) (*http.Response, error) {
						var b strings.Builder
						n := int(asked[target].Add(1))
						for i := range lines { // new series each time
							fmt.Fprintf(&b, "x{id=\"%d of %d\"} 1\n", i, n)
						}
						return respond(r, 200, b.String()), nil
					})}
			}
			r := newRecording(t, 3)
			c, err := scrape.New([]scrape.Target{server(0, 300), server(1, 10), server(2, 15)},
				scrape.Options{Interval: time.Second, MaxScrapeShare: -1, Limits: scrape.Limits{Memory: 4 << 20}}, r)
			if err != nil {
				t.Fatal(err)
			}
			stop := make(chan struct{})
			time.AfterFunc(20500*time.Millisecond, func() { close(stop) })
			if err := c.Run(t.Context(), stop); err != nil {
				t.Fatal(err)
			}
			var lines, refused [3]int
			said := ""
			for target, list := range r.snapshots {
				for _, s := range list {
					lines[target] += s.Lines
					for _, d := range s.Drops {
						if d.Reason != "memory_limit" {
							t.Errorf("target %d: dropped %+v", target, d)
						}
						refused[target] += d.Lines
					}
					for _, w := range s.Warnings {
						said += fmt.Sprint(target, " ", w.Code, ": ", w.Text, "\n")
					}
				}
			}
			if refused[0] == 0 || refused[1] != 0 || refused[2] != 0 || lines[0] != 300*int(asked[0].Load()) {
				t.Errorf("refused %v of %v lines", refused, lines)
			}
			if !strings.Contains(said, "0 memory_limit: ") ||
				!strings.Contains(said, "--max-memory; label \"id\" has the most") {
				t.Errorf("said: %s", said)
			}
		})
	})
}

// TestMemory: the largest target is refused first, and nobody gets more than all.
func TestMemory(t *testing.T) {
	m := metric.NewMemory(100 * 1536)
	large, small := m.Share(), m.Share()
	n := 0
	for large.Take(1, 0) {
		n++
	}
	k := 0
	for small.Take(1, 0) {
		k++
	}
	if n != 75 || k != 25 {
		t.Errorf("the first took %d, the other %d, want 75 and 25", n, k)
	}
	small.Hold(1000, 3) // what cannot be refused is counted all the same
	if large.Take(0, 1) || small.Take(0, 1) || !(*metric.MemoryShare)(nil).Take(1<<20, 0) {
		t.Error("more was taken than there is, or no bound bounds")
	}
}
