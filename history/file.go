package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/scrapestat/scrapestat/internal/sqlitefile"
	"github.com/scrapestat/scrapestat/metric"
)

// FileName is what a history is called where no name is given.
const FileName = "history.db"

// SchemaVersion is the version of the schema that this package writes, and the latest that it reads.
const SchemaVersion = 1

// applicationID marks the file for file(1): "ssth".
const applicationID = 0x73737468

// Texts are stored once: settings are the same in nearly all runs. The views have them as words.
const schema = `
CREATE TABLE run (id INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, at_ns INTEGER NOT NULL, path TEXT NOT NULL,
  "commit" TEXT NOT NULL, branch TEXT NOT NULL, version TEXT NOT NULL, fingerprint TEXT NOT NULL,
  window_s REAL NOT NULL, tags TEXT NOT NULL, ok INTEGER NOT NULL, note TEXT NOT NULL,
  analysis INTEGER NOT NULL) STRICT;
CREATE TABLE series (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, phase TEXT NOT NULL, engine TEXT NOT NULL,
  target TEXT NOT NULL, quantity TEXT NOT NULL, unit TEXT NOT NULL, better TEXT NOT NULL,
  UNIQUE (kind, phase, engine, target, quantity, unit, better)) STRICT;
CREATE TABLE value (series INTEGER NOT NULL, run INTEGER NOT NULL, value REAL, se_log REAL, df REAL, low REAL,
  high REAL, beyond REAL, note TEXT, PRIMARY KEY (series, run)) STRICT, WITHOUT ROWID;
CREATE TABLE text (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE setting (run INTEGER NOT NULL, name INTEGER NOT NULL, value INTEGER NOT NULL,
  PRIMARY KEY (run, name)) STRICT, WITHOUT ROWID;
CREATE TABLE config (fingerprint TEXT PRIMARY KEY, json TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE VIEW run_value AS SELECT r.run_id, s.phase, s.engine, s.target, s.quantity, v.value, v.se_log, v.df, v.low,
  v.high, v.beyond, s.unit, s.better, s.kind, v.note FROM value v
  JOIN run r ON r.id = v.run JOIN series s ON s.id = v.series;
CREATE VIEW run_setting AS SELECT r.run_id, n.text AS name, t.text AS value FROM setting x JOIN run r ON r.id = x.run
  JOIN text n ON n.id = x.name JOIN text t ON t.id = x.value;
`

// maxText bounds a text, and the settings of a run together: one text in the file is that of any number of settings.
const maxText = 4 << 20

// columns are those of the tables that are read; generated ones are refused.
const columns = "id run_id at_ns path commit branch version fingerprint window_s tags ok note analysis kind phase " +
	"engine target quantity unit better series run value se_log df low high beyond text name json"

// File is an open history.
type File struct {
	path   string
	db     *sql.DB
	series map[string]int64 // ids of those that are stored
}

// Open opens the history at path. With write set it is made when it is not there; else it is only read.
func Open(ctx context.Context, path string, write bool) (*File, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(abs)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a file", path)
	case errors.Is(err, fs.ErrNotExist) && !write:
		return nil, fmt.Errorf("%s: no history there: scrapestat history add RUN makes one", path)
	case errors.Is(err, fs.ErrNotExist):
		err = touch(abs)
	}
	if err = errors.Join(err, sqlitefile.CheckBeside(abs)); err != nil {
		return nil, err
	}
	f := &File{path: path, series: map[string]int64{}}
	mode, pragmas := "rw", []string{"trusted_schema(0)", "synchronous(normal)", "cell_size_check(1)"}
	if !write {
		mode = readMode(abs)
		pragmas = append(pragmas, "query_only(1)")
	}
	if f.db, err = sql.Open("sqlite", sqlitefile.DSN(abs, mode, pragmas...)); err != nil {
		return nil, err
	}
	f.db.SetMaxOpenConns(1)
	if err := errors.Join(sqlitefile.Limit(ctx, f.db, maxText), f.check(ctx, write)); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.db.Close())
	}
	return f, nil
}

