package faults_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// texts returns every text of an export as an independent reader has it.
func (s *scene) texts(format string) []string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, "server_metrics_export."+format))
	if err != nil {
		s.t.Fatal(err)
	}
	switch format {
	case "json", "jsonl":
		return jsonTexts(s.t, data)
	case "csv":
		return csvTexts(s.t, data)
	}
	return parquetTexts(s.t, data)
}

func jsonTexts(t *testing.T, data []byte) (out []string) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(string); ok {
			out = append(out, text)
		}
	}
}

func csvTexts(t *testing.T, data []byte) (out []string) {
	t.Helper()
	r := csv.NewReader(bytes.NewReader(data))
	r.FieldsPerRecord, r.Comment = -1, '#'
	records, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range records {
		out = append(out, record...)
	}
	return out
}

func parquetTexts(t *testing.T, data []byte) (out []string) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range f.RowGroups() {
		rows := group.Rows()
		buf := make([]parquet.Row, 16)
		for {
			n, err := rows.ReadRows(buf)
			for _, row := range buf[:n] {
				for _, v := range row {
					out = append(out, v.Clone().String())
				}
			}
			if err != nil {
				break
			}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// hostileLabels reads each label value back from every format. At the default
// limit the one of 64 KiB is refused and named.
func hostileLabels(t *testing.T) {
	want := []string{"}", ",=", "q\"b\\n\n", "nul\x00", "\U0001F600\u202e"}
	long := strings.Repeat("z", 65536)
	s := playCase(t, "P15", 2, scrape.Options{})
	s.dropped("value_limit", 2, "--max-value-length")
	s.outcomes("--max-value-length", all(metric.Partial, 2)...)
	s.has(want...)
	s = playCase(t, "P15", 2, scrape.Options{Limits: scrape.Limits{ValueLength: 65536}})
	s.outcomes("", all(metric.OK, 2)...)
	s.has(append(want, long)...)
}

// has checks that each format has these texts, exactly.
func (s *scene) has(want ...string) {
	s.t.Helper()
	for _, format := range written() {
		got := s.texts(format)
		for _, text := range want {
			if !slices.Contains(got, text) {
				s.t.Errorf("%s has no %.60q", format, text)
			}
		}
	}
}
