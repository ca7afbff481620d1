package export

import (
	"context"
	"io"

	"github.com/scrapestat/scrapestat/summary"
)

// Bounds replaces the bounds of a table in tests: those in force need recordings
// too big for a test before they matter.
type Bounds struct{ Budget, GroupRows, Workers int }

// WriteTable is Parquet or TidyParquet under other bounds.
func WriteTable(ctx context.Context, w io.Writer, layout string, r *summary.Run, recs []Recording, b Bounds) error {
	t := newAIPerfTable(r, recs)
	if layout == LayoutTidy {
		var err error
		if t, err = newTidyTable(ctx, r, recs); err != nil {
			return err
		}
	}
	t.Budget, t.GroupRows, t.Workers = b.Budget, b.GroupRows, b.Workers
	return t.Write(ctx, w)
}
