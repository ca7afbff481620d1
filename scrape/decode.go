package scrape

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// Decoder decodes the bodies of one target, one after the other. It owns the dictionary of the target and knows
// what its consumer has been told. It is not safe for concurrent use.
type Decoder struct {
	limits Limits
	dict   *dictionary
	asm    *assembler
	learn  *slowDecoder
	layout layout

	bits    []uint64 // by slot: the value last stored
	present []uint32 // slots of the last stored poll, ascending

	relabel func(name string, labels metric.Labels) (string, metric.Labels, bool)

	proto     protoMemory
	sentinel  func(family string) func(float64) bool
	blankOf   []func(float64) bool         // by family: of sentinel
	sentinels map[int32]func(float64) bool // slots that may hold sentinels
	watched   int                          // slots that were looked at
	blanks    int                          // such values so far
	exemplars map[int32]metric.Exemplar    // by slot: those the consumer was told
	ownTimes  []int32                      // by series: one more than the slot of its time; 0 is none yet, noSlot refused

	any     bool   // a poll was stored
	message []byte // the last stored body when it is protobuf, which has no layout
	format  format
	cut     bool
	outcome metric.Outcome
	err     string
	lines   int
	drops   []metric.Drop

	frame metric.Delta
	said  map[string]bool // codes of warnings that need saying once
}

// NewDecoder returns a decoder with an empty dictionary. Of the options it uses Limits, Keep, Drop
// and Sentinel.
func NewDecoder(o Options) (*Decoder, error) {
	o = o.WithDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	return newDecoder(o), nil
}

func newDecoder(o Options) *Decoder {
	dict := newDictionary(o.Limits)
	return &Decoder{limits: o.Limits, dict: dict, asm: newAssembler(dict, o.Keep, o.Drop), sentinel: o.Sentinel,
		said: map[string]bool{}, learn: new(slowDecoder)}
}

// Body is what a target answered.
type Body struct {
	Bytes       []byte
	ContentType string
	// Cut is set when the body broke off before its announced end.
	Cut bool
}

// Decode decodes a body into s: outcome, lines, drops, warnings, growth and frame, and Body, which is b.Bytes,
// and BodyBytes. The decoder keeps nothing of b.Bytes. What s receives stays valid until the next call.
//
// Decode never fails: a body that is no exposition ends in an outcome. So does a
// panic: the error begins with metric.InternalError then.
func (d *Decoder) Decode(s *metric.Snapshot, b Body) {
	s.Body, s.BodyBytes = b.Bytes, int64(len(b.Bytes))
	s.DictDelta, s.Delta, s.Exemplars = metric.DictDelta{}, metric.Delta{}, nil
	d.dict.release()
	sent := d.dict.sent
	defer func() {
		if p := recover(); p != nil {
			d.failed(s, p)
			d.dict.sent, d.dict.told = sent, false // or the consumer would miss what was found
		}
	}()
	kind, problem := sniff(b.Bytes, b.ContentType)
	if problem != "" {
		s.Outcome, s.Err = metric.NotPrometheus, problem
		return
	}
	d.contentWarning(s, b, kind)
	switch {
	case d.any && !b.Cut && !d.cut && kind == d.format && d.repeats(s, b.Bytes):
		// But for values all that was said about the last body holds for this one.
		s.Outcome, s.Err, s.Lines, s.Drops = d.outcome, d.err, d.lines, d.drops
		d.warnOfValues(s)
	case kind == formatProtobuf:
		d.learnProtobuf(s, b)
	default:
		d.learnBody(s, b, kind)
	}
}

// failed makes an outcome of a panic of ours. The next body is stored as if it were
// the first: nobody knows how much of this one is in what it would be compared with.
func (d *Decoder) failed(s *metric.Snapshot, p any) {
	d.layout.ok, d.any = false, false
	d.learn.parser.caught.take()
	s.Outcome, s.Err = metric.NotPrometheus, metric.Clean(fmt.Sprint(metric.InternalError, ": ", p), 300)
	s.Lines, s.Drops, s.Duplicate = 0, nil, false
	s.DictDelta, s.Delta, s.Exemplars = metric.DictDelta{}, metric.Delta{}, nil
}

// parserWarning warns of a parser of Prometheus that panicked at the body.
func (d *Decoder) parserWarning(s *metric.Snapshot, c *caught) {
	if text := c.take(); text != "" {
		d.once(s, "parser_panic", "the parser of Prometheus panicked ("+text+"); what it was reading was dropped as no "+
			"exposition line")
	}
}

// repeats decodes a body that has the layout of the last stored one.
func (d *Decoder) repeats(s *metric.Snapshot, body []byte) bool {
	if d.format == formatProtobuf {
		s.Duplicate = bytes.Equal(body, d.message)
		return s.Duplicate
	}
	if !d.layout.ok || !d.replay(body) {
		return false
	}
	if s.Duplicate = len(d.learn.changes) == 0; !s.Duplicate {
		s.Delta = d.frame
	}
	return true
}

// learnBody decodes a body line by line.
func (d *Decoder) learnBody(s *metric.Snapshot, b Body, f format) {
	l := d.learn
	l.page.read(b.Bytes, f, d.limits.Samples)
	s.Lines = len(l.page.lines)
	if n := l.page.tooMany; n > 0 {
		s.Outcome, s.Lines = metric.TooLarge, n
		s.Err = fmt.Sprintf("body has %d samples, more than %d; raise --max-samples or choose families with --keep", n,
			d.limits.Samples)
		s.Drops = []metric.Drop{{Reason: reasonWords[sampleLimit], Lines: n, First: reasonTexts[sampleLimit]}}
		return
	}
	l.run(d, b)
	d.parserWarning(s, &l.parser.caught)
	l.memory.text = ""
	s.Drops = l.tally.list(nil)
	s.Outcome, s.Err = l.outcome(b)
	if !s.Outcome.Stored() {
		return
	}
	d.commit(l)
	d.layout.learn(b, l)
	d.message = nil
	d.took(s, b, f)
}

