package rundb_test

import (
	"database/sql"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/rundb"
)

// TestHalfDone has a closed recording whose next writer, of a mark or of requests,
// was killed in the middle: some pages are the new ones, and the journal has the old
// ones. What is read is what was there before.
func TestHalfDone(t *testing.T) {
	from, want := recorded(t)
	db, err := sql.Open("sqlite", filepath.Join(from, rundb.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // the pragma is of a connection
	// Without room for the pages it changes, SQLite writes them before the end.
	for _, statement := range []string{"PRAGMA cache_size = 1", "BEGIN IMMEDIATE", "DELETE FROM block",
		"UPDATE target SET name = 'half done'", "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i " +
			"< 20000) INSERT INTO mark (id, at_ns, name, own, crc) SELECT i, i, " +
			"'half done', 0, 0 FROM n"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	copied := func() string { return copyPair(t, from) }
	r := open(t, copied())
	same(t, want, read(t, r, 0))
	if len(r.Marks()) != 0 || r.Targets()[0].Name == "half done" || len(r.Warnings()) != 0 {
		t.Errorf("%d marks, target %q, %v", len(r.Marks()), r.Targets()[0].Name, r.Warnings())
	}

	// A journal of a stranger may name a file that SQLite then removes.
	dir, victim := copied(), filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("keep me"), 0o600); err != nil {
		t.Fatal(err)
	}
	nameSuper(t, filepath.Join(dir, rundb.FileName+"-journal"), victim)
	if r, err := rundb.Open(dir); err == nil {
		t.Error("a journal that names another was followed")
		_ = r.Close() // it has failed already
	} else if !strings.Contains(err.Error(), "names another journal") {
		t.Error(err)
	}
	if _, err := os.Stat(victim); err != nil {
		t.Error(err)
	}
}

// nameSuper appends a name to a journal, as SQLite does in a transaction over
// several files.
func nameSuper(t *testing.T, journal, name string) {
	t.Helper()
	f, err := os.OpenFile(journal, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum := uint32(0)
	for _, c := range []byte(name) {
		sum += uint32(c)
	}
	tail := append([]byte{0, 0, 0, 0}, name...) // in place of a page number
	tail = binary.BigEndian.AppendUint32(tail, uint32(len(name)))
	tail = binary.BigEndian.AppendUint32(tail, sum)
	tail = append(tail, 0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7)
	if _, err := f.Write(tail); err != nil {
		t.Fatal(err)
	}
}

// copyPair copies a recording and its journal as a kill would have left them.
func copyPair(t *testing.T, from string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{rundb.FileName, rundb.FileName + "-journal"} {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
