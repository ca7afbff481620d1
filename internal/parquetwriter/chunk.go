package parquetwriter

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strings"

	"github.com/parquet-go/parquet-go/bloom"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/bytestreamsplit"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// The bounds of a page and of a dictionary of numbers. A page of a column that
// hardly changes has many more rows than entries.
const (
	pageEntries = 64 << 10
	dictEntries = 64 << 10
)

// Chunk is a column of a row group while it is filled. It turns rows into pages,
// which are compressed at once, so that it holds one page of values and little more.
type Chunk struct {
	column *Column
	codec  *zstd.Codec

	Rows    int // of the chunk
	entries int // of the chunk: rows, and in a list or map what they hold, at least one each
	nulls   int // of the chunk
	err     error

	// The page that is being filled.
	paged      int // entries in pages before
	pagedNulls int
	defined    []run // levels: 1 for a value, 0 for a null
	repeated   []run // levels in a list or map: 0 where a row begins
	runs       []run // of texts their identities, of others their bits
	doubles    []float64

	// The dictionary. Numbers give it up when it becomes too big.
	plain           bool
	encodings       uint32            // set of bits
	texts           map[string]uint64 // identities
	numbers         map[uint64]uint64
	dict            []byte // entries, when finished the page
	least, greatest string // of texts
	low, high       int64  // of integers
	hashes          []uint64

	pages        []byte // finished
	meta         format.ColumnMetaData
	uncompressed int    // size of the finished pages with their headers
	raw, packed  []byte // scratch
}

// reset begins a chunk.
func (c *Chunk) reset() {
	clear(c.texts)
	clear(c.numbers)
	*c = Chunk{column: c.column, codec: c.codec, plain: c.column.plain, defined: c.defined[:0],
		repeated: c.repeated[:0], runs: c.runs[:0],
		doubles: c.doubles[:0],
		texts:   c.texts, numbers: c.numbers, dict: c.dict[:0], low: math.MaxInt64, high: math.MinInt64, hashes: c.hashes[:0],
		pages: c.pages[:0], raw: c.raw[:0], packed: c.packed[:0]}
}

// Text returns the identity of a text for run and labels.
func (c *Chunk) Text(s string) uint64 {
	id, ok := c.texts[s]
	if ok {
		return id
	}
	s = ValidText(s)
	if id, ok = c.texts[s]; ok {
		return id
	}
	id = uint64(len(c.texts))
	c.texts[s] = id
	c.dict = append(binary.LittleEndian.AppendUint32(c.dict, uint32(len(s))), s...)
	if id == 0 {
		c.least, c.greatest = s, s
	}
	c.least, c.greatest = min(c.least, s), max(c.greatest, s)
	if c.column.Bloom {
		c.hashes = append(c.hashes, bloom.XXH64{}.Sum64([]byte(s)))
	}
	return id
}

// Run appends n rows with a value: the identity of a text, the bits of a number.
func (c *Chunk) Run(bits uint64, n int) {
	if n == 0 {
		return
	}
	c.runs = appendRun(c.runs, bits, n)
	c.level(1, n)
	if len(c.runs) >= pageEntries {
		c.endPage()
	}
}

// Add appends a row to a column that is split.
func (c *Chunk) Add(v float64) {
	c.doubles = append(c.doubles, v)
	c.level(1, 1)
	if len(c.doubles) >= pageEntries {
		c.endPage()
	}
}

// Repeat appends n rows with a value to a column that is split.
func (c *Chunk) Repeat(v float64, n int) {
	for range n {
		c.doubles = append(c.doubles, v)
	}
	c.level(1, n)
	if len(c.doubles) >= pageEntries/4 {
		c.endPage()
	}
}

// Null appends n rows without a value.
func (c *Chunk) Null(n int) {
	if n > 0 {
		c.nulls += n
		c.level(0, n)
	}
}

func (c *Chunk) level(level uint64, n int) {
	c.defined = appendRun(c.defined, level, n)
	c.Rows += n
	c.entries += n
}

