package scrape

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/scrapestat/scrapestat/metric"
)

// line is one sample line of a body, without blanks around it.
type line struct {
	start, end int32 // in the body
	number     int32 // from 1
}

// page is one body cut into lines.
type page struct {
	format  format
	lines   []line
	words   metadataIndex
	order   []*word // the declared ones, in order of appearance
	number  int32   // of the last line read
	eof     bool    // "# EOF" was seen
	afterAt int     // sample lines from here on come after "# EOF"
	ended   bool    // the body ends as its format demands
	open    bool    // the last sample line has no line feed
	crlf    bool
	bom     bool // the body begins with a byte order mark
	notes   []metric.Warning
	tooMany int // sample lines in all, when they exceed the limit
}

var bom = []byte("\xef\xbb\xbf")

// read cuts body into lines. It keeps at most maxLines sample lines, and counts the others.
func (p *page) read(body []byte, f format, maxLines int) {
	*p = page{format: f, lines: p.lines[:0], order: p.order[:0], words: p.words}
	p.words.begin()
	if p.lines == nil {
		p.lines = make([]line, 0, min(maxLines, 64+len(body)/100))
	}
	lines, at := 0, 0
	if p.bom = bytes.HasPrefix(body, bom); p.bom {
		at = len(bom)
	}
	for at < len(body) {
		end, next := len(body), len(body)
		terminated := false
		if n := bytes.IndexByte(body[at:], '\n'); n >= 0 {
			end, next, terminated = at+n, at+n+1, true
		}
		p.number++
		start, stop := p.trim(body, at, end)
		at = next
		if start == stop {
			continue
		}
		if body[start] == '#' {
			p.meta(body[start:stop], terminated)
			continue
		}
		p.open = !terminated
		if lines++; lines <= maxLines {
			p.lines = append(p.lines, line{int32(start), int32(stop), p.number})
		}
	}
	if !p.eof {
		p.afterAt = len(p.lines)
	}
	if lines > maxLines {
		p.tooMany = lines
	}
	p.ended = len(body) == 0 || body[len(body)-1] == '\n'
	if f == formatOpenMetrics {
		p.ended = p.eof
	}
}

// trim cuts blanks off both ends of a line, and the CR of a CRLF.
func (p *page) trim(body []byte, start, end int) (int, int) {
	if end > start && body[end-1] == '\r' {
		p.crlf = true
		end--
	}
	for start < end && (body[start] == ' ' || body[start] == '\t') {
		start++
	}
	for start < end && (body[end-1] == ' ' || body[end-1] == '\t') {
		end--
	}
	return start, end
}

// meta reads a line that begins with '#'. What is neither HELP, TYPE, UNIT nor
// the end of OpenMetrics is a comment, and so is what was cut off.
func (p *page) meta(text []byte, terminated bool) {
	if p.format == formatOpenMetrics && string(text) == "# EOF" && !p.eof {
		p.eof, p.afterAt = true, len(p.lines)
		return
	}
	rest := trimBlanks(text[1:])
	if !terminated || len(rest) == len(text)-1 || len(rest) < 5 || rest[4] != ' ' && rest[4] != '\t' {
		return
	}
	word := rest[:4]
	if string(word) != "HELP" && string(word) != "TYPE" && string(word) != "UNIT" {
		return
	}
	name, rest, ok := cutMetaName(trimBlanks(rest[4:]))
	if !ok {
		p.note("bad_metadata", "line "+itoa(p.number)+": "+string(word)+" line has no valid metric name; it was ignored")
		return
	}
	x := p.words.add(name)
	if !x.declared {
		x.declared = true
		p.order = append(p.order, x)
	}
	switch string(word) {
	case "HELP":
		if len(x.help) == 0 {
			x.help = rest
		}
	case "UNIT":
		if len(x.unit) == 0 {
			x.unit = rest
		}
	case "TYPE":
		p.setType(x, rest)
	}
}

// setType applies a TYPE line. A word that nobody knows, and a second line that
// contradicts the first, make the family unknown.
func (p *page) setType(x *word, text []byte) {
	typ, ok := metric.ParseType(string(text))
	switch {
	case !ok:
		p.note("type_unknown", "line "+itoa(p.number)+": type "+quote(string(text), 40)+" of "+quote(x.name,
			100)+" is not known; the family is stored as unknown")
	case x.typed && x.typ != typ:
		p.note("type_conflict", "line "+itoa(p.number)+": "+quote(x.name,
			100)+" has two different types; the family is stored as unknown")
		typ = metric.Unknown
	}
	if !x.typed {
		x.line = p.number
	}
	x.typed, x.typ = true, typ
}

// note adds a warning unless the page has one of that code.
func (p *page) note(code, text string) {
	for _, w := range p.notes {
		if w.Code == code {
			return
		}
	}
	p.notes = append(p.notes, metric.Warning{Code: code, Text: text})
}

func trimBlanks(b []byte) []byte { return bytes.Trim(b, " \t") }

// cutMetaName splits the metric name, plain or quoted, off a metadata line.
func cutMetaName(b []byte) (name, rest []byte, ok bool) {
	if len(b) > 0 && b[0] == '"' {
		text, n := quoted(b)
		return []byte(text), trimBlanks(b[n:]), n > 0 && text != "" && utf8.ValidString(text)
	}
	n := nameEnd(b)
	if n == 0 || n < len(b) && b[n] != ' ' && b[n] != '\t' {
		return nil, nil, false
	}
	return b[:n], trimBlanks(b[n:]), true
}

// nameEnd returns the length of the plain metric name at the start of b.
func nameEnd(b []byte) int {
	for i, c := range b {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == ':'
		if !letter && (i == 0 || c-'0' > 9) {
			return i
		}
	}
	return len(b)
}

// quoted reads the quoted string at the start of b; n is 0 when it does not end.
func quoted(b []byte) (text string, n int) {
	if n = quotedLen(b); n > 0 {
		text = unescaper.Replace(string(b[1 : n-1]))
	}
	return text, n
}

var (
	unescaper     = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, "\n")
	helpUnescaper = strings.NewReplacer(`\\`, `\`, `\n`, "\n")
)

// maxHelp bounds the text kept of a HELP line.
const maxHelp = 4096

func unescapeHelp(b []byte, f format) string {
	s := strings.ToValidUTF8(string(b[:min(len(b), maxHelp)]), "\uFFFD")
	if f == formatOpenMetrics {
		return unescaper.Replace(s)
	}
	return helpUnescaper.Replace(s)
}

// seriesEnd returns the length of the series text at the start of a line, the
// name and its braces, or -1 when the braces do not close.
func seriesEnd(b []byte) int {
	i := bytes.IndexAny(b, "{ \t")
	if i < 0 {
		return len(b)
	}
	j := i
	for j < len(b) && (b[j] == ' ' || b[j] == '\t') {
		j++
	}
	if j == len(b) || b[j] != '{' {
		return i
	}
	for j++; j < len(b); j++ {
		switch b[j] {
		case '}':
			return j + 1
		case '"':
			n := quotedLen(b[j:])
			if n == 0 {
				return -1
			}
			j += n - 1
		}
	}
	return -1
}

// quotedLen is quoted without the text.
func quotedLen(b []byte) (n int) {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}
