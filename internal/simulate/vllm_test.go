package simulate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

// The layouts of vLLM for a context length of 8192.
var vllmBounds = map[string][]float64{
	"vllm:e2e_request_latency_seconds": {0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120,
		240, 480, 960, 1920, 7680},
	"vllm:time_to_first_token_seconds": {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1,
		2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560},
	"vllm:inter_token_latency_seconds": {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5,
		5, 7.5, 10, 20, 40, 80},
	"vllm:iteration_tokens_total":   {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384},
	"vllm:request_params_n":         {1, 2, 5, 10, 20},
	"vllm:request_num_preemptions":  {1, 2, 3, 4, 5, 10, 20},
	"vllm:request_prompt_tokens":    {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000},
	"http_request_duration_seconds": {0.1, 0.5, 1},
	"vllm:request_time_per_output_token_seconds": {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5,
		5, 7.5, 10, 20, 40, 80},
}

func TestVLLMBuckets(t *testing.T) {
	f := scrape(t, start(t, newClock(), "vllm", simulate.Options{}))
	for name, want := range vllmBounds {
		m := f.find(name)
		if len(m) == 0 {
			t.Errorf("%s is absent", name)
			continue
		}
		var got []float64
		for _, b := range m[0].GetHistogram().GetBucket() {
			got = append(got, b.GetUpperBound())
		}
		if !slices.Equal(got[:len(got)-1], want) {
			t.Errorf("%s: bounds %v, want %v", name, got, want)
		}
	}
}

// busy is a server that fills its KV cache and its queue.
func busy() simulate.Options {
	return simulate.Options{
		Rate: 40, Seed: 3, KeepTruth: true, MFU: true, Engines: 2,
		Load:     []simulate.LoadStep{{At: time.Minute}},
		Hardware: simulate.Hardware{Blocks: 257, MaxModelLen: 4096, MaxStepTokens: 512},
	}
}

func TestVLLMTruth(t *testing.T) {
	t.Parallel()
	for _, o := range []simulate.Options{{KeepTruth: true, MFU: true}, busy()} {
		c := newClock()
		s := start(t, c, "vllm", o)
		for range 3 {
			c.add(17 * time.Second)
			checkTruth(t, scrape(t, s), s.Truth())
		}
	}
}

// TestVLLMRequests computes the request histograms from the requests alone.
func TestVLLMRequests(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := start(t, c, "vllm", busy())
	c.add(20 * time.Minute)
	f, truth := scrape(t, s), s.Truth()
	check := func(name string, value func(simulate.Request) []float64) {
		t.Helper()
		for engine, label := range []string{"engine=0", "engine=1"} {
			var values []float64
			sum := 0.0
			for _, q := range truth.Requests {
				if q.Engine == engine {
					values = append(values, value(q)...)
				}
			}
			for _, v := range values {
				sum += v
			}
			m := f.find(name, label)
			if len(m) != 1 {
				t.Fatalf("%s: %d series for %s", name, len(m), label)
			}
			checkBuckets(t, name, m[0].GetHistogram(), values)
			near(t, name+" sum", m[0].GetHistogram().GetSampleSum(), sum)
		}
	}
	one := func(d func(q simulate.Request) time.Duration) func(simulate.Request) []float64 {
		return func(q simulate.Request) []float64 { return []float64{d(q).Seconds()} }
	}
	check("vllm:e2e_request_latency_seconds", one(func(q simulate.Request) time.Duration { return q.Last - q.Arrival }))
	check("vllm:request_queue_time_seconds", one(func(q simulate.Request) time.Duration { return q.Scheduled - q.Queued }))
	check("vllm:request_prefill_time_seconds",
		one(func(q simulate.Request) time.Duration { return q.First - q.Scheduled }))
	check("vllm:request_decode_time_seconds", one(func(q simulate.Request) time.Duration { return q.Last - q.First }))
	check("vllm:time_to_first_token_seconds", one(func(q simulate.Request) time.Duration { return q.First - q.Arrival }))
	check("vllm:inter_token_latency_seconds", func(q simulate.Request) (gaps []float64) {
		for i := range q.Tokens[1:] {
			gaps = append(gaps, (q.Tokens[i+1] - q.Tokens[i]).Seconds())
		}
		return gaps
	})
	check("vllm:request_prompt_tokens", func(q simulate.Request) []float64 { return []float64{float64(q.PromptTokens)} })
	check("vllm:request_generation_tokens",
		func(q simulate.Request) []float64 { return []float64{float64(len(q.Tokens))} })
	check("vllm:request_num_preemptions", func(q simulate.Request) []float64 { return []float64{float64(q.Preemptions)} })
	for _, reason := range []string{"stop", "length", "abort", "error"} {
		n := 0
		for _, q := range truth.Requests {
			if q.Reason == reason {
				n++
			}
		}
		near(t, reason, f.value("vllm:request_success_total", "finished_reason="+reason), float64(n))
	}
}

