package html

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/report"
)

// maxComparedRows bounds the rows of each verdict.
const maxComparedRows = 120

// comparison is several runs set side by side.
type comparison struct {
	Base        string
	Sides       []string // after the base
	Chips       []chip
	Differences []difference
	Load        []string // how it differed
	Headline    []report.HeadlineTable
	Counts      string // of its verdicts
	Caveats     []string
	Groups      []comparedGroup
	Warnings    []string
	Note        string
}

type difference struct {
	Name   string
	Values []string
}

// comparedGroup is the rows of one verdict.
type comparedGroup struct {
	Verdict, Kind, Meaning string
	Count, Left            int
	Open                   bool
	Rows                   []comparedRow
}

// comparedRow is one quantity of all sides.
type comparedRow struct {
	Name, Stat, Of, Base, Meaning string
	Others                        []comparedCell
}

type comparedCell struct {
	Value, Change, Evidence, Verdict, Kind string
	Picture                                template.HTML
}

// moved stands for the changed rows of single runs: no verdict of package compare.
const moved = compare.Verdict(compare.Verdicts)

// verdictOf is the group that a row is listed in.
func verdictOf(row *compare.Row) compare.Verdict {
	if strings.HasPrefix(row.Word(), "moved") {
		return moved
	}
	return row.Verdict()
}

// The order of verdicts, how they are painted, and what they mean.
var verdicts = []struct {
	verdict       compare.Verdict
	kind, meaning string
}{
	{moved, "warn", "changed by more than varies within the runs; one run a side cannot tell how runs vary"},
	{compare.Worse, "bad", "changed for the worse by more than the minimum effect, and more than noise explains"},
	{compare.Better, "good", "changed for the better by more than the minimum effect, and more than noise explains"},
	{compare.Changed, "warn", "changed, and neither way is better"},
	{compare.NeedsRepeats, "", "differs, but so few runs cannot tell it from noise: repeat the benchmark"},
	{compare.Incomparable, "", "has no partner, or is not the same thing; each row says why"},
	{compare.Same, "", "no change beyond the minimum effect, or none that is more than noise"},
}

func kindOf(v compare.Verdict) string {
	i := slices.IndexFunc(verdicts, func(x struct {
		verdict       compare.Verdict
		kind, meaning string
	}) bool {
		return x.verdict == v
	})
	if i < 0 {
		return ""
	}
	return verdicts[i].kind
}

// compared makes the view of a comparison; nil without one.
func compared(r *compare.Result) *comparison {
	if r == nil || len(r.Sides) < 2 {
		return nil
	}
	c := &comparison{Base: sideName(r, 0)}
	for i := 1; i < len(r.Sides); i++ {
		c.Sides = append(c.Sides, sideName(r, i))
	}
	for _, d := range r.Differences[:min(len(r.Differences), maxRows)] {
		row := difference{Name: clip(d.Kind+" "+d.Name, 120)}
		for _, v := range d.Values {
			row.Values = append(row.Values, dash(v == "", clip(v, 160)))
		}
		c.Differences = append(c.Differences, row)
	}
	for _, w := range r.Warnings[:min(len(r.Warnings), maxTexts)] {
		c.Warnings = append(c.Warnings, clip(w.Text, 400))
	}
	if c.Load, c.Headline = report.HeadlineTables(r); len(c.Headline) > 0 {
		c.Counts = report.HeadlineCounts(r)
	}
	for _, x := range r.Caveats {
		c.Caveats = append(c.Caveats, x.Letter+": "+clip(x.Text, 400))
	}
	for _, v := range verdicts {
		g := comparedGroup{Verdict: "moved", Kind: v.kind, Meaning: v.meaning, Open: v.verdict == compare.Worse}
		if v.verdict != moved {
			g.Verdict = v.verdict.String()
		}
		for i := range r.Rows {
			if verdictOf(&r.Rows[i]) != v.verdict {
				continue
			}
			if g.Count++; len(g.Rows) < maxComparedRows {
				g.Rows = append(g.Rows, comparedRowOf(r, &r.Rows[i]))
			} else {
				g.Left++
			}
		}
		if g.Count > 0 {
			c.Groups = append(c.Groups, g)
			c.Chips = append(c.Chips, chip{grouped(int64(g.Count)) + " " + g.Verdict, v.kind})
		}
	}
	c.Note = fmt.Sprintf("Minimum effect %s, accepted share of false findings %s.", value(r.MinEffect, "ratio"),
		value(r.Alpha, "ratio"))
	if r.Left > 0 {
		c.Note += fmt.Sprintf(" %d rows were left out on request.", r.Left)
	}
	return c
}

