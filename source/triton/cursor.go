package triton

import (
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// cursor walks over a JSON text. After an error it finds nothing more.
type cursor struct {
	d   *jsontext.Decoder
	err error
}

func newCursor(r io.Reader) *cursor {
	return &cursor{d: jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
}

// peek returns the kind of the next token, 0 at the end.
func (c *cursor) peek() jsontext.Kind {
	if c.err != nil {
		return 0
	}
	return c.d.PeekKind()
}

func (c *cursor) read() jsontext.Token {
	if c.err != nil {
		return jsontext.Null
	}
	var t jsontext.Token
	t, c.err = c.d.ReadToken()
	return t
}

// skip passes over a value of any kind.
func (c *cursor) skip() {
	if c.err == nil {
		c.err = c.d.SkipValue()
	}
}

// members calls each for the members of an object, which reads the value. A value of another kind is skipped.
func (c *cursor) members(each func(key string)) {
	c.list('{', '}', func() { each(c.read().String()) })
}

// elements calls each for the elements of an array, which reads one. A value of another kind is skipped.
func (c *cursor) elements(each func()) { c.list('[', ']', each) }

func (c *cursor) list(open, end jsontext.Kind, each func()) {
	if c.peek() != open {
		c.skip()
		return
	}
	for c.read(); c.peek() != end && c.peek() != 0; {
		each()
	}
	c.read()
}

// text reads a string; another kind of value is "".
func (c *cursor) text() string {
	if c.peek() != '"' {
		c.skip()
		return ""
	}
	return c.read().String()
}

// number returns the text of a number and whether it was in quotes. Of another
// kind of value it is one that no parser takes for a number.
func (c *cursor) number() (text string, quoted bool) {
	kind := c.peek()
	if kind == '{' || kind == '[' {
		c.skip()
		return "not a number", false
	}
	text = c.read().String()
	return text[:min(len(text), 64)], kind == '"'
}
