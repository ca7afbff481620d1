package rundb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/scrapestat/scrapestat/metric"
)

// grow loads the next entries of the dictionary.
func (w *walk) grow(ctx context.Context, g dictSize) error {
	if g == (dictSize{}) {
		return nil
	}
	var add metric.DictDelta
	if err := w.r.charge(w.target, dictSize{slots: w.dec.size().slots + g.slots}, nil); err != nil {
		return err
	}
	err := w.rows(ctx, "family", w.dec.nFamily, g.families,
		func(scan func(...any) error) error {
			f, err := w.r.familyRow(scan)
			add.Families = append(add.Families, f)
			return err
		})
	if err != nil {
		return err
	}
	families, series := w.dec.nFamily+len(add.Families), w.dec.nSeries+g.series
	err = w.rows(ctx, "series", w.dec.nSeries, g.series, func(scan func(...any) error) error {
		var s metric.Series
		var id int64
		var labels any
		if err := scan(&id, &s.Family, &labels); err != nil {
			return err
		}
		if s.Family < 0 || s.Family >= families {
			return damageError{fmt.Errorf("series has family %d of %d", s.Family, families)}
		}
		add.Series = append(add.Series, s)
		return readLabels(labels, &add.Series[len(add.Series)-1].Labels)
	})
	if err != nil {
		return err
	}
	if err := w.r.charge(w.target, dictSize{series: series}, add.Series); err != nil {
		return err
	}
	if add.Slots, err = w.slots(ctx, g.slots, series); err != nil {
		return err
	}
	w.dec.grow(&add)
	w.growth.Families = append(w.growth.Families, add.Families...)
	w.growth.Series = append(w.growth.Series, add.Series...)
	w.growth.Slots = append(w.growth.Slots, add.Slots...)
	return nil
}

// familyRow reads a row of table family.
func (r *Run) familyRow(scan func(...any) error) (f metric.Family, err error) {
	var id int64
	var typ string
	to := []any{&id, &f.Name, &typ, &f.Help, &f.Unit, &f.Suffix}
	if r.version < suffixVersion {
		to = to[:5]
	}
	if err := scan(to...); err != nil {
		return f, err
	}
	if r.version < suffixVersion {
		f.Suffix = oldSuffix(typ)
	}
	var ok bool
	if f.Type, ok = metric.ParseType(typ); !ok {
		err = damageError{fmt.Errorf("family has type %q", typ)}
	}
	return f, err
}

// rows reads n rows of the target from index first on; fewer are damage.
func (w *walk) rows(ctx context.Context, table string, first, n int, row func(scan func(...any) error) error) error {
	if n == 0 {
		return nil
	}
	if n > maxPoll-first {
		return damageError{fmt.Errorf("dictionary of %d entries", n)}
	}
	err := w.r.each(ctx, nil, table, "WHERE id BETWEEN ? AND ? ORDER BY id", []any{key(w.target, first),
		key(w.target, first+n-1)}, func(scan func(...any) error) error {
		n--
		return row(scan)
	})
	if err != nil {
		return err
	}
	if n != 0 {
		return damageError{errors.New("entries of the dictionary are missing")}
	}
	return nil
}

// readLabels is the inverse of labelsValue.
func readLabels(v any, l *metric.Labels) error {
	switch v := v.(type) {
	case string:
		var m map[string]string
		if err := json.Unmarshal([]byte(v), &m); err != nil {
			return damageError{fmt.Errorf("labels: %w", err)}
		}
		*l = metric.LabelsFromMap(m)
		return nil
	case []byte:
		if err := l.UnmarshalBinary(v); err != nil {
			return damageError{err}
		}
		return nil
	}
	return damageError{fmt.Errorf("labels of type %T", v)}
}
