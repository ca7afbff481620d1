package main

import (
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scrapestat/scrapestat/collect"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/scrape"
)

// TestWarmupAfterwards: a run asked for with the warm-up it was recorded with has the digits it had. One collected with
// a short warm-up and exported with a longer one has the statistics of a run that was collected with the longer one, as
// far as its polls tell: there is none at the edge. Time is that of a bubble, so both runs see the very same answers.
func TestWarmupAfterwards(t *testing.T) {
	t.Parallel()
	short := recordWarm(t, 5*time.Second)
	long := recordWarm(t, 10*time.Second)
	of := func(run, warmup string) map[string]exportedMetric {
		dir := t.TempDir()
		if code, talk := runQuiet("export", run, "--warmup", warmup, "--formats", "json", "-o", dir); code != exitDone {
			t.Fatalf("export: exit code %d\n%s", code, talk)
		}
		return readExport(t, dir).Metrics
	}
	want := readExport(t, long).Metrics
	if len(want) < 30 {
		t.Fatalf("only %d metrics in the run", len(want))
	}
	compareMetrics(t, of(long, "10s"), want)
	got := of(short, "10s")
	for name, stat := range map[string]string{"vllm:e2e_request_latency_seconds": "count_rate",
		"vllm:generation_tokens": "rate", "vllm:num_requests_running": "avg"} {
		g, w := got[name].Series[0].Stats[stat], want[name].Series[0].Stats[stat]
		if !closeTo(g, w, .05) {
			t.Errorf("%s of %s: %v, recorded with that warm-up %v", stat, name, g, w)
		}
	}
}

// recordWarm records 30 s of a simulated server with the given warm-up.
func recordWarm(t *testing.T, warmup time.Duration) string {
	t.Helper()
	o := collectOptions{interval: 333 * time.Millisecond, warmup: warmup, duration: 30*time.Second - warmup}
	o.analysis.formats = []string{"json", "csv", "parquet"}
	dir, code := collectInBubble(t, o, func() http.Handler {
		sim, err := simulate.New("vllm", simulate.Options{Rate: 20, Seed: 11})
		if err != nil {
			t.Fatal(err)
		}
		return sim
	})
	if code != exitDone {
		t.Fatalf("collect: exit code %d", code)
	}
	return dir
}

// collectInBubble collects from a server in a bubble from epoch on, where time depends on no machine, and returns the
// run with its exports and the exit code of collect.
func collectInBubble(t *testing.T, o collectOptions, serve func() http.Handler) (dir string, code int) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	o.targets, o.out, o.timeout, o.quiet = []string{"bubble:1"}, dir, 5*time.Second, true
	a := &o.analysis
	a.estimator, a.resets, a.schema, a.layout = "polynomial", "adjust", "1.1", "aiperf"
	synctest.Test(t, func(t *testing.T) {
		<-time.After(time.Until(epoch))
		c := &console{say: newProgress(io.Discard, true), self: newSelfMetrics(), restoreGC: func() {}}
		target := scrape.Target{URL: "http://bubble:1/metrics", RoundTripper: served{serve()}}
		s, err := collect.Open(t.Context(), dir, o.sessionOptions(&targetSet{given: []scrape.Target{target}}, nil, c, nil,
			discard()))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		run, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var exit *codeError
		if err := finish(t.Context(), o, run, nil, nil, c.say, discard()); errors.As(err, &exit) {
			code = exit.code
		} else if err != nil {
			t.Fatal(err)
		}
	})
	return dir, code
}

// compareMetrics wants the same metrics, series and statistics. The last polls
// may differ in number by none: both runs end at the same instant.
func compareMetrics(t *testing.T, got, want map[string]exportedMetric) {
	t.Helper()
	for name, w := range want {
		g := got[name]
		if len(g.Series) != len(w.Series) {
			t.Errorf("%s: %d series, want %d", name, len(g.Series), len(w.Series))
			continue
		}
		for i, ws := range w.Series {
			gs := g.Series[i]
			if len(gs.Stats) != len(ws.Stats) {
				t.Errorf("%s%v: statistics %v, want %v", name, ws.Labels, gs.Stats, ws.Stats)
			}
			for stat, v := range ws.Stats {
				if gs.Stats[stat] != v {
					t.Errorf("%s%v: %s is %v, want %v", name, ws.Labels, stat, gs.Stats[stat], v)
				}
			}
		}
	}
}
