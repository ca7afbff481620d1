package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/internal/texttab"
)

// ComparisonMarkdown writes a comparison as a comment for a pull request: a line with the answer, the table of what
// changed, and the rest folded away. Text from runs cannot become markup.
func ComparisonMarkdown(w io.Writer, r *compare.Result, o ComparisonOptions) error {
	c := newComparison(r, o)
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n**%s**\n\n", texttab.Markdown(c.title()), texttab.Markdown(c.totals()))
	if len(c.listed) > 0 {
		t := c.table(verdictMark)
		t.Columns[0].Head = ""
		_ = t.WriteMarkdown(&b, comparisonRule) // a builder takes everything
		b.WriteString("\n")
	}
	c.markdownDifferences(&b)
	c.markdownReasons(&b)
	for _, x := range r.Caveats {
		fmt.Fprintf(&b, "caveat %s: %s\n\n", x.Letter, texttab.Markdown(x.Text))
	}
	fmt.Fprintf(&b, "<sub>%s</sub>\n", texttab.Markdown(c.terms()))
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

var comparisonRule = texttab.Rule{Left: " --- ", Right: " --- "}

func (c *comparison) markdownDifferences(b *strings.Builder) {
	if len(c.Differences) == 0 {
		return
	}
	fmt.Fprintf(b, "<details><summary>differs besides the measurements (%d)</summary>\n\n", len(c.Differences))
	t := c.differences(math.MaxInt)
	heads := []string{"", ""}
	for _, s := range c.Sides {
		heads = append(heads, s.Name)
	}
	t.Header(heads...)
	_ = t.WriteMarkdown(b, comparisonRule)
	b.WriteString("\n</details>\n\n")
}

func (c *comparison) markdownReasons(b *strings.Builder) {
	if len(c.groups) == 0 {
		return
	}
	fmt.Fprintf(b, "<details><summary>cannot be compared (%d)</summary>\n\n", c.counts[compare.Incomparable])
	for _, g := range c.groups {
		fmt.Fprintf(b, "- %s (%d): %s\n", texttab.Markdown(g.reason), g.rows, texttab.Markdown(c.namesOf(g)))
	}
	b.WriteString("\n</details>\n\n")
}
