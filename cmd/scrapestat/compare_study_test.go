package main

import (
	"flag"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// study makes TestVerdictStudy the one of docs/data/compare.md, with 800 runs.
var (
	study     = flag.Int("study", 0, "runs of each engine in the study of compare; 0 is a small one")
	studySeed = flag.Uint64("seed", 20_000, "`seed` of the first run of the study")
)

// scene is a run in simulated time: a server, polled at an interval, after
// a warm-up that is no part of it.
type scene struct {
	profile          string
	options          simulate.Options
	warmup, length   time.Duration
	interval, slices time.Duration
}

// run returns the result of the scene. Equal scenes give equal results.
func (s scene) run(t testing.TB, id string) *summary.Run {
	t.Helper()
	start := time.Unix(1_790_000_000, 0)
	now := start
	o := s.options
	o.Now = func() time.Time { return now }
	server, err := simulate.New(s.profile, o)
	if err != nil {
		t.Fatal(err)
	}
	d, err := scrape.NewDecoder(scrape.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := summary.NewBuilder(rundb.Meta{ID: id, Version: "test", OriginNS: start.UnixNano(), Interval: s.interval},
		[]metric.Target{{URL: "http://sim/metrics", Source: "prometheus"}},
		summary.Options{Slice: s.slices, Quantiles: []float64{0.5, 0.99}, Estimator: histest.Refined,
			Window: window.Ref{Warmup: &s.warmup}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Mark(metric.Mark{Name: metric.PhaseWarmup, AtNS: start.UnixNano()})
	for i := 0; time.Duration(i)*s.interval <= s.warmup+s.length; i++ {
		now = start.Add(time.Duration(i) * s.interval)
		at := now.UnixNano()
		snap := metric.Snapshot{Seq: uint64(i), Kind: metric.Periodic, DueNS: at, SentNS: at, FirstByteNS: at,
			Duration: time.Millisecond, Status: 200}
		d.Decode(&snap, scrape.Body{Bytes: server.AppendBody(nil), ContentType: "text/plain; version=0.0.4; charset=utf-8"})
		if err := b.Add(&snap); err != nil {
			t.Fatal(err)
		}
	}
	r, err := b.Result(now.UnixNano())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// slower is the hardware of the simulator, slower by a share.
func slower(share float64) simulate.Hardware {
	scale := func(d time.Duration) time.Duration { return time.Duration(float64(d) * (1 + share)) }
	return simulate.Hardware{StepBase: scale(8 * time.Millisecond), StepPerSequence: scale(60 * time.Microsecond),
		StepPerToken: scale(25 * time.Microsecond)}
}

// vllmRuns are n runs of a server, all of other seeds.
func vllmRuns(t testing.TB, n int, seed uint64, slow float64, warmup, length time.Duration) []*summary.Run {
	t.Helper()
	var out []*summary.Run
	for i := range n {
		s := scene{profile: "vllm", options: simulate.Options{Seed: seed + uint64(i), Rate: 8, Hardware: slower(slow)},
			warmup: warmup, length: length, interval: 333 * time.Millisecond, slices: 666 * time.Millisecond}
		out = append(out, s.run(t, fmt.Sprintf("run-%d-%v", seed+uint64(i), slow)))
	}
	return out
}

// versus compares runs of two sides in the families that match metric.
func versus(t testing.TB, a, b []*summary.Run, metric string) *compare.Result {
	t.Helper()
	var inputs []compare.Input
	for _, r := range a {
		inputs = append(inputs, compare.Input{Side: "a", Path: "a", Run: r})
	}
	for _, r := range b {
		inputs = append(inputs, compare.Input{Side: "b", Path: "b", Run: r})
	}
	r, err := compare.Compare(inputs, compare.Options{Metric: regexp.MustCompile(metric)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tally counts verdicts of comparable rows.
type tally struct {
	comparisons, rows int
	verdicts          [compare.Verdicts]int
	by                map[string]int // false findings by quantity
}

func (a *tally) add(r *compare.Result) {
	if a.by == nil {
		a.by = map[string]int{}
	}
	a.comparisons++
	for i := range r.Rows {
		v := r.Rows[i].Verdict()
		if v == compare.Incomparable {
			continue
		}
		a.rows++
		a.verdicts[v]++
		if v == compare.Worse || v == compare.Better {
			a.by[r.Rows[i].Family+" "+r.Rows[i].Stat]++
		}
	}
}

func (a *tally) share(list ...compare.Verdict) float64 {
	n := 0
	for _, v := range list {
		n += a.verdicts[v]
	}
	return float64(n) / float64(max(1, a.rows))
}

func (a *tally) String() string {
	return fmt.Sprintf("%d comparisons, %d rows: better or worse %.2f %%, changed %.2f %%, same %.1f %%, needs "+
		"repeats %.1f %%", a.comparisons, a.rows,
		100*a.share(compare.Better, compare.Worse), 100*a.share(compare.Changed), 100*a.share(compare.Same),
		100*a.share(compare.NeedsRepeats))
}

// slowable are the quantities whose slow-down is to be found.
var slowable = []string{"vllm:inter_token_latency_seconds", "vllm:e2e_request_latency_seconds",
	"vllm:time_to_first_token_seconds"}

// found counts in how many comparisons the mean of each of these families is worse.
func found(list []*compare.Result) map[string]int {
	out := map[string]int{}
	for _, r := range list {
		for i := range r.Rows {
			if row := &r.Rows[i]; row.Stat == "mean" && row.Verdict() == compare.Worse {
				out[row.Family]++
			}
		}
	}
	return out
}

// TestCompareStudy measures how often the rows see a change where there is none, and how often they see one.
func TestCompareStudy(t *testing.T) {
	t.Parallel()
	const warmup, length = 3 * time.Second, 12 * time.Second
	base := vllmRuns(t, 10, 100, 0, warmup, length)
	slow := vllmRuns(t, 5, 900, 0.2, warmup, length)
	var single, repeats tally
	for i := 0; i < len(base); i += 2 {
		single.add(versus(t, base[i:i+1], base[i+1:i+2], ""))
	}
	repeats.add(versus(t, base[:5], base[5:], ""))
	t.Logf("equal runs, one a side: %v", &single)
	t.Logf("equal runs, five a side: %v", &repeats)
	if share := single.share(compare.Better, compare.Worse); single.rows < 300 || share > 0.05 {
		t.Errorf("one a side: %.2f %% of %d rows of equal runs are better or worse: %v", 100*share, single.rows, single.by)
	}
	if share := repeats.share(compare.Better, compare.Worse); share > 0.05 {
		t.Errorf("five a side: %.2f %% of the rows of equal runs are better or worse: %v", 100*share, repeats.by)
	}
	var list []*compare.Result
	for i := range slow {
		list = append(list, versus(t, base[i:i+1], slow[i:i+1], ""))
	}
	if n := found(list)[slowable[0]]; n != len(list) {
		t.Errorf("20 %% slower, one a side: %s is worse in %d of %d comparisons", slowable[0], n, len(list))
	}
	if n := found([]*compare.Result{versus(t, base[:5], slow, "inter_token")})[slowable[0]]; n != 1 {
		t.Errorf("20 %% slower, five a side: %s is not worse", slowable[0])
	}
}
