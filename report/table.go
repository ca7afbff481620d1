package report

import (
	"math"
	"strconv"

	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/units"
)

// page is what is told of a run, in tables that each format writes in its own way. A table without rows is not on it.
type page struct {
	tables []*table
}

func (p *page) add(t *table) {
	if len(t.Rows) > 0 {
		p.tables = append(p.tables, t)
	}
}

// table is one kind of thing the page tells. Tables of the same id, such as the quantities of several engines, have
// the same columns for programs.
type table struct {
	texttab.Table
	id      string // key in the JSON, section in the CSV; stable; "" is for people only
	heading string // that the table begins, "" when it goes on under the last one
	title   string
	list    bool     // for people, rows are lines: "a: b: c"
	notes   []string // below the table, for people
	// programs reports whether people see the same in another form.
	programs bool
	// close sets it right below the table before.
	close bool
	// most is how many rows people see, 0 is all; more tells how to see the others.
	most int
	more string
}

type (
	column = texttab.Column
	cell   = texttab.Cell
)

func newTable(id, title string, columns ...column) *table {
	return &table{Table: texttab.Table{Columns: columns}, id: id, title: title}
}

// newList is a table whose rows are lines for people.
func newList(id, title string, columns ...column) *table {
	t := newTable(id, title, columns...)
	t.list = true
	return t
}

// words makes a column of text, number one of numbers, hidden one for programs only and face one for people only.
func words(id, head string) column  { return column{ID: id, Head: head} }
func number(id, head string) column { return column{ID: id, Head: head, Right: true} }
func hidden(id string) column       { return column{ID: id} }
func face(head string) column       { return column{Head: head} }

func (t *table) row(cells ...cell) { t.Rows = append(t.Rows, cells) }

func both(text string, value any) cell { return cell{Text: text, Value: value} }

// str is a text that is the same for all.
func str(s string) cell { return both(s, s) }

// opt is a text that may be missing.
func opt(s string) cell {
	if s == "" {
		return cell{}
	}
	return str(s)
}

// only is for people.
func only(text string) cell { return cell{Text: text} }

// raw is for programs.
func raw(v any) cell { return cell{Value: v} }

func tally[T int | int64](n T) cell { return both(strconv.FormatInt(int64(n), 10), int64(n)) }

// float is a number with the text for it; a dash where it does not exist.
func float(v float64, there bool, text string) cell {
	if !there || math.IsNaN(v) || math.IsInf(v, 0) {
		return only("-")
	}
	return both(text, v)
}

// in is a number with its unit.
func in(v float64, there bool, unit string) cell { return float(v, there, units.Format(v, unit)) }
