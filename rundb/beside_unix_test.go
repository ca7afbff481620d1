//go:build unix

package rundb_test

import (
	"errors"
	"fmt"
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
		// A recording of this schema, and one without checksums, which repair copies.
		for _, from := range []string{dir, "../testdata/runs/vllm-bench-rate4"} {
			here := t.TempDir()
			b, err := os.ReadFile(filepath.Join(from, rundb.FileName))
			if err := errors.Join(err, os.WriteFile(filepath.Join(here, rundb.FileName), b, 0o600),
				os.Truncate(filepath.Join(here, rundb.FileName), 1<<40)); err != nil {
				t.Skip("no such files here: ", err)
			}
			to := t.TempDir()
			done, err := rundb.Repair(t.Context(), here, to, nil)
			if err != nil || !strings.Contains(fmt.Sprint(done.Damage), fmt.Sprintf("behind page %d,", len(b)/4096)) {
				t.Errorf("repair of %s, with nothing behind it: %v, %+v", from, err, done)
				continue
			}
			if info, err := os.Stat(filepath.Join(to, rundb.FileName)); err != nil || info.Size() > int64(2*len(b)) {
				t.Errorf("repair of %s: %v, %v", from, info, err)
			}
		}
	})
}
