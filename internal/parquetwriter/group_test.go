package parquetwriter_test

import (
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/parquetwriter"
)

// TestUnequalColumns: the
// library writes columns of unequal length without an error, and the file opens.
func TestUnequalColumns(t *testing.T) {
	g := parquetwriter.NewGroup([]parquetwriter.Column{parquetwriter.Double("a"), parquetwriter.Double("b")})
	g.Columns[0].Add(1)
	g.Columns[0].Add(1)
	g.Columns[1].Add(1)
	if err := g.Finish(); err == nil || !strings.Contains(err.Error(), "write column b: 1 rows where a has 2") {
		t.Errorf("columns of 2 and 1 rows: error %v", err)
	}
}

// TestChunkAllocations: filling a used row group allocates for its pages, not for its rows.
func TestChunkAllocations(t *testing.T) {
	columns := append(parquetwriter.Map("m"), parquetwriter.Text("t"), parquetwriter.Whole("n"),
		parquetwriter.Double("d"), parquetwriter.Flag("f"))
	g := parquetwriter.NewGroup(columns)
	fill := func(rows int) func() {
		return func() {
			g.Reset()
			ids := [...]uint64{g.Columns[0].Text("a"), g.Columns[0].Text("b")}
			values := [...]uint64{g.Columns[1].Text("x"), g.Columns[1].Text("y")}
			for i := range rows {
				g.Columns[0].List(ids[:], 1)
				g.Columns[1].List(values[:], 1)
				g.Columns[2].Run(g.Columns[2].Text("text"), 1)
				g.Columns[3].Run(uint64(i%100), 1)
				g.Columns[4].Add(float64(i))
				g.Columns[5].Run(uint64(i&1), 1)
			}
			if err := g.Finish(); err != nil {
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
