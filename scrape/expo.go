package scrape

import (
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/scrapestat/scrapestat/metric"
)

// format is an exposition format.
type format uint8

const (
	formatText format = iota // classic text 0.0.4 and 1.0.0
	formatOpenMetrics
)

// nameLabel is the label under which textparse hands out the metric name.
const nameLabel = "__name__"

// eofLine ends each buffer of OpenMetrics samples.
const eofLine = "# EOF\n"

// sampleParser walks over sample lines with textparse. This is the only file
// that knows that package, whose API changes from release to release.
//
// It is fed with sample lines only: textparse stops at the first line it does
// not like, TYPE lines with an unknown word among them, and it rewrites "le"
// once it has seen the type. Without TYPE lines labels keep their raw text.
type sampleParser struct {
	parser  textparse.Parser
	bufCap  int
	symbols *labels.SymbolTable
	lset    labels.Labels
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

// next returns the next sample: the series text as offset and length in the
// buffer, and the value. ok is false at the end and at whatever is no sample;
// the parser is of no use then. A panic of the parser counts as such a line.
func (p *sampleParser) next() (start, n int, value float64, stamped, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	for {
		entry, err := p.parser.Next()
		if err != nil {
			return 0, 0, 0, false, false
		}
		if entry == textparse.EntrySeries {
			series, ts, v := p.parser.Series()
			// The series is a slice of the buffer; its capacity tells where it starts.
			return p.bufCap - cap(series), len(series), v, ts != nil, true
		}
	}
}

// labels appends the labels of the current sample to dst, unescaped, and returns
// its name. sound is false when a label occurs twice.
func (p *sampleParser) labels(dst []metric.Label) (name string, pairs []metric.Label, sound bool) {
	defer func() {
		if recover() != nil {
			name, pairs, sound = "", dst, false
		}
	}()
	p.parser.Labels(&p.lset)
	sound = true
	last, first := "", true
	p.lset.Range(func(l labels.Label) {
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
