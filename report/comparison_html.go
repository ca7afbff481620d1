package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/internal/texttab"
)

//go:embed comparison.html
var comparisonPage string

// ComparisonHTML writes a comparison as one self-contained page: no script, no network, and everything from runs is
// escaped. All rows are in it.
func ComparisonHTML(w io.Writer, r *compare.Result) error {
	c := newComparison(r, ComparisonOptions{All: true})
	page := comparisonView{Title: texttab.Escape(c.title()), Terms: c.terms(), Totals: c.totals(),
		Header: escapeAll(c.header())}
	for _, s := range c.Sides {
		page.Sides = append(page.Sides, texttab.Escape(s.Name))
	}
	for _, d := range c.Differences {
		page.Differences = append(page.Differences, append([]string{d.Kind, texttab.Escape(d.Name)}, escapeAll(d.Values)...))
	}
	for _, row := range c.listed {
		class := strings.ReplaceAll(row.Word(), " ", "-")
		page.Rows = append(page.Rows, comparisonLine{Class: class, Meaning: texttab.Escape(row.Meaning),
			Cells: escapeAll(c.line(row))})
	}
	load, tables := HeadlineTables(r)
	page.Load = escapeAll(load)
	for _, t := range tables {
		b := headlineView{Title: texttab.Escape(t.Title), Header: escapeAll(t.Heads), Notes: escapeAll(t.Notes)}
		for i, row := range t.Rows {
			b.Rows = append(b.Rows, comparisonLine{Class: strings.ReplaceAll(t.Verdicts[i], " ", "-"), Cells: escapeAll(row)})
		}
		page.Headline = append(page.Headline, b)
	}
	if len(r.Headline) > 0 {
		page.Counts = HeadlineCounts(r)
	}
	for _, x := range r.Caveats {
		page.Caveats = append(page.Caveats, "caveat "+x.Letter+": "+x.Text)
	}
	for _, g := range c.groups {
		page.Reasons = append(page.Reasons, fmt.Sprintf("%s (%d): %s", texttab.Escape(g.reason), g.rows,
			texttab.Escape(c.namesOf(g))))
	}
	t, err := template.New("comparison").Parse(comparisonPage)
	if err != nil {
		return fmt.Errorf("parse page: %w", err)
	}
	if err := t.Execute(w, page); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// comparisonView is what the page shows.
type comparisonView struct {
	Title, Terms, Totals string
	Counts               string
	Load                 []string
	Headline             []headlineView
	Sides, Header        []string
	Differences          [][]string
	Rows                 []comparisonLine
	Reasons, Caveats     []string
}

// headlineView is a table of the headline.
type headlineView struct {
	Title         string
	Header, Notes []string
	Rows          []comparisonLine
}

// comparisonLine is a row of the page.
type comparisonLine struct {
	Class, Meaning string
	Cells          []string
}

func escapeAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = texttab.Escape(s)
	}
	return out
}
