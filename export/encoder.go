package export

import (
	"cmp"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// flushSize is how much an encoder gathers before it writes.
const flushSize = 64 << 10

// encoder writes Go values as indented JSON, as Python's json.dump does, by the tags of [jsonExport]. What a value
// needs beyond the kinds of reflection it does itself, see encodable. The first write error sticks.
type encoder struct {
	w      io.Writer
	buf    []byte
	depth  int
	first  bool // nothing was written in the open object or array
	inline int  // depth from which everything is on one line; 0 for never
	line   bool // the next object or array is on one line
	lines  bool // so are the elements of the next one
	err    error
	fields map[reflect.Type][]jsonField
}

// encodable is a value that writes itself.
type encodable interface{ encode(e *encoder) }

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

func (e *encoder) open(c byte) {
	e.buf = append(e.buf, c)
	e.depth++
	e.first = true
	if e.line && e.inline == 0 {
		e.inline = e.depth
	}
	e.line = false
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

// value writes v, which is addressable and of a kind that [jsonExport] has.
func (e *encoder) value(v reflect.Value) {
	if x, ok := v.Addr().Interface().(encodable); ok {
		x.encode(e)
		return
	}
	switch v.Kind() {
	case reflect.String:
		e.buf = appendString(e.buf, v.String())
	case reflect.Bool:
		e.buf = strconv.AppendBool(e.buf, v.Bool())
	case reflect.Int, reflect.Int64:
		e.buf = strconv.AppendInt(e.buf, v.Int(), 10)
	case reflect.Uint64:
		e.buf = strconv.AppendUint(e.buf, v.Uint(), 10)
	case reflect.Float64:
		e.buf = appendFloat(e.buf, v.Float())
	case reflect.Pointer:
		e.value(v.Elem())
	case reflect.Struct:
		e.open('{')
		e.members(v)
		e.close('}')
	case reflect.Slice:
		e.open('[')
		for i := range v.Len() {
			e.next()
			e.value(v.Index(i))
		}
		e.close(']')
	case reflect.Map:
		e.open('{')
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, k := range keys {
			e.key(k.String())
			x := reflect.New(v.Type().Elem()).Elem()
			x.Set(v.MapIndex(k))
			e.value(x)
		}
		e.close('}')
	}
}

// members writes the fields of a struct, those of embedded ones among them.
func (e *encoder) members(v reflect.Value) {
	fields, ok := e.fields[v.Type()]
	if !ok {
		fields = fieldsOf(v.Type())
		e.fields[v.Type()] = fields
	}
	for i := range fields {
		f, x := &fields[i], v.Field(i)
		if f.key == nil {
			e.members(x)
			continue
		}
		if f.omit && x.IsZero() {
			continue
		}
		e.next()
		e.buf = append(e.buf, f.key...)
		e.line, e.lines = f.line, f.lines
		e.value(x)
		e.line, e.lines = false, false
	}
}

// jsonField is a field of a struct, as its tags describe it.
type jsonField struct {
	key         []byte // quoted, with what follows it; nil for an embedded struct
	omit        bool   // when zero
	line, lines bool
}

func fieldsOf(t reflect.Type) []jsonField {
	fields := make([]jsonField, t.NumField())
	for i := range fields {
		f := t.Field(i)
		if f.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		layout := f.Tag.Get("layout")
		fields[i] = jsonField{key: append(appendString(nil, name), ':', ' '), omit: options == "omitzero",
			line: layout == "line", lines: layout == "lines"}
	}
	return fields
}
