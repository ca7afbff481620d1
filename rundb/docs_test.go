package rundb_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// TestDocumentedQueries runs every query of docs/rundb.md.
func TestDocumentedQueries(t *testing.T) {
	page, err := os.ReadFile("../docs/rundb.md")
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
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, rundb.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	queries := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1)
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
