package main

import (
	"runtime"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
)

// steadyAllocs is how many allocations a poll makes from the body to the
// database when nothing but values changes, with that many more series.
func steadyAllocs(t *testing.T, extra int) (perPoll float64, samples int) {
	t.Helper()
	now := time.Unix(1_790_000_000, 0)
	server, err := simulate.New("vllm", simulate.Options{Now: func() time.Time { return now }, Seed: 1, Rate: 28,
		ExtraSeries: extra})
	if err != nil {
		t.Fatal(err)
	}
	d, err := scrape.NewDecoder(scrape.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := rundb.Create(t.TempDir(), rundb.Meta{ID: "x"}, rundb.WriterOptions{CommitEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(t.Context())
	if _, err := w.AddTarget(metric.Target{URL: "http://a/metrics"}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	const warm, polls = 150, 300
	bodies := make([][]byte, warm+polls)
	for i := range bodies {
		now = now.Add(333 * time.Millisecond)
		bodies[i] = server.AppendBody(nil)
	}
	var before, after runtime.MemStats
	for i, b := range bodies {
		if i == warm {
			if err := w.Flush(t.Context()); err != nil { // the dictionary
				t.Fatal(err)
			}
			runtime.ReadMemStats(&before)
		}
		at := int64(i+1) * 333e6
		s := metric.Snapshot{Seq: uint64(i), Kind: metric.Periodic, DueNS: at, SentNS: at, FirstByteNS: at + 1e6,
			Duration: 2 * time.Millisecond, Status: 200}
		d.Decode(&s, scrape.Body{Bytes: b, ContentType: "text/plain; version=0.0.4; charset=utf-8"})
		if s.Outcome != metric.OK || i > 0 && s.Delta.Full {
			t.Fatalf("poll %d: %v %s, full %v", i, s.Outcome, s.Err, s.Delta.Full)
		}
		if err := w.Record(&s); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / polls, server.Samples()
}

// TestSteadyStateAllocations asserts that a poll costs less than one
// allocation between the body and the database, the share of its transactions
// included, however many samples it has.
func TestSteadyStateAllocations(t *testing.T) {
	for _, extra := range []int{0, 2000} {
		got, samples := steadyAllocs(t, extra)
		t.Logf("%d samples: %.2f allocations per poll", samples, got)
		if got > 1 {
			t.Errorf("%d samples: %.2f allocations per poll, want at most 1", samples, got)
		}
	}
}
