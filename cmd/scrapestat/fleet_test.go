package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// TestFleet scrapes targets of about 1,000 samples three times a second and wants
// every scheduled scrape accounted for. SCRAPESTAT_FLEET sets the duration; 60s
// with 40 targets is the goal of the design. Then none may fail, and none may be
// skipped for our own slowness: the recording says of each skipped tick whether
// the target still answered, the machine starved us, or we were at work. One in a
// hundred is conceded to a machine that others use. go test, which runs several
// packages at a time and also with the race detector, takes fewer targets and
// judges the accounts alone.
func TestFleet(t *testing.T) {
	targets, duration, judged := 8, 3*time.Second, false
	if s := os.Getenv("SCRAPESTAT_FLEET"); s != "" {
		var err error
		if duration, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
		targets, judged = 40, true
	} else {
		t.Parallel()
	}
	dir := t.TempDir()
	args := []string{"collect", "-o", dir, "--duration", duration.String(), "--formats", "json", "--scrape-budget", "0",
		"--quiet"}
	for i := range targets {
		sim, err := simulate.New("vllm", simulate.Options{Rate: 20, Seed: uint64(i), Engines: 3})
		if err != nil {
			t.Fatal(err)
		}
		srv := httptest.NewServer(sim)
		defer srv.Close()
		args = append(args, srv.URL)
	}
	var out, talk bytes.Buffer
	if code := run(context.Background(), args, stdio{nil, &out, &talk}); code != exitDone {
		t.Fatalf("collect: exit code %d\n%s", code, talk.String())
	}
	r := readExport(t, dir)
	if len(r.Scrapestat.Endpoints) != targets {
		t.Fatalf("endpoints: got %d, want %d", len(r.Scrapestat.Endpoints), targets)
	}
	scheduled := checkLedgers(t, r, int(duration/(333*time.Millisecond)), judged)
	if ours := skippedByUs(t, dir, targets); judged && ours*100 > scheduled {
		t.Errorf("%d of %d scheduled scrapes were skipped for our own slowness", ours, scheduled)
	}
}

// skippedByUs counts the ticks that were skipped while we decoded or recorded.
func skippedByUs(t *testing.T, dir string, targets int) int {
	t.Helper()
	r, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	reasons := map[string]int{}
	for i := range targets {
		for s, err := range r.Snapshots(context.Background(), i) {
			if err != nil {
				t.Fatal(err)
			}
			if s.Outcome == metric.SkippedOverlap {
				reasons[s.Err]++
			}
		}
	}
	t.Logf("skipped, by reason: %v", reasons)
	ours := 0
	for reason, n := range reasons {
		if strings.Contains(reason, "decoding or recording") {
			ours += n
		}
	}
	return ours
}

// checkLedgers wants at least wantPolls scheduled scrapes of each endpoint, each
// with one outcome, and when judged none failed. It returns how many were scheduled.
func checkLedgers(t *testing.T, r exportedRun, wantPolls int, judged bool) (scheduled int) {
	t.Helper()
	skipped := 0
	for _, e := range r.Scrapestat.Endpoints {
		sum := 0
		for _, n := range e.Outcomes {
			sum += n
		}
		missed := e.Outcomes["skipped_overlap"]
		if sum != e.Scheduled || judged && e.OK+missed != e.Scheduled {
			t.Errorf("%s: scheduled %d, ok %d, outcomes %v", e.URL, e.Scheduled, e.OK, e.Outcomes)
		}
		if e.Scheduled < wantPolls {
			t.Errorf("%s: %d scrapes were scheduled, want at least %d", e.URL, e.Scheduled, wantPolls)
		}
		scheduled, skipped = scheduled+e.Scheduled, skipped+missed
	}
	t.Logf("%d endpoints: %d scrapes scheduled, %d skipped", len(r.Scrapestat.Endpoints), scheduled, skipped)
	return scheduled
}
