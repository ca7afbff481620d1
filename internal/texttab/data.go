package texttab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// labels is a set of labels.
type labels interface {
	All() iter.Seq2[string, string]
	Len() int
	String() string
}

// CSV is the value of the cell as CSV has it, "" where there is none.
func (c Cell) CSV() string {
	switch v := c.Value.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		if !isFinite(v) {
			return ""
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	case labels:
		if v.Len() > 0 {
			return v.String()
		}
	case []string:
		text, _ := json.Marshal(v) // of strings it cannot fail
		return string(text)
	}
	return ""
}

// Objects are the rows as JSON has them: a field for each column that has an id.
func (t *Table) Objects() []Object {
	var out []Object
	for _, row := range t.Rows {
		o := Object{}
		for i, c := range t.Columns {
			if c.ID != "" {
				o = append(o, Field{c.ID, row[i].json()})
			}
		}
		out = append(out, o)
	}
	return out
}

// json is the value of the cell as JSON has it.
func (c Cell) json() any {
	l, ok := c.Value.(labels)
	if !ok {
		return c.Value
	}
	o := Object{}
	for name, value := range l.All() {
		o = append(o, Field{name, value})
	}
	return o
}

// Object is JSON whose fields keep their order.
type Object []Field

// Field is a field of an Object.
type Field struct {
	Name  string
	Value any
}

// NewObject makes an object of names, which are strings, each with its value. A float64 that is no finite number is
// null.
func NewObject(pairs ...any) Object { return Object{}.With(pairs...) }

// With adds fields.
func (o Object) With(pairs ...any) Object {
	for i := 0; i+1 < len(pairs); i += 2 {
		o = append(o, Field{pairs[i].(string), pairs[i+1]})
	}
	return o
}

// Known adds the fields that have something: no empty text or list, no 0 that is a count, no false, and no float64 that
// is no finite number.
func (o Object) Known(pairs ...any) Object {
	for i := 0; i+1 < len(pairs); i += 2 {
		if hasValue(pairs[i+1]) {
			o = o.With(pairs[i : i+2]...)
		}
	}
	return o
}

func hasValue(v any) bool {
	switch v := v.(type) {
	case float64:
		return isFinite(v)
	case interface{ Len() int }:
		return v.Len() > 0
	}
	r := reflect.ValueOf(v)
	if r.IsValid() && (r.Kind() == reflect.Map || r.Kind() == reflect.Slice) {
		return r.Len() > 0
	}
	return r.IsValid() && !r.IsZero()
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// WriteJSON is [WriteJSON] of the object.
func (o Object) WriteJSON(w io.Writer) error { return WriteJSON(w, o) }

// WriteJSON writes a value with two spaces of indent and a newline at the end. What a terminal would act on is escaped
// as JSON has it: encoding/json does so below U+0020 alone.
func WriteJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(PrintableJSON(b.Bytes()))
	return err
}

// PrintableJSON returns JSON with what a terminal would act on escaped.
func PrintableJSON(text []byte) []byte {
	acts := func(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }
	var out []byte
	for i := bytes.IndexFunc(text, acts); i >= 0; i = bytes.IndexFunc(text, acts) {
		r, n := utf8.DecodeRune(text[i:])
		out, text = append(out, text[:i]...), text[i+n:]
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return append(out, text...)
}

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, f := range o {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := json.Marshal(f.Name)
		if err != nil {
			return nil, err
		}
		if v, ok := f.Value.(float64); ok && !isFinite(v) {
			f.Value = nil
		}
		value, err := json.Marshal(Cell{Value: f.Value}.json())
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}

// List is a list of JSON whose objects are made while it is written.
type List[T any] struct {
	of   []T
	make func(*T) Object
}

// NewList makes a list with an object for each element; both are kept.
func NewList[T any](of []T, object func(*T) Object) List[T] { return List[T]{of, object} }

// Len is how many elements there are.
func (l List[T]) Len() int { return len(l.of) }

// MarshalJSON implements json.Marshaler.
func (l List[T]) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	for i := range l.of {
		if i > 0 {
			out = append(out, ',')
		}
		text, err := l.make(&l.of[i]).MarshalJSON()
		if err != nil {
			return nil, err
		}
		out = append(out, text...)
	}
	return append(out, ']'), nil
}

// WriteCSV writes the columns that have an id, and a line for each row, in one call of Write.
func (t *Table) WriteCSV(w io.Writer) error {
	var b bytes.Buffer
	write := func(text func(i int) string) {
		line, n := b.AvailableBuffer(), 0
		for i, c := range t.Columns {
			if c.ID == "" {
				continue
			}
			if n++; n > 1 {
				line = append(line, ',')
			}
			line = AppendCSV(line, text(i), false)
		}
		b.Write(append(line, '\n'))
	}
	write(func(i int) string { return t.Columns[i].ID })
	for _, row := range t.Rows {
		write(func(i int) string { return row[i].CSV() })
	}
	_, err := b.WriteTo(w)
	return err
}

// AppendCSV appends a cell of a CSV file, in quotes only where it must be, as Python's csv does. A text that a
// spreadsheet would compute gets an apostrophe in front, unless raw.
func AppendCSV(line []byte, text string, raw bool) []byte {
	text = strings.ToValidUTF8(text, "\ufffd")
	if !raw && computes(text) {
		text = "'" + text
	}
	if !strings.ContainsAny(text, ",\"\r\n") {
		return append(line, text...)
	}
	line = append(line, '"')
	line = append(line, strings.ReplaceAll(text, `"`, `""`)...)
	return append(line, '"')
}

// computes reports whether a spreadsheet would take a text for a formula, or for one that was marked as text before. A
// number is none: -1 and +Inf stay as they are.
func computes(v string) bool {
	if v == "" {
		return false
	}
	switch v[0] {
	case '=', '@', '\t', '\r', '\'':
		return true
	case '+', '-':
		_, err := strconv.ParseFloat(v, 64)
		return err != nil
	}
	return false
}
