package rehelp_test

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/units"
)

// TestNoForeignHelp holds all captured files to neutral help texts: there is
// nothing in them to be rewritten.
func TestNoForeignHelp(t *testing.T) {
	texts := 0
	root := testkit.Path(t, "")
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch {
		case d.Name() == "run.db":
			texts += unchangedRows(t, path)
		case bytes.Contains(body, []byte("# HELP ")):
			checkUnchanged(t, path, body, rewriteBody)
			texts += bytes.Count(body, []byte("# HELP "))
		case bytes.Contains(body, []byte(`"description": "`)):
			checkUnchanged(t, path, body, rewriteExport)
			texts += bytes.Count(body, []byte(`"description": "`))
		}
		return nil
	})
	if err != nil || texts < 2000 {
		t.Errorf("read %d texts: %v", texts, err)
	}
}

func checkUnchanged(t *testing.T, path string, body []byte, rewrite func([]byte) ([]byte, error)) {
	t.Helper()
	if made, err := rewrite(body); err != nil || !bytes.Equal(made, body) {
		t.Errorf("%s has help texts of others: see internal/rehelp; %v", path, err)
	}
}

// unchangedRows checks a recording and returns how many families it has.
func unchangedRows(t *testing.T, path string) (families int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?immutable=1")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if made, err := neutralRows(db); err != nil || len(made) > 0 {
		t.Errorf("%s has help texts of others: see internal/rehelp; %v, %v", path, made, err)
	}
	if err := db.QueryRow("SELECT count(*) FROM family").Scan(&families); err != nil {
		t.Fatal(err)
	}
	return families
}

func TestRewriteBody(t *testing.T) {
	const body = "# HELP a_seconds How long it took, in seconds.\n# TYPE a_seconds gauge\na_seconds 1\n" +
		"# HELP b Used (0-1)\r\nb 1\n# HELP c\n# TYPE c counter\nc_total 1"
	const want = "# HELP a_seconds gauge a seconds, in seconds\n# TYPE a_seconds gauge\na_seconds 1\n" +
		"# HELP b family b, (0-1)\r\nb 1\n# HELP c\n# TYPE c counter\nc_total 1"
	if made, err := rewriteBody([]byte(body)); err != nil || string(made) != want {
		t.Errorf("got %q, %v", made, err)
	}
	// A unit that would get lost is an error.
	if _, err := rewriteBody([]byte("# HELP d ratio of\n# HELP d Ratio of two, as it were\nd 1\n")); err == nil {
		t.Error("a lost unit is not noticed")
	}
}

func TestRewriteExport(t *testing.T) {
	const text = `{
  "metrics": {
    "a<b": {
      "description": "Time taken in ms.",
      "type": "gauge",
      "values": [
        1.50,
        1e400
      ]
    }
  }
}`
	made, err := rewriteExport([]byte(text))
	if want := strings.Replace(text, "Time taken in ms.", "gauge a<b, in ms", 1); err != nil || string(made) != want {
		t.Errorf("got %s, %v", made, err)
	}
}

// TestUnitsStay compares the units that are inferred from texts with those from what
// stands for them.
func TestUnitsStay(t *testing.T) {
	for _, help := range []string{"Memory (in MiB).", "Load from 0 to 100 %", "1 means 100 percent", "Rate in GB/s",
		"Held (microseconds)", "Torchserve prometheus gauge metric with unit: Percent", "Share [0.0 - 1.0]",
		"Nothing at all"} {
		made, err := neutral("x", "gauge", help)
		if err != nil || units.Infer("x", made) != units.Infer("x", help) {
			t.Errorf("%q becomes %q: %v", help, made, err)
		}
		if again, err := neutral("x", "gauge", made); err != nil || again != made {
			t.Errorf("%q becomes %q, then %q: %v", help, made, again, err)
		}
	}
}
