package explain_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// healthy are facts of a server at which so many wait beside ten that run, a fifth of each request in the queue then.
func healthy(waiting float64) *explain.Facts {
	line := func(v float64) []float64 { return slices.Repeat([]float64{v}, 20) }
	queue := 0.0
	if waiting > 0 {
		queue = 20
	}
	return &explain.Facts{Engine: "e", Slice: 1, Sums: map[string]explain.Total{"e2e": {Sum: 100, Count: 100},
		"queue": {Sum: queue, Count: 100}, "itl": {Sum: 10, Count: 1000}},
		Replicas: []explain.Replica{{Waiting: line(waiting), KV: line(0.1), Running: line(10)}},
		Beside:   []explain.Quantity{{ID: "client_cpu", Name: "client_cpu_usage", Value: 0.5, Unit: "ratio"}}}
}

// TestClient: the load generator is named where it was busy for most of the window and nobody waited at the server; it
// is never named without that evidence.
func TestClient(t *testing.T) {
	most := func(busy, idle int) []float64 {
		return slices.Concat(slices.Repeat([]float64{0.99}, busy), slices.Repeat([]float64{0.3}, idle))
	}
	hidden := func(told int) []float64 {
		return slices.Concat(most(told, 0), slices.Repeat([]float64{math.NaN()}, 20-told))
	}
	for _, c := range []struct {
		name        string
		cpu, thread []float64
		waiting     float64
		verdict     string // of latency
		throughput  string
		also        bool
	}{
		{"a thread", most(0, 20), most(20, 0), 0, "client", "client", false},
		{"all its CPUs", most(11, 9), nil, 0, "client", "client", false},
		{"for less than half of it", most(9, 11), most(9, 11), 0, "service", "load", false},
		{"idle", most(0, 20), most(0, 20), 0, "service", "load", false},
		{"not recorded", nil, nil, 0, "service", "load", false},
		{"recorded for less than a fourth", hidden(4), hidden(4), 0, "service", "load", false},
		{"recorded for a third", nil, hidden(7), 0, "client", "client", false},
		{"the server had a queue", most(20, 0), most(20, 0), 5, "queue_slots", "queue_slots", true},
	} {
		for why, want := range map[explain.Why]string{explain.Latency: c.verdict, explain.Throughput: c.throughput} {
			f := healthy(c.waiting)
			f.ClientCPU, f.ClientThread = c.cpu, c.thread
			r := explain.Explain(f, explain.DefaultRules(), why)
			also := slices.ContainsFunc(r.Contributing, func(c explain.Contribution) bool { return c.ID == "client" })
			if r.Verdict != want || also != c.also {
				t.Errorf("%s, %s: %s (also %v), want %s (%v)", c.name, why, r.Verdict, also, want, c.also)
			}
			evidence := slices.ContainsFunc(r.Quantities, func(q explain.Quantity) bool { return q.ID == "client_cpu" })
			if evidence != (want == "client") {
				t.Errorf("%s, %s: evidence %v", c.name, why, r.Quantities)
			}
		}
	}
	f := healthy(0)
	f.ClientThread = most(20, 0)
	f.Replicas[0].Waiting = nil // who waits is not shown: the server cannot be ruled out
	r := explain.Explain(f, explain.DefaultRules(), explain.Latency)
	if r.Verdict == "client" || len(r.Contributing) != 1 {
		t.Errorf("without the waiting gauge: %s, %v", r.Verdict, r.Contributing)
	}
}

// TestClientOracle: over any facts the finding is there when, told in another way, the load generator was busy and the
// server had no queue.
func TestClientOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t, false)
		n := f.Replicas
		f.ClientThread = drawLine(t, 40, 1, false)
		f.ClientCPU = drawLine(t, 40, 1.2, false)
		told, busy := map[int]bool{}, map[int]bool{}
		for _, line := range [][]float64{f.ClientThread, f.ClientCPU} {
			for j, v := range line {
				told[j] = told[j] || !math.IsNaN(v)
				busy[j] = busy[j] || v >= 0.6
			}
		}
		tells, yes := 0, 0
		for j := range told {
			if told[j] {
				tells++
			}
			if busy[j] {
				yes++
			}
		}
		rules := explain.DefaultRules()
		rules.Thresholds.ClientBusy = 0.6
		r := explain.Explain(f, rules, explain.Latency)
		named := slices.ContainsFunc(r.Findings, func(x explain.Finding) bool { return x.ID == "client" })
		suspect := tells >= 10 && 2*yes >= tells
		waited, inside := 0.0, 0.0
		if lines := shownSlices(n); lines > 0 {
			for i := range n {
				for j := range lines {
					w, g := number(n[i].Waiting, j), number(n[i].Running, j)
					waited, inside = waited+w, inside+w+g
				}
			}
		}
		queued := slices.ContainsFunc(r.Findings, func(x explain.Finding) bool { return strings.Contains(x.ID, "queue_") })
		if want := suspect && waited < 0.1*inside && !queued; named != want {
			t.Fatalf("named %v, want %v: busy %d of %d, waiting %v of %v, %v", named, want, yes, tells, waited, inside,
				r.Findings)
		}
	})
}

// shownSlices is how many timeslices all that show waiting have.
func shownSlices(list []explain.Replica) int {
	n := 0
	for i := range list {
		if l := len(list[i].Waiting); l > 0 && (n == 0 || l < n) {
			n = l
		}
	}
	return n
}

// number is the value of a line, 0 where there is none.
func number(line []float64, j int) float64 {
	if j >= len(line) || math.IsNaN(line[j]) {
		return 0
	}
	return line[j]
}

// TestClientRead: what collect records of the load generator is what the rule reads.
func TestClientRead(t *testing.T) {
	const width = 1_000_000_000
	gauge := func(values ...float64) summary.Series {
		g := &normalize.Gauge{}
		for i, v := range values {
			n := 1
			if v == 0 {
				n = 0 // no poll in it
			}
			g.Slices = append(g.Slices, normalize.GaugeSlice{Slice: normalize.Slice{StartNS: int64(i) * width}, N: n, Avg: v})
		}
		return summary.Series{Series: normalize.Series{Gauge: g}, Endpoint: 1}
	}
	run := &summary.Run{Window: summary.Window{EndNS: 4 * width}, Endpoints: make([]summary.Endpoint, 2),
		Options: summary.Options{Catalog: catalog.Embedded(), Slice: width * time.Nanosecond}}
	run.Metrics = []summary.Metric{
		{Name: "vllm:e2e_request_latency_seconds", Type: metric.Histogram, Series: []summary.Series{{Series: normalize.Series{
			Histogram: &normalize.Histogram{}}}}},
		{Name: "client_process_cpu_utilization", Type: metric.Gauge, Series: []summary.Series{gauge(0.5, 0, 0.75, 1)}},
		{Name: "client_process_thread_utilization", Type: metric.Gauge, Series: []summary.Series{gauge(0.25, 1)}}}
	f := explain.Read(run)[0]
	same := func(a, b []float64) bool {
		return slices.EqualFunc(a, b, func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) })
	}
	nan := math.NaN()
	if !same(f.ClientCPU, []float64{0.5, nan, 0.75, 1}) || !same(f.ClientThread, []float64{0.25, 1, nan, nan}) {
		t.Errorf("%v %v", f.ClientCPU, f.ClientThread)
	}
}
