package rundb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/scrapestat/scrapestat/metric"
)

// AddMark sets a mark in the recording in dir from another process than the one that records, which is told
// through WriterOptions.OnMark. It waits for up to five seconds when the file is locked. A recording that has
// ended takes marks too: the analysis uses them.
func AddMark(dir string, m metric.Mark) error {
	ctx := context.Background()
	db, err := openExisting(ctx, dir, "rw", "synchronous(NORMAL)")
	if err != nil {
		return fmt.Errorf("add mark: %w", err)
	}
	var version int
	err = db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	switch row := summed("mark", m.AtNS, m.Name, false, ""); {
	case err != nil:
	case version < sumsVersion:
		_, err = db.ExecContext(ctx, "INSERT INTO mark (at_ns, name, own) VALUES (?, ?, ?)", row[:3]...)
	case version < kindVersion:
		_, err = db.ExecContext(ctx, "INSERT INTO mark (at_ns, name, own, crc) VALUES (?, ?, ?, ?)",
			summed("mark", row[:3]...)...)
	default:
		_, err = db.ExecContext(ctx, insertInto("mark"), row...)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("add mark to %s: %w (%s)", filepath.Join(dir, FileName), err, remedy(err))
	}
	return nil
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
