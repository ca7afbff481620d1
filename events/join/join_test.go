package join_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/events/join"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

const second = 1_000_000_000

// epoch is where the seconds of the tests count from: real time.
const epoch = 1_800_000_000 * second

var clocks = []rundb.Clock{{Source: "test", UnixNS: 1}}

// request is issued, has its first token and ends at these times in seconds.
func request(id string, issued, first, end float64) events.Request {
	ns := func(s float64) int64 { return epoch + int64(math.Round(s*second)) }
	return events.Request{ID: id, IssuedNS: ns(issued), FirstNS: ns(first), CompleteNS: ns(end), Status: events.Succeeded}
}

// session has a request before the window, three in it, one over its end.
func session() *events.Session {
	return &events.Session{Requests: []events.Request{request("before", 5, 6, 9.5), request("a", 11, 11.1, 12),
		request("b", 12, 12.2, 13.5), request("c", 15, 15.3, 17), request("over", 19, 19.4, 25)}}
}

func histogram(name string, count int64, sum float64, slices ...normalize.HistogramSlice) summary.Metric {
	return summary.Metric{Name: name, Type: metric.Histogram,
		Series: []summary.Series{{Series: normalize.Series{RefNS: epoch + 10*second, LastNS: epoch + 20*second,
			HasRef: true, Histogram: &normalize.Histogram{Count: count, Sum: sum, Slices: slices}}}}}
}

func part(from, to, count int64, sum float64) normalize.HistogramSlice {
	return normalize.HistogramSlice{Slice: normalize.Slice{StartNS: epoch + from*second, EndNS: epoch + to*second},
		Count: count, Sum: sum}
}

func server(metrics ...summary.Metric) *summary.Run {
	return &summary.Run{Window: summary.Window{StartNS: epoch + 10*second, EndNS: epoch + 20*second}, Metrics: metrics}
}

func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is not known, want %v", what, want)
	} else if math.Abs(*got-want) > 1e-9 {
		t.Errorf("%s is %v, want %v", what, *got, want)
	}
}

