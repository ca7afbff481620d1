package rundb

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/scrapestat/scrapestat/metric"
)

type lifeRow struct {
	target int
	metric.TargetEvent
}

// TargetEvent records that a target came or went.
func (w *Writer) TargetEvent(target int, l metric.TargetEvent) error {
	return w.queue(func(b *batch) error {
		if target < 0 || target >= len(w.targets) {
			return fmt.Errorf("record life: target %d of %d", target, len(w.targets))
		}
		b.lives = append(b.lives, lifeRow{target, l})
		return nil
	})
}

// Lives returns when a target came and went, in the order recorded: nothing for
// one that was there all the time. The slice must not be changed.
func (r *Run) Lives(target int) []metric.TargetEvent {
	if target < 0 || target >= len(r.lives) {
		return nil
	}
	return r.lives[target]
}

// loadLives reads what older recordings do not have.
func (r *Run) loadLives(ctx context.Context, tx *sql.Tx) error {
	r.lives = make([][]metric.TargetEvent, len(r.targets))
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('life', "+
		"'target_labels')").Scan(&n); err != nil || n < 2 {
		return err
	}
	err := r.each(ctx, tx, "target_labels", "", nil, func(scan func(...any) error) error {
		var target int
		var labels any
		if err := scan(&target, &labels); err != nil {
			return err
		}
		if target < 0 || target >= len(r.targets) {
			return nil
		}
		if err := readLabels(labels, &r.targets[target].Labels); err != nil {
			r.damaged("labels of target %d: %v", target, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.each(ctx, tx, "life", "ORDER BY id", nil, func(scan func(...any) error) error {
		var target int
		var l metric.TargetEvent
		if err := scan(&target, &l.AtNS, &l.Gone, &l.Reason); err != nil {
			return err
		}
		if target >= 0 && target < len(r.lives) {
			r.lives[target] = append(r.lives[target], l)
		}
		return nil
	})
}
