package normalize

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/internal/column"
)

// changeLog remembers the values of a few columns at the boundaries of slices. A row holds from the boundary
// after the previous row up to a boundary; it is written only when the columns are about to change, so a series
// at rest costs nothing. Whole numbers are stored as differences to the previous row, mostly one or two bytes;
// other values take nine.
type changeLog struct {
	upto int32 // boundaries covered by rows
	buf  []byte
	last []uint64 // by column: the whole number stored last
}

// integer writes a row of one integer that holds for the boundaries before upto.
func (l *changeLog) integer(upto int32, v uint64) {
	l.buf = column.AppendValue(l.begin(upto, 1), v, true, &l.last[0])
}

// floats writes a row of values that holds for the boundaries before upto.
func (l *changeLog) floats(upto int32, values []float64) {
	buf := l.begin(upto, len(values))
	last := l.last[:len(values)]
	for i, v := range values {
		buf = column.AppendValue(buf, math.Float64bits(v+0), false, &last[i]) // -0 becomes 0
	}
	l.buf = buf
}

// begin starts a row of n columns and returns the buffer with room for it.
func (l *changeLog) begin(upto int32, n int) []byte {
	if l.last == nil {
		l.last = make([]uint64, n)
	}
	buf := slices.Grow(l.buf, (n+1)*binary.MaxVarintLen64)
	buf = binary.AppendUvarint(buf, uint64(upto-l.upto))
	l.upto = upto
	return buf
}

// reader walks the boundaries of a line. The row it stands at is in floats, or in whole for a line of integers.
type reader struct {
	buf    []byte
	upto   int32
	last   []uint64
	whole  []uint64  // nil for floats
	floats []float64 // nil for integers
}

func (l *changeLog) readIntegers(columns int) reader {
	return reader{buf: l.buf, last: make([]uint64, columns), whole: make([]uint64, columns)}
}

func (l *changeLog) readFloats(columns int) reader {
	return reader{buf: l.buf, last: make([]uint64, columns), floats: make([]float64, columns)}
}

// at moves to the row that holds at a boundary. It returns false when none does: the columns are then as the
// series ended. Boundaries are asked for in ascending order.
func (r *reader) at(boundary int32) bool {
	for boundary >= r.upto {
		if len(r.buf) == 0 {
			return false
		}
		r.row()
	}
	return true
}

// row decodes the next row.
func (r *reader) row() {
	steps, n := binary.Uvarint(r.buf)
	r.upto += int32(steps)
	buf, bits := r.buf[n:], uint64(0)
	for i := range r.last {
		if bits, buf = column.CutValue(buf, r.whole != nil, &r.last[i]); r.whole != nil {
			r.whole[i] = bits
		} else {
			r.floats[i] = math.Float64frombits(bits)
		}
	}
	r.buf = buf
}
