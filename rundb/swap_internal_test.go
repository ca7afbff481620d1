package rundb

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// swapping is a context that does something when it is first asked, which is while a database is opened.
type swapping struct {
	context.Context
	once *sync.Once
	do   func()
}

func (s swapping) Done() <-chan struct{} {
	s.once.Do(s.do)
	return s.Context.Done()
}

// TestSwapWhileOpening: a recording that another one replaces between looking at it and opening it is not written: its
// log may be that of the other one.
func TestSwapWhileOpening(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	for _, dir := range dirs {
		w, err := Create(dir, Meta{ID: dir, OriginNS: 1}, WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, swap := range []bool{false, true} {
		ctx := swapping{t.Context(), &sync.Once{}, func() {
			if !swap {
				return
			}
			if err := os.Rename(filepath.Join(dirs[1], FileName), filepath.Join(dirs[0], FileName)); err != nil {
				t.Error(err)
			}
		}}
		db, err := openExisting(ctx, dirs[0], "rw")
		if swap != (err != nil && strings.Contains(err.Error(), "removed or replaced while it was opened")) {
			t.Errorf("swapped %v: %v", swap, err)
		}
		if err == nil {
			db.Close()
		}
	}
}
