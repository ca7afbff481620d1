package simulate_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

// drained is a load of a minute that leaves all of its requests time to end.
// All end well.
func drained() simulate.Options {
	return simulate.Options{Seed: 9, Rate: 10, KeepTruth: true, AbortShare: -1, ErrorShare: -1,
		Load: []simulate.LoadStep{{At: time.Minute}}}
}

// TestProfileTruth compares every series of every profile with what was
// recorded in it.
func TestProfileTruth(t *testing.T) {
	for _, p := range simulate.Profiles() {
		t.Run(p, func(t *testing.T) {
			t.Parallel()
			c := newClock()
			s := start(t, c, p, simulate.Options{Seed: 2, Rate: 10, KeepTruth: true, Engines: 2, ErrorShare: 0.05,
				Hardware: simulate.Hardware{Blocks: 600}})
			for range 2 {
				// Not within the lifetime of Triton's canary: its series begin anew.
				c.add(25 * time.Second)
				truth, body := s.Truth(), scrape(t, s)
				checkTruth(t, body, truth)
			}
		})
	}
}

// identity is one equation between what a server shows and what happened.
type identity struct {
	name      string
	got, want float64
}

// identities are those of each engine after a drained load (engines.md 3).
func identities(p string, f families, n simulate.Totals) []identity {
	served := float64(n.Served)
	prompt, cached, output := float64(n.PromptTokens), float64(n.CachedTokens), float64(n.OutputTokens)
	s := func(d time.Duration) float64 { return d.Seconds() }
	inference, ttft := n.Inference(), n.TTFT()
	switch p {
	case "vllm":
		v := func(name string, pairs ...string) float64 { return f.value("vllm:"+name, pairs...) }
		return []identity{
			{"success", v("request_success_total"), served}, {"prompt", v("prompt_tokens_total"), prompt},
			{"generated", v("generation_tokens_total"), output}, {"e2e", v("e2e_request_latency_seconds"), s(n.E2E)},
			{"ttft", v("time_to_first_token_seconds"), s(ttft)}, {"itl", v("inter_token_latency_seconds"), s(n.Decode)},
		}
	case "sglang":
		v := func(name string, pairs ...string) float64 { return f.value("sglang:"+name, pairs...) }
		return []identity{
			{"requests", v("num_requests_total"), served}, {"prompt", v("prompt_tokens_total"), prompt},
			{"generated", v("generation_tokens_total"), output}, {"cached", v("cached_tokens_total", "cache_source=device"),
				cached},
			{"cached total", v("cached_tokens_total", "cache_source=total"), cached},
			{"decode tokens", v("realtime_tokens_total", "mode=decode"), output},
			{"computed tokens", v("realtime_tokens_total", "mode=prefill_compute"), prompt - cached},
			{"cache tokens", v("realtime_tokens_total", "mode=prefill_cache"), cached},
			{"effective", v("prefill_effective_tokens_total"), prompt},
			{"uncached", v("uncached_prompt_tokens_histogram"), prompt - cached},
			{"e2e", v("e2e_request_latency_seconds"), s(n.E2E)}, {"ttft", v("time_to_first_token_seconds"), s(ttft)},
			{"itl", v("inter_token_latency_seconds"), s(n.Decode)}, {"queue", v("queue_time_seconds"), s(n.Queue)},
			{"prefill stage", v("per_stage_req_latency_seconds", "stage=prefill_forward"), s(n.Prefill)},
			{"front stage", v("per_stage_req_latency_seconds", "stage=request_process"), s(n.Front)},
		}
	case "trtllm":
		v := func(name string, pairs ...string) float64 { return f.value("trtllm_"+name, pairs...) }
		return []identity{
			{"success", v("request_success_total"), served}, {"prompt", v("prompt_tokens_total"), prompt},
			{"generated", v("generation_tokens_total"), output}, {"cached", v("prompt_cached_tokens_total"), cached},
			{"e2e = queue + inference", v("e2e_request_latency_seconds"), v("request_queue_time_seconds") +
				v("request_inference_time_seconds")},
			{"ttft = queue + prefill", v("time_to_first_token_seconds"), v("request_queue_time_seconds") +
				v("request_prefill_time_seconds")},
			{"inference = prefill + decode", v("request_inference_time_seconds"), v("request_prefill_time_seconds") +
				v("request_decode_time_seconds")},
			{"queue", v("request_queue_time_seconds"), s(n.Queue)}, {"inference", v("request_inference_time_seconds"),
				s(inference)},
		}
	case "dynamo":
		v := func(name string, pairs ...string) float64 { return f.value("dynamo_frontend_"+name, pairs...) }
		return []identity{
			{"success", v("requests_total", "status=success"), served}, {"e2e", v("request_duration_seconds"), s(n.E2E)},
			{"ttft", v("time_to_first_token_seconds"), s(ttft)}, {"itl", v("inter_token_latency_seconds"), s(n.Decode)},
			{"input", v("input_sequence_tokens"), prompt}, {"output", v("output_sequence_tokens"), output},
			{"live output", v("output_tokens_total"), output}, {"cached", v("cached_tokens"), cached},
			{"inflight", v("inflight_requests"), 0}, {"queued", v("queued_requests"), 0},
		}
	case "dynamo-worker":
		v := func(name string, pairs ...string) float64 { return f.value("dynamo_component_"+name, pairs...) }
		return []identity{
			{"requests", v("requests_total"), served}, {"duration", v("request_duration_seconds"), s(n.E2E - n.Front)},
			{"transit", v("network_transit_seconds"), s(n.Front)}, {"first", v("time_to_first_response_seconds"),
				s(ttft - n.Front)},
			{"passed through", f.value("vllm:generation_tokens_total"), output}, {"engine",
				f.value("vllm:request_decode_time_seconds"), s(n.Decode)},
		}
	case "tgi":
		v := func(name string, pairs ...string) float64 { return f.value("tgi_"+name, pairs...) }
		return []identity{
			{"count", v("request_count"), served}, {"success", v("request_success"), served},
			{"duration = validation + queue + inference", v("request_duration"),
				v("request_validation_duration") + v("request_queue_duration") + v("request_inference_duration")},
			{"duration", v("request_duration"), s(n.E2E)}, {"queue", v("request_queue_duration"), s(n.Queue)},
			{"input", v("request_input_length"), prompt}, {"generated", v("request_generated_tokens"), output},
		}
	case "llamacpp":
		v := func(name string) float64 { return f.value("llamacpp:" + name) }
		return []identity{
			{"prompt", v("prompt_tokens_total"), prompt - cached}, {"cached", v("prompt_tokens_cached_total"), cached},
			{"predicted", v("tokens_predicted_total"), output}, {"processing", v("requests_processing"), 0},
		}
	case "torchserve":
		return []identity{
			{"requests", f.value("ts_inference_requests_total"), served}, {"2XX", f.value("Requests2XX"), served},
			{"latency", f.value("ts_inference_latency_microseconds") / 1e6, s(n.E2E)},
			{"queue", f.value("ts_queue_latency_microseconds") / 1e6, s(n.Queue)},
		}
	}
	return nil
}

