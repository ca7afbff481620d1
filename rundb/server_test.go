package rundb_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

func readServer(t testing.TB, dir string) (all []metric.ServerRequest, sources []metric.ServerSource) {
	t.Helper()
	r := open(t, dir)
	defer r.Close()
	for q, err := range r.ServerRequests(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, *q)
	}
	sources, err := r.ServerSources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.HasServerRequests() != (len(all) > 0) {
		t.Errorf("HasServerRequests of %d is %v", len(all), r.HasServerRequests())
	}
	return all, sources
}

const arrival = int64(1_795_337_043_000_000_001)

// someServer are records: all that can be, nothing but an id, of a monotonic clock, of durations alone.
func someServer(source int) []metric.ServerRequest {
	full := metric.ServerRequest{Source: source, ID: "cmpl-1-0", Alt: "x", Trace: strings.Repeat("0a", 16), Part: 0,
		ArrivalNS: arrival, QueuedNS: arrival, SchedNS: arrival + 2, FirstNS: arrival + 3, LastNS: arrival + 8,
		FinishNS: arrival + 9, SentNS: arrival + 4, Front: 0, Queue: 2, Prefill: 1, Decode: 6, TTFT: 3, E2E: 9, Transfer: 7,
		Compute: 8,
		Prompt:  5, Cached: 0, Output: 1, Preempted: 0, Finish: "stop", Status: "ok",
		ServerPlace: metric.ServerPlace{Stage: "gen", Role: "decode", Replica: "r", Worker: "w", Model: "m"}}
	bare := metric.NewServerRequest()
	bare.Source, bare.ID = source, "b"
	steady := metric.NewServerRequest()
	steady.Source, steady.ID, steady.ArrivalNS, steady.FirstNS, steady.TTFT = source, "c", 5, 5, 0
	steady.ServerPlace = full.ServerPlace
	alone := metric.NewServerRequest()
	alone.Source, alone.Trace, alone.TTFT, alone.E2E = source, "no hex", 0, 12
	odd := full
	odd.TTFT, odd.E2E = 4, 11 // not those of the instants
	return []metric.ServerRequest{full, bare, steady, alone, odd}
}

