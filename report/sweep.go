package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/sweep"
	"github.com/scrapestat/scrapestat/units"
)

// SweepText writes sweeps for a terminal of 80 columns.
func SweepText(w io.Writer, sweeps []*sweep.Sweep) error {
	s := &sticky{w: w}
	for i, one := range sweeps {
		if i > 0 {
			s.printf("\n")
		}
		s.printf("%s\n\n", texttab.Escape(SweepTitle(one)))
		t, _ := one.Table(true).Shown(0)
		if s.err == nil {
			_, s.err = t.WriteTo(w)
		}
		s.printf("\n")
		for _, line := range SweepLines(one) {
			head := fmt.Sprintf("%-10s ", line.Head)
			for _, text := range wrap(strings.FieldsSeq(texttab.Escape(line.Text)), 79-len(head)) {
				s.printf("%s\n", strings.TrimRight(head+text, " "))
				head = strings.Repeat(" ", len(head))
			}
		}
	}
	for _, text := range sweepsTogether(sweeps) {
		s.printf("%s\n", texttab.Escape(text))
	}
	s.printf("\nMeans are exact; percentiles with their bounds: --format markdown, json, html\n")
	return s.err
}

// SweepMarkdown writes sweeps as GitHub shows them, with percentiles and their bounds.
func SweepMarkdown(w io.Writer, sweeps []*sweep.Sweep) error {
	s := &sticky{w: w}
	for _, one := range sweeps {
		s.printf("### %s\n\n", texttab.Markdown(SweepTitle(one)))
		if s.err == nil {
			s.err = SweepTable(one).WriteMarkdown(w, texttab.Rule{Left: "---", Right: "---:"})
		}
		s.printf("\n")
		for _, line := range SweepLines(one) {
			s.printf("- %s: %s\n", line.Head, texttab.Markdown(line.Text))
		}
		s.printf("\n")
	}
	for _, text := range sweepsTogether(sweeps) {
		if text != "" {
			s.printf("- %s\n", texttab.Markdown(text))
		}
	}
	return s.err
}

// SweepTable is the table of the points of a sweep, without columns that none has anything in.
func SweepTable(s *sweep.Sweep) *texttab.Table {
	t := s.Table(false)
	out := &texttab.Table{Rows: make([][]texttab.Cell, len(t.Rows))}
	for i, c := range t.Columns {
		if slices.ContainsFunc(t.Rows, func(row []texttab.Cell) bool { return row[i].Text != "-" }) {
			out.Columns = append(out.Columns, c)
			for k, row := range t.Rows {
				out.Rows[k] = append(out.Rows[k], row[i])
			}
		}
	}
	return out
}

// SweepTitle names a sweep: its configuration, engine, points and load.
func SweepTitle(s *sweep.Sweep) string {
	shortest, longest := math.Inf(1), 0.0
	for i := range s.Points {
		shortest, longest = min(shortest, s.Points[i].Seconds), max(longest, s.Points[i].Seconds)
	}
	span := units.Format(shortest, "seconds")
	if to := units.Format(longest, "seconds"); to != span {
		span += " to " + to
	}
	parts := strings.Fields(s.Name + " " + s.Engine)
	return strings.Join(append(parts, fmt.Sprintf("%s of %s, %s", texttab.Count(len(s.Points), "point"), span, s.Unit)),
		"  ")
}

// SweepLine is a line beneath the table of a sweep.
type SweepLine struct{ Head, Text string }

// SweepLines tell what follows from the points of a sweep.
func SweepLines(s *sweep.Sweep) (out []SweepLine) {
	add := func(head, format string, args ...any) {
		out = append(out, SweepLine{head, fmt.Sprintf(format, args...)})
	}
	add("capacity", "%s", capacityText(s))
	if k := s.Knee; k != nil && len(s.Points) > 1 {
		at := number3(k.Load) + " " + s.Unit
		if k.Edge {
			at = "at or beyond " + at
		}
		add("knee", "%s: most throughput for the time of a request (DONE / E2E)", at)
	}
	for i := range s.SLO {
		add("SLO", "%s", bracketText(&s.SLO[i]))
	}
	if least := s.Within(); least != nil && len(s.SLO) > 1 {
		add("SLO", "all: %s, limited by %s", reach(least), least.Text)
	}
	told := map[string]bool{"": true}
	for i := range s.Points {
		if p := &s.Points[i]; !told[p.Limit] {
			add("limit", "%s", limitText(p))
			told[p.Limit] = true
		}
	}
	for i := range s.Points {
		p := &s.Points[i]
		switch p.State {
		case sweep.Unknown:
			add("unknown", "%s: %s", number3(p.Load), p.Why)
		case sweep.Draining:
			add("draining", "%s: it begins with the queue of the load before it; not used", number3(p.Load))
		case sweep.Restart:
			add("restart", "%s: a server restarted; not used", number3(p.Load))
		}
	}
	for _, note := range s.Notes {
		add("note", "%s", note)
	}
	add("next", "%s", nextText(s))
	return out
}

