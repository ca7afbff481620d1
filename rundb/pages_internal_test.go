package rundb

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
)

// reads counts what is read of a file, and gives nothing more beyond what it may.
type reads struct {
	of       io.ReaderAt
	n, limit int
}

func (r *reads) ReadAt(p []byte, at int64) (int, error) {
	if r.n++; r.n > r.limit {
		return 0, io.EOF
	}
	return r.of.ReadAt(p, at)
}

// Pages of a stranger whose rows all lie over each other, and go on in a circle of pages, cost what pages may.
func TestRowsInCircles(t *testing.T) {
	for _, apart := range []int{0, 500} {
		page := make([]byte, pageSize)
		const first = 600
		page[0] = pageTableLeaf
		n := 7
		if apart == 0 {
			n = (first - 8) / 2
		}
		binary.BigEndian.PutUint16(page[3:], uint16(n))
		binary.BigEndian.PutUint16(page[5:], first)
		for i := range n {
			at := first + i*apart
			binary.BigEndian.PutUint16(page[8+2*i:], uint16(at))
			size := uint32(maxSection - 1)
			copy(page[at:], []byte{byte(size>>28) | 128, byte(size>>21) | 128, byte(size>>14) | 128, byte(size>>7) | 128,
				byte(size & 127), 1})
			local := minRow + (int(size)-minRow)%(pageSize-4)
			if local > maxTableRow {
				local = minRow
			}
			if at+6+local+4 <= pageSize {
				binary.BigEndian.PutUint32(page[at+6+local:], 3)
			}
		}
		circle := make([]byte, pageSize)
		binary.BigEndian.PutUint32(circle, 3)
		file := bytes.Join([][]byte{make([]byte, 2*pageSize), circle}, nil)
		const pages = 20
		r := &reads{of: bytes.NewReader(file), limit: 2*maxSection/pageSize + pages*(mayFollow+8)}
		s := &pageStore{db: r, pages: 3}
		for range pages {
			if s.rows(5, page, func([]any, int64) {}) {
				t.Error("a page of rows that lie over each other is whole")
			}
		}
		if r.n > r.limit || r.n < pages {
			t.Errorf("%d pages apart %d: %d pages were read, %d may be", pages, apart, r.n, r.limit)
		}
	}
}
