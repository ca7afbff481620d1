package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/history"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/units"
)

// HistoryOptions says how much of a history is shown.
type HistoryOptions struct {
	SinceNS int64 // events before it are left out
	Lines   int   // of events at most; 0 is no limit
}

// HistoryText prints the last level, the trend and the changes of each series, then what changed where, the latest
// first. Everything from runs is escaped.
func HistoryText(w io.Writer, v *history.View, o HistoryOptions) error {
	return writeHistory(w, v, o, func(b *strings.Builder, t *texttab.Table) {
		_, _ = t.WriteTo(b) // a builder takes everything
	}, func(b *strings.Builder, e []string) {
		for _, line := range e {
			b.WriteString(texttab.Escape(line) + "\n")
		}
	})
}

// HistoryMarkdown writes the same for a comment on a change: at most 40 lines, and no text from runs as markup.
func HistoryMarkdown(w io.Writer, v *history.View, o HistoryOptions) error {
	o.Lines = cmp.Or(o.Lines, historyLines)
	return writeHistory(w, v, o, func(b *strings.Builder, t *texttab.Table) {
		if extra := len(t.Rows) - historyLines/2; extra > 0 {
			t.Rows = t.Rows[:historyLines/2]
		}
		_ = t.WriteMarkdown(b, texttab.Rule{Left: "---", Right: "---:"})
	}, func(b *strings.Builder, e []string) {
		for i, line := range e {
			b.WriteString(strings.Repeat("  ", min(i, 1)) + "- " + texttab.Markdown(strings.TrimSpace(line)) + "\n")
		}
	})
}

// historyLines is how long a comment on a change may be.
const historyLines = 40

