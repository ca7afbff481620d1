package summary_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

// lag is one pattern of how late a server publishes what it observed of a request:
// by a constant, at random, or all at once every so often. It is at most 3 s.
func lag(rng *rand.Rand) func(end float64) float64 {
	most := 3 * rng.Float64()
	switch rng.IntN(3) {
	case 0:
		return func(end float64) float64 { return end + most }
	case 1:
		return func(end float64) float64 { return end + most*rng.Float64() }
	}
	every := max(most, 0.05)
	return func(end float64) float64 { return every * float64(1+int(end/every)) }
}

// lateRun is a run of a warm-up of 50 requests and 80 measured ones, of which the
// server publishes the latencies late. The warm-up ends a pause before the cut, the
// first request of the load ends a start after it.
func lateRun(rng *rand.Rand, pause, start float64) *fakeRun {
	const cut, length = 14.0, 20.0
	publish := lag(rng)
	var at []float64
	for range 50 {
		at = append(at, publish(rng.Float64()*(cut-pause)))
	}
	for range 80 {
		at = append(at, publish(cut+start+rng.Float64()*(length-start)))
	}
	slices.Sort(at)
	f := newFake("http://a/metrics").Mark(0, "warmup").Mark(cut, "profiling").Mark(cut+length, "end")
	f.Info.Settle = 3 * time.Second
	for t := -0.1; t < cut+length+4; t += 0.333 {
		n, _ := slices.BinarySearch(at, t)
		f.Scrape(0, t, fmt.Sprintf("# TYPE vllm:e2e_request_latency_seconds "+
			"histogram\nvllm:e2e_request_latency_seconds_bucket{le=\"1\"} %d\n"+
			"vllm:e2e_request_latency_seconds_bucket{le=\"+Inf\"} %d\n"+
			"vllm:e2e_request_latency_seconds_sum %d\nvllm:e2e_request_latency_seconds_count %d\n", n, n, n, n))
	}
	return f
}

// TestLateObservations splits 100 runs whose server publishes up to 3 s late, as
// in aiperf#1435, after the warm-up: the measured requests are counted exactly, or
// the run warns of its beginning. With a pause of 3 s they are exact.
func TestLateObservations(t *testing.T) {
	exact, wrong, silent := 0, 0, 0
	for n := range 100 {
		rng := rand.New(rand.NewPCG(uint64(n), 1435))
		pause, start := []float64{0, rng.Float64(), 3 * rng.Float64(), 3.4 + rng.Float64()}[n%4], []float64{0, 0, 4}[n%3]
		r := build(t, summary.Options{}, lateRun(rng, pause, start))
		got := int64(0)
		if len(r.Metrics) > 0 {
			got = r.Metrics[0].Series[0].Histogram.Count
		}
		flagged := slices.ContainsFunc(r.Endpoints[0].Warnings,
			func(w metric.Warning) bool { return w.Code == "late_observations" })
		switch {
		case got == 80:
			exact++
		case pause >= 3:
			t.Errorf("pattern %d: %d observations after a pause of %.1f s, want 80", n, got, pause)
		case !flagged:
			t.Errorf("pattern %d: %d observations, want 80, and nothing is said", n, got)
		default:
			wrong++
		}
		if !flagged {
			silent++
		}
	}
	t.Logf("%d exact, %d not and flagged, %d not flagged", exact, wrong, silent)
	if exact < 20 || wrong < 20 || silent < 5 {
		t.Errorf("%d exact, %d not, %d not flagged: the patterns do not try enough", exact, wrong, silent)
	}
	faults.Figure(t, "warm-up", fmt.Sprintf("100 patterns of observations that are published up to 3 s late "+
		"(aiperf#1435) around the end of a warm-up: %d exact, %d told of by the warning late_observations, 0 wrong in "+
		"silence; with a pause of 3 s all exact", exact, wrong),
		"go test ./summary -run TestLateObservations -v")
}