// touch makes an empty file with the mode of ours, which SQLite gives its companion files too.
func touch(path string) error {
	f, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// readMode is how a file is read: as one that is written, so that what SQLite lays beside it goes away again; one that
// nobody here may write needs nothing beside it when it is at rest.
func readMode(path string) string {
	if f, err := os.OpenFile(filepath.Clean(path), os.O_RDWR, 0); err == nil {
		_ = f.Close()
		return "rw"
	}
	if _, err := os.Stat(path + "-wal"); err == nil {
		return "ro"
	}
	return "immutable"
}

// Path is where the file is.
func (f *File) Path() string { return f.path }

// Close closes the file.
func (f *File) Close() error { return f.db.Close() }

// check refuses what is no history or a newer one; an empty file becomes one.
func (f *File) check(ctx context.Context, write bool) error {
	var id, version int64
	read := func() error { // the id last: another process may be making the file, and sets both at once
		if err := f.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
			return err
		}
		return f.db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id)
	}
	if err := read(); err != nil {
		return err
	}
	if info, err := os.Stat(f.path); write && id == 0 && version == 0 && err == nil {
		if err := f.create(ctx, info.Size()); err != nil {
			return err
		}
		if err := read(); err != nil {
			return err
		}
	}
	switch {
	case id != applicationID:
		return errors.New("not a history of scrapestat")
	case version > SchemaVersion:
		return fmt.Errorf("written by a newer scrapestat (schema %d, this program reads up to %d): update scrapestat",
			version, SchemaVersion)
	}
	return sqlitefile.CheckObjects(ctx, f.db, "history", func(table string) ([]string, bool) {
		return strings.Fields(columns), strings.Contains(" run series value text setting config ", " "+table+" ")
	})
}

// create makes the schema, unless another process did since, or the file has something else in it.
func (f *File) create(ctx context.Context, size int64) error {
	if size == 0 {
		if _, err := f.db.ExecContext(ctx, "PRAGMA journal_mode=WAL"); err != nil {
			return err
		}
	}
	return f.write(ctx, func(c *sql.Conn) error {
		var n int
		if err := c.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&n); err != nil || n > 0 {
			return err
		}
		_, err := c.ExecContext(ctx, fmt.Sprintf("%s; PRAGMA application_id = %d; PRAGMA user_version = %d", schema,
			applicationID, SchemaVersion))
		return err
	})
}

// write does something in one transaction, which waits up to five seconds for those of others.
func (f *File) write(ctx context.Context, do func(*sql.Conn) error) (err error) {
	c, err := f.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if _, err := c.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err = do(c); err == nil {
		_, err = c.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		clear(f.series) // some may be none
		_, _ = c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	}
	return err
}

// Has reports whether the run of this id is in the file, and by which version of the analysis.
func (f *File) Has(ctx context.Context, id string) (analysis int, ok bool, err error) {
	err = f.db.QueryRowContext(ctx, "SELECT analysis FROM run WHERE run_id = ?", id).Scan(&analysis)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return analysis, err == nil, err
}

// Add adds a run. One that is there stays as it is and added is false, or with replace it is made new, but for what
// people said of it.
func (f *File) Add(ctx context.Context, e *Entry, replace bool) (added bool, err error) {
	err = f.write(ctx, func(c *sql.Conn) error {
		var id sql.NullInt64
		err := c.QueryRowContext(ctx, "SELECT id FROM run WHERE run_id = ?", e.ID).Scan(&id)
		if err != nil && !errors.Is(err, sql.ErrNoRows) || id.Valid && !replace {
			return err
		}
		added = true
		return f.put(ctx, c, e, id)
	})
	if err != nil {
		return false, fmt.Errorf("%s: add run %s: %w", f.path, e.ID, err)
	}
	return added, nil
}

