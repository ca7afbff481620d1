package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/units"
)

// Explained is what is told to people of an engine: texts in their order. What they say of a run is not escaped.
type Explained struct {
	Engine   string // with what part of it
	Asked    string // the mean and how many requests; "" where it is not known
	Findings []ExplainedFinding
	Also     []string // facts that contribute
	Parts    []ExplainedPart
	// Notes are how parts are to be read, Unknown what is missing, Open what is not ruled out.
	Notes, Open []string
	Unknown     string
	Classes     []string // of the queue, by timeslice

	nothing bool // is told, but what is missing
}

// ExplainedFinding is a cause; Weight is its time and share.
type ExplainedFinding struct{ Mark, ID, Weight, Says, Evidence, When, Try string }

// ExplainedPart is a row of the waterfall that is worth a line.
type ExplainedPart struct {
	ID, Seconds, Percent string
	Share                float64
}

// NewExplained makes the texts of a result by rules.
func NewExplained(r *explain.Result, rules *explain.Rules) *Explained {
	e := &Explained{Engine: cmp.Or(r.Engine, "no engine shows the time of requests"), Asked: asked(r),
		Notes: slices.Clone(r.Notes), Unknown: strings.Join(r.Missing, ", "), Open: r.Open, Classes: r.Classes,
		nothing: len(r.Findings) == 1 && math.IsNaN(r.Mean) && r.Verdict == "cannot_tell"}
	if r.Of.Len() > 0 {
		e.Engine += r.Of.String()
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		text := rules.Of(f.ID)
		view := ExplainedFinding{Mark: fmt.Sprintf("%d.", i+1), ID: f.ID, Weight: weight(f), Says: says(r, f, rules),
			Evidence: evidence(r, f.ID, text.Evidence), Try: text.Try}
		if f.ID == "service" && i > 0 {
			view.Mark = "  "
		}
		if share, span := r.Waited(f.ID); share > 0 {
			view.When = fmt.Sprintf("in %s of the window (%v)", percent(share), span.Round(time.Millisecond))
		}
		e.Findings = append(e.Findings, view)
	}
	for i := range r.Contributing {
		if c := &r.Contributing[i]; !c.Promote {
			e.Also = append(e.Also, c.Text())
		}
	}
	for _, row := range r.Waterfall {
		if !tiny(row.ID, row.Share) {
			e.Parts = append(e.Parts, ExplainedPart{row.ID, units.Format(row.Seconds, "seconds"), percent(row.Share),
				row.Share})
		}
	}
	if m := r.Model; m != nil && len(e.Parts) > 0 {
		e.Notes = slices.Insert(e.Notes, 0, "a step takes "+stepModel(m))
	}
	return e
}

// asked is what the answer is about.
func asked(r *explain.Result) string {
	requests := texttab.Count(int(r.Requests), "request")
	switch {
	case r.Why == explain.Throughput:
		return "throughput, " + requests
	case math.IsNaN(r.Mean):
		return ""
	}
	return fmt.Sprintf("mean %s %s, %s", meanOf(r.Why), units.Format(r.Mean, "seconds"), requests)
}

// meanOf names the time whose mean is asked for.
func meanOf(w explain.Why) string {
	return map[bool]string{true: "TTFT", false: "E2E"}[w == explain.TTFT]
}

// weight is the time and the share of a finding.
func weight(f *explain.Finding) string {
	var out []string
	if !math.IsNaN(f.Seconds) {
		out = append(out, units.Format(f.Seconds, "seconds"))
	}
	if !math.IsNaN(f.Share) {
		out = append(out, percent(f.Share))
	}
	return strings.Join(out, "  ")
}

// says is the text of a finding.
func says(r *explain.Result, f *explain.Finding, rules *explain.Rules) string {
	text := rules.Of(f.ID).Says
	if i := slices.IndexFunc(r.Contributing, func(c explain.Contribution) bool { return c.ID == f.ID }); i >= 0 {
		text = r.Contributing[i].Text()
	}
	if r.Verdict == "service" {
		text += ": nothing was exhausted"
	}
	return strings.ReplaceAll(text, "{share}", percent(f.Share))
}

