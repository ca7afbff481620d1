package traffic_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/internal/testkit/fakerun"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/window/traffic"
)

// request is one of a simulated load, in seconds.
type request struct{ from, to float64 }

// openLoop issues requests at a rate, whatever the server does; closedLoop keeps so many under way.
func openLoop(r *rand.Rand, rate, latency float64, n int) (out []request) {
	at := 20 + r.Float64()
	for range n {
		out = append(out, request{at, at + latency*(.5+r.Float64())})
		at += r.ExpFloat64() / rate
	}
	return out
}

func closedLoop(r *rand.Rand, users int, latency, lasts float64) (out []request) {
	begin := 20 + r.Float64()
	for range users {
		for at := begin; at < begin+lasts; {
			to := at + latency*(.5+r.Float64())
			out = append(out, request{at, to})
			at = to
		}
	}
	return out
}

// polled shows a detector the load as a server would that is polled at an interval, and returns what it found with the
// first issue and the last end.
func polled(t *testing.T, r *rand.Rand, load []request, interval float64, levels bool) (_ traffic.Traffic,
	begin, end float64) {
	t.Helper()
	kind := "ends"
	if levels {
		kind = "vllm"
	}
	d, s := traffic.NewDetector(own(t), nil), newServer(kind)
	begin = math.Inf(1)
	for _, q := range load {
		begin, end = min(begin, q.from), max(end, q.to)
	}
	for at := r.Float64() * interval; at < end+4*interval; at += interval * (1 + .05*r.Float64()) {
		done, took, running := 0.0, 0.0, 0.0
		for _, q := range load {
			switch {
			case q.to <= at:
				done, took = done+1, took+q.to-q.from
			case q.from <= at:
				running++
			}
		}
		add(t, d, s.poll(int64((at-.005)*1e9), int64((at+.005)*1e9), done, took, running))
	}
	return traffic.Find([]*traffic.Detector{d}), begin, end
}

// The study of the design document: the true duration lies within the bounds in all runs, and the estimate is off by
// little on average.
func TestLoadShapes(t *testing.T) {
	shapes := map[string]func(*rand.Rand) []request{}
	for _, rate := range []float64{.5, 2, 10, 100} {
		for _, latency := range []float64{.1, 1, 6} {
			shapes[fmt.Sprintf("open %v/s of %v s", rate, latency)] = func(r *rand.Rand) []request {
				return openLoop(r, rate, latency, int(max(12, min(600, rate*25))))
			}
		}
	}
	for _, users := range []int{1, 8, 64} {
		for _, latency := range []float64{.2, 2} {
			shapes[fmt.Sprintf("%d users, %v s", users, latency)] = func(r *rand.Rand) []request {
				return closedLoop(r, users, latency, 25)
			}
		}
	}
	const seeds = 30
	runs, outside, probes := 0, 0, 0
	for name, shape := range shapes {
		for _, levels := range []bool{true, false} {
			bias := 0.0
			for seed := range uint64(seeds) {
				r := rand.New(rand.NewPCG(seed, 7))
				got, begin, end := polled(t, r, shape(r), .333, levels)
				start, ok := got.Start()
				stop, _ := got.End()
				if !ok {
					t.Fatalf("%s, seed %d: no traffic", name, seed)
				}
				if len(got.Probes) > 0 { // a slow load that pauses after its first request looks like a probe
					probes++
					continue
				}
				at := func(ns int64) float64 { return float64(ns) / 1e9 }
				runs++
				if truth := end - begin; truth < at(stop.LowNS-start.HighNS)-1e-6 || truth > at(stop.HighNS-start.LowNS)+1e-6 {
					outside++
					t.Errorf("%s, levels %v, seed %d: %.3f s outside %.3f .. %.3f", name, levels, seed, truth,
						at(stop.LowNS-start.HighNS), at(stop.HighNS-start.LowNS))
				}
				bias += (at(stop.AtNS-start.AtNS)/(end-begin) - 1) / seeds
			}
			if math.Abs(bias) > .015 {
				t.Errorf("%s, levels %v: the duration is %.2f %% off on average", name, levels, 100*bias)
			}
		}
	}
	if probes*50 > runs {
		t.Errorf("%d of %d loads lost a request as a probe", probes, runs)
	}
	t.Logf("%d runs, %d outside the bounds, %d with probes", runs, outside, probes)
}

// A level that was above 0 from the first poll on tells nothing, until it falls to 0: then the server was busy all the
// time. One that never falls is not traffic.
func TestLevelsFromTheStart(t *testing.T) {
	stuck, busy := traffic.NewDetector(own(t), nil), traffic.NewDetector(own(t), nil)
	a, b := newServer("vllm"), newServer("vllm")
	for k := range int64(60) {
		at := 1e9 + k*333e6
		add(t, stuck, a.poll(at-1e6, at, 5, 5, 1))
		running := 2.0
		if k > 20 {
			running = 0
		}
		add(t, busy, b.poll(at-1e6, at, float64(min(k, 21)), float64(min(k, 21)), running))
	}
	if got := traffic.Find([]*traffic.Detector{stuck}); len(got.Segments) != 0 {
		t.Errorf("a level that is always 1 is traffic: %+v", got)
	}
	got := traffic.Find([]*traffic.Detector{busy})
	if len(got.Segments) != 1 || !got.BusyAtStart || got.BusyAtEnd || got.Segments[0].Start.AtNS != 999e6 ||
		got.Segments[0].End.LowNS < 1e9+19*333e6 || got.Segments[0].End.HighNS > 1e9+22*333e6 {
		t.Errorf("a server that was busy from the start: %+v", got)
	}
}

