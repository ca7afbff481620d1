package rundb

import (
	"encoding/binary"
	"io"
	"math"
	"math/bits"
	"strings"
)

// Reading rows without SQLite, page by page: each row has its checksum, so it can be believed wherever it is found.

const (
	pageSize = 4096 // of every recording
	// mapPages is how many pages lie between those that SQLite maps the others in, the first of which is page 2.
	mapPages = pageSize/5 + 1
)

// pageStore is a database and its log: the newest image of each page.
type pageStore struct {
	db     io.ReaderAt
	pages  uint32 // of db
	log    io.ReaderAt
	newest map[uint32]int64 // where the log has a page
	// followed counts the pages that rows went on in beyond what looked at ones may: rows of strangers may all go on in
	// the same pages, in a circle too.
	followed int
}

// mayFollow is in how many pages the rows of a page may go on, of each that was looked at.
const mayFollow = 64

// read returns an image of a page, nil where there is none.
func (s *pageStore) read(n uint32) []byte {
	from, at := s.db, (int64(n)-1)*pageSize
	if off, ok := s.newest[n]; ok {
		from, at = s.log, off
	} else if n == 0 || n > s.pages {
		return nil
	}
	p := make([]byte, pageSize)
	if n, err := from.ReadAt(p, at); n == 0 && err != nil {
		return nil
	}
	return p // the last one may be cut
}

// The most bytes of a row that lie in its page, and the least of a longer one.
const (
	maxTableRow = pageSize - 35
	maxIndexRow = (pageSize-12)*64/255 - 23
	minRow      = (pageSize-12)*32/255 - 23
)

// The kinds of pages that hold rows.
const (
	pageIndexNode = 2
	pageTableNode = 5
	pageIndexLeaf = 10
	pageTableLeaf = 13
)

// rows calls row for each row of a page, with the number that SQLite gave it, or with nil where it cannot be read. It
// reports whether the page is whole: each byte of it is of a row, or free.
func (s *pageStore) rows(n uint32, p []byte, row func(values []any, number int64)) bool {
	head := 0
	if n == 1 {
		head = 100
	}
	kind, size := p[head], 8
	switch {
	case n%mapPages == 2 || kind == 0: // a map of pages, or the rest of a long row
		return true
	case kind == pageIndexNode || kind == pageTableNode:
		size = 12
	case kind != pageIndexLeaf && kind != pageTableLeaf:
		return false
	}
	count, content := int(binary.BigEndian.Uint16(p[head+3:])), int(binary.BigEndian.Uint16(p[head+5:]))
	used := head + size + 2*count
	if used > content || content > pageSize {
		return false
	}
	used += content - used + int(p[head+7])
	s.followed = max(s.followed-mayFollow, -2*maxSection/pageSize)
	for i := range count {
		at := int(binary.BigEndian.Uint16(p[head+size+2*i:]))
		if at < content || at >= pageSize {
			row(nil, 0)
			return false
		}
		cell, number, length := s.cell(kind, p[at:])
		if used += length; used > 4*pageSize { // rows lie over each other
			row(nil, 0)
			return false
		}
		if kind != pageTableNode {
			row(readRecord(cell), number)
		}
	}
	for free, left := int(binary.BigEndian.Uint16(p[head+1:])), pageSize; free != 0 && left > 0; left-- {
		if free+4 > pageSize {
			return false
		}
		used += int(binary.BigEndian.Uint16(p[free+2:]))
		free = int(binary.BigEndian.Uint16(p[free:]))
	}
	return used == pageSize
}

// cell returns the payload of a cell, nil when it is not all there, its number, and how many bytes it takes here.
func (s *pageStore) cell(kind byte, b []byte) (payload []byte, number int64, length int) {
	at := 0
	if kind == pageIndexNode || kind == pageTableNode {
		at = 4
	}
	next := func() uint64 {
		v, n := sqliteVarint(b[min(at, len(b)):])
		at += n
		return v
	}
	if kind == pageTableNode {
		next()
		return nil, 0, at
	}
	size, most := next(), maxIndexRow
	if kind == pageTableLeaf {
		number, most = int64(next()), maxTableRow
	}
	if size > maxSection {
		return nil, number, at
	}
	local := int(size)
	if local > most {
		if local = minRow + (int(size)-minRow)%(pageSize-4); local > most {
			local = minRow
		}
	}
	end := at + local
	if end > len(b) || local < int(size) && end+4 > len(b) {
		return nil, number, end
	}
	if local == int(size) {
		return b[at:end], number, max(end, 4)
	}
	payload = append(payload, b[at:end]...)
	for rest := binary.BigEndian.Uint32(b[end:]); len(payload) < int(size); {
		s.followed++
		p := s.read(rest)
		if p == nil || s.followed > 0 {
			return nil, number, end + 4
		}
		payload = append(payload, p[4:min(pageSize, 4+int(size)-len(payload))]...)
		rest = binary.BigEndian.Uint32(p)
	}
	return payload, number, end + 4
}

