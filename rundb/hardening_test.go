package rundb_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// TestHardening has what the recording outlives, by the numbers that package faults
// lists.
func TestHardening(t *testing.T) {
	t.Run("K1", func(t *testing.T) {
		t.Run("write errors", outlivesWriteErrors)
		t.Run("no room", dropsTheOldest)
		t.Run("shared", sharesPending)
		t.Run("directory removed", makesDirectoryAgain)
		t.Run("lock removed", keepsLock)
		t.Run("no end", givesUp)
	})
	t.Run("K8", anyDamage)
	t.Run("K11", lockRace)
	t.Run("K19", strangeFiles)
	t.Run("K20", manyMarks)
}

// manyMarks has other processes set more marks than are taken.
func manyMarks(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 1, rundb.WriterOptions{})
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	const second = int64(1e9)
	check := func(name string, atNS int64, taken bool) {
		t.Helper()
		err := rundb.AddMark(dir, metric.Mark{Name: name, AtNS: atNS})
		if taken && err != nil || !taken && !errors.Is(err, rundb.ErrTooManyMarks) {
			t.Errorf("mark %s at %d: %v, want taken %v", name, atNS, err, taken)
		}
	}
	for i := range int64(rundb.MaxMarksPerSecond) {
		check("a", 100*second+i, true)
	}
	check("b", 101*second-1, false)
	check("b", 101*second+rundb.MaxMarksPerSecond, true)
	for range rundb.MaxMarks {
		if err := w.Mark(metric.Mark{Name: "c", AtNS: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("d", 200*second, false)
	check(metric.MarkEnd, 200*second, true)
	check(metric.MarkEnd, 300*second, false)
}

// lockRace has many take the lock of one directory and drop it, over and over: never
// do two have it.
func lockRace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	var holders, taken atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 400 {
				d, err := rundb.MakeDir(dir, []string{})
				if errors.Is(err, rundb.ErrDirInUse) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d have the lock", n)
				}
				taken.Add(1)
				err = d.Begun()
				holders.Add(-1)
				if err = errors.Join(err, d.Close()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if taken.Load() < 100 {
		t.Errorf("the lock was taken %d times only", taken.Load())
	}
}

// strangeFiles opens recordings of strangers: what their schema would have SQLite do is refused by the name of the
// object, and so is a table that would fill the memory.
func strangeFiles(t *testing.T) {
	const endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
	const many = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) "
	for _, c := range []struct{ name, change, want string }{
		{"view", "DROP TABLE meta; CREATE VIEW meta (key, value, crc) AS " + endless + "'k' || i, 'v', 0 FROM n",
			"meta is a view and no table"},
		{"view of another case", "DROP TABLE mark; CREATE VIEW MARK (at_ns, name, own, crc) AS " + endless +
			"i, 'v', 0, 0 FROM n", "MARK is a view and no table"},
		{"view of old runs", "CREATE VIEW slot AS SELECT 1", "slot is a view and no table"},
		{"generated", "DROP TABLE warning; CREATE TABLE warning (id INTEGER PRIMARY KEY, text TEXT, crc INTEGER, " +
			"code TEXT GENERATED ALWAYS AS (hex(zeroblob(450000000))) VIRTUAL)", "column code of table warning is generated"},
		{"stored", "CREATE TABLE other (a, b GENERATED ALWAYS AS (a) STORED)", "column b of table other is generated"},
		{"trigger", "CREATE TRIGGER t AFTER INSERT ON mark BEGIN DELETE FROM block; END", "it has a trigger, t"},
		{"virtual", "DROP TABLE life; CREATE VIRTUAL TABLE life USING fts5(target, at_ns)", "life is a virtual table"},
		{"marks", many + "INSERT INTO mark SELECT i, i, 'm', 0, '', 0 FROM n", "table mark has more rows"},
		{"targets", "PRAGMA user_version = 3; ALTER TABLE target DROP COLUMN crc; ALTER TABLE meta DROP COLUMN crc; " + many +
			"INSERT INTO target SELECT i, '', 'http://a', '' FROM n", "table target has more rows"},
	} {
		dir, _ := recorded(t)
		alter(t, dir, c.change)
		r, err := rundb.Open(dir)
		if err == nil {
			r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err := rundb.AddMark(dir, metric.Mark{Name: "x"}); c.name == "trigger" && err == nil {
			t.Error("a mark was set where a trigger waits for it")
		}
	}
}
