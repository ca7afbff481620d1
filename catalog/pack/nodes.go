package pack

import (
	"cmp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// nodes reads the part of YAML that packs are written in, in a small part of the time that package yaml takes for
// it: every command reads all packs at its start. The nodes are those of package yaml, without comments. What is
// beyond that part, or wrong, is left to package yaml: then beyond is the line where it was met, else 0.
func nodes(text string) (documents []*yaml.Node, beyond int) {
	other := func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }
	if at := strings.IndexFunc(text, other); at >= 0 {
		return nil, 1 + strings.Count(text[:at], "\n")
	}
	s := &scanner{text: text, line: 1}
	for s.skip(); s.pos < len(s.text); s.skip() {
		if s.marker() {
			s.pos += len("---\n")
			s.line, s.start = s.line+1, s.pos
			s.skip()
		} else if documents != nil {
			s.fail()
		}
		documents = append(documents, s.mapping())
	}
	return documents, s.failed
}

// scanner reads nodes. When it fails it is at the end of the text, where all ends.
type scanner struct {
	text   string
	pos    int
	line   int // counted from 1
	start  int // of the line
	deep   int
	failed int // the line where it did, 0 for none
}

func (s *scanner) fail() {
	s.failed, s.pos, s.start = cmp.Or(s.failed, s.line), len(s.text), len(s.text)
}

func (s *scanner) column() int { return s.pos - s.start }

// byteAt returns a byte at or after the position, a line feed after the end.
func (s *scanner) byteAt(offset int) byte {
	if i := s.pos + offset; i < len(s.text) {
		return s.text[i]
	}
	return '\n'
}

// marker reports whether another document begins here.
func (s *scanner) marker() bool { return s.column() == 0 && strings.HasPrefix(s.text[s.pos:], "---\n") }

func (s *scanner) item() bool { return s.byteAt(0) == '-' && s.byteAt(1) == ' ' }

// skip goes over blanks, ends of lines and comments.
func (s *scanner) skip() {
	for ; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; {
		case c == '\n':
			s.line, s.start = s.line+1, s.pos+1
		case c == '#':
			for s.byteAt(1) != '\n' {
				s.pos++
			}
		case c != ' ':
			return
		}
	}
}

func (s *scanner) node(kind yaml.Kind, style yaml.Style) *yaml.Node {
	return &yaml.Node{Kind: kind, Style: style, Line: s.line, Column: s.column() + 1}
}

// mapping reads the lines from here on that are indented so, each a key with a value.
func (s *scanner) mapping() *yaml.Node {
	n, column := s.node(yaml.MappingNode, 0), s.column()
	for s.pos < len(s.text) && s.column() == column && !s.marker() {
		key := s.key()
		line := s.line
		s.skip()
		value := (*yaml.Node)(nil)
		switch {
		case s.line == line:
			value = s.lineValue(column)
		case s.item() && s.column() == column:
			value = s.sequence()
		default:
			value = s.block(column)
		}
		n.Content = append(n.Content, key, value)
	}
	if n.Content == nil {
		s.fail()
	}
	return n
}

// key reads a word and the colon after it.
func (s *scanner) key() *yaml.Node {
	n := s.node(yaml.ScalarNode, 0)
	length := s.keyLength()
	if length == 0 {
		s.fail()
		return n
	}
	n.Value = s.text[s.pos : s.pos+length]
	s.pos += length + 1
	return tagged(n)
}

// tagged says of a scalar without quotes that it is text where its first letter does not leave it open, which spares
// package yaml the question.
func tagged(n *yaml.Node) *yaml.Node {
	if n.Value != "" && strings.IndexByte("abcdeghijklmpqrsuvwxzABCDEGHIJKLMPQRSUVWXZ_(/", n.Value[0]) >= 0 {
		n.Tag = "!!str"
	}
	return n
}

// keyLength returns the length of the key that begins here, 0 when none does.
func (s *scanner) keyLength() int {
	for i := range 100 {
		switch c := s.byteAt(i); {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' ||
			i > 0 && (c >= '0' && c <= '9' || c == '.' || c == '-'):
		case c == ':' && (s.byteAt(i+1) == ' ' || s.byteAt(i+1) == '\n'):
			return i
		default:
			return 0
		}
	}
	return 0
}

// sequence reads the lines from here on that are indented so, each with an item.
func (s *scanner) sequence() *yaml.Node {
	n, column := s.node(yaml.SequenceNode, 0), s.column()
	for s.item() && s.column() == column {
		line := s.line
		s.pos++
		if s.skip(); s.line != line {
			s.fail()
		}
		n.Content = append(n.Content, s.block(column))
	}
	return n
}

