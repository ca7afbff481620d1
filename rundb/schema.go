package rundb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/scrapestat/scrapestat/internal/sqlitefile"
)

// FileName is the name of the recording in a run directory.
const FileName = "run.db"

// SchemaVersion is the version of the schema this package writes. It reads this one and all before it.
const SchemaVersion = 6

// applicationID marks the file for file(1): "sst1".
const applicationID = 0x73737431

// Rows that belong to a target have the key target<<32 | index, so that a range of one target is a range of
// keys and needs no second index. The columns target and the index are computed from it and take no space.
const schema = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE target (id INTEGER PRIMARY KEY, name TEXT NOT NULL, url TEXT NOT NULL, source TEXT NOT NULL,
  crc INTEGER NOT NULL) STRICT;
CREATE TABLE family (id INTEGER PRIMARY KEY,
  target INTEGER GENERATED ALWAYS AS (id >> 32) VIRTUAL, family INTEGER GENERATED ALWAYS AS (id & 4294967295) VIRTUAL,
  name TEXT NOT NULL, type TEXT NOT NULL, help TEXT NOT NULL, unit TEXT NOT NULL, suffix TEXT NOT NULL,
  crc INTEGER NOT NULL) STRICT;
CREATE TABLE series (id INTEGER PRIMARY KEY,
  target INTEGER GENERATED ALWAYS AS (id >> 32) VIRTUAL, series INTEGER GENERATED ALWAYS AS (id & 4294967295) VIRTUAL,
  family INTEGER NOT NULL, labels ANY NOT NULL, crc INTEGER NOT NULL) STRICT;
CREATE TABLE slots (id INTEGER PRIMARY KEY,
  target INTEGER GENERATED ALWAYS AS (id >> 32) VIRTUAL, slot INTEGER GENERATED ALWAYS AS (id & 4294967295) VIRTUAL,
  slots INTEGER NOT NULL, data BLOB NOT NULL, crc INTEGER NOT NULL) STRICT;
CREATE TABLE block (id INTEGER PRIMARY KEY,
  target INTEGER GENERATED ALWAYS AS (id >> 32) VIRTUAL, poll INTEGER GENERATED ALWAYS AS (id & 4294967295) VIRTUAL,
  polls INTEGER NOT NULL, stored INTEGER NOT NULL, from_ns INTEGER NOT NULL, to_ns INTEGER NOT NULL,
  families INTEGER NOT NULL, series INTEGER NOT NULL, slots INTEGER NOT NULL,
  head BLOB NOT NULL, op BLOB NOT NULL, num BLOB NOT NULL, bits BLOB NOT NULL, crc INTEGER NOT NULL) STRICT;
CREATE TABLE tail (id INTEGER PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL) STRICT;
CREATE TABLE incident (id INTEGER PRIMARY KEY,
  target INTEGER GENERATED ALWAYS AS (id >> 32) VIRTUAL, poll INTEGER GENERATED ALWAYS AS (id & 4294967295) VIRTUAL,
  at_ns INTEGER NOT NULL, outcome TEXT NOT NULL, status INTEGER NOT NULL, err TEXT NOT NULL,
  lines INTEGER NOT NULL, drops TEXT, warnings TEXT, crc INTEGER NOT NULL) STRICT;
CREATE TABLE body (id INTEGER PRIMARY KEY,
  target INTEGER GENERATED ALWAYS AS (id >> 32) VIRTUAL, poll INTEGER GENERATED ALWAYS AS (id & 4294967295) VIRTUAL,
  bytes INTEGER NOT NULL, zstd BLOB NOT NULL, crc INTEGER NOT NULL) STRICT;
CREATE TABLE observation (target INTEGER NOT NULL, poll INTEGER NOT NULL, n INTEGER NOT NULL, line INTEGER NOT NULL,
  series INTEGER NOT NULL, at_ns INTEGER NOT NULL, value REAL NOT NULL, request TEXT, crc INTEGER NOT NULL,
  PRIMARY KEY (target, poll, n)) STRICT, WITHOUT ROWID;
CREATE TABLE exemplar (id INTEGER PRIMARY KEY,
  target INTEGER GENERATED ALWAYS AS (id >> 32) VIRTUAL, slot INTEGER GENERATED ALWAYS AS (id & 4294967295) VIRTUAL,
  seen_ns INTEGER NOT NULL, at_ns INTEGER NOT NULL, value REAL NOT NULL, labels ANY NOT NULL,
  crc INTEGER NOT NULL) STRICT;