// evidence is what an engine shows beside a finding, of a stage what is of it; of several of a name, such as those of
// models, what they are of.
func evidence(r *explain.Result, finding string, ids []string) string {
	var out []string
	_, stage, _ := strings.Cut(finding, ":")
	list := slices.DeleteFunc(slices.Clone(r.Quantities), func(q explain.Quantity) bool {
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

func percent(share float64) string { return units.Format(share, "ratio") }

// explainer writes explanations in lines of 80 columns.
type explainer struct{ *sticky }

// wrapped writes a text in lines of 80 columns, all but the first as far in as the first begins.
func (e *explainer) wrapped(head, text string) {
	for _, line := range wrap(strings.FieldsSeq(texttab.Escape(text)), 79-len(head)) {
		e.printf("%s\n", strings.TrimRight(head+line, " "))
		head = strings.Repeat(" ", len(head))
	}
}

// Explanation writes for people why the latency of the engines of a run is what it is.
func Explanation(w io.Writer, results []*explain.Result, rules *explain.Rules) error {
	e := &explainer{&sticky{w: w}}
	for i, r := range results {
		if i > 0 {
			e.printf("\n")
		}
		e.write(NewExplained(r, rules))
	}
	return e.err
}

func (e *explainer) write(x *Explained) {
	e.printf("%s", texttab.Escape(x.Engine))
	if x.nothing {
		e.printf(": ")
		e.wrapped("cannot tell, not known: ", x.Unknown)
		return
	}
	if x.Asked != "" {
		e.printf(": %s", x.Asked)
	}
	e.printf("\n\n")
	for _, f := range x.Findings {
		e.printf("%s\n", strings.TrimRight(f.Mark+" "+f.ID+"  "+f.Weight, " "))
		e.wrapped("     ", f.Says)
		for _, line := range []string{f.Evidence, f.When} {
			if line != "" {
				e.wrapped("     ", line)
			}
		}
		if f.Try != "" {
			e.wrapped("     try: ", f.Try)
		}
	}
	for _, text := range x.Also {
		e.wrapped("   also: ", text)
	}
	if len(x.Parts) > 0 {
		e.printf("\nwhere the mean went\n")
		for _, p := range x.Parts {
			bar := strings.Repeat("#", int(math.Round(40*min(1, math.Abs(p.Share)))))
			e.printf("%s\n", strings.TrimRight(fmt.Sprintf("  %-16s %9s %9s  %s", p.ID, p.Seconds, p.Percent, bar), " "))
		}
		for _, note := range x.Notes {
			e.wrapped("  ", note)
		}
	}
	if x.Unknown != "" {
		e.wrapped("not known: ", x.Unknown)
	}
	for _, open := range x.Open {
		e.wrapped("not ruled out: ", open)
	}
}

// ExplainedMarkdown writes explanations as Markdown: the findings of each engine, and the parts of its mean.
func ExplainedMarkdown(w io.Writer, results []*explain.Result, rules *explain.Rules) error {
	s := &sticky{w: w}
	for _, r := range results {
		x := NewExplained(r, rules)
		s.printf("### %s %s\n\n", texttab.Markdown(x.Engine), x.Asked)
		for i, f := range x.Findings {
			s.printf("%d. **%s** %s: %s\n", i+1, texttab.Markdown(f.ID), f.Weight, texttab.Markdown(f.Says))
		}
		if x.Unknown != "" {
			s.printf("\nNot known: %s\n", texttab.Markdown(x.Unknown))
		}
		s.printf("\n")
		t := &texttab.Table{}
		t.Header("PART", "MEAN", "SHARE")
		t.Right(1, 2)
		for _, p := range x.Parts {
			t.Row(p.ID, p.Seconds, p.Percent)
		}
		if s.err == nil && len(t.Rows) > 0 {
			s.err = t.WriteMarkdown(w, texttab.Rule{Left: "---", Right: "---:"})
			s.printf("\n")
		}
	}
	return s.err
}

// ExplainedRows is the table of the parts of the means, and of findings that are none of them, for programs.
func ExplainedRows(results []*explain.Result) *texttab.Table {
	t := &texttab.Table{Columns: []texttab.Column{{ID: "engine"}, {ID: "labels"}, {ID: "part"}, {ID: "seconds"},
		{ID: "share"}}}
	for _, r := range results {
		add := func(part string, seconds, share float64) {
			t.Rows = append(t.Rows, append(whose(r), texttab.Cell{Value: part}, texttab.Cell{Value: seconds},
				texttab.Cell{Value: share}))
		}
		for _, row := range r.Waterfall {
			add(row.ID, row.Seconds, row.Share)
		}
		for _, f := range r.Findings {
			if math.IsNaN(f.Seconds) {
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
