package summary_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// line is a run of one counter that rises by 10 per second, polled each second.
func line(seconds int, url string) *fakeRun {
	f := newFake(url)
	for i := range seconds {
		f.Scrape(0, float64(i), fmt.Sprintf("# HELP c Things.\n# TYPE c counter\nc %d\n", 10*i))
	}
	return f
}

func build(t *testing.T, o summary.Options, recs ...*fakeRun) *summary.Run {
	t.Helper()
	r, err := tryBuild(o, recs...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tryBuild(o summary.Options, recs ...*fakeRun) (*summary.Run, error) {
	list := make([]summary.Recording, len(recs))
	for i, r := range recs {
		list[i] = r
	}
	return summary.Build(context.Background(), list, o)
}

// part and named are windows as selectors ask for them.
func part(s string) window.Ref {
	ref, err := window.Parse(s)
	if err != nil {
		panic(err)
	}
	return ref
}

func named(phase string) window.Ref { return window.Ref{What: window.Phase, Phase: phase} }

func ptr(d time.Duration) *time.Duration { return &d }

// seconds of the window from the origin, and the total of counter c in it.
func outline(r *summary.Run) string {
	at := func(ns int64) float64 { return float64(ns-origin) / float64(second) }
	total := "none"
	if len(r.Metrics) > 0 && r.Metrics[0].Series[0].Counter != nil {
		total = fmt.Sprint(r.Metrics[0].Series[0].Counter.Total)
	}
	return fmt.Sprintf("%s %v-%v phase end %v total %s", r.Window.Phase, at(r.Window.StartNS), at(r.Window.EndNS),
		at(r.Window.PhaseEndNS), total)
}

func TestWindows(t *testing.T) {
	// Load from 0.5 s to 9.5 s, warm-up 2 s; polls each second from 0 to 12 s.
	usual := func() *fakeRun {
		f := line(13, "http://a/metrics").Mark(0.5, "warmup").Mark(2.5, "profiling").Mark(9.5, "end")
		f.Info.Warmup = 2 * time.Second
		return f
	}
	check := func(name string, f *fakeRun, o summary.Options, want string) {
		t.Helper()
		if got := outline(build(t, o, f)); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
		}
	}
	// Reference at 2 s (20), last update at 12 s (120).
	check("marks", usual(), summary.Options{}, "profiling 2.5-12 phase end 9.5 total 100")
	check("by name", usual(), summary.Options{Window: named("profiling")}, "profiling 2.5-12 phase end 9.5 total 100")
	check("other warm-up", usual(), summary.Options{Window: window.Ref{Warmup: ptr(5 * time.Second)}},
		"profiling 5.5-12 phase end 9.5 total 70")
	check("no warm-up", usual(), summary.Options{Window: window.Ref{Warmup: ptr(0)}},
		"profiling 0.5-12 phase end 9.5 total 120")
	// [2.5, 7.5]: reference 20, last 70.
	check("cool-down", usual(), summary.Options{Window: window.Ref{Cooldown: ptr(2 * time.Second)}},
		"profiling 2.5-7.5 phase end 7.5 total 50")
	check("cool-down mark", usual().Mark(8, "cooldown"), summary.Options{}, "profiling 2.5-8 phase end 8 total 60")
	check("cool-down of 0 over the mark", usual().Mark(8, "cooldown"), summary.Options{Window: part("cooldown=0s")},
		"profiling 2.5-12 phase end 9.5 total 100")
	check("warm-up phase", usual(), summary.Options{Window: named("warmup")}, "warmup 0.5-2.5 phase end 2.5 total 20")
	check("from", usual(), summary.Options{Window: part("3s..")}, " 3.5-12 phase end 9.5 total 90")
	check("from and to", usual(), summary.Options{Window: part("3s..5s")},
		" 3.5-5.5 phase end 5.5 total 20")
	check("to", usual(), summary.Options{Window: part("..5s")}, " 0.5-5.5 phase end 5.5 total 50")
	// Of two phases the later one has the poll at their border; the last one goes on.
	two := usual().Mark(4.5, "low").Mark(6.5, "high")
	check("named", two, summary.Options{Window: named("low")}, "low 4.5-6.5 phase end 6.5 total 20")
	check("named, last", two, summary.Options{Window: named("high")}, "high 6.5-12 phase end 9.5 total 60")
	check("named phases are part of profiling", two, summary.Options{}, "profiling 2.5-12 phase end 9.5 total 100")
	// Marks by another process may arrive in any order.
	two.Phases[0], two.Phases[3] = two.Phases[3], two.Phases[0]
	check("unsorted marks", two, summary.Options{Window: named("low")}, "low 4.5-6.5 phase end 6.5 total 20")

	killed := line(13, "http://a/metrics").Mark(0.5, "warmup")
	killed.Info.Warmup = 2 * time.Second
	check("killed", killed, summary.Options{}, "profiling 2.5-12 phase end 12 total 100")
	check("killed, cool-down from the last poll", killed, summary.Options{Window: part("cooldown=3s")},
		"profiling 2.5-9 phase end 9 total 70")
	killed.Info.Cooldown = 4 * time.Second
	check("recorded cool-down", killed, summary.Options{}, "profiling 2.5-8 phase end 8 total 60")
	check("no marks", line(13, "u"), summary.Options{}, "profiling 0-12 phase end 12 total 120")
}

// TestFinalScrape checks that the window reaches the last update of each
// endpoint, and that a final scrape that brings nothing new does not extend it.
func TestFinalScrape(t *testing.T) {
	f := newFake("http://a/metrics", "http://b/metrics").Mark(0, "profiling").Mark(3, "end")
	for i := range 6 {
		f.Scrape(0, float64(i), fmt.Sprintf("# TYPE c counter\nc %d\n", i))
		f.Scrape(1, float64(i), fmt.Sprintf("# TYPE c counter\nc %d\n", min(i, 4)))
	}
	r := build(t, summary.Options{}, f)
	for i, want := range []int64{5, 4} {
		if got := (r.Endpoints[i].EndNS - origin) / second; got != want || r.Endpoints[i].StartNS != origin {
			t.Errorf("endpoint %d: window ends after %d s, want %d", i, got, want)
		}
	}
	if r.Window.EndNS != origin+5*second || r.Window.PhaseEndNS != origin+3*second {
		t.Errorf("window of the run: %+v", r.Window)
	}
}

// TestWarmupReplaced is the promise of export --warmup: the same as having
// collected with that warm-up.
func TestWarmupReplaced(t *testing.T) {
	run := func(warmup float64) *fakeRun {
		f := line(20, "http://a/metrics").Mark(0.25, "warmup").Mark(0.25+warmup, "profiling").Mark(17.3, "end")
		f.Info.Warmup = time.Duration(warmup * 1e9)
		return f
	}
	o := summary.Options{Slice: time.Second}
	want := build(t, o, run(10))
	o.Window.Warmup = ptr(10 * time.Second)
	got := build(t, o, run(5))
	want.Options.Window = o.Window
	// Nobody polled at the other edge, so that rates count from the poll before it.
	want.Window.Resolved.Start.Kind, want.Endpoints[0].Seconds = window.Snapped, got.Endpoints[0].Seconds
	want.Metrics[0].Series[0].Counter.Rate = got.Metrics[0].Series[0].Counter.Rate
	if diff := treeDiff(want, got); diff != "" {
		t.Errorf("collected with 10 s and exported with 10 s differ:\n%s", diff)
	}
	if len(got.Warmup) != 1 || got.WarmupWindow == nil || got.WarmupWindow.EndNS != got.Window.StartNS {
		t.Errorf("warm-up: window %+v, %d metrics", got.WarmupWindow, len(got.Warmup))
	}
}

func treeDiff(want, got *summary.Run) string {
	return cmp.Diff(want, got, cmp.Comparer(func(a, b metric.Labels) bool { return a == b }), cmpopts.EquateNaNs(),
		cmpopts.EquateEmpty(), cmpopts.IgnoreFields(summary.Options{}, "Catalog"),
		cmpopts.IgnoreFields(window.Window{}, "Traffic", "Recording"),
		// How wide the bounds of what is not certain are depends on what was seen after the window.
		cmp.Comparer(func(a, b continuity.Increase) bool {
			return a == b || a.Status == b.Status && !a.Status.Certain()
		}))
}

func TestNoSuchWindow(t *testing.T) {
	f := line(5, "u").Mark(0, "warmup").Mark(1, "profiling").Mark(2, "soak").Mark(4, "end")
	check := func(o summary.Options, want string) {
		t.Helper()
		if _, err := tryBuild(o, f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
	check(summary.Options{Window: named("peak")}, `"peak": no such part of the run (known: warmup, profiling, soak)`)
	check(summary.Options{Window: window.Ref{Warmup: ptr(-time.Second)}}, "-1s is negative")
	check(summary.Options{Slice: -1}, "slice_duration must be positive")
	check(summary.Options{Estimator: "magic"}, "magic")
	if _, err := summary.Build(context.Background(), nil, summary.Options{}); err == nil {
		t.Error("no recording: no error")
	}
	if _, err := tryBuild(summary.Options{Window: named("x")}, newFake("u").Mark(0, "end")); err == nil ||
		!strings.Contains(err.Error(), "no phases") {
		t.Errorf("a run without phases: got error %v", err)
	}
}

// TestEndedInWarmup checks that a run stopped early still gives a result.
func TestEndedInWarmup(t *testing.T) {
	f := line(5, "u").Mark(0, "warmup").Mark(4, "end")
	f.Info.Warmup = 10 * time.Second
	r := build(t, summary.Options{}, f)
	if len(r.Metrics) != 0 || len(r.Warmup) != 1 || !hasWarning(r.Warnings, "empty_window") {
		t.Errorf("got %d metrics, %d of the warm-up, warnings %v", len(r.Metrics), len(r.Warmup), r.Warnings)
	}
	killed := line(5, "u").Mark(0, "warmup")
	killed.Info.Warmup = 10 * time.Second
	r = build(t, summary.Options{Slice: time.Second}, killed)
	if n := len(r.Warmup[0].Series[0].Counter.Slices); n != 4 || r.WarmupWindow.EndNS != origin+4*second {
		t.Errorf("killed in the warm-up: %d slices, window %+v", n, r.WarmupWindow)
	}
	r = build(t, summary.Options{}, f)
	if e := r.Endpoints[0]; e.Ledger.Scheduled != 5 || e.InWindow != nil || e.InWarmup == nil || e.InWarmup.Total != 4 {
		t.Errorf("endpoint: %+v", e)
	}
}

func hasWarning(list []metric.Warning, code string) bool {
	return slices.ContainsFunc(list, func(w metric.Warning) bool { return w.Code == code })
}

func TestRepeatedPhase(t *testing.T) {
	f := line(9, "u").Mark(0, "profiling").Mark(1, "a").Mark(3, "b").Mark(5, "a").Mark(8, "end")
	if _, err := tryBuild(summary.Options{Window: named("a")}, f); !errors.Is(err, window.ErrNoSuch) ||
		!strings.Contains(err.Error(), `phase "a" occurs 2 times (1.0s..3.0s, 5.0s..8.0s): write a/1 or a/2`) {
		t.Errorf("got %v", err)
	}
	r := build(t, summary.Options{Window: part("a/1")}, f)
	if outline(r) != "a 1-3 phase end 3 total 20" {
		t.Errorf("got %s", outline(r))
	}
	var names []string
	for _, p := range r.Phases {
		names = append(names, fmt.Sprintf("%s %d-%d", p.Name, (p.StartNS-origin)/second, (p.EndNS-origin)/second))
	}
	want := []string{"profiling 0-8", "a 1-3", "b 3-5", "a 5-8"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
}

// busyRun is a run of several targets with all kinds of series and failures.
func busyRun(seed uint64, targets int) *fakeRun {
	rng := rand.New(rand.NewPCG(seed, 1))
	f := newFake()
	for i := range targets {
		f.Polled = append(f.Polled, newFake(fmt.Sprintf("http://t%d/metrics", i)).Polled...)
		count, sum, buckets := 0, 0.0, [3]int{}
		for n := range 60 {
			at := float64(n)/2 + rng.Float64()/10
			switch rng.IntN(12) {
			case 0:
				f.Fail(i, at, metric.Timeout, "deadline passed")
				continue
			case 1:
				count, sum, buckets = 0, 0, [3]int{}
			}
			for range rng.IntN(5) {
				v := rng.Float64() * 3
				count, sum = count+1, sum+v
				for b, le := range []float64{1, 2} {
					if v <= le {
						buckets[b]++
					}
				}
			}
			f.Scrape(i, at, fmt.Sprintf("# TYPE g gauge\ng{x=\"1\"} %v\n# TYPE c counter\nc{y=\"2\"} %d\n# TYPE h histogram\n"+
				"h_bucket{le=\"1\"} %d\nh_bucket{le=\"2\"} %d\nh_bucket{le=\"+Inf\"} %d\nh_sum %v\nh_count %d\n",
				rng.IntN(3), count*7, buckets[0], buckets[1], count, sum, count))
		}
	}
	f.Info.Warmup, f.Info.Timeout = 5*time.Second, time.Second
	return f.Mark(0.3, "warmup").Mark(5.3, "profiling").Mark(26, "end")
}

// TestLive checks that a builder that is fed while the run goes on, concurrently
// and asked for results on the way, ends with the tree of the recording.
func TestLive(t *testing.T) {
	for seed := range uint64(6) {
		for _, o := range []summary.Options{{}, {Slice: time.Second}, {Window: window.Ref{Cooldown: ptr(3 * time.Second)}},
			{Window: window.Ref{Warmup: ptr(8 * time.Second)}}, {Resets: 1}} {
			f := busyRun(seed, 3)
			var load *summary.Load // its own
			if seed%2 == 1 {
				load = summary.NewLoad(embedded(t))
			}
			live, err := feedLive(f, o, load)
			if err != nil {
				t.Fatal(err)
			}
			if diff := treeDiff(build(t, o, f), live); diff != "" {
				t.Fatalf("seed %d, options %+v: recorded (-) and live (+) differ:\n%s", seed, o, diff)
			}
		}
	}
}

// TestLiveLoad has a builder take what another one found of the traffic: the window is that of one that looks itself,
// and it looks at no poll.
func TestLiveLoad(t *testing.T) {
	f := recordedLoad(newServed(3, 20), 2, .333, 1)
	load := summary.NewLoad(embedded(t))
	var got []*summary.Run
	for _, l := range []*summary.Load{nil, load} {
		r, err := feedLive(f, summary.Options{}, l)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	if got[0].Window.Resolved.Rule != window.Traffic {
		t.Errorf("the window is of %s", got[0].Window.Resolved.Rule)
	}
	if diff := treeDiff(got[0], got[1]); diff != "" {
		t.Errorf("its own traffic (-) and that of another one (+) differ:\n%s", diff)
	}
	blind := summary.NewLoad(embedded(t))
	b, err := summary.NewBuilder(f.Info, f.Targets(), summary.Options{}, blind)
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Polled[0].Polls {
		if err := b.Add(&f.Polled[0].Polls[i]); err != nil {
			t.Fatal(err)
		}
	}
	if found := blind.Found(); found.LastNS != 0 {
		t.Errorf("the builder looked for traffic: %+v", found)
	}
}

// feedLive delivers a run in the order of its times, each target's polls of a
// second in a goroutine of its own.
func feedLive(f *fakeRun, o summary.Options, load *summary.Load) (*summary.Run, error) {
	b, err := summary.NewBuilder(f.Info, f.Targets()[:1], o, load)
	if err != nil {
		return nil, err
	}
	for i, t := range f.Targets()[1:] { // as if they came later
		if n := b.AddTarget(t); n != i+1 {
			return nil, fmt.Errorf("target %d was added as %d", i+1, n)
		}
	}
	next, marks := make([]int, len(f.Polled)), f.Phases
	last := int64(0)
	for now := origin; now < origin+40*second; now += second / 4 {
		errs := make([]error, len(f.Polled))
		var wg sync.WaitGroup
		for i, t := range f.Polled {
			from := next[i]
			for next[i] < len(t.Polls) && t.Polls[next[i]].AtNS() < now {
				last = max(last, t.Polls[next[i]].AtNS())
				next[i]++
			}
			polls := t.Polls[from:next[i]]
			wg.Go(func() {
				for n := range polls {
					s := polls[n]
					if load != nil { // which goes before
						if _, err := load.Add(&s); err != nil {
							errs[i] = err
						}
					}
					errs[i] = errors.Join(errs[i], b.Add(&s))
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		for len(marks) > 0 && marks[0].AtNS < now { // marks come a little late
			b.Mark(marks[0])
			marks = marks[1:]
		}
		if _, err := b.Result(now); err != nil {
			return nil, err
		}
	}
	return b.Result(last)
}

func TestLiveRefuses(t *testing.T) {
	for _, o := range []summary.Options{{Window: named("x")}, {Window: part("1s..")}, {Estimator: "magic"}} {
		if _, err := summary.NewBuilder(newFake().Info, nil, o, nil); err == nil {
			t.Errorf("options %+v: no error", o)
		}
	}
	f := line(3, "u")
	b, err := summary.NewBuilder(f.Info, f.Targets(), summary.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Add(&metric.Snapshot{Target: 1}); err == nil {
		t.Error("a target that does not exist: no error")
	}
	if err := b.Add(&metric.Snapshot{Outcome: metric.Outcomes}); err == nil {
		t.Error("an outcome that does not exist: no error")
	}
	b.Mark(metric.Mark{Name: "profiling", AtNS: origin + second})
	b.Mark(metric.Mark{Name: "profiling", AtNS: origin})
	for i := range f.Polled[0].Polls {
		if err := b.Add(&f.Polled[0].Polls[i]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Result(origin + 3*second); err == nil || !strings.Contains(err.Error(), "moved the start") {
		t.Errorf("a mark before the window: got error %v", err)
	}
}

// TestLiveBusyAfterwards has a level that is above 0 from the first poll on and falls to 0 when the window has begun:
// only then it tells of requests before the first poll. What was folded stays.
func TestLiveBusyAfterwards(t *testing.T) {
	f := newFake("u")
	for i := range 20 {
		running := max(0, 10-i)
		f.Scrape(0, float64(i), fmt.Sprintf("# TYPE vllm:num_requests_running gauge\n"+
			"vllm:num_requests_running{model_name=\"m\",engine=\"0\"} %d\n# TYPE vllm:request_success counter\n"+
			"vllm:request_success_total{model_name=\"m\",engine=\"0\",finished_reason=\"stop\"} %d\n", running, max(0, 5*(i-2))))
	}
	b, err := summary.NewBuilder(f.Info, f.Targets(), summary.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Mark(metric.Mark{Name: metric.PhaseProfiling, AtNS: origin, Kind: metric.MarkOwn})
	for i := range f.Polled[0].Polls {
		if err := b.Add(&f.Polled[0].Polls[i]); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Result(origin + int64(i+1)*second); err != nil {
			t.Fatalf("after poll %d: %v", i, err)
		}
	}
}

// TestLiveShortAtFirst has first requests that are over at the next poll, and more afterwards: that the traffic so far
// is shorter than the warm-up leaves no window empty.
func TestLiveShortAtFirst(t *testing.T) {
	f := newFake("u")
	for i := range 20 {
		n := 4 * i
		f.Scrape(0, float64(i), fmt.Sprintf("# TYPE vllm:e2e_request_latency_seconds histogram\n"+
			"vllm:e2e_request_latency_seconds_bucket{model_name=\"m\",engine=\"0\",le=\"1\"} %[1]d\n"+
			"vllm:e2e_request_latency_seconds_bucket{model_name=\"m\",engine=\"0\",le=\"+Inf\"} %[1]d\n"+
			"vllm:e2e_request_latency_seconds_sum{model_name=\"m\",engine=\"0\"} %[2]g\n"+
			"vllm:e2e_request_latency_seconds_count{model_name=\"m\",engine=\"0\"} %[1]d\n", n, 0.3*float64(n)))
	}
	warmup := 5 * time.Second
	b, err := summary.NewBuilder(f.Info, f.Targets(), summary.Options{Window: window.Ref{Warmup: &warmup}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Mark(metric.Mark{Name: metric.PhaseWarmup, AtNS: origin})
	for i := range f.Polled[0].Polls {
		if err := b.Add(&f.Polled[0].Polls[i]); err != nil {
			t.Fatal(err)
		}
	}
	r, err := b.Result(origin + 19*second)
	if err != nil || len(r.Metrics) != 1 {
		t.Errorf("%d metrics, %v", len(r.Metrics), err)
	}
}

// TestLiveWithoutMarks checks that a builder that is never told of a mark does
// not hold polls back for ever.
func TestLiveWithoutMarks(t *testing.T) {
	f := line(400, "u")
	b, err := summary.NewBuilder(f.Info, f.Targets(), summary.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Polled[0].Polls {
		if err := b.Add(&f.Polled[0].Polls[i]); err != nil {
			t.Fatal(err)
		}
	}
	r, err := b.Result(origin + 399*second)
	if err != nil {
		t.Fatal(err)
	}
	if diff := treeDiff(build(t, summary.Options{}, f), r); diff != "" {
		t.Errorf("recorded (-) and live (+) differ:\n%s", diff)
	}
}

// brokenRun fails to read one of its targets.
type brokenRun struct {
	*fakeRun
	err error
}

func (b brokenRun) Snapshots(ctx context.Context, target int) iter.Seq2[*metric.Snapshot, error] {
	if target == 1 {
		return func(yield func(*metric.Snapshot, error) bool) { yield(nil, b.err) }
	}
	return b.fakeRun.Snapshots(ctx, target)
}

func TestReadError(t *testing.T) {
	broken := errors.New("page 7 is damaged")
	for _, cooldown := range []time.Duration{0, time.Second} {
		f := busyRun(1, 3)
		f.Phases = f.Phases[:2]
		f.Info.Cooldown = cooldown
		_, err := summary.Build(context.Background(), []summary.Recording{brokenRun{f, broken}}, summary.Options{})
		if !errors.Is(err, broken) {
			t.Errorf("cool-down %v: got error %v", cooldown, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := summary.Build(ctx, []summary.Recording{busyRun(1, 2)}, summary.Options{}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: got error %v", err)
	}
}

// TestDamaged checks that a recording whose polls refer to nothing is refused.
func TestDamaged(t *testing.T) {
	for name, damage := range map[string]func(*metric.Snapshot){
		"growth": func(s *metric.Snapshot) { s.DictDelta.Series = []metric.Series{{Family: 99}} },
		"slot":   func(s *metric.Snapshot) { s.Delta = metric.Delta{Full: true, Slots: []uint32{99}, Bits: []uint64{0}} },
		"order":  func(s *metric.Snapshot) { s.FirstByteNS -= 100 * second },
	} {
		f := line(5, "http://a/metrics")
		damage(&f.Polled[0].Polls[3])
		if _, err := tryBuild(summary.Options{}, f); err == nil || !strings.Contains(err.Error(), "http://a/metrics") {
			t.Errorf("damaged %s: got error %v, want one that names the target", name, err)
		}
	}
}

// The number of processors shows in the time alone, never in a result.
func TestBuildOnAnyNumberOfProcessors(t *testing.T) {
	f := loadedRun(2, 100, 12, 9)
	o := summary.Options{Estimator: "refined", Slice: 5 * time.Second, SliceQuantiles: true, By: []string{}}
	var want *summary.Run
	for _, procs := range []int{1, 2, 5} {
		before := runtime.GOMAXPROCS(procs)
		got := build(t, o, f)
		runtime.GOMAXPROCS(before)
		if want == nil {
			want = got
		}
		if len(got.Metrics) != 12 || got.Metrics[0].Series[0].Histogram.Quantiles == nil {
			t.Fatalf("%d processors: %d metrics, want 12 with quantiles", procs, len(got.Metrics))
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(metric.Labels{}), cmpopts.EquateNaNs(),
			cmpopts.IgnoreFields(summary.Options{}, "Catalog")); d != "" {
			t.Errorf("%d processors (-1 processor, +this):\n%s", procs, d)
		}
	}
}

// A build that is called off does not go on estimating.
func TestBuildCalledOff(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := summary.Build(ctx, []summary.Recording{loadedRun(1, 60, 12, 9)}, summary.Options{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
