package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/simulate"
)

// TestFleet scrapes 40 targets of about 1,000 samples three times a second:
// every scheduled scrape is accounted for and none is skipped for our own
// slowness. SCRAPESTAT_FLEET sets the duration (60s is the goal of the design;
// the default keeps go test short).
func TestFleet(t *testing.T) {
	const targets = 40
	duration := 3 * time.Second
	if s := os.Getenv("SCRAPESTAT_FLEET"); s != "" {
		var err error
		if duration, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	} else if testing.Short() {
		t.Skip("short")
	}
	dir := t.TempDir()
	args := []string{"collect", "-o", dir, "--duration", duration.String(), "--formats", "json", "--max-scrape-share", "0", "--quiet"}
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
	wantPolls := int(duration / (333 * time.Millisecond))
	for _, e := range r.Scrapestat.Endpoints {
		sum := 0
		for _, n := range e.Outcomes {
			sum += n
		}
		if sum != e.Scheduled || e.OK != e.Scheduled {
			t.Errorf("%s: scheduled %d, ok %d, outcomes %v", e.URL, e.Scheduled, e.OK, e.Outcomes)
		}
		if e.Scheduled < wantPolls {
			t.Errorf("%s: %d scrapes were scheduled, want at least %d", e.URL, e.Scheduled, wantPolls)
		}
	}
}
