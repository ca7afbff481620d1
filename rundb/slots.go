package rundb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/scrapestat/scrapestat/metric"
)

// The slots that a poll adds to a dictionary are one row of table slots: a target has a thousand of them, a
// fleet a million, and a row for each was most of what the start of a run cost. docs/rundb.md has the form.

// The first byte of a slot: its role in the low half, and what follows.
const (
	slotRole    = 1<<4 - 1
	slotInteger = 1 << 4
	slotBound   = 1 << 5
	slotText    = 1 << 6
	slotMore    = 1 << 7 // a record of fields that not every slot has
)

// minSlotBytes is what a slot takes at least.
const minSlotBytes = 2

// appendSlots appends slots in the form of table slots.
func appendSlots(dst []byte, slots []metric.SampleID) []byte {
	last := 0
	for i := range slots {
		s := &slots[i]
		tag := byte(s.Role)
		bound, lower := math.Float64bits(s.Bound), math.Float64bits(s.Lower)
		if s.Integer {
			tag |= slotInteger
		}
		if bound != 0 {
			tag |= slotBound
		}
		if s.Text != "" {
			tag |= slotText
		}
		if lower != 0 {
			tag |= slotMore
		}
		dst = append(dst, tag)
		dst = binary.AppendUvarint(dst, zigzag(int64(s.Series-last)))
		last = s.Series
		if bound != 0 {
			dst = binary.LittleEndian.AppendUint64(dst, bound)
		}
		if s.Text != "" {
			dst = append(binary.AppendUvarint(dst, uint64(len(s.Text))), s.Text...)
		}
		if lower != 0 {
			dst = binary.LittleEndian.AppendUint64(append(dst, 8), lower)
		}
	}
	return dst
}

// slotReader reads what appendSlots wrote.
type slotReader struct {
	data  []byte
	texts map[string]string // bounds repeat from series to series
	err   error
}

func (r *slotReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.data, r.err = nil, errShort
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *slotReader) bytes(n uint64) []byte {
	if n > uint64(len(r.data)) {
		r.data, r.err = nil, errShort
		return nil
	}
	b := r.data[:n:n]
	r.data = r.data[n:]
	return b
}

func (r *slotReader) float() float64 {
	if b := r.bytes(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return 0
}

func (r *slotReader) text() string {
	b := r.bytes(r.uvarint())
	s, ok := r.texts[string(b)]
	if !ok {
		s = string(b)
		r.texts[s] = s
	}
	return s
}

// slot reads one slot; last is the series of the one before.
func (r *slotReader) slot(last int) (s metric.SampleID) {
	tag := r.bytes(1)
	if tag == nil {
		return s
	}
	t := tag[0]
	s.Role, s.Integer = metric.Role(t&slotRole), t&slotInteger != 0
	if s.Role >= metric.Roles {
		r.err = fmt.Errorf("slot has role %d", t&slotRole)
	}
	// Only what is in range is believed, so a wrap cannot do harm.
	s.Series = int(int64(last) + unzigzag(r.uvarint()))
	if t&slotBound != 0 {
		s.Bound = r.float()
	}
	if t&slotText != 0 {
		s.Text = r.text()
	}
	if t&slotMore != 0 {
		more := slotReader{data: r.bytes(r.uvarint())}
		s.Lower = more.float() // what a later version appends is left unread
		if r.err == nil {
			r.err = more.err
		}
	}
	return s
}

// readSlots appends n slots of series below series to dst.
func readSlots(dst []metric.SampleID, data []byte, n, series int) ([]metric.SampleID, error) {
	if n < 1 || n > len(data)/minSlotBytes {
		return dst, fmt.Errorf("%d slots in %d bytes", n, len(data))
	}
	r := slotReader{data: data, texts: map[string]string{}}
	last := 0
	for range n {
		s := r.slot(last)
		if r.err != nil {
			return dst, r.err
		}
		if s.Series < 0 || s.Series >= series {
			return dst, fmt.Errorf("slot has series %d of %d", s.Series, series)
		}
		dst, last = append(dst, s), s.Series
	}
	if len(r.data) > 0 {
		return dst, fmt.Errorf("%d bytes are left over", len(r.data))
	}
	return dst, nil
}

// slots loads the next n slots of the target, of series below series.
func (w *walk) slots(ctx context.Context, n, series int) (slots []metric.SampleID, err error) {
	if w.r.version < slotsVersion {
		return w.slotRows(ctx, n, series)
	}
	first := len(w.dec.bits)
	if n == 0 {
		return nil, nil
	}
	if n > maxPoll-first {
		return nil, damageError{fmt.Errorf("dictionary of %d entries", n)}
	}
	err = w.r.each(ctx, nil, "slots", "WHERE id BETWEEN ? AND ? ORDER BY id", []any{key(w.target, first),
		key(w.target, first+n-1)}, func(scan func(...any) error) error {
		var id int64
		var count int
		var data []byte
		if err := scan(&id, &count, &data); err != nil {
			return err
		}
		if id != key(w.target, first+len(slots)) || count > n-len(slots) {
			return damageError{errors.New("entries of the dictionary are missing")}
		}
		data, err := w.decompress(nil, data)
		if err != nil {
			return err
		}
		if slots, err = readSlots(slots, data, count, series); err != nil {
			return damageError{err}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(slots) != n {
		return nil, damageError{errors.New("entries of the dictionary are missing")}
	}
	return slots, nil
}