// lateServer is a vLLM server whose level is 0, as nothing is in flight, at the end of a warm-up of 50 requests, and
// which publishes what took one of them 4 s after that.
func lateServer(finished bool) *fakeRun {
	const cut = 14.0
	f := newFake("http://a/metrics").Mark(0, "warmup").Mark(cut, "profiling").Mark(34, "end")
	f.Info.Settle = 2 * time.Second
	for at := -0.1; at < 38; at += 0.333 {
		short, long, done := 0, 0, 0
		for i := range 130 { // 50 up to 10 s, 80 from 20 s on
			end := .2 * float64(i+1)
			if i >= 50 {
				end = 20 + .15*float64(i-49)
			}
			switch {
			case end > at:
			case i == 49 && at < cut+.4: // published late
				done++
			case i == 49:
				long, done = long+1, done+1
			default:
				short, done = short+1, done+1
			}
		}
		running := 0
		if at > 18.5 && at < 32 || at > 0 && at < 10 {
			running = 1
		}
		if !finished {
			done = short + long
		}
		f.Scrape(0, at, fmt.Sprintf("# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running %d\n"+
			"# TYPE vllm:request_success counter\nvllm:request_success %d\n# TYPE vllm:e2e_request_latency_seconds "+
			"histogram\nvllm:e2e_request_latency_seconds_bucket{le=\"0.25\"} %d\n"+
			"vllm:e2e_request_latency_seconds_bucket{le=\"1\"} %d\n"+
			"vllm:e2e_request_latency_seconds_bucket{le=\"2.5\"} %d\n"+
			"vllm:e2e_request_latency_seconds_bucket{le=\"+Inf\"} %d\nvllm:e2e_request_latency_seconds_sum %v\n"+
			"vllm:e2e_request_latency_seconds_count %d\n", running, done, short, short, short+long, short+long,
			.2*float64(short)+2*float64(long), short+long))
	}
	return f
}

// What is proven to be published late belongs to the warm-up, in our numbers; AIPerf's has it where it was published.
func TestLateMoves(t *testing.T) {
	for _, finished := range []bool{false, true} {
		r := build(t, summary.Options{}, lateServer(finished))
		var h *summary.Series
		for i := range r.Metrics {
			if r.Metrics[i].Name == "vllm:e2e_request_latency_seconds" {
				h = &r.Metrics[i].Series[0]
			}
		}
		n := h.Histogram.Buckets[2].Count
		if n != 80 || h.Histogram.Count != 80 || h.AIPerf == nil || h.AIPerf.Histogram.Count != 81 {
			t.Errorf("finished %v: %d observations, AIPerf's %+v, want 80 and 81", finished, h.Histogram.Count, h.AIPerf)
		}
		var warm int64
		for i := range r.Warmup {
			if r.Warmup[i].Name == "vllm:e2e_request_latency_seconds" {
				warm = r.Warmup[i].Series[0].Histogram.Count
			}
		}
		if warm != 50 {
			t.Errorf("finished %v: %d observations of the warm-up, want 50", finished, warm)
		}
		late := r.Endpoints[0].Late
		if len(late) != 1 || late[0].Moved != 1 || late[0].Of != 81 || !late[0].Exact {
			t.Errorf("finished %v: %+v", finished, late)
		}
	}
}

// phaseServer is a TGI server of a phase "low" with 50 requests up to 10 s and, from 14 s on, a phase "high" with 80
// from 20 s on. What the last one of the first phase took, so many seconds, is published late.
type phaseServer struct {
	took, late float64
	level      int  // that it shows at the mark between them
	counts     bool // requests that came and that ended
	open       int  // of them did not end
	clients    bool // told of their requests
}

