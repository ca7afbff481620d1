package rundb

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// observations are the logged events that came with one poll, each as one row
// for each request it was measured for, or one row without a request.
type observations struct {
	target, poll int
	list         []metric.Observation
}

// noteObservations queues the events of a poll. The lists of requests are
// shared: sources make them anew for each event.
func (w *Writer) noteObservations(t *targetState, s *metric.Snapshot) {
	if len(s.Observations) == 0 {
		return
	}
	w.pending.observations = append(w.pending.observations, observations{s.Target, t.polls, slices.Clone(s.Observations)})
	for i := range s.Observations {
		w.pending.bytes += 64
		for _, id := range s.Observations[i].Requests {
			w.pending.bytes += 32 + len(id)
		}
	}
}

var errObservation = errors.New("an observation is of a series that the target does not have")

// insert writes the rows.
func (o *observations) insert(s *sql.Stmt) error {
	n := 0
	row := func(line int, request any) error {
		e := &o.list[line]
		_, err := s.Exec(summed("observation", o.target, o.poll, n, line, e.Series, e.AtNS, e.Value, request)...)
		n++
		return err
	}
	for line := range o.list {
		requests := o.list[line].Requests
		if len(requests) == 0 {
			if err := row(line, nil); err != nil {
				return err
			}
		}
		for _, id := range requests {
			if err := row(line, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadObserved finds out which targets have events; older recordings have no table for them.
func (r *Run) loadObserved(ctx context.Context, tx *sql.Tx) error {
	var tables int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = "+
		"'observation'").Scan(&tables); err != nil || tables == 0 {
		return err
	}
	r.observed = map[int]bool{}
	for t := range r.targets {
		var some bool
		if err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM observation WHERE target = ?)",
			t).Scan(&some); err != nil {
			return err
		}
		r.observed[t] = some
	}
	return nil
}

// observations loads the events of the next poll into s.
func (w *walk) observations(ctx context.Context, s *metric.Snapshot) error {
	s.Observations = s.Observations[:0]
	last := int64(-1)
	return w.r.each(ctx, nil, "observation", "WHERE target = ? AND poll = ? ORDER BY n", []any{w.target, w.next},
		func(scan func(...any) error) error {
			var target, poll, n, line int64
			var o metric.Observation
			var request sql.NullString
			if err := scan(&target, &poll, &n, &line, &o.Series, &o.AtNS, &o.Value, &request); err != nil {
				return damageError{err}
			}
			if series := w.dec.size().series; o.Series < 0 || o.Series >= series {
				return damageError{errObservation}
			}
			if line != last {
				s.Observations = append(s.Observations, o)
				last = line
			}
			if request.Valid {
				e := &s.Observations[len(s.Observations)-1]
				e.Requests = append(e.Requests, request.String)
			}
			return nil
		})
}
