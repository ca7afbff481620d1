package export

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/scrapestat/scrapestat/summary"
)

// Bounds replaces the bounds of a table in tests: those in force need recordings
// too big for a test before they matter.
type Bounds struct{ Budget, GroupRows, Workers int }

// WriteTable is Parquet or TidyParquet under other bounds.
func WriteTable(ctx context.Context, w io.Writer, layout string, r *summary.Run, recs []Recording, b Bounds) error {
	t := newAIPerfTable(r, recs)
	if layout == LayoutTidy {
		t = newTidyTable(r, recs)
	}
	t.budget, t.groupRows, t.workers = b.Budget, b.GroupRows, b.Workers
	return t.write(ctx, w)
}

// TestUnequalColumns is internal because no recording can bring it about: the
// library writes columns of unequal length without an error, and the file opens.
func TestUnequalColumns(t *testing.T) {
	g := newTableGroup([]tableColumn{doubleColumn("a"), doubleColumn("b")}, &zstd.Codec{})
	g.columns[0].add(1)
	g.columns[0].add(1)
	g.columns[1].add(1)
	if err := g.finish(); err == nil || !strings.Contains(err.Error(), "write column b: 1 rows where a has 2") {
		t.Errorf("columns of 2 and 1 rows: error %v", err)
	}
}
