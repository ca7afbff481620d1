package export

import (
	"fmt"
	"io"
	"iter"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// RowsParquet writes rows as a Parquet file of one layout: the fields of T as their parquet tags say. The same rows
// give the same bytes.
func RowsParquet[T any](w io.Writer, layout string, rows iter.Seq2[T, error]) error {
	file := parquet.NewGenericWriter[T](w, parquet.Compression(&zstd.Codec{Level: zstd.SpeedDefault}),
		parquet.CreatedBy("scrapestat", "", ""), parquet.KeyValueMetadata("scrapestat.layout", layout))
	batch := make([]T, 0, 1000)
	flush := func() error {
		_, err := file.Write(batch)
		batch = batch[:0]
		return err
	}
	for row, err := range rows {
		if err != nil {
			return err
		}
		if batch = append(batch, row); len(batch) == cap(batch) {
			if err := flush(); err != nil {
				return fmt.Errorf("write %s Parquet: %w", layout, err)
			}
		}
	}
	if err := flush(); err != nil {
		return fmt.Errorf("write %s Parquet: %w", layout, err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write %s Parquet: %w", layout, err)
	}
	return nil
}