func TestIdentities(t *testing.T) {
	for _, p := range simulate.Profiles() {
		t.Run(p, func(t *testing.T) {
			c := newClock()
			s := start(t, c, p, drained())
			c.add(10 * time.Minute)
			truth := s.Truth()
			total := truth.Totals(0, truth.Until)
			if p != "dcgm" && (total.Served < 400 || total.Served != len(truth.Requests)) {
				t.Errorf("%d of %d requests were served, want 400 or more and all", total.Served, len(truth.Requests))
			}
			if got := total.Front + total.Queue + total.Prefill + total.Decode; got != total.E2E && p != "vllm-omni" {
				t.Errorf("parts add up to %v, end to end is %v", got, total.E2E)
			}
			for _, i := range identities(p, scrape(t, s), total) {
				near(t, i.name, i.got, i.want)
			}
		})
	}
}

func TestTotalsWindow(t *testing.T) {
	c := newClock()
	s := start(t, c, "tgi", simulate.Options{Seed: 1, Rate: 20, KeepTruth: true, AbortShare: 0.1, ErrorShare: 0.1})
	c.add(30 * time.Second)
	before := scrape(t, s)
	c.add(30 * time.Second)
	after, truth := scrape(t, s), s.Truth()
	n := truth.Totals(30*time.Second, time.Minute)
	for name, want := range map[string]int{"tgi_request_success": n.Served, "tgi_request_failure": n.Failed,
		"tgi_request_generated_tokens": n.OutputTokens} {
		near(t, name, after.value(name)-before.value(name), float64(want))
	}
	if n.Aborted == 0 || n.AllOutputTokens <= n.OutputTokens {
		t.Errorf("no aborted request in %+v", n)
	}
}