// TestServerRequests writes records in two sessions beside events, and reads them back with all that is missing.
func TestServerRequests(t *testing.T) {
	dir := t.TempDir()
	source := metric.ServerSource{ID: 1, Kind: "otlp", Name: "127.0.0.1:4317", OpenedNS: 12,
		ServerClock: metric.ServerClock{Clock: metric.ServerUnix, Resolution: time.Microsecond, BootID: "b"}}
	var want []metric.ServerRequest
	for n := range 2 {
		w := openEvents(t, dir, rundb.EventWriterOptions{Source: "s", Create: &rundb.Meta{ID: "r"}})
		s := source
		id, err := w.AddSource(t.Context(), s)
		if err != nil || id != n+1 {
			t.Fatalf("AddSource: %d, %v", id, err)
		}
		s.ID, s.ServerCounts = id, metric.ServerCounts{Records: 5, Bad: 1, Dropped: 2, Other: 3}
		all := someServer(id)
		if err := errors.Join(w.WriteServer(t.Context(), all, []metric.ServerSource{s}), w.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		want = append(want, all...)
	}
	got, sources := readServer(t, dir)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	source.ServerCounts = metric.ServerCounts{Records: 5, Bad: 1, Dropped: 2, Other: 3}
	second := source
	second.ID = 2
	if d := cmp.Diff([]metric.ServerSource{source, second}, sources); d != "" {
		t.Error(d)
	}
}

// TestServerDiscard takes back what one writer wrote, and leaves what was there.
func TestServerDiscard(t *testing.T) {
	dir := t.TempDir()
	for n := range 3 {
		w := openEvents(t, dir, rundb.EventWriterOptions{Source: "s", Create: &rundb.Meta{ID: "r"}})
		id, err := w.AddSource(t.Context(), metric.ServerSource{Kind: "k"})
		if err == nil {
			err = w.WriteServer(t.Context(), someServer(id), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		end := w.Close
		if n == 1 {
			end = w.Discard
		}
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got, sources := readServer(t, dir)
	if d := cmp.Diff(append(someServer(1), someServer(2)...), got); d != "" || len(sources) != 2 {
		t.Errorf("%d sources, %s", len(sources), d)
	}
}

// TestServerMoved removes the file while records are written: they are in the copy that a Writer makes, once.
func TestServerMoved(t *testing.T) {
	dir := t.TempDir()
	w, err := rundb.Create(dir, rundb.Meta{ID: "r"}, rundb.WriterOptions{Retry: true})
	if err != nil {
		t.Fatal(err)
	}
	e := openEvents(t, dir, rundb.EventWriterOptions{Source: "s"})
	id, err := e.AddSource(t.Context(), metric.ServerSource{Kind: "k"})
	if err == nil {
		err = errors.Join(e.WriteServer(t.Context(), someServer(id), nil), w.Flush(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, rundb.FileName)); err != nil {
		t.Fatal(err)
	}
	if err := e.WriteServer(t.Context(), someServer(id), nil); !errors.Is(err, rundb.ErrMoved) {
		t.Errorf("the file is gone, got %v", err)
	}
	if err := errors.Join(w.Mark(metric.Mark{Name: "m", AtNS: 1}), w.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.WriteServer(t.Context(), someServer(id), nil), e.Close(t.Context()),
		w.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got, _ := readServer(t, dir); len(got) != 10 {
		t.Errorf("%d records, want 10", len(got))
	}
}

// TestRequestIDs writes ids of answers and traces into a recording whose table of requests was made before it had them.
func TestRequestIDs(t *testing.T) {
	dir := t.TempDir()
	if err := openEvents(t, dir, rundb.EventWriterOptions{Source: "s", Create: &rundb.Meta{ID: "r"}}).
		Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := rundb.Request{ID: "a", ResponseID: "cmpl-1", TraceID: "0a"}
	write := func(q *rundb.Request) {
		t.Helper()
		all := func(yield func(*rundb.Request, error) bool) { yield(q, nil) }
		if err := rundb.ReplaceRequests(t.Context(), dir, all); err != nil {
			t.Fatal(err)
		}
	}
	first := func() (got rundb.Request) {
		r := open(t, dir)
		defer r.Close()
		for q, err := range r.Requests(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = *q
		}
		return got
	}
	write(&want)
	db, err := sql.Open("sqlite", filepath.Join(dir, rundb.FileName))
	if err == nil {
		_, err = db.Exec("ALTER TABLE requests DROP COLUMN response_id; ALTER TABLE requests DROP COLUMN trace_id")
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if got := first(); got.ID != "a" || got.ResponseID != "" {
		t.Errorf("of a recording without the columns: %+v", got)
	}
	write(&want)
	if got := first(); got.ResponseID != "cmpl-1" || got.TraceID != "0a" {
		t.Errorf("with them: %+v", got)
	}
}

// TestServerSize writes records as vLLM sends them, with UUIDs as ids: 130 bytes each at most.
func TestServerSize(t *testing.T) {
	dir := t.TempDir()
	w := openEvents(t, dir, rundb.EventWriterOptions{Source: "s", Create: &rundb.Meta{ID: "r"}})
	id, err := w.AddSource(t.Context(), metric.ServerSource{Kind: "otlp"})
	if err != nil {
		t.Fatal(err)
	}
	const n = 20_000
	batch := make([]metric.ServerRequest, n)
	for i := range batch {
		q := metric.NewServerRequest()
		k := int64(i)
		q.Source, q.ID = id, fmt.Sprintf("cmpl-%08x-1234-5678-9abc-%012x-0", i, i)
		q.ArrivalNS, q.TTFT, q.E2E = arrival+k*1_000_000, time.Duration(60_000_000+k), time.Duration(2_400_000_000+k)
		q.FirstNS, q.FinishNS = q.ArrivalNS+int64(q.TTFT), q.ArrivalNS+int64(q.E2E)
		q.Queue, q.Prefill, q.Decode, q.Prompt, q.Output = 20_000_000, 30_000_000, 2_340_000_000, 1000, 300
		q.Replica = "70cd2e8f-b29d-4b1d-9df4-a6bdf31f186c"
		batch[i] = q
	}
	before, err := os.Stat(filepath.Join(dir, rundb.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.WriteServer(t.Context(), batch, nil), w.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(filepath.Join(dir, rundb.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if per := float64(after.Size()-before.Size()) / n; per > 130 {
		t.Errorf("%.1f bytes for a record, want 130 at most", per)
	} else {
		t.Logf("%.1f bytes for a record", per)
	}
}