CREATE TABLE target_labels (target INTEGER PRIMARY KEY, labels ANY NOT NULL, crc INTEGER NOT NULL) STRICT;
CREATE TABLE life (id INTEGER PRIMARY KEY, target INTEGER NOT NULL, at_ns INTEGER NOT NULL,
  gone INTEGER NOT NULL, reason TEXT NOT NULL, crc INTEGER NOT NULL) STRICT;
CREATE TABLE mark (id INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, name TEXT NOT NULL, own INTEGER NOT NULL,
  kind TEXT NOT NULL DEFAULT '', crc INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE warning (id INTEGER PRIMARY KEY, code TEXT NOT NULL, text TEXT NOT NULL, crc INTEGER NOT NULL) STRICT;
CREATE TABLE clock_offset (id INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, offset_ns INTEGER NOT NULL,
  uncertainty_ns INTEGER NOT NULL, crc INTEGER NOT NULL) STRICT;
CREATE TABLE dictionary (id INTEGER PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL) STRICT;
CREATE VIEW named_series AS
  SELECT s.target, s.series, f.name AS family, f.type, f.unit, s.labels
  FROM series s JOIN family f ON f.id = s.target << 32 | s.family;
` + eventSchema

// key is the row of an index of a target.
func key(target, index int) int64 { return int64(target)<<32 | int64(index) }

// openExisting opens the recording in dir and checks that it is one of ours that this program can read.
func openExisting(ctx context.Context, dir, mode string, pragmas ...string) (*sql.DB, error) {
	path, err := filepath.Abs(filepath.Join(dir, FileName))
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no recording there (want a directory that scrapestat collect wrote)",
			filepath.Join(dir, FileName))
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a file", path)
	}
	if err := sqlitefile.CheckBeside(path); err != nil {
		return nil, err
	}
	if mode == "rw" { // what is added would be written over what SQLite leaves out
		h, err := holdDir(filepath.Dir(path), false)
		if err != nil {
			return nil, err
		}
		defer h.release()
		d, err := checkLog(dir)
		if err != nil {
			return nil, err
		}
		if d != nil && d.broken {
			return nil, fmt.Errorf("%s: %s: scrapestat repair makes a run of what can be read", path, d.text)
		}
	}
	db, err := sql.Open("sqlite", sqlitefile.DSN(path, mode, pragmas...))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := checkVersion(ctx, db); err != nil {
		if errors.Is(err, errForeign) && lacksLog(path) {
			err = errors.New("its log is missing, which has what was recorded: copy " + FileName + "* together")
		}
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), db.Close())
	}
	// SQLite opens the log by its name, after the database: those of two files do not go together.
	if now, err := os.Stat(path); mode == "rw" && (err != nil || !os.SameFile(info, now)) {
		return nil, errors.Join(fmt.Errorf("%s: it was removed or replaced while it was opened", path), err, db.Close())
	}
	return db, nil
}

// errForeign is why a database of somebody else is refused.
var errForeign = errors.New("not a recording of scrapestat")

// lacksLog reports whether the head of a database tells of a log which is not there.
func lacksLog(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 20)
	_, err = io.ReadFull(f, head)
	return err == nil && head[18] == 2 && !holds(filepath.Dir(path), FileName+"-wal")
}

// checkVersion refuses what is no recording and what a newer program wrote.
func checkVersion(ctx context.Context, db *sql.DB) error {
	var id, version int64
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return err
	}
	if id != applicationID {
		return errForeign
	}
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > SchemaVersion {
		return newerError(version)
	}
	if version < 1 {
		return fmt.Errorf("schema %d: the recording was never completed", version)
	}
	return checkObjects(ctx, db)
}

func newerError(version int64) error {
	return fmt.Errorf("written by a newer scrapestat (schema %d, this program reads up to %d): update scrapestat", version,
		SchemaVersion)
}

// checkObjects refuses a file whose schema would do something else than hold rows.
func checkObjects(ctx context.Context, db *sql.DB) error {
	return sqlitefile.CheckObjects(ctx, db, "recording", func(name string) ([]string, bool) {
		t, ours := tableOf(name)
		return strings.Split(t.columns, ", "), ours
	})
}
