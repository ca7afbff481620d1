package column

import (
	"encoding/binary"
	"math"
)

// The codes of a value: an even one is twice the zigzag difference to the last
// whole number, codeRaw is followed by eight bytes.
const (
	codeRaw  = 1
	codeGone = 3 // of a log: the sample is no longer there
)

// maxStep bounds the differences that are stored as such, so that they survive zigzag and doubling.
const maxStep = 1 << 60

// AppendValue appends the bits of a float64, or an integer. A whole number is stored as its difference to the last one
// that was, mostly one or two bytes; other values take nine.
func AppendValue(dst []byte, bits uint64, integer bool, last *uint64) []byte {
	whole, ok := wholeOf(bits, integer)
	d := int64(whole - *last)
	if !ok || d >= maxStep || d <= -maxStep {
		return binary.LittleEndian.AppendUint64(append(dst, codeRaw), bits)
	}
	*last = whole
	u := uint64(d<<1^d>>63) << 1
	if u < 0x80 {
		return append(dst, byte(u))
	}
	return binary.AppendUvarint(dst, u)
}

// CutValue reads a value that AppendValue appended, and returns what follows it.
func CutValue(src []byte, integer bool, last *uint64) (bits uint64, rest []byte) {
	u, n := uint64(src[0]), 1
	if u >= 0x80 {
		u, n = binary.Uvarint(src)
	}
	if src = src[n:]; u == codeRaw {
		return binary.LittleEndian.Uint64(src), src[8:]
	}
	*last += uint64(int64(u>>2) ^ -int64(u>>1&1))
	if integer {
		return *last, src
	}
	return math.Float64bits(float64(int64(*last))), src
}

// wholeOf returns the whole number behind bits, two's complement, if it restores
// the bits exactly: -0 and everything beyond 2^53 do not.
func wholeOf(bits uint64, integer bool) (uint64, bool) {
	if integer {
		return bits, true
	}
	v := math.Float64frombits(bits)
	if !(v > -1<<53 && v < 1<<53) {
		return 0, false
	}
	whole := int64(v)
	return uint64(whole), math.Float64bits(float64(whole)) == bits
}

// Log is the history of one sample: what it became, and at which poll. Polls in which nothing changed cost nothing, a
// changed counter costs two or three bytes, a changed fraction ten. An entry is the number of polls since the previous
// entry, and a value or codeGone.
type Log struct {
	buf     []byte
	bits    uint64 // as last seen; meaningless before the first entry
	whole   uint64 // the whole number stored last
	poll    int32  // of the last entry
	present bool
	integer bool // of metric.SampleID: bits are an integer
	kept    bool // the pass collects this sample
}

// Set appends that the sample shows bits from poll n on. It returns the growth in
// memory; nothing is appended when nothing changed.
func (l *Log) Set(n int32, bits uint64) (grown int) {
	if l.present && l.bits == bits {
		return 0
	}
	was := cap(l.buf)
	l.buf = AppendValue(l.entry(n), bits, l.integer, &l.whole)
	l.bits, l.present = bits, true
	return cap(l.buf) - was
}

// Vanish appends that the sample is gone from poll n on.
func (l *Log) Vanish(n int32) (grown int) {
	if !l.present {
		return 0
	}
	was := cap(l.buf)
	l.buf = append(l.entry(n), codeGone)
	l.present = false
	return cap(l.buf) - was
}

func (l *Log) entry(n int32) []byte {
	steps := uint64(n - l.poll)
	l.poll = n
	return binary.AppendUvarint(l.buf, steps)
}

// drop forgets the history and returns the memory it held.
func (l *Log) drop() (freed int) {
	freed = cap(l.buf)
	l.buf, l.kept = nil, false
	return freed
}

// Cursor is a sample at a poll.
type Cursor struct {
	Bits    uint64
	Present bool
	Integer bool // of metric.SampleID: Bits are an integer
	buf     []byte
	whole   uint64
	next    int32 // poll of the entry that comes next; noPoll after the last
}

// noPoll is a poll number that is not reached.
const noPoll = math.MaxInt32

// NewLog returns the empty history of a sample whose bits are an integer or not.
func NewLog(integer bool) *Log { return &Log{integer: integer, kept: true} }

// Cursor returns the sample before its first poll. It reads what was appended so far, and stays valid.
func (l *Log) Cursor() Cursor {
	c := Cursor{buf: l.buf, Integer: l.integer}
	c.ahead(0)
	return c
}

// ahead reads when the next entry comes, counted from poll n.
func (c *Cursor) ahead(n int32) {
	if len(c.buf) == 0 {
		c.next = noPoll
		return
	}
	steps, size := binary.Uvarint(c.buf)
	c.buf, c.next = c.buf[size:], n+int32(steps)
}

// step applies the next entry.
func (c *Cursor) step() {
	at := c.next
	if c.Present = c.buf[0] != codeGone; c.Present {
		c.Bits, c.buf = CutValue(c.buf, c.Integer, &c.whole)
	} else {
		c.buf = c.buf[1:]
	}
	c.ahead(at)
}

// To moves to a poll, which must not be before the present one.
func (c *Cursor) To(poll int32) {
	for c.next <= poll {
		c.step()
	}
}

// Finite reports whether the cursor shows a number.
func (c *Cursor) Finite() bool {
	return c.Integer || c.Bits>>52&0x7ff != 0x7ff
}

// Value returns what the cursor shows as a float.
func (c *Cursor) Value() float64 {
	if c.Integer {
		return float64(c.Bits)
	}
	return math.Float64frombits(c.Bits)
}
