package catalog

import "strings"

// hints say what turns families on, by the beginning of their names; the first that fits counts. Section 3 of the
// design document engines.md.
var hints = [...]struct{ prefix, text string }{
	{"vllm:estimated_", "start vLLM with --enable-mfu-metrics"},
	{"vllm:kv_block_", "start vLLM with --kv-cache-metrics"},
	{"vllm:spec_decode_", "exists only with speculative decoding"},
	{"vllm:nixl_", "exists only where prefill and decode are separate servers"},
	{"vllm:external_prefix_", "exists only with a KV connector"},
	{"vllm:mm_cache_", "exists only with a multimodal model"},
	{"vllm:", "needs vLLM's V1 engine without --disable-log-stats, vLLM-Omni with --log-stats"},
	{"vllm_omni:", "start vLLM-Omni with --log-stats; audio and image families exist only in such pipelines"},
	{"http_request", "is of the HTTP server in front of the engine"},
	{"sglang:spec_", "exists only with speculative decoding"},
	{"sglang:estimated_", "start SGLang with --enable-mfu-metrics"},
	{"sglang:num_retracted", "appears after the first retraction"},
	{"sglang:num_aborted", "appears after the first abort"},
	{"sglang:realtime_tokens", "exists only in newer versions"},
	{"sglang:prefill_effective", "exists only in newer versions"},
	{"sglang:kv_transfer", "exists only where prefill and decode are separate servers"},
	{"sglang:hicache", "exists only with --enable-hierarchical-cache"},
	{"trtllm_num_requests_", "start trtllm-serve with enable_iter_perf_stats: true"},
	{"trtllm_kv_cache_", "start trtllm-serve with enable_iter_perf_stats: true"},
	{"trtllm_spec_decode_", "exists only with speculative decoding"},
	{"trtllm_request_error", "appears after the first error"},
	{"trtllm_", "start trtllm-serve with return_perf_metrics: true"},
	{"dynamo_component_", "is at the workers: set DYN_SYSTEM_PORT and add them as targets"},
	{"dynamo_frontend_", "is at the frontend (port 8000): add it as a target"},
	{"dynamo_router_", "is at a router of its own"},
	{"nv_gpu_", "start tritonserver with --allow-gpu-metrics=true, in a container that sees the GPU"},
	{"nv_energy_", "start tritonserver with --allow-gpu-metrics=true, in a container that sees the GPU"},
	{"nv_cpu_", "start tritonserver with --allow-cpu-metrics=true"},
	{"nv_cache_", "start tritonserver with --cache-config and let the model have response_cache"},
	{"nv_inference_first_response_histogram", "start tritonserver with --metrics-config histogram_latencies=true"},
	{"nv_trt_llm_", "exists only with the TensorRT-LLM backend"},
	{"triton_stats_", "poll the statistics: triton+http://HOST:8000"},
	{"nv_inference_", "start tritonserver with --allow-metrics=true; port 8002"},
	{"ts_", "start TorchServe with metrics_mode=prometheus, or follow its logs: torchserve-log:PATH"},
	{"tgi_request_skipped_tokens", "exists only with speculation"},
	{"llamacpp:", "exists only in newer builds"},
	{"ray_serve_", "is at the node agents of Ray"},
	{"lmcache:", "exists only with LMCache"},
	{"DCGM_FI_PROF_", "enable it in the exporter's list of counters; the GPU must allow profiling"},
	{"DCGM_FI_", "add the DCGM exporter (port 9400) as a target, and the field to its list of counters"},
}

// Hint says what gives a server a family of that name, its newest; "" when nothing is known.
func Hint(family string) string {
	for _, h := range hints {
		if strings.HasPrefix(family, h.prefix) {
			return h.text
		}
	}
	return ""
}
