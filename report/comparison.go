package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/units"
)

// ComparisonOptions says how much of a comparison is shown to people.
type ComparisonOptions struct {
	// All also lists rows that are the same, need repeats or cannot be compared, and all of the others; without it they
	// are counted.
	All bool
	// Rows is how many rows are listed without All; 0 means none beneath a headline, 25 without one.
	Rows int
}

// defaultRows is what a person reads in ten seconds.
const defaultRows = 25

// comparison is what all forms for people show of a result, as text that is not yet escaped.
type comparison struct {
	*compare.Result
	all      bool
	listed   []*compare.Row // shown as lines
	counts   [compare.Verdicts]int
	beyond   int // changed rows that are not listed
	moved    int // changed rows of single runs, in none of counts
	groups   []reasonGroup
	byReason map[string]int // index of groups, while rows are added
}

// reasonGroup is the rows that cannot be compared for one reason.
type reasonGroup struct {
	reason string
	names  []string
	rows   int
	named  map[string]bool // names
}

func newComparison(r *compare.Result, o ComparisonOptions) *comparison {
	c := &comparison{Result: r, all: o.All, byReason: map[string]int{}}
	limit := o.Rows
	if limit == 0 && len(r.Headline) == 0 {
		limit = defaultRows
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		v := row.Verdict()
		if word := row.Word(); strings.HasPrefix(word, "moved") {
			c.moved++
		} else {
			c.counts[v]++
		}
		change := v == compare.Worse || v == compare.Better || v == compare.Changed
		switch {
		case v == compare.Incomparable:
			c.addReason(row)
		case o.All || change && len(c.listed) < limit:
			c.listed = append(c.listed, row)
		case change:
			c.beyond++
		}
	}
	slices.SortStableFunc(c.groups, func(a, b reasonGroup) int { return cmp.Compare(b.rows, a.rows) })
	return c
}

// addReason counts a row that cannot be compared under its reason.
func (c *comparison) addReason(row *compare.Row) {
	reason := ""
	for side := 1; side < len(row.Against); side++ {
		if a := &row.Against[side]; a.Verdict == compare.Incomparable {
			reason = a.Reason
			break
		}
	}
	i, known := c.byReason[reason]
	if !known {
		i = len(c.groups)
		c.byReason[reason] = i
		c.groups = append(c.groups, reasonGroup{reason: reason, named: map[string]bool{}})
	}
	g := &c.groups[i]
	g.rows++
	if name := quantityName(row); !g.named[name] {
		g.named[name] = true
		g.names = append(g.names, name)
	}
}

// title says what is compared.
func (c *comparison) title() string {
	var sides []string
	for _, s := range c.Sides {
		sides = append(sides, s.Name+" ("+texttab.Count(len(s.Runs), "run")+")")
	}
	return strings.Join(sides, " against ")
}

// terms says by which rules.
func (c *comparison) terms() string {
	out := fmt.Sprintf("alpha %s per comparison, minimum effect of rows %s", perCent(c.Alpha), perCent(c.MinEffect))
	if c.By != nil {
		out += ", by " + cmp.Or(strings.Join(c.By, ","), "all series")
	}
	if c.Profile != "" {
		out += ", profile " + c.Profile
	}
	if c.Tested > 0 {
		out += fmt.Sprintf("; %s tested, p corrected for that (Benjamini-Hochberg)", texttab.Count(c.Tested, "row"))
	}
	return out
}

// totals counts the verdicts.
func (c *comparison) totals() string {
	n := c.counts
	out := fmt.Sprintf("exploratory rows: %d worse, %d better, %d changed", n[compare.Worse], n[compare.Better],
		n[compare.Changed])
	if c.moved > 0 {
		out += fmt.Sprintf(", %d moved", c.moved)
	}
	var hidden []string
	if c.beyond > 0 {
		hidden = append(hidden, fmt.Sprintf("%d of these", c.beyond))
	}
	if !c.all {
		hidden = append(hidden, fmt.Sprintf("%d the same", n[compare.Same]),
			fmt.Sprintf("%d that need repeats", n[compare.NeedsRepeats]))
		out += "; not listed: " + strings.Join(hidden, ", ")
	} else {
		out += fmt.Sprintf(", %d the same, %d need repeats", n[compare.Same], n[compare.NeedsRepeats])
	}
	out += fmt.Sprintf("; %d cannot be compared", n[compare.Incomparable])
	if c.Left > 0 {
		out += fmt.Sprintf("; %d left out by the selection", c.Left)
	}
	return out
}

