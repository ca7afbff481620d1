package scrape_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// counting ends a run after n snapshots.
type counting struct {
	left int
	stop chan struct{}
}

func (c *counting) Record(s *metric.Snapshot) error {
	if s.Outcome == metric.SkippedOverlap {
		return nil
	}
	if !s.Outcome.Stored() {
		return errors.New(s.Err)
	}
	if c.left--; c.left == 0 {
		close(c.stop)
	}
	return nil
}

// BenchmarkPoll is a whole poll but for the network and the sink.
func BenchmarkPoll(b *testing.B) {
	ring := bodies(64)
	i := 0
	header := http.Header{"Content-Type": {classic}}
	answer := fake(func(r *http.Request) (*http.Response, error) {
		i++
		body := ring[i%len(ring)]
		return &http.Response{StatusCode: 200, Header: header, Request: r, ContentLength: int64(len(body)),
			Body: io.NopCloser(bytes.NewReader(body))}, nil
	})
	sink := &counting{left: b.N, stop: make(chan struct{})}
	target := scrape.Target{URL: "http://fake/metrics", RoundTripper: answer}
	c, err := scrape.New([]scrape.Target{target}, scrape.Options{Interval: time.Millisecond, MaxScrapeShare: -1}, sink)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	if err := c.Run(context.Background(), sink.stop); err != nil {
		b.Fatal(err)
	}
}
