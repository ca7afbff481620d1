package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// TestImportPrometheus has a real Prometheus server and collect scrape the same
// simulated engine, then imports the window from the server by both ways. The
// engine holds still at the start and at the end of the window, so both saw the
// same first and last values: every counter increase and histogram delta must be
// equal.
func TestImportPrometheus(t *testing.T) {
	prom := findProgram(t, "prometheus")
	engine := newStepEngine(t)
	addr := freeAddr(t)
	config := t.TempDir() + "/prometheus.yml"
	yaml := "global: {scrape_interval: 200ms, scrape_timeout: 200ms}\nscrape_configs:\n- job_name: vllm\n  " +
		"static_configs:\n  - targets: [" +
		strings.TrimPrefix(engine.url, "http://") + "]\n"
	if err := os.WriteFile(config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	startProgram(t, addr, prom, "--config.file="+config, "--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+addr)
	engine.waitScrapes(t, "Prometheus", 2)

	start := time.Now()
	run1 := t.TempDir()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var out, talk bytes.Buffer
		code := run(context.Background(), []string{"collect", engine.url, "-o", run1, "--duration", "5s", "--settle", "0s",
			"--interval", "200ms", "--scrape-budget", "0", "--formats", "json", "--quiet"}, stdio{nil, &out, &talk})
		if code != exitDone {
			t.Errorf("collect: exit code %d\n%s", code, talk.String())
		}
	}()
	engine.waitScrapes(t, "scrapestat", 2)
	engine.waitScrapes(t, "Prometheus", 2)
	engine.move(true)
	engine.waitScrapes(t, "Prometheus", 10)
	engine.move(false)
	engine.waitScrapes(t, "Prometheus", 2)
	engine.waitScrapes(t, "scrapestat", 2)
	<-done
	engine.waitScrapes(t, "Prometheus", 2)
	end := time.Now()

	want := increases(t, run1, 0)
	for _, via := range []string{"query", "remote-read", "auto"} {
		run2 := t.TempDir()
		runOK(t, "import", "prometheus", "http://"+addr, "--match", `{job="vllm"}`, "--via", via, "-o", run2, "--quiet",
			"--start", start.UTC().Format(time.RFC3339Nano), "--end", end.UTC().Format(time.RFC3339Nano))
		got := increases(t, run2, 0)
		moved := 0
		for name, v := range want {
			g, ok := got[name]
			if !ok {
				t.Errorf("via %s: %s is missing", via, name)
			} else if g != v {
				t.Errorf("via %s: %s rose by %v, collect saw %v", via, name, g, v)
			}
			if v > 0 {
				moved++
			}
		}
		if len(want) < 300 || moved < 100 {
			t.Errorf("only %d counters and histogram parts were compared, %d of them moved", len(want), moved)
		}
		t.Logf("via %s: %d counters and histogram parts agree, %d of them moved", via, len(want), moved)
	}
}

// increases returns last minus first of all counters, buckets, sums and counts
// of a target.
func increases(t *testing.T, dir string, target int) map[string]float64 {
	t.Helper()
	polls := pollsOf(t, dir, target)
	if len(polls) < 3 {
		t.Fatalf("%s has %d polls", dir, len(polls))
	}
	out := map[string]float64{}
	for key, first := range polls[0].values {
		if last, ok := polls[len(polls)-1].values[key]; ok &&
			(strings.HasPrefix(key, "counter ") || strings.HasPrefix(key, "histogram ")) && !strings.Contains(key, " created ") {
			out[key] = last - first
		}
	}
	return out
}

// pollValues is one stored poll: its values by type, role, family, labels and
// bound.
type pollValues struct {
	atNS   int64
	values map[string]float64
}

func pollsOf(t *testing.T, dir string, target int) []pollValues {
	t.Helper()
	r, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var dict metric.Schema
	values := map[int]float64{}
	var out []pollValues
	for s, err := range r.Snapshots(context.Background(), target) {
		if err != nil {
			t.Fatal(err)
		}
		if err := dict.Grow(&s.DictDelta); err != nil {
			t.Fatal(err)
		}
		if !s.Outcome.Stored() {
			continue
		}
		if s.Delta.Full {
			clear(values)
		}
		for i, slot := range s.Delta.Slots {
			if dict.Slots[slot].Integer {
				values[int(slot)] = float64(s.Delta.Bits[i])
			} else {
				values[int(slot)] = math.Float64frombits(s.Delta.Bits[i])
			}
		}
		p := pollValues{s.AtNS(), map[string]float64{}}
		for slot, v := range values {
			sl := &dict.Slots[slot]
			f := dict.FamilyOf(sl.Series)
			p.values[fmt.Sprintf("%v %v %s%s %v", f.Type, sl.Role, f.Name, dict.Series[sl.Series].Labels, sl.Bound)] = v
		}
		out = append(out, p)
	}
	return out
}

// stepEngine is a simulated engine that can hold still: it then shows the same
// body again and again.
type stepEngine struct {
	url string
	sim http.Handler

	mu     sync.Mutex
	moving bool
	frozen *httptest.ResponseRecorder
	asked  map[string]int // scrapes since waitScrapes began, by the program that asks
}

func newStepEngine(t *testing.T) *stepEngine {
	t.Helper()
	sim, err := simulate.New("vllm", simulate.Options{Rate: 60, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	e := &stepEngine{sim: sim, asked: map[string]int{}}
	srv := httptest.NewServer(e)
	t.Cleanup(srv.Close)
	e.url = srv.URL
	return e
}

func (e *stepEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	if e.moving || e.frozen == nil {
		e.frozen = httptest.NewRecorder()
		plain := r.Clone(r.Context())
		plain.Header = http.Header{}
		e.sim.ServeHTTP(e.frozen, plain)
	}
	program, _, _ := strings.Cut(r.UserAgent(), "/")
	e.asked[program]++
	body, kind := e.frozen.Body.Bytes(), e.frozen.Header().Get("Content-Type")
	e.mu.Unlock()
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(body)
}

func (e *stepEngine) move(on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.moving = on
}

// waitScrapes waits until a program has scraped n times from now on.
func (e *stepEngine) waitScrapes(t *testing.T, program string, n int) {
	t.Helper()
	count := func() int {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.asked[program]
	}
	want := count() + n
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(30 * time.Second)
	for range tick.C {
		if count() >= want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s scraped %d times, want %d more", program, count(), want-count())
		}
	}
}
