package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/events/join"
	"github.com/scrapestat/scrapestat/internal/simulate"
)

// TestJoinTorchServeLog joins the metric logs of a simulated TorchServe with clients
// that wait 2 ms before and 3 ms after the server: request by request by the ids of
// the log, and over the window.
func TestJoinTorchServeLog(t *testing.T) {
	dir := t.TempDir()
	logs, run := filepath.Join(dir, "logs"), filepath.Join(dir, "run")
	if err := os.Mkdir(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	files := simulate.NewMetricLogs(logs, 0)
	now := time.Unix(1_800_000_000, 0)
	server, err := simulate.New("torchserve", simulate.Options{Now: func() time.Time { return now }, Rate: 20, Seed: 4,
		KeepTruth:  true,
		ErrorShare: -1, AbortShare: -1, MetricLog: files.Write,
		Load: []simulate.LoadStep{{Rate: 20}, {At: 20 * time.Second}}})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(30 * time.Second)
	server.Advance()
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	truth := server.Truth()
	var lines strings.Builder
	want, n := 0.0, len(truth.Requests)
	for _, r := range truth.Requests {
		at := func(d time.Duration) int64 { return truth.Origin.Add(d).UnixNano() }
		// The log says how long the worker had the batch, in hundredths of a millisecond.
		want += (r.Last - r.Arrival + 5*time.Millisecond).Seconds() - math.Round(float64(r.Last-r.Scheduled)/1e4)/1e5
		fmt.Fprintf(&lines, `{"id":"c%d","x_request_id":"00000000-0000-4000-8000-%012x","issued_ns":%d,"complete_ns":%d,`+
			`"status":"ok"}`+"\n",
			r.ID, r.ID, at(r.Arrival-2*time.Millisecond), at(r.Last+3*time.Millisecond))
	}
	var out, talk bytes.Buffer
	scrapestat := func(args ...string) {
		t.Helper()
		out.Reset()
		if code := command(t, args, &out, &talk); code != exitDone {
			t.Fatalf("%q: exit code %d\n%s", args, code, talk.String())
		}
	}
	scrapestat("import", "torchserve-log", logs, "-o", run)
	scrapestat("requests", "record", "--run", run, writeFile(t, dir, lines.String()))
	scrapestat("requests", "join", run, "--json")
	var r join.Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	// The last client ends after the last line of the log.
	if r.Engine != "torchserve" || r.E2E.Client.Count != n-1 || !r.E2E.Agree ||
		!(math.Abs(deref(r.E2E.Overhead)-5e-3) < 1e-5) {
		t.Errorf("%d requests, E2E %+v, overhead %v", n, r.E2E, deref(r.E2E.Overhead))
	}
	found := false
	for _, m := range r.Matched {
		if m.Family != "PredictionTime" {
			continue
		}
		found = true
		if m.Requests != n || m.Logged != n || m.Overhead == nil || math.Abs(*m.Overhead-want/float64(n)) > 1e-5 {
			t.Errorf("by id: %+v, overhead %v, want %v of %d", m, deref(m.Overhead), want/float64(n), n)
		}
	}
	if !found || n < 100 {
		t.Errorf("%d requests, matched %+v", n, r.Matched)
	}
}

func deref(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

func command(t *testing.T, args []string, out, talk *bytes.Buffer) int {
	return run(t.Context(), args, stdio{in: strings.NewReader(""), out: out, err: talk})
}

func writeFile(t *testing.T, dir, text string) string {
	t.Helper()
	path := filepath.Join(dir, "requests.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
