package compare

import (
	"fmt"
	"io"
	"strings"

	"github.com/scrapestat/scrapestat/internal/texttab"
)

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
	for _, v := range []any{a.Verdict.String(), row.Kind.String(), row.Family, row.Stat, row.Labels.String(), row.Target,
		row.Unit, row.Better.String(), r.Sides[0].Name, r.Sides[side].Name, base.Value, other.Value, a.Change, a.Difference,
		a.Evidence.String(), a.Low, a.High, a.P, a.Q, a.Effect, int64(len(base.Values)), int64(len(other.Values)), a.Reason,
		strings.Join(row.Notes, "; ")} {
		cells = append(cells, texttab.Cell{Value: v})
	}
	return cells
}
