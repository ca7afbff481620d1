package faults_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/faults"
)

// TestTextsInside has a text in a comment, which only the kept body of the recording
// has, and one in many labels, which Parquet compresses. No search of the bytes finds
// them there; rule 6 does.
func TestTextsInside(t *testing.T) {
	const remark, label = "between-the-lines-4a1c", "in-a-label-93d0"
	var body strings.Builder
	for i := range 300 {
		fmt.Fprintf(&body, "# the remark of line %d\na{i=\"%d\",l=\"the label %d\"} %d\n", i, i, i, i)
	}
	text := strings.Replace(body.String(), "remark of line 170", remark, 1)
	text = strings.Replace(text, "label 170", label, 1)
	s := playText(t, text, text)
	err := fmt.Sprint(faults.Check(t.Context(), faults.Evidence{Dir: s.dir, Formats: written(),
		Secrets: []string{remark, label}}))
	check := func(file, secret, where string) {
		t.Helper()
		data, readErr := os.ReadFile(filepath.Join(s.dir, file))
		if readErr != nil {
			t.Fatal(readErr)
		}
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("%s has %q in its bytes: the test shows nothing", file, secret)
		}
		if want := file + where; !strings.Contains(err, want) {
			t.Errorf("%q was not found in %s: %s", secret, want, err)
		}
	}
	check("run.db", remark, ", table body, compressed holds secret 0")
	check("server_metrics_export.parquet", label, ", column [l] holds secret 1")
}
