package rundb

import (
	"context"
	"fmt"
	"math"

	"github.com/scrapestat/scrapestat/metric"
)

// noteExemplars queues the exemplars of a poll; each replaces the one before it of its slot, so the table
// cannot outgrow the dictionary. One whose value is NaN has no place in SQLite and says nothing.
func (w *Writer) noteExemplars(s *metric.Snapshot) {
	for _, x := range s.Exemplars {
		if !math.IsNaN(x.Value) {
			if w.pending.exemplars == nil {
				w.pending.exemplars = map[int64]metric.Exemplar{}
			}
			w.pending.exemplars[key(s.Target, x.Slot)] = x
			w.pending.bytes += 256
		}
	}
}

// checkExemplars refuses those of slots that are not in the dictionary.
func checkExemplars(s *metric.Snapshot, slots int) error {
	for i := range s.Exemplars {
		if n := s.Exemplars[i].Slot; n < 0 || n >= slots {
			return fmt.Errorf("exemplar of slot %d of %d", n, slots)
		}
	}
	return nil
}

// Exemplars returns the last exemplar of each slot of a target that has one, by
// slot. A recording of a program that knew none has none.
func (r *Run) Exemplars(ctx context.Context, target int) ([]metric.Exemplar, error) {
	if target < 0 || target >= len(r.targets) {
		return nil, fmt.Errorf("read recording %s: target %d of %d", r.path, target, len(r.targets))
	}
	out, err := r.exemplars(ctx, target)
	if err != nil {
		return nil, fmt.Errorf("read exemplars of recording %s: %w", r.path, err)
	}
	return out, nil
}

func (r *Run) exemplars(ctx context.Context, target int) ([]metric.Exemplar, error) {
	var n int
	if err := r.db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = "+
		"'exemplar'").Scan(&n); err != nil || n == 0 {
		return nil, err
	}
	var out []metric.Exemplar
	err := r.each(ctx, nil, "exemplar", "WHERE id BETWEEN ? AND ? ORDER BY id", []any{key(target, 0),
		key(target, maxPoll)}, func(scan func(...any) error) error {
		var x metric.Exemplar
		var id int64
		var labels any
		if err := scan(&id, &x.SeenNS, &x.AtNS, &x.Value, &labels); isDamage(err) {
			r.damaged("an exemplar of target %d: %v", target, err)
			return nil
		} else if err != nil {
			return err
		}
		x.Slot = int(id & maxPoll)
		if err := readLabels(labels, &x.Labels); err != nil {
			r.damaged("exemplar of slot %d of target %d: %v", x.Slot, target, err)
			return nil
		}
		out = append(out, x)
		return nil
	})
	return out, err
}
