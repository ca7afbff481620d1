package texttab

import (
	"bytes"
	"io"
	"slices"
	"strings"
)

const (
	gap       = "  " // between columns
	minShrunk = 12   // a column that is cut keeps at least so many columns
	ellipsis  = "…"
)

// Table collects rows and writes them aligned. The zero value is an empty
// table. It has one owner and is not safe for concurrent use.
type Table struct {
	// Width is how many columns a line should take at most; 0 is no limit. The
	// longest left-aligned columns are cut, marked by "…"; right-aligned ones,
	// which hold numbers, never are, so a line may still be longer.
	Width int

	header []string
	rows   [][]string
	right  map[int]bool
}

// Header sets the first line. A table without one has only rows.
func (t *Table) Header(cells ...string) { t.header = escapeAll(cells) }

// Right aligns the columns of these indices, from 0, to the right.
func (t *Table) Right(columns ...int) {
	if t.right == nil {
		t.right = make(map[int]bool)
	}
	for _, c := range columns {
		t.right[c] = true
	}
}

// Row adds a line. It may have fewer or more cells than others. The slice is
// not kept.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, escapeAll(cells)) }

func escapeAll(cells []string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = Escape(c)
	}
	return out
}

// WriteTo writes the table in one call of Write: one line per row, columns two
// spaces apart, without spaces at the end of lines. It may be called again, also
// after more rows.
func (t *Table) WriteTo(w io.Writer) (int64, error) {
	lines := t.rows
	if t.header != nil {
		lines = slices.Insert(slices.Clone(lines), 0, t.header)
	}
	widths := t.widths(lines)
	var b bytes.Buffer
	for _, cells := range lines {
		t.line(&b, cells, widths)
	}
	return b.WriteTo(w)
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
			if !t.right[i] && w > minShrunk && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

func (t *Table) line(b *bytes.Buffer, cells []string, widths []int) {
	blank := 0 // spaces owed before the next visible cell
	for i, c := range cells {
		c = Truncate(c, widths[i])
		pad := widths[i] - Width(c)
		if t.right[i] {
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
