package rundb_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// TestDocumentedQueries runs every query of docs/data/rundb.md.
func TestDocumentedQueries(t *testing.T) {
	page, err := os.ReadFile("../docs/data/rundb.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w := create(t, dir, 1, rundb.WriterOptions{})
	for _, s := range tape(0, 3, false) {
		if s.Seq == 2 {
			s.Outcome, s.Err = metric.Partial, "1 line dropped"
			s.Observations = []metric.Observation{{AtNS: 1, Value: 2, Requests: []string{"id"}}}
		}
		if err := w.Record(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, rundb.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	queries := regexp.MustCompile("(?s)```sql[^\n]*\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(queries) < 5 {
		t.Errorf("found %d queries", len(queries))
	}
	for _, q := range queries {
		rows, err := db.Query(q[1])
		if err != nil {
			t.Errorf("%s%v", q[1], err)
			continue
		}
		n := 0
		for rows.Next() {
			n++
		}
		if err := rows.Err(); err != nil || n == 0 && q[1][:6] == "SELECT" {
			t.Errorf("%sgot %d rows, %v", q[1], n, err)
		}
		rows.Close()
	}
	db.Close()
	if marks := open(t, dir).Marks(); len(marks) != 1 || marks[0].AtNS < 1_700_000_000_000_000_000 {
		t.Errorf("the mark set by hand: %v", marks)
	}
}

// documentedTable is a row of the tables of docs/data/rundb.md: a name, what a row is,
// its columns.
var documentedTable = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([^|]*) \\| ([^|]*) \\|$")

// TestDocumentedSchema holds the tables of docs/data/rundb.md against those of a
// recording: all of either side are on the other, with their columns.
func TestDocumentedSchema(t *testing.T) {
	page, err := os.ReadFile("../docs/data/rundb.md")
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(page), "\n## Slots")
	documented := map[string][]string{}
	for _, row := range documentedTable.FindAllStringSubmatch(text, -1) {
		for _, word := range regexp.MustCompile("`([a-z_0-9]+)`").FindAllStringSubmatch(row[3], -1) {
			documented[row[1]] = append(documented[row[1]], word[1])
		}
	}
	dir := t.TempDir()
	if err := create(t, dir, 1, rundb.WriterOptions{}).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := openEvents(t, dir, rundb.EventWriterOptions{Source: "s"})
	if _, err := w.AddSource(t.Context(), metric.ServerSource{}); err != nil { // makes the tables
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, rundb.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	have := schemaOf(t, db)
	for table, columns := range have {
		words, ok := documented[table]
		if !ok {
			t.Errorf("docs/data/rundb.md has no row of table %s", table)
		}
		for _, c := range columns {
			// The key, and what is computed from it, are explained above the tables.
			explained := []string{"id", "target", "family", "series", "slot", "poll", "crc"}
			if !slices.Contains(words, c) && !slices.Contains(explained, c) {
				t.Errorf("docs/data/rundb.md does not name column %s of table %s", c, table)
			}
		}
	}
	for table, words := range documented {
		columns, ok := have[table]
		if !ok {
			t.Errorf("docs/data/rundb.md has a table %s, which a recording has not", table)
		}
		for _, word := range words {
			if !slices.Contains(columns, word) && !slices.Contains(documentedValues(t, db, table), word) {
				t.Errorf("docs/data/rundb.md names a column %s of table %s, which it has not", word, table)
			}
		}
	}
}

// schemaOf lists the tables and views of a database with their columns.
func schemaOf(t *testing.T, db *sql.DB) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	rows, err := db.Query("SELECT m.name, c.name FROM sqlite_master m, pragma_table_xinfo(m.name) c WHERE m.type IN " +
		"('table', 'view')")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		out[table] = append(out[table], column)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// documentedValues are words that the page has beside columns: keys of meta, which
// must be there, the words of a status, and labels that series are kept without.
func documentedValues(t *testing.T, db *sql.DB, table string) []string {
	t.Helper()
	switch table {
	case "requests":
		return []string{"ok", "failed", "in_flight"}
	case "server_source":
		return []string{"unix", "monotonic", "none"}
	case "family":
		return []string{"_total", "_info"}
	case "mark":
		return []string{"polled", "warmup", "profiling"}
	case "series":
		return []string{"le", "quantile"}
	case "meta":
		var keys []string
		rows, err := db.Query("SELECT key FROM meta")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var key string
			if err := rows.Scan(&key); err != nil {
				t.Fatal(err)
			}
			keys = append(keys, key)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return keys
	}
	return nil
}
