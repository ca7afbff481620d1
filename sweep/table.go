package sweep

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/units"
)

// column is a column of the table of points.
type column struct {
	id, head string
	narrow   bool // in text of 80 columns too
	cell     func(*Sweep, *Point) texttab.Cell
}

// columns of a sweep; those of the limits come last.
func (s *Sweep) columns() []column {
	text := func(id, head string, get func(*Point) string) column {
		return column{id, head, true, func(_ *Sweep, p *Point) texttab.Cell {
			v := get(p)
			if v == "" {
				return texttab.Cell{Text: "-"}
			}
			return texttab.Cell{Text: v, Value: v}
		}}
	}
	number := func(id, head string, narrow bool, unit string, get func(*Point) float64) column {
		return column{id, head, narrow, func(_ *Sweep, p *Point) texttab.Cell { return cellOf(get(p), unit) }}
	}
	list := []column{
		number("load", "LOAD", true, "", func(p *Point) float64 { return p.Load }),
		number("arrivals", "CAME", true, "", func(p *Point) float64 { return p.Arrivals }),
		number("x", "DONE", true, "", func(p *Point) float64 { return p.X }),
		value("ttft_mean", "TTFT", true), value("ttft_p50", "TTFT p50", false), value("ttft_p99", "TTFT p99", false),
		value("itl_mean", "ITL", true), value("itl_p50", "ITL p50", false), value("itl_p99", "ITL p99", false),
		value("e2e_mean", "E2E", false), value("e2e_p50", "E2E p50", false), value("e2e_p99", "E2E p99", false),
		value("queue_mean", "QUEUE", false), value("output_tok_s", "TOK/S", true),
		number("running", "RUN", true, "", func(p *Point) float64 { return p.MeanRunning }),
		number("waiting", "WAIT", true, "", func(p *Point) float64 { return p.MeanWaiting }),
		value("kv_usage", "KV", true), value("kv_peak", "KV PEAK", false), value("preemption", "PREEMPTED", false),
		value("prefix_hit_ratio", "PREFIX HITS", false), value("error_ratio", "ERRORS", false),
		value("steps_s", "STEPS/S", false), value("step_tokens", "TOK/STEP", false), value("power", "POWER", false),
		value("gpu_util", "GPU", false), value("j_per_token", "J/TOK", false),
		text("state", "STATE", func(p *Point) string { return string(p.State) }),
		text("limit", "LIMIT", func(p *Point) string { return p.Limit }),
		{"tok_s_per_gpu", "TOK/S/GPU", false, func(s *Sweep, p *Point) texttab.Cell { return cellOf(s.PerGPU(p), "") }},
		number("tok_s_per_user", "TOK/S/USER", false, "", (*Point).PerUser),
		{"pareto", "PARETO", false, text("", "", func(p *Point) string { return p.Front }).cell},
		{"cost_per_million_tokens", "COST/M", s.PerHour > 0, func(s *Sweep, p *Point) texttab.Cell {
			return cellOf(s.Cost(p), "")
		}},
	}
	for i := range s.SLO {
		if row := s.SLO[i].Row; !slices.ContainsFunc(list, func(c column) bool { return c.id == row }) {
			list = append(list, value(row, strings.ToUpper(strings.ReplaceAll(row, "_", " ")), false))
		}
	}
	return list
}

// value is the column of one of the values.
func value(id, head string, narrow bool) column {
	unit := map[string]string{"kv_peak": "ratio", "power": "watt", "gpu_util": "ratio", "prefix_hit_ratio": "ratio",
		"running": "", "waiting": "", "preemption": "", "output_tok_s": ""}
	row, _ := headline.Named(id)
	of, known := unit[id]
	if !known {
		of = row.Unit
	}
	return column{id, head, narrow, func(_ *Sweep, p *Point) texttab.Cell {
		v := p.Value(id)
		if !v.known() {
			return texttab.Cell{Text: "-"}
		}
		c := cellOf(v.Value, of)
		if _, percentile := row.Quantile(); percentile && !narrow {
			c.Text += " (" + units.Format(v.Low, of) + " .. " + units.Format(v.High, of) + ")"
		}
		return c
	}}
}

