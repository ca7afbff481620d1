//go:build unix

package rundb

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// TestMadeAgainAlone removes a recording, with its directory or without, while somebody is opening it: SQLite would
// take the log of the copy for that of the file it has open, so that the copy has to wait. It is within the package as
// nobody else can be stopped while opening.
func TestMadeAgainAlone(t *testing.T) {
	for _, whole := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "run")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		faults := make(chan error, 100)
		w, err := Create(dir, Meta{ID: "r", OriginNS: 1e18, Interval: time.Second}, WriterOptions{Retry: true,
			CommitEvery: time.Millisecond, OnFault: func(err error) { faults <- err }})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Mark(metric.Mark{Name: "a"}), w.Flush(t.Context())); err != nil {
			t.Fatal(err)
		}
		opener, err := holdDir(dir, false)
		if err != nil {
			t.Fatal(err)
		}
		gone := dir
		if !whole {
			gone = filepath.Join(dir, FileName)
		}
		if err := errors.Join(os.RemoveAll(gone), w.Mark(metric.Mark{Name: "b"})); err != nil {
			t.Fatal(err)
		}
		if err := <-faults; err == nil || !strings.Contains(err.Error(), "is being opened") {
			t.Errorf("while it is opened: %v", err)
		}
		if _, err := os.Stat(filepath.Join(dir, FileName)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it was made again while it was opened: %v", err)
		}
		opener.release()
		if err := <-faults; err != nil {
			t.Errorf("afterwards: %v", err)
		}
		again, err := holdDir(dir, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := AddMark(dir, metric.Mark{Name: "c"}); err == nil || !strings.Contains(err.Error(), "made again") {
			t.Errorf("opened while it is made again: %v", err)
		}
		again.release()
		if err := errors.Join(AddMark(dir, metric.Mark{Name: "c"}), w.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
}
