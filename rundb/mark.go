package rundb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/scrapestat/scrapestat/metric"
)

// The most marks that are taken from outside: each makes every target be polled once more, and is a phase that the
// analysis has to go through.
const (
	MaxMarks          = 10_000
	MaxMarksPerSecond = 10
)

// ErrTooManyMarks is wrapped by the error of a mark beyond [MaxMarksPerSecond] or [MaxMarks] of a run.
var ErrTooManyMarks = errors.New("more than 10 marks in a second, or 10,000 in the run")

// AddMark sets a mark in the recording in dir from another process than the one that records, which is told
// through WriterOptions.OnMark. It waits for up to five seconds when the file is locked. A recording that has
// ended takes marks too: the analysis uses them. Beyond the limits, of which the first mark that ends the run is free,
// it fails with [ErrTooManyMarks].
func AddMark(dir string, m metric.Mark) error {
	ctx := context.Background()
	db, err := openExisting(ctx, dir, "rw", "synchronous(NORMAL)")
	if err != nil {
		return fmt.Errorf("add mark: %w", err)
	}
	c, err := db.Conn(ctx)
	if err == nil {
		err = errors.Join(inTransaction(ctx, c, func() error { return insertMark(ctx, c, m) }), c.Close())
	}
	err = errors.Join(err, db.Close())
	switch path := filepath.Join(dir, FileName); {
	case errors.Is(err, ErrTooManyMarks):
		return fmt.Errorf("add mark to %s: %w", path, err)
	case err != nil:
		return fmt.Errorf("add mark to %s: %w (%s)", path, err, remedy(err))
	}
	return nil
}

// insertMark adds a mark of another process than the recorder, if there is room.
func insertMark(ctx context.Context, c *sql.Conn, m metric.Mark) error {
	var version, all, lately, ends int
	err := c.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	if err == nil {
		err = c.QueryRowContext(ctx, "SELECT count(*), count(*) FILTER (WHERE NOT own AND at_ns > ? AND at_ns <= ?), "+
			"count(*) FILTER (WHERE name = ?) FROM mark", m.AtNS-1e9, m.AtNS, metric.MarkEnd).Scan(&all, &lately, &ends)
	}
	first := m.Name == metric.MarkEnd && ends == 0
	switch row := summed("mark", m.AtNS, m.Name, false, ""); {
	case err != nil:
	case !first && (all >= MaxMarks || lately >= MaxMarksPerSecond):
		return ErrTooManyMarks
	case version < sumsVersion:
		_, err = c.ExecContext(ctx, "INSERT INTO mark (at_ns, name, own) VALUES (?, ?, ?)", row[:3]...)
	case version < kindVersion:
		_, err = c.ExecContext(ctx, "INSERT INTO mark (at_ns, name, own, crc) VALUES (?, ?, ?, ?)",
			summed("mark", row[:3]...)...)
	default:
		_, err = c.ExecContext(ctx, insertInto("mark"), row...)
	}
	return err
}

// oldKind is the kind of a mark of before version 5: the recorder also set marks of other names, which it was told to.
func oldKind(name string, own bool) string {
	if own && (name == metric.PhaseWarmup || name == metric.PhaseProfiling || name == metric.MarkEnd) {
		return metric.MarkOwn
	}
	return ""
}

// foreignMarks reports the marks that other processes set since the last call.
func (w *Writer) foreignMarks(c *conn) error {
	if w.o.OnMark == nil {
		return nil
	}
	// The version changes when another connection has committed, and only then.
	ctx := context.Background()
	var version int64
	if err := c.c.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version); err != nil {
		return err
	}
	if version == c.version {
		return nil
	}
	marks, last, err := marksAfter(ctx, c.c, c.lastMark)
	if err != nil {
		return err
	}
	c.version, c.lastMark = version, last
	for _, m := range marks {
		w.o.OnMark(m)
	}
	return nil
}

// marksAfter reads the foreign marks with keys above last, and the highest key.
func marksAfter(ctx context.Context, c *sql.Conn, last int64) ([]metric.Mark, int64, error) {
	rows, err := c.QueryContext(ctx, "SELECT id, at_ns, name FROM mark WHERE id > ? AND NOT own ORDER BY id", last)
	if err != nil {
		return nil, last, err
	}
	defer rows.Close()
	var marks []metric.Mark
	for rows.Next() {
		var m metric.Mark
		if err := rows.Scan(&last, &m.AtNS, &m.Name); err != nil {
			return nil, last, err
		}
		marks = append(marks, m)
	}
	return marks, last, rows.Err()
}