func sideName(r *compare.Result, i int) string {
	name := clip(r.Sides[i].Name, 60)
	if n := len(r.Sides[i].Runs); n > 1 {
		name += fmt.Sprintf(" (%d runs)", n)
	}
	return name
}

func comparedRowOf(r *compare.Result, row *compare.Row) comparedRow {
	out := comparedRow{Name: clip(row.Family, 160), Stat: clip(row.Stat, 40), Meaning: clip(row.Meaning, 300)}
	if row.Better != catalog.Neutral {
		out.Meaning = strings.TrimSpace(out.Meaning + " (" + better(row.Better) + ")")
	}
	out.Of = clip(strings.TrimSpace(row.Target+" "+row.Labels.String()), 200)
	if len(row.Cells) > 0 {
		out.Base = cellText(&row.Cells[0], row.Unit)
	}
	for i := 1; i < len(r.Sides) && i < len(row.Cells) && i < len(row.Against); i++ {
		a := &row.Against[i]
		cell := comparedCell{Value: cellText(&row.Cells[i], row.Unit), Verdict: a.Word(), Kind: kindOf(a.Verdict),
			Evidence: evidence(a)}
		if !math.IsNaN(a.Change) && a.Verdict != compare.Incomparable {
			cell.Change = signed(a.Change)
		}
		cell.Picture = forest(&row.Cells[0], a)
		out.Others = append(out.Others, cell)
	}
	return out
}

// cellText is the value of a side, with what bounds it.
func cellText(c *compare.Cell, unit string) string {
	if c.Missing != "" {
		return "– " + clip(c.Missing, 120)
	}
	text := unitText(c.Value, unit)
	switch {
	case !math.IsNaN(c.BoundLow) && !math.IsNaN(c.BoundHigh) && c.BoundLow < c.BoundHigh:
		text += " [" + value(c.BoundLow, unit) + ", " + value(c.BoundHigh, unit) + "]"
	case !math.IsNaN(c.Low) && !math.IsNaN(c.High):
		text += " [" + value(c.Low, unit) + ", " + value(c.High, unit) + "]"
	}
	return text
}

// evidence says what a verdict rests on.
func evidence(a *compare.Comparison) string {
	switch {
	case a.Reason != "":
		return clip(a.Reason, 200)
	case a.Evidence == compare.Repeats:
		return fmt.Sprintf("p %s, corrected %s", plain(a.P), plain(a.Q))
	}
	return strings.ReplaceAll(a.Evidence.String(), "_", " ")
}

// signed writes a change as a percentage with its sign, a large one as a factor.
func signed(change float64) string {
	if change >= 9.995 {
		return fmt.Sprintf("×%.0f", change+1)
	}
	sign := "+"
	if change < 0 {
		sign = "−"
	}
	return fmt.Sprintf("%s%.1f %%", sign, 100*math.Abs(change))
}

// forest draws a change with its interval on an axis from -50 % to +50 %: an arrow is one beyond.
func forest(base *compare.Cell, a *compare.Comparison) template.HTML {
	const w, h, reach = 160.0, 18.0, 0.5
	if math.IsNaN(a.Change) || a.Verdict == compare.Incomparable {
		return ""
	}
	x := func(change float64) float64 { return w/2 + w/2*max(-1, min(1, change/reach)) }
	line, dot := "", fmt.Sprintf(`<circle cx="%.1f" cy="%g" r="4"/>`, x(a.Change), h/2)
	if lo, hi := a.Low/math.Abs(base.Value), a.High/math.Abs(base.Value); !math.IsNaN(lo+hi) && !math.IsInf(lo+hi, 0) {
		line = fmt.Sprintf(`<path class="f-line" d="M%.1f %gH%.1f"/>`, x(lo), h/2, x(hi))
	}
	switch {
	case a.Change > reach:
		dot = fmt.Sprintf(`<path class="f-tip" d="M%g 2L%g %gL%g %gz"/>`, w-9, w, h/2, w-9, h-2)
	case a.Change < -reach:
		dot = fmt.Sprintf(`<path class="f-tip" d="M9 2L0 %gL9 %gz"/>`, h/2, h-2)
	}
	return template.HTML(fmt.Sprintf(
		`<svg class="forest f-%s" viewBox="0 0 %g %g" aria-hidden="true">`+
			`<path class="f-zero" d="M%g 0V%g"/>%s%s</svg>`,
		kindOf(a.Verdict), w, h, w/2, h, line, dot)) // numbers, and a word of ours
}