func (p phaseServer) run() *fakeRun {
	f := newFake("http://a/metrics").Mark(0, "low").Mark(14, "high").Mark(34, "end")
	f.Info.Settle = 2 * time.Second
	for at := -0.1; at < 38; at += 0.333 {
		short, long, ended := 0, 0, 0
		for i := range 130 {
			end, took := .2*float64(i+1), .2
			if i >= 50 {
				end = 20 + .15*float64(i-49)
			}
			if end <= at {
				ended++
			}
			if i == 49 {
				end, took = 14+p.late, p.took
			}
			switch {
			case end > at:
			case took > .5:
				long++
			default:
				short++
			}
		}
		level := p.level
		if at < 0 || at > 32.2 {
			level = 0
		} else if at > 19.9 || at < 10 {
			level = 1
		}
		body := fmt.Sprintf("# TYPE tgi_batch_current_size gauge\ntgi_batch_current_size %d\n# TYPE tgi_request_duration "+
			"histogram\ntgi_request_duration_bucket{le=\"0.25\"} %d\ntgi_request_duration_bucket{le=\"1\"} %d\n"+
			"tgi_request_duration_bucket{le=\"2.5\"} %d\ntgi_request_duration_bucket{le=\"+Inf\"} %d\n"+
			"tgi_request_duration_sum %v\ntgi_request_duration_count %d\n", level, short, short, short+long, short+long,
			.2*float64(short)+p.took*float64(long), short+long)
		if p.counts {
			body += fmt.Sprintf("# TYPE tgi_request_count counter\ntgi_request_count %d\n# TYPE tgi_request_success counter\n"+
				"tgi_request_success %d\n# TYPE tgi_request_failure counter\ntgi_request_failure{err=\"x\"} 1\n", ended+1+p.open,
				ended)
		}
		f.Scrape(0, at, body)
	}
	return f
}

// A phase gains what the next one published of its requests, where clients, counters or levels tell that none was in
// flight at the mark between them and that is proven; else both tell of it. Nothing is lost or counted twice.
func TestLateAtTheEndOfPhases(t *testing.T) {
	for name, c := range map[string]struct {
		phaseServer
		moves bool
	}{
		"levels":                          {phaseServer{took: 2, late: .4}, true},
		"published after --settle":        {phaseServer{took: 3, late: 2.4}, false},
		"a level that lags":               {phaseServer{took: 2, late: .4, level: 1}, false},
		"counters know better than it":    {phaseServer{took: 2, late: .4, level: 1, counts: true}, true},
		"counters have one in flight":     {phaseServer{took: 2, late: .4, counts: true, open: 1}, false},
		"a short request, without proof":  {phaseServer{took: .2, late: .4}, false},
		"a short request, by the counter": {phaseServer{took: .2, late: .4, counts: true}, true},
		"clients know better than levels": {phaseServer{took: .2, late: .4, level: 1, clients: true}, true},
	} {
		counted, aiperf := map[string]int64{}, map[string]int64{}
		for _, phase := range []string{"low", "high"} {
			o := summary.Options{Window: named(phase), Slice: time.Second}
			rec := summary.Recording(c.run())
			if at := func(s float64) int64 { return origin + int64(s*float64(second)) }; c.clients {
				rec = told{rec.(*fakeRun), at(0), at(32), rundb.Boundary{Ended: 50, NextNS: at(19.95), All: 130}}
			}
			r, err := summary.Build(t.Context(), []summary.Recording{rec}, o)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(r.Metrics, func(m summary.Metric) bool { return m.Name == "tgi_request_duration" })
			s, slicesOf := &r.Metrics[i].Series[0], int64(0)
			counted[phase], aiperf[phase] = s.Histogram.Count, s.Histogram.Count
			if s.AIPerf != nil {
				aiperf[phase] = s.AIPerf.Histogram.Count
			}
			for _, x := range s.Histogram.Slices {
				slicesOf += x.Counts[len(x.Counts)-1]
			}
			if slicesOf != s.Histogram.Count {
				t.Errorf("%s: the slices of %s add up to %d, not %d", name, phase, slicesOf, s.Histogram.Count)
			}
			warned := slices.ContainsFunc(r.Endpoints[0].Warnings,
				func(w metric.Warning) bool { return w.Code == "late_observations" })
			if warned == c.moves {
				t.Errorf("%s, %s: warned %v: %v", name, phase, warned, r.Endpoints[0].Warnings)
			}
		}
		moved := int64(0)
		if c.moves {
			moved = 1
		}
		if counted["low"] != 49+moved || counted["high"] != 81-moved || aiperf["low"] != 49 || aiperf["high"] != 81 {
			t.Errorf("%s: %v observations, AIPerf's %v", name, counted, aiperf)
		}
	}
}

