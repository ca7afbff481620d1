package rundb_test

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/scrapestat/scrapestat/rundb"
)

// TestHardening has what the recording outlives, by the numbers that package faults
// lists.
func TestHardening(t *testing.T) {
	t.Run("K11", lockRace)
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