// TestTriton compares the counters of whole microseconds, which lose less than
// one for each request, and the ensemble with its parts.
func TestTriton(t *testing.T) {
	c := newClock()
	o := drained()
	o.Load = []simulate.LoadStep{{At: 50 * time.Second}} // before the canary comes
	s := start(t, c, "triton", o)
	c.add(59 * time.Second)
	truth, f := s.Truth(), scrape(t, s)
	n := truth.Totals(0, truth.Until)
	outer := func(name string) float64 {
		return f.value("nv_inference_"+name, "model=resnet50") + f.value("nv_inference_"+name, "model=text_pipeline")
	}
	near(t, "success", outer("request_success"), float64(n.Served))
	if lost := n.E2E.Seconds()*1e6 - outer("request_duration_us"); lost < 0 || lost > float64(n.Served) {
		t.Errorf("%v us of the requests are lost", lost)
	}
	near(t, "parts", f.value("nv_inference_count", "model=encoder"), f.value("nv_inference_count", "model=text_pipeline"))
	hits, misses := f.value("nv_cache_num_hits_per_model"), f.value("nv_cache_num_misses_per_model")
	near(t, "cache", hits+misses, f.value("nv_inference_request_success", "model=resnet50"))
	if hits == 0 || f.value("nv_inference_exec_count", "model=encoder") >= f.value("nv_inference_count", "model=encoder") {
		t.Error("neither cache nor batches")
	}
	canary := func(version string) int { return len(f.find("nv_inference_count", "model=canary", "version="+version)) }
	c.add(30 * time.Second)
	if f = scrape(t, s); canary("1") != 1 {
		t.Error("the canary is not loaded after 89 s")
	}
	c.add(time.Minute)
	if f = scrape(t, s); canary("1") != 0 {
		t.Error("the canary is still there after 149 s")
	}
	c.add(2 * time.Minute)
	if f = scrape(t, s); canary("2") != 1 || canary("1") != 0 {
		t.Error("no second version of the canary after 269 s")
	}
}

func TestDCGMReadsSlowly(t *testing.T) {
	c := newClock()
	s := start(t, c, "dcgm", simulate.Options{Engines: 2, Rate: 12})
	c.add(31 * time.Second)
	first := string(s.AppendBody(nil))
	c.add(28 * time.Second)
	if string(s.AppendBody(nil)) != first {
		t.Error("the body changed within 30 s")
	}
	before := scrape(t, s)
	c.add(2 * time.Second)
	after := scrape(t, s)
	for _, gpu := range []string{"gpu=0", "gpu=1"} {
		joules := (after.value("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
			gpu) - before.value("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", gpu)) / 1e3
		if want := 30 * after.value("DCGM_FI_DEV_POWER_USAGE", gpu); joules < want-0.002 || joules > want+0.002 {
			t.Errorf("%s: %v J in 30 s, want %v", gpu, joules, want)
		}
	}
}

// TestIterations reads the JSON of TensorRT-LLM, which is told once.
func TestIterations(t *testing.T) {
	c := newClock()
	o := drained()
	s := start(t, c, "trtllm", o)
	c.add(2 * time.Second)
	var list []struct {
		Iter          int
		IterLatencyMS float64
		KvCacheStats  struct{ MaxNumBlocks, UsedNumBlocks, FreeNumBlocks int }
	}
	read := func() int {
		w := get(s, "GET", "/metrics")
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
			t.Fatalf("/metrics: %d %v", w.Code, w.Header())
		}
		list = nil
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if n := read(); n == 0 || list[0].Iter != 1 || list[0].IterLatencyMS < 1 || list[0].KvCacheStats.MaxNumBlocks != 2048 {
		t.Errorf("%d iterations, the first %+v", n, list[:min(1, n)])
	}
	if n := read(); n != 0 {
		t.Errorf("%d iterations at the second look, want none", n)
	}
	c.add(time.Hour)
	if n := read(); n != 1000 {
		t.Errorf("%d iterations kept, want 1000", n)
	}
	if w := get(s, "GET", "/prometheus/metrics"); w.Body.String() != string(s.AppendBody(nil)) {
		t.Error("/prometheus/metrics is not the exposition")
	}
}

