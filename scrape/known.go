package scrape

import (
	"hash/maphash"
	"slices"
)

// known is a line of the last stored body: what its series text led to.
type known struct {
	start, end int32 // of the series text, in layout.text
	source     owner
	slot       int32
	why        reason
}

// replaced reports whether a later line of that body was of the same series: the slot of this one is not on record.
func (k *known) replaced() bool { return k.why == stored && k.slot == noSlot }

// memory finds lines of the last stored body by their series text. Bodies mostly keep their order, so the line
// after the last hit is looked at first; an index is made only when that fails. Keeping the texts in a map
// instead would cost more memory per target than all the rest.
type memory struct {
	text    string
	lines   []known
	next    int // the line expected next
	index   map[uint64]int32
	indexed bool
	seed    maphash.Seed
}

// recall fills the memory from a layout.
func (m *memory) recall(y *layout) {
	m.text, m.lines, m.next, m.indexed = y.stretches(), slices.Grow(m.lines[:0], len(y.lines)), 0, false
	at := int32(0)
	for i := range y.lines {
		g, o := &y.lines[i], &y.origins[i]
		at += g.text
		m.lines = append(m.lines, known{at - o.back, at - o.back + o.length, y.sources[o.source], g.slot, o.why})
	}
}

// find returns the line with that series text, or nil.
func (m *memory) find(raw []byte) *known {
	if m.next < len(m.lines) && m.equals(m.next, raw) {
		m.next++
		return &m.lines[m.next-1]
	}
	if !m.indexed {
		m.makeIndex()
	}
	i, ok := m.index[maphash.Bytes(m.seed, raw)]
	if !ok || !m.equals(int(i), raw) {
		return nil
	}
	m.next = int(i) + 1
	return &m.lines[i]
}

func (m *memory) equals(i int, raw []byte) bool {
	return m.text[m.lines[i].start:m.lines[i].end] == string(raw)
}

func (m *memory) makeIndex() {
	if m.index == nil {
		m.index, m.seed = map[uint64]int32{}, maphash.MakeSeed()
	}
	clear(m.index)
	for i := range m.lines {
		m.index[maphash.String(m.seed, m.text[m.lines[i].start:m.lines[i].end])] = int32(i)
	}
	m.indexed = true
}
