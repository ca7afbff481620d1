package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestImportOwnJSONL records two engines and imports the JSONL export: the
// statistics of all families, their series and slices must be those of the run.
func TestImportOwnJSONL(t *testing.T) {
	t.Parallel()
	run1, run2 := t.TempDir()+"/run", t.TempDir()
	runOK(t, "simulate", "a=vllm,rate=60", "b=vllm-omni,rate=60", "--record", run1, "--duration", "1500ms",
		"--warmup", "300ms", "--interval", "100ms")
	runOK(t, "export", run1, "--formats", "json,jsonl", "--quiet") // the JSON has the types
	runOK(t, "import", "aiperf-jsonl", run1+"/server_metrics_export.jsonl", "-o", run2, "--slice-duration", "300ms",
		"--quiet")
	for _, run := range []string{run1, run2} { // what the load is depends on the command, which a JSONL file has not
		runOK(t, "export", run, "--formats", "json", "--window", "recording", "--slice-duration", "300ms", "--quiet")
	}
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

// TestImportCut: a compressed file that ends too early is imported as far as it
// goes, the exit code says so, and the run is a whole one.
func TestImportCut(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for i := range 20_000 {
		fmt.Fprintf(z, "a_total{x=\"%x\"} %d %d\n", i*7919, i, 1_700_000_000+i%100)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	file, dir := t.TempDir()+"/dump.gz", t.TempDir()
	for _, x := range []struct{ bytes, code int }{{packed.Len(), exitDone}, {packed.Len() / 2, exitFailed},
		{5, exitFailed}} {
		if err := os.WriteFile(file, packed.Bytes()[:x.bytes], 0o600); err != nil {
			t.Fatal(err)
		}
		var out, talk bytes.Buffer
		if code := run(context.Background(), []string{"import", "openmetrics", file, "-o", dir, "--force"},
			stdio{nil, &out, &talk}); code != x.code {
			t.Errorf("%d of %d bytes: exit code %d, want %d\n%s", x.bytes, packed.Len(), code, x.code, talk.String())
		}
		if x.bytes > 5 {
			runOK(t, "show", dir)
			if n := len(pollsOf(t, dir, 0)); n != 100 {
				t.Errorf("%d of %d bytes: %d polls, want 100", x.bytes, packed.Len(), n)
			}
		}
	}
}
