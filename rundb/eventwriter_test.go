package rundb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

func openEvents(t testing.TB, dir string, o rundb.EventWriterOptions) *rundb.EventWriter {
	t.Helper()
	w, err := rundb.OpenEvents(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func readEvents(t testing.TB, dir string) []metric.Event {
	t.Helper()
	var all []metric.Event
	r := open(t, dir)
	defer r.Close()
	for e, err := range r.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		c := *e
		c.Data = slices.Clone(e.Data)
		all = append(all, c)
	}
	return all
}

func someEvents() []metric.Event {
	return []metric.Event{
		{Type: "session.started", AtNS: 1, Data: []byte("null")},
		{Sample: "a", Type: "sample.issued", AtNS: 2, Conversation: "c", Turn: 0, HasTurn: true,
			Data: []byte(`["PromptData","x"]`)},
		{Sample: "a", Type: "sample.detail", AtNS: 3, Data: []byte(`{"osl":3}`)},
		{Sample: "a", Type: "sample.complete", AtNS: 4, Data: []byte{}},
		{Sample: "b", Type: "error.client", AtNS: -5, Turn: 2, HasTurn: true, Data: []byte(`["ErrorData","T","m"]`)},
	}
}

// TestEvents writes events into a new recording, into one that is being recorded
// and into one that has ended, and reads them back.
func TestEvents(t *testing.T) {
	check := func(name string, prepare func(dir string) (after func()), created *rundb.Meta) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			after := prepare(dir)
			w := openEvents(t, dir, rundb.EventWriterOptions{Source: "s", Create: created})
			want := someEvents()
			stats := rundb.EventStats{Source: "s", Recorded: 5, Dropped: 1, Late: 2, EncodeErrors: 3, MaxQueue: 4}
			anchor := rundb.Clock{Source: "s", MonoNS: 7, UnixNS: 1_700_000_000_000_000_000}
			if err := errors.Join(w.Anchor(t.Context(), anchor), w.Write(t.Context(), want[:2], rundb.EventStats{}),
				w.Write(t.Context(), want[2:], stats)); err != nil {
				t.Fatal(err)
			}
			if got := readEvents(t, dir); len(got) != len(want) {
				t.Errorf("read while writing: %d of %d events", len(got), len(want))
			}
			if err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			after()
			if d := cmp.Diff(want, readEvents(t, dir), cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
			r := open(t, dir)
			clocks, err1 := r.Clocks(t.Context())
			all, err2 := r.EventStats(t.Context())
			if err := errors.Join(err1, err2); err != nil || !slices.Equal(clocks, []rundb.Clock{anchor}) ||
				!slices.Equal(all, []rundb.EventStats{stats}) || !r.HasEvents() || stats.Lost() != 6 {
				t.Errorf("clocks %v, statistics %v, %v", clocks, all, err)
			}
			if created != nil && r.Meta().EndNS == 0 {
				t.Error("a recording made for events has no end")
			}
			r.Close()
			if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
				t.Errorf("files left: %v", left)
			}
		})
	}
	none := func() {}
	check("new", func(string) func() { return none }, &rundb.Meta{ID: "new"})
	check("ended", func(dir string) func() {
		create(t, dir, 1, rundb.WriterOptions{}).Close(t.Context())
		return none
	}, nil)
	check("recorded into", func(dir string) func() {
		w := create(t, dir, 1, rundb.WriterOptions{})
		tape := tape(0, 3, false)
		if err := w.Record(tape[0]); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := errors.Join(w.Record(tape[1]), w.Close(t.Context())); err != nil {
				t.Errorf("the recording beside: %v", err)
			}
		}
	}, nil)
	check("older than events", func(dir string) func() {
		create(t, dir, 1, rundb.WriterOptions{}).Close(t.Context())
		alter(t, dir, `DROP VIEW mlperf_events; DROP TABLE events; DROP TABLE requests; DROP TABLE clock; DROP TABLE
			event_stats;
			DROP TABLE event_writer; PRAGMA user_version = 2`)
		if len(readEvents(t, dir)) > 0 {
			t.Error("an old recording has events")
		}
		return none
	}, nil)
}

