//go:build unix

package collect_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
)

// kept records polls, keeps them and ends a run after so many.
type kept struct {
	db    *rundb.Writer
	polls []*metric.Snapshot
	left  int
	stop  chan struct{}
}

func (k *kept) Record(s *metric.Snapshot) error {
	if !s.Outcome.Stored() {
		return nil
	}
	k.polls = append(k.polls, s.Clone())
	if k.left--; k.left == 0 {
		close(k.stop)
	}
	return k.db.Record(s)
}

// bodiesServed are those of a vLLM server under load, 1,168 samples each, a third of a second apart.
type bodiesServed [][]byte

func serveBodies(b *testing.B, n int) (out bodiesServed) {
	now := time.Unix(1_790_000_000, 0)
	sim, err := simulate.New("vllm", simulate.Options{Rate: 8, Seed: 1, Engines: 2, ExtraSeries: 364,
		Now: func() time.Time { return now }})
	if err != nil {
		b.Fatal(err)
	}
	for range n {
		now = now.Add(333 * time.Millisecond)
		rec := httptest.NewRecorder()
		sim.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		out = append(out, rec.Body.Bytes())
	}
	return out
}

func (f *bodiesServed) RoundTrip(r *http.Request) (*http.Response, error) {
	body := (*f)[0]
	if len(*f) > 1 {
		*f = (*f)[1:]
	}
	return &http.Response{StatusCode: http.StatusOK, Request: r, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"text/plain; version=0.0.4"}},
		Body:   io.NopCloser(bytes.NewReader(body))}, nil
}

// BenchmarkDetection tells how much processor time a poll takes to scrape, without a network, to record and to fold,
// and how much of that, in %, it takes to look for traffic in it.
func BenchmarkDetection(b *testing.B) {
	const polls = 1000
	c, err := catalog.New()
	if err != nil {
		b.Fatal(err)
	}
	var recording, looking time.Duration
	for range b.N {
		bodies := serveBodies(b, polls+1)
		k := &kept{left: polls, stop: make(chan struct{})}
		if k.db, err = rundb.Create(b.TempDir(), rundb.Meta{ID: "b", OriginNS: 1}, rundb.WriterOptions{}); err != nil {
			b.Fatal(err)
		}
		if _, err := k.db.AddTarget(metric.Target{URL: "http://fake/metrics"}); err != nil {
			b.Fatal(err)
		}
		s, err := scrape.New([]scrape.Target{{URL: "http://fake/metrics", RoundTripper: &bodies}},
			scrape.Options{Interval: time.Millisecond, MaxScrapeShare: -1}, k)
		if err != nil {
			b.Fatal(err)
		}
		begin := processorTime()
		if err := s.Run(context.Background(), k.stop); err != nil {
			b.Fatal(err)
		}
		if err := k.db.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		recorded := processorTime()
		load := summary.NewLoad(c)
		for _, p := range k.polls {
			if _, err := load.Add(p); err != nil {
				b.Fatal(err)
			}
		}
		looked := processorTime()
		fold, err := summary.NewBuilder(rundb.Meta{ID: "b", OriginNS: 1}, []metric.Target{{URL: "http://fake/metrics"}},
			summary.Options{Catalog: c}, load)
		if err != nil {
			b.Fatal(err)
		}
		fold.Mark(metric.Mark{Name: metric.PhaseProfiling, AtNS: 2, Kind: metric.MarkOwn})
		for _, p := range k.polls {
			if err := fold.Add(p); err != nil {
				b.Fatal(err)
			}
		}
		recording, looking = recording+recorded-begin+processorTime()-looked, looking+looked-recorded
	}
	b.ReportMetric(recording.Seconds()*1e6/polls/float64(b.N), "µs/poll")
	b.ReportMetric(100*float64(looking)/float64(recording), "%")
}

// processorTime is that of the process so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
