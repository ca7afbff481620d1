package compare

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/texttab"
)

// schemaVersion is that of the JSON document: fields are added, never renamed.
const schemaVersion = 2

// JSON writes the whole result, with two spaces of indent and a newline at the end. Numbers that do not exist are
// null. The same result gives the same bytes.
func JSON(w io.Writer, r *Result) error {
	doc := jsonDocument{Name: "scrapestat.compare", Schema: schemaVersion, Alpha: r.Alpha, MinEffect: r.MinEffect,
		By: r.By, Profile: r.Profile, Tested: r.Tested, Caveats: r.Caveats, Left: r.Left, Headline: headlineJSON(r),
		PhasesLeft: r.PhasesLeft, Counts: map[string]int{}, Sides: r.Sides,
		Differences: append([]Difference{}, r.Differences...), Rows: make([]jsonRow, len(r.Rows))}
	for i := range r.LoadDiffers {
		d := &r.LoadDiffers[i]
		doc.Load = append(doc.Load, jsonLoad{newJSONBeside(r, &d.Beside), d.Beyond})
	}
	for i := range r.Context {
		doc.Context = append(doc.Context, newJSONBeside(r, &r.Context[i]))
	}
	for i := range r.Causes {
		x := &r.Causes[i]
		doc.Causes = append(doc.Causes, jsonCause{x.ID, x.Aliases, r.Sides[x.Side].Name, finite(x.From), finite(x.To), x.Unit,
			finite(x.Change), finite(x.Explains)})
	}
	doc.Counts["moved_up"], doc.Counts["moved_down"] = 0, 0
	for v := range Verdicts {
		doc.Counts[strings.ReplaceAll(Verdict(v).String(), " ", "_")] = 0
	}
	for i := range r.Rows {
		doc.Counts[strings.ReplaceAll(r.Rows[i].Word(), " ", "_")]++
		doc.Rows[i] = newJSONRow(&r.Rows[i], r.Sides)
	}
	for _, warning := range r.Warnings {
		doc.Warnings = append(doc.Warnings, jsonWarning(warning))
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(doc); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// HeadlineJSON returns the headline in the form that the document of JSON has, for documents of others.
func HeadlineJSON(r *Result) any { return headlineJSON(r) }

func headlineJSON(r *Result) []jsonLine {
	out := []jsonLine{}
	for i := range r.Headline {
		out = append(out, newJSONLine(r, &r.Headline[i]))
	}
	return out
}

type jsonDocument struct {
	Name        string           `json:"schema"`
	Schema      int              `json:"schema_version"`
	Alpha       float64          `json:"alpha"`
	MinEffect   float64          `json:"min_effect"`
	By          []string         `json:"by,omitempty"`
	Profile     string           `json:"profile,omitempty"`
	Tested      int              `json:"rows_tested"`
	Left        int              `json:"rows_left_out"`
	Counts      map[string]int   `json:"verdicts"`
	Sides       []Side           `json:"sides"`
	Differences []Difference     `json:"differences"`
	Headline    []jsonLine       `json:"headline"`
	Load        []jsonLoad       `json:"load_differs,omitempty"`
	Context     []jsonBeside     `json:"context,omitempty"`
	Causes      []jsonCause      `json:"causes,omitempty"`
	PhasesLeft  []string         `json:"phases_left,omitempty"`
	Rows        []jsonRow        `json:"rows"`
	Warnings    []jsonWarning    `json:"warnings,omitempty"`
	Caveats     []catalog.Caveat `json:"caveats,omitempty"`
}

// jsonPlace tells what of a comparison something is.
type jsonPlace struct {
	ID     string `json:"id"`
	Stat   string `json:"stat,omitempty"`
	Phase  string `json:"phase,omitempty"`
	Engine string `json:"engine,omitempty"`
	Model  string `json:"model,omitempty"`
	Side   string `json:"side"`
	Unit   string `json:"unit,omitempty"`
}

type jsonBeside struct {
	jsonPlace
	Base  *float64 `json:"base"`
	Other *float64 `json:"other"`
}

type jsonLoad struct {
	jsonBeside
	Beyond bool `json:"beyond_chance"`
}

type jsonCause struct {
	ID       string   `json:"id"`
	Aliases  []string `json:"aliases,omitempty"`
	Side     string   `json:"side"`
	Base     *float64 `json:"base"`
	Other    *float64 `json:"other"`
	Unit     string   `json:"unit,omitempty"`
	Change   *float64 `json:"change"`
	Explains *float64 `json:"explains_s,omitempty"`
}

// jsonLine is a row of the headline. Change, low and high are relative to the base, of a share differences.
type jsonLine struct {
	jsonBeside
	Change     *float64    `json:"change"`
	Low        *float64    `json:"low"`
	High       *float64    `json:"high"`
	P50        *[2]float64 `json:"p50,omitempty"` // of the base and the side
	P          *float64    `json:"p"`
	PHolm      *float64    `json:"p_holm"`
	Evidence   string      `json:"evidence"`
	Err        *float64    `json:"standard_error"`
	DF         *float64    `json:"df"`
	Margin     float64     `json:"margin"`
	Floor      float64     `json:"floor"`
	Verdict    string      `json:"verdict"`
	RunsNeeded int         `json:"runs_needed,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	Notes      []string    `json:"notes,omitempty"`
}

func newJSONBeside(r *Result, b *Beside) jsonBeside {
	return jsonBeside{jsonPlace{b.ID, b.Stat, b.Phase, b.Engine, b.Model, r.Sides[b.Side].Name, b.Unit}, finite(b.From),
		finite(b.To)}
}

func newJSONLine(r *Result, l *Line) jsonLine {
	out := jsonLine{jsonBeside: newJSONBeside(r, &Beside{l.Row, l.Phase, l.Engine, l.Model, l.Side, l.From, l.To}),
		Change: finite(l.Change), Low: finite(l.Low), High: finite(l.High), P: finite(l.P), PHolm: finite(l.PHolm),
		Evidence: string(l.Evidence), Err: finite(l.Err), DF: finite(l.DF), Margin: l.Margin, Floor: l.Floor,
		Verdict: string(l.Verdict), RunsNeeded: l.RunsNeeded, Reason: l.Reason, Notes: l.Notes}
	for i := range r.Context {
		x := &r.Context[i]
		if x.ID == l.ID && l.Stat == "mean" && x.Stat == "p50" && x.Side == l.Side && x.Phase == l.Phase &&
			x.Engine == l.Engine && x.Model == l.Model && finite(x.From) != nil && finite(x.To) != nil {
			out.P50 = &[2]float64{x.From, x.To}
		}
	}
	return out
}

type jsonWarning struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

type jsonRow struct {
	Kind     string            `json:"kind"`
	Family   string            `json:"family"`
	Names    []string          `json:"names"`
	Type     string            `json:"type,omitempty"`
	Stat     string            `json:"stat,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Target   string            `json:"target,omitempty"`
	Series   int               `json:"series,omitempty"`
	Unit     string            `json:"unit,omitempty"`
	Better   string            `json:"better"`
	Headline bool              `json:"headline,omitempty"`
	Question string            `json:"question,omitempty"`
	Meaning  string            `json:"meaning,omitempty"`
	Verdict  string            `json:"verdict"`
	Cells    []jsonCell        `json:"sides"`
	Notes    []string          `json:"notes,omitempty"`
}

type jsonCell struct {
	Side    string       `json:"side"`
	Value   *float64     `json:"value"`
	Values  []float64    `json:"values,omitempty"`
	Low     *float64     `json:"median_low,omitempty"`
	High    *float64     `json:"median_high,omitempty"`
	From    *float64     `json:"bound_low,omitempty"`
	To      *float64     `json:"bound_high,omitempty"`
	Missing string       `json:"missing,omitempty"`
	Against *jsonAgainst `json:"against_base,omitempty"`
}

type jsonAgainst struct {
	Verdict    string             `json:"verdict"`
	Evidence   string             `json:"evidence"`
	Change     *float64           `json:"change"`
	Difference *float64           `json:"difference"`
	Low        *float64           `json:"difference_low,omitempty"`
	High       *float64           `json:"difference_high,omitempty"`
	P          *float64           `json:"p,omitempty"`
	Q          *float64           `json:"q,omitempty"`
	Effect     *float64           `json:"cliffs_delta,omitempty"`
	Reason     string             `json:"reason,omitempty"`
	Distance   *DistributionShift `json:"distance,omitempty"`
}

// finite is nil for what JSON has no number for.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func newJSONRow(r *Row, sides []Side) jsonRow {
	out := jsonRow{Kind: r.Kind.String(), Family: r.Family, Names: r.Names, Stat: r.Stat, Labels: r.Labels.Map(),
		Target: r.Target, Series: r.Series, Unit: r.Unit, Better: r.Better.String(), Headline: r.Headline,
		Question: r.Question, Meaning: r.Meaning, Verdict: r.Word(), Notes: r.Notes}
	if r.Kind == FamilyRow {
		out.Type = r.Type.String()
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		cell := jsonCell{Side: sides[i].Name, Value: finite(c.Value), Values: c.Values, Low: finite(c.Low),
			High: finite(c.High), From: finite(c.BoundLow), To: finite(c.BoundHigh), Missing: c.Missing}
		if i > 0 {
			cell.Against = newJSONAgainst(&r.Against[i])
		}
		out.Cells = append(out.Cells, cell)
	}
	return out
}

func newJSONAgainst(a *Comparison) *jsonAgainst {
	return &jsonAgainst{Verdict: a.Word(), Evidence: a.Evidence.String(), Change: finite(a.Change),
		Difference: finite(a.Difference), Low: finite(a.Low), High: finite(a.High), P: finite(a.P), Q: finite(a.Q),
		Effect: finite(a.Effect), Reason: a.Reason, Distance: a.Distance}
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