// TestLateBounds draws runs whose server publishes what it observed up to 2 s late, with requests of any length in
// flight at the cut and a level that tells of them: the bounds of quantiles hold those of the requests that ended in
// the window, whatever of the gains is of the warm-up.
func TestLateBounds(t *testing.T) {
	const cut, length = 14.0, 20.0
	doubts, outside := 0, 0
	for n := range 60 {
		rng := rand.New(rand.NewPCG(uint64(n), 54))
		publish := lag(rng)
		scale := []float64{0.1, 0.5, 2}[n%3]
		var ends, took, at []float64
		var truth []float64
		for range 60 + rng.IntN(100) {
			begin, duration := rng.Float64()*(cut+length-2), scale*rng.ExpFloat64()
			end := begin + duration
			if at, ends, took = append(at, end+min(2, publish(end)-end)), append(ends, end), append(took, duration); end >= cut {
				truth = append(truth, duration)
			}
		}
		slices.Sort(truth)
		f := newFake("http://a/metrics").Mark(0, "warmup").Mark(cut, "profiling").Mark(cut+length, "end")
		f.Info.Settle = 2 * time.Second
		for now := -0.1; now < cut+length+20; now += 0.333 {
			running, sum := 0, 0.0
			var count [5]int
			for i, end := range ends {
				if begin := end - took[i]; begin <= now && now < end {
					running++
				}
				for b, upper := range []float64{0.25, 0.5, 1, 2.5, math.Inf(1)} {
					if at[i] <= now && took[i] <= upper {
						count[b]++
					}
				}
				if at[i] <= now {
					sum += took[i]
				}
			}
			body := fmt.Sprintf("# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running %d\n"+
				"# TYPE vllm:e2e_request_latency_seconds histogram\n", running)
			for b, upper := range []string{"0.25", "0.5", "1", "2.5", "+Inf"} {
				body += fmt.Sprintf("vllm:e2e_request_latency_seconds_bucket{le=%q} %d\n", upper, count[b])
			}
			f.Scrape(0, now, body+fmt.Sprintf("vllm:e2e_request_latency_seconds_sum %v\n"+
				"vllm:e2e_request_latency_seconds_count %d\n", sum, count[4]))
		}
		for _, estimator := range []string{"polynomial", "linear", "refined"} {
			r := build(t, summary.Options{Estimator: estimator}, f)
			h := r.Metrics[0].Series[0].Histogram
			if doubts += min(1, int(h.Late)); h.Late == h.Count {
				continue
			}
			for i, q := range r.Options.Quantiles {
				want := histest.Quantile(truth, q)
				if e := h.Quantiles[i]; e.Low > want+1e-9 || e.High < want-1e-9 {
					t.Errorf("run %d %s: q %v of %d is %v, outside of %+v; %d of %d may be late", n, estimator, q, len(truth),
						want, e, h.Late, h.Count)
				}
			}
		}
		all := slices.Clone(took[:0:0])
		for i, p := range at {
			if p > cut {
				all = append(all, took[i])
			}
		}
		slices.Sort(all)
		if histest.Quantile(all, 0.5) != histest.Quantile(truth, 0.5) {
			outside++
		}
	}
	if doubts < 60 || outside < 20 {
		t.Errorf("%d results with doubts, %d medians move: nothing is tried", doubts, outside)
	}
}