// TestByHand: numbers that can be worked out on paper. The clients' times to the
// first token are 0.1, 0.2, 0.3 and 0.4 s, the latencies 1, 1.5 and 2 s.
func TestByHand(t *testing.T) {
	run := server(histogram("vllm:time_to_first_token_seconds", 4, 0.8, part(10, 15, 2, 0.2), part(15, 20, 2, 0.6)),
		histogram("vllm:e2e_request_latency_seconds", 3, 4.2), histogram("vllm:request_queue_time_seconds", 3, 0.3),
		summary.Metric{Name: "vllm:num_requests_running", Type: metric.Gauge,
			Series: []summary.Series{{Series: normalize.Series{Gauge: &normalize.Gauge{First: 0, Last: 1}}}}})
	r, err := join.Join(t.Context(), session(), run, join.Options{Clocks: clocks})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "client TTFT", r.TTFT.Client.Mean, 0.25)
	near(t, "server TTFT", r.TTFT.Server.Mean, 0.2)
	near(t, "overhead of the TTFT", r.TTFT.Overhead, 0.05)
	near(t, "overhead of the latency", r.E2E.Overhead, 1.5-1.4)
	near(t, "queue", r.Queue.Mean, 0.1)
	near(t, "median TTFT of the clients", r.TTFT.Percentiles[0].Client, 0.25)
	if !r.TTFT.Agree || !r.E2E.Agree || r.TTFT.Client.Count != 4 || r.E2E.Client.Count != 3 || r.Engine != "vllm" ||
		len(r.Families) != 3 {
		t.Errorf("result %+v", r)
	}
	if r.InFlight[0].Client != 0 || r.InFlight[1].Client != 1 {
		t.Errorf("under way: %+v", r.InFlight)
	}
	near(t, "under way in the server", r.InFlight[1].Server, 1)
	if len(r.Slices) != 2 || r.Slices[0].TTFT.Client.Count != 2 || r.Slices[1].TTFT.Client.Count != 2 {
		t.Fatalf("slices %+v", r.Slices)
	}
	near(t, "overhead of the first slice", r.Slices[0].TTFT.Overhead, 0.15-0.1)
	near(t, "overhead of the second slice", r.Slices[1].TTFT.Overhead, 0.35-0.3)
	if len(r.Warnings) != 0 {
		t.Errorf("warnings %v", r.Warnings)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil || !strings.Contains(text.String(), "50.000 ms") ||
		!strings.Contains(text.String(), "not additive") {
		t.Errorf("%v, %s", err, text.String())
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// TestCounts: counts agree within 1 %, else it warns.
func TestCounts(t *testing.T) {
	check := func(count int64, want bool) {
		t.Helper()
		s := &events.Session{}
		for range 100 {
			s.Requests = append(s.Requests, request("x", 11, 12, 13))
		}
		r, err := join.Join(t.Context(), s, server(histogram("sglang:time_to_first_token_seconds", count, float64(count))),
			join.Options{Clocks: clocks})
		if err != nil {
			t.Fatal(err)
		}
		warned := false
		for _, w := range r.Warnings {
			warned = warned || w.Code == "counts_differ"
		}
		if r.TTFT.Agree != want || warned == want {
			t.Errorf("100 against %d: agree %v, warnings %v", count, r.TTFT.Agree, r.Warnings)
		}
	}
	check(100, true)
	check(99, true)
	check(101, true)
	check(98, false)
	check(102, false)
	check(0, false)
}

// TestCounters: a server that has sums and counts as counters.
func TestCounters(t *testing.T) {
	r, err := join.Join(t.Context(), session(), server(counter("nv_inference_request_duration_us", 4.2e6),
		counter("nv_inference_request_success", 3)), join.Options{Clocks: clocks})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "overhead", r.E2E.Overhead, 0.1)
	if r.TTFT.Overhead != nil || r.TTFT.Agree {
		t.Errorf("TTFT %+v, want none", r.TTFT)
	}
}

// TestRefused: what cannot be joined is an error that says why.
func TestRefused(t *testing.T) {
	vllm := server(histogram("vllm:time_to_first_token_seconds", 1, 1))
	check := func(s *events.Session, run *summary.Run, o join.Options, want error) {
		t.Helper()
		if _, err := join.Join(t.Context(), s, run, o); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
	check(session(), vllm, join.Options{}, join.ErrNoClock)
	check(session(), server(), join.Options{Clocks: clocks}, join.ErrNoServer)
	check(session(), vllm, join.Options{Clocks: clocks, Engine: "triton"}, join.ErrNoServer)
	check(&events.Session{}, vllm, join.Options{Clocks: clocks}, nil)
	// An anchor does not place the events of a source that has none.
	early := session()
	early.Requests[2].IssuedNS -= epoch
	check(early, vllm, join.Options{Clocks: clocks}, join.ErrNoClock)
}

// logged is a recording with observations that name their requests.
type logged struct{ summary.Recording }

func (logged) Targets() []metric.Target { return make([]metric.Target, 1) }

func (logged) Snapshots(context.Context, int) iter.Seq2[*metric.Snapshot, error] {
	return func(yield func(*metric.Snapshot, error) bool) {
		s := &metric.Snapshot{DictDelta: metric.DictDelta{Families: []metric.Family{{Name: "PredictionTime",
			Unit: "milliseconds"}},
			Series: []metric.Series{{Family: 0}}}}
		s.Observations = []metric.Observation{
			{AtNS: epoch + 12*second, Value: 900, Requests: []string{"a"}},
			{AtNS: epoch + 13*second, Value: 1300, Requests: []string{"from-header"}},
			{AtNS: epoch + 14*second, Value: 5, Requests: []string{"of others"}},
			{AtNS: epoch + 5*second, Value: 7, Requests: []string{"a"}},
			{AtNS: epoch + 14*second, Value: 5}, {AtNS: epoch + 14*second, Series: 9, Requests: []string{"a"}}}
		yield(s, nil)
	}
}

// TestByName: single requests are joined by name, those of others are counted.
func TestByName(t *testing.T) {
	s := session()
	s.Requests[2].RequestID = "from-header"
	r := &join.Result{FromNS: epoch + 10*second, ToNS: epoch + 20*second}
	if err := r.Observe(t.Context(), s, logged{}); err != nil || len(r.Matched) != 1 {
		t.Fatalf("%v, %+v", err, r.Matched)
	}
	m := r.Matched[0]
	if m.Requests != 2 || m.Logged != 3 || m.Family != "PredictionTime" {
		t.Errorf("matched %+v", m)
	}
	near(t, "client", m.Client, 1.25)
	near(t, "server", m.Server, 1100)
	near(t, "overhead", m.Overhead, 0.15)
}
