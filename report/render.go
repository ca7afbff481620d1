package report

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/scrapestat/scrapestat/internal/texttab"
)

// The formats that [Write] knows.
const (
	FormatText     = "text"
	FormatMarkdown = "markdown"
	FormatJSON     = "json"
	FormatCSV      = "csv"
)

// Formats returns the names of the formats.
func Formats() []string { return []string{FormatText, FormatMarkdown, FormatJSON, FormatCSV} }

// sticky writes until the first error, which it keeps.
type sticky struct {
	w   io.Writer
	err error
}

func (s *sticky) printf(format string, args ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.w, format, args...)
	}
}

// text writes a page as aligned columns.
func (p *page) text(w io.Writer, head []string) error {
	s := &sticky{w: w}
	for _, line := range head {
		s.printf("%s\n", texttab.Escape(line))
	}
	for _, t := range p.tables {
		if t.programs {
			continue
		}
		if t.heading != "" {
			s.printf("\n%s\n", texttab.Escape(t.heading))
		}
		switch {
		case t.title != "":
			s.printf("\n%s\n", texttab.Escape(t.title))
		case t.heading == "":
			s.printf("\n")
		}
		t.text(s)
		for _, n := range t.notes {
			s.printf("%s\n", texttab.Escape(n))
		}
	}
	return s.err
}

func (t *table) text(s *sticky) {
	columns, rows, left := t.shown()
	if t.list {
		for _, row := range rows {
			s.printf("  %s\n", texttab.Escape(strings.Join(texts(columns, row), ": ")))
		}
	} else {
		var tab texttab.Table
		var head []string
		for i, c := range columns {
			head = append(head, t.columns[c].head)
			if t.columns[c].right {
				tab.Right(i)
			}
		}
		tab.Header(head...)
		for _, row := range rows {
			cells := make([]string, len(columns))
			for i, c := range columns {
				cells[i] = row[c].text
			}
			tab.Row(cells...)
		}
		if s.err == nil {
			_, s.err = tab.WriteTo(s.w)
		}
	}
	if left > 0 {
		s.printf("  %d more%s\n", left, t.more)
	}
}

// texts are the non-empty texts of a row.
func texts(columns []int, row []cell) (out []string) {
	for _, c := range columns {
		if row[c].text != "" {
			out = append(out, row[c].text)
		}
	}
	return out
}

// markdown writes a page as GitHub shows it.
func (p *page) markdown(w io.Writer, head []string) error {
	s := &sticky{w: w}
	for i, line := range head {
		if i == 0 {
			s.printf("## %s\n\n", texttab.Markdown(line))
			continue
		}
		s.printf("%s\n", texttab.Markdown(line))
	}
	for _, t := range p.tables {
		if t.programs {
			continue
		}
		if t.heading != "" {
			s.printf("\n### %s\n", texttab.Markdown(t.heading))
		}
		if t.title != "" {
			s.printf("\n**%s**\n", texttab.Markdown(t.title))
		}
		t.markdown(s)
		for _, n := range t.notes {
			s.printf("\n%s\n", texttab.Markdown(n))
		}
	}
	return s.err
}

func (t *table) markdown(s *sticky) {
	columns, rows, left := t.shown()
	s.printf("\n")
	if t.list {
		for _, row := range rows {
			parts := texts(columns, row)
			for i := range parts {
				parts[i] = texttab.Markdown(parts[i])
			}
			s.printf("- %s\n", strings.Join(parts, ": "))
		}
	} else {
		for _, c := range columns {
			s.printf("| %s ", texttab.Markdown(t.columns[c].head))
		}
		s.printf("|\n")
		for _, c := range columns {
			s.printf("|%s", map[bool]string{false: "---", true: "---:"}[t.columns[c].right])
		}
		s.printf("|\n")
		for _, row := range rows {
			for _, c := range columns {
				s.printf("| %s ", texttab.Markdown(row[c].text))
			}
			s.printf("|\n")
		}
	}
	if left > 0 {
		s.printf("\n%d more%s\n", left, texttab.Markdown(t.more))
	}
}

// json writes a page as one object: run, then a list for each kind of table.
func (p *page) json(w io.Writer, run object) error {
	doc := object{{"schema", "scrapestat.show"}, {"schema_version", int64(schemaVersion)}, {"run", run}}
	at := map[string]int{}
	for _, t := range p.tables {
		if t.id == "" {
			continue // for people
		}
		i, ok := at[t.id]
		if !ok {
			i = len(doc)
			at[t.id] = i
			doc = append(doc, field{t.id, []object(nil)})
		}
		rows := doc[i].value.([]object)
		for _, row := range t.rows {
			o := object{}
			for k, c := range t.columns {
				if c.id != "" {
					o = append(o, field{c.id, jsonValue(row[k].value)})
				}
			}
			rows = append(rows, o)
		}
		doc[i].value = rows
	}
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return err
	}
	return b.Flush()
}

// schemaVersion is that of the JSON and the CSV: fields are added, never renamed.
const schemaVersion = 1

// csvIdentity are the fields that say what a line of the CSV is of.
var csvIdentity = [...]string{"engine", "target", "name", "labels"}

// csv writes a page in long form: a line for each number.
func (p *page) csv(w io.Writer) error {
	c := csv.NewWriter(w)
	line := append(append([]string{"section", "row"}, csvIdentity[:]...), "field", "value")
	if err := c.Write(line); err != nil {
		return err
	}
	number := map[string]int{}
	for _, t := range p.tables {
		if t.id == "" {
			continue // for people
		}
		for _, row := range t.rows {
			number[t.id]++
			identity := [len(csvIdentity)]string{}
			for i, name := range csvIdentity {
				for k, col := range t.columns {
					if col.id == name {
						identity[i] = csvValue(row[k].value)
					}
				}
			}
			for k, col := range t.columns {
				if col.id == "" || isIdentity(col.id) {
					continue
				}
				line := append(append([]string{t.id, fmt.Sprint(number[t.id])}, identity[:]...), col.id, csvValue(row[k].value))
				if err := c.Write(line); err != nil {
					return err
				}
			}
		}
	}
	c.Flush()
	return c.Error()
}

func isIdentity(id string) bool {
	for _, name := range csvIdentity {
		if id == name {
			return true
		}
	}
	return false
}
