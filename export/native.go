package export

import (
	"github.com/scrapestat/scrapestat/internal/parquetwriter"
	"github.com/scrapestat/scrapestat/normalize"
)

// nativeRows appends the buckets of the present sample of a native histogram,
// what is at or below each bound of what was gained, and returns their number.
func (f *aiperfFiller) nativeRows(out *parquetwriter.Group) int {
	l, total := f.layout, f.native.Total()
	le, bucket := out.Columns[l.le], out.Columns[l.bucket]
	edges := total.Spans.Edges()
	for i, n := range total.Spans.Below(edges) {
		le.Run(le.Text(boundText(&normalize.Bucket{Upper: edges[i]})), 1)
		bucket.Add(n)
	}
	all := 0.0
	for i := range total.Spans {
		all += total.Spans[i].Count
	}
	le.Run(le.Text("+Inf"), 1)
	bucket.Add(all)
	n := len(edges) + 1
	out.Columns[l.sum].Repeat(max(total.Sum, 0), n)
	out.Columns[l.count].Repeat(total.Count, n)
	return n
}
