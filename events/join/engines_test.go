package join_test

import (
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/events/join"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

func counter(name string, v float64) summary.Metric {
	return summary.Metric{Name: name, Type: metric.Counter,
		Series: []summary.Series{{Series: normalize.Series{RefNS: epoch + 10*second, LastNS: epoch + 20*second,
			Counter: &normalize.Counter{Defined: true, Total: v}}}}}
}

// simulatedBody is what a simulated server shows after some load.
func simulatedBody(t *testing.T, profile, generation string) string {
	t.Helper()
	now := time.Unix(1_800_000_000, 0)
	s, err := simulate.New(profile, simulate.Options{Now: func() time.Time { return now }, Rate: 20, Seed: 1,
		Generation: generation})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(20 * time.Second)
	return string(s.AppendBody(nil))
}

// TestEngines: each server is joined by its own families, which its simulation
// shows by these names. The clients' latencies have the mean 1.5 s, their times to
// the first token 0.25 s; the servers say 1.4 s, 0.2 s and 0.1 s of queue.
func TestEngines(t *testing.T) {
	check := func(profile, generation, engine string, ttft, queue bool, metrics ...summary.Metric) {
		t.Helper()
		body := simulatedBody(t, profile, generation)
		for _, m := range metrics {
			if !strings.Contains(body, "# TYPE "+m.Name) {
				t.Errorf("%s %s shows no family %s", profile, generation, m.Name)
			}
		}
		r, err := join.Join(t.Context(), session(), server(metrics...), join.Options{Clocks: clocks})
		if err != nil {
			t.Errorf("%s %s: %v", profile, generation, err)
			return
		}
		if r.Engine != engine || len(r.Warnings) > 1 || !r.E2E.Agree {
			t.Errorf("%s %s: engine %q, warnings %v, E2E %+v", profile, generation, r.Engine, r.Warnings, r.E2E)
		}
		near(t, profile+" overhead of the latency", r.E2E.Overhead, 0.1)
		if ttft {
			near(t, profile+" overhead of the TTFT", r.TTFT.Overhead, 0.05)
		}
		if queue {
			near(t, profile+" queue", r.Queue.Mean, 0.1)
		}
	}
	three := func(ttft, e2e, queue string) []summary.Metric {
		return []summary.Metric{histogram(ttft, 4, 0.8), histogram(e2e, 3, 4.2), histogram(queue, 3, 0.3)}
	}
	check("vllm", "", "vllm", true, true, three("vllm:time_to_first_token_seconds", "vllm:e2e_request_latency_seconds",
		"vllm:request_queue_time_seconds")...)
	check("sglang", "", "sglang", true, true, three("sglang:time_to_first_token_seconds",
		"sglang:e2e_request_latency_seconds", "sglang:queue_time_seconds")...)
	check("trtllm", "", "trtllm", true, true, three("trtllm_time_to_first_token_seconds",
		"trtllm_e2e_request_latency_seconds", "trtllm_request_queue_time_seconds")...)
	check("tgi", "", "tgi", false, true, histogram("tgi_request_duration", 3, 4.2),
		histogram("tgi_request_queue_duration", 3, 0.3))
	check("dynamo", "", "dynamo", true, false, histogram("dynamo_frontend_time_to_first_token_seconds", 4, 0.8),
		histogram("dynamo_frontend_request_duration_seconds", 3, 4.2))
	check("triton", "latencies", "triton", true, true, histogram("nv_inference_first_response_histogram_ms", 4, 800),
		counter("nv_inference_request_duration_us", 4.2e6), counter("nv_inference_queue_duration_us", 0.3e6),
		counter("nv_inference_request_success", 3))
	check("torchserve", "", "torchserve", false, true, counter("ts_inference_latency_microseconds", 4.2e6),
		counter("ts_queue_latency_microseconds", 0.3e6), counter("ts_inference_requests", 3))
	check("vllm-omni", "g4", "vllm-omni", false, false, histogram("vllm_omni:e2e_request_latency_s", 3, 4.2))
	check("vllm-omni", "g1", "vllm-omni", false, false, histogram("vllm:omni_e2e_request_latency_s", 3, 4.2))
}

// TestPreference: what stands in front has the requests of the clients; the others
// are named.
func TestPreference(t *testing.T) {
	r, err := join.Join(t.Context(), session(), server(histogram("vllm:e2e_request_latency_seconds", 9, 9),
		histogram("dynamo_frontend_request_duration_seconds", 3, 4.2)), join.Options{Clocks: clocks})
	if err != nil || r.Engine != "dynamo" || strings.Join(r.Others, " ") != "vllm" ||
		r.Warnings[len(r.Warnings)-1].Code != "other_engines" {
		t.Errorf("%+v, %v", r, err)
	}
	// llama.cpp says nothing of the latency of a request.
	if _, err := join.Join(t.Context(), session(), server(counter("llamacpp:prompt_seconds", 4)),
		join.Options{Clocks: clocks}); err == nil {
		t.Error("joined without any latency")
	}
}
