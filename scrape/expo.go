package scrape

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/scrapestat/scrapestat/metric"
)

// format is an exposition format.
type format uint8

const (
	formatText format = iota // classic text 0.0.4 and 1.0.0
	formatOpenMetrics
	formatProtobuf // length-delimited MetricFamily messages
)

// String returns the name of the format as --protocols has it.
func (f format) String() string { return [...]string{"text", "openmetrics", "protobuf"}[f] }

// nameLabel is the label under which textparse hands out the metric name.
const nameLabel = "__name__"

// eofLine ends each buffer of OpenMetrics samples.
const eofLine = "# EOF\n"

// sampleParser walks over sample lines with textparse. This is the only file
// that knows that package, whose API changes from release to release.
//
// It is fed with sample lines only: textparse stops at the first line it does not like, TYPE lines with an unknown word
// among them, and it rewrites "le" once it has seen the type. Without TYPE lines labels keep their raw text.
type sampleParser struct {
	parser  textparse.Parser
	caught  caught
	bufCap  int
	symbols *labels.SymbolTable
	lset    labels.Labels
}

// caught is what a parser of Prometheus panicked with first. Parsers of this class have panicked at bodies
// before; a panic costs what was being read and nothing else, but it is not to go by unseen.
type caught struct{ text string }

func (c *caught) note(p any) {
	if c.text == "" {
		c.text = metric.Clean(fmt.Sprint(p), 200)
	}
}

// take returns it once; empty is none.
func (c *caught) take() (text string) {
	text, c.text = c.text, ""
	return text
}

// reset starts on buf: complete lines, followed by eofLine for OpenMetrics. For
// classic text buf needs room for one more byte, which textparse appends.
func (p *sampleParser) reset(buf []byte, f format) {
	p.bufCap = cap(buf)
	if p.symbols == nil {
		p.symbols = labels.NewSymbolTable()
	}
	if f == formatOpenMetrics {
		p.parser = textparse.NewOpenMetricsParser(buf, p.symbols)
		return
	}
	p.parser = textparse.NewPromParser(buf, p.symbols, false)
}

// ownTime is the time that a server gave a sample.
type ownTime struct {
	given bool
	ms    float64 // since 1970
}

// lastOwnTime is the end of the year 9999.
const lastOwnTime = 253402300799999

// sound reports whether it is a time at all.
func (t ownTime) sound() bool { return t.ms >= 0 && t.ms <= lastOwnTime }

func ownTimeOf(ts *int64) (t ownTime) {
	if ts != nil {
		t = ownTime{true, float64(*ts)}
	}
	return t
}

// next returns the next sample: the series text as offset and length in the
// buffer, the value, and its own time. ok is false at the end and at whatever is no sample;
// the parser is of no use then. A panic of the parser counts as such a line.
func (p *sampleParser) next() (start, n int, value float64, own ownTime, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			p.caught.note(r)
			ok = false
		}
	}()
	for {
		entry, err := p.parser.Next()
		if err != nil {
			return 0, 0, 0, own, false
		}
		if entry == textparse.EntrySeries {
			series, ts, v := p.parser.Series()
			// The series is a slice of the buffer; its capacity tells where it starts.
			return p.bufCap - cap(series), len(series), v, ownTimeOf(ts), true
		}
	}
}

// labels appends the labels of the current sample to dst, unescaped, and returns
// its name. sound is false when a label occurs twice.
func (p *sampleParser) labels(dst []metric.Label) (name string, pairs []metric.Label, sound bool) {
	return labelsOf(p.parser, &p.lset, &p.caught, dst)
}

func labelsOf(parser textparse.Parser, lset *labels.Labels, c *caught, dst []metric.Label) (name string,
	pairs []metric.Label, sound bool) {
	defer func() {
		if r := recover(); r != nil {
			c.note(r)
			name, pairs, sound = "", dst, false
		}
	}()
	parser.Labels(lset)
	sound = true
	last, first := "", true
	lset.Range(func(l labels.Label) {
		sound = sound && (first || l.Name != last)
		last, first = l.Name, false
		if l.Name == nameLabel {
			name = l.Value
			return
		}
		dst = append(dst, metric.Label{Name: l.Name, Value: l.Value})
	})
	return name, dst, sound
}

// exemplar returns the exemplar of the current sample.
func (p *sampleParser) exemplar() (x rawExemplar, ok bool) {
	return exemplarOf(p.parser, &p.caught)
}

// exemplarOf returns the next exemplar of the current entry.
func exemplarOf(p textparse.Parser, c *caught) (x rawExemplar, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			c.note(r)
			ok = false
		}
	}()
	var e exemplar.Exemplar
	if !p.Exemplar(&e) {
		return x, false
	}
	e.Labels.Range(func(l labels.Label) { x.labels = append(x.labels, metric.Label{Name: l.Name, Value: l.Value}) })
	x.value = e.Value
	if e.HasTs {
		x.atNS = e.Ts * int64(time.Millisecond)
	}
	return x, true
}

// messageParser walks over one delimited MetricFamily message. A parser for each
// message keeps a damaged one from costing those behind it.
type messageParser struct {
	parser  textparse.Parser
	caught  caught
	symbols *labels.SymbolTable
	lset    labels.Labels
}

// messageEntry is one thing a message says.
type messageEntry struct {
	kind   entryKind
	key    []byte // of a series: name and labels; of metadata: the name
	text   []byte // HELP or UNIT
	typ    metric.Type
	value  float64
	own    ownTime
	native nativeSample
}

type entryKind uint8

const (
	entryEnd entryKind = iota
	entryBad
	entryType
	entryHelp
	entryUnit
	entrySample
	entryNative
)

