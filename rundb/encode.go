package rundb

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/scrapestat/scrapestat/metric"
)

// sections are the four byte streams of a block. Bytes of one kind stand
// together because they compress together.
type sections struct {
	head []byte // what a poll was: times, outcome, sizes
	op   []byte // which slots changed, and how that is written
	num  []byte // integer changes that do not fit into op
	bits []byte // changes of float64 bits
}

func (s *sections) size() int { return len(s.head) + len(s.op) + len(s.num) + len(s.bits) }

// The forms of an entry, the low half of its op byte.
const (
	formNum   = 0 // a zigzag varint in num
	formBits  = 8 // 1 to 8: that many bytes in bits
	formSmall = 9 // 9 to 15: a small integer, see small
	gapMore   = 15
)

// small are the integer changes of the forms from formSmall on.
var small = [...]int64{1, 2, 3, 4, 5, -1, -2}

// smallForms are the forms of the changes -2 to 5; 0 never is an entry.
var smallForms = [...]byte{formSmall + 6, formSmall + 5, 0, formSmall, formSmall + 1, formSmall + 2, formSmall + 3,
	formSmall + 4}

// odd is a slot whose change is not one of integers.
type odd struct {
	slot  uint32
	delta uint64
}

// encoder turns the frames of one target into entries.
type encoder struct {
	state
	odds []odd
}

// presence updates which slots are present and reports whether that changed.
func (e *encoder) presence(f *metric.Delta) bool {
	changed := false
	for slot := range f.Absent(len(e.present)) {
		changed = changed || e.present[slot]
		e.present[slot] = false
	}
	for _, slot := range f.Slots {
		if !e.present[slot] {
			e.present[slot], changed = true, true
		}
	}
	if changed {
		e.link()
	}
	return changed
}

// appendPresent appends the present slots as runs: their number, then for each
// the absent slots before it and its length.
func (e *encoder) appendPresent(op []byte) []byte {
	runs, was := 0, false
	for _, p := range e.present {
		if p && !was {
			runs++
		}
		was = p
	}
	op = binary.AppendUvarint(op, uint64(runs))
	gap, run := 0, 0
	for _, p := range e.present {
		switch {
		case p:
			run++
		case run > 0:
			op = binary.AppendUvarint(binary.AppendUvarint(op, uint64(gap)), uint64(run))
			gap, run = 1, 0
		default:
			gap++
		}
	}
	if run > 0 {
		op = binary.AppendUvarint(binary.AppendUvarint(op, uint64(gap)), uint64(run))
	}
	return op
}

// changes appends the entries of the listed slots against the last bits and
// takes these over. It returns the number of entries.
func (e *encoder) changes(s *sections, f *metric.Delta) int {
	if len(f.Slots) == 0 {
		return 0
	}
	delta := e.scratch()
	e.odds = e.odds[:0]
	last, integer, values := e.bits, e.integer, f.Bits
	for k, slot := range f.Slots {
		cur, prev := values[k], last[slot]
		last[slot] = cur
		// This is what exact does, for both at once.
		c, p := int64(math.Float64frombits(cur)), int64(math.Float64frombits(prev))
		switch {
		case integer[slot]:
			delta[slot+1] = int64(cur - prev)
		case math.Float64bits(float64(c)) == cur && math.Float64bits(float64(p)) == prev &&
			uint64(c+1<<53) < 1<<54 && uint64(p+1<<53) < 1<<54:
			delta[slot+1] = c - p
		case cur != prev:
			e.odds = append(e.odds, odd{slot, cur - prev})
		}
	}
	return e.entries(s, delta, int(f.Slots[0]))
}

// all appends the entries of every present slot against 0.
func (e *encoder) all(s *sections) int {
	delta := e.scratch()
	e.odds = e.odds[:0]
	for i, p := range e.present {
		switch {
		case !p:
			e.bits[i] = 0
		case e.integer[i]:
			delta[i+1] = int64(e.bits[i])
		default:
			c, ok := exact(e.bits[i])
			if ok {
				delta[i+1] = c
			} else {
				e.odds = append(e.odds, odd{uint32(i), e.bits[i]})
			}
		}
	}
	return e.entries(s, delta, 0)
}

// entries appends what the predictions miss.
func (e *encoder) entries(s *sections, delta []int64, first int) int {
	n, next, i := 0, 0, first
	op, num, ref := s.op, s.num, e.ref
	delta = delta[:len(ref)+1]
	for k := 0; k <= len(e.odds); k++ {
		stop := len(ref)
		if k < len(e.odds) {
			stop = int(e.odds[k].slot)
		}
		for ; i < stop; i++ {
			miss := delta[i+1] - delta[ref[i]]
			if miss == 0 {
				continue
			}
			form := byte(formNum)
			if at := uint64(miss + 2); at < uint64(len(smallForms)) {
				form = smallForms[at]
			} else {
				num = binary.AppendUvarint(num, zigzag(miss))
			}
			op = appendOp(op, i-next, form)
			next = i + 1
			n++
		}
		if k < len(e.odds) {
			z := zigzag(int64(e.odds[k].delta))
			width := (bits.Len64(z) + 7) / 8
			op = appendOp(op, i-next, byte(width))
			s.bits = binary.LittleEndian.AppendUint64(s.bits, z)
			s.bits = s.bits[:len(s.bits)-8+width]
			i++
			next = i
			n++
		}
	}
	s.op, s.num = op, num
	return n
}

func appendOp(op []byte, gap int, form byte) []byte {
	if gap < gapMore {
		return append(op, byte(gap)<<4|form)
	}
	return binary.AppendUvarint(append(op, gapMore<<4|form), uint64(gap-gapMore))
}
