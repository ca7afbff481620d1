package export

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// tableFile writes row groups and the footer of a Parquet file. The library
// knows the encodings and the footer; its own way from rows to pages, which looks
// up each value of a constant column, takes ten times as long.
type tableFile struct {
	w       io.Writer
	offset  int64
	meta    format.FileMetaData
	sorting []format.SortingColumn
}

const parquetMagic = "PAR1"

func newTableFile(w io.Writer, columns []tableColumn, createdBy string, metadata map[string]string) *tableFile {
	f := &tableFile{w: w, meta: format.FileMetaData{Version: 1, Schema: schemaOf(columns), CreatedBy: createdBy}}
	for _, key := range sortedKeys(metadata) {
		f.meta.KeyValueMetadata = append(f.meta.KeyValueMetadata, format.KeyValue{Key: key, Value: metadata[key]})
	}
	for range columns {
		f.meta.ColumnOrders = append(f.meta.ColumnOrders, format.ColumnOrder{Value: &format.TypeDefinedOrder{}})
	}
	return f
}

func (f *tableFile) write(b []byte) error {
	n, err := f.w.Write(b)
	f.offset += int64(n)
	return err
}

func (f *tableFile) begin() error { return f.write([]byte(parquetMagic)) }

// commit writes a finished row group.
func (f *tableFile) commit(g *tableGroup) error {
	group := format.RowGroup{NumRows: int64(g.columns[0].rows), SortingColumns: f.sorting, FileOffset: f.offset, Ordinal: int16(len(f.meta.RowGroups))}
	if group.NumRows == 0 {
		return nil
	}
	for _, c := range g.columns {
		meta := c.meta
		if meta.DataPageOffset > 0 {
			meta.DictionaryPageOffset = f.offset
		}
		meta.DataPageOffset += f.offset
		if err := errors.Join(f.write(c.dict), f.write(c.pages)); err != nil {
			return fmt.Errorf("write column %s: %w", c.column.path[0], err)
		}
		group.TotalByteSize += meta.TotalUncompressedSize
		group.TotalCompressedSize += meta.TotalCompressedSize
		group.Columns = append(group.Columns, format.ColumnChunk{MetaData: meta})
	}
	if err := f.filters(g, &group); err != nil {
		return err
	}
	f.meta.NumRows += group.NumRows
	f.meta.RowGroups = append(f.meta.RowGroups, group)
	return nil
}

// filters writes the Bloom filters of a row group.
func (f *tableFile) filters(g *tableGroup, group *format.RowGroup) error {
	for i, c := range g.columns {
		b, err := c.filter()
		if err == nil && len(b) > 0 {
			group.Columns[i].MetaData.BloomFilterOffset, group.Columns[i].MetaData.BloomFilterLength = f.offset, int32(len(b))
			err = f.write(b)
		}
		if err != nil {
			return fmt.Errorf("write Bloom filter of %s: %w", c.column.path[0], err)
		}
	}
	return nil
}

// end writes the footer.
func (f *tableFile) end() error {
	b, err := thrift.Marshal(new(thrift.CompactProtocol), &f.meta)
	if err != nil {
		return fmt.Errorf("encode footer: %w", err)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(b)))
	return f.write(append(b, parquetMagic...))
}

// tableGroup is a row group that is being filled.
type tableGroup struct{ columns []*chunk }

func newTableGroup(columns []tableColumn, codec *zstd.Codec) *tableGroup {
	g := &tableGroup{}
	for i := range columns {
		g.columns = append(g.columns, &chunk{column: &columns[i], codec: codec, texts: map[string]uint64{}, numbers: map[uint64]uint64{}})
	}
	g.reset()
	return g
}

func (g *tableGroup) reset() {
	for _, c := range g.columns {
		c.reset()
	}
}

// finish makes the row group ready to be written. Columns of unequal length would
// make a file that opens and is wrong, so they are an error here.
func (g *tableGroup) finish() error {
	first := g.columns[0]
	for _, c := range g.columns {
		c.finish()
		if c.err != nil {
			return fmt.Errorf("write column %s: %w", c.column.path[0], c.err)
		}
		if c.rows != first.rows {
			return fmt.Errorf("write column %s: %d rows where %s has %d", c.column.path[0], c.rows, first.column.path[0], first.rows)
		}
	}
	return nil
}