// header names the columns of the table.
func (c *comparison) header() []string {
	out := []string{"VERDICT", "QUANTITY"}
	for _, s := range c.Sides {
		out = append(out, s.Name)
	}
	if len(c.Sides) == 2 {
		out = append(out, "CHANGE", "EVIDENCE")
	}
	return append(out, "NOTE")
}

// line is the cells of a row, as header names them.
func (c *comparison) line(row *compare.Row) []string {
	out := []string{row.Word(), rowName(row)}
	for side := range row.Cells {
		out = append(out, c.cell(row, side))
	}
	if len(c.Sides) == 2 {
		out = append(out, changeText(&row.Against[1], row), evidenceText(&row.Against[1], row))
	}
	return append(out, noteText(row))
}

// cell is the value of a side, with its change when there are several sides.
func (c *comparison) cell(row *compare.Row, side int) string {
	cell := &row.Cells[side]
	if cell.Missing != "" {
		return "-"
	}
	out := units.Format(cell.Value, row.Unit)
	if !math.IsNaN(cell.Low) {
		out += fmt.Sprintf(" [%s, %s]", units.Format(cell.Low, row.Unit), units.Format(cell.High, row.Unit))
	}
	if side > 0 && len(c.Sides) > 2 {
		a := &row.Against[side]
		out += fmt.Sprintf(" (%s, %s)", changeText(a, row), a.Word())
	}
	return out
}

// quantityName is the name of a row without its series.
func quantityName(row *compare.Row) string {
	if row.Stat == "" || row.Stat == "value" {
		return row.Family
	}
	return row.Family + " " + row.Stat
}

func rowName(row *compare.Row) string {
	out := quantityName(row) + row.Labels.String()
	if row.Stat != "" && row.Stat != "value" {
		out = row.Family + row.Labels.String() + " " + row.Stat
	}
	if row.Target != "" {
		out += " @ " + row.Target
	}
	return out
}

// changeText is the change in per cent, or in the unit of the row where there is no such thing.
func changeText(a *compare.Comparison, row *compare.Row) string {
	switch {
	case a.Verdict == compare.Incomparable:
		return "-"
	case !math.IsNaN(a.Change):
		return signedPerCent(a.Change)
	case a.Difference == 0:
		return "0"
	default:
		return signed(units.Format(a.Difference, row.Unit), a.Difference)
	}
}

func signed(text string, v float64) string {
	if v > 0 {
		return "+" + text
	}
	return text
}

func signedPerCent(v float64) string { return signed(perCent(v), v) }

// perCent writes a share with two or three digits.
func perCent(v float64) string {
	p := v * 100
	decimals := 1
	switch a := math.Abs(p); {
	case a >= 100 || a == math.Trunc(a):
		decimals = 0
	case a < 1:
		decimals = 2
	}
	return strconv.FormatFloat(p, 'f', decimals, 64) + " %"
}

// evidenceText says what a verdict rests on.
func evidenceText(a *compare.Comparison, row *compare.Row) string {
	switch a.Evidence {
	case compare.Repeats:
		return fmt.Sprintf("p=%s q=%s n=%d+%d", pText(a.P), pText(a.Q), len(row.Cells[0].Values), len(row.Cells[1].Values))
	case compare.WithinRun:
		base := row.Cells[0].Value
		if math.IsNaN(a.Change) || base == 0 {
			return fmt.Sprintf("within-run [%s, %s]", signed(units.Format(a.Low, row.Unit), a.Low),
				signed(units.Format(a.High, row.Unit), a.High))
		}
		low, high := a.Low/base, a.High/base
		return fmt.Sprintf("within-run [%s, %s]", signedPerCent(min(low, high)), signedPerCent(max(low, high)))
	case compare.Exact:
		return "equal"
	}
	return "-"
}

func pText(p float64) string {
	if p < 0.001 {
		return "<0.001"
	}
	return strconv.FormatFloat(p, 'f', 3, 64)
}

// noteText is what is to be known of a row in a few words.
func noteText(row *compare.Row) string {
	var out []string
	for side := 1; side < len(row.Against); side++ {
		a := &row.Against[side]
		if a.Reason != "" {
			out = append(out, a.Reason)
		}
		if d := a.Distance; d != nil && d.Max >= 0.01 && len(row.Against) == 2 {
			i := slices.IndexFunc(d.Shares, func(s compare.Share) bool { return s.Bound == d.At })
			s := d.Shares[max(0, i)]
			out = append(out, fmt.Sprintf("at most %s: %s -> %s", units.Format(d.At, row.Unit), perCent(round(s.Base)),
				perCent(round(s.Other))))
		}
	}
	return strings.Join(append(out, row.Notes...), "; ")
}

