package collect_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// TestHardeningMarks has a finding by the number that package faults lists: a flood of
// marks is cut, counted and told, and the run can still be ended by one.
func TestHardeningMarks(t *testing.T) {
	t.Run("K20", func(t *testing.T) {
		dir, e := filepath.Join(t.TempDir(), "run"), &told{}
		o := options(t)
		o.Events = e
		s := open(t, dir, o)
		taken, refused := 0, 0
		go func() {
			<-s.Ready()
			for i := range 1000 {
				switch err := s.Mark(fmt.Sprint("p", i)); {
				case err == nil:
					taken++
				case errors.Is(err, rundb.ErrTooManyMarks):
					refused++
				default:
					t.Error(err)
				}
			}
			if err := s.Mark(metric.MarkEnd); err != nil {
				t.Errorf("the mark that ends the run: %v", err)
				s.Stop()
			}
		}()
		if _, err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if refused == 0 || taken+refused != 1000 || !slices.Contains(e.words, "warning marks_refused") {
			t.Errorf("%d marks taken, %d refused; told %q", taken, refused, e.words)
		}
		r, err := rundb.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if n := len(r.Marks()); n != taken+2 { // profiling and end
			t.Errorf("%d marks are recorded, want %d and two of the run", n, taken)
		}
	})
}