// TestQuirks looks for what the body of each engine is known for.
func TestQuirks(t *testing.T) {
	check := func(profile string, o simulate.Options, after time.Duration, has, lacks []string) {
		t.Helper()
		c := newClock()
		s := start(t, c, profile, o)
		c.add(after)
		body := string(s.AppendBody(nil))
		for _, want := range has {
			if !strings.Contains(body, want) {
				t.Errorf("%s after %v: no %q in the body", profile, after, want)
			}
		}
		for _, bad := range lacks {
			if strings.Contains(body, bad) {
				t.Errorf("%s after %v: %q in the body", profile, after, bad)
			}
		}
	}
	idle := []simulate.LoadStep{{At: 30 * time.Second}}
	small := simulate.Hardware{Blocks: 300, MaxModelLen: 4096}
	check("sglang", simulate.Options{Rate: 30, Seed: 3, Hardware: small, Load: idle}, 10*time.Minute,
		[]string{"sglang:num_retracted_requests_total{", `le="0.0"`, `le="1e+06"`, "moe_ep_rank=",
			" histogram\nsglang:time_to_first_token_seconds_sum"},
		[]string{"_created", "process_", "sglang:decode_sum_seq_lens{engine_type=\"unified\",model_name=\"qwen3-8b\"," +
			"moe_ep_rank=\"0\",pp_rank=\"0\",tp_rank=\"0\"} 0.0", "dp_rank", "priority"})
	check("sglang", simulate.Options{}, 0, []string{"sglang:num_running_reqs"},
		[]string{"retracted_requests", "sglang:num_requests_total", "e2e_request"})
	check("sglang", simulate.Options{Ranks: 2, Priorities: 2, Engines: 2}, time.Minute,
		[]string{`tp_rank="1"`, `dp_rank="1"`, `priority="",`, `priority="1",`}, nil)
	check("trtllm", simulate.Options{Load: idle}, 10*time.Minute, []string{`pid="1739"`, "trtllm_max_batch_size_static{"},
		[]string{"_created", "process_",
			"trtllm_num_requests_running{engine_type=\"pytorch\",model_name=\"qwen3-8b\",pid=\"1739\"} 0.0"})
	check("dynamo", simulate.Options{}, time.Minute, []string{`status="success",error_type=""`, `le="1"`},
		[]string{"vllm:", "dynamo_component"})
	check("dynamo-worker", simulate.Options{}, time.Minute, []string{`dynamo_endpoint="generate"`,
		"vllm:generation_tokens_total{"}, []string{"dynamo_frontend"})
	check("triton", simulate.Options{}, 0, []string{"nv_gpu_utilization", `reason="REJECTED"`},
		[]string{"summary", "histogram"})
	check("triton", simulate.Options{Generation: "latencies"}, 0,
		[]string{"Nan\n", `nv_inference_first_response_histogram_ms_bucket{model="encoder",version="1",le="5000"}`},
		[]string{`nv_inference_request_summary_us{model="resnet50"`})
	check("torchserve", simulate.Options{}, 10*time.Minute,
		[]string{`hostname="torchserve-0",}`, "# TYPE GPUUtilization gauge\n# HELP", "with unit: Milliseconds", "E7\n"}, nil)
	check("torchserve", simulate.Options{Generation: "legacy"}, time.Minute, []string{`{uuid="`},
		[]string{"Requests2XX", "hostname"})
	check("tgi", simulate.Options{}, time.Minute, []string{`tgi_batch_next_size_bucket{le="1024"}`,
		`le="0.00015000000000000001"`, "\n\n# HELP",
		`tgi_request_skipped_tokens{quantile="0.5"} 0`, "tgi_request_count "},
		[]string{"count_total", "success_total", "model"})
	check("llamacpp", simulate.Options{}, 0, []string{"llamacpp:n_busy_slots_per_decode nan\n", "n_tokens_max counter"},
		[]string{"{", "kv_cache"})
	check("llamacpp", simulate.Options{Generation: "old"}, 0, []string{"n_busy_slots_per_decode counter", "-nan(ind)",
		"kv_cache_usage_ratio"}, nil)
	check("dcgm", simulate.Options{}, time.Minute, []string{" 9223372036854775794\n", "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
		`modelName="NVIDIA H100`}, nil)
}

