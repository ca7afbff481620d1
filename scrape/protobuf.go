package scrape

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/scrapestat/scrapestat/metric"
)

// fieldName is the tag of MetricFamily.name.
const fieldName = 0x0a

// protoMemory is what a decoder knows of the series of protobuf bodies, by the bytes that name them.
type protoMemory struct {
	series  map[string]protoSeries
	natives map[string]*nativeSeries
	parser  messageParser
	buckets []nativeBucket
}

// protoSeries is where a sample goes.
type protoSeries struct {
	source  owner
	slot    int32
	created int32 // slot, or noSlot
	why     reason
}

// nativeSeries is where the parts of a native histogram go.
type nativeSeries struct {
	series              int32
	count, sum, created int32
	buckets             map[[2]float64]int32
	why                 reason
}

// message is one length-delimited message of a body, its length included.
type message struct{ start, end int }

// learnProtobuf decodes a protobuf body, message by message. What counts as a line of it is what its text form
// would have one for; a native histogram has one for its count, its sum and each populated bucket.
func (d *Decoder) learnProtobuf(s *metric.Snapshot, b Body) {
	defer d.parserWarning(s, &d.proto.parser.caught)
	l := d.learn
	messages := l.beginProtobuf(d, b.Bytes)
	lines := l.tally.drops[badLine].Lines
	for i, m := range messages {
		lines = l.message(d, b.Bytes[m.start:m.end], int32(i+1), lines)
		if lines > d.limits.Samples {
			s.Outcome, s.Lines = metric.TooLarge, lines
			s.Err = fmt.Sprintf("body has more than %d samples; raise --max-samples or choose families with --keep",
				d.limits.Samples)
			s.Drops = []metric.Drop{{Reason: reasonWords[sampleLimit], Lines: lines, First: reasonTexts[sampleLimit]}}
			return
		}
	}
	s.Lines = lines
	s.Drops = l.tally.list(nil)
	if len(messages) == 0 && l.page.ended {
		s.Outcome, s.Err = metric.NotPrometheus, "body is protobuf without a single metric family"
		return
	}
	s.Outcome, s.Err = l.outcome(b)
	if !s.Outcome.Stored() {
		return
	}
	d.commit(l)
	d.layout = layout{}
	if len(d.proto.series) > 2*lines+maxIdleWords {
		d.proto.series, d.proto.natives = nil, nil // most of it is gone from the body
	}
	d.message = append(d.message[:0], b.Bytes...)
	d.took(s, b, formatProtobuf)
}

// beginProtobuf begins a body and cuts it into messages.
func (l *slowDecoder) beginProtobuf(d *Decoder, body []byte) []message {
	l.gen++
	l.tally, l.places = tally{}, l.places[:0]
	l.stored, l.stamped, l.absurd, l.inexact = 0, 0, 0, 0
	l.exemplars = l.exemplars[:0]
	p := &l.page
	*p = page{format: formatProtobuf, lines: p.lines[:0], order: p.order[:0], words: p.words, ended: true}
	p.words.begin()
	d.asm.page = p
	if d.proto.series == nil {
		d.proto.series, d.proto.natives = map[string]protoSeries{}, map[string]*nativeSeries{}
	}
	var out []message
	for at := 0; at < len(body); {
		size, n := binary.Uvarint(body[at:])
		if n <= 0 || size > uint64(len(body)-at-n) {
			p.ended = false
			break
		}
		m := message{at, at + n + int(size)}
		if name := messageName(body[at+n : m.end]); len(name) > 0 {
			p.words.add(name)
			out = append(out, m)
		} else if size > 0 {
			l.tally.add(badLine, int32(len(out)+1), []byte("message without a name"))
		}
		at = m.end
	}
	return out
}

// messageName returns the name of a MetricFamily; writers put it first.
func messageName(m []byte) []byte {
	if len(m) < 2 || m[0] != fieldName {
		return nil
	}
	size, n := binary.Uvarint(m[1:])
	if n <= 0 || size > uint64(len(m)-1-n) {
		return nil
	}
	return m[1+n : 1+n+int(size)]
}

