package summary_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/testkit/fakerun"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// served is a load of requests that come at random, 8 a second, from 10 s to 30 s after COMMAND's start at 1 s.
type served struct{ from, to []float64 }

func newServed(seed uint64, lasts float64) (out served) {
	r := rand.New(rand.NewPCG(seed, 3))
	for at := 11.0; at < 11+lasts; at += r.ExpFloat64() / 8 {
		out.from, out.to = append(out.from, at), append(out.to, at+.2+.4*r.Float64())
	}
	return out
}

// ends is when the last request is answered.
func (l *served) ends() (end float64) {
	for _, to := range l.to {
		end = max(end, to)
	}
	return end
}

// body is what a vLLM server of the load shows at a time.
func (l *served) body(at float64) string {
	done, took, running := 0, 0.0, 0
	for i, from := range l.from {
		switch {
		case l.to[i] <= at:
			done, took = done+1, took+l.to[i]-from
		case from <= at:
			running++
		}
	}
	return fmt.Sprintf("# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=\"m\"} %d\n"+
		"# TYPE vllm:request_success counter\nvllm:request_success{model_name=\"m\"} %d\n"+
		"# TYPE vllm:e2e_request_latency_seconds histogram\n"+
		"vllm:e2e_request_latency_seconds_bucket{model_name=\"m\",le=\"+Inf\"} %d\n"+
		"vllm:e2e_request_latency_seconds_sum{model_name=\"m\"} %v\n"+
		"vllm:e2e_request_latency_seconds_count{model_name=\"m\"} %d\n", running, done, done, took, done)
}

// recordedLoad is a run of COMMAND from 1 s to the end of the load, whose targets are polled at intervals.
func recordedLoad(l served, settle float64, intervals ...float64) *fakeRun {
	f := newFake()
	end := l.ends() + .05
	for i, every := range intervals {
		f.Polled = append(f.Polled, newFake(fmt.Sprintf("http://t%d/metrics", i)).Polled...)
		for at := .9; at < end; at += every {
			f.Scrape(i, at, l.body(at))
		}
		for at := end + .001; at <= end+settle+.002; at += every {
			f.Scrape(i, at, l.body(at))
		}
	}
	at := func(s float64) int64 { return fakerun.Origin + int64(s*float64(second)) }
	f.Phases = []metric.Mark{{Name: "profiling", AtNS: at(1), Kind: metric.MarkOwn},
		{Name: "end", AtNS: at(end), Kind: metric.MarkOwn}}
	return f
}

// rateOf is the rate of the requests of a target.
func rateOf(t *testing.T, r *summary.Run, endpoint int) float64 {
	t.Helper()
	for i := range r.Metrics {
		for _, s := range r.Metrics[i].Series {
			if r.Metrics[i].Name == "vllm:request_success" && s.Endpoint == endpoint {
				return s.Counter.Rate
			}
		}
	}
	t.Fatal("no requests")
	return 0
}

// Acceptance row 12 of the design document windows.md: a load that begins late has the rate of the load, less a warm-up
// that counts from its first request, however long polling goes on after it.
func TestLateLoad(t *testing.T) {
	for seed := range uint64(8) {
		load := newServed(seed, 20)
		for _, warmup := range []time.Duration{0, 5 * time.Second} {
			o := summary.Options{Window: window.Ref{Warmup: &warmup}}
			rates := map[float64]float64{}
			for _, settle := range []float64{0, 2, 10} {
				r := build(t, o, recordedLoad(load, settle, .333))
				rates[settle] = rateOf(t, r, 0)
				seconds, low, high := r.Window.Resolved.Bounds()
				truth := load.ends() - load.from[0] - warmup.Seconds()
				if math.Abs(seconds-truth) > .35 || warmup == 0 && (truth < low || truth > high) {
					t.Errorf("seed %d, warm-up %v, settle %v: %v s (%v to %v), want %v", seed, warmup, settle, seconds, low,
						high, truth)
				}
				from, n := load.from[0], 0.0
				if warmup > 0 { // counted from the poll nearest to its end
					from = float64(r.Window.Resolved.End.AtNS-fakerun.Origin)/1e9 - r.Endpoints[0].Seconds
				}
				if math.Abs(from-load.from[0]-warmup.Seconds()) > .333 {
					t.Errorf("seed %d, warm-up %v: counted from %v s on, the first request came at %v", seed, warmup, from,
						load.from[0])
				}
				for _, to := range load.to {
					if to > from {
						n++
					}
				}
				if want := n / (load.ends() - from); math.Abs(rates[settle]-want) > max(.01*want, 1/truth) {
					t.Errorf("seed %d, warm-up %v, settle %v: %v requests/s, the load says %v", seed, warmup, settle, rates[settle],
						want)
				}
			}
			if a, b, c := rates[0], rates[2], rates[10]; math.Abs(a/b-1) > .001 || math.Abs(c/b-1) > .001 {
				t.Errorf("seed %d, warm-up %v: settle changes the rate: %v", seed, warmup, rates)
			}
		}
	}
}

