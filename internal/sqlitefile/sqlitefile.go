// Package sqlitefile opens SQLite files that may come from anybody.
package sqlitefile

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
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
