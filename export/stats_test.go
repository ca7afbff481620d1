package export_test

import (
	"bytes"
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/query"
	"github.com/scrapestat/scrapestat/summary"
)

// TestStats reads stats.parquet back: the columns are those of package query, and a row has what was written.
func TestStats(t *testing.T) {
	r, recs := runOfFake(t, golden(), summary.Options{Slice: 2 * time.Second})
	var b, again bytes.Buffer
	for _, w := range []*bytes.Buffer{&b, &again} {
		if err := export.Stats(context.Background(), w, r, recs, export.Options{Run: "it"}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Error("the same run gives other bytes")
	}
	file, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range file.Schema().Fields() {
		names = append(names, f.Name())
	}
	var want []string
	for _, c := range query.Columns() {
		want = append(want, c.Name)
	}
	if !slices.Equal(names, want) {
		t.Fatalf("columns %v, want %v", names, want)
	}
	rows, err := parquet.Read[any](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	i, slice := 0, 0
	for row := range query.Stats(r, query.Options{Run: "it", Levels: []string{query.LevelFleet, query.LevelSeries}}) {
		got := rows[i].(map[string]any)
		for _, c := range query.Columns() {
			want := c.Of(row)
			if l, ok := want.(metric.Labels); ok {
				want = l.Len()
				got[c.Name] = reflect.ValueOf(got[c.Name]).Len()
			}
			if n, ok := want.(int64); ok && c.Kind == query.Small {
				want = int32(n)
			}
			if !reflect.DeepEqual(got[c.Name], want) {
				t.Fatalf("row %d, %s: %#v, want %#v", i, c.Name, got[c.Name], want)
			}
		}
		if i++; row.Span == query.SpanSlice {
			slice++
		}
	}
	if i != len(rows) || slice == 0 {
		t.Errorf("%d rows, %d of slices, the file has %d", i, slice, len(rows))
	}
}
