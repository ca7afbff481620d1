package interop_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestAIPerfPhases imports AIPerf's lines of two warm-ups and two phases that measured, and has AIPerf's own models
// load what we export of them.
func TestAIPerfPhases(t *testing.T) {
	interpreter := python(t)
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "vectors", "windows.json"))
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Phases struct{ Lines []json.RawMessage } `json:"aiperf_phases"`
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	for _, l := range v.Phases.Lines {
		if err := json.Compact(&lines, l); err != nil {
			t.Fatal(err)
		}
		lines.WriteByte('\n')
	}
	b := &beside{scrapestat: filepath.Join(tool(t), "scrapestat"), dir: t.TempDir()}
	file, imported := filepath.Join(b.dir, "server_metrics_export.jsonl"), filepath.Join(b.dir, "run")
	if err := os.WriteFile(file, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	b.exec(t, b.scrapestat, "import", "aiperf-jsonl", file, "--counters", "tokens", "-o", imported, "--quiet")
	out := filepath.Join(b.dir, "out")
	b.exec(t, b.scrapestat, "export", imported, "--formats", "json,jsonl", "--phases", "-o", out, "--quiet")
	run(t, interpreter, []check{{"phases", "aiperf_phases", out, ""}})
}
