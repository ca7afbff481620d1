package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/rundb"
)

// TestMarkFrom is S14: the phases of load generators' files become those of a recording, which sweep reads; a file
// whose times lie outside, or that has no zone, is refused with both ranges and leaves no mark.
func TestMarkFrom(t *testing.T) {
	t.Parallel()
	dir := sweptRun(t, filepath.Join(t.TempDir(), "r"), "--warmup", "10s", "--duration", "3m", "--seed", "5",
		"vllm,rate=4,rate@100s=8")
	r, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	origin := r.Meta().OriginNS
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	at := func(seconds int) time.Time {
		return time.Unix(0, origin).Add(time.Duration(seconds) * time.Second).UTC()
	}
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mark := func(want int, args ...string) string {
		t.Helper()
		var said bytes.Buffer
		if code := run(t.Context(), append([]string{"mark", dir}, args...), stdio{nil, &said, &said}); code != want {
			t.Errorf("%v: exit %d\n%s", args, code, said.String())
		}
		return said.String()
	}
	local := func(seconds int) string { return at(seconds).Add(2 * time.Hour).Format("2006-01-02T15:04:05.000000") }
	aiperf := file("profile_export_aiperf.json", fmt.Sprintf(`{"start_time": %q, "end_time": %q,
		"input_config": {"phases": [{"kind": "profiling", "rate": 4}]}}`, local(15), local(90)))
	if said := mark(exitUsage, "--from", aiperf, "--zone", "Z"); !strings.Contains(said, "outside the recording") ||
		strings.Count(said, "from ") < 2 {
		t.Error(said)
	}
	mark(exitUsage, "--from", aiperf, "--zone", "Europe/Paris")
	if said := mark(exitUsage, "--from", aiperf); !strings.Contains(said, "--zone") {
		t.Error(said)
	}
	mark(exitUsage, "--from", aiperf, "rate-4")
	mark(exitUsage, "--from", file("a.json", "{}"))
	guide := file("benchmarks.json", fmt.Sprintf(`{"benchmarks": [{"config": {"strategy": {"type_": "constant",
		"rate": 8}}, "scheduler_metrics": {"measure_start_time": %d, "measure_end_time": %d}}]}`,
		at(105).Unix()+1, at(180).Unix()))
	for range 2 { // the second time they are there
		mark(exitDone, "--from", aiperf, "--from", guide, "--zone", "+02:00")
	}
	var got swept
	if err := json.Unmarshal(output(t, "sweep", "--format", "json", dir), &got); err != nil {
		t.Fatal(err)
	}
	s := got.Sweeps[0]
	if len(s.Points) != 2 || s.Points[0].Load != 4 || s.Points[1].Load != 8 || s.Points[0].X < 3.3 ||
		s.Points[0].X > 4.7 || s.Points[1].X < 7 || s.Points[1].X > 9 {
		t.Errorf("%+v", s.Points)
	}
	if text := string(output(t, "show", dir+"@rate-4")); !strings.Contains(text, "rate-4") {
		t.Error(text)
	}
}
