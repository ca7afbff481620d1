package parquetwriter

import (
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// Rows writes rows as a Parquet file of one layout: the fields of T as their parquet tags say. The same rows
// give the same bytes.
func Rows[T any](w io.Writer, layout string, rows iter.Seq2[T, error]) error {
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

// ReadRows reads a Parquet file of at most max bytes whole. The file may come from anywhere: what is no such file is an
// error, whatever the library makes of it.
func ReadRows[T any](path string, max int64) (rows []T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("read %s: damaged: %v", path, r)
		}
	}()
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > max {
		return nil, fmt.Errorf("read %s: %d bytes, more than %d", path, info.Size(), max)
	}
	if rows, err = parquet.ReadFile[T](path); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return rows, nil
}

// CountRows returns how many rows the footer of a file has.
func CountRows(path string) (n int64, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("read %s: damaged: %v", path, r)
		}
	}()
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	return file.NumRows(), nil
}