// TestFlagsOff is what each engine shows without its flag.
func TestFlagsOff(t *testing.T) {
	check := func(profile, path string, status int, want string) {
		t.Helper()
		c := newClock()
		s := start(t, c, profile, simulate.Options{FlagsOff: true})
		c.add(time.Minute)
		w := get(s, "GET", path)
		if w.Code != status || w.Body.String() != want && (want == "" || !strings.Contains(w.Body.String(), want)) {
			t.Errorf("%s %s: %d %.100q, want %d %q", profile, path, w.Code, w.Body.String(), status, want)
		}
	}
	check("sglang", "/metrics", 404, "Not Found")
	check("trtllm", "/prometheus/metrics", 404, "Not Found")
	check("trtllm", "/metrics", 200, "[]")
	check("torchserve", "/metrics", 200, "")
	check("llamacpp", "/metrics", 501, "--metrics")
	check("vllm-omni", "/metrics", 200, "# TYPE vllm_omni:audio_rtf histogram\n# ")
	check("triton", "/metrics", 200, "nv_inference_count")
	check("dcgm", "/metrics", 200, "DCGM_FI_DEV_GPU_UTIL")
	for _, p := range []string{"vllm", "tgi", "dynamo", "dynamo-worker"} {
		if _, err := simulate.New(p, simulate.Options{FlagsOff: true}); err == nil ||
			!strings.Contains(err.Error(), "FlagsOff") {
			t.Errorf("%s with FlagsOff: error %v", p, err)
		}
	}
	for _, p := range []string{"torchserve", "triton", "llamacpp"} {
		if _, err := simulate.New(p, simulate.Options{Generation: "g9"}); err == nil || !strings.Contains(err.Error(), "g9") {
			t.Errorf("%s of generation g9: error %v", p, err)
		}
	}
}

func TestTorchServe(t *testing.T) {
	c := newClock()
	legacy := start(t, c, "torchserve", simulate.Options{Generation: "legacy",
		Load: []simulate.LoadStep{{Rate: 0}, {At: time.Minute, Rate: 5}}[1:], Rate: 1e-9})
	c.add(30 * time.Second)
	if b := legacy.AppendBody(nil); len(b) != 0 {
		t.Errorf("before the first request: %q", b)
	}
	c.add(time.Minute)
	uuid := func() string {
		_, after, _ := strings.Cut(string(legacy.AppendBody(nil)), `uuid="`)
		id, _, _ := strings.Cut(after, `"`)
		return id
	}
	first := uuid()
	legacy.Restart()
	c.add(time.Minute)
	if second := uuid(); first == "" || second == "" || first == second {
		t.Errorf("uuids %q and, after a restart, %q", first, second)
	}

	s := start(t, c, "torchserve", simulate.Options{})
	c.add(time.Minute)
	before := scrape(t, s).value("Requests2XX")
	near(t, "a scrape counts itself", scrape(t, s).value("Requests2XX"), before+1)
	if got := get(s, "GET", "/metrics?name[]=ts_inference_requests_total").Body.String(); strings.Count(got,
		"\n") != 4 || !strings.HasPrefix(got, "# HELP ts_inference_requests_total") {
		t.Errorf("name[]: %q", got)
	}
	if got := get(s, "GET", "/metrics?name[]=none").Body.String(); got != "" {
		t.Errorf("name[]=none: %q", got)
	}
}

func TestLlamaAveragesSinceScrape(t *testing.T) {
	c := newClock()
	s := start(t, c, "llamacpp", simulate.Options{Load: []simulate.LoadStep{{At: time.Minute}}})
	c.add(2 * time.Minute)
	if v := scrape(t, s).value("llamacpp:predicted_tokens_seconds"); v <= 0 {
		t.Errorf("average %v after a load", v)
	}
	if v := scrape(t, s).value("llamacpp:predicted_tokens_seconds"); v != 0 {
		t.Errorf("average %v at the next scrape, want 0", v)
	}
}

func TestRedirect(t *testing.T) {
	s := start(t, newClock(), "sglang", simulate.Options{Redirect: true})
	if w := get(s, "GET", "/metrics"); w.Code != http.StatusTemporaryRedirect ||
		w.Header().Get("Location") != "/metrics/" {
		t.Errorf("/metrics: %d %v", w.Code, w.Header())
	}
	if w := get(s, "GET", "/metrics/"); w.Code != http.StatusOK || w.Body.Len() == 0 {
		t.Errorf("/metrics/: %d", w.Code)
	}
}