// TestVLLMIdentities holds the identities of a real server against a drained
// one.
func TestVLLMIdentities(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := start(t, c, "vllm", busy())
	c.add(30 * time.Second)
	f := scrape(t, s)
	if f.value("vllm:num_requests_waiting") < 10 || f.value("vllm:kv_cache_usage_perc") < 1 ||
		f.value("vllm:num_preemptions_total") < 10 {
		t.Error("the server is not busy enough for this test")
	}
	near(t, "waiting by reason", f.value("vllm:num_requests_waiting_by_reason"), f.value("vllm:num_requests_waiting"))
	c.add(20 * time.Minute)
	f = scrape(t, s)
	requests := f.value("vllm:request_success_total")
	if requests < 1000 {
		t.Errorf("%v requests finished, want 2400", requests)
	}
	sum := func(name string) float64 { return f.value("vllm:" + name + "_seconds") }
	near(t, "prefill + decode", sum("request_prefill_time")+sum("request_decode_time"), sum("request_inference_time"))
	near(t, "ITL sum", sum("inter_token_latency"), sum("request_decode_time"))
	near(t, "generation - ITL count",
		f.value("vllm:generation_tokens_total")-float64(f.count("vllm:inter_token_latency_seconds")), requests)
	near(t, "iteration tokens", f.value("vllm:iteration_tokens_total"),
		f.value("vllm:prompt_tokens_total")-f.value("vllm:prompt_tokens_cached_total")+
			f.value("vllm:generation_tokens_total"))
	near(t, "front end", sum("e2e_request_latency")-sum("request_queue_time")-sum("request_inference_time"),
		sum("time_to_first_token")-sum("request_queue_time")-sum("request_prefill_time"))
	near(t, "prompt by source", f.value("vllm:prompt_tokens_by_source_total"), f.value("vllm:prompt_tokens_total"))
	near(t, "cached", f.value("vllm:prompt_tokens_cached_total"), f.value("vllm:prefix_cache_hits_total"))
	near(t, "queried", f.value("vllm:prefix_cache_queries_total"), f.value("vllm:prompt_tokens_total"))
	near(t, "request tokens", f.value("vllm:request_generation_tokens"), f.value("vllm:generation_tokens_total"))
	near(t, "preemptions", f.value("vllm:request_num_preemptions"), f.value("vllm:num_preemptions_total"))
	near(t, "HTTP requests", f.value("http_requests_total", "handler=/v1/chat/completions"), requests)
	if overhead := f.value("http_request_duration_seconds",
		"method=POST") - sum("e2e_request_latency"); overhead < 0.001*requests {
		t.Errorf("HTTP adds %v s to %v requests", overhead, requests)
	}
	for _, gauge := range []string{"num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"} {
		near(t, gauge, f.value("vllm:"+gauge), 0)
	}
	if f.value("vllm:estimated_flops_per_gpu_total") == 0 {
		t.Error("MFU does not advance")
	}
}

func TestVLLMGolden(t *testing.T) {
	c := newClock()
	s := start(t, c, "vllm", simulate.Options{
		Model: `a "quoted" \ name`, Rate: 0.5, Seed: 1,
		Prompt: simulate.Lengths{Mean: 100}, Output: simulate.Lengths{Mean: 20},
		Hardware: simulate.Hardware{StepNoise: -1, MaxModelLen: 256},
	})
	c.add(20 * time.Second)
	golden(t, "vllm.prom", s.AppendBody(nil))
}