// Acceptance row 20: a restart is activity; the load is one segment when the server is back within 5 s, else two.
func TestRestartWithinTheLoad(t *testing.T) {
	for away, want := range map[int64]int{9: 1, 14: 1, 15: 2, 60: 2} { // polls of 333 ms; 15 of them is the first at 5 s
		d, s := traffic.NewDetector(own(t), nil), newServer("vllm")
		for k := range int64(120) {
			at := 1e9 + k*333e6
			n := float64(max(0, k-10))
			if k >= 50 && k < 50+away {
				continue // it does not answer
			}
			if k >= 50 {
				n = float64(k - 50 - away)
			}
			add(t, d, s.poll(at-1e6, at, min(n, 100), min(n, 100)/2, 1))
		}
		if got := traffic.Find([]*traffic.Detector{d}); len(got.Segments) != want {
			t.Errorf("%d polls away: %d segments, want %d", away, len(got.Segments), want)
		}
	}
}

// Several targets count together, and names are believed only where no target is known.
func TestTargetsTogether(t *testing.T) {
	bodies := []struct{ at0, moved string }{
		{"# TYPE vllm:request_success counter\nvllm:request_success 0\n",
			"# TYPE vllm:request_success counter\nvllm:request_success 4\n"},
		{"# TYPE my_requests counter\nmy_requests 0\n", "# TYPE my_requests counter\nmy_requests 9\n"},
	}
	run := fakerun.New("a", "b")
	var ds []*traffic.Detector
	for i, b := range bodies {
		ds = append(ds, traffic.NewDetector(own(t), nil))
		for k := range 40 {
			body := b.at0
			if k >= 10+10*i {
				body = b.moved
			}
			add(t, ds[i], run.Scrape(i, float64(k), body))
		}
	}
	at := func(ds ...*traffic.Detector) (out []int64) {
		got := traffic.Find(ds)
		for _, s := range slices.Concat(got.Segments, got.Probes) {
			out = append(out, (s.Start.HighNS-fakerun.Origin)/fakerun.Second)
		}
		return out
	}
	if got := at(ds...); !slices.Equal(got, []int64{10}) {
		t.Errorf("both: traffic at %v", got)
	}
	if got := at(ds[1]); !slices.Equal(got, []int64{20}) {
		t.Errorf("the unknown one alone: traffic at %v", got)
	}
}

func TestEvidence(t *testing.T) {
	label := func(name, v string) metric.Labels { return metric.NewLabels(metric.Label{Name: name, Value: v}) }
	var none metric.Labels
	for _, c := range []struct {
		family string
		kind   metric.Type
		labels metric.Labels
		tier   traffic.Tier
		level  bool
	}{
		{"vllm:request_success", metric.Counter, none, traffic.Known, false},
		{"vllm:generation_tokens", metric.Counter, none, traffic.Known, false},
		{"vllm:iteration_tokens_total", metric.Histogram, none, traffic.None, false},
		{"vllm:num_requests_running", metric.Gauge, none, traffic.Known, true},
		{"vllm:kv_cache_usage_perc", metric.Gauge, none, traffic.None, false},
		{"Requests2XX", metric.Counter, none, traffic.None, false},
		{"ts_inference_requests", metric.Counter, none, traffic.Known, false},
		{"http_requests", metric.Counter, label("handler", "/v1/completions"), traffic.HTTP, false},
		{"http_requests", metric.Counter, label("handler", "/tokenize"), traffic.None, false},
		{"http_requests", metric.Counter, label("handler", "/v1/models"), traffic.None, false},
		{"http_request_duration_seconds", metric.Histogram, label("path", "/v2/models/m/infer"), traffic.HTTP, false},
		{"http_request_duration_highr_seconds", metric.Histogram, none, traffic.None, false},
		{"bentoml_service_request", metric.Counter, label("endpoint", "/classify"), traffic.Known, false},
		{"my_service_request", metric.Counter, label("endpoint", "/classify"), traffic.Generic, false},
		{"bentoml_service_request", metric.Counter, label("endpoint", "/healthz"), traffic.None, false},
		{"bentoml_service_request_in_progress", metric.Gauge, none, traffic.Known, true},
		{"my_service_request_in_progress", metric.Gauge, none, traffic.None, false},
		{"promhttp_metric_handler_requests", metric.Counter, none, traffic.None, false},
		{"my_queries", metric.Counter, none, traffic.Generic, false},
		{"my_errors", metric.Counter, none, traffic.None, false},
		{"lmcache:num_hit_tokens", metric.Counter, none, traffic.None, false},
		{"DCGM_FI_DEV_GPU_UTIL", metric.Gauge, none, traffic.None, false},
		{"process_cpu_seconds", metric.Counter, none, traffic.None, false},
	} {
		tier, level := traffic.Evidence(own(t), &metric.Family{Name: c.family, Type: c.kind}, c.labels)
		if tier != c.tier || level != c.level && tier != traffic.None {
			t.Errorf("%s%v: tier %d, level %v", c.family, c.labels, tier, level)
		}
	}
}

// A poll that brings nothing new into the dictionary costs no memory, however long the run is.
func TestAllocations(t *testing.T) {
	d, s := traffic.NewDetector(own(t), nil), newServer("vllm")
	k := int64(0)
	next := func() *metric.Snapshot {
		k++
		running := 0.0
		if k%60 < 20 { // a segment every 20 s
			running = 1
		}
		return s.poll(k*333e6, k*333e6+1e6, float64(k), float64(k)/3, running)
	}
	for range 100 {
		add(t, d, next())
	}
	polls := []*metric.Snapshot{}
	for range 50 {
		polls = append(polls, next().Clone())
	}
	if n := testing.AllocsPerRun(20, func() {
		for _, p := range polls {
			add(t, d, p)
		}
	}); n > 0 {
		t.Errorf("%v allocations in %d polls", n, len(polls))
	}
}
