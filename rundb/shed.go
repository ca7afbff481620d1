package rundb

import (
	"maps"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// join adds a batch that follows at once.
func (b *batch) join(o *batch) {
	b.number, b.polls, b.bytes = o.number, b.polls+o.polls, b.bytes+o.bytes
	b.tail = append(b.tail, o.tail...)
	b.seal = append(b.seal, o.seal...)
	b.growth = append(b.growth, o.growth...)
	b.targets = append(b.targets, o.targets...)
	b.incidents = append(b.incidents, o.incidents...)
	b.bodies = append(b.bodies, o.bodies...)
	b.observations = append(b.observations, o.observations...)
	b.marks = append(b.marks, o.marks...)
	b.warnings = append(b.warnings, o.warnings...)
	b.lives = append(b.lives, o.lives...)
	if b.exemplars == nil {
		b.exemplars = o.exemplars
	}
	maps.Copy(b.exemplars, o.exemplars)
}

// shed drops the samples of the oldest polls that wait, as long as more waits than is
// allowed.
func (w *Writer) shed() {
	waits := 0
	if w.o.Beside != nil {
		waits = int(w.o.Beside.Load())
	}
	for _, b := range w.held {
		waits += b.bytes
	}
	for _, b := range w.held {
		if waits <= w.o.MaxPending {
			return
		}
		if b.whole && !b.stripped {
			b.stripped = true
			waits -= b.bytes
			w.lost += b.strip(w.written)
			waits += b.bytes
		}
	}
}

// strip drops all of its polls but when they were and what came of them, which of those with samples is Unwritten,
// and returns their number. It keeps blocks of which the file has polls already, those up to the batch of that
// number, as it would lose these otherwise; and dictionaries, as later polls need them.
func (b *batch) strip(committed int64) int {
	kept := map[int]int{} // by target: the end of such a block
	for _, g := range b.seal {
		stored := g.stored
		if g.tail <= committed || !g.strip() {
			kept[g.target] = g.first + g.polls
			continue
		}
		b.lost += stored
	}
	stripped := func(target, poll int) bool { return poll >= kept[target] }
	byKey := func(k int64) bool { return stripped(int(k>>32), int(k&maxPoll)) }
	b.incidents = slices.DeleteFunc(b.incidents, func(r incidentRow) bool { return byKey(r.key) })
	b.bodies = slices.DeleteFunc(b.bodies, func(r bodyRow) bool { return byKey(r.key) })
	b.observations = slices.DeleteFunc(b.observations, func(o observations) bool { return stripped(o.target, o.poll) })
	b.bytes = 256 * (len(b.incidents) + len(b.exemplars))
	for _, g := range b.seal {
		b.bytes += g.size()
	}
	for i := range b.growth {
		b.bytes += b.growth[i].size()
	}
	for i := range b.bodies {
		b.bytes += len(b.bodies[i].packed)
	}
	return b.lost
}

// strip makes a segment one of polls without samples.
func (g *segment) strip() bool {
	c := &cursor{sections: g.sections}
	var from, to pollState
	var head []byte
	for range g.polls {
		var s metric.Snapshot
		if _, _, err := from.readPoll(c, &s); err != nil {
			return false
		}
		if s.Outcome.Stored() {
			c.uvarint(&c.head) // its entries
			s.Outcome = metric.Unwritten
		}
		s.Duplicate = false
		head = to.appendPoll(head, &s, 0)
	}
	g.sections, g.stored = sections{head: slices.Clip(head)}, 0
	return true
}

// clip gives back the room that a segment has left.
func (g *segment) clip() {
	for _, s := range []*[]byte{&g.head, &g.op, &g.num, &g.bits} {
		*s = slices.Clone(*s)
	}
}
