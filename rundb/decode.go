package rundb

import (
	"encoding/binary"
	"errors"
	"fmt"

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

// entry is one decoded op: the slot, and either an integer miss or a change of bits.
type entry struct {
	slot   int
	isBits bool
	delta  int64
}

// next reads the entry after slot last.
func (c *cursor) next(last int) entry {
	if len(c.op) == 0 {
		c.fail(errShort)
		return entry{}
	}
	b := c.op[0]
	c.op = c.op[1:]
	gap := int(b >> 4)
	if gap == gapMore {
		more := c.uvarint(&c.op)
		if more > 1<<32 {
			c.fail(errors.New("gap out of range"))
			return entry{}
		}
		gap += int(more)
	}
	en := entry{slot: last + 1 + gap}
	switch form := b & 15; {
	case form == formNum:
		en.delta = c.varint(&c.num)
	case form <= formBits:
		n := int(form)
		if len(c.sections.bits) < n {
			c.fail(errShort)
			return entry{}
		}
		var v uint64
		if len(c.sections.bits) >= 8 {
			v = binary.LittleEndian.Uint64(c.sections.bits) & (1<<(8*n) - 1)
		} else {
			for i := range n {
				v |= uint64(c.sections.bits[i]) << (8 * i)
			}
		}
		c.sections.bits = c.sections.bits[n:]
		en.isBits, en.delta = true, unzigzag(v)
	default:
		en.delta = small[form-formSmall]
	}
	return en
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

// changes applies n entries and appends the slots whose bits changed to f.
func (d *decoder) changes(c *cursor, n int, f *metric.Frame) error {
	if n == 0 {
		return nil
	}
	delta := d.scratch()
	slots := len(d.bits)
	en := c.next(-1)
	for i := en.slot; i < slots; i++ {
		change := delta[d.ref[i]]
		if i == en.slot {
			if !d.present[i] {
				return fmt.Errorf("slot %d changes while it is absent", i)
			}
			isBits, by := en.isBits, en.delta
			if n--; n > 0 {
				en = c.next(i)
			}
			if c.err != nil {
				return c.err
			}
			if isBits {
				d.bits[i] += uint64(by)
				f.Slots, f.Bits = append(f.Slots, uint32(i)), append(f.Bits, d.bits[i])
				continue
			}
			change += by
		}
		if change != 0 {
			delta[i+1] = change
			v := move(d.bits[i], change, d.integer[i])
			d.bits[i] = v
			f.Slots, f.Bits = append(f.Slots, uint32(i)), append(f.Bits, v)
		}
	}
	if n > 0 {
		return fmt.Errorf("slot %d of %d", en.slot, slots)
	}
	return c.err
}