// Acceptance row 13: the same server as two targets that are polled at different intervals has one rate.
func TestTwoIntervals(t *testing.T) {
	for seed := range uint64(8) {
		r := build(t, summary.Options{}, recordedLoad(newServed(seed, 40), 2.1, .333, 2))
		if a, b := rateOf(t, r, 0), rateOf(t, r, 1); math.Abs(a/b-1) > .01 {
			t.Errorf("seed %d: %v and %v requests/s", seed, a, b)
		}
		if r.Endpoints[0].Seconds != r.Endpoints[1].Seconds {
			t.Errorf("seed %d: %v and %v seconds", seed, r.Endpoints[0].Seconds, r.Endpoints[1].Seconds)
		}
	}
}

// Acceptance row 14: Little's law: the mean level is the rate times the mean time of a request.
func TestLittlesLaw(t *testing.T) {
	for seed := range uint64(4) {
		r := build(t, summary.Options{}, recordedLoad(newServed(seed, 60), 2, .05))
		var level, latency float64
		for i := range r.Metrics {
			switch s := r.Metrics[i].Series[0]; r.Metrics[i].Name {
			case "vllm:num_requests_running":
				level = s.Gauge.TimeAvg
			case "vllm:e2e_request_latency_seconds":
				latency = s.Histogram.Avg
			}
		}
		if want := rateOf(t, r, 0) * latency; math.Abs(level/want-1) > .05 {
			t.Errorf("seed %d: %v requests run, rate times latency is %v", seed, level, want)
		}
	}
}

// A window of segments has neither the time between them nor the levels that stood then.
func TestSegmentsLeaveOutGaps(t *testing.T) {
	a, b := newServed(1, 15), newServed(2, 15)
	for i := range b.from {
		a.from, a.to = append(a.from, b.from[i]+40), append(a.to, b.to[i]+40)
	}
	run := recordedLoad(a, 2, .05)
	of := func(selector string) (seconds, rate, level, latency float64) {
		r := build(t, summary.Options{Window: part(selector)}, run)
		seconds, _, _ = r.Window.Resolved.Bounds()
		for i := range r.Metrics {
			switch s := r.Metrics[i].Series[0]; r.Metrics[i].Name {
			case "vllm:num_requests_running":
				level = s.Gauge.TimeAvg
			case "vllm:e2e_request_latency_seconds":
				latency = s.Histogram.Avg
			}
		}
		return seconds, rateOf(t, r, 0), level, latency
	}
	whole, _, diluted, _ := of("traffic")
	seconds, rate, level, latency := of("segments")
	if whole-seconds < 20 || math.Abs(rate-8) > 1.5 || math.Abs(level/(rate*latency)-1) > .05 || diluted > .7*level {
		t.Errorf("segments: %v of %v s, %v requests/s, level %v (%v with the gap), latency %v", seconds, whole, rate, level,
			diluted, latency)
	}
	first, one, _, _ := of("segment/1")
	if second, two, _, _ := of("segment/2"); math.Abs(first+second-seconds) > .01 ||
		math.Abs(one*first+two*second-rate*seconds) > 1e-6 {
		t.Errorf("%v + %v s with %v + %v requests, together %v s with %v", first, second, one*first, two*second, seconds,
			rate*seconds)
	}
}