func number3(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

func capacityText(s *sweep.Sweep) string {
	c := &s.Capacity
	text := ""
	switch {
	case c.Status == sweep.Inconsistent:
		text = "inconsistent: over-saturated below loads that were not"
	case c.Status == sweep.NotReached && math.IsNaN(c.X):
		return "not known: no point tells how many requests ended"
	case c.Status == sweep.NotReached:
		text = "not reached: at least " + units.Format(c.X, "") + " req/s"
	default:
		text = units.Format(c.X, "") + " req/s"
		if !math.IsNaN(c.TokS) {
			text += " (" + units.Format(c.TokS, "") + " tok/s)"
		}
		if c.Low > 0 {
			text += fmt.Sprintf(", between the points %s and %s", number3(c.Low), number3(c.High))
		} else {
			text += ", every point was above it"
		}
		if c.Falling {
			text += "; falling: the highest load did less than the best"
		}
	}
	for i, load := range c.Doubted {
		text += map[bool]string{true: "; doubted: ", false: ", "}[i == 0] + number3(load)
	}
	return text
}

// reach is up to which load a bracket holds.
func reach(b *sweep.Bracket) string {
	switch b.Status {
	case sweep.AllPass:
		return "holds at least up to " + number3(b.Low)
	case sweep.NonePass:
		return "fails from the first load, " + number3(b.High)
	case sweep.NoData:
		return "no point has the value"
	case sweep.Straddled:
		if math.IsNaN(b.Low) {
			return "undecided below " + number3(b.High)
		}
		return "holds up to " + number3(b.Low) + ", undecided above"
	}
	return fmt.Sprintf("holds up to %s, fails from %s", number3(b.Low), number3(b.High))
}

func bracketText(b *sweep.Bracket) string {
	text := b.Text + "  " + reach(b)
	if b.Status == sweep.Crossed && !math.IsNaN(b.Load) {
		text += ", interpolated " + number3(b.Load)
	}
	if !math.IsNaN(b.From) {
		text += fmt.Sprintf(", range of repeats %s to %s", number3(b.From), number3(b.To))
	}
	for i, load := range b.Undecided {
		text += map[bool]string{true: "; bounds straddle the limit at ", false: ", "}[i == 0] + number3(load)
	}
	if b.Duration {
		text += fmt.Sprintf("; at %s it depends on duration", number3(b.High))
	}
	if b.Moved > 0.1 {
		text += fmt.Sprintf("; not monotone (moved by %s)", percent(b.Moved))
	}
	if len(b.Without) > 0 {
		text += "; without " + strings.Join(b.Without, ", ")
	}
	switch {
	case b.Status == sweep.NoData:
	case b.Repeats > 1:
		text += fmt.Sprintf(" (%d repeats per point)", b.Repeats)
	default:
		text += " (one run per point)"
	}
	return text
}

// limitText tells by what numbers a resource was the limit of a point.
func limitText(p *sweep.Point) string {
	text := fmt.Sprintf("%s, from %s", p.Limit, number3(p.Load))
	var parts []string
	for _, x := range []struct{ name, text, unit, limit string }{{"kv_usage", "KV cache at %s", "ratio", "kv"},
		{"preemption", "%s preemptions per request", "", "kv"}, {"itl_mean", "%s between two tokens", "seconds", "decode"}} {
		if v := p.Value(x.name); v.Why == "" && v.Value > 0 && x.limit == p.Limit {
			parts = append(parts, fmt.Sprintf(x.text, units.Format(v.Value, x.unit)))
		}
	}
	if !math.IsNaN(p.MeanWaiting) {
		parts = append(parts, fmt.Sprintf("%s running, %s waiting", units.Format(p.MeanRunning, ""),
			units.Format(p.MeanWaiting, "")))
	}
	if p.Limit == "client" {
		parts = append(parts, units.Format(p.Arrivals, "")+" req/s arrived")
	}
	if len(p.Missing) > 0 && p.Limit == "cannot tell" {
		parts = append(parts, "not shown: "+strings.Join(p.Missing, ", "))
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// nextText is what would tell more.
func nextText(s *sweep.Sweep) string {
	repeat := "one run per point: repeat before you publish"
	for i := range s.Points {
		if len(s.Points[i].Repeats) > 1 {
			repeat = "repeat the other points too, four times for a range"
		}
	}
	c := &s.Capacity
	if c.Status == sweep.Reached && c.Low > 0 && c.Low < c.High {
		return fmt.Sprintf("more points between %s and %s; %s", number3(c.Low), number3(c.High), repeat)
	}
	if c.Status == sweep.NotReached && len(s.Points) > 0 {
		return fmt.Sprintf("points above %s; %s", number3(s.Points[len(s.Points)-1].Load), repeat)
	}
	return repeat
}

// sweepsTogether sets configurations against the first one.
func sweepsTogether(sweeps []*sweep.Sweep) (out []string) {
	if len(sweeps) < 2 {
		return nil
	}
	base := sweeps[0]
	name := func(s *sweep.Sweep) string { return strings.Join(strings.Fields(s.Name+" "+s.Engine), " ") }
	out = append(out, "")
	for _, s := range sweeps[1:] {
		if s.Unit != base.Unit {
			out = append(out, fmt.Sprintf("%s is in %s, %s in %s: they are not set against each other", name(s), s.Unit,
				name(base), base.Unit))
			continue
		}
		if a, b := &s.Capacity, &base.Capacity; a.Status == sweep.Reached && b.Status == sweep.Reached {
			out = append(out, fmt.Sprintf("%s: capacity %s of %s", name(s), percent(a.X/b.X), name(base)))
		}
		if a, b := s.Within(), base.Within(); a != nil && b != nil && a.Low > 0 && b.Low > 0 {
			out = append(out, fmt.Sprintf("%s: SLO holds up to %s, %s up to %s", name(s), number3(a.Low), name(base),
				number3(b.Low)))
		}
	}
	for _, c := range sweep.Crossings(sweeps) {
		out = append(out, fmt.Sprintf("%s of %s crosses that of %s between %s and %s", c.Row, c.Sweep, c.Base,
			number3(c.Low), number3(c.High)))
	}
	return append(out, "no verdict without repeats: scrapestat compare judges a load")
}
