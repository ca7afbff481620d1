package rundb_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// foreign makes a database with some statements.
func foreign(t testing.TB, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "foreign.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return path
}

func foreignAll(path string) (all []metric.Event, err error) {
	for e, err := range rundb.ForeignEvents(context.Background(), path) {
		if err != nil {
			return all, err
		}
		c := *e
		c.Data = append([]byte(nil), e.Data...)
		all = append(all, c)
	}
	return all, nil
}

const (
	oldEvents = "CREATE TABLE events (sample_uuid TEXT, event_type TEXT, timestamp_ns INTEGER, data BLOB)"
	newEvents = "CREATE TABLE events (id INTEGER PRIMARY KEY, sample_uuid TEXT, event_type TEXT, timestamp_ns BIGINT, " +
		"conversation_id TEXT, turn INTEGER, data BLOB)"
)

func TestForeignEvents(t *testing.T) {
	all, err := foreignAll(foreign(t, oldEvents, `INSERT INTO events VALUES ('a', 'complete', 5, '"x"'), (NULL,
		'error', 3, NULL), ('b', 'complete', 1.5, ''), ('c', 'complete', 'soon', '')`))
	if err != nil || len(all) != 4 {
		t.Fatalf("got %d events, %v", len(all), err)
	}
	if e := all[0]; e.Sample != "a" || e.Type != "complete" || e.AtNS != 5 || string(e.Data) != `"x"` || e.HasTurn {
		t.Errorf("got %+v", e)
	}
	if e := all[1]; e.Sample != "" || e.AtNS != 3 || len(e.Data) != 0 {
		t.Errorf("row with NULL: got %+v", e)
	}
	if all[2].Type != "" || all[3].Type != "" {
		t.Errorf("times that are no integers: got %+v, %+v, want no type", all[2], all[3])
	}
	all, err = foreignAll(foreign(t, newEvents, `INSERT INTO events VALUES (2, 'b', 'sample.issued', 9, 'c', 4,
		'null'), (1, 'a', 'sample.issued', 10, '', NULL, x'')`))
	if err != nil || len(all) != 2 || all[0].Sample != "a" || all[1].Conversation != "c" || all[1].Turn != 4 ||
		!all[1].HasTurn || all[0].HasTurn {
		t.Errorf("got %+v, %v", all, err)
	}
	all, err = foreignAll(foreign(t, oldEvents, "INSERT INTO events VALUES (printf('%.*c', 9000, 'x'), 'complete', 1, "+
		"zeroblob(70000000))"))
	if err != nil || len(all) != 1 || len(all[0].Sample) != 4096 || string(all[0].Data) != "(too long)" {
		t.Errorf("huge row: got %d events, %v", len(all), err)
	}
}

func TestForeignEventsRefuses(t *testing.T) {
	check := func(path, want string) {
		t.Helper()
		if all, err := foreignAll(path); err == nil || !strings.Contains(err.Error(), want) || len(all) != 0 {
			t.Errorf("got %d events and error %v, want %q", len(all), err, want)
		}
	}
	check(foreign(t, "CREATE TABLE other (a)"), "no table events")
	check(foreign(t, "CREATE TABLE t (a)", "CREATE VIEW events AS SELECT a AS sample_uuid FROM t"), "no plain table")
	check(foreign(t, "CREATE VIRTUAL TABLE events USING fts5(sample_uuid, event_type, timestamp_ns, data)"),
		"no plain table")
	check(foreign(t, "CREATE TABLE events (sample_uuid, event_type, data)"), "no column timestamp_ns")
	check(filepath.Join(t.TempDir(), "none.db"), "no such file")
	check(t.TempDir(), "not a file")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	check(text, "not a database")
}

// TestForeignEventsReadOnly checks that reading leaves the file as it is, and can
// stop early.
func TestForeignEventsReadOnly(t *testing.T) {
	path := foreign(t, oldEvents, "INSERT INTO events VALUES ('a', 'complete', 1, ''), ('b', 'complete', 2, '')")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range rundb.ForeignEvents(t.Context(), path) {
		break
	}
	after, err := os.ReadFile(path)
	if err != nil || string(before) != string(after) {
		t.Errorf("the file changed, or %v", err)
	}
}

// FuzzForeignEvents damages a database.
func FuzzForeignEvents(f *testing.F) {
	good, err := os.ReadFile(foreign(f, newEvents, "INSERT INTO events VALUES (1, 'a', 'sample.issued', 9, 'c', 4, "+
		"'null')"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(20, []byte{9, 9})
	f.Add(100, []byte("CREATE VIEW"))
	f.Add(4096, []byte{13, 0, 0, 255})
	f.Fuzz(func(t *testing.T, at int, with []byte) {
		defer fuzzbound.Check(t)()
		data := append([]byte(nil), good...)
		if at < 0 || at >= len(data) {
			return
		}
		copy(data[at:], with)
		path := filepath.Join(t.TempDir(), "f.db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		n := 0
		for range rundb.ForeignEvents(t.Context(), path) {
			if n++; n > 1000 {
				break
			}
		}
	})
}
