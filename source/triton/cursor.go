package triton

import (
	"bytes"
	"encoding/json"
	"strings"
)

// cursor walks over a JSON text that json.Valid accepts. Should it still meet
// something unexpected it stops at the end of the text and is broken.
type cursor struct {
	b      []byte
	i      int
	broken bool
}

func (c *cursor) fail() { c.i, c.broken = len(c.b), true }

// peek returns the first byte of the next token, 0 at the end.
func (c *cursor) peek() byte {
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ' ', '\t', '\r', '\n':
			c.i++
		default:
			return c.b[c.i]
		}
	}
	return 0
}

// object calls each for the members of an object, which reads the value. Where no object is, the cursor breaks.
func (c *cursor) object(each func(key string)) {
	c.list('{', '}', func() {
		key := c.text()
		if c.peek() != ':' {
			c.fail()
			return
		}
		c.i++
		c.peek()
		each(key)
	})
}

// array calls each for the elements of an array, which reads one.
func (c *cursor) array(each func()) { c.list('[', ']', each) }

// members is object for a value that may be of another kind, which is skipped.
func (c *cursor) members(each func(key string)) {
	if c.peek() != '{' {
		c.skip()
		return
	}
	c.object(each)
}

// elements is array for a value that may be of another kind.
func (c *cursor) elements(each func()) {
	if c.peek() != '[' {
		c.skip()
		return
	}
	c.array(each)
}

func (c *cursor) list(open, end byte, each func()) {
	if c.peek() != open {
		c.fail()
		return
	}
	c.i++
	if c.peek() == end {
		c.i++
		return
	}
	for {
		before := c.i
		each()
		switch c.peek() {
		case ',':
			c.i++
			c.peek()
		case end:
			c.i++
			return
		default:
			c.fail()
			return
		}
		if c.i <= before {
			c.fail()
			return
		}
	}
}

// token returns the bytes of a string with its quotes, or of a number or word.
func (c *cursor) token() []byte {
	quoted := c.peek() == '"' // after blanks
	start := c.i
	if !quoted {
		for c.i < len(c.b) && !bytes.ContainsRune([]byte(" \t\r\n,:]}[{"), rune(c.b[c.i])) {
			c.i++
		}
		return c.b[start:c.i]
	}
	for c.i++; c.i < len(c.b); c.i++ {
		switch c.b[c.i] {
		case '\\':
			c.i++
		case '"':
			c.i++
			return c.b[start:c.i]
		}
	}
	c.fail()
	return nil
}

// text reads a string; another kind of value is "".
func (c *cursor) text() string {
	if c.peek() != '"' {
		c.skip()
		return ""
	}
	t := c.token()
	if len(t) < 2 {
		return ""
	}
	if bytes.IndexByte(t, '\\') < 0 {
		return strings.ToValidUTF8(string(t[1:len(t)-1]), "\uFFFD")
	}
	var s string
	if json.Unmarshal(t, &s) != nil {
		c.fail()
	}
	return s
}

// number returns the text of a number and whether it was in quotes. Of another
// kind of value it is one that no parser takes for a number.
func (c *cursor) number() (text string, quoted bool) {
	switch c.peek() {
	case '{', '[':
		c.skip()
		return "not a number", false
	case '"':
		t := c.token()
		return string(bytes.Trim(t[:min(len(t), 64)], `"`)), true
	}
	t := c.token()
	return string(t[:min(len(t), 64)]), false
}

// skip passes over a value of any kind, without recursion.
func (c *cursor) skip() {
	depth := 0
	for {
		switch c.peek() {
		case 0:
			c.fail()
			return
		case '{', '[':
			depth++
			c.i++
		case '}', ']':
			depth--
			c.i++
		case ',', ':':
			c.i++
			continue
		default:
			if len(c.token()) == 0 {
				c.fail()
				return
			}
		}
		if depth <= 0 {
			if depth < 0 {
				c.fail()
			}
			return
		}
	}
}