// sqliteVarint reads a number of one to nine bytes, big endian.
func sqliteVarint(b []byte) (v uint64, n int) {
	for n < len(b) && n < 8 {
		v = v<<7 | uint64(b[n]&0x7f)
		if n++; b[n-1] < 0x80 {
			return v, n
		}
	}
	if n == 8 && len(b) > 8 {
		return v<<8 | uint64(b[8]), 9
	}
	return math.MaxUint64, n + 1
}

// readRecord returns the values of a record of SQLite, nil of one that is none.
func readRecord(b []byte) []any {
	size, n := sqliteVarint(b)
	if size > uint64(len(b)) || uint64(n) > size {
		return nil
	}
	kinds, b := b[n:size], b[size:]
	values := []any{}
	for len(kinds) > 0 {
		kind, n := sqliteVarint(kinds)
		if n > len(kinds) {
			return nil
		}
		kinds = kinds[n:]
		length := uint64(0)
		if kind >= 12 {
			length = (kind - 12) / 2
		} else if kind < 8 {
			length = uint64([]int{0, 1, 2, 3, 4, 6, 8, 8}[kind])
		}
		if length > uint64(len(b)) || kind == 10 || kind == 11 {
			return nil
		}
		values, b = append(values, recordValue(kind, b[:length])), b[length:]
	}
	if len(b) > 0 {
		return nil
	}
	return values
}

func recordValue(kind uint64, b []byte) any {
	switch {
	case kind == 0:
		return nil
	case kind >= 12 && kind%2 == 1:
		return string(b)
	case kind >= 12:
		return b
	case kind >= 8:
		return int64(kind - 8)
	}
	var v int64
	for i, x := range b {
		if i == 0 {
			v = int64(int8(x))
			continue
		}
		v = v<<8 | int64(x)
	}
	if kind == 7 {
		return math.Float64frombits(uint64(v))
	}
	return v
}

// fits returns the values of a row in the order of the columns of t, and its checksum, when their kinds are those
// that a row of t has.
func (t sumTable) fits(values []any, number int64) (row []any, sum int64, ok bool) {
	kinds := strings.TrimPrefix(t.kinds, "+")
	if kinds == "" || len(values) == 0 {
		return nil, 0, false
	}
	if kinds != t.kinds || kinds[0] == 'k' {
		if values[0] != nil {
			return nil, 0, false
		}
		if values = values[1:]; kinds == t.kinds {
			values = append([]any{number}, values...)
		}
	}
	if len(values) != len(kinds)+1 {
		return nil, 0, false
	}
	for i, v := range values[:len(kinds)] {
		is := ""
		switch v.(type) {
		case nil:
			is = "o"
		case int64:
			is = "kif"
		case float64:
			is = "f"
		case string:
			is = "tao"
		case []byte:
			is = "ba"
		}
		if !strings.ContainsRune(is, rune(kinds[i])) {
			return nil, 0, false
		}
	}
	sum, ok = values[len(kinds)].(int64)
	return values[:len(kinds)], sum, ok
}

// identify finds the table that a row is of by its checksum; a bit of the row that is wrong is put right. name is
// that of the table which the row looks like where none is found.
func identify(values []any, number int64) (name string, row []any, mended bool) {
	for _, t := range sumTables() {
		fit, sum, ok := t.fits(values, number)
		if !ok {
			continue
		}
		name = t.name
		b := appendRow(nil, name, fit)
		if holdsSum(name, b, sum) {
			return name, fit, false
		}
		if mendBit(b, uint32(rowSum(b))^uint32(sum)) {
			if fixed := cutRow(b); len(fixed) == len(fit)+1 && fixed[0] == name {
				return name, fixed[1:], true
			}
		}
	}
	return name, nil, false
}

// mendBit turns over the one bit of b that changes its CRC-32C by diff, if there is one; a diff of one bit is one
// of the checksum itself.
func mendBit(b []byte, diff uint32) bool {
	if bits.OnesCount32(diff) == 1 {
		return true
	}
	var effect [8]uint32
	for i := range effect {
		effect[i] = castagnoli[1<<i]
	}
	for at := len(b) - 1; at >= 0; at-- {
		for i, e := range effect {
			if e == diff {
				b[at] ^= 1 << i
				return true
			}
			effect[i] = castagnoli[e&0xff] ^ e>>8
		}
	}
	return false
}