// cellOf is a number as people read it: without the space before its unit.
func cellOf(v float64, unit string) texttab.Cell {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return texttab.Cell{Text: "-"}
	}
	return texttab.Cell{Text: strings.ReplaceAll(units.Format(v, unit), " ", ""), Value: v}
}

// shorter is the text of a cell in 80 columns.
func shorter(id string, c texttab.Cell) string {
	v, number := c.Value.(float64)
	switch {
	case c.Value == "cannot tell":
		return "unknown"
	case number && id == "kv_usage":
		return fmt.Sprintf("%.0f%%", 100*v)
	case number && id == "waiting" && v < 9.95:
		return fmt.Sprintf("%.1f", v)
	case number && (id == "running" || id == "waiting"):
		return fmt.Sprintf("%.0f", v)
	}
	return c.Text
}

// PerGPU is tokens of answers per second and GPU, NaN where the number of GPUs is not known.
func (s *Sweep) PerGPU(p *Point) float64 {
	tok := p.Value("output_tok_s")
	if !(s.GPUs > 0) || !tok.known() {
		return math.NaN()
	}
	return tok.Value / s.GPUs
}

// PerUser is tokens per second that a request which is being answered gets: 1 / the mean time between two.
func (p *Point) PerUser() float64 {
	itl := p.Value("itl_mean")
	if !itl.known() || !(itl.Value > 0) {
		return math.NaN()
	}
	return 1 / itl.Value
}

// Cost is what a million tokens of answers cost: of an hour / (tokens per second × 3600) × 10^6; NaN where that is not
// known.
func (s *Sweep) Cost(p *Point) float64 {
	tok := p.Value("output_tok_s")
	if !(s.PerHour > 0) || !tok.known() || !(tok.Value > 0) {
		return math.NaN()
	}
	return CostPerMillion(s.PerHour, tok.Value)
}

// CostPerMillion is what a million tokens cost at a cost per hour and a rate of tokens per second.
func CostPerMillion(perHour, rate float64) float64 { return perHour / (rate * 3600) * 1e6 }

// Table has a row for each point. For text of 80 columns it is narrow. Columns that no point has are in it, for files
// for programs; a report leaves them out.
func (s *Sweep) Table(narrow bool) *texttab.Table {
	t := &texttab.Table{}
	var cells []column
	for _, c := range s.columns() {
		if !narrow || c.narrow {
			t.Columns = append(t.Columns, texttab.Column{ID: c.id, Head: c.head, Right: c.id != "state" && c.id != "limit"})
			cells = append(cells, c)
		}
	}
	for i := range s.Points {
		row := make([]texttab.Cell, len(cells))
		for k := range cells {
			if row[k] = cells[k].cell(s, &s.Points[i]); narrow {
				row[k].Text = shorter(cells[k].id, row[k])
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// WriteCSV writes a line for each point of each sweep.
func WriteCSV(w io.Writer, sweeps []*Sweep) error {
	all := &texttab.Table{}
	ids := map[string]int{}
	column := func(id string) int {
		at, ok := ids[id]
		if !ok {
			at = len(all.Columns)
			ids[id] = at
			all.Columns = append(all.Columns, texttab.Column{ID: id})
		}
		return at
	}
	for _, head := range []string{"sweep", "engine", "unit", "label", "seconds", "repeats", "measured", "why"} {
		column(head)
	}
	for _, s := range sweeps {
		t := s.Table(false)
		for i, cells := range t.Rows {
			p := &s.Points[i]
			row := map[int]texttab.Cell{0: {Value: s.Name}, 1: {Value: s.Engine}, 2: {Value: s.Unit}, 3: {Value: p.Label},
				4: {Value: p.Seconds}, 5: {Value: int64(len(p.Repeats))}, 6: {Value: p.Measured}, 7: {Value: p.Why}}
			for k, c := range t.Columns {
				row[column(c.ID)] = cells[k]
			}
			line := make([]texttab.Cell, len(all.Columns))
			for at, c := range row {
				line[at] = c
			}
			all.Rows = append(all.Rows, line)
		}
	}
	for i, row := range all.Rows {
		all.Rows[i] = append(row, make([]texttab.Cell, len(all.Columns)-len(row))...)
	}
	return all.WriteCSV(w)
}