// round keeps four digits of a share.
func round(v float64) float64 { return math.Round(v*1e4) / 1e4 }

// ComparisonText prints a comparison as an aligned table, the worst first. Rows that are the same, need repeats or
// cannot be compared are counted unless asked for; reasons are always listed. Everything from runs is escaped.
func ComparisonText(w io.Writer, r *compare.Result, o ComparisonOptions) error {
	c := newComparison(r, o)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", texttab.Escape(c.title()), texttab.Escape(c.terms()))
	if len(c.Differences) > 0 {
		b.WriteString("\ndiffers besides the measurements\n")
		width := 60
		if !o.All { // kind, name and values together in 80 columns
			width = max(12, 56/len(r.Sides)-2)
		}
		_, _ = c.differences(width).WriteTo(&b) // a builder takes everything
	}
	fmt.Fprintf(&b, "\n%s\n%s\n", headlineText(r, o.All), c.totals())
	if len(c.listed) > 0 {
		_, _ = c.table((*compare.Row).Word).WriteTo(&b)
	}
	if len(r.Headline) == 0 || o.All || o.Rows > 0 {
		c.reasonsText(&b)
	}
	for _, x := range r.Caveats {
		fmt.Fprintf(&b, "caveat %s: %s\n", x.Letter, x.Text)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s: %s\n", texttab.Escape(warning.Code), texttab.Escape(warning.Text))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// table has the rows that are listed, with verdicts as verdict writes them.
func (c *comparison) table(verdict func(*compare.Row) string) *texttab.Table {
	t := &texttab.Table{}
	t.Header(c.header()...)
	for i := range c.Sides {
		t.Right(2 + i)
	}
	if len(c.Sides) == 2 {
		t.Right(4)
	}
	for _, row := range c.listed {
		cells := c.line(row)
		cells[0] = verdict(row)
		t.Row(cells...)
	}
	return t
}

// differences has what differs besides the measurements, each value in so many columns at most.
func (c *comparison) differences(width int) *texttab.Table {
	t := &texttab.Table{}
	lone := 0
	for _, d := range c.Differences {
		if d.Kind == "info" && slices.Contains(d.Values, "") && !c.all {
			lone++
			continue
		}
		t.Row(append([]string{d.Kind, d.Name}, apart(d.Values, width)...)...)
	}
	if lone > 0 {
		t.Row("info", texttab.Count(lone, "label")+" that not all sides have")
	}
	return t
}

// apart writes values that differ in so many columns at most: of long ones the words that all begin with are left out.
func apart(values []string, width int) (out []string) {
	same, long := values[0], false
	for _, v := range values {
		for !strings.HasPrefix(v, same) {
			same = same[:strings.LastIndexByte(same[:len(same)-1], ' ')+1]
		}
		long = long || texttab.Width(v) > width
	}
	for _, v := range values {
		if long && same != "" && v != same {
			v = "…" + v[len(same):]
		}
		out = append(out, texttab.Truncate(texttab.Escape(cmp.Or(v, "-")), width))
	}
	return out
}

// namesShown is how many names of rows that cannot be compared are listed under each reason.
const namesShown = 4

func (c *comparison) reasonsText(b *strings.Builder) {
	if len(c.groups) == 0 {
		return
	}
	b.WriteString("\ncannot be compared\n")
	for _, g := range c.groups {
		fmt.Fprintf(b, "  %s (%d): %s\n", texttab.Escape(g.reason), g.rows, texttab.Escape(c.namesOf(g)))
	}
}

func (c *comparison) namesOf(g reasonGroup) string {
	names := g.names
	if len(names) > namesShown && !c.all {
		names = append(slices.Clone(names[:namesShown]), "…")
	}
	return strings.Join(names, ", ")
}

// ComparisonMarkdown writes a comparison as a comment for a pull request: a line with the answer, the table of what
// changed, and the rest folded away. Text from runs cannot become markup.
func ComparisonMarkdown(w io.Writer, r *compare.Result, o ComparisonOptions) error {
	c := newComparison(r, o)
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n", texttab.Markdown(c.title()))
	if len(r.Headline) > 0 {
		fmt.Fprintf(&b, "**%s**\n\n", texttab.Markdown(HeadlineCounts(r)))
		headlineMarkdown(&b, r)
	}
	fmt.Fprintf(&b, "%s\n\n", texttab.Markdown(c.totals()))
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
func verdictMark(row *compare.Row) string {
	switch word := row.Word(); {
	case word == "worse":
		return "🔴 worse"
	case word == "better":
		return "🟢 better"
	case word == "changed", strings.HasPrefix(word, "moved"):
		return "🟡 " + word
	default:
		return word
	}
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