// took delivers what was learnt of a body, which becomes the last stored one.
func (d *Decoder) took(s *metric.Snapshot, b Body, f format) {
	l := d.learn
	if d.any && f != d.format {
		d.once(s, "format_changed", "the target changed its format from "+d.format.String()+" to "+f.String()+
			" during the run; families of the same name and type go on, others begin anew")
	}
	s.DictDelta, s.Delta = d.dict.growth(), d.frame
	s.Exemplars = d.newExemplars(l, s.AtNS())
	d.dict.tell()
	d.warn(s, l)
	d.any, d.format, d.cut = true, f, b.Cut
	d.outcome, d.err, d.lines, d.drops = s.Outcome, s.Err, s.Lines, s.Drops
}

// commit turns the values of the learnt body into a frame: all slots when the
// set of slots has changed, otherwise those whose bits have.
func (d *Decoder) commit(l *slowDecoder) {
	d.frame.Slots, d.frame.Bits = d.frame.Slots[:0], d.frame.Bits[:0]
	same := d.any
	n := 0
	seen := l.seen[:min(len(l.seen), len(d.dict.slots))]
	for slot, gen := range seen {
		if gen != l.gen {
			continue
		}
		same = same && n < len(d.present) && d.present[n] == uint32(slot)
		n++
	}
	d.frame.Full = !same || n != len(d.present)
	if d.frame.Full {
		d.present = slices.Grow(d.present[:0], n)
		d.frame.Slots, d.frame.Bits = slices.Grow(d.frame.Slots, n), slices.Grow(d.frame.Bits, n)
	}
	if more := len(seen) - len(d.bits); more > 0 {
		d.bits = append(d.bits, make([]uint64, more)...)
	}
	for slot, gen := range seen {
		if gen != l.gen {
			continue
		}
		if d.frame.Full {
			d.present = append(d.present, uint32(slot))
		}
		if d.frame.Full || d.bits[slot] != l.bits[slot] {
			d.frame.Slots = append(d.frame.Slots, uint32(slot))
			d.frame.Bits = append(d.frame.Bits, l.bits[slot])
		}
		d.bits[slot] = l.bits[slot]
	}
}

// once adds a warning to s unless the target was given one of that code.
func (d *Decoder) once(s *metric.Snapshot, code, text string) {
	if !d.said[code] {
		d.said[code] = true
		s.Warnings = append(s.Warnings, metric.Warning{Code: code, Text: text})
	}
}

// warnOfValues tells of values that were not stored as they were sent. It makes no
// text when that was told before: it is called after each replay.
func (d *Decoder) warnOfValues(s *metric.Snapshot) {
	if d.blanks > 0 && !d.said["sentinel"] {
		d.once(s, "sentinel", fmt.Sprintf("%d values mean that there is none and are stored as NaN; their series "+
			"count them", d.blanks))
	}
	if n := d.learn.inexact; n > 0 && !d.said["integer_precision"] {
		d.once(s, "integer_precision", fmt.Sprintf("%d whole numbers are beyond 2^53 and were rounded to the next "+
			"float64", n))
	}
}

// warn warns of what is odd about a body, each thing once.
func (d *Decoder) warn(s *metric.Snapshot, l *slowDecoder) {
	p := &l.page
	for _, w := range p.notes {
		d.once(s, w.Code, w.Text)
	}
	if p.crlf {
		d.once(s, "crlf", "lines end in CR LF; the CR was ignored")
	}
	if p.bom {
		d.once(s, "byte_order_mark", "body begins with a byte order mark, which was ignored")
	}
	d.warnOfValues(s)
	if l.stamped > 0 {
		d.once(s, "timestamps", fmt.Sprintf("%d samples have timestamps of their own; they are kept beside the samples, "+
			"and the time of the scrape counts", l.stamped))
	}
	if l.absurd > 0 {
		d.once(s, "timestamps_absurd", fmt.Sprintf("%d samples have timestamps that are no time (negative, or beyond the "+
			"year 9999); these were dropped, the samples were not", l.absurd))
	}
	if len(s.Body) == 0 {
		d.once(s, "empty_body", "the body is empty: the target answered, and has no metrics; TorchServe does so unless "+
			"metrics_mode is prometheus: then poll torchserve-log:PATH")
	}
	if !p.ended {
		d.once(s, "truncated", truncationText(p.format))
	}
	if d.asm.refused {
		d.once(s, reasonWords[familyLimit], fmt.Sprintf("the target has more than %d families, and further ones are not "+
			"stored; raise --max-families or choose with --keep", d.limits.Families))
	}
	for _, drop := range s.Drops {
		if drop.Reason == reasonWords[filtered] || d.said[drop.Reason] {
			continue
		}
		text := fmt.Sprintf("%d of %d lines were not stored; %s", drop.Lines, s.Lines, drop.First)
		if drop.Reason == reasonWords[seriesLimit] || drop.Reason == reasonWords[memoryLimit] {
			name, n := d.dict.busiestLabel()
			text += fmt.Sprintf("; label %s has the most values (%d)", quote(name, 100), n)
		}
		d.once(s, drop.Reason, text)
	}
}

func truncationText(f format) string {
	switch f {
	case formatOpenMetrics:
		return "body does not end in # EOF: it was cut short"
	case formatProtobuf:
		return "body ends within a message: it was cut short"
	}
	return "body does not end in a line feed: it was cut short"
}
