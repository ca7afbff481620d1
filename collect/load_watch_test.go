package collect_test

import (
	"cmp"
	"context"
	"iter"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scrapestat/scrapestat/collect"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// answers is the transport of a server without a network.
type answers struct{ http.Handler }

func (h answers) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	resp := rec.Result()
	resp.Request = r
	return resp, nil
}

// load is a simulated server at 8 requests/s from begins to ends, and how it is recorded.
type load struct {
	profile      string // "" is vllm
	before       []simulate.LoadStep
	begins, ends time.Duration
	until        time.Duration // the mark "end", 0 for none
	change       func(*collect.Options)
}

// recorded is what came of it.
type recorded struct {
	dir    string
	origin time.Time
	truth  []simulate.Request // in seconds from origin
	took   time.Duration
	marks  []metric.Mark
}

// record records the load in a bubble, where time costs nothing.
func (l load) record(t *testing.T) (out recorded) {
	t.Helper()
	out.dir = filepath.Join(t.TempDir(), "run")
	synctest.Test(t, func(t *testing.T) {
		sim, err := simulate.New(cmp.Or(l.profile, "vllm"), simulate.Options{Seed: 7, KeepTruth: true, Load: append(append(
			[]simulate.LoadStep{{}}, l.before...), simulate.LoadStep{At: l.begins, Rate: 8}, simulate.LoadStep{At: l.ends})})
		if err != nil {
			t.Fatal(err)
		}
		out.origin = time.Now()
		o := collect.Options{Scrape: scrape.Options{Interval: 333 * time.Millisecond, MaxScrapeShare: -1}}
		o.Targets = []scrape.Target{{URL: "http://sim/metrics", RoundTripper: answers{sim}}}
		l.change(&o)
		s := open(t, out.dir, o)
		if l.until > 0 {
			go func() {
				<-s.Ready()
				<-time.After(l.until)
				if err := s.Mark(metric.MarkEnd); err != nil {
					t.Error(err)
				}
			}()
		}
		run, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out.took, out.truth = run.Ended.Sub(out.origin), sim.Truth().Requests
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
	db, err := rundb.Open(out.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	out.marks = db.Marks()
	return out
}

// again is a recording whose passes over the polls are counted; blank leaves out what it says of its traffic.
type again struct {
	*rundb.Run
	blank  bool
	passes int
}

func (a *again) Meta() rundb.Meta {
	m := a.Run.Meta()
	if a.blank {
		m.Traffic = ""
	}
	return m
}

func (a *again) Snapshots(ctx context.Context, target int) iter.Seq2[*metric.Snapshot, error] {
	if target == 0 { // others are read at the same time
		a.passes++
	}
	return a.Run.Snapshots(ctx, target)
}

// analyse returns the result of a part of a recording, "" for the default one.
func analyse(t *testing.T, dir, part string, blank bool) (r *summary.Run, passes int) {
	t.Helper()
	db, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var o summary.Options
	if part != "" {
		if o.Window, err = window.Parse(part); err != nil {
			t.Fatal(err)
		}
	}
	rec := &again{Run: db, blank: blank}
	if r, err = summary.Build(t.Context(), []summary.Recording{rec}, o); err != nil {
		t.Fatal(err)
	}
	return r, rec.passes
}

// ended is how many requests ended, by the count of their latencies, and their rate.
func ended(t *testing.T, r *summary.Run) (n, rate float64) {
	t.Helper()
	for i := range r.Metrics {
		if r.Metrics[i].Name == "vllm:e2e_request_latency_seconds" {
			h := r.Metrics[i].Series[0].Histogram
			return float64(h.Count), h.CountRate
		}
	}
	t.Fatal("no latencies")
	return 0, 0
}

// rateAfter is the load's own rate, of what ended later than warmup after the first request.
func (r *recorded) rateAfter(warmup time.Duration) (n, rate float64) {
	first, last := r.truth[0].Arrival, time.Duration(0)
	for _, q := range r.truth {
		first, last = min(first, q.Arrival), max(last, q.Last)
	}
	for _, q := range r.truth {
		if q.Last > first+warmup {
			n++
		}
	}
	return n, n / (last - first - warmup).Seconds()
}

// A load generator that sleeps 20 s before its load has one rate, however long polling goes on after it; with a warm-up
// that of the load after it. What the recording says of its traffic is what a pass over the polls finds.
func TestLoadThatBeginsLate(t *testing.T) {
	rates := map[time.Duration]float64{}
	for settle := time.Duration(0); settle <= 5*time.Second; settle += time.Second {
		run := load{begins: 20 * time.Second, ends: 50 * time.Second, until: 56 * time.Second,
			change: func(o *collect.Options) { o.Settle = settle }}.record(t)
		r, passes := analyse(t, run.dir, "", false)
		if passes != 1 || r.Window.Resolved.Rule != window.Traffic {
			t.Errorf("settle %v: %d passes over the polls, rule %s", settle, passes, r.Window.Resolved.Rule)
		}
		other, passes := analyse(t, run.dir, "", true)
		if passes != 2 || other.Window.StartNS != r.Window.StartNS || other.Window.PhaseEndNS != r.Window.PhaseEndNS {
			t.Errorf("settle %v: the stored window is %+v, a pass over the polls gives %+v (%d passes)", settle, r.Window,
				other.Window, passes)
		}
		_, rates[settle] = ended(t, r)
		if _, want := run.rateAfter(0); math.Abs(rates[settle]/want-1) > .01 {
			t.Errorf("settle %v: %v requests/s, the load says %v", settle, rates[settle], want)
		}
	}
	for settle, rate := range rates {
		if math.Abs(rate/rates[0]-1) > .001 {
			t.Errorf("settle %v: %v requests/s, without %v", settle, rate, rates[0])
		}
	}
}

// A warm-up counts from the first request: all targets are polled at its end, so that it has the mark of the collector.
func TestWarmupFromFirstRequest(t *testing.T) {
	for _, warmup := range []time.Duration{time.Second, 5 * time.Second, 15 * time.Second} {
		run := load{begins: 20 * time.Second, ends: 50 * time.Second, until: 56 * time.Second,
			change: func(o *collect.Options) { o.Warmup = warmup }}.record(t)
		r, _ := analyse(t, run.dir, "", false)
		w := r.Window.Resolved
		if w.Start.Kind != window.Mark || run.marks[1].Kind != metric.MarkPolled || w.Start.AtNS != run.marks[1].AtNS {
			t.Errorf("warm-up %v: begins at %+v, marks %+v", warmup, w.Start, run.marks)
		}
		n, rate := ended(t, r)
		seconds, _, _ := w.Bounds()
		want, wantRate := run.rateAfter(warmup)
		if math.Abs(rate/wantRate-1) > .01 && math.Abs(rate-wantRate)*seconds > 1 {
			t.Errorf("warm-up %v: %v requests in %v s, %v/s; the load says %v in %v s, %v/s", warmup, n, seconds, rate, want,
				want/wantRate, wantRate)
		}
		same, _ := analyse(t, run.dir, "warmup="+warmup.String(), false)
		if again, againRate := ended(t, same); again != n || againRate != rate {
			t.Errorf("warm-up %v: asked for again: %v, %v/s, want %v, %v/s", warmup, again, againRate, n, rate)
		}
	}
}

// Options.Duration counts from the start, from the end of a warm-up that requests began, or from the first request.
func TestDurationAndTraffic(t *testing.T) {
	for _, c := range []struct {
		name                   string
		begins                 time.Duration
		warmup, duration, wait time.Duration
		window                 window.What
		want                   time.Duration
	}{
		{"from the start", 3 * time.Second, 0, 10 * time.Second, 0, "", 10 * time.Second},
		{"from the end of the warm-up", 3 * time.Second, 5 * time.Second, 10 * time.Second, 0, "", 18 * time.Second},
		{"no request", time.Hour, 5 * time.Second, 10 * time.Second, 0, "", 15 * time.Second},
		{"of COMMAND", 3 * time.Second, 5 * time.Second, 10 * time.Second, 0, window.Command, 15 * time.Second},
		{"from the first request", 20 * time.Second, 0, 10 * time.Second, time.Minute, "", 30 * time.Second},
		{"after waiting in vain", time.Hour, 0, 10 * time.Second, 5 * time.Second, "", 15 * time.Second},
	} {
		run := load{begins: c.begins, ends: 2 * time.Hour, change: func(o *collect.Options) {
			o.Warmup, o.Duration, o.WaitTraffic, o.Window.What = c.warmup, c.duration, c.wait, c.window
		}}.record(t)
		first := 0.0
		if len(run.truth) > 0 {
			first = run.truth[0].Arrival.Seconds() - c.begins.Seconds()
		}
		if got := run.took.Seconds(); got < c.want.Seconds()-.001 || got > c.want.Seconds()+first+1 {
			t.Errorf("%s: the run took %v s, want %v", c.name, got, c.want)
		}
		r, _ := analyse(t, run.dir, "", false)
		if rule := r.Window.Resolved.Rule; c.window != "" && rule != c.window {
			t.Errorf("%s: rule %s, want %s", c.name, rule, c.window)
		}
	}
}

// A request long before the load is a probe: the warm-up counts from the load.
func TestWarmupAfterProbe(t *testing.T) {
	run := load{before: []simulate.LoadStep{{At: 10 * time.Second, Rate: 8}, {At: 10*time.Second + 250*time.Millisecond}},
		begins: 40 * time.Second, ends: 70 * time.Second, until: 76 * time.Second,
		change: func(o *collect.Options) { o.Warmup = 5 * time.Second }}.record(t)
	r, _ := analyse(t, run.dir, "", false)
	w := r.Window.Resolved
	if base := w.Command.StartNS; len(w.Traffic.Probes) != 1 || w.Start.Kind != window.Mark ||
		math.Abs(float64(w.Start.AtNS-base)/1e9-45) > 1 {
		t.Errorf("%d probes, the window begins at %v s, a %s; marks %v", len(w.Traffic.Probes),
			float64(w.Start.AtNS-base)/1e9, w.Start.Kind, run.marks)
	}
}

// Little's law on simulated servers, for every target: the rate of the requests times their mean time is how many were
// there in the truth of the load, and in the levels where these are not renewed at intervals of their own; and the same
// requests have one rate on all targets of one server, at whatever interval these are polled.
func TestLittlesLawOfServers(t *testing.T) {
	for profile, fresh := range map[string]bool{"vllm": true, "tgi": true, "dynamo": true, "sglang": false,
		"trtllm": false} {
		run := load{profile: profile, begins: 5 * time.Second, ends: 45 * time.Second, until: 60 * time.Second,
			change: func(o *collect.Options) {
				o.Targets[0].Interval = 250 * time.Millisecond
				slow := o.Targets[0]
				slow.URL, slow.Interval = "http://sim:2/metrics", time.Second
				o.Targets = append(o.Targets, slow)
			}}.record(t)
		r, _ := analyse(t, run.dir, "", false)
		stood := 0.0
		for _, q := range run.truth {
			stood += (q.Last - q.Arrival).Seconds()
		}
		var rates [2]float64
		for target := range 2 {
			var level, latency float64
			for i := range r.Metrics {
				f, ok := r.Options.Catalog.Family(r.Metrics[i].Name)
				for _, s := range r.Metrics[i].Series {
					switch {
					case !ok || s.Endpoint != target || !f.Whole(s.Labels):
					case (f.Canonical == "running" || f.Canonical == "waiting") && s.Gauge != nil:
						level += s.Gauge.TimeAvg
					case f.Canonical == "e2e_s" && s.Histogram != nil && s.Histogram.Count > 0:
						rates[target], latency = s.Histogram.CountRate, s.Histogram.Avg*f.Seconds(r.Metrics[i].Name)
					}
				}
			}
			truth, law := stood/r.Endpoints[target].Seconds, rates[target]*latency
			if math.Abs(law/truth-1) > .05 || fresh && math.Abs(level/law-1) > .05 {
				t.Errorf("%s, target %d: rate times latency is %v, %v requests were there, %v by the levels", profile, target,
					law, truth, level)
			}
		}
		if rates[0] != rates[1] || rates[0] == 0 {
			t.Errorf("%s: one server has the rates %v", profile, rates)
		}
	}
}
