package rundb_test

import (
	"context"
	"database/sql"
	"math"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// toVersion1 rewrites a closed recording of one target as programs of schema 1
// wrote it: with a row for each slot.
func toVersion1(t *testing.T, dir string, slots []metric.SampleID) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, rundb.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.Exec(query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	exec(`DROP VIEW named_series; DROP TABLE slots;
		CREATE TABLE slot (id INTEGER PRIMARY KEY,
		target INTEGER GENERATED ALWAYS AS (id >> 32) VIRTUAL, slot INTEGER GENERATED ALWAYS AS (id & 4294967295) VIRTUAL,
		series INTEGER NOT NULL, role INTEGER NOT NULL, bound ANY, text TEXT, integer INTEGER NOT NULL) STRICT;
		PRAGMA user_version = 1`)
	for i, s := range slots {
		var bound, text any
		switch bits := math.Float64bits(s.Bound); {
		case bits == 0 && s.Text == "":
		case math.IsNaN(s.Bound) || s.Bound == 0 && bits != 0:
			bound, text = strconv.FormatUint(bits, 16), s.Text
		case i%2 == 0 && s.Text == strconv.FormatFloat(s.Bound, 'g', -1, 64):
			bound = s.Bound // the shortest spelling may be left out
		default:
			bound, text = s.Bound, s.Text
		}
		exec("INSERT INTO slot (id, series, role, bound, text, integer) VALUES (?, ?, ?, ?, ?, ?)", i, s.Series,
			int(s.Role), bound, text, s.Integer)
	}
}

// TestVersion1 reads a recording of the first schema.
func TestVersion1(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 1, rundb.WriterOptions{})
	want := tape(0, 20, false)
	g := &want[0].DictDelta
	odd := []metric.SampleID{{Integer: true}, {Series: 3, Role: metric.RoleQuantile, Bound: math.Copysign(0, -1),
		Text: "-0"}, {Series: 3, Role: metric.RoleQuantile, Bound: math.NaN(), Text: "nan"},
		{Role: metric.RoleQuantile, Text: "0.0"}}
	g.Slots = append(append([]metric.SampleID{}, g.Slots...), odd...)
	for _, s := range want {
		if err := w.Record(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	toVersion1(t, dir, g.Slots)
	n := 0
	for got, err := range open(t, dir).Snapshots(context.Background(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[n].DictDelta.Slots, got.DictDelta.Slots, cmpopts.EquateNaNs(),
			cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("slots of poll %d (-recorded +read):\n%s", n, diff)
		}
		if diff := cmp.Diff(want[n].Delta, got.Delta, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("poll %d (-recorded +read):\n%s", n, diff)
		}
		n++
	}
	if n != len(want) {
		t.Errorf("read %d polls of %d", n, len(want))
	}
	alter(t, dir, "DELETE FROM slot WHERE id = 7")
	r := open(t, dir)
	for _, err := range r.Snapshots(context.Background(), 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(r.Warnings()) == 0 {
		t.Error("a missing slot goes unsaid")
	}
}

// TestMissingSlots damages the dictionary of a recording.
func TestMissingSlots(t *testing.T) {
	check := func(query string) {
		t.Helper()
		dir := t.TempDir()
		w := create(t, dir, 1, rundb.WriterOptions{})
		for _, s := range tape(0, 3, false) {
			if err := w.Record(s); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		alter(t, dir, query)
		r := open(t, dir)
		polls := 0
		for _, err := range r.Snapshots(context.Background(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			polls++
		}
		if polls > 0 || len(r.Warnings()) == 0 {
			t.Errorf("%s: %d polls were read, warnings %v", query, polls, r.Warnings())
		}
	}
	check("DELETE FROM slots")
	check("UPDATE slots SET data = x'00'")
	check("UPDATE slots SET slots = slots - 1")
	check("UPDATE slots SET slots = 4000000000000000")
	check("UPDATE slots SET id = id + 1")
	check("DELETE FROM series WHERE series = 5")
}
