package scrape_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// tally is a source whose counter counts its polls; every third one fails.
type tally struct {
	g metric.SnapshotBuilder
	n uint64
}

func (c *tally) Poll(_ context.Context, now func() int64, s *metric.Snapshot) {
	s.SentNS = now()
	s.FirstByteNS = s.SentNS
	if c.n++; c.n%3 == 0 {
		s.Outcome, s.Err, s.FirstByteNS = metric.ConnectError, "no server", 0
		return
	}
	series := c.g.Series(c.g.Family("polls", metric.Counter, "", ""), metric.Labels{})
	c.g.SetInteger(c.g.Slot(series, metric.SampleID{Integer: true}), c.n)
	c.g.Finish(s)
}

type countSink struct {
	mu       sync.Mutex
	kinds    []metric.Kind
	outcomes map[metric.Outcome]int
	last     uint64
}

func (k *countSink) Record(s *metric.Snapshot) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kinds = append(k.kinds, s.Kind)
	k.outcomes[s.Outcome]++
	if s.Outcome.Stored() {
		k.last = s.Delta.Bits[0]
	}
	return nil
}

// A source is scheduled, recorded and counted like any other target.
func TestSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &countSink{outcomes: map[metric.Outcome]int{}}
		target := scrape.Target{Name: "t", URL: "triton+http://h:8000", Kind: "triton", Source: &tally{}}
		if got := target.Public(); got.Source != "triton" || got.URL != "triton+http://h:8000" {
			t.Errorf("public form is %+v", got)
		}
		runFor(t, []scrape.Target{target}, scrape.Options{Interval: time.Second}, sink, 9500*time.Millisecond)
		if n := len(sink.kinds); n != 11 || sink.kinds[0] != metric.Baseline || sink.kinds[n-1] != metric.Final ||
			sink.outcomes[metric.OK] != 8 || sink.outcomes[metric.ConnectError] != 3 || sink.last != 11 {
			t.Errorf("got kinds %v, outcomes %v, last value %d", sink.kinds, sink.outcomes, sink.last)
		}
	})
}
