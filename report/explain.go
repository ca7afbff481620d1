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

// ExplainedRows is the table of the parts of the means, for CSV and Markdown.
func ExplainedRows(results []*explain.Result) *texttab.Table {
	t := &texttab.Table{Columns: []texttab.Column{{ID: "engine", Head: "ENGINE"}, {ID: "labels", Head: "OF"},
		{ID: "part", Head: "PART"}, {ID: "seconds", Head: "SECONDS", Right: true},
		{ID: "share", Head: "SHARE", Right: true}}}
	for _, r := range results {
		add := func(part string, seconds, share float64) {
			t.Rows = append(t.Rows, append(whose(r), texttab.Cell{Text: part, Value: part}, timeCell(seconds),
				texttab.Cell{Text: percent(share), Value: share}))
		}
		for _, row := range r.Waterfall {
			add(row.ID, row.Seconds, row.Share)
		}
		for _, f := range r.Findings {
			if r.Why == explain.Throughput || math.IsNaN(f.Seconds) {
				add(f.ID, f.Seconds, f.Share)
			}
		}
	}
	return t
}

// whose are the cells of an engine and of what part of it a result is.
func whose(r *explain.Result) []texttab.Cell {
	return []texttab.Cell{{Text: r.Engine, Value: r.Engine}, {Text: r.Of.String(), Value: r.Of}}
}

// timeCell is a cell of a time.
func timeCell(v float64) texttab.Cell {
	if math.IsNaN(v) {
		return texttab.Cell{Text: "-"}
	}
	return texttab.Cell{Text: units.Format(v, "seconds"), Value: v}
}

// ExplainedMarkdown writes explanations as Markdown: the findings of each engine, and the parts of its mean.
func ExplainedMarkdown(w io.Writer, results []*explain.Result, rules *explain.Rules) error {
	s := &sticky{w: w}
	for _, r := range results {
		s.printf("### %s%s\n\n", texttab.Markdown(r.Engine+r.Of.String()), asked(r))
		for i, f := range r.Findings {
			e := &explained{s, r, rules}
			s.printf("%d. **%s** %s: %s\n", i+1, texttab.Markdown(f.ID), e.weight(&f), texttab.Markdown(e.says(&f)))
		}
		if len(r.Missing) > 0 {
			s.printf("\nNot known: %s\n", texttab.Markdown(strings.Join(r.Missing, ", ")))
		}
		s.printf("\n")
		t := ExplainedRows([]*explain.Result{r})
		t.Rows = slices.DeleteFunc(t.Rows, func(row []texttab.Cell) bool {
			share, _ := row[len(row)-1].Value.(float64)
			return tiny(row[2].Text, share)
		})
		if s.err == nil && len(t.Rows) > 0 {
			s.err = t.WriteMarkdown(w, texttab.Rule{Left: "---", Right: "---:"})
			s.printf("\n")
		}
	}
	return s.err
}

// weight is the time and the share of a finding.
func (e *explained) weight(f *explain.Finding) string {
	var out []string
	if !math.IsNaN(f.Seconds) {
		out = append(out, units.Format(f.Seconds, "seconds"))
	}
	if !math.IsNaN(f.Share) {
		out = append(out, percent(f.Share))
	}
	return strings.Join(out, ", ")
}

// says is the text of a finding.
func (e *explained) says(f *explain.Finding) string {
	text := e.rules.Of(f.ID).Says
	if i := slices.IndexFunc(e.Contributing, func(c explain.Contribution) bool { return c.ID == f.ID }); i >= 0 {
		text = e.Contributing[i].Text()
	}
	if e.Verdict == "service" {
		text += ": nothing was exhausted"
	}
	return strings.ReplaceAll(text, "{share}", percent(f.Share))
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
	if len(e.Findings) == 1 && math.IsNaN(e.Mean) && e.Verdict == "cannot_tell" {
		e.printf(": ")
		e.wrapped("cannot tell, not known: ", strings.Join(e.Missing, ", "))
		return
	}
	e.printf("%s\n\n", asked(e.Result))
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
	for _, open := range e.Open {
		e.wrapped("not ruled out: ", open)
	}
}

// asked is what the answer is about.
func asked(r *explain.Result) string {
	requests := texttab.Count(int(r.Requests), "request")
	switch {
	case r.Why == explain.Throughput:
		return ": throughput, " + requests
	case math.IsNaN(r.Mean):
		return ""
	case r.Why == explain.TTFT:
		return fmt.Sprintf(": mean TTFT %s, %s", units.Format(r.Mean, "seconds"), requests)
	}
	return fmt.Sprintf(": mean E2E %s, %s", units.Format(r.Mean, "seconds"), requests)
}

// finding writes a finding: the first ones are numbered, what is the model's own time stands beside them.
func (e *explained) finding(i int, f *explain.Finding) {
	mark := fmt.Sprintf("%d.", i+1)
	if f.ID == "service" && i > 0 {
		mark = "  "
	}
	text := e.rules.Of(f.ID)
	e.printf("%s\n", strings.TrimRight(mark+" "+f.ID+"  "+strings.ReplaceAll(e.weight(f), ", ", "  "), " "))
	e.wrapped("     ", e.says(f))
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
		if tiny(row.ID, row.Share) {
			continue
		}
		bar := strings.Repeat("#", int(math.Round(40*min(1, math.Abs(row.Share)))))
		line := fmt.Sprintf("  %-16s %9s %9s  %s", row.ID, units.Format(row.Seconds, "seconds"), percent(row.Share), bar)
		e.printf("%s\n", strings.TrimRight(line, " "))
	}
	if e.Model != nil {
		e.wrapped("  ", "a step takes "+stepModel(e.Model))
	}
	for _, note := range e.Notes {
		e.wrapped("  ", note)
	}
}

// tiny reports whether a row is too small to be told.
func tiny(id string, share float64) bool {
	return math.Abs(share) < 5e-6 || id == "unexplained" && math.Abs(share) < 0.0005
}

// stepModel is how long a step of the engine takes.
func stepModel(m *explain.StepModel) string {
	return fmt.Sprintf("%s + %s for each request + %s for each token of a prompt (estimated)",
		units.Format(m.Base, "seconds"), units.Format(max(0, m.Batch), "seconds"),
		units.Format(max(0, m.Prefill), "seconds"))
}

// wrapped writes a text in lines of 80 columns, all but the first as far in as the first begins.
func (e *explained) wrapped(head, text string) {
	for _, line := range wrap(strings.FieldsSeq(texttab.Escape(text)), 79-len(head)) {
		e.printf("%s\n", strings.TrimRight(head+line, " "))
		head = strings.Repeat(" ", len(head))
	}
}

func percent(share float64) string { return units.Format(share, "ratio") }
