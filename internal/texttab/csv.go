package texttab

import (
	"bytes"
	"io"
	"strconv"
	"strings"
)

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
