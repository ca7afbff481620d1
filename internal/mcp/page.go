package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/scrapestat/scrapestat/internal/texttab"
)

// The parts of a page, in bytes of JSON.
const (
	rowSize  = 2000 // what is smaller stands on one page; larger objects and lists are taken apart
	headSize = 1000 // fields of an object that each page with a part of it repeats
)

// decode reads JSON, with fields in their order and numbers as they are written. Texts are made harmless.
func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := decodeNext(d)
	if err != nil {
		return nil, fmt.Errorf("an answer that is no JSON: %w", err)
	}
	return v, nil
}

func decodeNext(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decodeNext(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		o := texttab.Object{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeNext(d)
			if err != nil {
				return nil, err
			}
			o = o.With(clip(fmt.Sprint(name), maxText), v)
		}
		_, err = d.Token()
		return o, err
	}
	if s, ok := token.(string); ok {
		return clip(s, maxText), nil
	}
	return token, nil
}

// clip escapes control characters and cuts a text that is longer than so many characters.
func clip(s string, most int) string {
	s = texttab.Escape(s)
	if len(s) <= most {
		return s
	}
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// encode writes what decode or this package made.
func encode(v any) []byte { return texttab.PrintableJSON(appendJSON(nil, v)) }

// appendJSON appends objects and lists part by part: json.Marshal would read each again at each level above it.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case texttab.Object:
		b = append(b, '{')
		for i, f := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(append(appendJSON(b, f.Name), ':'), f.Value)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, x := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, x)
		}
		return append(b, ']')
	case json.Number:
		return append(b, v...)
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // of a text, a number or a list of texts
	}
	return append(b, text...)
}

// field is that of an object, nil for none.
func field(v any, name string) any {
	o, _ := v.(texttab.Object)
	for _, f := range o {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

// page is the answer that begins with a row.
func (r *result) page(q *question, head texttab.Object, warnings []string, at int) (json.RawMessage, error) {
	warnings = slices.Compact(slices.Sorted(slices.Values(append([]string{}, warnings...))))
	if n := len(warnings); n > 10 {
		warnings = append(warnings[:10], fmt.Sprintf("%d more warnings: call show", n-10))
	}
	for i := range warnings {
		warnings[i] = clip(warnings[i], maxText)
	}
	for rows, budget := maxRows, maxChars-2000; rows > 0; rows, budget = rows/2, budget*2/3 {
		part := &taker{from: at, rows: rows, budget: budget}
		data := r.take(part)
		if part.at < at {
			return nil, errors.New("bad_cursor: nothing is there: ask again without a cursor")
		}
		answer := head.With("units", units(data), "warnings", append([]string{}, warnings...), "data", data)
		if part.full || r.more {
			answer = answer.With("next_cursor", cursorAt(q, part.at))
		}
		if text := encode(answer); len(text) <= maxChars-len(note) {
			return text, nil
		}
	}
	return nil, errors.New("a row is too large for an answer")
}

// take takes a page of a table or a document.
func (r *result) take(p *taker) any {
	if !r.table {
		v, ok := p.take(r.document)
		if !ok {
			return texttab.Object{}
		}
		return v
	}
	first := min(p.from-r.first, len(r.rows))
	n := min(p.rows, len(r.rows)-first)
	out := columns(r.rows[first : first+n])
	for size := len(encode(out)); n > 1 && size > p.budget; size = len(encode(out)) {
		n = max(1, min(n-1, n*p.budget/size))
		out = columns(r.rows[first : first+n])
	}
	p.at = r.first + first + n
	p.full = first+n < len(r.rows)
	return out
}

// columns are rows of the same fields as columns, apart from those that never change.
func columns(rows []texttab.Object) texttab.Object {
	same, many := texttab.Object{}, texttab.Object{}
	for k := 0; len(rows) > 0 && k < len(rows[0]); k++ {
		f := rows[0][k]
		column, first := make([]any, len(rows)), encode(f.Value)
		constant := true
		for i := range rows {
			column[i] = rows[i][k].Value
			constant = constant && bytes.Equal(encode(column[i]), first)
		}
		if constant {
			same = same.With(f.Name, f.Value)
		} else {
			many = many.With(f.Name, column)
		}
	}
	return texttab.NewObject("rows", len(rows), "same", same, "columns", many)
}

// taker takes the rows of a page from a document: in the order in which they stand there, values that are small, or
// that cannot be taken apart. What is larger is there as far as the page has rows of it.
type taker struct {
	from, rows, budget int
	at                 int // the next row
	full               bool
}

// take returns what of a value is on the page, and whether anything is.
func (p *taker) take(v any) (any, bool) {
	if p.full {
		return nil, false
	}
	size := len(encode(v))
	if size > rowSize {
		switch v := v.(type) {
		case []any:
			return p.list(v)
		case texttab.Object:
			return p.object(v)
		}
	}
	if p.at < p.from {
		p.at++
		return nil, false
	}
	if p.full = p.rows == 0 || size > p.budget && p.at > p.from; p.full {
		return nil, false
	}
	p.at++
	p.rows--
	p.budget -= size
	return v, true
}

func (p *taker) list(list []any) (any, bool) {
	var out []any
	for _, x := range list {
		if y, ok := p.take(x); ok {
			out = append(out, y)
		}
	}
	return out, out != nil
}

// object takes the rows of an object. The first of its small fields stand on each page that has one.
func (p *taker) object(o texttab.Object) (any, bool) {
	head := map[string]bool{}
	left := headSize
	for _, f := range o {
		_, isList := f.Value.([]any)
		if size := len(encode(f.Value)) + len(f.Name); !isList && size <= left {
			head[f.Name] = true
			left -= size
		}
	}
	var out texttab.Object
	some := false
	for _, f := range o {
		if head[f.Name] {
			out = out.With(f.Name, f.Value)
		} else if v, ok := p.take(f.Value); ok {
			out, some = out.With(f.Name, v), true
		}
	}
	if some {
		p.budget -= headSize - left
	}
	return out, some
}

// units are those of the quantities of a page that have one each, and of fields by their names.
func units(data any) texttab.Object {
	of := map[string]string{}
	var names []string
	var walk func(v any)
	walk = func(v any) {
		list, _ := v.([]any)
		for _, x := range list {
			walk(x)
		}
		o, _ := v.(texttab.Object)
		unit, ok := field(o, "unit").(string)
		for _, name := range []string{"canonical", "quantity", "id", "name", "family"} {
			if n, named := field(o, name).(string); ok && named && n != "" {
				if had, seen := of[n]; !seen {
					names, of[n] = append(names, n), unit
				} else if had != unit {
					of[n] = "see unit of the row"
				}
				break
			}
		}
		for _, f := range o {
			walk(f.Value)
		}
	}
	walk(data)
	out := texttab.NewObject("*_s", "seconds", "*_ns", "nanoseconds since 1970", "*_tok_s", "tokens/s",
		"share, ratio", "1 is all", "value, low, high", "unit of the row")
	for _, n := range names[:min(len(names), 40)] {
		out = out.With(n, of[n])
	}
	return out
}
