package compare

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// csvColumns are the columns of CSV.
var csvColumns = []string{"verdict", "kind", "family", "stat", "labels", "target", "unit", "better", "base", "side", "base_value", "value",
	"change", "difference", "evidence", "low", "high", "p", "q", "cliffs_delta", "base_runs", "runs", "reason", "notes"}

// CSV writes a line for each row and side after the base. What does not exist is
// empty. A text that a spreadsheet would take for a formula gets an apostrophe in
// front.
func CSV(w io.Writer, r *Result) error {
	out := csv.NewWriter(w)
	if err := out.Write(csvColumns); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	for i := range r.Rows {
		for side := 1; side < len(r.Sides); side++ {
			if err := out.Write(csvLine(r, &r.Rows[i], side)); err != nil {
				return fmt.Errorf("write comparison: %w", err)
			}
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

func csvLine(r *Result, row *Row, side int) []string {
	a, base, other := &row.Against[side], &row.Cells[0], &row.Cells[side]
	line := []string{a.Verdict.String(), row.Kind.String(), row.Family, row.Stat, row.Labels.String(), row.Target, row.Unit, row.Better.String(),
		r.Sides[0].Name, r.Sides[side].Name, number(base.Value), number(other.Value), number(a.Change), number(a.Difference), a.Evidence.String(),
		number(a.Low), number(a.High), number(a.P), number(a.Q), number(a.Effect), strconv.Itoa(len(base.Values)), strconv.Itoa(len(other.Values)),
		a.Reason, strings.Join(row.Notes, "; ")}
	for _, i := range []int{2, 3, 4, 5, 6, 8, 9, 22, 23} {
		line[i] = guard(line[i])
	}
	return line
}

func number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// guard keeps a spreadsheet from running a text.
func guard(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
