package faults_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/badserver"
	"github.com/scrapestat/scrapestat/scrape"
)

// TestCatalogueFormats has the cases D12, E03, E04 and X08 as far as they need no
// program of their own.
func TestCatalogueFormats(t *testing.T) {
	t.Run("E03 all formats", func(t *testing.T) {
		// A value that only an exact writer keeps, and that CSV rounds to four decimals.
		const exact = 0.1234567890123456789
		s := playText(t, fmt.Sprintf("# TYPE g gauge\ng %v\n", exact), fmt.Sprintf("# TYPE g gauge\ng %v\n", exact))
		for _, format := range []string{"json", "jsonl"} {
			if !slices.Contains(s.numbers(format), exact) {
				t.Errorf("%s does not have the number, bit by bit", format)
			}
		}
		if !slices.ContainsFunc(s.texts("parquet"), func(v string) bool {
			f,
				err := strconv.ParseFloat(v, 64)
			return err == nil && f == exact
		}) {
			t.Error("parquet does not have the number, bit by bit")
		}
		if !slices.Contains(s.texts("csv"), "0.1235") {
			t.Error("csv does not have the number as AIPerf rounds it")
		}
	})
	t.Run("E04 separators", func(t *testing.T) {
		hostile := "a,b\n\"c\""
		s := playText(t, "g{x="+strconv.Quote(hostile)+"} 1\n", "g{x="+strconv.Quote(hostile)+"} 1\n")
		s.has(hostile)
	})
	t.Run("X08 one line", func(t *testing.T) {
		s := play(t, badserver.Steps(false, badserver.Answer{Status: 500,
			Body: []byte("one\ntwo\r\n\x1b[2J\x1b]0;title\x07three")}), 2, scrape.Options{})
		for _, p := range s.polls[0] {
			if strings.ContainsAny(p.Err, "\n\r\x1b\x07") || !strings.Contains(p.Err, "one") {
				t.Errorf("error %q is not one clean line", p.Err)
			}
		}
	})
	t.Run("D12 a day with faults", day)
}

// numbers returns every number of a JSON export.
func (s *scene) numbers(format string) (out []float64) {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, "server_metrics_export."+format))
	if err != nil {
		s.t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(data))); ; {
		token, err := d.Token()
		if err != nil {
			return out
		}
		if f, ok := token.(float64); ok {
			out = append(out, f)
		}
	}
}
