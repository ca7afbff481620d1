package normalize

import (
	"encoding/binary"
	"math"
)

// line remembers the values of a few columns at the boundaries of slices. A row
// holds from the boundary after the previous row up to a boundary; it is written
// only when the columns are about to change, so a series at rest costs nothing.
// Whole numbers are stored as differences to the previous row, mostly one or two
// bytes; other values take nine.
type line struct {
	upto int32 // boundaries covered by rows
	buf  []byte
	last []uint64 // by column: the whole number stored last
}

// notWhole marks a column that is stored as its eight bytes.
const notWhole = 1

// bigStep bounds the differences that are stored as such.
const bigStep = 1 << 60

// row begins a row that holds for the boundaries before upto.
func (l *line) row(upto int32) {
	l.buf = binary.AppendUvarint(l.buf, uint64(upto-l.upto))
	l.upto = upto
}

// integer appends column i of the row.
func (l *line) integer(i int, v uint64) {
	for len(l.last) <= i {
		l.last = append(l.last, 0)
	}
	d := int64(v - l.last[i])
	if d > bigStep || d < -bigStep {
		l.buf = binary.LittleEndian.AppendUint64(append(l.buf, notWhole), v)
		return
	}
	l.last[i] = v
	l.buf = binary.AppendUvarint(l.buf, uint64(d<<1^d>>63)<<1)
}

// float appends column i of the row.
func (l *line) float(i int, v float64) {
	if whole := int64(v); float64(whole) == v && whole < 1<<53 && whole > -1<<53 {
		l.integer(i, uint64(whole))
		return
	}
	l.buf = binary.LittleEndian.AppendUint64(append(l.buf, notWhole), math.Float64bits(v))
}

// cell is a column at a boundary. Float columns are read with float, integer
// columns with whole.
type cell struct {
	bits uint64
	raw  bool
}

func (c cell) whole() uint64 { return c.bits }

func (c cell) float() float64 {
	if c.raw {
		return math.Float64frombits(c.bits)
	}
	return float64(int64(c.bits))
}

// reader walks the boundaries of a line.
type reader struct {
	buf  []byte
	upto int32
	last []uint64
}

func (l *line) read(columns int) reader {
	return reader{buf: l.buf, last: make([]uint64, columns)}
}

// at fills cells with the columns at a boundary and reports whether a row holds
// them: when not, they are as the series ended. Boundaries are asked for in
// ascending order.
func (r *reader) at(boundary int32, cells []cell) bool {
	for boundary >= r.upto {
		if len(r.buf) == 0 {
			return false
		}
		r.upto += int32(r.uvarint())
		for i := range r.last {
			cells[i] = r.column(i)
		}
	}
	return true
}

func (r *reader) column(i int) cell {
	u := r.uvarint()
	if u == notWhole {
		bits := binary.LittleEndian.Uint64(r.buf)
		r.buf = r.buf[8:]
		return cell{bits, true}
	}
	r.last[i] += uint64(int64(u>>2) ^ -int64(u>>1&1))
	return cell{r.last[i], false}
}

func (r *reader) uvarint() uint64 {
	u, n := binary.Uvarint(r.buf)
	r.buf = r.buf[n:]
	return u
}
