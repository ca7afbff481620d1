package report

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/units"
)

// page is what is told of a run, in tables that each format writes in its own way.
// A table without rows is not on it.
type page struct {
	tables []*table
}

func (p *page) add(t *table) {
	if len(t.rows) > 0 {
		p.tables = append(p.tables, t)
	}
}

// table is one kind of thing the page tells. Tables of the same id, such as the
// quantities of several engines, have the same columns for programs.
type table struct {
	id      string // key in the JSON, section in the CSV; stable
	heading string // that the table begins, "" when it goes on under the last one
	title   string
	list    bool // for people, rows are lines: "a: b: c"
	columns []column
	rows    [][]cell
	notes   []string // below the table, for people
	// programs says that people see the same in another form.
	programs bool
	// most is how many rows people see, 0 is all; more tells how to see the others.
	most int
	more string
}

// column is a column for people, if it has a head, and for programs, if it has an
// id.
type column struct {
	id, head string
	right    bool
}

// cell is a field of a row: its text for people and its value for programs, which
// is nil where there is none, or a string, bool, int64, float64, list of strings
// or set of labels.
type cell struct {
	text  string
	value any
}

// words makes a column of text, number one of numbers, hidden one for programs
// only and face one for people only.
func words(id, head string) column  { return column{id: id, head: head} }
func number(id, head string) column { return column{id: id, head: head, right: true} }
func hidden(id string) column       { return column{id: id} }
func face(head string) column       { return column{head: head} }

func (t *table) row(cells ...cell) { t.rows = append(t.rows, cells) }

// str is a text that is the same for all.
func str(s string) cell { return cell{s, s} }

// opt is a text that may be missing.
func opt(s string) cell {
	if s == "" {
		return cell{}
	}
	return cell{s, s}
}

// only is for people.
func only(text string) cell { return cell{text: text} }

// raw is for programs.
func raw(v any) cell { return cell{value: v} }

func tally[T int | int64](n T) cell { return cell{strconv.FormatInt(int64(n), 10), int64(n)} }

// float is a number with the text for it; a dash where it does not exist.
func float(v float64, there bool, text string) cell {
	if !there || math.IsNaN(v) || math.IsInf(v, 0) {
		return cell{text: "-"}
	}
	return cell{text, v}
}

// in is a number with its unit.
func in(v float64, there bool, unit string) cell { return float(v, there, units.Format(v, unit)) }

// object is JSON whose fields keep their order.
type object []field

type field struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, f := range o {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := json.Marshal(f.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}

// jsonValue is the value of a cell as JSON has it.
func jsonValue(v any) any {
	l, ok := v.(metric.Labels)
	if !ok {
		return v
	}
	o := object{}
	for name, value := range l.All() {
		o = append(o, field{name, value})
	}
	return o
}

// csvValue is the value of a cell as CSV has it, "" where there is none.
func csvValue(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	case metric.Labels:
		if v.Len() == 0 {
			return ""
		}
		return v.String()
	case []string:
		text, _ := json.Marshal(v) // of strings it cannot fail
		return string(text)
	}
	return ""
}

// shown returns the columns for people and the rows they see.
func (t *table) shown() (columns []int, rows [][]cell, left int) {
	for i, c := range t.columns {
		empty := !slices.ContainsFunc(t.rows, func(row []cell) bool { return row[i].text != "" })
		if c.head != "" && !empty {
			columns = append(columns, i)
		}
	}
	rows = t.rows
	if t.most > 0 && len(rows) > t.most {
		rows = rows[:t.most]
	}
	return columns, rows, len(t.rows) - len(rows)
}
