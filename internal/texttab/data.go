package texttab

import (
	"encoding/json"
	"iter"
	"math"
	"strconv"
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
		if math.IsNaN(v) || math.IsInf(v, 0) {
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

// NewObject makes an object of names, which are strings, each with its value.
func NewObject(pairs ...any) Object {
	o := Object{}
	for i := 0; i+1 < len(pairs); i += 2 {
		o = append(o, Field{pairs[i].(string), pairs[i+1]})
	}
	return o
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
		value, err := json.Marshal(f.Value)
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}
