package export

import (
	"encoding/binary"
	"math"
)

// changeLog is the history of one slot: what it became, and at which poll. Polls
// in which nothing changed cost nothing, a changed counter costs two or three
// bytes, a changed fraction ten.
//
// An entry is the number of polls since the previous entry and a code, both
// uvarints. An even code is twice the zigzag difference to the last whole number;
// the odd ones are logRaw, followed by eight bytes, and logGone.
type changeLog struct {
	buf     []byte
	bits    uint64 // as last seen; meaningless before the first entry
	whole   uint64 // the whole number stored last
	poll    int32  // of the last entry
	present bool
	integer bool // of metric.SampleID: bits are an integer
	kept    bool // the pass collects this slot
}

const (
	logRaw  = 1
	logGone = 3
)

// maxStep bounds the differences that are stored as such, so that they survive
// zigzag and doubling.
const maxStep = 1 << 60

// set appends that the slot shows bits from poll n on. It returns the growth in
// memory; nothing is appended when nothing changed.
func (l *changeLog) set(n int32, bits uint64) (grown int) {
	if l.present && l.bits == bits {
		return 0
	}
	was := cap(l.buf)
	l.entry(n)
	if whole, ok := wholeOf(bits, l.integer); ok && stepFits(whole-l.whole) {
		d := int64(whole - l.whole)
		l.buf = binary.AppendUvarint(l.buf, uint64(d<<1^d>>63)<<1)
		l.whole = whole
	} else {
		l.buf = binary.LittleEndian.AppendUint64(append(l.buf, logRaw), bits)
	}
	l.bits, l.present = bits, true
	return cap(l.buf) - was
}

// vanish appends that the slot is gone from poll n on.
func (l *changeLog) vanish(n int32) (grown int) {
	if !l.present {
		return 0
	}
	was := cap(l.buf)
	l.entry(n)
	l.buf = append(l.buf, logGone)
	l.present = false
	return cap(l.buf) - was
}

func (l *changeLog) entry(n int32) {
	l.buf = binary.AppendUvarint(l.buf, uint64(n-l.poll))
	l.poll = n
}

// drop forgets the history and returns the memory it held.
func (l *changeLog) drop() (freed int) {
	freed = cap(l.buf)
	l.buf, l.kept = nil, false
	return freed
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

func stepFits(d uint64) bool {
	return int64(d) < maxStep && int64(d) > -maxStep
}

// slotCursor walks a slotLog forwards.
type slotCursor struct {
	buf     []byte
	bits    uint64
	whole   uint64
	next    int32 // poll of the entry that comes next; noPoll after the last
	present bool
	integer bool
}

// noPoll is a poll number that is not reached.
const noPoll = math.MaxInt32

func (l *changeLog) cursor() slotCursor {
	c := slotCursor{buf: l.buf, integer: l.integer}
	c.ahead(0)
	return c
}

// ahead reads when the next entry comes, counted from poll n.
func (c *slotCursor) ahead(n int32) {
	if len(c.buf) == 0 {
		c.next = noPoll
		return
	}
	c.next = n + int32(c.uvarint())
}

// step applies the next entry.
func (c *slotCursor) step() {
	at := c.next
	switch code := c.uvarint(); code {
	case logRaw:
		c.bits, c.present = binary.LittleEndian.Uint64(c.buf), true
		c.buf = c.buf[8:]
	case logGone:
		c.present = false
	default:
		c.whole += uint64(int64(code>>2) ^ -int64(code>>1&1))
		c.bits, c.present = c.whole, true
		if !c.integer {
			c.bits = math.Float64bits(float64(int64(c.whole)))
		}
	}
	c.ahead(at)
}

func (c *slotCursor) uvarint() uint64 {
	u, n := binary.Uvarint(c.buf)
	c.buf = c.buf[n:]
	return u
}

// finite says that the cursor shows a number.
func (c *slotCursor) finite() bool {
	return c.integer || c.bits>>52&0x7ff != 0x7ff
}

// value returns what the cursor shows as a float.
func (c *slotCursor) value() float64 {
	if c.integer {
		return float64(c.bits)
	}
	return math.Float64frombits(c.bits)
}