// TestOneEventWriter checks who may write events into a run.
func TestOneEventWriter(t *testing.T) {
	dir := t.TempDir()
	if _, err := rundb.OpenEvents(t.Context(), dir, rundb.EventWriterOptions{}); err == nil ||
		!strings.Contains(err.Error(), "no recording") {
		t.Errorf("events into nothing: %v", err)
	}
	o := rundb.EventWriterOptions{Create: &rundb.Meta{}}
	w := openEvents(t, dir, o)
	if _, err := rundb.OpenEvents(t.Context(), dir, o); !errors.Is(err, rundb.ErrEventWriter) {
		t.Errorf("a second writer: %v", err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A row that a process of this machine left behind when it was killed is
	// void; one of another machine counts until it is old.
	host, _ := os.Hostname()
	alter(t, dir, `INSERT INTO event_writer VALUES (1, '`+host+`', 1, 0, strftime('%s') * 1000000000)`)
	if err := openEvents(t, dir, o).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	alter(t, dir, `INSERT INTO event_writer VALUES (1, 'elsewhere', 1, 0, strftime('%s') * 1000000000)`)
	if _, err := rundb.OpenEvents(t.Context(), dir, o); !errors.Is(err, rundb.ErrEventWriter) ||
		!strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("a writer elsewhere: %v", err)
	}
	alter(t, dir, `UPDATE event_writer SET seen_ns = 1`)
	if err := openEvents(t, dir, o).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestMLPerfTables reads events by the names that MLPerf's tools use, old and new.
func TestMLPerfTables(t *testing.T) {
	dir := t.TempDir()
	w := openEvents(t, dir, rundb.EventWriterOptions{Create: &rundb.Meta{}})
	if err := errors.Join(w.Write(t.Context(), someEvents(), rundb.EventStats{}), w.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	check := func(query, want string) {
		t.Helper()
		if got := ask(t, dir, query); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", query, got, want)
		}
	}
	check(`SELECT group_concat(name) FROM pragma_table_info('events')`,
		"id,sample_uuid,event_type,timestamp_ns,conversation_id,turn,data")
	check(`SELECT group_concat(name) FROM pragma_table_info('mlperf_events')`, "sample_uuid,event_type,timestamp_ns,data")
	check(`SELECT group_concat(event_type || ' ' || timestamp_ns) FROM mlperf_events`,
		"error -5,test_started 1,loadgen_issue_called 2,complete 4")
	check(`SELECT group_concat(name) FROM (SELECT name FROM sqlite_schema WHERE tbl_name = 'events' AND type =
		'index' ORDER BY name)`, "events_sample,events_type_time")
	check(`SELECT typeof(data) FROM events WHERE id = 1`, "blob")
}

func ask(t *testing.T, dir, query string) (got string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, rundb.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(&got); err != nil {
		t.Fatal(query, err)
	}
	return got
}

// TestReplaceRequests makes the table of requests, makes it again, and keeps it
// when that fails.
func TestReplaceRequests(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 0, rundb.WriterOptions{})
	if err := errors.Join(w.Mark(metric.Mark{Name: "warmup", AtNS: 10}),
		w.Mark(metric.Mark{Name: "profiling", AtNS: 20}), w.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	sequence := func(all []rundb.Request, end error) iter.Seq2[*rundb.Request, error] {
		return func(yield func(*rundb.Request, error) bool) {
			for i := range all {
				if !yield(&all[i], nil) {
					return
				}
			}
			if end != nil {
				yield(nil, end)
			}
		}
	}
	full := rundb.Request{ID: "a", IssuedNS: 20, UpstreamNS: 21, ByteNS: 22, FirstNS: 23, LastNS: 24, CompleteNS: 25,
		Status: "ok", Error: "e",
		Input: 0, Output: 2, AfterFirst: 1, TokenSource: "usage", Finish: "stop", HTTPStatus: 200, RequestID: "x",
		Endpoint: "/v1", Model: "m", Block: 0, Conversation: "c", Turn: 3}
	bare := rundb.Request{ID: "b", IssuedNS: 19, Status: "in_flight", Input: -1, Output: -1, AfterFirst: -1,
		Block: -1, Turn: -1}
	if err := rundb.ReplaceRequests(t.Context(), dir, sequence([]rundb.Request{bare, bare, bare}, nil)); err != nil {
		t.Fatal(err)
	}
	many := slices.Repeat([]rundb.Request{full, bare}, 150)
	if err := rundb.ReplaceRequests(t.Context(), dir, sequence(many, nil)); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := rundb.ReplaceRequests(t.Context(), dir, sequence(many[:3], broken)); !errors.Is(err, broken) {
		t.Errorf("a sequence that fails: %v", err)
	}
	var got []rundb.Request
	for q, err := range open(t, dir).Requests(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, *q)
	}
	for at, want := range map[int64]rundb.Boundary{
		full.CompleteNS:     {Ended: 150, InFlight: 150, All: 150},
		full.CompleteNS - 1: {InFlight: 300, All: 150},
		19:                  {InFlight: 150, NextNS: full.IssuedNS, All: 150},
	} {
		if b, err := open(t, dir).RequestsAt(t.Context(), at); err != nil || b != want {
			t.Errorf("requests at %d: %+v, %v, want %+v", at, b, err, want)
		}
	}
	full.Phase, bare.Phase = "profiling", "warmup"
	if d := cmp.Diff(slices.Repeat([]rundb.Request{full, bare}, 150), got); d != "" {
		t.Error(d)
	}
	if n := ask(t, dir, `SELECT count(*) FROM requests WHERE isl IS NULL AND first_ns IS NULL AND block IS NULL
		AND turn IS NULL AND http_status IS NULL`); n != "150" {
		t.Errorf("%s rows with NULL for what is unknown, want 150", n)
	}
}

// TestEventCancel gives up a write whose time is over, and writes it again.
func TestEventCancel(t *testing.T) {
	dir := t.TempDir()
	w := openEvents(t, dir, rundb.EventWriterOptions{Create: &rundb.Meta{}})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Write(gone, someEvents(), rundb.EventStats{}); !errors.Is(err, context.Canceled) {
		t.Errorf("write after its time: %v", err)
	}
	if err := errors.Join(w.Write(t.Context(), someEvents(), rundb.EventStats{}), w.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := readEvents(t, dir); len(got) != len(someEvents()) {
		t.Errorf("%d events", len(got))
	}
}

// TestDiscard: what a writer took back was never there; what others wrote stays.
func TestDiscard(t *testing.T) {
	dir := t.TempDir()
	write := func(n int, end func(*rundb.EventWriter) error) {
		t.Helper()
		w, err := rundb.OpenEvents(t.Context(), dir, rundb.EventWriterOptions{Source: fmt.Sprint(n),
			Create: &rundb.Meta{ID: "d"}})
		if err != nil {
			t.Fatal(err)
		}
		err = w.Anchor(t.Context(), rundb.Clock{Source: "c", UnixNS: int64(n)})
		for range 3 {
			err = errors.Join(err, w.Write(t.Context(), make([]metric.Event, n), rundb.EventStats{Recorded: int64(n)}))
		}
		if err = errors.Join(err, end(w)); err != nil {
			t.Fatal(err)
		}
	}
	closed := func(w *rundb.EventWriter) error { return w.Close(t.Context()) }
	discarded := func(w *rundb.EventWriter) error { return w.Discard(t.Context()) }
	check := func(events, anchors int) {
		t.Helper()
		r, err := rundb.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		n := 0
		for _, err := range r.Events(t.Context()) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		clocks, err1 := r.Clocks(t.Context())
		stats, err2 := r.EventStats(t.Context())
		if n != events || len(clocks) != anchors || len(stats) != anchors || err1 != nil || err2 != nil {
			t.Errorf("%d events, %d clocks, %d statistics, want %d, %d of both (%v, %v)", n, len(clocks), len(stats),
				events, anchors, err1, err2)
		}
	}
	write(40, discarded)
	check(0, 0)
	write(2, closed)
	write(40, discarded)
	check(6, 1)
	write(1, closed)
	check(9, 2)
}