// message decodes one message and returns the number of lines with its own.
func (l *slowDecoder) message(d *Decoder, m []byte, number int32, lines int) int {
	p := &d.proto.parser
	p.reset(m)
	for lines <= d.limits.Samples {
		e := p.next(d.proto.buckets, d.limits.NativeBuckets)
		switch e.kind {
		case entryEnd:
			return lines
		case entryBad:
			_, n := binary.Uvarint(m)
			name := messageName(m[max(n, 0):])
			l.tally.add(badLine, number, name)
			return lines + 1
		case entryType:
			l.messageType(e, number)
		case entryHelp:
			l.page.words.add(e.key).help = bytes.Clone(e.text)
		case entryUnit:
			l.page.words.add(e.key).unit = bytes.Clone(e.text)
		case entrySample:
			lines += l.messageSample(d, e, number)
		case entryNative:
			d.proto.buckets = e.native.buckets
			lines += l.messageNative(d, e, number)
		}
	}
	return lines
}

func (l *slowDecoder) messageType(e messageEntry, number int32) {
	x := l.page.words.add(e.key)
	typ := e.typ
	if x.typed && x.typ != typ {
		l.page.note("type_conflict", "message "+itoa(number)+": "+quote(x.name,
			100)+" has two different types; the family is stored as unknown")
		typ = metric.Unknown
	}
	x.typed, x.typ, x.line = true, typ, number
}

// seriesName is the name in a key, which labels follow after a byte that no name has.
func seriesName(key []byte) []byte {
	if i := bytes.IndexByte(key, 0xff); i >= 0 {
		return key[:i]
	}
	return key
}

// messageSample stores one sample and returns its lines.
func (l *slowDecoder) messageSample(d *Decoder, e messageEntry, number int32) (lines int) {
	src := d.asm.source(seriesName(e.key))
	k, ok := d.proto.series[string(e.key)]
	if !ok || k.source != src {
		k = l.protoSeries(d, src)
		d.proto.series[string(e.key)] = k
		if k.why == stored {
			d.watch(k.slot)
		}
	}
	if k.why != stored {
		l.tally.add(k.why, number, printableKey(e.key))
		return 1
	}
	if l.keep(k.slot, d.unblank(k.slot, math.Float64bits(e.value))) {
		l.tally.add(duplicateSeries, number, printableKey(e.key))
	}
	if e.own.given {
		l.ownTime(d, k.slot, e.own)
	}
	if x, ok := d.proto.parser.exemplar(); ok {
		x.slot = k.slot
		l.exemplars = append(l.exemplars, x)
	}
	return 1 + l.keepCreated(d, k.created)
}

// keepCreated sets the start time of the current series, which text has a line for, and returns its lines.
func (l *slowDecoder) keepCreated(d *Decoder, slot int32) int {
	ms := d.proto.parser.createdMS()
	if slot == noSlot || ms <= 0 || l.keep(slot, math.Float64bits(float64(ms)/1000)) {
		return 0
	}
	return 1
}

// protoSeries finds or makes the slots of the parser's current sample.
func (l *slowDecoder) protoSeries(d *Decoder, src owner) protoSeries {
	k := protoSeries{source: src, slot: noSlot, created: noSlot}
	name, pairs, sound := d.proto.parser.labels(l.pairs[:0])
	l.pairs = pairs
	if k.why = checkSeries(d.limits, name, pairs, sound); k.why != stored {
		return k
	}
	if why := src.family.why; why != stored {
		k.why = why
		return k
	}
	to, name, pairs, why := d.relabelled(src, name, pairs)
	if k.why = why; k.why != stored {
		return k
	}
	if k.slot, k.why = d.asm.slot(to, name, pairs); k.why != stored {
		return k
	}
	if src.kind == kindCount || src.kind == kindValue && d.dict.families[src.family.index].Type == metric.Counter {
		k.created = l.createdSlot(d, d.dict.slots[k.slot].series)
	}
	return k
}

// createdSlot makes the slot of a start time when the server sends one.
func (l *slowDecoder) createdSlot(d *Decoder, series int32) int32 {
	if d.proto.parser.createdMS() <= 0 {
		return noSlot
	}
	slot, why := d.dict.slotIn(series, metric.SampleID{Role: metric.RoleCreated})
	if why != stored {
		return noSlot
	}
	return slot
}

