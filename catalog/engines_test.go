package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
)

// exposition writes families line by line: "counter name{labels} value",
// "gauge ...", "histogram ... count sum" or "summary ... count sum". Buckets end
// at 1 and +Inf, and all is in the first; a histogram may name its own after the
// sum, as "bound:cumulative".
func exposition(lines string) string {
	var b strings.Builder
	seen := map[string]bool{}
	for line := range strings.Lines(lines) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		name, labels, _ := strings.Cut(strings.TrimSuffix(f[1], "}"), "{")
		if !seen[name] {
			fmt.Fprintf(&b, "# TYPE %s %s\n", name, f[0])
			seen[name] = true
		}
		switch f[0] {
		case "histogram":
			comma := ""
			if labels != "" {
				comma = ","
			}
			buckets := f[4:]
			if len(buckets) == 0 {
				buckets = []string{"1:" + f[2]}
			}
			for _, bucket := range append(buckets, "+Inf:"+f[2]) {
				le, n, _ := strings.Cut(bucket, ":")
				fmt.Fprintf(&b, "%s_bucket{%s%sle=%q} %s\n", name, labels, comma, le, n)
			}
			fallthrough
		case "summary":
			fmt.Fprintf(&b, "%s_count{%s} %s\n%s_sum{%s} %s\n", name, labels, f[2], name, labels, f[3])
		default:
			fmt.Fprintf(&b, "%s{%s} %s\n", name, labels, f[2])
		}
	}
	return b.String()
}

// within derives from what a server gained in so many seconds.
func within(t *testing.T, seconds float64, lines string) derived {
	t.Helper()
	return derive(t, known(t), seconds, exposed(t, exposition(lines)))
}

func inTenSeconds(t *testing.T, lines string) derived {
	t.Helper()
	return within(t, 10, lines)
}

const sglangLines = `
counter sglang:num_requests_total{model_name="m"} 20
counter sglang:num_aborted_requests_total{model_name="m"} 5
counter sglang:prompt_tokens_total{model_name="m"} 1000
counter sglang:generation_tokens_total{model_name="m"} 420
counter sglang:cached_tokens_total{model_name="m",cache_source="total"} 250
counter sglang:spec_verify_calls_total{model_name="m"} 140
histogram sglang:time_to_first_token_seconds{model_name="m"} 20 8
histogram sglang:inter_token_latency_seconds{model_name="m"} 400 10
histogram sglang:e2e_request_latency_seconds{model_name="m"} 20 40
histogram sglang:queue_time_seconds{model_name="m",tp_rank="0"} 20 4
histogram sglang:queue_time_seconds{model_name="m",tp_rank="1"} 20 4
histogram sglang:per_stage_req_latency_seconds{model_name="m",tp_rank="0",stage="prefill_forward"} 20 2
counter sglang:realtime_tokens_total{model_name="m",tp_rank="0",mode="decode"} 500
counter sglang:realtime_tokens_total{model_name="m",tp_rank="0",mode="prefill_compute"} 700
counter sglang:realtime_tokens_total{model_name="m",tp_rank="0",mode="prefill_cache"} 300
counter sglang:prefill_effective_tokens_total{model_name="m",tp_rank="0",mode="input"} 600
counter sglang:prefill_effective_tokens_total{model_name="m",tp_rank="0",mode="device_hit"} 200
counter sglang:prefill_effective_tokens_total{model_name="m",tp_rank="0",mode="host_hit"} 150
counter sglang:prefill_effective_tokens_total{model_name="m",tp_rank="0",mode="storage_hit"} 50
counter sglang:forward_execution_seconds_total{model_name="m",tp_rank="0",category="decode",dp_rank="0"} 6
counter sglang:forward_execution_seconds_total{model_name="m",tp_rank="0",category="decode",dp_rank="1"} 2
counter sglang:scheduler_idle_seconds_total{model_name="m",tp_rank="0"} 3
counter sglang:scheduler_stage_seconds_total{model_name="m",tp_rank="0",category="run_batch"} 1
counter sglang:scheduler_stage_seconds_total{model_name="m",tp_rank="0",category="other"} 3
counter sglang:cuda_graph_passes_total{model_name="m",tp_rank="0",mode="decode_cuda_graph"} 90
counter sglang:cuda_graph_passes_total{model_name="m",tp_rank="0",mode="decode_none"} 10
counter sglang:cuda_graph_passes_total{model_name="m",tp_rank="0",mode="prefill_none"} 7
counter sglang:estimated_flops_per_gpu_total{model_name="m",tp_rank="0"} 5e13
counter sglang:estimated_read_bytes_per_gpu_total{model_name="m",tp_rank="0"} 3e11
counter sglang:estimated_write_bytes_per_gpu_total{model_name="m",tp_rank="0"} 1e11
counter sglang:num_retracted_requests_total{model_name="m",tp_rank="0"} 4
counter sglang:num_retracted_input_tokens_total{model_name="m",tp_rank="0"} 100
counter sglang:num_retracted_output_tokens_total{model_name="m",tp_rank="0"} 42
counter sglang:num_transfer_failed_reqs_total{model_name="m",tp_rank="0"} 1
counter sglang:num_bootstrap_failed_reqs_total{model_name="m",tp_rank="0"} 2
counter sglang:evicted_tokens_total{model_name="m",tp_rank="0"} 80
counter sglang:load_back_tokens_total{model_name="m",tp_rank="0"} 40
histogram sglang:kv_transfer_total_mb{model_name="m",tp_rank="0"} 4 600
histogram sglang:kv_transfer_latency_ms{model_name="m",tp_rank="0"} 4 200
gauge sglang:num_running_reqs{model_name="m",tp_rank="0",priority=""} 8
gauge sglang:num_running_reqs{model_name="m",tp_rank="0",priority="1"} 5
gauge sglang:num_queue_reqs{model_name="m",tp_rank="0"} 2
gauge sglang:token_usage{model_name="m",tp_rank="0"} 0.5
gauge sglang:max_total_num_tokens{model_name="m",tp_rank="0"} 1000
gauge sglang:kv_used_tokens{model_name="m",tp_rank="0"} 500
gauge sglang:kv_available_tokens{model_name="m",tp_rank="0"} 300
gauge sglang:kv_evictable_tokens{model_name="m",tp_rank="0"} 200
gauge sglang:spec_accept_length{model_name="m",tp_rank="0"} 2.5
gauge sglang:cache_hit_rate{model_name="m",tp_rank="0"} 0.99
`