// Acceptance row 20: a server that restarts in the middle of the load, so that its counters fall, has one segment where
// it is back within 5 s, else two. What it showed before and shows after that counts. Being back is activity also when
// the next request comes later.
func TestRestartInTheLoad(t *testing.T) {
	for _, c := range []struct {
		away, idle float64
		want       int
	}{{4, 0, 1}, {4.5, 4, 1}, {6.5, 0, 2}, {20, 0, 2}} {
		load, again := newServed(3, 15), newServed(4, 15)
		down, shown := load.ends()-2, 0
		back := down + c.away
		for i := range again.from {
			again.from[i], again.to[i] = again.from[i]+back+c.idle-11, again.to[i]+back+c.idle-11
		}
		f := newFake("http://a/metrics").Mark(1, "warmup").Mark(1, "profiling").Mark(again.ends()+1, "end")
		f.Phases[0].Kind, f.Phases[1].Kind = metric.MarkOwn, metric.MarkOwn
		began := "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %v\n"
		for at := .9; at < again.ends()+2; at += .25 {
			switch {
			case at < down:
				f.Scrape(0, at, load.body(at)+fmt.Sprintf(began, 1_690_000_000))
				shown = 0
				for _, to := range load.to {
					if to <= at {
						shown++
					}
				}
			case at < back:
				f.Fail(0, at, metric.ConnectError, "refused")
			default:
				f.Scrape(0, at, again.body(at)+fmt.Sprintf(began, 1_700_000_000+math.Floor(down)))
			}
		}
		r := build(t, summary.Options{}, f)
		w := r.Window.Resolved
		if got := len(w.Traffic.Segments); got != c.want || len(w.Traffic.Probes) > 0 {
			t.Errorf("%v s away: %d segments, want %d: %+v", c.away, got, c.want, w.Traffic)
		}
		seconds, low, high := w.Bounds()
		if n, truth := rateOf(t, r, 0)*seconds, again.ends()-load.from[0]; truth < low || truth > high ||
			math.Abs(n-float64(shown+len(again.from))) > 1e-6 {
			t.Errorf("%v s away: %v requests in %v s, want %d in %v s", c.away, n, seconds, shown+len(again.from), truth)
		}
	}
}

// A server that lost count of a request shows it to the end, a minute after the load: nothing tells that from a request
// of a minute, so the window is long, and that is told.
func TestRequestThatStands(t *testing.T) {
	load := newServed(5, 20)
	for _, stands := range []bool{true, false} {
		f := newFake("http://a/metrics").Mark(1, "profiling").Mark(load.ends()+60, "end")
		f.Phases[0].Kind, f.Phases[1].Kind = metric.MarkOwn, metric.MarkOwn
		for at := .9; at < load.ends()+61; at += .25 {
			body := load.body(at)
			if stands && at > load.from[0] {
				body = strings.Replace(body, "running{model_name=\"m\"} 0", "running{model_name=\"m\"} 1", 1)
			}
			f.Scrape(0, at, body)
		}
		r := build(t, summary.Options{}, f)
		told := slices.ContainsFunc(r.Warnings, func(w metric.Warning) bool { return w.Code == "load_stands" })
		if seconds, _, _ := r.Window.Resolved.Bounds(); told != stands || seconds > 70 != stands {
			t.Errorf("a request stands: %v; told: %v, %v s", stands, told, seconds)
		}
	}
}

// A server that restarts in the last second of the load, which only values tell: the bounds hold what lasted, or the
// numbers are not certain.
func TestRestartAtTheEndOfTheLoad(t *testing.T) {
	certain := 0
	for seed := range uint64(200) {
		load, again := newServed(seed, 20), served{}
		down := load.ends() - .1 - 1.2*rand.New(rand.NewPCG(seed, 9)).Float64()
		truth, shown := 0.0, 0.0 // when the last request ended that some process answered, and how many polls showed
		f := newFake("http://a/metrics").Mark(1, "profiling").Mark(load.ends()+6, "end")
		f.Phases[0].Kind, f.Phases[1].Kind = metric.MarkOwn, metric.MarkOwn
		last := .9 + .333*math.Floor((down-.9)/.333)
		for i, to := range load.to {
			if load.from[i] > down {
				again.from, again.to = append(again.from, load.from[i]), append(again.to, to)
			}
			if to <= last || load.from[i] > down {
				truth, shown = max(truth, to), shown+1
			}
		}
		for at := .9; at < load.ends()+7; at += .333 {
			if at <= down {
				f.Scrape(0, at, load.body(at))
			} else {
				f.Scrape(0, at, again.body(at))
			}
		}
		r := build(t, summary.Options{}, f)
		_, low, high := r.Window.Resolved.Bounds()
		for i := range r.Metrics {
			x := r.Metrics[i].Series[0].Increase
			if r.Metrics[i].Name != "vllm:request_success" || !x.Status.Certain() {
				continue
			}
			certain++
			if length := truth - load.from[0]; length < low || length > high || math.Abs(x.Value-shown) > .01*shown {
				t.Errorf("seed %d: %v requests (%v), want %v; %v to %v s, want %v", seed, x.Value, x.Status, shown, low, high,
					length)
			}
		}
	}
	if certain < 50 {
		t.Errorf("only %d are certain", certain)
	}
}

