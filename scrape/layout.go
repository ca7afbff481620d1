package scrape

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"unique"
)

// layout is how the last stored body is built: stretches of text that stand before, between and behind the values.
type layout struct {
	ok bool
	// text is all stretches, one after the other. Replicas of a server differ in their values only, so they share one
	// text: that is less memory, and what the comparison with one target's body brings into the cache serves the next.
	text   unique.Handle[string]
	values []byte // each in a cell of whole words
	size   int    // of the body
	lines  []stretch
	// origins is parallel to lines: what learning the next body can start from.
	origins []origin
	sources []owner // of runs of lines
	// order lists the stored lines by slot, when that is not their order in the
	// body: series that came later stand in the middle of their families.
	order   []int32
	changed []bool // by line, all false between calls
}

// stretch is the text up to a value, and that value.
type stretch struct {
	text, slot  int32  // length; noSlot when the value is not stored
	value, cell uint16 // length; room in layout.values
}

// A value text longer than maxValue fits no cell; such a body is learnt each time.
const (
	wordBytes = 8
	maxValue  = 1 << 15
)

// origin is where the series text of a line is, counted from its value, and what it led to.
type origin struct {
	back, length int32
	source       int32 // into layout.sources
	why          reason
}

// change is a value text that differs from the learnt one.
type change struct {
	line   int32
	at, to int32 // in the body
	was    int32 // its cell in layout.values
	bits   uint64
}

// learn keeps the layout of a body that was decoded. A body that was cut is none to compare the next one with.
func (y *layout) learn(b Body, l *slowDecoder) {
	y.ok, y.size = !b.Cut, len(b.Bytes)
	n := len(l.places)
	y.lines, y.origins = slices.Grow(y.lines[:0], n), slices.Grow(y.origins[:0], n)
	y.sources = y.sources[:0]
	y.keepText(b.Bytes, l.places)
	y.values = y.values[:0]
	y.order, y.changed = y.order[:0], slices.Grow(y.changed[:0], n)
	at, last, sorted := int32(0), int32(noSlot), true
	for _, p := range l.places {
		value := b.Bytes[p.start:p.end]
		if len(value) > maxValue {
			y.ok, value = false, nil
		}
		y.ok = y.ok && apart(b.Bytes, p.start)
		var cell uint16
		y.values, cell = appendCell(y.values, value)
		y.lines = append(y.lines, stretch{p.start - at, p.slot, uint16(len(value)), cell})
		if k := len(y.sources); k == 0 || y.sources[k-1] != p.source {
			y.sources = append(y.sources, p.source)
		}
		y.origins = append(y.origins, origin{p.start - p.series, p.length, int32(len(y.sources) - 1), p.why})
		y.changed = append(y.changed, false)
		at = p.end
		if p.slot != noSlot {
			sorted = sorted && p.slot > last
			last = p.slot
		}
	}
	if sorted {
		return
	}
	for i := range y.lines {
		if y.lines[i].slot != noSlot {
			y.order = append(y.order, int32(i))
		}
	}
	slices.SortFunc(y.order, func(a, b int32) int { return cmp.Compare(y.lines[a].slot, y.lines[b].slot) })
}

// apart reports whether the value that begins there could not be read as the end of the name before it. The
// parser takes "a+1 5" for the value +1 at the time 5; "a1 5" is another series.
func apart(body []byte, start int32) bool {
	return start > 0 && (body[start-1] == ' ' || body[start-1] == '\t' || body[start-1] == '}')
}

// keepText takes all of a body but its values over.
func (y *layout) keepText(body []byte, places []place) {
	n := len(body)
	for _, p := range places {
		n -= int(p.end - p.start)
	}
	var text strings.Builder
	text.Grow(n)
	at := int32(0)
	for _, p := range places {
		text.Write(body[at:p.start])
		at = p.end
	}
	text.Write(body[at:])
	y.text = unique.Make(text.String())
}

// stretches returns the text, empty before there was a body.
func (y *layout) stretches() string {
	if y.text == (unique.Handle[string]{}) {
		return ""
	}
	return y.text.Value()
}

