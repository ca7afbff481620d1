package rundb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/internal/sqlitefile"
	"github.com/scrapestat/scrapestat/metric"
)

// maxForeignText and maxForeignData limit what one row of a foreign database may cost in memory.
const (
	maxForeignText = 4 << 10
	maxForeignData = 64 << 20
)

// oversizeData stands for data that is too long. It is no JSON, so whoever reads
// events counts it as unreadable.
const oversizeData = "(too long)"

// ForeignEvents returns the rows of table events of an SQLite database that is not ours: those that MLPerf's
// endpoints benchmark writes, with the columns sample_uuid, event_type, timestamp_ns, data, and in newer ones
// id, conversation_id and turn. Events come in the order of their rows, with types and times as they are in the
// file. An event is valid until the next one. An error ends the sequence.
//
// The file may come from anywhere. It is opened for reading only, its schema gets no say, a view or a virtual
// table is refused, and what is too long is replaced: a name by its beginning, data by a text that is no JSON.
// A time that is no integer makes the type "", which nobody knows.
func ForeignEvents(ctx context.Context, path string) iter.Seq2[*metric.Event, error] {
	return func(yield func(*metric.Event, error) bool) {
		if err := foreignEvents(ctx, path, func(e *metric.Event) bool { return yield(e, nil) }); err != nil {
			yield(nil, fmt.Errorf("read events of %s: %w", path, err))
		}
	}
}

func foreignEvents(ctx context.Context, path string, next func(*metric.Event) bool) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	f, err := sqlitefile.OpenFile(abs)
	if err == nil {
		err = errors.Join(f.Close(), sqlitefile.CheckBeside(abs))
	}
	if err != nil {
		return err
	}
	db, err := openForeign(ctx, abs)
	if err != nil {
		return err
	}
	query, err := foreignQuery(ctx, db)
	if err == nil {
		err = foreignRows(ctx, db, query, next)
	}
	return errors.Join(err, db.Close())
}

// openForeign opens a database for reading, as the immutable file it is where its
// directory does not let SQLite make the files of a WAL.
func openForeign(ctx context.Context, path string) (*sql.DB, error) {
	var last error
	for _, mode := range []string{"ro", "immutable"} {
		db, err := sql.Open("sqlite", sqlitefile.DSN(path, mode, "query_only(1)", "trusted_schema(0)", "cell_size_check(1)",
			"mmap_size(0)"))
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(1)
		var n int
		if last = db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&n); last == nil {
			return db, nil
		}
		last = errors.Join(last, db.Close())
	}
	return nil, last
}

// foreignQuery makes the query for the columns that table events has.
func foreignQuery(ctx context.Context, db *sql.DB) (string, error) {
	var kind, text string
	err := db.QueryRowContext(ctx, "SELECT type, coalesce(substr(sql, 1, 200), '') FROM sqlite_schema WHERE name = "+
		"'events' COLLATE NOCASE AND type IN ('table', 'view')").Scan(&kind, &text)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", errors.New("no table events: not a database of MLPerf's endpoints benchmark")
	case err != nil:
		return "", err
	case kind != "table" || strings.Contains(strings.ToUpper(text), "VIRTUAL"):
		return "", errors.New("events is no plain table")
	}
	have, err := foreignColumns(ctx, db)
	if err != nil {
		return "", err
	}
	for _, c := range []string{"sample_uuid", "event_type", "timestamp_ns", "data"} {
		if !slices.Contains(have, c) {
			return "", fmt.Errorf("table events has no column %s: not a database of MLPerf's endpoints benchmark", c)
		}
	}
	or := func(column, missing string) string {
		if slices.Contains(have, column) {
			return column
		}
		return missing
	}
	return fmt.Sprintf(`SELECT coalesce(substr(CAST(sample_uuid AS TEXT), 1, %[1]d), ''),
		coalesce(substr(CAST(event_type AS TEXT), 1, %[1]d), ''), typeof(timestamp_ns) = 'integer',
		CAST(timestamp_ns AS INTEGER),
		coalesce(substr(CAST(%[2]s AS TEXT), 1, %[1]d), ''), CAST(%[3]s AS INTEGER),
		CASE WHEN length(data) > %[4]d THEN '%[5]s' ELSE CAST(data AS BLOB) END FROM events ORDER BY %[6]s`,
		maxForeignText, or("conversation_id", "''"), or("turn", "NULL"), maxForeignData, oversizeData, or("id", "rowid")), nil
}

func foreignColumns(ctx context.Context, db *sql.DB) ([]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT name FROM pragma_table_info('events')")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var have []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		have = append(have, strings.ToLower(name))
	}
	return have, rows.Err()
}

func foreignRows(ctx context.Context, db *sql.DB, query string, next func(*metric.Event) bool) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	var e metric.Event
	var isTime bool
	var at, turn sql.NullInt64
	var data sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&e.Sample, &e.Type, &isTime, &at, &e.Conversation, &turn, &data); err != nil {
			return err
		}
		if e.AtNS, e.Turn, e.HasTurn, e.Data = at.Int64, int(turn.Int64), turn.Valid, data; !isTime {
			e.Type = ""
		}
		if !next(&e) {
			return nil
		}
	}
	return rows.Err()
}
