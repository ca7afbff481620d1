package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scrapestat/scrapestat/simulate"
)

// TestImportOwnJSONL collects from two engines and imports the JSONL export: the
// statistics of all families, their series and slices must be those of the run.
func TestImportOwnJSONL(t *testing.T) {
	args := []string{"collect"}
	for _, profile := range []string{"vllm", "vllm-omni"} {
		sim, err := simulate.New(profile, simulate.Options{Rate: 60, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		srv := httptest.NewServer(sim)
		defer srv.Close()
		args = append(args, srv.URL)
	}
	run1, run2 := t.TempDir(), t.TempDir()
	args = append(args, "-o", run1, "--duration", "1500ms", "--warmup", "300ms", "--settle", "0s", "--interval", "100ms",
		"--max-scrape-share", "0", "--slice-duration", "300ms", "--formats", "json,jsonl", "--quiet")
	runOK(t, args...)
	runOK(t, "import", "aiperf-jsonl", run1+"/server_metrics_export.jsonl", "-o", run2, "--slice-duration", "300ms", "--quiet")
	runOK(t, "export", run2, "--formats", "json", "--quiet")
	first, second := metricsOf(t, run1), metricsOf(t, run2)
	if len(first) < 40 {
		t.Fatalf("only %d families were exported", len(first))
	}
	for name, family := range first {
		if diff := cmp.Diff(family, second[name]); diff != "" {
			t.Errorf("%s: the imported run differs (-collected +imported):\n%.2000s", name, diff)
		}
	}
}

func runOK(t *testing.T, args ...string) {
	t.Helper()
	var out, talk bytes.Buffer
	if code := run(context.Background(), args, stdio{nil, &out, &talk}); code != exitDone {
		t.Fatalf("%v: exit code %d\n%s", args, code, talk.String())
	}
}

// metricsOf reads the metrics of a JSON export, less the families that JSONL
// leaves out.
func metricsOf(t *testing.T, dir string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(dir + "/server_metrics_export.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Metrics map[string]any `json:"metrics"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for name := range doc.Metrics {
		if len(name) > 5 && name[len(name)-5:] == "_info" {
			delete(doc.Metrics, name)
		}
	}
	return doc.Metrics
}