// List appends n rows of a list or a map, each with these values: identities of texts, bits of numbers.
func (c *Chunk) List(ids []uint64, n int) {
	if len(ids) == 0 {
		c.repeated = appendRun(c.repeated, 0, n)
		c.Null(n)
		return
	}
	for range n {
		for i, id := range ids {
			c.runs = appendRun(c.runs, id, 1)
			c.repeated = appendRun(c.repeated, uint64(min(i, 1)), 1)
		}
		c.defined = appendRun(c.defined, 1, len(ids))
		c.entries += len(ids)
		c.Rows++
		if len(c.runs) >= pageEntries || len(c.repeated) >= pageEntries {
			c.endPage()
		}
	}
}

// endPage finishes the page.
func (c *Chunk) endPage() {
	n := c.entries - c.paged
	if n == 0 || c.err != nil {
		return
	}
	c.raw = c.raw[:0]
	if c.column.repeats() {
		c.raw = appendLevels(c.raw, c.repeated)
	}
	c.raw = appendLevels(c.raw, c.defined)
	encoding := c.appendValues()
	c.encodings |= 1 << encoding
	c.pages = c.appendPage(c.pages, &format.PageHeader{Type: format.DataPage,
		DataPageHeader: thrift.New(format.DataPageHeader{
			NumValues: int32(n), Encoding: encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
			Statistics: format.Statistics{NullCount: int64(c.nulls - c.pagedNulls)}})})
	c.paged, c.pagedNulls = c.entries, c.nulls
	c.defined, c.repeated, c.runs, c.doubles = c.defined[:0], c.repeated[:0], c.runs[:0], c.doubles[:0]
}

func appendLevels(dst []byte, levels []run) []byte {
	at := len(dst)
	dst = appendHybrid(append(dst, 0, 0, 0, 0), levels, 1)
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// appendValues appends the values of the page to raw and says how.
func (c *Chunk) appendValues() format.Encoding {
	switch {
	case c.column.split:
		c.appendDoubles()
		return format.ByteStreamSplit
	case c.column.physical == format.Boolean:
		c.appendBits()
		return format.Plain
	case c.column.physical == format.ByteArray:
		c.appendIndexes(len(c.texts))
		return format.RLEDictionary
	}
	if c.column.Bounds {
		for _, r := range c.runs {
			c.low, c.high = min(c.low, int64(r.bits)), max(c.high, int64(r.bits))
		}
	}
	if c.look() {
		c.appendIndexes(len(c.numbers))
		return format.RLEDictionary
	}
	return c.appendPlain()
}

// look replaces the numbers of the page by their places in the dictionary. When
// they do not fit it changes nothing and the chunk goes on without a dictionary.
func (c *Chunk) look() bool {
	known := len(c.numbers)
	for i := 0; i < len(c.runs) && !c.plain; i++ {
		bits := c.runs[i].bits
		if _, ok := c.numbers[bits]; !ok {
			c.numbers[bits] = uint64(len(c.numbers))
			c.dict = binary.LittleEndian.AppendUint64(c.dict, bits)[:len(c.dict)+c.column.width()]
			c.plain = len(c.numbers) > dictEntries && c.column.physical != format.Int32
		}
	}
	if c.plain {
		for ; len(c.dict) > 8*known; c.dict = c.dict[:len(c.dict)-8] {
			delete(c.numbers, binary.LittleEndian.Uint64(c.dict[len(c.dict)-8:]))
		}
		return false
	}
	for i := range c.runs {
		c.runs[i].bits = c.numbers[c.runs[i].bits]
	}
	return true
}

func (c *Chunk) appendIndexes(n int) {
	width := max(1, bits.Len(uint(max(0, n-1))))
	c.raw = appendHybrid(append(c.raw, byte(width)), c.runs, width)
}

func (c *Chunk) appendDoubles() {
	var b []byte
	b, c.err = new(bytestreamsplit.Encoding).EncodeDouble(c.packed[:0], c.doubles)
	c.raw, c.packed = append(c.raw, b...), b
}

// appendPlain writes numbers out, as a column does whose dictionary grew too big.
func (c *Chunk) appendPlain() format.Encoding {
	if c.column.physical == format.Double {
		for _, r := range c.runs {
			for range r.n {
				c.doubles = append(c.doubles, math.Float64frombits(r.bits))
			}
		}
		c.appendDoubles()
		return format.ByteStreamSplit
	}
	var values []int64
	for _, r := range c.runs {
		for range r.n {
			values = append(values, int64(r.bits))
		}
	}
	var b []byte
	b, c.err = new(delta.BinaryPackedEncoding).EncodeInt64(nil, values)
	c.raw = append(c.raw, b...)
	return format.DeltaBinaryPacked
}

func (c *Chunk) appendBits() {
	n := 0
	for _, r := range c.runs {
		for range r.n {
			if n&7 == 0 {
				c.raw = append(c.raw, 0)
			}
			c.raw[len(c.raw)-1] |= byte(r.bits) << (n & 7)
			n++
		}
	}
}

// appendPage appends raw as a page.
func (c *Chunk) appendPage(dst []byte, h *format.PageHeader) []byte {
	if c.err != nil {
		return dst
	}
	if c.packed, c.err = c.codec.Encode(c.packed[:0], c.raw); c.err != nil {
		return dst
	}
	h.UncompressedPageSize, h.CompressedPageSize = int32(len(c.raw)), int32(len(c.packed))
	var head []byte
	if head, c.err = thrift.Marshal(new(thrift.CompactProtocol), h); c.err != nil {
		return dst
	}
	c.uncompressed += len(head) + len(c.raw)
	return append(append(dst, head...), c.packed...)
}

// finish ends the chunk. Offsets in meta count from the start of the chunk: the
// page of the dictionary, if there is one, then the others.
func (c *Chunk) finish() {
	c.endPage()
	c.meta = format.ColumnMetaData{Type: c.column.physical, PathInSchema: c.column.path, Codec: format.Zstd,
		NumValues: int64(c.entries),
		Encoding:  []format.Encoding{format.RLE}, Statistics: c.statistics()}
	if c.encodings>>format.RLEDictionary&1 == 0 {
		c.dict = c.dict[:0]
	} else { // also without entries: readers miss it where all rows are null
		c.raw = append(c.raw[:0], c.dict...)
		c.dict = c.appendPage(c.dict[:0], &format.PageHeader{Type: format.DictionaryPage,
			DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: int32(len(c.texts) + len(c.numbers)),
				Encoding: format.Plain})})
		c.meta.DataPageOffset = int64(len(c.dict))
		c.encodings |= 1 << format.Plain
	}
	for e := format.Plain; e <= format.ByteStreamSplit; e++ {
		if c.encodings>>e&1 != 0 {
			c.meta.Encoding = append(c.meta.Encoding, e)
		}
	}
	c.meta.TotalUncompressedSize, c.meta.TotalCompressedSize = int64(c.uncompressed), int64(len(c.dict)+len(c.pages))
}

