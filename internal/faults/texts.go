package faults

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
)

// Texts hands visit all that the files below dir hold: their bytes as they are, and what is compressed in them, where a
// search of the bytes finds nothing: each text of a Parquet file, each value of a recording, and each frame of zstd in
// one. It reads them with what the formats say, not with our own readers, which leave some out.
func Texts(ctx context.Context, dir string, visit func(where string, data []byte)) error {
	dir, err := filepath.Abs(dir) // as the address of a database
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		visit(path, data)
		switch {
		case filepath.Ext(path) == ".parquet":
			err = columnTexts(path, data, visit)
		case filepath.Ext(path) == ".db": // a recording, a history
			err = recordingTexts(ctx, path, visit)
		}
		if err != nil {
			return fmt.Errorf("read texts of %s: %w", path, err)
		}
		return nil
	})
}

// columnTexts visits each value of a Parquet file that is a text, but for repetitions.
func columnTexts(path string, data []byte, visit func(string, []byte)) error {
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	for _, group := range f.RowGroups() {
		for i, chunk := range group.ColumnChunks() {
			if kind := chunk.Type().Kind(); kind != parquet.ByteArray && kind != parquet.FixedLenByteArray {
				continue
			}
			where := fmt.Sprintf("%s, column %v", path, f.Schema().Columns()[i])
			pages := chunk.Pages()
			for err == nil {
				var page parquet.Page
				if page, err = pages.ReadPage(); err == nil {
					err = pageTexts(where, page.Values(), visit)
					parquet.Release(page)
				}
			}
			if closed := pages.Close(); err != io.EOF || closed != nil {
				return errors.Join(err, closed)
			}
			err = nil
		}
	}
	return nil
}

func pageTexts(where string, values parquet.ValueReader, visit func(string, []byte)) error {
	var last []byte
	buf := make([]parquet.Value, 256)
	for {
		n, err := values.ReadValues(buf)
		for _, v := range buf[:n] {
			if text := v.ByteArray(); !v.IsNull() && !bytes.Equal(text, last) {
				visit(where, text)
				last = append(last[:0], text...)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// recordingTexts visits each value of each table of an SQLite file.
func recordingTexts(ctx context.Context, path string, visit func(string, []byte)) error {
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "mode=ro"}).String())
	if err != nil {
		return err
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return errors.Join(err, db.Close())
	}
	defer z.Close()
	names, err := query(ctx, db, "SELECT name FROM sqlite_schema WHERE type = 'table'")
	for _, name := range names {
		values, readErr := query(ctx, db, fmt.Sprintf("SELECT * FROM %q", name))
		for _, v := range values {
			data, ok := v.([]byte)
			if !ok {
				data = fmt.Append(nil, v)
			}
			where := fmt.Sprintf("%s, table %s", path, name)
			visit(where, data)
			frames(z, data, func(inside []byte) { visit(where+", compressed", inside) })
		}
		err = errors.Join(err, readErr)
	}
	return errors.Join(err, db.Close())
}

// query returns the values of all columns of all rows.
func query(ctx context.Context, db *sql.DB, text string) (out []any, err error) {
	rows, err := db.QueryContext(ctx, text)
	if err != nil {
		return nil, err
	}
	columns, err := rows.Columns()
	for err == nil && rows.Next() {
		row, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		err = rows.Scan(into...)
		out = append(out, row...)
	}
	return out, errors.Join(err, rows.Err(), rows.Close())
}

// frames visits what each frame of zstd in data holds, as far as it can be read.
func frames(z *zstd.Decoder, data []byte, visit func([]byte)) {
	magic := []byte{0x28, 0xb5, 0x2f, 0xfd}
	for at := bytes.Index(data, magic); at >= 0; {
		inside, _ := z.DecodeAll(data[at:], nil) // what follows a frame is none
		visit(inside)
		next := bytes.Index(data[at+1:], magic)
		if next < 0 {
			return
		}
		at += 1 + next
	}
}