// replay decodes a body that differs from the last one in values only, into d.frame. It reports false, and
// changes nothing, when the body differs in anything else or has a value that is not plainly a number.
func (d *Decoder) replay(body []byte) bool {
	y, l := &d.layout, d.learn
	text, values := y.text.Value(), y.values
	l.changes = l.changes[:0]
	at, was := 0, 0 // in body, in values
	for i := range y.lines {
		g := y.lines[i]
		n, end := int(g.text), at+int(g.text)
		if end > len(body) || string(body[at:end]) != text[:n] {
			return false
		}
		at, text = end, text[n:]
		next := was + int(g.cell)
		end = at + int(g.value)
		if end < len(body) && body[end] <= ' ' && same(body[at:], values[was:], int(g.value)) {
			at, was = end, next
			continue
		}
		bits, end, ok := parseValue(body, at)
		if !ok || end-at > maxValue {
			return false
		}
		l.changes = append(l.changes, change{int32(i), int32(at), int32(end), int32(was), bits})
		at, was = end, next
	}
	if string(body[at:]) != text {
		return false
	}
	d.apply(body)
	return true
}

// same compares the first n bytes of a body with those of a cell: words where that
// is possible, as values that stay are mostly short.
func same(body, cell []byte, n int) bool {
	if n <= wordBytes && len(body) >= wordBytes {
		return (binary.LittleEndian.Uint64(body)^binary.LittleEndian.Uint64(cell))<<(8*(wordBytes-n)) == 0
	}
	return string(body[:n]) == string(cell[:n])
}

// appendCell appends a value in a cell of its own, and returns its size.
func appendCell(values, value []byte) ([]byte, uint16) {
	cell := max(1, (len(value)+wordBytes-1)/wordBytes) * wordBytes
	values = append(values, value...)
	for range cell - len(value) {
		values = append(values, 0)
	}
	return values, uint16(cell)
}

// renew puts the changed values of body into their cells.
func (y *layout) renew(l *slowDecoder, body []byte) {
	y.size = len(body)
	for _, c := range l.changes {
		g, n := &y.lines[c.line], int(c.to-c.at)
		cell := y.values[c.was:]
		switch {
		case n > int(g.cell):
			y.widen(l, body)
			return
		case n <= wordBytes && int(c.at)+wordBytes <= len(body):
			binary.LittleEndian.PutUint64(cell, binary.LittleEndian.Uint64(body[c.at:])) // what follows it does no harm
		default:
			copy(cell, body[c.at:c.to])
		}
		g.value = uint16(n)
	}
}

// widen does what renew does when a value has outgrown its cell.
func (y *layout) widen(l *slowDecoder, body []byte) {
	l.values = l.values[:0]
	was, k := 0, 0
	for i := range y.lines {
		g := &y.lines[i]
		value := y.values[was : was+int(g.value)]
		was += int(g.cell)
		if k < len(l.changes) && int(l.changes[k].line) == i {
			value = body[l.changes[k].at:l.changes[k].to]
			k++
		}
		g.value = uint16(len(value))
		l.values, g.cell = appendCell(l.values, value)
	}
	y.values = append(y.values[:0], l.values...)
}

// apply takes over the changes of a successful replay.
func (d *Decoder) apply(body []byte) {
	y, f := &d.layout, &d.frame
	y.renew(d.learn, body)
	d.learn.inexact = 0
	f.Full, f.Slots, f.Bits = false, f.Slots[:0], f.Bits[:0]
	for _, c := range d.learn.changes {
		g := &y.lines[c.line]
		if d.sentinels != nil && g.slot != noSlot {
			c.bits = d.unblank(g.slot, c.bits)
		}
		if g.slot == noSlot {
			continue
		}
		if inexact(body[c.at:c.to], c.bits) {
			d.learn.inexact++
		}
		if d.bits[g.slot] == c.bits {
			continue
		}
		d.bits[g.slot] = c.bits
		if len(y.order) > 0 {
			y.changed[c.line] = true
			continue
		}
		f.Slots = append(f.Slots, uint32(g.slot))
		f.Bits = append(f.Bits, c.bits)
	}
	for _, i := range y.order {
		if y.changed[i] {
			y.changed[i] = false
			slot := y.lines[i].slot
			f.Slots = append(f.Slots, uint32(slot))
			f.Bits = append(f.Bits, d.bits[slot])
		}
	}
}
