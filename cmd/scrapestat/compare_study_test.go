package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// study makes TestCompareStudy the one of docs/compare.md, with 200 pairs.
var study = flag.Int("study", 0, "pairs of equal runs in the study of compare; 0 is a small one")

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
		summary.Options{Slice: s.slices, Quantiles: []float64{0.5, 0.99}, Window: window.Ref{Warmup: &s.warmup}})
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

// TestCompareStudy measures how often compare sees a change where there is none, and
// how often it sees one that is there. The full study, whose table is in
// docs/compare.md, takes some 20 minutes:
//
//	go test ./cmd/scrapestat -run TestCompareStudy -v -timeout 1h -study 200
func TestCompareStudy(t *testing.T) {
	if *study > 0 {
		fullStudy(t, *study)
		return
	}
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

// fullStudy prints the tables of docs/compare.md.
func fullStudy(t *testing.T, pairs int) {
	const warmup, length, repeats = 20 * time.Second, 60 * time.Second, 6
	say := func(format string, args ...any) { // as it comes: it takes long
		fmt.Fprintf(os.Stderr, format+"\n", args...)
	}
	base := vllmRuns(t, 2*pairs, 1000, 0, warmup, length)
	var single, groups tally
	for i := 0; i < len(base); i += 2 {
		single.add(versus(t, base[i:i+1], base[i+1:i+2], ""))
	}
	for i := 0; i+2*repeats <= len(base); i += 2 * repeats {
		groups.add(versus(t, base[i:i+repeats], base[i+repeats:i+2*repeats], ""))
	}
	say("equal, one a side: %v\n  %v", &single, single.by)
	say("equal, %d a side: %v\n  %v", repeats, &groups, groups.by)
	if share := single.share(compare.Better, compare.Worse); share > 0.05 {
		t.Errorf("one a side: %.2f %% of rows are better or worse", 100*share)
	}
	if share := groups.share(compare.Better, compare.Worse); share > 0.05 {
		t.Errorf("%d a side: %.2f %% of rows are better or worse", repeats, 100*share)
	}
	for _, slow := range []float64{0.05, 0.10, 0.20} {
		other := vllmRuns(t, pairs/2, uint64(100000*slow)+50000, slow, warmup, length)
		var one, many []*compare.Result
		for i := range other {
			one = append(one, versus(t, base[i:i+1], other[i:i+1], ""))
		}
		for i := 0; i+repeats <= len(other); i += repeats {
			many = append(many, versus(t, base[i:i+repeats], other[i:i+repeats], ""))
		}
		for _, name := range slowable {
			say("%2.0f %% slower, %s mean worse: one a side %d of %d, %d a side %d of %d", 100*slow, name, found(one)[name],
				len(one), repeats, found(many)[name], len(many))
		}
	}
}
