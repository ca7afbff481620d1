package compare

import (
	"fmt"
	"io"
	"strings"

	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
)

// schemaVersion is that of the JSON document: fields are added, never renamed.
const schemaVersion = 2

// JSON writes the whole result, with two spaces of indent and a newline at the end. Numbers that do not exist are
// null. The same result gives the same bytes.
func JSON(w io.Writer, r *Result) error {
	counts := map[string]int{"moved_up": 0, "moved_down": 0}
	for v := range Verdicts {
		counts[key(Verdict(v).String())] = 0
	}
	for i := range r.Rows {
		counts[key(r.Rows[i].Word())]++
	}
	doc := texttab.NewObject("schema", "scrapestat.compare", "schema_version", schemaVersion, "alpha", r.Alpha,
		"min_effect", r.MinEffect).Known("by", r.By, "profile", r.Profile).With("rows_tested", r.Tested, "rows_left_out",
		r.Left, "verdicts", counts, "sides", r.Sides, "differences", append([]Difference{}, r.Differences...), "headline",
		HeadlineJSON(r)).
		Known("load_differs", texttab.NewList(r.LoadDiffers, func(l *LoadChange) texttab.Object {
			return r.beside(&l.Beside).With("beyond_chance", l.Beyond)
		}), "context", texttab.NewList(r.Context, r.beside), "causes", texttab.NewList(r.Causes, r.cause),
			"phases_left", r.PhasesLeft).
		With("rows", texttab.NewList(r.Rows, r.row)).
		Known("warnings", texttab.NewList(r.Warnings, func(w *metric.Warning) texttab.Object {
			return texttab.NewObject("code", w.Code, "text", w.Text)
		}), "caveats", r.Caveats)
	if err := doc.WriteJSON(w); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// key is a verdict as the name of a field.
func key(verdict string) string { return strings.ReplaceAll(verdict, " ", "_") }

// HeadlineJSON returns the headline in the form that the document of JSON has, for documents of others.
func HeadlineJSON(r *Result) any { return texttab.NewList(r.Headline, r.line) }

// beside tells what of a comparison something is, and its values.
func (r *Result) beside(b *Beside) texttab.Object {
	return texttab.NewObject("id", b.ID).Known("stat", b.Stat, "phase", b.Phase, "engine", b.Engine, "model", b.Model).
		With("side", r.Sides[b.Side].Name).Known("unit", b.Unit).With("base", b.From, "other", b.To)
}

func (r *Result) cause(c *Cause) texttab.Object {
	return texttab.NewObject("id", c.ID).Known("aliases", c.Aliases).With("side", r.Sides[c.Side].Name, "base", c.From,
		"other", c.To).Known("unit", c.Unit).With("change", c.Change).Known("explains_s", c.Explains)
}

// line is a row of the headline. Change, low and high are relative to the base, of a share differences.
func (r *Result) line(l *Line) texttab.Object {
	var p50 []float64 // of the base and the side
	for i := range r.Context {
		x := &r.Context[i]
		if x.ID == l.ID && l.Stat == "mean" && x.Stat == "p50" && x.Side == l.Side && x.Phase == l.Phase &&
			x.Engine == l.Engine && x.Model == l.Model && metric.Finite(x.From) && metric.Finite(x.To) {
			p50 = []float64{x.From, x.To}
		}
	}
	return r.beside(&Beside{l.Row, l.Phase, l.Engine, l.Model, l.Side, l.From, l.To}).
		With("change", l.Change, "low", l.Low, "high", l.High).Known("p50", p50).
		With("p", l.P, "p_holm", l.PHolm, "evidence", l.Evidence, "standard_error", l.Err, "df", l.DF, "margin", l.Margin,
			"floor", l.Floor, "verdict", l.Verdict).Known("runs_needed", l.RunsNeeded, "reason", l.Reason, "notes", l.Notes)
}

func (r *Result) row(x *Row) texttab.Object {
	kind := "" // of the family
	if x.Kind == FamilyRow {
		kind = x.Type.String()
	}
	cells := make([]texttab.Object, len(x.Cells))
	for i := range x.Cells {
		c := &x.Cells[i]
		cells[i] = texttab.NewObject("side", r.Sides[i].Name, "value", c.Value).Known("values", c.Values, "median_low", c.Low,
			"median_high", c.High, "bound_low", c.BoundLow, "bound_high", c.BoundHigh, "missing", c.Missing)
		if i > 0 {
			cells[i] = cells[i].With("against_base", x.Against[i].json())
		}
	}
	return texttab.NewObject("kind", x.Kind.String(), "family", x.Family, "names", x.Names).Known("type", kind, "stat",
		x.Stat, "labels", x.Labels.Map(), "target", x.Target, "series", x.Series, "unit", x.Unit).
		With("better", x.Better.String()).Known("headline", x.Headline, "question", x.Question, "meaning", x.Meaning).
		With("verdict", x.Word(), "sides", cells).Known("notes", x.Notes)
}

func (a *Comparison) json() texttab.Object {
	return texttab.NewObject("verdict", a.Word(), "evidence", a.Evidence.String(), "change", a.Change, "difference",
		a.Difference).Known("difference_low", a.Low, "difference_high", a.High, "p", a.P, "q", a.Q, "cliffs_delta", a.Effect,
		"reason", a.Reason, "distance", a.Distance)
}

// csvColumns are the columns of CSV.
var csvColumns = strings.Fields(`verdict kind family stat labels target unit better base side base_value value change
	difference evidence low high p q cliffs_delta base_runs runs reason notes`)

// CSV writes a line for each row and side after the base. What does not exist is empty.
func CSV(w io.Writer, r *Result) error {
	var t texttab.Table
	for _, id := range csvColumns {
		t.Columns = append(t.Columns, texttab.Column{ID: id})
	}
	for i := range r.Rows {
		for side := 1; side < len(r.Sides); side++ {
			t.Rows = append(t.Rows, csvLine(r, &r.Rows[i], side))
		}
	}
	if err := t.WriteCSV(w); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

func csvLine(r *Result, row *Row, side int) (cells []texttab.Cell) {
	a, base, other := &row.Against[side], &row.Cells[0], &row.Cells[side]
	for _, v := range []any{a.Word(), row.Kind.String(), row.Family, row.Stat, row.Labels.String(), row.Target,
		row.Unit, row.Better.String(), r.Sides[0].Name, r.Sides[side].Name, base.Value, other.Value, a.Change, a.Difference,
		a.Evidence.String(), a.Low, a.High, a.P, a.Q, a.Effect, int64(len(base.Values)), int64(len(other.Values)), a.Reason,
		strings.Join(row.Notes, "; ")} {
		cells = append(cells, texttab.Cell{Value: v})
	}
	return cells
}
