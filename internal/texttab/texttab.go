package texttab

import (
	"bytes"
	"io"
	"slices"
	"strings"
)

const (
	gap       = "  " // between columns
	minShrunk = 4    // a column that is cut keeps at least so many columns
	ellipsis  = "…"
)

// Column is a column for people, who read its head, and for programs, if it has an id. Those of numbers stand right.
type Column struct {
	ID, Head string
	Right    bool
	// Spare tells which columns Fit leaves out where a line is too long, the highest first; 0 stays.
	Spare int
}

// Cell is a field of a row: its text for people, and its value for programs. A value is nil where there is none, or a
// string, bool, int64, float64, list of strings or set of labels.
type Cell struct {
	Text  string
	Value any
}

// Table collects rows and writes them: aligned, as Markdown, CSV or JSON. The zero value is an empty table. It has one
// owner and is not safe for concurrent use.
type Table struct {
	// Width is how many columns a line of text should take at most; 0 is no limit. The longest left-aligned columns are
	// cut, marked by "…"; right-aligned ones, which hold numbers, never are, so a line may still be longer.
	Width   int
	Columns []Column
	Rows    [][]Cell // one may have fewer or more cells than there are columns
}

// Header sets the heads of the columns. Without any, text has only rows.
func (t *Table) Header(heads ...string) {
	for i, h := range heads {
		t.column(i).Head = h
	}
}

// Right aligns the columns of these indices, from 0, to the right.
func (t *Table) Right(columns ...int) {
	for _, i := range columns {
		t.column(i).Right = true
	}
}

func (t *Table) column(i int) *Column {
	for len(t.Columns) <= i {
		t.Columns = append(t.Columns, Column{})
	}
	return &t.Columns[i]
}

// Row adds a row of texts.
func (t *Table) Row(texts ...string) {
	cells := make([]Cell, len(texts))
	for i, s := range texts {
		cells[i].Text = s
	}
	t.Rows = append(t.Rows, cells)
}

// heads are the heads of the columns through f; nil when none has one.
func (t *Table) heads(f func(string) string) (out []string) {
	for _, c := range t.Columns {
		out = append(out, f(c.Head))
	}
	if !slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Head != "" }) {
		return nil
	}
	return out
}

// texts are the texts of a row through f.
func texts(row []Cell, f func(string) string) []string {
	out := make([]string, len(row))
	for i, c := range row {
		out[i] = f(c.Text)
	}
	return out
}

// Shown returns the table as people see it: without columns that have no head, or no text in any row, and with at most
// that many rows, all for 0. left is how many rows it leaves out.
func (t *Table) Shown(most int) (shown *Table, left int) {
	shown = &Table{Width: t.Width, Rows: make([][]Cell, len(t.Rows))}
	for i, c := range t.Columns {
		if c.Head == "" || !slices.ContainsFunc(t.Rows, func(row []Cell) bool { return row[i].Text != "" }) {
			continue
		}
		shown.Columns = append(shown.Columns, c)
		for k, row := range t.Rows {
			shown.Rows[k] = append(shown.Rows[k], row[i])
		}
	}
	if most > 0 && len(shown.Rows) > most {
		shown.Rows = shown.Rows[:most]
	}
	return shown, len(t.Rows) - len(shown.Rows)
}

// leastText is how many columns a text of its own is still worth.
const leastText = 24

// Fit leaves out spare columns until lines take at most Width columns; a left-aligned one only where not even its
// beginning has room.
func (t *Table) Fit() {
	for t.Width > 0 {
		over, at := t.Natural()-t.Width, -1
		for i, c := range t.Columns {
			if c.Spare > 0 && (at < 0 || c.Spare > t.Columns[at].Spare) {
				at = i
			}
		}
		if over <= 0 || at < 0 || !t.Columns[at].Right && t.widest(at)-over >= leastText {
			return
		}
		t.Columns = slices.Delete(t.Columns, at, at+1)
		for k := range t.Rows {
			t.Rows[k] = slices.Delete(slices.Clone(t.Rows[k]), at, at+1)
		}
	}
}

// widest is how many columns a column takes.
func (t *Table) widest(at int) int {
	n := Width(Escape(t.Columns[at].Head))
	for _, row := range t.Rows {
		n = max(n, Width(Escape(row[at].Text)))
	}
	return n
}

// WriteTo writes the table in one call of Write: one line per row, columns two spaces apart, without spaces at the end
// of lines. It may be called again, also after more rows.
func (t *Table) WriteTo(w io.Writer) (int64, error) {
	var lines [][]string
	if heads := t.heads(Escape); heads != nil {
		lines = append(lines, heads)
	}
	for _, row := range t.Rows {
		lines = append(lines, texts(row, Escape))
	}
	widths := t.widths(lines)
	var b bytes.Buffer
	for _, cells := range lines {
		t.line(&b, cells, widths)
	}
	return b.WriteTo(w)
}

// Natural returns how many columns a line takes where Width sets no limit.
func (t *Table) Natural() int {
	free := Table{Columns: t.Columns, Rows: t.Rows}
	var b bytes.Buffer
	_, _ = free.WriteTo(&b) // a buffer takes everything
	widest := 0
	for line := range strings.Lines(b.String()) {
		widest = max(widest, Width(strings.TrimSuffix(line, "\n")))
	}
	return widest
}

// widths returns the width of each column, shrunk to fit Width where it can.
func (t *Table) widths(lines [][]string) []int {
	var widths []int
	for _, cells := range lines {
		for i, c := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(c))
		}
	}
	if t.Width > 0 {
		t.shrink(widths)
	}
	return widths
}

// shrink takes columns off the widest left-aligned column until the line fits.
func (t *Table) shrink(widths []int) {
	total := len(gap) * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > t.Width; total-- {
		widest := -1
		for i, w := range widths {
			if !t.isRight(i) && w > minShrunk && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

func (t *Table) isRight(i int) bool { return i < len(t.Columns) && t.Columns[i].Right }

func (t *Table) line(b *bytes.Buffer, cells []string, widths []int) {
	blank := 0 // spaces owed before the next visible cell
	for i, c := range cells {
		c = Truncate(c, widths[i])
		pad := widths[i] - Width(c)
		if t.isRight(i) {
			blank, pad = blank+pad, 0
		}
		if c != "" {
			b.WriteString(strings.Repeat(" ", blank))
			b.WriteString(c)
			blank = 0
		}
		blank += pad + len(gap)
	}
	b.WriteByte('\n')
}
