package scrape

import (
	"cmp"
	"slices"
)

// layout is how the last stored body is built: stretches of text that stand
// before, between and behind the values. The bytes are those of Decoder.body.
type layout struct {
	ok    bool
	lines []stretch
	// origins is parallel to lines: what learning the next body can start from.
	origins []origin
	sources []source // of runs of lines
	// order lists the stored lines by slot, when that is not their order in the
	// body: series that came later stand in the middle of their families.
	order   []int32
	changed []bool // by line, all false between calls
}

// stretch is the text up to a value, and that value.
type stretch struct {
	text, value int32 // lengths
	slot        int32 // noSlot when the value is not stored
}

// origin is where the series text of a line is, counted from its value, and what
// it led to.
type origin struct {
	back, length int32
	source       int32 // into layout.sources
	why          reason
}

// change is a value text that differs from the learnt one.
type change struct {
	line, value int32
	bits        uint64
}

// learn keeps the layout of a body that was decoded. A body that was cut is none
// to compare the next one with.
func (y *layout) learn(b Body, l *learner) {
	y.ok = !b.Cut
	n := len(l.places)
	y.lines, y.origins = slices.Grow(y.lines[:0], n), slices.Grow(y.origins[:0], n)
	y.sources = y.sources[:0]
	y.order, y.changed = y.order[:0], slices.Grow(y.changed[:0], n)
	at, last, sorted := int32(0), int32(noSlot), true
	for _, p := range l.places {
		y.lines = append(y.lines, stretch{p.start - at, p.end - p.start, p.slot})
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

// replay decodes a body that differs from the last one in values only, into
// d.frame. It reports false, and changes nothing, when the body differs in
// anything else or has a value that is not plainly a number.
func (d *Decoder) replay(body []byte) bool {
	y, old := &d.layout, d.body
	l := d.learn
	l.changes = l.changes[:0]
	at, was := 0, 0 // in body, in old
	for i := range y.lines {
		g := y.lines[i]
		end := at + int(g.text)
		if end > len(body) || string(body[at:end]) != string(old[was:was+int(g.text)]) {
			return false
		}
		at, was = end, was+int(g.text)
		next := was + int(g.value)
		end = at + int(g.value)
		if end < len(body) && body[end] <= ' ' && string(body[at:end]) == string(old[was:next]) {
			at, was = end, next
			continue
		}
		bits, end, ok := parseValue(body, at)
		if !ok {
			return false
		}
		l.changes = append(l.changes, change{int32(i), int32(end - at), bits})
		at, was = end, next
	}
	if string(body[at:]) != string(old[was:]) {
		return false
	}
	d.apply()
	return true
}

// apply takes over the changes of a successful replay.
func (d *Decoder) apply() {
	y, f := &d.layout, &d.frame
	f.Full, f.Slots, f.Bits = false, f.Slots[:0], f.Bits[:0]
	for _, c := range d.learn.changes {
		g := &y.lines[c.line]
		g.value = c.value
		if d.sentinels != nil && g.slot != noSlot {
			c.bits = d.unblank(g.slot, c.bits)
		}
		if g.slot == noSlot || d.bits[g.slot] == c.bits {
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
