package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/internal/texttab"
)

// ComparisonMarkdown writes a comparison as a comment for a pull request: a line
// with the answer, the table of what changed, and the rest folded away. Text from
// runs cannot become markup.
func ComparisonMarkdown(w io.Writer, r *compare.Result, o ComparisonOptions) error {
	c := newComparison(r, o)
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n**%s**\n\n", markdown(c.title()), markdown(c.totals()))
	if len(c.listed) > 0 {
		header := c.header()
		header[0] = ""
		for i := range header {
			header[i] = markdown(header[i]) // it has the names of the sides
		}
		markdownRow(&b, header)
		b.WriteString(strings.Repeat("| --- ", len(header)) + "|\n")
		for _, row := range c.listed {
			cells := c.line(row)
			cells[0] = verdictMark(row.Verdict())
			for i := range cells {
				cells[i] = markdown(cells[i])
			}
			markdownRow(&b, cells)
		}
		b.WriteString("\n")
	}
	c.markdownDifferences(&b)
	c.markdownReasons(&b)
	fmt.Fprintf(&b, "<sub>%s</sub>\n", markdown(c.terms()))
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// verdictMark is the verdict with a sign that is seen from afar.
func verdictMark(v compare.Verdict) string {
	switch v {
	case compare.Worse:
		return "🔴 worse"
	case compare.Better:
		return "🟢 better"
	case compare.Changed:
		return "🟡 changed"
	}
	return v.String()
}

func markdownRow(b *strings.Builder, cells []string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// markdown escapes a text so that it is shown as it is: no line ends, no markup, no
// mentions, no links.
func markdown(s string) string {
	s = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(texttab.Escape(s))
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\\`*_[]|~@#!", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
		if r == '@' {
			b.WriteRune('\u200b') // GitHub would notify whoever has that name
		}
	}
	return strings.ReplaceAll(b.String(), "://", ":\u200b//") // nor make it a link
}

func (c *comparison) markdownDifferences(b *strings.Builder) {
	if len(c.Differences) == 0 {
		return
	}
	fmt.Fprintf(b, "<details><summary>differs besides the measurements (%d)</summary>\n\n", len(c.Differences))
	header := []string{"", ""}
	for _, s := range c.Sides {
		header = append(header, markdown(s.Name))
	}
	markdownRow(b, header)
	b.WriteString(strings.Repeat("| --- ", len(header)) + "|\n")
	for _, d := range c.Differences {
		cells := []string{markdown(d.Kind), markdown(d.Name)}
		for _, v := range d.Values {
			cells = append(cells, markdown(cmp.Or(v, "-")))
		}
		markdownRow(b, cells)
	}
	b.WriteString("\n</details>\n\n")
}

func (c *comparison) markdownReasons(b *strings.Builder) {
	if len(c.groups) == 0 {
		return
	}
	fmt.Fprintf(b, "<details><summary>cannot be compared (%d)</summary>\n\n", c.counts[compare.Incomparable])
	for _, g := range c.groups {
		fmt.Fprintf(b, "- %s (%d): %s\n", markdown(g.reason), g.rows, markdown(c.namesOf(g)))
	}
	b.WriteString("\n</details>\n\n")
}
