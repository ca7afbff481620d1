package parquetwriter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// file writes row groups and the footer of a Parquet file.
type file struct {
	w       io.Writer
	offset  int64
	meta    format.FileMetaData
	sorting []format.SortingColumn
}

const parquetMagic = "PAR1"

// sortedBy has the footer say which columns the rows are sorted by.
func (f *file) sortedBy(columns ...int) {
	for _, c := range columns {
		f.sorting = append(f.sorting, format.SortingColumn{ColumnIdx: int32(c)})
	}
}

// newFile makes a file of these columns, whose footer has the metadata.
func newFile(w io.Writer, columns []Column, createdBy string, metadata map[string]string) *file {
	f := &file{w: w, meta: format.FileMetaData{Version: 1, Schema: schemaOf(columns), CreatedBy: createdBy}}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		f.meta.KeyValueMetadata = append(f.meta.KeyValueMetadata, format.KeyValue{Key: key, Value: metadata[key]})
	}
	for range columns {
		f.meta.ColumnOrders = append(f.meta.ColumnOrders, format.ColumnOrder{Value: &format.TypeDefinedOrder{}})
	}
	return f
}

func (f *file) write(b []byte) error {
	n, err := f.w.Write(b)
	f.offset += int64(n)
	return err
}

// begin writes the mark that the file begins with.
func (f *file) begin() error { return f.write([]byte(parquetMagic)) }

// commit writes a finished row group.
func (f *file) commit(g *Group) error {
	group := format.RowGroup{NumRows: int64(g.Columns[0].Rows), SortingColumns: f.sorting, FileOffset: f.offset,
		Ordinal: int16(len(f.meta.RowGroups))}
	if group.NumRows == 0 {
		return nil
	}
	for _, c := range g.Columns {
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
func (f *file) filters(g *Group, group *format.RowGroup) error {
	for i, c := range g.Columns {
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
func (f *file) end() error {
	b, err := thrift.Marshal(new(thrift.CompactProtocol), &f.meta)
	if err != nil {
		return fmt.Errorf("encode footer: %w", err)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(b)))
	return f.write(append(b, parquetMagic...))
}

// Group is a row group that is being filled.
type Group struct{ Columns []*Chunk }

// NewGroup makes an empty row group.
func NewGroup(columns []Column) *Group {
	g, codec := &Group{}, &zstd.Codec{Level: zstd.SpeedDefault}
	for i := range columns {
		g.Columns = append(g.Columns, &Chunk{column: &columns[i], codec: codec, texts: map[string]uint64{},
			numbers: map[uint64]uint64{}})
	}
	g.Reset()
	return g
}

// Reset empties the row group.
func (g *Group) Reset() {
	for _, c := range g.Columns {
		c.reset()
	}
}

// Finish makes the row group ready to be written. Columns of unequal length would
// make a file that opens and is wrong, so they are an error here.
func (g *Group) Finish() error {
	first := g.Columns[0]
	for _, c := range g.Columns {
		c.finish()
		if c.err != nil {
			return fmt.Errorf("write column %s: %w", c.column.path[0], c.err)
		}
		if c.Rows != first.Rows {
			return fmt.Errorf("write column %s: %d rows where %s has %d", c.column.path[0], c.Rows, first.column.path[0],
				first.Rows)
		}
	}
	return nil
}

// Stream is a Parquet file that is written row group by row group.
type Stream struct{ file *file }

// NewStream begins a file of these columns, whose rows are sorted by those numbered in sorting.
func NewStream(w io.Writer, columns []Column, createdBy string, metadata map[string]string, sorting ...int) (*Stream,
	error) {
	f := newFile(w, columns, createdBy, metadata)
	f.sortedBy(sorting...)
	return &Stream{f}, f.begin()
}

// Add writes a row group.
func (s *Stream) Add(g *Group) error {
	if err := g.Finish(); err != nil {
		return err
	}
	return s.file.commit(g)
}

// Rows returns how many rows were added.
func (s *Stream) Rows() int64 { return s.file.meta.NumRows }

// End writes the footer.
func (s *Stream) End() error { return s.file.end() }
