//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

// lostAtMost is how young a scrape may be to be missing after a kill. The
// recording commits every 100 ms; a busy machine, and the race detector, add to
// the time between the answer of the server and the commit. One second is what
// the design promises at most.
const lostAtMost = time.Second

// TestKill kills collect with SIGKILL at random moments: every run must export,
// and only scrapes that were younger than the commit interval may be missing.
// SCRAPESTAT_KILLS sets the number of moments.
func TestKill(t *testing.T) {
	t.Parallel()
	kills := 5
	if n, err := strconv.Atoi(os.Getenv("SCRAPESTAT_KILLS")); err == nil {
		kills = n
	}
	t.Run("kills", func(t *testing.T) { // what waits for most of its time is done side by side
		const most = 250
		for from := 0; from < kills; from += most {
			n := min(most, kills-from)
			t.Run(strconv.Itoa(from), func(t *testing.T) {
				t.Parallel()
				killMany(t, uint64(from), n)
			})
		}
	})
	faults.Figure(t, "kill-loss", fmt.Sprintf(
		"%d kill -9 points of collect at 50 scrapes a second: no scrape that was served more than %v before the kill is "+
			"missing", kills, lostAtMost),
		fmt.Sprintf("SCRAPESTAT_KILLS=%d go test ./cmd/scrapestat -run '^TestKill$' -parallel 4 -timeout 2h -v", kills))
}

// killMany kills as many runs of collect, one after the other.
func killMany(t *testing.T, seed uint64, kills int) {
	sim, err := simulate.New("vllm", simulate.Options{Rate: 40, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	ledger := &servedLedger{next: sim}
	srv := httptest.NewServer(ledger)
	defer srv.Close()
	rng := rand.New(rand.NewPCG(1, seed))
	for i := range kills {
		ledger.reset()
		dir := filepath.Join(t.TempDir(), "run"+strconv.Itoa(i))
		killedAt := killCollect(t, srv.URL, dir, time.Duration(rng.Int64N(int64(1500*time.Millisecond))))
		if out, err := exec.Command("scrapestat", "export", dir).CombinedOutput(); err != nil {
			t.Fatalf("kill %d: export after kill: %v\n%s", i, err, out)
		}
		stored, err := countStored(dir)
		if err != nil {
			t.Fatalf("kill %d: read: %v", i, err)
		}
		// A scrape that was served long enough before the kill is in the recording.
		if want := ledger.before(killedAt.Add(-lostAtMost)); stored < want {
			t.Errorf("kill %d: %d scrapes recorded, %d were served more than %v before the kill", i, stored, want, lostAtMost)
		}
		sameTraffic(t, dir)
	}
}

// sameTraffic wants the export of a run that was killed to have the traffic that a pass over its polls finds: row 19 of
// the acceptance of windows. Nothing in the recording says what it was.
func sameTraffic(t *testing.T, dir string) {
	t.Helper()
	r, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	o := summary.NewObserver(c)
	for s, err := range r.Snapshots(t.Context(), 0) {
		if err == nil {
			err = o.Add(s)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	type edges struct {
		Start int64 `json:"start_ns"`
		End   int64 `json:"end_ns"`
	}
	var want []edges
	for _, s := range summary.FindTraffic([]*summary.Observer{o}).Segments {
		want = append(want, edges{s.Start.AtNS, s.End.AtNS})
	}
	b, err := os.ReadFile(filepath.Join(dir, "server_metrics_export.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Own struct{ Window struct{ Segments []edges } } `json:"scrapestat"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	if got := doc.Own.Window.Segments; r.Meta().Traffic != "" || !slices.Equal(got, want) {
		t.Errorf("traffic %+v, a pass over the polls finds %+v; the recording says %q", got, want, r.Meta().Traffic)
	}
}

// killCollect starts collect, waits until the recording exists and delay has
// passed, kills it and returns when.
func killCollect(t *testing.T, url, dir string, delay time.Duration) time.Time {
	t.Helper()
	cmd := exec.Command("scrapestat", "collect", url, "-o", dir, "--interval", "20ms", "--scrape-budget", "0", "--quiet")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !waitForPolls(dir, 1) {
		t.Fatalf("%s has recorded nothing after %v", dir, patience)
	}
	<-time.After(delay)
	at := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed: there is always an error
	return at
}

// servedLedger notes when each answer was complete.
type servedLedger struct {
	next http.Handler
	mu   sync.Mutex
	at   []time.Time
}

func (l *servedLedger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.next.ServeHTTP(w, r)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = append(l.at, time.Now())
}

func (l *servedLedger) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = nil
}

func (l *servedLedger) before(t time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, at := range l.at {
		if at.Before(t) {
			n++
		}
	}
	return n
}
