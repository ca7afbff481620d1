package doctor

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/texttab"
)

// JSON writes the reports as one indented object {"targets": [...]}.
func JSON(w io.Writer, reports []*Report) error {
	return texttab.WriteJSON(w, struct {
		Targets []*Report `json:"targets"`
	}{reports})
}

// Text writes a table of the targets, and the details of each after it.
func Text(w io.Writer, reports []*Report) error {
	var t texttab.Table
	t.Header("TARGET", "VERDICT", "ENGINE", "ANSWER", "BODY", "SAMPLES", "INTERVAL", "AN HOUR", "FINDINGS")
	t.Right(3, 4, 5, 6, 7)
	for _, r := range reports {
		row := []string{r.label(), r.verdict(), r.engine(), "-", "-", "-", "-", "-", r.counts()}
		if r.Samples > 0 {
			row[4], row[5] = size(r.BodyBytes), strconv.Itoa(r.Samples)
		}
		if r.Cost.Scrapes > 0 {
			row[3], row[6], row[7] = ms(r.Cost.AnswerMS), ms(r.Cost.RecommendedMS), size(r.Cost.BytesPerHour)
		}
		t.Row(row...)
	}
	if _, err := t.WriteTo(w); err != nil {
		return err
	}
	for _, r := range reports {
		if _, err := io.WriteString(w, r.details()); err != nil {
			return err
		}
	}
	return nil
}

func (r *Report) label() string { return cmp.Or(r.Name, r.URL) }

// verdict is the worst of what was found, in a word.
func (r *Report) verdict() string {
	switch {
	case !r.Collectable:
		return "cannot be collected"
	case slices.ContainsFunc(r.Finding, func(f Finding) bool { return f.Level != Note }):
		return "works, with warnings"
	}
	return "fine"
}

func (r *Report) engine() string {
	var names []string
	for _, g := range r.Engines {
		names = append(names, strings.TrimSpace(g.Name+" "+g.Version))
	}
	return cmp.Or(strings.Join(names, " + "), "unknown")
}

func (r *Report) counts() string {
	n := map[Level]int{}
	for _, f := range r.Finding {
		n[f.Level]++
	}
	var parts []string
	for _, l := range []Level{Error, Warning, Note} {
		if n[l] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s%s", n[l], l, strings.Repeat("s", min(n[l]-1, 1))))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// mostModels is how many models have a line.
const mostModels = 12

// details is the part of the text about one target, escaped line by line.
func (r *Report) details() string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(texttab.Escape(fmt.Sprintf(format, args...)) + "\n")
	}
	b.WriteString("\n")
	line("%s", strings.TrimSpace(r.Name+" "+r.URL))
	for _, f := range r.Finding {
		line("  %s: %s [%s]", f.Level, f.Text, f.Code)
		if f.Remedy != "" {
			line("      do: %s", f.Remedy)
		}
	}
	for _, g := range r.Engines {
		if g.VersionFrom != "" {
			line("  version: %s says %s is %s", g.VersionFrom, g.Name, g.Version)
		}
	}
	if r.Samples > 0 {
		line("  body: %d samples of %d series in %d families, read as %s (Content-Type %s)", r.Samples, r.Series, r.Families,
			r.Format, cmp.Or(r.ContentType, "none"))
	}
	for i, m := range r.Models {
		if i == mostModels {
			line("  %d more models", len(r.Models)-i)
			break
		}
		line("  model %s: %d series", m.Name, m.Series)
	}
	if r.Samples > 0 && len(r.Unknown) > 0 {
		line("  %s; scrapestat catalog unknown BODY lists them", catalog.CensusText(r.Known, r.Unknown))
	}
	if c := r.Cost; c.Scrapes > 0 {
		line("  cost: median answer %s of %d; %.0f samples change in between; no interval below %s; %s recommended: %s",
			ms(c.AnswerMS), c.Scrapes, c.Changed, ms(c.SmallestMS), ms(c.RecommendedMS), c.Why)
	}
	if r.SkewMS != nil {
		line("  clock: %+.1f s against ours, to within a second", *r.SkewMS/1e3)
	}
	for _, t := range r.Tries {
		line("  tried %s: %s", t.What, t.String())
	}
	return b.String()
}

// String says what a question brought.
func (t *Attempt) String() string {
	s := t.URL + ": " + t.Outcome
	if t.Status != 0 {
		s += ", status " + strconv.Itoa(t.Status)
	}
	if t.ContentType != "" {
		s += ", " + t.ContentType
	}
	if t.Format != "" && t.Format != t.What && (t.What == "openmetrics" || t.What == "protobuf") {
		s += ", answered in " + t.Format
	}
	if t.What == "gzip" && t.Encoding == "" && t.Status == 200 {
		s += ", not compressed"
	}
	if t.WireBytes > 0 {
		s += ", " + size(t.WireBytes)
	}
	return s
}

func ms(v float64) string { return short(time.Duration(v * 1e6)) }

// size is a number of bytes for a person.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 100_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1_000_000:
		return fmt.Sprintf("%d kB", n/1000)
	case n < 100_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}
