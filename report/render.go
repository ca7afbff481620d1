package report

import (
	"fmt"
	"io"
	"slices"
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

// forPeople writes the tables for people: around each its heading, title and notes in a format for each, in which
// empty ones take no place.
func (p *page) forPeople(s *sticky, form peopleFormat) error {
	for _, t := range p.tables {
		if t.programs {
			continue
		}
		if t.heading != "" {
			s.printf(form.heading, form.cut(form.escape(t.heading)))
		}
		switch {
		case t.title != "":
			s.printf(form.title, form.escape(t.title))
		case t.heading == "" && !t.close:
			s.printf("%s", form.gap)
		}
		s.printf("%s", form.above)
		shown, left := t.Shown(t.most)
		if t.list {
			for _, row := range shown.Rows {
				s.printf(form.item, form.lines(listItem(row, form.escape)))
			}
		} else if s.err == nil && len(shown.Columns) > 0 {
			s.err = form.table(shown, s.w)
		}
		if left > 0 {
			s.printf(form.more, left, form.escape(t.more))
		}
		for _, n := range t.notes {
			if n = form.escape(n); form.width > 0 && texttab.Width(n) > form.width {
				n = form.lines(n)
			}
			s.printf(form.note, n)
		}
	}
	return s.err
}

// listItem is a row as a line: its texts that are not empty.
func listItem(row []cell, escape func(string) string) string {
	var parts []string
	for _, c := range row {
		if c.Text != "" {
			parts = append(parts, escape(c.Text))
		}
	}
	return strings.Join(parts, ": ")
}

// peopleFormat is how a format for people writes what is around and in a table.
type peopleFormat struct {
	escape                                       func(string) string
	heading, title, gap, above, item, more, note string
	table                                        func(*texttab.Table, io.Writer) error
	width                                        int // that items are broken at, 0 for none
}

// lines breaks an item into lines.
func (f *peopleFormat) lines(text string) string {
	if f.width == 0 {
		return text
	}
	if texttab.Width(text) <= f.width-2 {
		return text
	}
	return strings.Join(wrap(strings.SplitSeq(text, " "), f.width-4), "\n    ")
}

var textFormat = peopleFormat{texttab.Escape, "\n%s\n", "\n%s\n", "\n", "", "  %s\n", "  %d more%s\n", "%s\n",
	func(t *texttab.Table, w io.Writer) error { t.Fit(); _, err := t.WriteTo(w); return err }, 0}

var markdownFormat = peopleFormat{texttab.Markdown, "\n### %s\n", "\n**%s**\n", "", "\n", "- %s\n", "\n%d more%s\n",
	"\n%s\n",
	func(t *texttab.Table, w io.Writer) error {
		return t.WriteMarkdown(w, texttab.Rule{Left: "---", Right: "---:"})
	}, 0}

// cut shortens a line.
func (f *peopleFormat) cut(text string) string {
	if f.width == 0 {
		return text
	}
	return texttab.Truncate(text, f.width)
}

// text writes a page as aligned columns; of one with more lines than most those before the last ones are cut, 0 is all.
func (p *page) text(w io.Writer, head []string, width, most, last int) error {
	var b strings.Builder
	s := &sticky{w: &b}
	form := textFormat
	form.width = width
	for _, line := range head {
		s.printf("%s\n", form.cut(texttab.Escape(line)))
	}
	if err := p.forPeople(s, form); err != nil {
		return err
	}
	lines := strings.SplitAfter(strings.TrimSuffix(b.String(), "\n"), "\n")
	if over := len(lines) - most; most > 0 && over > 0 {
		end := slices.Clone(lines[len(lines)-last:])
		for strings.HasPrefix(lines[most-last-1], "    ") { // half of an item
			most--
		}
		lines, over = lines[:most-last-1], len(lines)-most
		for n := len(lines); n > 2 && strings.TrimSpace(lines[n-2]) == ""; n = len(lines) { // a title without what it is of
			lines, over = lines[:n-2], over+2
		}
		lines = append(lines, fmt.Sprintf("  %d more lines (--all shows them)\n", over+1))
		lines = append(lines, end...)
	}
	_, err := io.WriteString(w, strings.Join(lines, "")+"\n")
	return err
}

// markdown writes a page as GitHub shows it.
func (p *page) markdown(w io.Writer, head []string) error {
	s := &sticky{w: w}
	for i, line := range head {
		if i == 0 {
			line = "## " + texttab.Markdown(line) + "\n"
		} else {
			line = texttab.Markdown(line)
		}
		s.printf("%s\n", line)
	}
	return p.forPeople(s, markdownFormat)
}

// json writes a page as one object: run, then a list for each kind of table.
func (p *page) json(w io.Writer, run texttab.Object) error {
	doc := texttab.NewObject("schema", "scrapestat.show", "schema_version", int64(schemaVersion), "run", run)
	for _, t := range p.tables {
		if t.id == "" {
			continue
		}
		i := slices.IndexFunc(doc, func(f texttab.Field) bool { return f.Name == t.id })
		if i < 0 {
			i = len(doc)
			doc = append(doc, texttab.Field{Name: t.id, Value: []texttab.Object(nil)})
		}
		doc[i].Value = append(doc[i].Value.([]texttab.Object), t.Objects()...)
	}
	return doc.WriteJSON(w)
}

// schemaVersion is that of the JSON and the CSV: fields are added, never renamed.
const schemaVersion = 1

// csvIdentity are the fields that say what a line of the CSV is of.
var csvIdentity = []string{"engine", "target", "name", "labels"}

// csv writes a page in long form: a line for each number.
func (p *page) csv(w io.Writer) error {
	var out texttab.Table
	for _, id := range slices.Concat([]string{"section", "row"}, csvIdentity, []string{"field", "value"}) {
		out.Columns = append(out.Columns, texttab.Column{ID: id})
	}
	number := map[string]int64{}
	for _, t := range p.tables {
		if t.id == "" {
			continue
		}
		for _, row := range t.Rows {
			number[t.id]++
			about := []texttab.Cell{{Value: t.id}, {Value: number[t.id]}}
			for _, name := range csvIdentity {
				var cell texttab.Cell
				if k := slices.IndexFunc(t.Columns, func(c column) bool { return c.ID == name }); k >= 0 {
					cell = row[k]
				}
				about = append(about, cell)
			}
			for k, c := range t.Columns {
				if c.ID != "" && !slices.Contains(csvIdentity, c.ID) {
					out.Rows = append(out.Rows, append(slices.Clone(about), texttab.Cell{Value: c.ID}, row[k]))
				}
			}
		}
	}
	return out.WriteCSV(w)
}
