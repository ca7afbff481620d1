package rundb_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// openFiles lists what this process holds open below dir.
func openFiles(t *testing.T, dir string) (open []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(links) == 0 {
		t.Skip("no /proc/self/fd")
	}
	for _, l := range links {
		if path, err := os.Readlink(l); err == nil && strings.HasPrefix(path, dir) {
			open = append(open, path)
		}
	}
	return open
}

// TestNothingStaysOpen: after Close no connection of SQLite holds the file, also
// after a Create that failed.
func TestNothingStaysOpen(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	check := func(after string) {
		t.Helper()
		if open := openFiles(t, dir); len(open) != 0 {
			t.Errorf("after %s: %q are open", after, open)
		}
	}
	w, err := rundb.Create(dir, rundb.Meta{ID: "leak"}, rundb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(openFiles(t, dir)) == 0 {
		t.Fatal("a recording that is open is not seen to be")
	}
	if _, err := w.AddTarget(metric.Target{Name: "a", URL: "http://a",
		Labels: metric.LabelsFromMap(map[string]string{"k": "v"})}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("a Writer")
	if _, err := rundb.Create(dir, rundb.Meta{ID: "leak"}, rundb.WriterOptions{}); err == nil {
		t.Error("a second recording was created over the first")
	}
	check("a Create that failed")
	e, err := rundb.OpenEvents(t.Context(), dir, rundb.EventWriterOptions{Source: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rundb.OpenEvents(t.Context(), dir, rundb.EventWriterOptions{Source: "test"}); err == nil {
		t.Error("a second writer of events")
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("an EventWriter")
	r, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	check("a Run")
}
