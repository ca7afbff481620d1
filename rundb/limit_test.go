package rundb_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// TestMaxBytes: beyond its size a recording keeps no bodies, which it counts; the
// polls it keeps.
func TestMaxBytes(t *testing.T) {
	record := func(most int64) (bodies string, warnings []metric.Warning) {
		t.Helper()
		dir := t.TempDir()
		w := create(t, dir, 4, rundb.WriterOptions{MaxBytes: most})
		rng := rand.New(rand.NewPCG(1, 2))
		for target := range 4 {
			body := make([]byte, 100_000)
			for i := range body {
				body[i] = byte(rng.Uint32())
			}
			if err := w.Record(&metric.Snapshot{Target: target, Body: body, BodyBytes: int64(len(body))}); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := open(t, dir)
		for target := range 4 {
			if polls := read(t, r, target); len(polls) != 1 || polls[0].BodyBytes != 100_000 {
				t.Errorf("limit %d: target %d has the polls %v", most, target, polls)
			}
		}
		return ask(t, dir, "SELECT count(*) FROM body"), r.Warnings()
	}
	if n, warnings := record(0); n != "4" || len(warnings) != 0 {
		t.Errorf("no limit: %s bodies, warnings %v", n, warnings)
	}
	n, warnings := record(450_000)
	if n != "3" || len(warnings) != 1 || warnings[0].Code != "recording_limit" ||
		!strings.Contains(warnings[0].Text, "raise --max-recording") || strings.Contains(warnings[0].Text, "times") {
		t.Errorf("a limit of four and a half: %s bodies, warnings %v", n, warnings)
	}
	n, warnings = record(1)
	if n != "0" || len(warnings) != 1 || !strings.Contains(warnings[0].Text, "(4 times)") {
		t.Errorf("a limit of nothing: %s bodies, warnings %v", n, warnings)
	}
}
