package scrape

import (
	"bytes"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/scrapestat/scrapestat/metric"
)

// sample stores one parsed line, whose series text is n bytes long. What is told
// about it names the series only: a replay repeats it with other values.
func (l *slowDecoder) sample(d *Decoder, body []byte, x line, n int, value float64) {
	text := body[x.start:x.end]
	start := n
	for start < len(text) && (text[start] == ' ' || text[start] == '\t') {
		start++
	}
	p := place{start: x.start + int32(start), end: x.start + int32(tokenEnd(text, start)), series: x.start,
		length: int32(n)}
	p.slot, p.why, p.source = l.slotOf(d, text[:n])
	if p.why == stored {
		if k := len(d.dict.slots); k > d.watched { // slots are made in order
			for ; d.watched < k; d.watched++ {
				d.watch(int32(d.watched))
			}
		}
		l.store(p.slot, d.unblank(p.slot, math.Float64bits(value)), x.number, text[:n])
	} else {
		l.tally.add(p.why, x.number, text[:n])
	}
	l.places = append(l.places, p)
}

// store sets a slot. A slot that was set before in this body is a duplicate: the
// later line counts, as AIPerf has it, and the earlier one is dropped.
func (l *slowDecoder) store(slot int32, bits uint64, number int32, series []byte) {
	if l.keep(slot, bits) {
		l.places[l.place[slot]].slot = noSlot
		l.tally.add(duplicateSeries, number, series)
	}
	l.place[slot] = int32(len(l.places))
}

// keep sets a slot and reports whether this body had set it before.
func (l *slowDecoder) keep(slot int32, bits uint64) (again bool) {
	for int(slot) >= len(l.seen) {
		l.seen, l.bits, l.place = append(l.seen, 0), append(l.bits, 0), append(l.place, 0)
	}
	again = l.seen[slot] == l.gen
	if !again {
		l.stored++
	}
	l.seen[slot], l.bits[slot] = l.gen, bits
	return again
}

// slotOf returns the slot of a raw series text, the current one of the parser. What the last body said about that text
// holds as long as its name still means the same. Names in braces are not looked for: they are too rare.
func (l *slowDecoder) slotOf(d *Decoder, raw []byte) (int32, reason, owner) {
	if n := nameEnd(raw); n > 0 {
		src := l.sourceOf(d, raw[:n])
		if why := src.family.why; why != stored {
			return noSlot, why, src
		}
		if k := l.memory.find(raw); k != nil && k.source == src && !k.replaced() {
			return k.slot, k.why, src
		}
	}
	return l.newSeries(d, raw)
}

// sourceOf remembers the answer for the line before, which mostly has the same name.
func (l *slowDecoder) sourceOf(d *Decoder, name []byte) owner {
	if !bytes.Equal(name, l.lastName) {
		l.lastName, l.lastSource = append(l.lastName[:0], name...), d.asm.source(name)
	}
	return l.lastSource
}

// maxSeriesText bounds the text of a series: the library of labels holds no longer ones.
const maxSeriesText = 1<<24 - 1

// newSeries finds or makes the slot of the parser's current sample.
func (l *slowDecoder) newSeries(d *Decoder, raw []byte) (int32, reason, owner) {
	if n := nameEnd(raw); n > 0 && l.lastSource.kind == kindBucket {
		if text, ok := l.sibling.match(raw, l.lastSource); ok {
			b := d.dict.bound(text)
			if !b.ok {
				return noSlot, badBound, l.lastSource
			}
			slot, why := d.dict.slotIn(l.sibling.series, metric.SampleID{Role: metric.RoleBucket, Bound: b.value, Text: b.text})
			return slot, why, l.lastSource
		}
	}
	if len(raw) > maxSeriesText {
		return noSlot, valueLimit, l.lastSource
	}
	name, pairs, sound := l.parser.labels(l.pairs[:0])
	l.pairs = pairs
	pairs = stableLabels(name, pairs)
	var src owner
	if name != "" {
		src = d.asm.source([]byte(name))
	}
	if why := checkSeries(d.limits, name, pairs, sound); why != stored {
		return noSlot, why, src
	}
	if why := src.family.why; why != stored {
		return noSlot, why, src
	}
	le := ""
	for i := range pairs {
		if pairs[i].Name == "le" {
			le = pairs[i].Value // slot cuts it out of pairs
		}
	}
	to, name, pairs, why := d.relabelled(src, name, pairs)
	if why != stored {
		return noSlot, why, src
	}
	slot, why := d.asm.slot(to, name, pairs)
	if to.kind == kindBucket && src.kind == kindBucket && why == stored {
		l.sibling.set(raw, src, d.dict.slots[slot].series, le)
	}
	return slot, why, src
}

// checkSeries reports whether a series keeps the limits.
func checkSeries(lim Limits, name string, pairs []metric.Label, sound bool) reason {
	switch {
	case !sound:
		return duplicateLabel
	case name == "":
		return badLine
	case len(name) > lim.NameLength:
		return nameLimit
	case !utf8.ValidString(name):
		return badUTF8
	case len(pairs) > lim.Labels:
		return labelLimit
	}
	for _, p := range pairs {
		switch {
		case len(p.Name) > lim.NameLength:
			return nameLimit
		case len(p.Value) > lim.ValueLength:
			return valueLimit
		case !utf8.ValidString(p.Name):
			return badUTF8
		}
	}
	return stored
}

// outcome returns how the decoding of a body ended.
func (l *slowDecoder) outcome(b Body) (metric.Outcome, string) {
	p := &l.page
	first := ""
	dropped := 0
	for r := range l.tally.drops {
		if n := l.tally.drops[r].Lines; n > 0 && reason(r) != filtered {
			if dropped += n; first == "" {
				first = l.tally.drops[r].First
			}
		}
	}
	foreign := l.tally.drops[badLine].Lines + l.tally.drops[badUTF8].Lines
	cut := b.Cut || !p.ended
	switch {
	case cut && l.stored == 0 && (dropped > 0 || len(p.order) == 0):
		return metric.Truncated, "body was cut short and nothing of it is usable"
	case l.stored == 0 && dropped > 0 && dropped == foreign && len(p.order) == 0:
		return metric.NotPrometheus, metric.Clean("body is no exposition text: "+first, 300)
	case b.Cut:
		return metric.Partial, "body broke off before its announced end"
	case cut:
		return metric.Partial, truncationText(p.format)
	case dropped > 0:
		return metric.Partial, metric.Clean(strings.TrimSpace("some lines were not stored: "+first), 300)
	}
	return metric.OK, ""
}
