package texttab

import (
	"fmt"
	"io"
	"strings"
)

// Rule is how the line below the head of a Markdown table is spelled.
type Rule struct{ Left, Right string }

// WriteMarkdown writes the table as GitHub shows it, in one call of Write. Every text becomes text there ([Markdown]).
func (t *Table) WriteMarkdown(w io.Writer, rule Rule) error {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	heads := t.heads(Markdown)
	if heads == nil {
		heads = make([]string, len(t.Columns))
	}
	line(heads)
	for i := range t.Columns {
		b.WriteString("|" + map[bool]string{false: rule.Left, true: rule.Right}[t.isRight(i)])
	}
	b.WriteString("|\n")
	for _, row := range t.Rows {
		line(texts(row, Markdown))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Markdown returns a text that GitHub shows as it is, in a line or in a cell of a table: what could begin markup, a
// link, a mention or an issue is made code.
func Markdown(s string) string {
	s = Escape(s)
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' &&
			c <= 'Z', c >= 0x80, strings.IndexByte(" .,%/()+-?;='\"", c) >= 0:
			b.WriteByte(c)
		case c == '[' || c == ']' || c == '_':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == ':' && (i+1 == len(s) || s[i+1] == ' '): // no emoji, no address
			b.WriteByte(c)
		default:
			return markdownCode(s)
		}
	}
	if strings.Contains(strings.ToLower(s), "www.") {
		return markdownCode(s)
	}
	return b.String()
}

// markdownCode makes a text code, between more backticks than it has in a row.
func markdownCode(s string) string {
	fence, run := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		fence = max(fence, run)
	}
	ticks := strings.Repeat("`", fence+1)
	if s != "" && (s[0] == '`' || s[len(s)-1] == '`' || s[0] == ' ') {
		s = " " + s + " "
	}
	return ticks + strings.ReplaceAll(s, "|", `\|`) + ticks
}
