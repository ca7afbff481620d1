package normalize

import (
	"encoding/binary"
	"math"
	"slices"
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

// A column of a row is an even number, the zigzag difference times two, or
// notWhole and the eight bytes of the value.
const notWhole = 1

// bigStep bounds the differences that are stored as such, exact the whole
// numbers that float64 holds without a gap.
const (
	bigStep = 1 << 60
	exact   = 1 << 53
)

// row begins a row of n columns that holds for the boundaries before upto.
func (l *line) row(upto int32, n int) {
	if l.last == nil {
		l.last = make([]uint64, n)
	}
	l.buf = slices.Grow(l.buf, (n+1)*binary.MaxVarintLen64)
	l.buf = binary.AppendUvarint(l.buf, uint64(upto-l.upto))
	l.upto = upto
}

// integer appends column i of the row.
func (l *line) integer(i int, v uint64) {
	d := int64(v - l.last[i])
	l.last[i] = v
	if d > bigStep || d < -bigStep {
		l.buf = binary.LittleEndian.AppendUint64(append(l.buf, notWhole), v)
		return
	}
	l.difference(d)
}

func (l *line) difference(d int64) {
	u := uint64(d<<1^d>>63) << 1
	if u < 0x80 {
		l.buf = append(l.buf, byte(u))
		return
	}
	l.buf = binary.AppendUvarint(l.buf, u)
}

// float appends column i of the row.
func (l *line) float(i int, v float64) {
	if whole := int64(v); float64(whole) == v && whole < exact && whole > -exact {
		d := whole - int64(l.last[i])
		l.last[i] = uint64(whole)
		l.difference(d)
		return
	}
	l.buf = binary.LittleEndian.AppendUint64(append(l.buf, notWhole), math.Float64bits(v))
}

// reader walks the boundaries of a line. The row it stands at is in floats, or in
// whole for a line of integers.
type reader struct {
	buf    []byte
	upto   int32
	whole  []uint64
	floats []float64 // nil for integers
}

func (l *line) readIntegers(columns int) reader {
	return reader{buf: l.buf, whole: make([]uint64, columns)}
}

func (l *line) readFloats(columns int) reader {
	return reader{buf: l.buf, whole: make([]uint64, columns), floats: make([]float64, columns)}
}

// at moves to the row that holds at a boundary. It returns false when none does:
// the columns are then as the series ended. Boundaries are asked for in ascending
// order.
func (r *reader) at(boundary int32) bool {
	for boundary >= r.upto {
		if len(r.buf) == 0 {
			return false
		}
		r.upto += int32(r.uvarint())
		for i := range r.whole {
			r.column(i)
		}
	}
	return true
}

func (r *reader) column(i int) {
	switch u := r.uvarint(); {
	case u != notWhole:
		r.whole[i] += uint64(int64(u>>2) ^ -int64(u>>1&1))
		if r.floats != nil {
			r.floats[i] = float64(int64(r.whole[i]))
		}
	case r.floats != nil:
		r.floats[i] = math.Float64frombits(r.word())
	default:
		r.whole[i] = r.word()
	}
}

func (r *reader) word() uint64 {
	bits := binary.LittleEndian.Uint64(r.buf)
	r.buf = r.buf[8:]
	return bits
}

func (r *reader) uvarint() uint64 {
	if b := r.buf[0]; b < 0x80 {
		r.buf = r.buf[1:]
		return uint64(b)
	}
	u, n := binary.Uvarint(r.buf)
	r.buf = r.buf[n:]
	return u
}
