package check

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/units"
)

// shownOutcomes bounds the series that are listed of a check that passed; of one that did not, shownFailures.
const (
	shownOutcomes = 1
	shownFailures = 5
)

// shown are the outcomes worth a line: the worst ones.
func (a *Check) shown() []Outcome {
	n := shownOutcomes
	if a.Verdict != Pass {
		n = shownFailures
	}
	for n < len(a.Outcomes) && n > 1 && a.Outcomes[n-1].Verdict == Pass {
		n--
	}
	return a.Outcomes[:min(n, len(a.Outcomes))]
}

// where tells one series from another.
func (o *Outcome) where() string {
	text := o.Target
	if o.Labels.Len() > 0 {
		text = strings.TrimSpace(text + " " + o.Labels.String())
	}
	return text
}

// value is the number of an outcome for people, with its bounds where it has any.
func (o *Outcome) value() string {
	if o.Why != "" {
		return "-"
	}
	if o.Word != "" {
		return o.Word
	}
	text := format(o.Value, o.Unit)
	if o.Low != o.High {
		text += " [" + bound(o.Low, o.Unit) + ", " + bound(o.High, o.Unit) + "]"
	}
	return text
}

// bound is a bound of a measured value, "?" where none is known.
func bound(v float64, unit string) string {
	if math.IsInf(v, 0) {
		return "?"
	}
	return format(v, unit)
}

func format(v float64, unit string) string {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return number(v)
	}
	if of, ok := strings.CutSuffix(unit, "/s"); ok {
		return units.Format(v, of) + "/s"
	}
	return units.Format(v, unit)
}

// limit is what was demanded, for people.
func (a *Check) limit(o *Outcome) string {
	if a.Op == "" || o.Why != "" && !o.HasBase {
		return ""
	}
	if a.Want.Word != "" {
		return a.Op + " " + a.Want.Word
	}
	text := a.Op + " " + format(o.Limit, o.Unit)
	if o.HasBase {
		text += " (baseline " + format(o.Base, o.Unit) + ")"
	}
	return text
}

func (o *Outcome) margin100() string {
	if !o.HasMargin {
		return ""
	}
	return fmt.Sprintf("%+.1f %%", 100*o.Margin)
}

// remark says why there is no number, or what is to be known of it.
func (o *Outcome) remark() string {
	return cmp.Or(o.Why, o.Note)
}

// counts is the last line of all outputs.
func (r *Result) counts() string {
	n := map[Verdict]int{}
	for i := range r.Answers {
		n[r.Answers[i].Verdict]++
	}
	return fmt.Sprintf("%s: %d passed, %d failed, %d without data", r.Verdict, n[Pass], n[Fail], n[NoData])
}

// WriteText writes the verdicts for a terminal, a line for each check and for the series that did not keep it.
func (r *Result) WriteText(w io.Writer) error {
	var t texttab.Table
	t.Header("", "CHECK", "MEASURED", "LIMIT", "MARGIN", "SERIES", "NOTE")
	t.Right(2, 4)
	for i := range r.Answers {
		a := &r.Answers[i]
		name := a.Name
		shown := a.shown()
		for j := range shown {
			o := &shown[j]
			t.Row(string(o.Verdict), texttab.Truncate(name, 80), o.value(), a.limit(o), o.margin100(),
				texttab.Truncate(o.where(), 100), texttab.Truncate(o.remark(), 400))
			name = ""
		}
		if more := len(a.Outcomes) - len(shown); more > 0 {
			t.Row("", "", "", "", "", fmt.Sprintf("and %d more", more))
		}
	}
	if _, err := t.WriteTo(w); err != nil {
		return fmt.Errorf("write verdicts: %w", err)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.counts())
	return err
}

// WriteMarkdown writes the same as a table for a pull request. What comes from a target or a file cannot make markup
// of its own.
func (r *Result) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n\n| | check | measured | limit | margin | series |\n|---|---|--:|---|--:|---|\n", r.counts())
	for i := range r.Answers {
		a := &r.Answers[i]
		name := cell(a.Name)
		shown := a.shown()
		for j := range shown {
			o := &shown[j]
			remark := ""
			if text := o.remark(); text != "" {
				remark = "<br>" + cell(text)
			}
			fmt.Fprintf(&b, "| %s | %s%s | %s | %s | %s | %s |\n", mark(o.Verdict), name, remark, cell(o.value()),
				cell(a.limit(o)), o.margin100(), cell(o.where()))
			name = ""
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func mark(v Verdict) string {
	switch v {
	case Pass:
		return "✅ PASS"
	case Fail:
		return "❌ FAIL"
	}
	return "⚠️ NO DATA"
}

// cell is a text in a cell of a table.
func cell(s string) string { return texttab.Markdown(texttab.Truncate(s, 300)) }

// schemaVersion is that of the JSON document: fields are added, never renamed.
const schemaVersion = 2

// WriteJSON writes everything as a document scrapestat.check; numbers that there are not are null.
func (r *Result) WriteJSON(w io.Writer) error {
	doc := texttab.NewObject("schema", "scrapestat.check", "schema_version", schemaVersion, "verdict", r.Verdict,
		"checks", texttab.NewList(r.Answers, (*Check).json)).Known("headline", r.Headline) // that of compare
	if err := doc.WriteJSON(w); err != nil {
		return fmt.Errorf("write verdicts: %w", err)
	}
	return nil
}

func (a *Check) json() texttab.Object {
	return texttab.NewObject("name", a.Name, "check", a.Text, "verdict", a.Verdict).Known("operator", a.Op).
		With("outcomes", texttab.NewList(a.Outcomes, (*Outcome).json))
}

func (o *Outcome) json() texttab.Object {
	number := func(v float64, there bool) any {
		if !there {
			return nil
		}
		return v
	}
	known := o.Why == "" && o.Word == ""
	return texttab.NewObject("verdict", o.Verdict).Known("target", o.Target, "labels", o.Labels.Map()).
		Known("word", o.Word).With("value", number(o.Value, known), "low", number(o.Low, known)).
		With("high", number(o.High, known)).Known("unit", o.Unit).
		With("limit", number(o.Limit, known)).Known("baseline", number(o.Base, o.HasBase)).
		With("margin", number(o.Margin, o.HasMargin)).Known("reason", o.Why, "note", o.Note)
}
