package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/testkit"
)

// The tests of this file are the rows on AIPerf of the table of acceptance of the design document windows.md, section
// 9.

// importPhases imports the lines of the vector with two warm-ups and two profiling phases.
func importPhases(t *testing.T) string {
	t.Helper()
	var v struct {
		Phases struct{ Lines []json.RawMessage } `json:"aiperf_phases"`
	}
	if err := json.Unmarshal(testkit.Data(t, "vectors/windows.json"), &v); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, run := filepath.Join(dir, "server_metrics_export.jsonl"), filepath.Join(dir, "run")
	if err := os.WriteFile(file, append(bytes.Join(rawLines(v.Phases.Lines), []byte("\n")), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	said(t, exitDone, "import", "aiperf-jsonl", file, "--counters", "tokens", "-o", run, "-q")
	return run
}

func rawLines(lines []json.RawMessage) (out [][]byte) {
	for _, l := range lines {
		out = append(out, l)
	}
	return out
}

// tokensOf is what an export of a run says of the tokens: AIPerf's part, ours, and the warm-up's.
func tokensOf(t *testing.T, run string, args ...string) (aiperf, ours, warmup float64) {
	t.Helper()
	dir := t.TempDir()
	said(t, exitDone, append([]string{"export", run, "--formats", "json", "-o", dir, "-q"}, args...)...)
	text, err := os.ReadFile(filepath.Join(dir, "server_metrics_export.json"))
	if err != nil {
		t.Fatal(err)
	}
	type metrics map[string]struct {
		Series []struct{ Stats map[string]float64 }
	}
	var doc struct {
		Metrics, Warmup metrics
		WarmupMetrics   metrics `json:"warmup_metrics"`
		Scrapestat      struct {
			Series []struct {
				Metric   string
				Increase *struct{ Value float64 }
			}
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	const name = "vllm:generation_tokens"
	aiperf = doc.Metrics[name].Series[0].Stats["total"]
	ours = aiperf
	for _, s := range doc.Scrapestat.Series {
		if s.Metric == name && s.Increase != nil {
			ours = s.Increase.Value
		}
	}
	if m, ok := doc.WarmupMetrics[name]; ok {
		warmup = m.Series[0].Stats["total"]
	}
	return aiperf, ours, warmup
}

// Row 10: named phases. A second warm-up is no part of our numbers, and is of AIPerf's own as in AIPerf.
func TestAIPerfPhases(t *testing.T) {
	run := importPhases(t)
	if aiperf, ours, warmup := tokensOf(t, run); aiperf != 70_000 || ours != 60_000 || warmup != 14_000 {
		t.Errorf("row 10: AIPerf's part %v, ours %v, warm-up %v", aiperf, ours, warmup)
	}
	for phase, want := range map[string]float64{"warmup": 4_000, "low": 20_000, "rewarm": 10_000, "high": 40_000} {
		if aiperf, ours, _ := tokensOf(t, run+"@"+phase); aiperf != want || ours != want {
			t.Errorf("row 10: phase %s: AIPerf's part %v, ours %v, want %v", phase, aiperf, ours, want)
		}
	}
}

// Row 11: AIPerf's files of phases by their list.
func TestAIPerfPhaseFiles(t *testing.T) {
	list := testkit.Path(t, "runs/aiperf-0.13.0-phases/phase_manifest.json")
	text := said(t, exitDone, "compare", "a="+list+"@warmup", "b="+list+"@profiling", "--all", "--metric",
		"dynamo_frontend_requests$")
	for _, want := range []string{"0.213 s   1.92 s", "different_windows"} {
		if !strings.Contains(text, want) {
			t.Errorf("row 11: no %q in\n%s", want, text)
		}
	}
	for phase, requests := range map[string]string{"warmup": "6", "profiling": "116"} {
		said(t, exitDone, "check", list+"@"+phase, "--assert",
			`dynamo_frontend_requests{request_type="stream"} total >= `+requests, "--assert",
			`dynamo_frontend_requests{request_type="stream"} total <= `+requests)
	}
	for name, doc := range map[string]string{
		"schema is 2":         `{"schema_version":2,"phases":[]}`,
		"not beneath":         `{"schema_version":1,"phases":[{"phase_name":"p","server_metrics_json":"../x.json"}]}`,
		"escapes from":        `{"schema_version":1,"phases":[{"phase_name":"p","server_metrics_json":"out/x.json"}]}`,
		"file of phase \"p\"": `{"schema_version":1,"phases":[{"phase_name":"p"}]}`,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "phase_manifest.json")
		if err := os.WriteFile(path, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/tmp", filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
		if text := said(t, exitFailed, "compare", "a="+path+"@p", "b="+list+"@warmup"); !strings.Contains(text, name) {
			t.Errorf("row 11: %s: %s", name, text)
		}
	}
	said(t, exitUsage, "compare", "a="+list, "b="+list+"@warmup")
	said(t, exitUsage, "compare", "a="+list+"@nope", "b="+list+"@warmup")
}

// Phases go out as AIPerf has them, and come back: by lines of JSONL and by files of phases.
func TestAIPerfPhasesAgain(t *testing.T) {
	run, dir := importPhases(t), t.TempDir()
	said(t, exitDone, "export", run, "--formats", "json,jsonl", "--phases", "-o", dir, "-q")
	again := filepath.Join(dir, "again")
	said(t, exitDone, "import", "aiperf-jsonl", filepath.Join(dir, "server_metrics_export.jsonl"), "-o", again, "-q")
	if aiperf, ours, warmup := tokensOf(t, again); aiperf != 70_000 || ours != 60_000 || warmup != 14_000 {
		t.Errorf("AIPerf's part %v, ours %v, warm-up %v", aiperf, ours, warmup)
	}
	list := filepath.Join(dir, "phase_manifest.json")
	for phase, want := range map[string]string{"warmup": "4000", "low": "20000", "rewarm": "10000", "high": "40000"} {
		said(t, exitDone, "check", list+"@"+phase, "--assert", "vllm:generation_tokens total >= "+want, "--assert",
			"vllm:generation_tokens total <= "+want)
	}
}
