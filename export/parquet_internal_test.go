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

// TestChunkAllocations is internal because what reads a recording allocates too:
// filling a used row group allocates for its pages, not for its rows.
func TestChunkAllocations(t *testing.T) {
	columns := append(mapColumns("m"), textColumn("t"), wholeColumn("n"), doubleColumn("d"), flagColumn("f"))
	g := newTableGroup(columns, &zstd.Codec{})
	fill := func(rows int) func() {
		return func() {
			g.reset()
			ids := [...]uint64{g.columns[0].text("a"), g.columns[0].text("b")}
			values := [...]uint64{g.columns[1].text("x"), g.columns[1].text("y")}
			for i := range rows {
				g.columns[0].list(ids[:], 1)
				g.columns[1].list(values[:], 1)
				g.columns[2].run(g.columns[2].text("text"), 1)
				g.columns[3].run(uint64(i%100), 1)
				g.columns[4].add(float64(i))
				g.columns[5].run(uint64(i&1), 1)
			}
			if err := g.finish(); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(20_000)()
	if few, many := testing.AllocsPerRun(3, fill(1000)), testing.AllocsPerRun(3, fill(20_000)); many > few+500 {
		// The library's pools are emptied now and then, and at random under the race
		// detector; an allocation per row would be 19,000 more.
		t.Errorf("%v allocations for 1,000 rows, %v for 20,000", few, many)
	}
}