// nativeSample is a native histogram in one poll.
type nativeSample struct {
	count, sum float64
	buckets    []nativeBucket
}

type nativeBucket struct{ lower, upper, count float64 }

func (p *messageParser) reset(message []byte) {
	if p.symbols == nil {
		p.symbols = labels.NewSymbolTable()
	}
	p.parser = textparse.NewProtobufParser(message, false, false, false, false, p.symbols)
}

// next returns the next entry; dst is memory for its buckets, of which it takes at most maxBuckets. The slices in it
// are valid until the next call. A panic of the parser counts as a bad entry, after which the parser is of no use.
func (p *messageParser) next(dst []nativeBucket, maxBuckets int) (e messageEntry) {
	defer func() {
		if r := recover(); r != nil {
			p.caught.note(r)
			e = messageEntry{kind: entryBad}
		}
	}()
	for {
		entry, err := p.parser.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return messageEntry{kind: entryEnd}
			}
			return messageEntry{kind: entryBad}
		}
		switch entry {
		case textparse.EntryType:
			name, typ := p.parser.Type()
			t, _ := metric.ParseType(string(typ))
			return messageEntry{kind: entryType, key: name, typ: t}
		case textparse.EntryHelp:
			name, text := p.parser.Help()
			return messageEntry{kind: entryHelp, key: name, text: text}
		case textparse.EntryUnit:
			name, text := p.parser.Unit()
			return messageEntry{kind: entryUnit, key: name, text: text}
		case textparse.EntrySeries:
			key, ts, v := p.parser.Series()
			return messageEntry{kind: entrySample, key: key, value: v, own: ownTimeOf(ts)}
		case textparse.EntryHistogram:
			key, ts, h, fh := p.parser.Histogram()
			e := messageEntry{kind: entryNative, key: key, own: ownTimeOf(ts)}
			var ok bool
			if h != nil {
				e.native, ok = integerSample(dst, h, maxBuckets)
			} else {
				e.native, ok = floatSample(dst, fh, maxBuckets)
			}
			if !ok {
				return messageEntry{kind: entryBad}
			}
			return e
		}
	}
}

func (p *messageParser) exemplar() (rawExemplar, bool) { return exemplarOf(p.parser, &p.caught) }

// createdMS is when the current series began, 0 when the server does not say.
func (p *messageParser) createdMS() int64 { return p.parser.StartTimestamp() }

// labels is that of sampleParser.
func (p *messageParser) labels(dst []metric.Label) (name string, pairs []metric.Label, sound bool) {
	return labelsOf(p.parser, &p.lset, &p.caught, dst)
}

// integerSample lists the populated buckets of a histogram of whole numbers. The bucket of zero is always
// there: it tells the series to be native. ok is false for what contradicts itself.
func integerSample(dst []nativeBucket, h *histogram.Histogram, most int) (nativeSample, bool) {
	s := nativeSample{count: float64(h.Count), sum: h.Sum, buckets: dst[:0]}
	if !sound(h.Validate()) {
		return s, false
	}
	if !h.UsesCustomBuckets() {
		s.buckets = append(s.buckets, nativeBucket{-h.ZeroThreshold, h.ZeroThreshold, float64(h.ZeroCount)})
	}
	for _, it := range []histogram.BucketIterator[uint64]{h.NegativeBucketIterator(), h.PositiveBucketIterator()} {
		for it.Next() && len(s.buckets) <= most {
			if b := it.At(); b.Count > 0 || h.UsesCustomBuckets() {
				s.add(nativeBucket{b.Lower, b.Upper, float64(b.Count)})
			}
		}
	}
	return s, s.ordered()
}

// add adds a populated bucket, in the order of their indexes. Far from 1 several have the same bounds, as
// floating point has no others, and are one bucket then; so is one next to zero with that of zero.
func (s *nativeSample) add(b nativeBucket) {
	if n := len(s.buckets); n > 0 {
		for _, same := range []*nativeBucket{&s.buckets[n-1], &s.buckets[0]} {
			if same.lower == b.lower && same.upper == b.upper {
				same.count += b.count
				return
			}
		}
	}
	s.buckets = append(s.buckets, b)
}

// ordered reports whether every bucket has bounds, the lower one first. A server can send
// any bytes as the bounds of its own and as the threshold of zero; the validation lets NaN pass.
func (s *nativeSample) ordered() bool {
	return !slices.ContainsFunc(s.buckets, func(b nativeBucket) bool { return !(b.lower <= b.upper) })
}

// sound reports whether a histogram is usable in spite of what a validation found: a count that differs from
// its buckets, as a server that does not lock has it, is left to the analysis to flag.
func sound(err error) bool {
	return err == nil || errors.Is(err, histogram.ErrHistogramCountMismatch) ||
		errors.Is(err, histogram.ErrHistogramCountNotBigEnough)
}

// floatSample is integerSample for counts that are fractions.
func floatSample(dst []nativeBucket, h *histogram.FloatHistogram, most int) (nativeSample, bool) {
	s := nativeSample{count: h.Count, sum: h.Sum, buckets: dst[:0]}
	if !sound(h.Validate()) {
		return s, false
	}
	if !h.UsesCustomBuckets() {
		s.buckets = append(s.buckets, nativeBucket{-h.ZeroThreshold, h.ZeroThreshold, h.ZeroCount})
	}
	for _, it := range []histogram.BucketIterator[float64]{h.NegativeBucketIterator(), h.PositiveBucketIterator()} {
		for it.Next() && len(s.buckets) <= most {
			if b := it.At(); b.Count > 0 || h.UsesCustomBuckets() {
				s.add(nativeBucket{b.Lower, b.Upper, b.Count})
			}
		}
	}
	return s, s.ordered()
}
