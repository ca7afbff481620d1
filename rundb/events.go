package rundb

import (
	"context"
	"database/sql"
	"fmt"
	"iter"

	"github.com/scrapestat/scrapestat/metric"
)

// loadEvents finds out what there is of the client's side. Recordings older than
// schema 3 have nothing of it unless events were added later.
func (r *Run) loadEvents(ctx context.Context, tx *sql.Tx) error {
	var tables int
	err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('events', "+
		"'requests', 'clock', 'event_stats')").Scan(&tables)
	if err != nil || tables != 4 {
		return err
	}
	r.client = true
	if err := tx.QueryRowContext(ctx, hasRequestIDs).Scan(&r.requestIDs); err != nil {
		return err
	}
	return tx.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM events").Scan(&r.events)
}

// HasEvents reports whether the recording had request events when it was opened.
func (r *Run) HasEvents() bool { return r.events > 0 }

// Events returns the request events in the order in which they were recorded, those that had been committed
// when the recording was opened. An event is valid until the next one. An error ends the sequence.
func (r *Run) Events(ctx context.Context) iter.Seq2[*metric.Event, error] {
	const query = "SELECT sample_uuid, event_type, timestamp_ns, conversation_id, turn, data FROM events WHERE id <= ? " +
		"ORDER BY id"
	return func(yield func(*metric.Event, error) bool) {
		var e metric.Event
		var turn sql.NullInt64
		var data sql.RawBytes
		scan := func(rows *sql.Rows) error {
			err := rows.Scan(&e.Sample, &e.Type, &e.AtNS, &e.Conversation, &turn, &data)
			e.Turn, e.HasTurn, e.Data = int(turn.Int64), turn.Valid, data
			return err
		}
		r.rows(ctx, query, []any{r.events}, scan, func(err error) bool {
			if err != nil {
				return yield(nil, fmt.Errorf("read events of %s: %w", r.path, err))
			}
			return yield(&e, nil)
		})
	}
}

// rows calls next for each row of a query after scan, or once with an error. It
// gives no rows in a recording without the tables of events.
func (r *Run) rows(ctx context.Context, query string, args []any, scan func(*sql.Rows) error, next func(error) bool) {
	if !r.client {
		return
	}
	c, err := r.conn(ctx)
	if err != nil {
		next(err)
		return
	}
	defer c.Close()
	rows, err := c.QueryContext(ctx, query, args...)
	if err != nil {
		next(err)
		return
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			next(err)
			return
		}
		if !next(nil) {
			return
		}
	}
	if err := rows.Err(); err != nil {
		next(err)
	}
}

// Clocks returns the anchors of the clocks that events were told by, in the order they were recorded.
func (r *Run) Clocks(ctx context.Context) ([]Clock, error) {
	var all []Clock
	var c Clock
	var failed error
	scan := func(rows *sql.Rows) error { return rows.Scan(&c.Source, &c.MonoNS, &c.UnixNS) }
	r.rows(ctx, "SELECT source, mono_ns, unix_ns FROM clock ORDER BY id", nil, scan, func(err error) bool {
		failed = err
		all = append(all, c)
		return true
	})
	if failed != nil {
		return nil, fmt.Errorf("read clocks of %s: %w", r.path, failed)
	}
	return all, nil
}

// EventStats returns how the recording of events went, for each time that somebody recorded, in order.
func (r *Run) EventStats(ctx context.Context) ([]EventStats, error) {
	var all []EventStats
	var s EventStats
	var failed error
	scan := func(rows *sql.Rows) error {
		return rows.Scan(&s.Source, &s.Recorded, &s.Dropped, &s.Late, &s.EncodeErrors, &s.MaxQueue)
	}
	r.rows(ctx, "SELECT source, recorded, dropped, late, encode_errors, max_queue FROM event_stats ORDER BY id", nil,
		scan, func(err error) bool {
			failed = err
			all = append(all, s)
			return true
		})
	if failed != nil {
		return nil, fmt.Errorf("read event statistics of %s: %w", r.path, failed)
	}
	return all, nil
}
