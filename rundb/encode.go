package rundb

import (
	"encoding/binary"
	"fmt"
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

// smallForm returns the form of an integer change.
func smallForm(e int64) byte {
	switch {
	case e >= 1 && e <= 5:
		return byte(formSmall - 1 + e)
	case e == -1:
		return formSmall + 5
	case e == -2:
		return formSmall + 6
	}
	return formNum
}

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

// checkFrame refuses frames that break the contract of metric.Frame, before
// anything has changed.
func checkFrame(f *metric.Frame, slots int) error {
	if len(f.Slots) != len(f.Bits) {
		return fmt.Errorf("frame has %d slots and %d values", len(f.Slots), len(f.Bits))
	}
	last := -1
	for _, s := range f.Slots {
		if int(s) <= last || int(s) >= slots {
			return fmt.Errorf("frame lists slot %d after %d, of %d slots", s, last, slots)
		}
		last = int(s)
	}
	return nil
}

// presence updates which slots are present and says whether that changed.
func (e *encoder) presence(f *metric.Frame) bool {
	changed := false
	if !f.Full {
		for _, s := range f.Slots {
			if !e.present[s] {
				e.present[s], changed = true, true
			}
		}
	} else {
		k := 0
		for i := range e.present {
			now := k < len(f.Slots) && int(f.Slots[k]) == i
			if now {
				k++
			}
			if e.present[i] != now {
				e.present[i], changed = now, true
			}
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
func (e *encoder) changes(s *sections, f *metric.Frame) int {
	if len(f.Slots) == 0 {
		return 0
	}
	delta := e.scratch()
	e.odds = e.odds[:0]
	for k, slot := range f.Slots {
		cur := f.Bits[k]
		prev := e.bits[slot]
		e.bits[slot] = cur
		if e.integer[slot] {
			delta[slot+1] = int64(cur - prev)
			continue
		}
		e.float(delta, slot, prev, cur)
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
			e.float(delta, uint32(i), 0, e.bits[i])
		}
	}
	return e.entries(s, delta, 0)
}

// float notes the change of a slot that is a float64.
func (e *encoder) float(delta []int64, slot uint32, prev, cur uint64) {
	p, ok := exact(prev)
	c, ok2 := exact(cur)
	if ok && ok2 {
		delta[slot+1] = c - p
	} else if prev != cur {
		e.odds = append(e.odds, odd{slot, cur - prev})
	}
}

// entries appends what the predictions miss.
func (e *encoder) entries(s *sections, delta []int64, first int) int {
	n, last, odds := 0, -1, e.odds
	ref := e.ref
	for i := first; i < len(ref); {
		stop := len(ref)
		if len(odds) > 0 {
			stop = int(odds[0].slot)
		}
		for ; i < stop; i++ {
			miss := delta[i+1] - delta[ref[i]]
			if miss == 0 {
				continue
			}
			form := smallForm(miss)
			s.op = appendOp(s.op, i-last-1, form)
			if form == formNum {
				s.num = binary.AppendUvarint(s.num, zigzag(miss))
			}
			last = i
			n++
		}
		if len(odds) > 0 {
			z := zigzag(int64(odds[0].delta))
			width := (bits.Len64(z) + 7) / 8
			s.op = appendOp(s.op, i-last-1, byte(width))
			s.bits = binary.LittleEndian.AppendUint64(s.bits, z)
			s.bits = s.bits[:len(s.bits)-8+width]
			odds = odds[1:]
			last = i
			i++
			n++
		}
	}
	return n
}

func appendOp(op []byte, gap int, form byte) []byte {
	if gap < gapMore {
		return append(op, byte(gap)<<4|form)
	}
	return binary.AppendUvarint(append(op, gapMore<<4|form), uint64(gap-gapMore))
}
