package openmetrics

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/scrapestat/scrapestat/metric"
)

// Sample is one line of a dump.
type Sample struct {
	Name    string
	Labels  []metric.Label // unescaped, in the order of the line
	Value   float64
	AtNS    int64
	Stamped bool // AtNS is set
}

// ParseSample reads one sample line. Labels are appended to dst. It returns a
// stable word for what is wrong with the line, "" when nothing is.
func ParseSample(line []byte, dst []metric.Label) (s Sample, reason string) {
	p := cursor{rest: line}
	s.Labels = dst
	p.blanks()
	if len(p.rest) > 0 && p.rest[0] != '{' && p.rest[0] != '"' {
		s.Name = p.word()
	}
	p.blanks()
	if p.take('{') {
		name, ok := p.labels(&s.Labels)
		if !ok || name != "" && s.Name != "" {
			return s, "parse"
		}
		if name != "" {
			s.Name = name
		}
	}
	if s.Name == "" {
		return s, "parse"
	}
	for i, l := range s.Labels[len(dst):] {
		for _, m := range s.Labels[len(dst) : len(dst)+i] {
			if m.Name == l.Name {
				return s, "duplicate_label"
			}
		}
	}
	p.blanks()
	var ok bool
	if s.Value, ok = parseFloat(p.token()); !ok {
		return s, "parse"
	}
	return p.stamp(s)
}

// stamp reads what follows the value: a timestamp, an exemplar, a comment.
func (p *cursor) stamp(s Sample) (Sample, string) {
	p.blanks()
	if len(p.rest) == 0 || p.rest[0] == '#' {
		return s, ""
	}
	text := p.token()
	p.blanks()
	if len(p.rest) > 0 && p.rest[0] != '#' {
		return s, "parse"
	}
	var ok bool
	if s.AtNS, ok = parseTime(text); !ok {
		return s, "bad_timestamp"
	}
	s.Stamped = true
	return s, ""
}

// cursor walks over a line.
type cursor struct{ rest []byte }

func (p *cursor) blanks() {
	for len(p.rest) > 0 && (p.rest[0] == ' ' || p.rest[0] == '\t') {
		p.rest = p.rest[1:]
	}
}

func (p *cursor) take(c byte) bool {
	if len(p.rest) == 0 || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// token returns the bytes up to the next blank.
func (p *cursor) token() string { return p.until(" \t") }

// until returns the bytes up to the next of some delimiters.
func (p *cursor) until(delimiters string) string {
	n := bytes.IndexAny(p.rest, delimiters)
	if n < 0 {
		n = len(p.rest)
	}
	text := string(p.rest[:n])
	p.rest = p.rest[n:]
	return text
}

// word returns a bare name: letters, digits, underscores and colons, and
// whatever else is no delimiter, as stores hold such names.
func (p *cursor) word() string {
	text := p.until(" \t{}=,\"")
	if !utf8.ValidString(text) {
		return ""
	}
	return text
}

// labels reads a label set after its opening brace. The metric name may stand
// in it: quoted and alone, or as the label __name__.
func (p *cursor) labels(dst *[]metric.Label) (name string, ok bool) {
	for {
		p.blanks()
		if p.take('}') {
			return name, true
		}
		key, quoted, ok := p.key()
		if !ok {
			return "", false
		}
		p.blanks()
		switch {
		case p.take('='):
			p.blanks()
			value, ok := p.quoted()
			if !ok {
				return "", false
			}
			if key != "__name__" {
				*dst = append(*dst, metric.Label{Name: key, Value: value})
			} else if name != "" {
				return "", false
			} else {
				name = value
			}
		case quoted && name == "":
			name = key
		default:
			return "", false
		}
		p.blanks()
		if !p.take(',') && (len(p.rest) == 0 || p.rest[0] != '}') {
			return "", false
		}
	}
}

// key reads a label name, or a quoted metric name.
func (p *cursor) key() (name string, quoted, ok bool) {
	if len(p.rest) > 0 && p.rest[0] == '"' {
		name, ok = p.quoted()
		return name, true, ok && name != ""
	}
	name = p.word()
	return name, false, name != ""
}

// quoted reads a string with the escapes of the exposition formats.
func (p *cursor) quoted() (string, bool) {
	if !p.take('"') {
		return "", false
	}
	end := bytes.IndexByte(p.rest, '"')
	if end >= 0 && bytes.IndexByte(p.rest[:end], '\\') < 0 {
		text := string(p.rest[:end])
		p.rest = p.rest[end+1:]
		return text, utf8.ValidString(text)
	}
	var b strings.Builder
	for i := 0; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			p.rest = p.rest[i+1:]
			return b.String(), utf8.ValidString(b.String())
		case c == '\\' && i+1 < len(p.rest):
			i++
			switch p.rest[i] {
			case 'n':
				b.WriteByte('\n')
			case '"', '\\':
				b.WriteByte(p.rest[i])
			default: // an unknown escape stands for itself
				b.WriteByte('\\')
				b.WriteByte(p.rest[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

func parseFloat(text string) (float64, bool) {
	if text == "" || strings.ContainsAny(text, "_xXpP") {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}

// maxSeconds keeps timestamps inside what nanoseconds in 64 bits can say.
const maxSeconds = 9_200_000_000

// parseTime reads a timestamp as nanoseconds since 1970.
func parseTime(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		switch {
		case n > -1e11 && n < 1e11:
			return n * 1e9, n > -maxSeconds && n < maxSeconds
		default:
			return n * 1e6, n > -maxSeconds*1000 && n < maxSeconds*1000
		}
	}
	v, ok := parseFloat(text)
	if !ok || math.IsNaN(v) || math.Abs(v) >= maxSeconds {
		return 0, false
	}
	// Floats of today's seconds are exact to a quarter of a microsecond; stores keep milliseconds.
	whole, frac := math.Modf(v)
	return int64(whole)*1e9 + int64(math.Round(frac*1e6))*1e3, true
}
