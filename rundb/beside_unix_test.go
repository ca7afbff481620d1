//go:build unix

package rundb_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/rundb"
)

// TestHardeningBeside has what the directory of a stranger may hold instead of the files of a recording, by the number
// that package faults lists: a FIFO holds nobody up, and a log of nothing, which takes no room, is told.
func TestHardeningBeside(t *testing.T) {
	t.Run("K19", func(t *testing.T) {
		for _, name := range []string{rundb.ManifestName, "run.db", "run.db-wal", "run.db-shm", "run.db-journal"} {
			dir := t.TempDir()
			if err := create(t, dir, 1, rundb.WriterOptions{}).Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, name)
			_ = os.Remove(path) // which most are not there
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Skip("no FIFOs here: ", err)
			}
			done := make(chan error, 1)
			go func() {
				_, err := rundb.ReadManifest(dir)
				if name != rundb.ManifestName {
					if err = readAll(t, dir); name != "run.db-shm" && name != "run.db-journal" { // which repair does not read
						_, err = rundb.Repair(t.Context(), dir, t.TempDir(), nil)
					}
				}
				done <- err
			}()
			select {
			case err := <-done:
				if err == nil || !strings.Contains(err.Error(), "not a file") {
					t.Errorf("%s: %v", name, err)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s: whoever reads the recording hangs", name)
			}
		}
		dir := t.TempDir()
		w := create(t, dir, 1, rundb.WriterOptions{})
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "run.db-wal"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, "run.db-wal"), 1<<40); err != nil { // bytes, which take hours to read
			t.Skip("no such files here: ", err)
		}
		r, err := rundb.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if w := r.Warnings(); len(w) != 1 || w[0].Code != "recording_damaged" {
			t.Errorf("a log of nothing: %v", w)
		}
	})
}
