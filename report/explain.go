package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/units"
)

// Explanation writes for people why the latency of the engines of a run is what it is.
func Explanation(w io.Writer, results []*explain.Result, rules *explain.Rules) error {
	s := &sticky{w: w}
	for i, r := range results {
		if i > 0 {
			s.printf("\n")
		}
		e := &explained{sticky: s, Result: r, rules: rules}
		e.write()
	}
	return s.err
}

// explained writes one engine.
type explained struct {
	*sticky
	*explain.Result
	rules *explain.Rules
}

func (e *explained) write() {
	name := e.Engine
	if name == "" {
		name = "no engine shows the time of requests"
	}
	if e.Of.Len() > 0 {
		name += e.Of.String()
	}
	e.printf("%s", texttab.Escape(name))
	if len(e.Findings) == 1 && math.IsNaN(e.E2E) && e.Verdict == "cannot_tell" {
		e.printf(": ")
		e.wrapped("cannot tell, not known: ", strings.Join(e.Missing, ", "))
		return
	}
	if !math.IsNaN(e.E2E) {
		e.printf(": mean E2E %s, %s", units.Format(e.E2E, "seconds"), texttab.Count(int(e.Requests), "request"))
	}
	e.printf("\n\n")
	for i := range e.Findings {
		e.finding(i, &e.Findings[i])
	}
	for i := range e.Contributing {
		if c := &e.Contributing[i]; !c.Promote {
			e.wrapped("   also: ", c.Text())
		}
	}
	e.parts()
	if len(e.Missing) > 0 {
		e.wrapped("not known: ", strings.Join(e.Missing, ", "))
	}
}

// finding writes a finding: the first ones are numbered, what is the model's own time stands beside them.
func (e *explained) finding(i int, f *explain.Finding) {
	mark := fmt.Sprintf("%d.", i+1)
	if f.ID == "service" && i > 0 {
		mark = "  "
	}
	e.printf("%s %s", mark, f.ID)
	if !math.IsNaN(f.Seconds) {
		e.printf("  %s", units.Format(f.Seconds, "seconds"))
	}
	if !math.IsNaN(f.Share) {
		e.printf("  %s", percent(f.Share))
	}
	e.printf("\n")
	text := e.rules.Of(f.ID)
	if i := slices.IndexFunc(e.Contributing, func(c explain.Contribution) bool { return c.ID == f.ID }); i >= 0 {
		text.Says = e.Contributing[i].Text()
	}
	if e.Verdict == "service" {
		text.Says += ": nothing was exhausted"
	}
	e.wrapped("     ", strings.ReplaceAll(text.Says, "{share}", percent(f.Share)))
	if line := e.evidence(f.ID, text.Evidence); line != "" {
		e.wrapped("     ", line)
	}
	if share, span := e.Waited(f.ID); share > 0 {
		e.wrapped("     ", fmt.Sprintf("in %s of the window (%v)", percent(share), span))
	}
	if text.Try != "" {
		e.wrapped("     try: ", text.Try)
	}
}

// evidence is what an engine shows beside a finding, of a stage what is of it; of several of a name, such as those of
// models, what they are of.
func (e *explained) evidence(finding string, ids []string) string {
	var out []string
	_, stage, _ := strings.Cut(finding, ":")
	list := slices.DeleteFunc(slices.Clone(e.Quantities), func(q explain.Quantity) bool {
		of, _ := q.Labels.Get("stage")
		return stage != "" && of != stage
	})
	times := map[string]int{}
	for _, q := range list {
		times[q.Name]++
	}
	for _, id := range ids {
		for _, q := range list {
			if q.ID != id && q.Name != id {
				continue
			}
			if times[q.Name] > 1 {
				q.Name += q.Labels.String()
			}
			out = append(out, q.Name+" "+units.Format(q.Value, q.Unit))
		}
	}
	return strings.Join(out, ", ")
}

// parts writes the waterfall: rows of the queue and of decode together.
func (e *explained) parts() {
	if len(e.Waterfall) == 0 {
		return
	}
	e.printf("\nwhere the mean went\n")
	for _, row := range e.Waterfall {
		if math.Abs(row.Share) < 5e-6 || row.ID == "unexplained" && math.Abs(row.Share) < 0.0005 {
			continue
		}
		bar := strings.Repeat("#", int(math.Round(40*min(1, math.Abs(row.Share)))))
		line := fmt.Sprintf("  %-16s %9s %9s  %s", row.ID, units.Format(row.Seconds, "seconds"), percent(row.Share), bar)
		e.printf("%s\n", strings.TrimRight(line, " "))
	}
	if m := e.Model; m != nil {
		e.wrapped("  ", fmt.Sprintf("a step takes %s + %s for each request + %s for each token of a prompt (estimated)",
			units.Format(m.Base, "seconds"), units.Format(max(0, m.Batch), "seconds"),
			units.Format(max(0, m.Prefill), "seconds")))
	}
	for _, note := range e.Notes {
		e.wrapped("  ", note)
	}
}

// wrapped writes a text in lines of 80 columns, all but the first as far in as the first begins.
func (e *explained) wrapped(head, text string) {
	for _, line := range wrap(strings.FieldsSeq(texttab.Escape(text)), 79-len(head)) {
		e.printf("%s\n", strings.TrimRight(head+line, " "))
		head = strings.Repeat(" ", len(head))
	}
}

func percent(share float64) string { return units.Format(share, "ratio") }
