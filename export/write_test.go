package export_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/summary"
)

func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	r, recs := runOfFake(t, golden(), summary.Options{})
	files, err := export.Write(context.Background(), dir, export.Formats(), r, recs, inUTC)
	if err != nil {
		t.Fatal(err)
	}
	var formats []string
	for _, f := range files {
		formats = append(formats, f.Format)
		data, err := os.ReadFile(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		if f.Size != int64(len(data)) || f.SHA256 != fmt.Sprintf("%x", sha256.Sum256(data)) ||
			f.Path != filepath.Join(dir, "server_metrics_export."+f.Format) && f.Path != filepath.Join(dir, "stats.parquet") &&
				f.Path != filepath.Join(dir, "scrapestat.pytorch.json") &&
				f.Path != filepath.Join(dir, "benchmark_report_v0.2.1.json") {
			t.Errorf("%+v does not describe its file of %d bytes", f, len(data))
		}
		if info, err := os.Stat(f.Path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", f.Path, info.Mode(), err)
		}
		if f.Format == "json" && string(data) != string(jsonOf(t, r, inUTC)) || f.Format == "csv" &&
			string(data) != string(csvOf(t, r)) ||
			f.Format == "jsonl" && string(data) != string(jsonlOf(t, r, recs)) {
			t.Errorf("%s has other bytes than its function", f.Path)
		}
	}
	if !slices.Equal(formats, export.Formats()) || len(namesIn(t, dir)) != 7 {
		t.Errorf("got formats %v, files %v", formats, namesIn(t, dir))
	}
}

func TestWriteTidy(t *testing.T) {
	dir := t.TempDir()
	r, recs := runOfFake(t, golden(), summary.Options{})
	files, err := export.Write(context.Background(), dir, []string{"parquet", "parquet"}, r, recs,
		export.Options{ParquetLayout: export.LayoutTidy, Unhashed: true})
	if err != nil || len(files) != 1 || files[0].SHA256 != "" || files[0].Format != "parquet" ||
		files[0].Path != filepath.Join(dir, "server_metrics_tidy.parquet") {
		t.Errorf("got %+v, %v", files, err)
	}
}

// TestWriteFailures checks that a format that fails takes no other with it,
// leaves nothing behind, and keeps the file of an earlier export.
func TestWriteFailures(t *testing.T) {
	dir := t.TempDir()
	r, recs := runOfFake(t, golden(), summary.Options{})
	old := filepath.Join(dir, "server_metrics_export.jsonl")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := []export.Recording{brokenRecording{recs[0].(*fakeRun)}}
	files, err := export.Write(context.Background(), dir, []string{"jsonl", "xml", "csv", "json", "csv"}, r, broken, inUTC)
	if len(files) != 2 || files[0].Format != "csv" || files[1].Format != "json" {
		t.Errorf("got files %+v", files)
	}
	if !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), old) ||
		!strings.Contains(err.Error(), `unknown format "xml" (known: [json csv jsonl parquet stats pytorch llm-d])`) {
		t.Errorf("got error %v", err)
	}
	if data, err := os.ReadFile(old); err != nil || string(data) != "old" {
		t.Errorf("the old file: %q, %v", data, err)
	}
	if names := namesIn(t, dir); len(names) != 3 {
		t.Errorf("left behind: %v", names)
	}
	missing := filepath.Join(dir, "missing")
	if files, err := export.Write(context.Background(), missing, []string{"json"}, r, recs, inUTC); len(files) != 0 ||
		err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("a folder that does not exist: got %v, %v", files, err)
	}
	if files, err := export.Write(context.Background(), dir, []string{"json"}, r, recs,
		export.Options{ParquetLayout: "x"}); files != nil || err == nil {
		t.Errorf("bad options: got %v, %v", files, err)
	}
}
