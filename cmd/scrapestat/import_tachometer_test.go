package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/testkit"
)

// TestImportTachometer reads a folder, whose numbers are those of a reference, tells what the source rounded, and makes
// no run of what is none of its files.
func TestImportTachometer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"out-1.parquet", "incomplete-1.parquet", "x-2.parquet"} {
		body := []byte("not this one")
		if name == "out-1.parquet" {
			body = testkit.Data(t, "fixtures/integrations/tachometer_big.parquet")
		}
		if err := os.WriteFile(filepath.Join(dir, name), body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(want int, args ...string) string {
		t.Helper()
		var stdout, talk bytes.Buffer
		if code := execute(args, &stdout, &talk); code != want {
			t.Fatalf("%v: exit code %d, want %d: %s", args, code, want, talk.String())
		}
		return talk.String()
	}
	big, bad := filepath.Join(dir, "big"), filepath.Join(dir, "bad")
	said := run(0, "import", "tachometer", dir, "-o", big)
	for _, part := range []string{"--anchor says when", "vllm:generation_tokens_total in steps of up to 2",
		"imported 12 "} {
		if !strings.Contains(said, part) {
			t.Errorf("not said: %q in %s", part, said)
		}
	}
	rows := queryRows(t, big, "-m", "output_tokens", "--stat", "total")
	if len(rows) != 1 || *rows[0].Value != 197_952 || rows[0].Status != "ok" || rows[0].Kind != "counter" {
		t.Errorf("rows %+v", rows)
	}
	said = run(2, "import", "tachometer", filepath.Join(dir, "x-2.parquet"), "-o", bad)
	if _, err := os.Stat(bad); !os.IsNotExist(err) || !strings.Contains(said, "x-2.parquet") {
		t.Errorf("%v: %s", err, said)
	}
	run(2, "import", "tachometer", t.TempDir(), "-o", bad)
}