func (c *Chunk) statistics() format.Statistics {
	s := format.Statistics{NullCount: int64(c.nulls)}
	switch {
	case !c.column.Bounds || c.nulls == c.entries:
	case c.column.physical == format.ByteArray:
		s.MinValue, s.MaxValue = []byte(c.least), []byte(c.greatest)
	default:
		w := c.column.width()
		s.MinValue = binary.LittleEndian.AppendUint64(nil, uint64(c.low))[:w]
		s.MaxValue = binary.LittleEndian.AppendUint64(nil, uint64(c.high))[:w]
	}
	return s
}

// filter returns the Bloom filter of the chunk, nil when the column has none.
func (c *Chunk) filter() ([]byte, error) {
	if len(c.hashes) == 0 {
		return nil, nil
	}
	f := make(bloom.SplitBlockFilter, bloom.NumSplitBlocksOf(int64(len(c.hashes)), 10))
	f.InsertBulk(c.hashes)
	head, err := thrift.Marshal(new(thrift.CompactProtocol), &format.BloomFilterHeader{NumBytes: int32(len(f.Bytes())),
		Algorithm:   format.BloomFilterAlgorithm{Value: &format.SplitBlockAlgorithm{}},
		Hash:        format.BloomFilterHash{Value: &format.XxHash{}},
		Compression: format.BloomFilterCompression{Value: &format.BloomFilterUncompressed{}}})
	return append(head, f.Bytes()...), err
}

// ValidText makes a text fit for a Parquet string, which is UTF-8.
func ValidText(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