// without leaves out the lines that contain one of the words.
func without(lines string, words ...string) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		keep := true
		for _, w := range words {
			keep = keep && !strings.Contains(line, w)
		}
		if keep {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestSGLang(t *testing.T) {
	d := inTenSeconds(t, sglangLines)
	d.want("request_rate", "ok", 2)
	d.want("output_tok_s", "ok", 50)
	d.want("input_tok_s", "ok", 100)
	d.want("prefill_computed_tok_s", "ok", 70)
	d.want("isl_mean", "ok", 50)
	d.want("osl_mean", "ok", 21)
	d.want("output_input_ratio", "ok", 0.42)
	d.want("ttft_mean", "ok", 0.4)
	d.want("itl_mean_token_weighted", "ok", 0.025)
	d.want("e2e_mean", "ok", 2)
	d.want("queue_mean", "ok", 0.2)
	d.want("tpot_mean_request", "ok", 32.0/400)
	d.want("ttft_overflow_share", "ok", 0)
	d.want("running_mean", "ok", 8)
	d.want("running_peak", "ok", 8)
	d.want("waiting_mean", "ok", 2)
	d.want("waiting_peak", "ok", 2)
	d.want("kv_usage_mean", "ok", 0.5)
	d.want("kv_usage_peak", "ok", 0.5)
	d.want("kv_used_share", "ok", 0.5)
	d.want("kv_available_share", "ok", 0.3)
	d.want("kv_evictable_share", "ok", 0.2)
	d.want("concurrency_little", "ok", 4)
	d.want("waiting_mean_little", "ok", 0.4)
	d.want("retraction_per_request", "ok", 0.2)
	d.want("retracted_input_share", "ok", 0.1)
	d.want("retracted_output_share", "ok", 0.1)
	d.want("queue_share", "ok", 0.1)
	d.want("ttft_share", "ok", 0.2)
	d.want("stage_share", "ok", 0.05, "stage", "prefill_forward")
	d.want("gpu_forward_busy_share", "ok", 0.4, "category", "decode") // of two schedulers
	d.want("scheduler_idle_share", "ok", 0.3)
	d.want("scheduler_stage_share", "ok", 0.25, "category", "run_batch")
	d.want("prefix_hit_ratio", "ok", 0.4)
	d.want("prefix_hit_ratio_device", "ok", 0.2)
	d.want("prefix_hit_ratio_host", "ok", 0.15)
	d.want("prefix_hit_ratio_storage", "ok", 0.05)
	d.want("evicted_tok_s", "ok", 8)
	d.want("load_back_tok_s", "ok", 4)
	d.want("abort_ratio", "ok", 0.2)
	d.want("transfer_failure_ratio", "ok", 0.05)
	d.want("bootstrap_failure_ratio", "ok", 0.1)
	d.want("spec_mean_acceptance_length", "ok", 3)
	d.want("cuda_graph_share", "ok", 0.9)
	d.want("decode_rate_per_request", "ok", 500.0/80)
	d.want("tflops_per_gpu", "ok", 5)
	d.want("hbm_gbs_per_gpu", "ok", 40)
	d.want("arithmetic_intensity", "ok", 125)
	d.want("kv_transfer_gb_s", "ok", 3)
	d.want("kv_transfer_load_gb_s", "ok", 0.06)

	c, err := catalog.New(strings.NewReader("inputs: {peak_gb_s: 400, peak_tflops: 20, slo: {ttft_s: 1, e2e_s: 1}}"))
	if err != nil {
		t.Fatal(err)
	}
	d = derive(t, c, 10, exposed(t, exposition(sglangLines)))
	d.want("mfu", "ok", 0.25)
	d.want("memory_bandwidth_share", "ok", 0.1)
	d.want("slo_attainment", "ok", 1, "slo", "ttft_s")

	// What stands in for what is missing, in this order.
	d = inTenSeconds(t, without(sglangLines, "realtime", "verify"))
	d.want("output_tok_s", "ok", 42)
	d.want("decode_rate_per_request", "ok", 420.0/80)
	d.want("spec_mean_acceptance_length", "estimate", 2.5)
	inTenSeconds(t, without(sglangLines, "effective")).want("prefix_hit_ratio", "ok", 0.3)
	inTenSeconds(t, without(sglangLines, "effective", "realtime")).want("prefix_hit_ratio", "ok", 0.25)
	inTenSeconds(t, without(sglangLines, "effective",
		"realtime")+`counter sglang:cached_tokens_total{model_name="m",cache_source="device"} 100`).
		want("prefix_hit_ratio", "ok", 0.25)
	inTenSeconds(t, strings.ReplaceAll(without(sglangLines, "effective", "realtime"), `cache_source="total"`,
		`cache_source="device"`)).
		want("prefix_hit_ratio", "ok", 0.25)
	d = inTenSeconds(t, without(sglangLines, "effective", "realtime", "cached_tokens"))
	d.want("prefix_hit_ratio", "missing", 0) // never the gauge
	d = inTenSeconds(t, without(sglangLines, "num_retracted", "num_requests", "aborted"))
	d.want("request_rate", "ok", 2)
	d.want("isl_mean", "ok", 50)
	d.absent("retraction_per_request")
	d.want("retracted_input_share", "missing", 0)
	// Counts of TTFT and latency that differ, a little and more.
	d = inTenSeconds(t, strings.Replace(sglangLines, "seconds{model_name=\"m\"} 20 8", "seconds{model_name=\"m\"} 21 8",
		1))
	d.want("tpot_mean_request", "estimate", 0.08)
	d = inTenSeconds(t, strings.Replace(sglangLines, "seconds{model_name=\"m\"} 20 8", "seconds{model_name=\"m\"} 23 8",
		1))
	d.want("tpot_mean_request", "missing", 0)
	// Estimates that are not switched on, transfers of the older form.
	d = inTenSeconds(t, strings.NewReplacer("5e13", "0",
		"histogram sglang:kv_transfer_total_mb{model_name=\"m\",tp_rank=\"0\"} 4", "gauge sglang:kv_transfer_total_mb{}").
		Replace(sglangLines))
	d.want("tflops_per_gpu", "missing", 0)
	d.want("kv_transfer_gb_s", "missing", 0)
}

const trtllmLines = `
counter trtllm_request_success_total{model_name="m",finished_reason="stop"} 30
counter trtllm_request_success_total{model_name="m",finished_reason="length"} 10
counter trtllm_request_error_total{model_name="m",http_code="400"} 10
counter trtllm_prompt_tokens_total{model_name="m"} 2000
counter trtllm_generation_tokens_total{model_name="m"} 840
counter trtllm_prompt_cached_tokens_total{model_name="m"} 500
counter trtllm_prompt_cache_hit_tokens_total{model_name="m",cache_tier="gpu"} 300
counter trtllm_prompt_cache_hit_tokens_total{model_name="m",cache_tier="host"} 100
histogram trtllm_e2e_request_latency_seconds{model_name="m"} 40 100
histogram trtllm_time_to_first_token_seconds{model_name="m"} 40 40
histogram trtllm_time_per_output_token_seconds{model_name="m"} 40 2
histogram trtllm_request_queue_time_seconds{model_name="m"} 40 20
histogram trtllm_request_prefill_time_seconds{model_name="m"} 40 20
histogram trtllm_request_decode_time_seconds{model_name="m"} 40 60
histogram trtllm_request_inference_time_seconds{model_name="m"} 40 80
histogram trtllm_prefill_batch_tokens{model_name="m"} 5 1500
counter trtllm_kv_cache_reused_blocks_total{model_name="m"} 30
counter trtllm_kv_cache_missed_blocks_total{model_name="m"} 90
counter trtllm_kv_cache_iter_missed_blocks_total{model_name="m"} 9000
counter trtllm_kv_cache_offload_bytes_total{model_name="m"} 5e9
counter trtllm_kv_cache_onboard_bytes_total{model_name="m"} 2e9
counter trtllm_spec_decode_num_draft_tokens_total{model_name="m"} 400
counter trtllm_spec_decode_num_accepted_tokens_total{model_name="m"} 300
counter trtllm_spec_decode_drafted_tokens_total{model_name="m",token_position="0"} 200
counter trtllm_spec_decode_accepted_tokens_total{model_name="m",token_position="0"} 180
counter trtllm_spec_decode_drafted_tokens_total{model_name="m",token_position="1"} 200
counter trtllm_spec_decode_accepted_tokens_total{model_name="m",token_position="1"} 120
gauge trtllm_spec_decode_acceptance_length{model_name="m",pid="1"} 2.5
gauge trtllm_num_requests_running{model_name="m",pid="1"} 32
gauge trtllm_num_requests_waiting{model_name="m",pid="1"} 3
gauge trtllm_num_paused_requests{model_name="m",pid="1"} 1
gauge trtllm_kv_cache_utilization{model_name="m",pid="1"} 0.75
`

func TestTRTLLM(t *testing.T) {
	check := func(d derived) {
		t.Helper()
		d.want("request_rate", "ok", 4)
		d.want("finished_share", "ok", 0.25, "finished_reason", "length")
		d.want("output_tok_s", "ok", 84)
		d.want("input_tok_s", "ok", 200)
		d.want("total_tok_s", "ok", 284)
		d.want("isl_mean", "ok", 50)
		d.want("osl_mean", "ok", 21)
		d.want("output_input_ratio", "ok", 0.42)
		d.want("prefill_batch_mean", "ok", 300)
		d.want("ttft_mean", "ok", 1)
		d.want("itl_mean_token_weighted", "ok", 60.0/800)
		d.want("tpot_mean_request_weighted", "ok", 0.05)
		d.want("e2e_mean", "ok", 2.5)
		d.want("queue_mean", "ok", 0.5)
		d.want("prefill_mean", "ok", 0.5)
		d.want("decode_mean", "ok", 1.5)
		d.want("inference_mean", "ok", 2)
		d.want("running_mean_little", "ok", 8)
		d.want("waiting_mean_little", "ok", 2)
		d.want("concurrency_little", "ok", 10)
		d.want("kv_usage_peak", "bound", 0.75)
		d.want("running_peak", "bound", 32)
		d.want("waiting_peak", "bound", 3)
		d.want("paused_peak", "bound", 1)
		d.want("queue_share_e2e", "ok", 0.2)
		d.want("prefill_share_e2e", "ok", 0.2)
		d.want("decode_share_e2e", "ok", 0.6)
		d.want("prefill_decode_ratio", "ok", 1.0/3)
		d.want("ttft_queue_share", "ok", 0.5)
		d.want("prefix_hit_ratio", "ok", 0.25)
		d.want("block_hit_ratio", "ok", 0.25)
		d.want("cache_tier_share", "ok", 0.75, "cache_tier", "gpu")
		d.want("error_ratio", "ok", 0.2)
		d.want("error_share", "ok", 0.2, "http_code", "400")
		d.want("spec_acceptance_rate", "ok", 0.75)
		d.want("spec_acceptance_at", "ok", 0.6, "token_position", "1")
		d.want("spec_mean_acceptance_length", "estimate", 2.5)
		d.want("kv_offload_gb_s", "ok", 0.5)
		d.want("kv_onboard_gb_s", "ok", 0.2)
		d.want("self_check_e2e", "ok", 0)
		d.want("self_check_ttft", "ok", 0)
		d.want("self_check_inference", "ok", 0)
		d.absent("running_mean") // no mean of a gauge that is stale
	}
	check(inTenSeconds(t, trtllmLines))
	check(inTenSeconds(t, strings.ReplaceAll(trtllmLines, "trtllm_", "trtllm:"))) // of an older Dynamo
	check(inTenSeconds(t, strings.ReplaceAll(trtllmLines, "trtllm_", "")))        // before 1.2
	d := inTenSeconds(t, without(trtllmLines, "request_error", "decode_time"))
	d.want("error_ratio", "missing", 0)
	d.want("itl_mean_token_weighted", "missing", 0)
	d.want("self_check_inference", "missing", 0)
	d = inTenSeconds(t, strings.Replace(trtllmLines, "{model_name=\"m\"} 40 80", "{model_name=\"m\"} 40 79", 1))
	d.want("self_check_e2e", "ok", 0.01)
	d.want("self_check_inference", "ok", -1.0/79)
	// One token each: there is no gap between two.
	inTenSeconds(t, strings.Replace(trtllmLines, " 840", " 40", 1)).want("itl_mean_token_weighted", "zero_denominator", 0)
}