func (f *File) put(ctx context.Context, c *sql.Conn, e *Entry, id sql.NullInt64) error {
	tags, err := json.Marshal(e.Tags)
	if err != nil {
		return err
	}
	if id.Valid {
		if err := empty(ctx, c, "= ?", id.Int64); err != nil {
			return err
		}
	}
	row := c.QueryRowContext(ctx, `INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (run_id) DO UPDATE SET at_ns = excluded.at_ns, path = excluded.path, "commit" = excluded."commit",
		branch = excluded.branch, version = excluded.version, fingerprint = excluded.fingerprint,
		window_s = excluded.window_s, tags = excluded.tags, analysis = excluded.analysis RETURNING id`,
		nil, e.ID, e.AtNS, e.Path, e.Commit, e.Branch, e.Version, e.Fingerprint, e.Window, string(tags), int(Normal), "",
		e.Analysis)
	if err := row.Scan(&id); err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx, "INSERT OR IGNORE INTO config VALUES (?, ?)", e.Fingerprint, e.Config); err != nil {
		return err
	}
	settings, err := json.Marshal(e.Settings)
	if err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx, `INSERT OR IGNORE INTO text (text)
		SELECT key FROM json_each(?1) UNION SELECT value FROM json_each(?1)`, string(settings)); err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx, `INSERT INTO setting SELECT ?1, n.id, t.id FROM json_each(?2) j
		JOIN text n ON n.text = j.key JOIN text t ON t.text = j.value`, id.Int64, string(settings)); err != nil {
		return err
	}
	insert, err := c.PrepareContext(ctx, "INSERT OR REPLACE INTO value VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer insert.Close()
	for i := range e.Values {
		if err := f.putValue(ctx, c, insert, id.Int64, &e.Values[i]); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) putValue(ctx context.Context, c *sql.Conn, insert *sql.Stmt, run int64, v *Value) error {
	key := strings.Join([]string{"\x00", v.Kind, v.Phase, v.Engine, v.Target, v.Quantity, v.Unit, v.Better}, "\x00")
	id, ok := f.series[key]
	if !ok {
		args := []any{v.Kind, v.Phase, v.Engine, v.Target, v.Quantity, v.Unit, v.Better}
		if _, err := c.ExecContext(ctx, `INSERT OR IGNORE INTO series (kind, phase, engine, target, quantity, unit, better)
			VALUES (?, ?, ?, ?, ?, ?, ?)`, args...); err != nil {
			return err
		}
		if err := c.QueryRowContext(ctx, `SELECT id FROM series WHERE kind = ? AND phase = ? AND engine = ? AND target = ?
			AND quantity = ? AND unit = ? AND better = ?`, args...).Scan(&id); err != nil {
			return err
		}
		f.series[key] = id
	}
	number := func(x float64, there bool) sql.NullFloat64 {
		return sql.NullFloat64{Float64: x, Valid: there && metric.Finite(x)}
	}
	_, err := insert.ExecContext(ctx, id, run, number(v.Value, true), number(v.ErrLog, v.DF > 0),
		number(v.DF, v.DF > 0), number(v.Low, true), number(v.High, true), number(v.Beyond, v.Beyond > 0),
		sql.NullString{String: v.Note, Valid: v.Note != ""})
	return err
}

// empty takes away the values and settings of runs, which which selects by their id.
func empty(ctx context.Context, c *sql.Conn, which string, args ...any) error {
	for _, query := range []string{"DELETE FROM value WHERE series IN (SELECT id FROM series) AND run " + which,
		"DELETE FROM setting WHERE run " + which} {
		if _, err := c.ExecContext(ctx, query, args...); err != nil {
			return err
		}
	}
	return nil
}

// Mark sets what a person says of a run, by its id or the directory it was read from; false when none is such. A run
// that is Dropped is in no series; at one that is Accepted a new level begins.
func (f *File) Mark(ctx context.Context, run string, s State, note string) (bool, error) {
	var n int64
	err := f.write(ctx, func(c *sql.Conn) error {
		r, err := c.ExecContext(ctx, "UPDATE run SET ok = ?, note = ? WHERE run_id = ? OR path = ?", int(s), note, run, run)
		if err == nil {
			n, err = r.RowsAffected()
		}
		return err
	})
	return n > 0, err
}

// Prune deletes values of families of runs that began before familiesBefore, and all of runs but the last keep ones; 0
// leaves all. It returns how many runs lost something, and gives the space back.
func (f *File) Prune(ctx context.Context, familiesBefore int64, keep int) (families, runs int64, err error) {
	err = f.write(ctx, func(c *sql.Conn) error {
		const aged = "SELECT id FROM run WHERE at_ns < ?"
		r, err := c.ExecContext(ctx, "DELETE FROM value WHERE series IN (SELECT id FROM series WHERE kind = 'family') "+
			"AND run IN ("+aged+")", familiesBefore)
		if err != nil {
			return err
		}
		if families, err = r.RowsAffected(); err != nil || keep <= 0 {
			return err
		}
		const old = "IN (SELECT id FROM run ORDER BY at_ns DESC, run_id DESC LIMIT -1 OFFSET ?)"
		if err := empty(ctx, c, old, keep); err != nil {
			return err
		}
		if r, err = c.ExecContext(ctx, "DELETE FROM run WHERE id "+old, keep); err != nil {
			return err
		}
		runs, err = r.RowsAffected()
		return err
	})
	if err == nil {
		err = f.shrink(ctx)
	}
	return families, runs, err
}

// shrink takes away what no run refers to, and gives the space back.
func (f *File) shrink(ctx context.Context) error {
	clear(f.series)
	for _, query := range []string{"DELETE FROM series WHERE id NOT IN (SELECT series FROM value)",
		"DELETE FROM text WHERE id NOT IN (SELECT name FROM setting UNION SELECT value FROM setting)",
		"DELETE FROM config WHERE fingerprint NOT IN (SELECT fingerprint FROM run)", "VACUUM"} {
		if _, err := f.db.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	return nil
}
