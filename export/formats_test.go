package export_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/summary"
)

// TestOneHomeOfFormats is the trial of a new format on paper: it needs a file and
// a line of the registry, as no other file enumerates the formats or their files.
func TestOneHomeOfFormats(t *testing.T) {
	jsonl, parquet := regexp.MustCompile(`"(server_metrics_\w+\.)?jsonl"`),
		regexp.MustCompile(`"(server_metrics_\w+\.)?parquet"`)
	var enumerate []string
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := fs.ReadFile(root, path)
		if err == nil && jsonl.Match(src) && parquet.Match(src) && !strings.HasPrefix(path, "bench/") {
			enumerate = append(enumerate, path)
		}
		return err
	})
	if err != nil || !slices.Equal(enumerate, []string{
		"cmd/scrapestat/requests_export.go", // of rows of another kind
		"export/formats.go"}) {
		t.Errorf("formats are enumerated in %v, %v", enumerate, err)
	}
}

func TestLookup(t *testing.T) {
	derived := &summary.Run{Derived: make([]summary.Derived, 1)}
	tidy := export.Options{ParquetLayout: export.LayoutTidy}
	for _, test := range []struct {
		name    string
		run     *summary.Run
		options export.Options
		files   string
		samples bool
	}{
		{"csv", derived, tidy, "server_metrics_export.csv", false},
		{"jsonl", derived, tidy, "server_metrics_export.jsonl", true},
		{"parquet", &summary.Run{}, export.Options{}, "server_metrics_export.parquet", true},
		{"parquet", &summary.Run{}, tidy, "server_metrics_tidy.parquet", true},
		{"parquet", derived, export.Options{}, "server_metrics_export.parquet derived.parquet", true},
		{"xml", derived, tidy, "", false},
	} {
		var files []string
		samples := false
		for _, f := range export.Lookup(test.name, test.run, test.options) {
			files, samples = append(files, f.File), samples || f.NeedsSamples
		}
		if strings.Join(files, " ") != test.files || samples != test.samples {
			t.Errorf("%s, %+v: got files %v, samples %v", test.name, test.options, files, samples)
		}
	}
	if all := export.Files(); !slices.Contains(all, "derived.parquet") || len(all) != 9 {
		t.Errorf("all files: %v", all)
	}
}