// block reads what is indented deeper than the column.
func (s *scanner) block(column int) *yaml.Node {
	if s.deep++; s.deep > 50 || s.column() <= column {
		s.fail()
	}
	defer func() { s.deep-- }()
	switch {
	case s.item():
		return s.sequence()
	case s.keyLength() > 0:
		return s.mapping()
	}
	return s.lineValue(column)
}

// lineValue reads a value after which the line ends.
func (s *scanner) lineValue(column int) *yaml.Node {
	n := s.value(column, false)
	line := s.line
	if s.skip(); s.line == line && s.pos < len(s.text) {
		s.fail()
	}
	return n
}

// value reads a scalar or a list or mapping in brackets; of a plain scalar outside of brackets all lines are indented
// deeper than the column.
func (s *scanner) value(column int, bracketed bool) *yaml.Node {
	if s.column() == 0 {
		s.fail()
	}
	switch c := s.byteAt(0); {
	case c == '[':
		return s.brackets(yaml.SequenceNode, ']')
	case c == '{':
		return s.brackets(yaml.MappingNode, '}')
	case c == '"':
		return s.quoted(c, yaml.DoubleQuotedStyle)
	case c == '\'':
		return s.quoted(c, yaml.SingleQuotedStyle)
	case c == '-' && s.byteAt(1) >= '0' && s.byteAt(1) <= '9': // a negative number
	case strings.IndexByte("-?:,]}#&*!|>%@`<\n", c) >= 0:
		s.fail()
	}
	return s.plain(column, bracketed)
}

func (s *scanner) brackets(kind yaml.Kind, end byte) *yaml.Node {
	n := s.node(kind, yaml.FlowStyle)
	if s.deep++; s.deep > 50 {
		s.fail()
	}
	defer func() { s.deep-- }()
	s.pos++
	for s.skip(); s.byteAt(0) != end && s.failed == 0; s.skip() {
		if kind == yaml.MappingNode {
			n.Content = append(n.Content, s.key())
			s.skip()
		}
		n.Content = append(n.Content, s.value(0, true))
		s.skip()
		if s.byteAt(0) == ',' {
			s.pos++
		} else if s.byteAt(0) != end {
			s.fail()
		}
	}
	if s.column() == 0 {
		s.fail()
	}
	s.pos++
	return n
}

// quoted reads a scalar in quotes. The end of a line in it is a blank.
func (s *scanner) quoted(quote byte, style yaml.Style) *yaml.Node {
	n := s.node(yaml.ScalarNode, style)
	var b []byte
	for s.pos++; s.pos < len(s.text); s.pos++ {
		c := s.text[s.pos]
		switch {
		case c == '\\' && quote == '"':
			s.pos++
			if c = s.byteAt(0); c != '"' && c != '\\' {
				s.fail()
			}
		case c == quote && (quote == '"' || s.byteAt(1) != quote):
			s.pos++
			n.Value = string(b)
			return n
		case c == quote:
			s.pos++
		case c == '\n':
			for len(b) > 0 && b[len(b)-1] == ' ' {
				b = b[:len(b)-1]
			}
			s.line, s.start = s.line+1, s.pos+1
			for s.byteAt(1) == ' ' {
				s.pos++
			}
			if s.byteAt(1) == '\n' || s.pos < s.start {
				s.fail()
			}
			c = ' '
		}
		b = append(b, c)
	}
	s.fail()
	return n
}

// plain reads a scalar without quotes. The end of a line in it is a blank.
func (s *scanner) plain(column int, bracketed bool) *yaml.Node {
	n := s.node(yaml.ScalarNode, 0)
	for s.failed == 0 {
		from := s.pos
		for s.inPlain(bracketed) {
			s.pos++
		}
		n.Value += strings.TrimRight(s.text[from:s.pos], " ")
		end := *s
		if s.byteAt(0) == '\n' {
			s.skip()
		}
		if s.pos == end.pos || s.pos == len(s.text) || !bracketed && s.column() <= column ||
			bracketed && strings.IndexByte(",]}", s.byteAt(0)) >= 0 {
			failed := s.failed
			*s = end
			s.failed = failed
			return tagged(n)
		}
		if s.line != end.line+1 || s.column() == 0 {
			s.fail()
		}
		n.Value += " "
	}
	return n
}

// inPlain reports whether a scalar without quotes goes on here.
func (s *scanner) inPlain(bracketed bool) bool {
	switch c := s.byteAt(0); c {
	case '\n':
		return false
	case '#':
		return s.byteAt(-1) != ' '
	case ':':
		if next := s.byteAt(1); next == ' ' || next == '\n' || bracketed {
			s.fail()
			return false
		}
	case ',', ']', '}', '[', '{', '?':
		if bracketed && (c == '[' || c == '{' || c == '?') {
			s.fail()
		}
		return !bracketed
	}
	return true
}
