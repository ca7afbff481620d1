package export

import (
	"io"
	"strconv"
)

// flushSize is how much an encoder gathers before it writes.
const flushSize = 64 << 10

// encoder writes an indented JSON document piece by piece. A value follows
// either key (in an object) or elem (in an array). The first write error sticks.
type encoder struct {
	w      io.Writer
	buf    []byte
	depth  int
	first  bool // nothing was written in the open object or array
	inline int  // depth from which everything is on one line; 0 for never
	err    error
}

func (e *encoder) flush() error {
	if e.err == nil && len(e.buf) > 0 {
		_, e.err = e.w.Write(e.buf)
	}
	e.buf = e.buf[:0]
	return e.err
}

// next goes to the place of the next member.
func (e *encoder) next() {
	if len(e.buf) > flushSize {
		_ = e.flush() // the error sticks
	}
	if !e.first {
		e.buf = append(e.buf, ',')
	}
	if e.inline == 0 {
		e.newline()
	} else if !e.first {
		e.buf = append(e.buf, ' ')
	}
	e.first = false
}

// lineStart is a line break and the indent of the deepest level there is.
const lineStart = "\n                                "

func (e *encoder) newline() { e.buf = append(e.buf, lineStart[:1+2*e.depth]...) }

func (e *encoder) key(name string) {
	e.next()
	e.buf = append(appendString(e.buf, name), ':', ' ')
}

func (e *encoder) elem() { e.next() }

func (e *encoder) open(c byte) {
	e.buf = append(e.buf, c)
	e.depth++
	e.first = true
}

// openInline opens an object or array that is written on one line.
func (e *encoder) openInline(c byte) {
	e.open(c)
	if e.inline == 0 {
		e.inline = e.depth
	}
}

func (e *encoder) close(c byte) {
	inline := e.inline != 0
	if e.inline == e.depth {
		e.inline = 0
	}
	e.depth--
	if !e.first && !inline {
		e.newline()
	}
	e.buf = append(e.buf, c)
	e.first = false
}

func (e *encoder) str(s string)    { e.buf = appendString(e.buf, s) }
func (e *encoder) integer(v int64) { e.buf = strconv.AppendInt(e.buf, v, 10) }
func (e *encoder) bool(v bool)     { e.buf = strconv.AppendBool(e.buf, v) }
func (e *encoder) strField(k, v string) {
	e.key(k)
	e.str(v)
}

func (e *encoder) intField(k string, v int64) {
	e.key(k)
	e.integer(v)
}

// floatField leaves out a value that is not finite: JSON has no text for it.
func (e *encoder) floatField(k string, v float64) {
	if !isFinite(v) {
		return
	}
	e.key(k)
	e.buf = appendFloat(e.buf, v)
}
