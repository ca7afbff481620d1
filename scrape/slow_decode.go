package scrape

import (
	"math"
	"slices"
	"unicode/utf8"

	"github.com/scrapestat/scrapestat/metric"
)

// slowDecoder is the slow way: it has each sample line parsed. All it holds is
// scratch, so that decoders that take turns can share one.
type slowDecoder struct {
	memory  memory
	page    page
	tally   tally
	parser  sampleParser
	sibling sibling

	gen   uint32   // number of the body, from 1
	seen  []uint32 // by slot: the body it was last seen in
	bits  []uint64 // by slot: the value in that body
	place []int32  // by slot: its line in places

	places  []place
	changes []change // of a replay
	values  []byte   // cells of a replayed body
	stored  int
	stamped int // samples with a time of their own
	absurd  int // of these, times that are none
	inexact int // whole numbers that a float64 does not hold

	chunk  []byte // sample lines for textparse
	starts []int32
	single []byte // one repaired line

	lastName   []byte // name of the line before, and where it belongs
	lastSource owner
	pairs      []metric.Label

	exemplars []rawExemplar // of this body
}

// rawExemplar is an exemplar of a slot as a body shows it. Its labels are those of the parser.
type rawExemplar struct {
	slot   int32
	labels []metric.Label
	value  float64
	atNS   int64
}

// place is a parsed line, for the layout.
type place struct {
	start, end int32 // of the value text in the body
	slot       int32 // noSlot when it is not stored
	series     int32 // start of the series text
	length     int32 // of the series text
	source     owner
	why        reason
}

// noSlot is the slot of a line that was parsed and is not stored.
const noSlot = -1

// chunkBytes bounds what one parser sees, and so the size of its error texts.
const chunkBytes = 64 << 10

// run decodes the lines of l.page.
func (l *slowDecoder) run(d *Decoder, b Body) {
	l.gen++
	l.sibling.before = l.sibling.before[:0]
	l.tally = tally{}
	l.places = l.places[:0]
	l.stored, l.stamped, l.absurd, l.inexact = 0, 0, 0, 0
	l.exemplars = l.exemplars[:0]
	d.asm.begin(&l.page, b.Bytes)
	lines := l.page.lines
	for i := range lines[l.page.afterAt:] {
		x := lines[l.page.afterAt+i]
		l.tally.add(afterEOF, x.number, b.Bytes[x.start:x.end])
	}
	lines = lines[:l.page.afterAt]
	if n := len(lines); n > 0 && l.page.open && l.page.afterAt == len(l.page.lines) {
		// The last line has no line feed: nobody knows what its value was to be.
		x := lines[n-1]
		l.tally.add(truncatedLine, x.number, b.Bytes[x.start:x.end])
		lines = lines[:n-1]
	}
	l.lastName = l.lastName[:0]
	l.memory.recall(&d.layout)
	if l.chunk == nil {
		l.chunk = make([]byte, 0, min(chunkBytes, len(b.Bytes)+1)+len(eofLine))
		l.places = make([]place, 0, len(lines))
	}
	if len(lines) > cap(l.seen) {
		l.seen, l.bits, l.place = slices.Grow(l.seen, len(lines)), slices.Grow(l.bits, len(lines)),
			slices.Grow(l.place, len(lines))
	}
	d.dict.reserve(len(lines))
	for len(lines) > 0 {
		n := l.fill(b.Bytes, lines)
		l.parse(d, b.Bytes, lines[:n])
		lines = lines[n:]
	}
	for _, p := range l.places {
		if p.slot != noSlot && inexact(b.Bytes[p.start:p.end], l.bits[p.slot]) {
			l.inexact++
		}
	}
	for _, x := range l.page.order {
		x.help, x.unit = nil, nil // or they would keep the body from being freed
	}
}

// fill copies lines into the chunk until it is full, and returns how many.
func (l *slowDecoder) fill(body []byte, lines []line) int {
	l.chunk, l.starts = l.chunk[:0], l.starts[:0]
	n := 0
	for ; n < len(lines); n++ {
		text := body[lines[n].start:lines[n].end]
		if n > 0 && len(l.chunk)+len(text) > chunkBytes {
			break
		}
		l.starts = append(l.starts, int32(len(l.chunk)))
		l.chunk = append(append(l.chunk, text...), '\n')
	}
	end := len(l.chunk)
	// Room for the end of OpenMetrics, or the byte that textparse appends.
	l.chunk = append(l.chunk, eofLine...)
	if l.page.format != formatOpenMetrics {
		l.chunk = l.chunk[:end]
	}
	return n
}

// parse decodes the lines of the chunk. A parser that meets a bad line is of no
// further use: a new one goes on behind that line.
func (l *slowDecoder) parse(d *Decoder, body []byte, lines []line) {
	for i := 0; i < len(lines); i++ {
		base := int(l.starts[i])
		l.parser.reset(l.chunk[base:], l.page.format)
		for ; i < len(lines); i++ {
			x := lines[i]
			start, n, value, own, ok := l.parser.next()
			// A sample that begins elsewhere, or does not end with its line, means
			// that the parser went over a line end without saying so.
			if !ok || base+start != int(l.starts[i]) || n > int(x.end-x.start) {
				break
			}
			l.sample(d, body, x, n, value)
			if own.given {
				l.ownTime(d, l.places[len(l.places)-1].slot, own)
			}
			if l.page.format == formatOpenMetrics {
				l.exemplarOf(l.places[len(l.places)-1].slot)
			}
		}
		if i < len(lines) {
			l.retryRepaired(d, body, lines[i])
		}
	}
}

// ownTime keeps the time that the server gave the sample of a slot, in a slot of
// its series. What is no time is counted and left out: the sample is as good.
func (l *slowDecoder) ownTime(d *Decoder, slot int32, own ownTime) {
	l.stamped++
	if !own.sound() {
		l.absurd++
		return
	}
	if slot == noSlot {
		return
	}
	series := d.dict.slots[slot].series
	if more := len(d.dict.series) - len(d.ownTimes); more > 0 {
		d.ownTimes = append(d.ownTimes, make([]int32, more)...)
	}
	at := &d.ownTimes[series]
	if *at == 0 {
		*at = noSlot
		if k, why := d.dict.slotIn(series, metric.SampleID{Role: metric.RoleSampleTime}); why == stored {
			*at = k + 1
		}
	}
	if *at > 0 {
		l.keep(*at-1, math.Float64bits(math.Trunc(own.ms)))
	}
}

// retryRepaired tries a line that textparse refused once more: repaired, or as classic
// text when the body is OpenMetrics.
func (l *slowDecoder) retryRepaired(d *Decoder, body []byte, x line) {
	text := body[x.start:x.end]
	fixed, own, ok := repair(l.single[:0], text)
	if l.page.format == formatOpenMetrics {
		own.ms *= 1000 // it has seconds
		if !ok {
			fixed, own, ok = append(append(l.single[:0], text...), '\n'), ownTime{}, true
		}
	}
	if ok {
		l.single = append(fixed, 0)[:len(fixed)]
		l.parser.reset(l.single, formatText)
		start, n, value, read, parsed := l.parser.next()
		if parsed && start == 0 && n <= len(text) {
			l.sample(d, body, x, n, value)
			if read.given {
				own = read
			}
			if own.given {
				l.ownTime(d, l.places[len(l.places)-1].slot, own)
			}
			return
		}
	}
	why := badLine
	if !utf8.Valid(text) {
		why = badUTF8
	}
	l.tally.add(why, x.number, text)
}