// messageNative stores one native histogram. Limits cost it as a whole: a part of it would be a wrong distribution.
func (l *slowDecoder) messageNative(d *Decoder, e messageEntry, number int32) (lines int) {
	lines = 2 + len(e.native.buckets)
	h := d.proto.natives[string(e.key)]
	if h == nil {
		h = l.nativeSeries(d, e.key)
		d.proto.natives[string(e.key)] = h
	}
	why := h.why
	if why == stored && len(e.native.buckets) > d.limits.NativeBuckets {
		why = nativeLimit
	}
	if why == stored {
		why = d.nativeSlots(h, e.native.buckets)
	}
	if why != stored {
		l.tally.add(why, number, printableKey(e.key))
		l.tally.drops[why].Lines += lines - 1
		return lines
	}
	again := l.keep(h.count, math.Float64bits(e.native.count))
	l.keep(h.sum, math.Float64bits(e.native.sum))
	for _, b := range e.native.buckets {
		l.keep(h.buckets[[2]float64{b.lower, b.upper}], math.Float64bits(b.count))
	}
	if again {
		l.tally.add(duplicateSeries, number, printableKey(e.key))
		l.tally.drops[duplicateSeries].Lines += lines - 1
	}
	if e.own.given {
		l.ownTime(d, h.count, e.own)
	}
	l.nativeExemplars(d, e, h)
	return lines + l.keepCreated(d, h.created)
}

// nativeExemplars notes the exemplars of a histogram under the buckets they are in.
func (l *slowDecoder) nativeExemplars(d *Decoder, e messageEntry, h *nativeSeries) {
	for range 2 * len(e.native.buckets) {
		x, ok := d.proto.parser.exemplar()
		if !ok {
			break
		}
		for _, b := range e.native.buckets {
			if b.lower < x.value && x.value <= b.upper || b.lower == b.upper && x.value == b.upper {
				x.slot = h.buckets[[2]float64{b.lower, b.upper}]
				l.exemplars = append(l.exemplars, x)
				break
			}
		}
	}
}

// nativeSeries finds or makes the series of the parser's current histogram.
func (l *slowDecoder) nativeSeries(d *Decoder, key []byte) *nativeSeries {
	h := &nativeSeries{created: noSlot, buckets: map[[2]float64]int32{}}
	name, pairs, sound := d.proto.parser.labels(l.pairs[:0])
	l.pairs = pairs
	if h.why = checkSeries(d.limits, name, pairs, sound); h.why != stored {
		return h
	}
	family := d.asm.ofWord(l.page.words.add(seriesName(key)))
	if why := family.why; why != stored {
		h.why = why
		return h
	}
	to, _, pairs, why := d.relabelled(owner{family, kindValue}, name, pairs)
	if h.why = why; h.why != stored {
		return h
	}
	if h.count, h.why = d.dict.slot(to.family.index, pairs, metric.SampleID{Role: metric.RoleCount}); h.why != stored {
		return h
	}
	h.series = d.dict.slots[h.count].series
	if h.sum, h.why = d.dict.slotIn(h.series, metric.SampleID{Role: metric.RoleSum}); h.why == stored {
		h.created = l.createdSlot(d, h.series)
	}
	return h
}

// nativeSlots makes the slots that buckets lack. They come and go, so a series
// may have had more than one poll shows: that is bounded as well.
func (d *Decoder) nativeSlots(h *nativeSeries, buckets []nativeBucket) reason {
	for _, b := range buckets {
		key := [2]float64{b.lower + 0, b.upper + 0}
		if _, ok := h.buckets[key]; ok {
			continue
		}
		if len(h.buckets) >= 2*d.limits.NativeBuckets {
			return nativeLimit
		}
		slot, why := d.dict.native(h.series, key[0], key[1])
		if why != stored {
			return why
		}
		h.buckets[key] = slot
	}
	return stored
}

// printableKey makes a series key readable: name and values with blanks between.
func printableKey(key []byte) []byte {
	return bytes.ReplaceAll(key[:min(len(key), 160)], []byte{0xff}, []byte{' '})
}
