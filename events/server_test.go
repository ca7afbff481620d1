package events_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

func serverRecord(n int) *metric.ServerRequest {
	q := metric.NewServerRequest()
	q.ID, q.ArrivalNS = fmt.Sprint("r", n), 1_795_337_043_000_000_000+int64(n)
	return &q
}

// TestFeed has two sources tell of requests while clients do: all is in the run, with the counts of both.
func TestFeed(t *testing.T) {
	dir := t.TempDir()
	rec, err := events.NewRecorder(t.Context(), dir, events.RecorderOptions{Create: &rundb.Meta{ID: "r"}})
	if err != nil {
		t.Fatal(err)
	}
	const n = 2500
	var all sync.WaitGroup
	for i := range 2 {
		f, err := rec.Feed(t.Context(), metric.ServerSource{Kind: "otlp", Name: fmt.Sprint(i),
			ServerClock: metric.ServerClock{Clock: metric.ServerUnix}})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for k := range n {
				f.Record(serverRecord(k))
				rec.Record(metric.Event{Sample: fmt.Sprint(i, k), Type: events.SampleIssued, AtNS: rec.Now()})
			}
			f.Counted(metric.ServerCounts{Bad: 3, Other: 4})
		})
	}
	all.Wait()
	if pending, err := rec.Close(t.Context()); pending != 0 || err != nil {
		t.Fatal(pending, err)
	}
	run, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	got := map[int]int64{}
	for q, err := range run.ServerRequests(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if want := serverRecord(int(got[q.Source])); q.ID != want.ID || q.ArrivalNS != want.ArrivalNS {
			t.Fatalf("source %d: %s after %d records", q.Source, q.ID, got[q.Source])
		}
		got[q.Source]++
	}
	sources, err := run.ServerSources(t.Context())
	if err != nil || len(sources) != 2 {
		t.Fatal(sources, err)
	}
	for _, s := range sources {
		if got[s.ID] != n || s.Records != n || s.Bad != 3 || s.Other != 4 || s.Dropped != 0 {
			t.Errorf("%d records, %+v", got[s.ID], s)
		}
	}
}

// TestFeedFull drops and counts records for which there is no memory, and takes some again when others were written.
func TestFeedFull(t *testing.T) {
	rec, err := events.NewRecorder(t.Context(), t.TempDir(), events.RecorderOptions{Create: &rundb.Meta{ID: "r"}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := rec.Feed(t.Context(), metric.ServerSource{Kind: "k"})
	if err != nil {
		t.Fatal(err)
	}
	huge := serverRecord(0)
	huge.ID = string(make([]byte, 65<<20))
	f.Record(huge)
	for k := range 10 {
		f.Record(serverRecord(k))
	}
	if pending, err := rec.Close(t.Context()); pending != 0 || err != nil {
		t.Fatal(pending, err)
	}
	f.Record(serverRecord(11)) // too late
	if s := f.Source(); s.Records != 10 || s.Dropped != 2 {
		t.Errorf("%+v", s)
	}
}
