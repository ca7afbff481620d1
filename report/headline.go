package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/compare/judge"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/units"
)

const (
	screenWidth = 80
	sideWidth   = 8 // of the name of a side over its column, where there is no room for more
	causesShown = 8
	causeWidth  = 20
)

// HeadlineText prints what a comparison says first: the load where it differed, the judged values with their verdicts,
// how many there are of each, and what explains them. Everything from runs is escaped.
func HeadlineText(w io.Writer, r *compare.Result) error {
	if _, err := io.WriteString(w, headlineText(r, false)); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

func headlineText(r *compare.Result, all bool) string {
	var b strings.Builder
	for _, line := range LoadLines(r) {
		b.WriteString(texttab.Escape(line) + "\n")
	}
	if len(r.Headline) == 0 {
		return b.String() + "no headline: no quantity of these runs has a canonical id\n"
	}
	for _, s := range headlineBlocks(r) {
		if s.title != "" {
			b.WriteString(texttab.Escape(s.title) + "\n")
		}
		_, _ = s.table(r).WriteTo(&b) // a builder takes everything
		for _, line := range s.notes(r) {
			b.WriteString(texttab.Escape(line) + "\n")
		}
	}
	b.WriteString(strings.Replace(HeadlineCounts(r), "; ", "\n", 1) + "\n")
	causesText(&b, r, all)
	return b.String()
}

// HeadlineMarkdown writes the same as tables, and no text from runs as markup.
func HeadlineMarkdown(w io.Writer, r *compare.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n\n", HeadlineCounts(r))
	headlineMarkdown(&b, r)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// HeadlineTable is a part of a headline for programs that draw it: of a phase, an engine and a side. Texts are not
// escaped.
type HeadlineTable struct {
	Title    string // "" where there is only one
	Heads    []string
	Rows     [][]string // parallel to Heads
	Verdicts []string   // of the rows, as words
	Notes    []string
}

// HeadlineTables returns the judged values of a comparison, and before them how the load differed.
func HeadlineTables(r *compare.Result) (load []string, tables []HeadlineTable) {
	for _, s := range headlineBlocks(r) {
		t := HeadlineTable{Title: s.title, Heads: s.heads(r), Notes: s.notes(r)}
		for _, l := range s.lines {
			t.Rows = append(t.Rows, append([]string{l.Title}, lineCells(l)...))
			t.Verdicts = append(t.Verdicts, string(l.Verdict))
		}
		tables = append(tables, t)
	}
	return LoadLines(r), tables
}

// LoadLines tell how the load of each side differed from the base's.
func LoadLines(r *compare.Result) (out []string) {
	for side := 1; side < len(r.Sides); side++ {
		phase, beyond := "", false
		var parts []string
		flush := func() {
			if len(parts) > 0 {
				out = append(out, "the load differed"+phase+": "+strings.Join(parts, ", "))
				if !beyond {
					out[len(out)-1] += " (may be chance)"
				}
			}
			parts, beyond = nil, false
		}
		for i := range r.LoadDiffers {
			d := &r.LoadDiffers[i]
			if d.Side != side {
				continue
			}
			if p := sectionTitle(r, d.Phase, d.Engine, d.Model, side); p != "" && " in "+p != phase {
				flush()
				phase = " in " + p
			}
			parts = append(parts, fmt.Sprintf("%s %s -> %s", d.Title, shortValue(d.From, d.Unit), shortValue(d.To, d.Unit)))
			beyond = beyond || d.Beyond
		}
		flush()
	}
	return out
}

// sectionTitle names a part of a headline; "" where there is only one.
func sectionTitle(r *compare.Result, phase, engine, model string, side int) string {
	var parts []string
	if phase != "" {
		parts = append(parts, "phase "+phase)
	}
	if engine != "" {
		parts = append(parts, strings.TrimSpace(engine+" "+model))
	}
	if len(r.Sides) > 2 {
		parts = append(parts, r.Sides[side].Name)
	}
	return strings.Join(parts, ", ")
}

// headlineBlock is the lines of a phase, an engine and a side.
type headlineBlock struct {
	title string
	side  int
	lines []*compare.Line
}

func headlineBlocks(r *compare.Result) (out []headlineBlock) {
	for i := range r.Headline {
		l := &r.Headline[i]
		title := sectionTitle(r, l.Phase, l.Engine, l.Model, l.Side)
		if n := len(out); n == 0 || out[n-1].title != title || out[n-1].side != l.Side {
			out = append(out, headlineBlock{title: title, side: l.Side})
		}
		s := &out[len(out)-1]
		s.lines = append(s.lines, l)
	}
	return out
}

// headlineHeads are the columns of the verdict table.
func (s *headlineBlock) heads(r *compare.Result) []string {
	base, other := texttab.Escape(r.Sides[0].Name), texttab.Escape(r.Sides[s.side].Name)
	return []string{"", base, other, "change", perCent(1-r.Alpha) + ", all rows", "verdict"}
}

// shorten makes two names fit over their columns: by their beginnings where these tell them apart, else by their ends.
func shorten(a, b string, width int) (string, string) {
	x, y := texttab.Truncate(a, width), texttab.Truncate(b, width)
	if x == y && a != b {
		tail := func(s string) string {
			r := []rune(s)
			for texttab.Width(string(r)) > width-1 {
				r = r[1:]
			}
			return "…" + string(r)
		}
		x, y = tail(a), tail(b)
	}
	return x, y
}

// table has a row for each line, a percentile beneath the mean of the same quantity.
func (s *headlineBlock) table(r *compare.Result) *texttab.Table {
	t := &texttab.Table{Width: screenWidth}
	heads := s.heads(r)
	t.Header(heads...)
	t.Right(1, 2, 3)
	for i, l := range s.lines {
		title := l.Title
		if l.Stat != "mean" && l.Stat != "" && i > 0 && s.lines[i-1].ID == l.ID {
			title = "  " + l.Stat
		}
		t.Row(append([]string{title}, lineCells(l)...)...)
	}
	for width := max(texttab.Width(heads[1]), texttab.Width(heads[2])); width > sideWidth && t.Natural() > t.Width; {
		width--
		t.Columns[1].Head, t.Columns[2].Head = shorten(heads[1], heads[2], width)
	}
	return t
}

// lineCells are the values of a line, its change with the interval, and its verdict.
func lineCells(l *compare.Line) []string {
	change, interval := "", ""
	if !math.IsNaN(l.Change) {
		change = lineChange(l, l.Change)
		if !math.IsNaN(l.Low) && !l.Share {
			interval = "[" + lineChange(l, l.Low) + ", " + lineChange(l, l.High) + "]"
		}
	}
	return []string{shortValue(l.From, l.Unit), shortValue(l.To, l.Unit), change, interval, VerdictText(l)}
}

// ChangeText is how much a line changed, and the verdict.
func ChangeText(l *compare.Line) string {
	return strings.TrimPrefix(lineCells(l)[2]+", "+VerdictText(l), ", ")
}

// lineChange is a change in per cent, of a share in points.
func lineChange(l *compare.Line, v float64) string {
	switch {
	case v == 0:
		return "0 %"
	case l.Share:
		return signed(strings.TrimSuffix(perCent(v), "%")+"pt", v)
	case v > 999:
		return ">x1000"
	case v >= 9.995: // a factor is read more easily
		return fmt.Sprintf("x%.0f", v+1)
	case math.Abs(v) >= 0.0995:
		return signed(fmt.Sprintf("%.0f %%", v*100), v)
	}
	return signed(fmt.Sprintf("%.1f %%", v*100), v)
}

// VerdictText is the verdict of a line with what is needed to see more.
func VerdictText(l *compare.Line) string {
	word := string(l.Verdict)
	switch l.Verdict {
	case judge.Worse, judge.Better, judge.Changed, judge.MovedUp, judge.MovedDown:
		word = strings.ToUpper(word)
	case judge.Unclear:
		if word += ", >1000 runs"; l.RunsNeeded > 0 {
			word = fmt.Sprintf("unclear, %s", texttab.Count(l.RunsNeeded, "run"))
		}
	case judge.Same:
		if d := math.Abs(l.To - l.From); l.Floor > 0 && d > 0 && d <= l.Floor && math.Abs(l.Change) > l.Margin {
			word = "same (<" + units.Format(l.Floor, l.Unit) + ")"
		}
		if l.ID == "request_rate" {
			word += " (open loop?)"
		}
	}
	if len(l.Notes) > 0 {
		word += " " + strings.Join(l.Notes, "")
	}
	return word
}

// shortValue is a value that fits its column.
func shortValue(v float64, unit string) string {
	if math.IsNaN(v) {
		return "-"
	}
	switch unit {
	case "requests/s", "tokens/s":
		return strings.TrimSuffix(strings.TrimSuffix(units.Format(v, unit), " "+unit), unit) + "/s"
	case "tokens", "requests":
		return fmt.Sprintf("%.1f", v)
	case "ratio":
		return perCent(round(v))
	}
	return units.Format(v, unit)
}

// notes are the lines beneath a table: why rows are not judged, and what is printed beside them.
func (s *headlineBlock) notes(r *compare.Result) (out []string) {
	var reasons []string
	named := map[string][]string{}
	for _, l := range s.lines {
		if l.Verdict == judge.NotJudged {
			if named[l.Reason] == nil {
				reasons = append(reasons, l.Reason)
			}
			named[l.Reason] = append(named[l.Reason], l.Name())
		}
	}
	for _, reason := range reasons {
		if len(named[reason]) == len(s.lines) && len(s.lines) > 1 {
			return []string{"none of these is judged: " + reason}
		}
		out = append(out, "not judged: "+strings.Join(named[reason], ", ")+": "+reason)
	}
	first := s.lines[0]
	var parts []string
	for i := range r.Context {
		x := &r.Context[i]
		if x.Side != s.side || x.Phase != first.Phase || x.Engine != first.Engine || x.Model != first.Model ||
			math.IsNaN(x.From+x.To) || x.ID == "preemption" && x.From == 0 && x.To == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %s -> %s", x.Title, shortValue(x.From, x.Unit), shortValue(x.To, x.Unit)))
	}
	line := ""
	for _, p := range parts {
		if line != "" && len(line)+len(p)+2 > screenWidth {
			out, line = append(out, line), ""
		}
		if line != "" {
			line += ", "
		}
		line += p
	}
	if line != "" {
		out = append(out, line)
	}
	return out
}

// HeadlineCounts says in a line how many rows of the headline have which verdict.
func HeadlineCounts(r *compare.Result) string {
	n := map[judge.Verdict]int{}
	for i := range r.Headline {
		n[r.Headline[i].Verdict]++
	}
	total := len(r.Headline)
	var parts []string
	moved := n[judge.MovedUp] + n[judge.MovedDown]
	between := n[judge.Worse]+n[judge.Better]+n[judge.Unclear] > 0 || moved+n[judge.WithinNoise] == 0
	if between {
		parts = append(parts, fmt.Sprintf("%d of %d are worse, %d better", n[judge.Worse], total, n[judge.Better]))
	} else {
		parts = append(parts, fmt.Sprintf("%d of %d moved", moved, total))
	}
	for _, v := range []judge.Verdict{judge.Changed, judge.Same, judge.Unclear, judge.WithinNoise, judge.NotJudged} {
		if n[v] > 0 || v == judge.Same {
			word := string(v)
			if v == judge.Same {
				word = "the same"
			}
			parts = append(parts, fmt.Sprintf("%d %s", n[v], word))
		}
	}
	out := strings.Join(parts, ", ")
	if !between {
		out += "; one run a side cannot tell how runs vary: give three, see scrapestat repeat"
	}
	return out
}

// causesText lists what explains the changes.
func causesText(b *strings.Builder, r *compare.Result, all bool) {
	if len(r.Causes) == 0 {
		return
	}
	b.WriteString("caused by\n")
	t := &texttab.Table{Width: screenWidth}
	t.Right(1, 2, 3)
	list := r.Causes
	if !all {
		list = list[:min(len(list), causesShown)]
	}
	var also []string
	for i := range list {
		x := &list[i]
		text := ""
		if !math.IsNaN(x.Explains) {
			text = "explains " + units.Format(x.Explains, "seconds")
			if total := meanChange(r, x.Side); !math.IsNaN(total) {
				text += " of " + units.Format(total, "seconds")
			}
		}
		change := ""
		if !math.IsNaN(x.Change) {
			change = signedPerCent(x.Change)
		}
		id := texttab.Truncate(texttab.Escape(x.ID), causeWidth)
		t.Row("  "+id, shortValue(x.From, x.Unit), shortValue(x.To, x.Unit), change, text)
		if all && len(x.Aliases) > 0 {
			also = append(also, "  "+x.ID+" also as: "+strings.Join(x.Aliases, ", "))
		}
	}
	_, _ = t.WriteTo(b) // a builder takes everything
	for _, line := range also {
		b.WriteString(texttab.Escape(line) + "\n")
	}
	if n := len(r.Causes) - len(list); n > 0 {
		fmt.Fprintf(b, "  %d more with --all\n", n)
	}
}

// meanChange is by how much the mean time of a request changed.
func meanChange(r *compare.Result, side int) float64 {
	for i := range r.Headline {
		if l := &r.Headline[i]; l.Name() == "e2e_mean" && l.Side == side {
			return l.To - l.From
		}
	}
	return math.NaN()
}

// headlineMarkdown writes the headline as tables.
func headlineMarkdown(b *strings.Builder, r *compare.Result) {
	for _, line := range LoadLines(r) {
		fmt.Fprintf(b, "%s\n\n", texttab.Markdown(line))
	}
	for _, s := range headlineBlocks(r) {
		if s.title != "" {
			fmt.Fprintf(b, "%s\n\n", texttab.Markdown(s.title))
		}
		t := s.table(r)
		for i := range t.Rows {
			l := s.lines[i]
			t.Rows[i][0].Text = l.Title
			t.Rows[i][5].Text = sign(l) + t.Rows[i][5].Text
		}
		_ = t.WriteMarkdown(b, comparisonRule) // a builder takes everything
		b.WriteString("\n")
		for _, line := range s.notes(r) {
			fmt.Fprintf(b, "%s\n\n", texttab.Markdown(line))
		}
	}
	for i := range r.Causes[:min(len(r.Causes), causesShown)] {
		x := &r.Causes[i]
		if i == 0 {
			b.WriteString("caused by\n\n")
		}
		fmt.Fprintf(b, "- %s %s -> %s", texttab.Markdown(x.ID), units.Format(x.From, x.Unit), units.Format(x.To, x.Unit))
		if !math.IsNaN(x.Explains) {
			fmt.Fprintf(b, ", explains %s", units.Format(x.Explains, "seconds"))
		}
		b.WriteString("\n")
	}
	if len(r.Causes) > 0 {
		b.WriteString("\n")
	}
}

// sign is what is seen from afar.
func sign(l *compare.Line) string {
	switch l.Verdict {
	case judge.Worse:
		return "🔴 "
	case judge.Better:
		return "🟢 "
	case judge.Changed, judge.MovedUp, judge.MovedDown:
		return "🟡 "
	}
	return ""
}
