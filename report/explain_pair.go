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
	s := &sticky{w: w}
	line := &explained{sticky: s, rules: rules}
	for _, l := range load {
		line.wrapped("! ", l)
	}
	line.wrapped("A: ", names[0])
	line.wrapped("B: ", names[1])
	for _, p := range pairs {
		s.printf("\n")
		writePair(&explained{s, p.B, rules}, p)
	}
	for _, r := range alone {
		s.printf("\n")
		line.wrapped("", r.Engine+r.Of.String()+" is in one of the runs alone")
	}
	return s.err
}

func writePair(e *explained, p *explain.Pair) {
	name := p.A.Engine + p.A.Of.String()
	if other := p.B.Engine + p.B.Of.String(); other != name {
		name = cmp.Or(name, "nothing") + " and " + cmp.Or(other, "nothing")
	}
	name = cmp.Or(name, "no engine shows the time of requests")
	if e.Why == explain.Throughput || math.IsNaN(p.Difference()) {
		e.wrapped("", name)
		for n, r := range []*explain.Result{p.A, p.B} {
			text := (&explained{e.sticky, r, e.rules}).weight(&r.Findings[0])
			if r.Verdict == "cannot_tell" {
				text = "not known: " + strings.Join(r.Missing, ", ")
			}
			e.wrapped("  "+"AB"[n:n+1]+": ", r.Verdict+", "+text)
		}
		return
	}
	what := map[explain.Why]string{explain.TTFT: "TTFT"}[e.Why]
	if what == "" {
		what = "E2E"
	}
	e.wrapped("", fmt.Sprintf("%s: mean %s %s to %s (%s), %.0f and %s", name, what, units.Format(p.A.Mean, "seconds"),
		units.Format(p.B.Mean, "seconds"), moreTime(p.Difference()), p.A.Requests,
		texttab.Count(int(p.B.Requests), "request")))
	e.wrapped("", mainChange(p, e.rules))
	e.printf("\n")
	t := &texttab.Table{}
	t.Header("", "A", "B", "CHANGE")
	t.Right(1, 2, 3)
	top := max(p.A.Mean, p.B.Mean)
	for i := range p.Rows {
		r := &p.Rows[i]
		if !tiny(r.ID, max(math.Abs(r.A), math.Abs(r.B))/top) {
			t.Row("  "+r.ID, units.Format(r.A, "seconds"), units.Format(r.B, "seconds"), moreTime(r.Difference()))
		}
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
				e.wrapped("  "+"AB"[n:n+1]+": ", (&explained{e.sticky, r, e.rules}).says(f))
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

// mainChange tells what the difference of two means is in.
func mainChange(p *explain.Pair, rules *explain.Rules) string {
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

// ExplainedPairRows is the table of the parts of both means, for CSV and Markdown.
func ExplainedPairRows(pairs []*explain.Pair) *texttab.Table {
	t := &texttab.Table{Columns: []texttab.Column{{ID: "engine", Head: "ENGINE"}, {ID: "labels", Head: "OF"},
		{ID: "part", Head: "PART"}, {ID: "a_seconds", Head: "A", Right: true}, {ID: "b_seconds", Head: "B", Right: true},
		{ID: "difference_seconds", Head: "CHANGE", Right: true}}}
	for _, p := range pairs {
		for i := range p.Rows {
			r := &p.Rows[i]
			t.Rows = append(t.Rows, append(whose(p.B), texttab.Cell{Text: r.ID, Value: r.ID}, timeCell(r.A), timeCell(r.B),
				texttab.Cell{Text: moreTime(r.Difference()), Value: r.Difference()}))
		}
	}
	return t
}