// What is gained about a mark belongs to one of two phases: all targets are polled at it.
func TestPhasesPartGains(t *testing.T) {
	f := newFake("http://a/metrics").Mark(.5, "low").Mark(4.5, "high").Mark(9, "end")
	for _, at := range []float64{0, .51, 1, 2, 3, 4, 4.51, 5, 6, 7, 8, 9} {
		if s := f.Scrape(0, at, fmt.Sprintf("# TYPE c counter\nc %v\n", 100*at)); at == .51 || at == 4.51 {
			s.Kind = metric.Boundary
		}
	}
	var totals []float64
	for _, phase := range []string{"low", "high"} {
		totals = append(totals, build(t, summary.Options{Window: named(phase)}, f).Metrics[0].Series[0].Counter.Total)
	}
	if math.Abs(totals[0]-400) > 1e-9 || math.Abs(totals[1]-449) > 1e-9 {
		t.Errorf("low and high gained %v", totals)
	}
}

// told is a recording whose clients told of their requests.
type told struct {
	*fakeRun
	first, last int64
	at          rundb.Boundary
}

func (c told) RequestSpan(context.Context, int64, int64) (first, last int64, ok bool, err error) {
	return c.first, c.last, true, nil
}

func (c told) RequestsAt(context.Context, int64) (rundb.Boundary, error) {
	return c.at, nil
}

// What clients told of their requests are the edges, exact ones, unless their clock is another one.
func TestClientsAreEdges(t *testing.T) {
	load := newServed(1, 20)
	run := recordedLoad(load, 2, .333)
	at := func(s float64) int64 { return fakerun.Origin + int64(s*float64(second)) }
	for _, shift := range []float64{0, 30} {
		c := told{run, at(load.from[0] + shift), at(load.ends() + shift), rundb.Boundary{}}
		r, err := summary.Build(t.Context(), []summary.Recording{c}, summary.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := r.Window.Resolved
		exact := w.Start.Kind == window.Event && w.End.Kind == window.Event && w.Start.AtNS == c.first && w.End.AtNS == c.last
		warned := slices.ContainsFunc(r.Warnings, func(x metric.Warning) bool { return x.Code == "clock_offset" })
		if exact != (shift == 0) || warned != (shift != 0) {
			t.Errorf("shift %v: from %+v to %+v, warnings %v", shift, w.Start, w.End, r.Warnings)
		}
		if n := float64(len(load.from)); exact && rateOf(t, r, 0) != n/(float64(c.last-c.first)/1e9) {
			t.Errorf("%v requests/s", rateOf(t, r, 0))
		}
	}
}

// The slices add up to the totals of a phase also where a poll lies exactly on its start: what it shows came before it
// where all targets were polled for the mark, and after the poll before it else.
func TestSlicesAddUp(t *testing.T) {
	body := func(n float64) string {
		return fmt.Sprintf("# TYPE c counter\nc %v\n# TYPE h histogram\nh_bucket{le=\"1\"} %[1]v\nh_bucket{le=\"+Inf\"} "+
			"%[1]v\nh_sum %v\nh_count %[1]v\n# TYPE s summary\ns_sum %[2]v\ns_count %[1]v\n", n, n/2)
	}
	for kind, want := range map[metric.Kind]float64{metric.Periodic: 36 - 1, metric.Boundary: 36 - 4} {
		f := newFake("http://a/metrics").Mark(0, "warmup").Mark(2, "load").Mark(6, "end")
		for at := range 7 {
			if s := f.Scrape(0, float64(at), body(float64(at*at))); at == 2 {
				s.Kind = kind
			}
		}
		r := build(t, summary.Options{Window: named("load"), Slice: 1500 * time.Millisecond}, f)
		var got [3][2]float64
		for i := range r.Metrics {
			switch s := r.Metrics[i].Series[0]; {
			case s.Counter != nil:
				got[0][0] = s.Counter.Total
				for _, x := range s.Counter.Slices {
					got[0][1] += x.Total
				}
			case s.Histogram != nil:
				got[1][0] = float64(s.Histogram.Count)
				for _, x := range s.Histogram.Slices {
					got[1][1] += float64(x.Counts[0])
				}
			case s.Summary != nil:
				got[2][0] = float64(s.Summary.Count)
				for _, x := range s.Summary.Slices {
					got[2][1] += float64(x.Count)
				}
			}
		}
		for i, g := range got {
			if g != [2]float64{want, want} {
				t.Errorf("%v poll, series %d: total %v, slices %v, want %v", kind, i, g[0], g[1], want)
			}
		}
	}
}
