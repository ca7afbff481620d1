package rundb

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"

	"github.com/scrapestat/scrapestat/metric"
)

// slotsVersion is the first version of the schema with table slots. Those
// before have a table slot with a row for each.
const slotsVersion = 2

// slotRows loads the next n slots of the target from a recording of version 1.
func (w *walk) slotRows(ctx context.Context, n, series int) (slots []metric.SampleID, err error) {
	err = w.rows(ctx, "slot", len(w.dec.bits), n,
		func(scan func(...any) error) error {
			s, err := readSlotRow(scan)
			if err != nil {
				return err
			}
			if s.Series < 0 || s.Series >= series {
				return damageError{fmt.Errorf("slot has series %d of %d", s.Series, series)}
			}
			slots = append(slots, s)
			return nil
		})
	return slots, err
}

// readSlotRow reads a row of table slot. Bound is NULL for 0 without a text, and the hexadecimal bits for NaN
// and -0, which SQLite does not keep; a NULL text beside a bound is the shortest spelling of that bound.
func readSlotRow(scan func(...any) error) (metric.SampleID, error) {
	var s metric.SampleID
	var role int
	var bound any
	var text sql.NullString
	if err := scan(&s.Series, &role, &bound, &text, &s.Integer); err != nil {
		return s, err
	}
	if role < 0 || role > int(metric.RoleCreated) {
		return s, damageError{fmt.Errorf("slot has role %d", role)}
	}
	s.Role = metric.Role(role)
	switch b := bound.(type) {
	case nil:
	case float64:
		s.Bound = b
	case int64:
		s.Bound = float64(b)
	case string:
		bits, err := strconv.ParseUint(b, 16, 64)
		if err != nil {
			return s, damageError{fmt.Errorf("bound: %w", err)}
		}
		s.Bound = math.Float64frombits(bits)
	default:
		return s, damageError{fmt.Errorf("bound of type %T", b)}
	}
	switch {
	case text.Valid:
		s.Text = text.String
	case bound != nil:
		s.Text = boundText(s.Bound)
	}
	return s, nil
}

// boundText is the usual spelling of a bound.
func boundText(f float64) string {
	if math.IsInf(f, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
