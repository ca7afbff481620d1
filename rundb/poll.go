package rundb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// The bits of the first byte of a poll in the head section.
const (
	flagKey       = 1 << iota // values are relative to 0, not to the poll before
	flagSet                   // a list of the present slots comes first in op
	flagFull                  // Frame.Full
	flagDuplicate             // Snapshot.Duplicate
	flagIncident              // the table incident has a row for this poll
	flagGrowth                // the dictionary grew
	flagOdd                   // kind, outcome and sequence number are written out
	flagNoBody                // FirstByteNS is 0
)

// pollState holds what the next poll of a block is written relative to. It starts at zero in every block.
type pollState struct {
	seq                  uint64
	due, step            int64
	bytes, lines, status int64
}

// appendPoll appends everything of a poll but its entries.
func (p *pollState) appendPoll(head []byte, s *metric.Snapshot, flags byte) []byte {
	if s.Kind != metric.Periodic || s.Outcome != metric.OK || s.Seq != p.seq {
		flags |= flagOdd
	}
	if s.Duplicate {
		flags |= flagDuplicate
	}
	if s.FirstByteNS == 0 {
		flags |= flagNoBody
	}
	if !s.DictDelta.Empty() {
		flags |= flagGrowth
	}
	head = append(head, flags)
	if flags&flagOdd != 0 {
		head = append(head, byte(s.Kind), byte(s.Outcome))
		head = appendVarint(head, int64(s.Seq-p.seq))
	}
	p.seq = s.Seq + 1
	step := s.DueNS - p.due
	head = appendVarint(head, step-p.step)
	p.due, p.step = s.DueNS, step
	head = appendVarint(head, s.SentNS-s.DueNS)
	wait := int64(0)
	if s.FirstByteNS != 0 {
		wait = s.FirstByteNS - s.SentNS
		head = appendVarint(head, wait)
	}
	head = appendVarint(head, int64(s.Duration)-wait)
	head = appendVarint(head, s.BodyBytes-p.bytes)
	head = appendVarint(head, int64(s.Lines)-p.lines)
	head = appendVarint(head, int64(s.Status)-p.status)
	p.bytes, p.lines, p.status = s.BodyBytes, int64(s.Lines), int64(s.Status)
	if flags&flagGrowth != 0 {
		head = binary.AppendUvarint(head, uint64(len(s.DictDelta.Families)))
		head = binary.AppendUvarint(head, uint64(len(s.DictDelta.Series)))
		head = binary.AppendUvarint(head, uint64(len(s.DictDelta.Slots)))
	}
	return head
}

func appendVarint(b []byte, v int64) []byte { return binary.AppendUvarint(b, zigzag(v)) }

// readPoll reads what appendPoll wrote into s and returns the flags.
func (p *pollState) readPoll(c *cursor, s *metric.Snapshot) (flags byte, g dictSize, err error) {
	if len(c.head) == 0 {
		return 0, g, errShort
	}
	flags = c.head[0]
	c.head = c.head[1:]
	s.Kind, s.Outcome, s.Seq = metric.Periodic, metric.OK, p.seq
	if flags&flagOdd != 0 {
		if len(c.head) < 2 {
			return 0, g, errShort
		}
		s.Kind, s.Outcome = metric.Kind(c.head[0]), metric.Outcome(c.head[1])
		c.head = c.head[2:]
		s.Seq += uint64(c.varint(&c.head))
		if s.Kind > metric.Final || s.Outcome >= metric.Outcomes {
			return 0, g, fmt.Errorf("poll has kind %d, outcome %d", s.Kind, s.Outcome)
		}
	}
	p.seq = s.Seq + 1
	p.step += c.varint(&c.head)
	p.due += p.step
	s.DueNS = p.due
	s.SentNS = s.DueNS + c.varint(&c.head)
	wait := int64(0)
	s.FirstByteNS = 0
	if flags&flagNoBody == 0 {
		wait = c.varint(&c.head)
		s.FirstByteNS = s.SentNS + wait
	}
	s.Duration = time.Duration(wait + c.varint(&c.head))
	p.bytes += c.varint(&c.head)
	p.lines += c.varint(&c.head)
	p.status += c.varint(&c.head)
	s.BodyBytes, s.Lines, s.Status = p.bytes, int(p.lines), int(p.status)
	s.Duplicate = flags&flagDuplicate != 0
	if flags&flagGrowth != 0 {
		g = dictSize{c.count(&c.head), c.count(&c.head), c.count(&c.head)}
	}
	if c.err == nil && s.FirstByteNS == 0 && flags&flagNoBody == 0 {
		return 0, g, errors.New("poll has a first byte at 0")
	}
	return flags, g, c.err
}

// appendSamples appends the frame of a stored poll: the number of its entries to head, the entries to the other
// sections. It returns the flags that say how; key makes the poll readable without those before it.
func (e *encoder) appendSamples(s *sections, f *metric.Delta, key bool) (entries int, flags byte) {
	if e.presence(f) {
		flags |= flagSet
	}
	if f.Full {
		flags |= flagFull
	}
	if key {
		flags |= flagKey | flagSet
	}
	if flags&flagSet != 0 {
		s.op = e.appendPresent(s.op)
	}
	if !key {
		return e.changes(s, f), flags
	}
	for k, slot := range f.Slots {
		e.bits[slot] = f.Bits[k]
	}
	return e.all(s), flags
}

// readSamples is the inverse of appendSamples. When fresh is set the state
// before the poll is unknown: the frame is then delivered as a full one.
func (d *decoder) readSamples(c *cursor, flags byte, fresh bool, f *metric.Delta) error {
	f.Full = flags&flagFull != 0 || fresh
	f.Slots, f.Bits = f.Slots[:0], f.Bits[:0]
	n := c.uvarint(&c.head)
	if n > uint64(len(d.bits)) {
		return fmt.Errorf("%d entries for %d slots", n, len(d.bits))
	}
	if flags&flagSet != 0 {
		if err := d.readPresent(c); err != nil {
			return err
		}
	}
	if flags&flagKey != 0 {
		d.before = append(d.before[:0], d.bits...)
		clear(d.bits)
	}
	if err := d.changes(c, int(n), f); err != nil {
		return err
	}
	switch {
	case f.Full:
		d.list(f, nil)
	case flags&flagKey != 0:
		d.list(f, d.before)
	}
	return c.err
}

// list fills f with the present slots whose bits differ from before, or with all of them.
func (d *decoder) list(f *metric.Delta, before []uint64) {
	f.Slots, f.Bits = f.Slots[:0], f.Bits[:0]
	for i, p := range d.present {
		if p && (before == nil || before[i] != d.bits[i]) {
			f.Slots, f.Bits = append(f.Slots, uint32(i)), append(f.Bits, d.bits[i])
		}
	}
}
