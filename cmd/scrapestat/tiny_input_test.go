package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestTinyInput gives every command that reads a file some bytes that declare,
// or nest, far more than they are: it is told, and costs no memory.
func TestTinyInput(t *testing.T) {
	tmp := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(tmp, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	check := func(args ...string) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		code, talk := runQuiet(args...)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 24<<20 {
			t.Errorf("%q: %d bytes allocated", args, n)
		}
		if code == exitDone || talk == "" {
			t.Errorf("%q: exit %d: %s", args, code, talk)
		}
	}
	// A trailer of gzip that says 4 GiB - 1, on 3 bytes.
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write([]byte("a 1")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	lying := z.Bytes()
	binary.LittleEndian.PutUint32(lying[len(lying)-4:], 1<<32-1)
	check("import", "openmetrics", put("a.om.gz", string(lying)), "-o", filepath.Join(tmp, "r1"))
	check("import", "aiperf-jsonl", put("a.jsonl.gz", string(lying)), "-o", filepath.Join(tmp, "r2"))
	// A header of gzip with a name that does not end.
	check("import", "openmetrics", put("b.om.gz", "\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03"+strings.Repeat("n", 5000)),
		"-o", filepath.Join(tmp, "r3"))
	// Nesting, and numbers that do not fit.
	deep := strings.Repeat("[", 200_000)
	check("check", put("deep.json", `{"summary":{},"metrics":`+deep), "--assert", "a < 5")
	check("compare", put("deep2.json", `{"metrics":`+strings.Repeat(`{"a":`, 100_000)),
		put("n.json", `{"summary":{},"metrics":{"a":{"series":[{"stats":{"count":1e999}}]}}}`))
	// A database with one page that says it has 2^32 - 1 of 64 KiB.
	db := bytes.Repeat([]byte{0}, 4096)
	copy(db, "SQLite format 3\x00\x00\x01\x01\x01\x00\x40\x20\x20")
	binary.BigEndian.PutUint32(db[28:], 1<<32-1)
	if err := os.Mkdir(filepath.Join(tmp, "huge"), 0o700); err != nil {
		t.Fatal(err)
	}
	put("huge/run.db", string(db))
	check("show", filepath.Join(tmp, "huge"))
	check("requests", "report", put("events.db", string(db)))
}
