package normalize

import (
	"encoding/binary"
	"math"
	"slices"
)

// changeLog remembers the values of a few columns at the boundaries of slices. A row
// holds from the boundary after the previous row up to a boundary; it is written
// only when the columns are about to change, so a series at rest costs nothing.
// Whole numbers are stored as differences to the previous row, mostly one or two
// bytes; other values take nine.
type changeLog struct {
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

// integer writes a row of one integer that holds for the boundaries before upto.
func (l *changeLog) integer(upto int32, v uint64) {
	buf := l.begin(upto, 1)
	d := int64(v - l.last[0])
	l.last[0] = v
	if d > bigStep || d < -bigStep {
		buf = binary.LittleEndian.AppendUint64(append(buf, notWhole), v)
	} else {
		buf = appendDifference(buf, d)
	}
	l.buf = buf
}

// floats writes a row of values + base that holds for the boundaries before upto.
// A nil base is all zeros.
func (l *changeLog) floats(upto int32, values, base []float64) {
	buf := l.begin(upto, len(values))
	last := l.last[:len(values)]
	for i, v := range values {
		if base != nil {
			v += base[i]
		}
		if whole := int64(v); float64(whole) == v && whole < exact && whole > -exact {
			buf = appendDifference(buf, whole-int64(last[i]))
			last[i] = uint64(whole)
		} else {
			buf = binary.LittleEndian.AppendUint64(append(buf, notWhole), math.Float64bits(v))
		}
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

func appendDifference(buf []byte, d int64) []byte {
	u := uint64(d<<1^d>>63) << 1
	if u < 0x80 {
		return append(buf, byte(u))
	}
	return binary.AppendUvarint(buf, u)
}

// reader walks the boundaries of a line. The row it stands at is in floats, or in
// whole for a line of integers.
type reader struct {
	buf    []byte
	upto   int32
	whole  []uint64
	floats []float64 // nil for integers
}

func (l *changeLog) readIntegers(columns int) reader {
	return reader{buf: l.buf, whole: make([]uint64, columns)}
}

func (l *changeLog) readFloats(columns int) reader {
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
		r.row()
	}
	return true
}

// row decodes the next row.
func (r *reader) row() {
	steps, n := binary.Uvarint(r.buf)
	r.upto += int32(steps)
	buf := r.buf[n:]
	for i := range r.whole {
		u, n := uint64(buf[0]), 1
		if u >= 0x80 {
			u, n = binary.Uvarint(buf)
		}
		buf = buf[n:]
		switch {
		case u == notWhole:
			v := binary.LittleEndian.Uint64(buf)
			buf = buf[8:]
			if r.floats != nil {
				r.floats[i] = math.Float64frombits(v)
			} else {
				r.whole[i] = v
			}
		case r.floats != nil:
			r.whole[i] += uint64(int64(u>>2) ^ -int64(u>>1&1))
			r.floats[i] = float64(int64(r.whole[i]))
		default:
			r.whole[i] += uint64(int64(u>>2) ^ -int64(u>>1&1))
		}
	}
	r.buf = buf
}
