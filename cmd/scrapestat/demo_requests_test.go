package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/events/join"
)

// TestDemoRequests: load, proxy, server and collection in one process. Clients and
// server count the same requests, and clients wait longer than the server works.
func TestDemoRequests(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	var out, talk bytes.Buffer
	std := stdio{in: strings.NewReader(""), out: &out, err: &talk}
	if code := run(t.Context(), []string{"demo", "--requests", "--duration", "6s", "-o", dir}, std); code != exitDone {
		t.Fatalf("demo: exit code %d\n%s", code, talk.String())
	}
	out.Reset()
	if code := run(t.Context(), []string{"requests", "join", dir, "--json"}, std); code != exitDone {
		t.Fatalf("join: exit code %d\n%s", code, talk.String())
	}
	var r join.Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]join.Quantity{"TTFT": r.TTFT, "latency": r.E2E} {
		if q.Client.Count == 0 || !q.Agree || q.Overhead == nil || *q.Overhead <= 0 {
			t.Errorf("%s: %+v, want counts that agree and an overhead above 0\n%s", name, q, out.String())
		}
	}
	if r.Engine != "vllm" || len(r.Clocks) == 0 || r.Failed != 0 {
		t.Errorf("result %s", out.String())
	}
}