// writeHistory writes a view by means of how tables and events are written.
func writeHistory(w io.Writer, v *history.View, o HistoryOptions, table func(*strings.Builder, *texttab.Table),
	event func(*strings.Builder, []string)) error {
	var b strings.Builder
	event(&b, []string{HistoryTitle(v)})
	for from := 0; from < len(v.Series); {
		to := from
		for to < len(v.Series) && historyPart(v.Series[to]) == historyPart(v.Series[from]) {
			to++
		}
		b.WriteByte('\n')
		event(&b, []string{historyPart(v.Series[from])})
		if b.String()[b.Len()-2] != '\n' && o.Lines > 0 {
			b.WriteByte('\n')
		}
		table(&b, historyTable(v.Series[from:to]))
		from = to
	}
	lines, left := strings.Count(b.String(), "\n"), 0
	for i := range v.Events {
		e := &v.Events[i]
		if e.When() < o.SinceNS {
			continue
		}
		text := EventLines(e)
		if lines += len(text) + 1; o.Lines > 0 && lines >= o.Lines {
			left++
			continue
		}
		b.WriteByte('\n')
		event(&b, text)
	}
	if left > 0 {
		fmt.Fprintf(&b, "\n%s more\n", texttab.Count(left, "event"))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// HistoryTitle says of how many runs a view is, and which is the last.
func HistoryTitle(v *history.View) string {
	parts := []string{texttab.Count(len(v.Runs), "run")}
	if v.Branch != "" {
		parts = append(parts, v.Branch)
	}
	parts = append(parts, texttab.Count(len(v.Configs), "configuration"))
	if n := len(v.Runs); n > 0 {
		parts = append(parts, "last: "+RunName(v.Runs[n-1]))
	}
	return strings.Join(parts, ", ")
}

// RunName is how a run is called: its commit, and its number or where it lies.
func RunName(r *history.Run) string {
	name := cmp.Or(filepath.Base(r.Path), r.ID)
	if r.Number > 0 {
		name = fmt.Sprintf("run %d", r.Number)
	}
	if r.Commit == "" {
		return name + ", " + day(r)
	}
	return fmt.Sprintf("%s (%s)", ShortCommit(r.Commit), name)
}

// ShortCommit is a commit as people write it.
func ShortCommit(c string) string {
	if len(c) == 40 && strings.Trim(c, "0123456789abcdef") == "" {
		return c[:7]
	}
	return texttab.Truncate(c, 24)
}

func day(r *history.Run) string { return time.Unix(0, r.AtNS).UTC().Format(time.DateOnly) }

// historyPart names what series have in common.
func historyPart(s *history.Series) string {
	parts := []string{s.Fingerprint, s.Engine, s.Target}
	if s.Phase != "" {
		parts = append(parts, "phase "+s.Phase)
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

// historyTable has a row for each series.
func historyTable(list []*history.Series) *texttab.Table {
	t := &texttab.Table{}
	t.Header("QUANTITY", "LAST SEGMENT", "TREND", "CHANGES (95 %)")
	for _, s := range list {
		t.Row(s.Quantity, LevelText(s), trend(s), changesText(s))
	}
	return t
}

// LevelText is the last level of a series: its mean, how runs vary around it, and how many there are.
func LevelText(s *history.Series) string {
	center, spread, n := s.Level()
	if n == 0 {
		return "no value"
	}
	out := shortValue(center, s.Unit)
	switch {
	case math.IsNaN(spread):
	case s.Found.Log:
		out += " ±" + perCent(round(spread))
	default:
		out += " ±" + shortValue(spread, s.Unit)
	}
	return fmt.Sprintf("%s (%d)", out, n)
}

// trendWidth is how many columns a trend takes.
const trendWidth = 21

// trend draws the values of a series as blocks, each the mean of as many runs.
func trend(s *history.Series) string {
	n := min(trendWidth, len(s.Line))
	means := make([]float64, n)
	lo, hi := math.Inf(1), math.Inf(-1)
	for i := range means {
		from, to := i*len(s.Line)/n, (i+1)*len(s.Line)/n
		for k := from; k < to; k++ {
			means[i] += s.At(k).Value / float64(to-from)
		}
		lo, hi = min(lo, means[i]), max(hi, means[i])
	}
	// A trend of less than a tenth is drawn as small as it is.
	if middle, least := (lo+hi)/2, 0.1*math.Abs(lo+hi)/2; hi-lo < least {
		lo, hi = middle-least/2, middle+least/2
	}
	var b strings.Builder
	for _, m := range means {
		level := 3
		if hi > lo {
			level = int(math.Round(7 * (m - lo) / (hi - lo)))
		}
		b.WriteRune([]rune("▁▂▃▄▅▆▇█")[min(7, max(0, level))])
	}
	return b.String()
}

// changesText are the changes of a series beyond its margin, the latest first, its drifts, and how far it crept.
func changesText(s *history.Series) string {
	var parts []string
	for _, d := range s.Found.Drifts {
		parts = append(parts, fmt.Sprintf("drift %s, %s to %d", stepText(d.Change, s.Found.Log, s.Unit),
			fmt.Sprint("run ", s.At(d.Start).Number), s.At(d.End-1).Number))
	}
	list := s.Changes()
	for i := len(list) - 1; i >= 0; i-- {
		c := &list[i]
		switch {
		case c.Minor:
		case c.Edge:
			parts = append(parts, fmt.Sprintf("edge of a drift at run %d", c.At.Number))
		default:
			parts = append(parts, fmt.Sprintf("%s%s at run %d", stepText(c.Change.Change, c.Log, c.Unit),
				interval(c), c.At.Number))
		}
	}
	if c, ok := s.Crept(); ok {
		parts = append(parts, fmt.Sprintf("crept %s since run %d", stepText(c.Change, s.Found.Log, s.Unit), c.Since.Number))
	}
	if s.Found.Unstable {
		parts = append(parts, "unstable")
	}
	if more := len(parts) - changesShown; more > 0 {
		parts = append(parts[:changesShown], fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, "; ")
}

// changesShown is how many changes of a series its row tells.
const changesShown = 2

// stepText is a change in per cent, or where values may be 0 a difference.
func stepText(change float64, relative bool, unit string) string {
	if !relative {
		return signed(units.Format(change, unit), change)
	}
	if math.Abs(change) >= 0.0995 {
		return signed(fmt.Sprintf("%.0f %%", change*100), change)
	}
	return signed(fmt.Sprintf("%.1f %%", change*100), change)
}

// interval is that of a relative change.
func interval(c *history.Change) string {
	if !c.Log || math.IsNaN(c.Low) {
		return ""
	}
	return fmt.Sprintf(" [%.1f, %.1f]", c.Low*100, c.High*100)
}

// EventLines say what changed, between which runs, and which settings changed there.
func EventLines(e *history.Event) (out []string) {
	word := e.Word()
	var parts []string
	for i := range e.Changes {
		c := &e.Changes[i]
		text := c.Quantity + " " + stepText(c.Change.Change, c.Log, c.Unit)
		if !math.IsNaN(c.P) {
			text += fmt.Sprintf(" (p %.2g)", c.P)
		}
		if c.Word != word {
			text += " " + c.Word
		}
		if c.Minor {
			text += " minor"
		}
		parts = append(parts, text)
	}
	c := &e.Changes[0]
	switch {
	case e.Kind == history.Creep:
		word = "crept"
	case e.Kind == history.Drift:
		word += ", drift"
	case c.Accepted:
		word += ", accepted"
	case c.Minor:
		word = "minor, " + word
	}
	out = append(out, fmt.Sprintf("%-7s %s", word, strings.Join(parts, ", ")))
	place := fmt.Sprintf("        between %s and %s, %s", RunName(c.Before), RunName(c.Last), day(c.At))
	if e.Kind != history.Step {
		place = fmt.Sprintf("        from %s to %s", RunName(c.Before), RunName(c.Last))
	}
	out = append(out, place)
	if len(e.Settings) > 0 {
		var list []string
		for _, x := range e.Settings[:min(len(e.Settings), 8)] {
			list = append(list, fmt.Sprintf("%s %s -> %s", x.Name, cmp.Or(x.From, "none"), cmp.Or(x.To, "none")))
		}
		if more := len(e.Settings) - len(list); more > 0 {
			list = append(list, fmt.Sprintf("and %d more", more))
		}
		out = append(out, "        settings that changed there: "+strings.Join(list, ", "))
	}
	return out
}
