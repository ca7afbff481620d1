// Package sqlitefile opens SQLite files that may come from anybody.
package sqlitefile

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"modernc.org/sqlite" // the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// DSN is the connection string of a database file. The driver runs its pragmas
// on each new connection, in an order of its own.
func DSN(path, mode string, pragmas ...string) string {
	q := url.Values{"mode": {mode}, "_pragma": append([]string{"busy_timeout(5000)"}, pragmas...)}
	if mode == "immutable" {
		q["mode"], q["immutable"] = []string{"ro"}, []string{"1"}
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}).String()
}

// Each calls scan at each row of a query, until it fails.
func Each(ctx context.Context, db *sql.DB, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Limit bounds the texts and blobs of a database that has one connection, those that a query makes too.
func Limit(ctx context.Context, db *sql.DB, bytes int) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	_, err = sqlite.Limit(c, sqlite3.SQLITE_LIMIT_LENGTH, bytes)
	return errors.Join(err, c.Close())
}

// OpenFile opens a file to be read. It refuses what is none: a FIFO would hold up whoever opens it.
func OpenFile(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a file", path)
	}
	if err != nil {
		return nil, err
	}
	return os.Open(filepath.Clean(path))
}

// superMark ends a journal that names another one. SQLite may remove what is
// named; none of ours has it, as ours are of one file.
var superMark = []byte{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7}

// CheckBeside refuses what lies beside the database at path and is not what SQLite makes there for one file.
func CheckBeside(path string) error {
	for _, name := range []string{path + "-wal", path + "-shm", path + "-journal"} {
		f, err := OpenFile(name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return err
		}
		end := make([]byte, len(superMark))
		if size, err := f.Seek(0, io.SeekEnd); err == nil && size >= int64(len(end)) {
			_, _ = f.ReadAt(end, size-int64(len(end))) // what cannot be read SQLite cannot read either
		}
		f.Close()
		if strings.HasSuffix(name, "-journal") && bytes.Equal(end, superMark) {
			return fmt.Errorf("%s: names another journal: not one of scrapestat", name)
		}
	}
	return nil
}

// maxObjects is how many tables, views and indexes a file may have; a run.db has 27.
const maxObjects = 500

// CheckObjects refuses a file whose schema would have SQLite do something else than read and write rows: what is
// called as a table of ours is one, with columns that are stored, and nothing happens on a change. columns returns the
// columns of a table of ours; what names the file in the error.
func CheckObjects(ctx context.Context, db *sql.DB, what string,
	columns func(table string) (list []string, ours bool)) error {
	const query = `SELECT m.type, m.name, substr(coalesce(m.sql, ''), 1, 100), coalesce(c.name, '') FROM
		(SELECT type, name, sql FROM sqlite_schema LIMIT ?) m LEFT JOIN pragma_table_xinfo(m.name) c
		ON m.type = 'table' AND c.hidden > 0`
	seen := map[string]bool{}
	return Each(ctx, db, func(rows *sql.Rows) error {
		var kind, name, text, column string
		if err := rows.Scan(&kind, &name, &text, &column); err != nil {
			return err
		}
		seen[kind+" "+name] = true
		list, ours := columns(name)
		fault := ""
		switch {
		case len(seen) > maxObjects:
			fault = fmt.Sprintf("more than %d tables and views", maxObjects)
		case kind == "trigger":
			fault = "it has a trigger, " + name
		case ours && kind != "table" && kind != "index":
			fault = fmt.Sprintf("%s is a %s and no table", name, kind)
		case kind == "table" && strings.Contains(strings.ToUpper(text), "VIRTUAL TABLE"):
			fault = name + " is a virtual table"
		case column != "" && (!ours || slices.Contains(list, column)):
			fault = fmt.Sprintf("column %s of table %s is generated", column, name)
		default:
			return nil
		}
		return fmt.Errorf("%s: not a %s that scrapestat made", fault, what)
	}, query, maxObjects+1)
}
