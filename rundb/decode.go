package rundb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

var errShort = errors.New("ends early")

// cursor reads sections from the front. The first fault sticks in err.
type cursor struct {
	sections
	err error
}

func (c *cursor) uvarint(b *[]byte) uint64 {
	if s := *b; len(s) > 0 && s[0] < 0x80 {
		*b = s[1:]
		return uint64(s[0])
	}
	v, n := binary.Uvarint(*b)
	if n <= 0 {
		c.fail(errShort)
		return 0
	}
	*b = (*b)[n:]
	return v
}

func (c *cursor) varint(b *[]byte) int64 { return unzigzag(c.uvarint(b)) }

// count reads a number of things that have a key.
func (c *cursor) count(b *[]byte) int {
	v := c.uvarint(b)
	if v > maxPoll {
		c.fail(fmt.Errorf("%d entries", v))
		return 0
	}
	return int(v)
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.sections = sections{}
}

// entries reads the entries of one poll. Where it stands is in numbers: to write
// back a shortened slice for each entry is slow while memory is collected.
type entries struct {
	op, num, bits       []byte
	atOp, atNum, atBits int
}

// next reads an entry: how many slots it leaves out, and an integer miss or a change of bits.
func (e *entries) next() (gap int, isBits bool, delta int64, err error) {
	if e.atOp >= len(e.op) {
		return 0, false, 0, errShort
	}
	b := e.op[e.atOp]
	e.atOp++
	if gap = int(b >> 4); gap == gapMore {
		more, n := binary.Uvarint(e.op[e.atOp:])
		if n <= 0 || more > 1<<32 {
			return 0, false, 0, errors.New("gap out of range")
		}
		e.atOp += n
		gap += int(more)
	}
	form := int(b & 15)
	if form >= formSmall {
		return gap, false, small[form-formSmall], nil
	}
	if form != formNum {
		delta, err = e.wide(form)
		return gap, true, delta, err
	}
	v, n := binary.Uvarint(e.num[e.atNum:])
	if n <= 0 {
		return 0, false, 0, errShort
	}
	e.atNum += n
	return gap, false, unzigzag(v), nil
}

// wide reads a change of bits of n bytes.
func (e *entries) wide(n int) (int64, error) {
	rest := e.bits[e.atBits:]
	if len(rest) < n {
		return 0, errShort
	}
	e.atBits += n
	if len(rest) >= 8 {
		return unzigzag(binary.LittleEndian.Uint64(rest) & (1<<(8*n) - 1)), nil
	}
	var v uint64
	for i := range n {
		v |= uint64(rest[i]) << (8 * i)
	}
	return unzigzag(v), nil
}

// decoder turns entries back into frames.
type decoder struct {
	state
	before []uint64 // scratch: bits before a keyframe
}

// readPresent reads the runs of present slots.
func (d *decoder) readPresent(c *cursor) error {
	clear(d.present)
	at, n := uint64(0), uint64(len(d.present))
	for runs := c.uvarint(&c.op); runs > 0 && c.err == nil; runs-- {
		at += min(c.uvarint(&c.op), n+1)
		length := c.uvarint(&c.op)
		if at > n || length > n-at {
			return fmt.Errorf("present slots beyond slot %d", n)
		}
		for end := at + length; at < end; at++ {
			d.present[at] = true
		}
	}
	d.link()
	return c.err
}

// changes applies n entries and sets f to the slots whose bits changed.
func (d *decoder) changes(c *cursor, n int, f *metric.Delta) error {
	if n == 0 {
		return nil
	}
	slots := len(d.bits)
	f.Slots, f.Bits = slices.Grow(f.Slots[:0], slots)[:slots], slices.Grow(f.Bits[:0], slots)[:slots]
	e := entries{op: c.op, num: c.num, bits: c.sections.bits}
	delta := d.scratch()
	i, k := 0, 0 // the next slot, how many changed
	for first := true; n > 0; n, first = n-1, false {
		gap, isBits, by, err := e.next()
		if err != nil {
			return err
		}
		slot := i + gap
		switch {
		case slot >= slots:
			return fmt.Errorf("slot %d of %d", slot, slots)
		case !d.present[slot]:
			return fmt.Errorf("slot %d changes while it is absent", slot)
		case !first && gap > 0: // before the first entry there is nothing to follow
			k = d.follow(delta, i, slot, k, f)
		}
		i = slot + 1
		v := d.bits[slot]
		if isBits {
			v += uint64(by)
		} else {
			by += delta[d.ref[slot]]
			if by == 0 {
				continue
			}
			delta[i] = by
			v = move(v, by, d.integer[slot])
		}
		d.bits[slot] = v
		f.Slots[k], f.Bits[k] = uint32(slot), v
		k++
	}
	k = d.follow(delta, i, slots, k, f)
	f.Slots, f.Bits = f.Slots[:k], f.Bits[:k]
	c.op, c.num, c.sections.bits = e.op[e.atOp:], e.num[e.atNum:], e.bits[e.atBits:]
	return nil
}

// follow moves the slots from i to before end, which have no entry, along with
// those that predict them. It appends them to the first k of f.
func (d *decoder) follow(delta []int64, i, end, k int, f *metric.Delta) int {
	ref, bits, integer := d.ref[:end], d.bits[:end], d.integer[:end]
	for ; i < end; i++ {
		by := delta[ref[i]]
		if by == 0 {
			continue
		}
		delta[i+1] = by
		v := move(bits[i], by, integer[i])
		bits[i] = v
		f.Slots[k], f.Bits[k] = uint32(i), v
		k++
	}
	return k
}
