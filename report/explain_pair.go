package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/units"
)

// ExplainedPairs writes for people what two runs differ in; names are theirs, and load is how their loads differed.
func ExplainedPairs(w io.Writer, names [2]string, load []string, pairs []*explain.Pair, alone []*explain.Result,
	rules *explain.Rules) error {
	e := &explainer{&sticky{w: w}}
	for _, l := range load {
		e.wrapped("! ", l)
	}
	e.wrapped("A: ", names[0])
	e.wrapped("B: ", names[1])
	for _, p := range pairs {
		e.printf("\n")
		e.pair(p, rules)
	}
	for _, r := range alone {
		e.printf("\n")
		e.wrapped("", r.Engine+r.Of.String()+" is in one of the runs alone")
	}
	return e.err
}

func (e *explainer) pair(p *explain.Pair, rules *explain.Rules) {
	name := p.A.Engine + p.A.Of.String()
	if other := p.B.Engine + p.B.Of.String(); other != name {
		name = cmp.Or(name, "nothing") + " and " + cmp.Or(other, "nothing")
	}
	name = cmp.Or(name, "no engine shows the time of requests")
	if p.B.Why == explain.Throughput || math.IsNaN(p.Difference()) {
		e.wrapped("", name)
		for n, r := range []*explain.Result{p.A, p.B} {
			text := weight(&r.Findings[0])
			if r.Verdict == "cannot_tell" {
				text = "not known: " + strings.Join(r.Missing, ", ")
			}
			e.wrapped("  "+"AB"[n:n+1]+": ", r.Verdict+", "+text)
		}
		return
	}
	e.wrapped("", fmt.Sprintf("%s: mean %s %s to %s (%s), %.0f and %s", name, meanOf(p.B.Why),
		units.Format(p.A.Mean, "seconds"), units.Format(p.B.Mean, "seconds"), moreTime(p.Difference()), p.A.Requests,
		texttab.Count(int(p.B.Requests), "request")))
	e.wrapped("", MainChange(p, rules))
	e.printf("\n")
	t := ExplainedPairTable(p)
	t.Header("", "A", "B", "CHANGE")
	for _, row := range t.Rows {
		row[0].Text = "  " + row[0].Text
	}
	if e.err == nil {
		_, e.err = t.WriteTo(e.w)
	}
	e.printf("\n")
	for n, r := range []*explain.Result{p.A, p.B} {
		if r.Model != nil {
			e.wrapped("  step of "+"AB"[n:n+1]+": ", stepModel(r.Model))
		}
		for i := range r.Findings {
			if f := &r.Findings[i]; math.IsNaN(f.Seconds) {
				e.wrapped("  "+"AB"[n:n+1]+": ", says(r, f, rules))
			}
		}
	}
	for _, note := range p.Notes {
		e.wrapped("  ", note)
	}
	e.wrapped("  ", "whether the difference is real: scrapestat compare A B")
}

// samePart is the share of the mean by which a part changes at least to be told.
const samePart = 0.02

// MainChange tells what the difference of two means is in.
func MainChange(p *explain.Pair, rules *explain.Rules) string {
	id, by := p.Largest(samePart)
	if id == "" {
		return fmt.Sprintf("no part changed by %s of the mean", percent(samePart))
	}
	text := fmt.Sprintf("of %s, %s are %s", moreTime(p.Difference()), moreTime(by), id)
	if id != "decode" {
		if says := rules.Of(id).Says; says != "" {
			text += ": " + says
		}
		return text
	}
	if r := p.Decode(); r != nil {
		return text + fmt.Sprintf(", %s of it %s (estimated)", moreTime(r.Difference()), r.ID)
	}
	return text
}

// moreTime is a time with its sign.
func moreTime(v float64) string {
	if v < 0 {
		return "-" + units.Format(-v, "seconds")
	}
	return "+" + units.Format(v, "seconds")
}

// ExplainedPairTable is what changed in the mean, for people.
func ExplainedPairTable(p *explain.Pair) *texttab.Table {
	t := &texttab.Table{}
	t.Header("PART", "A", "B", "CHANGE")
	t.Right(1, 2, 3)
	for i := range p.Rows {
		r := &p.Rows[i]
		if !tiny(r.ID, max(math.Abs(r.A), math.Abs(r.B))/max(p.A.Mean, p.B.Mean)) {
			t.Row(r.ID, units.Format(r.A, "seconds"), units.Format(r.B, "seconds"), moreTime(r.Difference()))
		}
	}
	return t
}

// ExplainedPairsMarkdown writes what two runs differ in as Markdown.
func ExplainedPairsMarkdown(w io.Writer, load []string, pairs []*explain.Pair, rules *explain.Rules) error {
	s := &sticky{w: w}
	for _, l := range load {
		s.printf("**%s**\n\n", texttab.Markdown(l))
	}
	for _, p := range pairs {
		s.printf("### %s\n\n", texttab.Markdown(p.B.Engine+p.B.Of.String()))
		if t := ExplainedPairTable(p); s.err == nil && len(t.Rows) > 0 {
			s.printf("%s\n\n", texttab.Markdown(MainChange(p, rules)))
			s.err = t.WriteMarkdown(w, texttab.Rule{Left: "---", Right: "---:"})
		}
		s.printf("\n")
	}
	return s.err
}

// ExplainedPairRows is the table of the parts of both means, for programs.
func ExplainedPairRows(pairs []*explain.Pair) *texttab.Table {
	t := &texttab.Table{Columns: []texttab.Column{{ID: "engine"}, {ID: "labels"}, {ID: "part"}, {ID: "a_seconds"},
		{ID: "b_seconds"}, {ID: "difference_seconds"}}}
	for _, p := range pairs {
		for i := range p.Rows {
			r := &p.Rows[i]
			t.Rows = append(t.Rows, append(whose(p.B), texttab.Cell{Value: r.ID}, texttab.Cell{Value: r.A},
				texttab.Cell{Value: r.B}, texttab.Cell{Value: r.Difference()}))
		}
	}
	return t
}
