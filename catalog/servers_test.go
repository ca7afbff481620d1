package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

const dynamoLines = `
counter dynamo_frontend_requests_total{model="m",status="success"} 30
counter dynamo_frontend_requests_total{model="m",status="error",error_type="internal"} 10
counter dynamo_frontend_output_tokens_total{model="m"} 800
histogram dynamo_frontend_output_sequence_tokens{model="m"} 40 700
histogram dynamo_frontend_input_sequence_tokens{model="m"} 40 2000
histogram dynamo_frontend_cached_tokens{model="m"} 40 500
histogram dynamo_frontend_kv_hit_rate{model="m"} 40 12
histogram dynamo_frontend_time_to_first_token_seconds{model="m"} 40 20
histogram dynamo_frontend_inter_token_latency_seconds{model="m"} 760 19
histogram dynamo_frontend_request_duration_seconds{model="m"} 40 80
histogram dynamo_frontend_tokenizer_latency_ms{model="m"} 40 60
counter dynamo_frontend_model_migration_total{model="m"} 4
gauge dynamo_frontend_model_total_kv_blocks{model="m"} 2000
gauge dynamo_frontend_model_kv_cache_block_size{model="m"} 16
histogram dynamo_router_overhead_total_ms{router_id="1"} 40 20
gauge dynamo_frontend_inflight_requests{model="m"} 8
gauge dynamo_frontend_queued_requests{model="m"} 3
gauge dynamo_frontend_router_queue_pending_requests{model="m"} 1
gauge dynamo_frontend_worker_active_decode_blocks{worker_id="1"} 30
gauge dynamo_frontend_worker_active_decode_blocks{worker_id="2"} 10
`

const workerLines = `
counter dynamo_component_requests_total{dynamo_component="backend",dynamo_endpoint="generate",worker_type="decode",` +
	`worker_id="1"} 30
counter dynamo_component_requests_total{dynamo_component="backend",dynamo_endpoint="generate",worker_type="prefill",` +
	`worker_id="2"} 10
counter dynamo_component_requests_total{dynamo_component="backend",dynamo_endpoint="clear"} 5
counter dynamo_component_errors_total{dynamo_component="backend",dynamo_endpoint="generate",error_type="generate"} 2
histogram dynamo_component_request_duration_seconds{dynamo_component="backend",dynamo_endpoint="generate"} 40 60
histogram dynamo_component_network_transit_seconds{dynamo_component="backend",dynamo_endpoint="generate"} 40 3
histogram dynamo_component_time_to_first_response_seconds{dynamo_component="backend",dynamo_endpoint="generate"} 40 10
counter dynamo_component_request_bytes_total{dynamo_component="backend",dynamo_endpoint="generate"} 1000
counter dynamo_component_response_bytes_total{dynamo_component="backend",dynamo_endpoint="generate"} 500
gauge dynamo_component_inflight_requests{dynamo_component="backend",dynamo_endpoint="generate"} 6
gauge dynamo_component_kvstats_active_blocks{dynamo_component="backend",dp_rank="0"} 25
gauge dynamo_component_kvstats_total_blocks{dynamo_component="backend",dp_rank="0"} 100
gauge dynamo_component_kvstats_gpu_cache_usage_percent{dynamo_component="backend",dp_rank="0"} 0.3
`

func TestDynamo(t *testing.T) {
	d := inTenSeconds(t, dynamoLines)
	d.want("request_rate", "ok", 4)
	d.want("output_tok_s", "ok", 80)
	d.want("input_tok_s", "ok", 200)
	d.want("isl_mean", "ok", 50)
	d.want("osl_mean", "ok", 17.5)
	d.want("ttft_mean", "ok", 0.5)
	d.want("itl_mean_token_weighted", "ok", 0.025)
	d.want("e2e_mean", "ok", 2)
	d.want("tokenizer_mean", "ok", 1.5)
	d.want("ttft_overflow_share", "ok", 0)
	d.want("ttft_share", "ok", 0.25)
	d.want("error_ratio", "ok", 0.25)
	d.want("error_share", "ok", 0.25, "error_type", "internal")
	d.want("migrations_per_request", "ok", 0.1)
	d.want("inflight_mean", "ok", 8)
	d.want("inflight_peak", "ok", 8)
	d.want("starting_mean", "ok", 3)
	d.want("router_waiting_mean", "ok", 1)
	d.want("concurrency_little", "ok", 8)
	d.want("cached_share", "ok", 0.25)
	d.want("kv_hit_rate_mean", "ok", 0.3)
	d.want("decode_block_skew", "ok", 1.5)
	d.absent("frontend_overhead") // without the workers
	d = inTenSeconds(t, without(dynamoLines, "output_tokens_total", `status="error"`))
	d.want("output_tok_s", "ok", 70)
	d.want("error_ratio", "ok", 0) // no request ended in another way
	inTenSeconds(t, without(dynamoLines, `status="success"`)).want("error_ratio", "ok", 1)
	inTenSeconds(t, without(dynamoLines, "requests_total")).want("migrations_per_request", "missing", 0)
	// NVIDIA NIM has a prefix of its own.
	inTenSeconds(t, strings.ReplaceAll(dynamoLines, "dynamo_frontend_request",
		"nv_llm_http_service_request")).want("request_rate", "ok", 4)

	d = inTenSeconds(t, workerLines)
	d.want("request_rate", "ok", 4)
	d.want("request_rate_by_type", "ok", 3, "worker_type", "decode")
	d.want("e2e_mean", "ok", 1.5)
	d.want("first_response_mean", "ok", 0.25)
	d.want("network_transit_mean", "ok", 0.075)
	d.want("network_transit_share", "ok", 0.05)
	d.want("error_ratio", "ok", 0.05)
	d.want("received_bytes_s", "ok", 100)
	d.want("sent_bytes_s", "ok", 50)
	d.want("worker_skew", "ok", 1.5)
	d.want("inflight_mean", "ok", 6)
	d.want("concurrency_little", "ok", 6)
	d.want("kv_usage_mean", "ok", 0.25)
	d.want("kv_usage_peak", "ok", 0.3)
	inTenSeconds(t, without(workerLines, "kvstats_active")).want("kv_usage_mean", "ok", 0.3)

	d = inTenSeconds(t, dynamoLines+workerLines)
	d.want("frontend_overhead", "ok", 0.5)
	d.want("frontend_share", "ok", 0.25)
	// A request in two workers at a time leaves less than nothing.
	d = inTenSeconds(t, dynamoLines+strings.Replace(workerLines, "40 60", "40 100", 1))
	if got := d.one("frontend_overhead"); got == nil || got.Value != -0.5 || got.Shown != 0 || len(got.Flags) != 1 ||
		got.Flags[0] != "negative" {
		t.Errorf("negative overhead: %+v", got)
	}
}

const tritonLines = `
counter nv_inference_request_success{model="m",version="1"} 100
counter nv_inference_request_failure{model="m",version="1",reason="BACKEND"} 20
counter nv_inference_request_failure{model="m",version="1",reason="CANCELED"} 5
counter nv_inference_count{model="m",version="1"} 160
counter nv_inference_exec_count{model="m",version="1"} 40
counter nv_inference_request_duration_us{model="m",version="1"} 2000000
counter nv_inference_queue_duration_us{model="m",version="1"} 500000
counter nv_inference_compute_input_duration_us{model="m",version="1"} 80000
counter nv_inference_compute_infer_duration_us{model="m",version="1"} 800000
counter nv_inference_compute_output_duration_us{model="m",version="1"} 40000
counter nv_cache_num_hits_per_model{model="m",version="1"} 20
counter nv_cache_num_misses_per_model{model="m",version="1"} 80
counter nv_cache_hit_duration_per_model{model="m",version="1"} 4000
counter nv_cache_miss_duration_per_model{model="m",version="1"} 40000
gauge nv_inference_pending_request_count{model="m",version="1"} 7
histogram nv_inference_first_response_histogram_ms{model="m",version="1"} 100 30000
summary nv_inference_queue_summary_us{model="m",version="1"} 100 500000
counter nv_energy_consumption{gpu_uuid="a"} 4000
gauge nv_gpu_utilization{gpu_uuid="a"} 0.4
gauge nv_gpu_utilization{gpu_uuid="b"} 0.6
gauge nv_gpu_power_usage{gpu_uuid="a"} 390
gauge nv_gpu_memory_used_bytes{gpu_uuid="a"} 30
gauge nv_gpu_memory_total_bytes{gpu_uuid="a"} 120
gauge nv_cpu_utilization 0.2
gauge nv_pinned_memory_pool_used_bytes 1
gauge nv_pinned_memory_pool_total_bytes 4
gauge nv_trt_llm_request_metrics{model="m",version="1",request_type="scheduled"} 6
gauge nv_trt_llm_request_metrics{model="m",version="1",request_type="waiting"} 2
gauge nv_trt_llm_request_metrics{model="m",version="1",request_type="active"} 8
gauge nv_trt_llm_kv_cache_block_metrics{model="m",version="1",kv_cache_block_type="used"} 10
gauge nv_trt_llm_kv_cache_block_metrics{model="m",version="1",kv_cache_block_type="max"} 40
gauge nv_trt_llm_kv_cache_block_metrics{model="m",version="1",kv_cache_block_type="tokens_per"} 64
gauge nv_trt_llm_kv_cache_block_metrics{model="m",version="1",kv_cache_block_type="fraction"} 0.3
counter nv_trt_llm_disaggregated_serving_metrics{model="m",version="1",` +
	`disaggregated_serving_type="kv_cache_transfer_ms"} 500
counter nv_trt_llm_disaggregated_serving_metrics{model="m",version="1",disaggregated_serving_type="request_count"} 10
`

func TestTriton(t *testing.T) {
	d := inTenSeconds(t, tritonLines)
	d.want("request_rate", "ok", 10)
	d.want("inferences_s", "ok", 16)
	d.want("executions_s", "ok", 4)
	d.want("avg_batch_size", "ok", 4)
	d.want("client_batch_size", "ok", 2)
	d.want("avg_request", "ok", 0.02)
	d.want("avg_queue", "ok", 0.005)
	d.want("avg_compute_input", "ok", 0.001)
	d.want("avg_compute_infer", "ok", 0.01)
	d.want("avg_compute_output", "ok", 0.0005)
	d.want("overhead", "ok", 0.0035)
	d.want("queue_share", "ok", 0.25)
	d.want("compute_share", "ok", 0.46)
	d.want("first_response_mean", "ok", 0.3)
	d.want("first_response_overflow_share", "ok", 0)
	d.want("summary_queue", "ok", 0.005)
	d.want("pending_mean", "ok", 7)
	d.want("pending_peak", "ok", 7)
	d.want("waiting_mean_little", "ok", 0.05)
	d.want("concurrency_little", "ok", 0.2)
	d.want("busy_instances", "estimate", 0.08)
	d.want("failure_ratio", "ok", 0.2)
	d.want("failure_share", "ok", 0.04, "reason", "CANCELED")
	d.want("cache_hit_ratio", "ok", 0.2)
	d.want("avg_cache_hit", "ok", 0.0002)
	d.want("avg_cache_miss", "ok", 0.0005)
	d.want("cache_saved", "estimate", 20*(1.996/80-0.0002))
	d.want("avg_power", "estimate", 400) // of few readings
	within(t, 100, tritonLines).want("avg_power", "ok", 40)
	d.want("j_per_inference", "estimate", 25)
	d.want("gpu_utilization_mean", "ok", 0.5)
	d.want("gpu_memory_peak", "ok", 30)
	d.want("gpu_memory_usage_mean", "ok", 0.25)
	d.want("cpu_utilization_mean", "ok", 0.2)
	d.want("pinned_memory_usage_mean", "ok", 0.25)
	d.want("trtllm_scheduled_mean", "ok", 6)
	d.want("trtllm_waiting_mean", "ok", 2)
	d.want("trtllm_active_mean", "ok", 8)
	d.want("kv_usage_mean", "ok", 0.25)
	d.want("kv_capacity", "ok", 2560)
	d.want("kv_transfer_mean", "ok", 0.05)

	d = inTenSeconds(t, without(tritonLines, "nv_cache", "energy", `"used"`))
	d.want("avg_compute_infer", "ok", 0.008) // no hits to take off
	d.absent("cache_hit_ratio")
	d.absent("cache_saved")
	d.want("avg_power", "estimate", 390)
	d.want("j_per_inference", "missing", 0)
	d.want("kv_usage_mean", "ok", 0.3)
	d = inTenSeconds(t, strings.Replace(tritonLines, "num_hits_per_model{model=\"m\",version=\"1\"} 20",
		"num_hits_per_model{model=\"m\",version=\"1\"} 100", 1))
	d.want("avg_compute_infer", "zero_denominator", 0) // all from the cache
	d.want("overhead", "zero_denominator", 0)
	// The server cuts off microseconds.
	d = inTenSeconds(t, strings.Replace(tritonLines, " 2000000", " 100000", 1))
	if got := d.one("overhead"); got == nil || got.Value >= 0 || got.Shown != 0 || got.Flags[0] != "negative" {
		t.Errorf("negative overhead: %+v", got)
	}
	// Counters of older releases call themselves gauges.
	inTenSeconds(t, without(tritonLines, "reason")).want("failure_ratio", "missing", 0)
}

const torchserveLines = `
counter ts_inference_requests_total{model_name="m",model_version="1",hostname="h"} 50
counter ts_inference_latency_microseconds{model_name="m",model_version="1",hostname="h"} 5000000
counter ts_queue_latency_microseconds{model_name="m",model_version="1",hostname="h"} 2000000
counter Requests2XX{Level="Host",Hostname="h"} 60
counter Requests4XX{Level="Host",Hostname="h"} 30
counter Requests5XX{Level="Host",Hostname="h"} 10
gauge CPUUtilization{Level="Host",Hostname="h"} 25
gauge GPUUtilization{Level="Host",DeviceId="0"} 40
gauge GPUUtilization{Level="Host",DeviceId="1"} 60
gauge GPUMemoryUtilization{Level="Host",DeviceId="0"} 30
gauge MemoryUtilization{Level="Host",Hostname="h"} 12
gauge QueueTime{Level="Host",Hostname="h"} 5
gauge PredictionTime{ModelName="m",Level="Model",Hostname="h"} 8.75
gauge HandlerTime{ModelName="m",Level="Model",Hostname="h"} 8.25
gauge WorkerThreadTime{Level="Host",Hostname="h"} 2
`

func TestTorchServe(t *testing.T) {
	d := inTenSeconds(t, torchserveLines)
	d.want("request_rate", "ok", 5)
	d.want("avg_inference", "ok", 0.1)
	d.want("avg_queue", "ok", 0.04)
	d.want("avg_compute", "ok", 0.06)
	d.want("queue_share", "ok", 0.4)
	d.want("concurrency_little", "ok", 0.5)
	d.want("waiting_mean_little", "ok", 0.2)
	d.want("answers_s", "ok", 10)
	d.want("client_error_ratio", "ok", 0.3)
	d.want("error_ratio", "ok", 0.1)
	d.want("cpu_utilization_mean", "ok", 25)
	d.want("gpu_utilization_mean", "ok", 50)
	d.want("gpu_memory_utilization_mean", "ok", 30)
	d.want("memory_utilization_mean", "ok", 12)
	d.want("queue_time_last", "estimate", 5)
	d.want("prediction_time_last", "estimate", 8.75)
	d.want("handler_time_last", "estimate", 8.25)
	d.want("around_handler_last", "estimate", 0.5)
	d.want("frontend_overhead", "estimate", 60-8.75) // 100 ms in the mean, less 40 in the queue
	if got := d.one("frontend_overhead"); !slices.Equal(got.Flags, []string{"last_event"}) {
		t.Errorf("flags %v of a quantity of last events", got.Flags)
	}
	// Last events of several models, or of several hosts, are never added up.
	d = inTenSeconds(t, torchserveLines+strings.ReplaceAll(torchserveLines, `"m"`, `"n"`)+
		"gauge QueueTime{Level=\"Host\",Hostname=\"i\"} 9\n")
	d.want("prediction_time_last", "estimate", 8.75, "model_name", "m")
	d.want("prediction_time_last", "estimate", 8.75, "model_name", "n")
	d.want("queue_time_last", "missing", 0)
	d = inTenSeconds(t, without(torchserveLines, "4XX", "5XX", "queue_latency"))
	d.want("error_ratio", "missing", 0)
	d.want("answers_s", "ok", 6)
	d.want("avg_compute", "missing", 0)
	inTenSeconds(t, strings.Replace(torchserveLines, "} 50", "} 0", 1)).want("avg_inference", "zero_denominator", 0)
}

const tgiLines = `
counter tgi_request_count 50
counter tgi_request_success 40
counter tgi_request_failure{err="overloaded"} 5
histogram tgi_request_duration 40 80
histogram tgi_request_validation_duration 50 1
histogram tgi_request_queue_duration 40 20
histogram tgi_request_inference_duration 40 56
histogram tgi_request_mean_time_per_token_duration 40 2
histogram tgi_request_input_length 50 5000
histogram tgi_request_generated_tokens 40 1120
histogram tgi_batch_next_size 10 40
summary tgi_request_skipped_tokens 40 60
counter tgi_batch_inference_count{method="prefill"} 10
counter tgi_batch_inference_count{method="decode"} 280
histogram tgi_batch_inference_duration{method="prefill"} 10 2
histogram tgi_batch_inference_duration{method="decode"} 280 6
gauge tgi_queue_size 3
gauge tgi_batch_current_size 4
gauge tgi_batch_current_max_tokens 100
gauge tgi_batch_max_total_tokens 400
`

func TestTGI(t *testing.T) {
	d := inTenSeconds(t, tgiLines)
	d.want("request_rate", "ok", 5)
	d.want("success_ratio", "ok", 0.8)
	d.want("error_ratio", "ok", 0.1)
	d.want("failure_share", "ok", 0.1, "err", "overloaded")
	d.want("output_tok_s", "ok", 112)
	d.want("input_tok_s", "ok", 500)
	d.want("isl_mean", "ok", 100)
	d.want("osl_mean", "ok", 28)
	d.want("e2e_mean", "ok", 2)
	d.want("queue_mean", "ok", 0.5)
	d.want("inference_mean", "ok", 1.4)
	d.want("validation_mean", "ok", 0.02)
	d.want("tpot_mean_request_weighted", "ok", 0.05)
	d.want("tpot_mean_token_weighted", "ok", 0.05)
	d.want("ttft_proxy", "estimate", 0.72)
	d.want("queue_share", "ok", 0.25)
	d.want("inference_share", "ok", 0.7)
	d.want("validation_share", "ok", 0.0125)
	d.want("running_mean", "ok", 4)
	d.want("running_peak", "ok", 4)
	d.want("waiting_mean", "ok", 3)
	d.want("waiting_peak", "ok", 3)
	d.want("batch_token_usage_mean", "ok", 0.25)
	d.want("concurrency_little", "ok", 8)
	d.want("waiting_mean_little", "ok", 2)
	d.want("running_mean_little", "ok", 5.6)
	d.want("batch_time_share", "ok", 0.75, "method", "decode")
	d.want("batches_s", "ok", 28, "method", "decode")
	d.want("decode_batch_mean", "estimate", 4)
	d.want("next_batch_size", "ok", 4)
	d.want("spec_skipped_mean", "ok", 1.5)
	d = inTenSeconds(t, without(tgiLines, "queue_duration", "failure"))
	d.want("ttft_proxy", "missing", 0)
	d.want("queue_share", "missing", 0)
	d.want("error_ratio", "missing", 0)
}

const llamaLines = `
counter llamacpp:prompt_tokens_total 1000
counter llamacpp:prompt_seconds_total 4
counter llamacpp:prompt_tokens_cached_total 250
counter llamacpp:tokens_predicted_total 600
counter llamacpp:tokens_predicted_seconds_total 12
counter llamacpp:n_decode_total 200
counter llamacpp:draft_tokens_total 40
counter llamacpp:draft_tokens_accepted_total 30
gauge llamacpp:n_busy_slots_per_decode 3
gauge llamacpp:requests_processing 2
gauge llamacpp:requests_deferred 1
gauge llamacpp:kv_cache_usage_ratio 0.5
gauge llamacpp:predicted_tokens_seconds 99
`

func TestLlama(t *testing.T) {
	d := inTenSeconds(t, llamaLines)
	d.want("prefill_tok_s", "ok", 250)
	d.want("decode_tok_s", "ok", 50)
	d.want("output_tok_s", "ok", 60)
	d.want("input_tok_s", "ok", 125) // those found in the cache included, as other engines count them
	d.want("computed_tok_s", "ok", 100)
	d.want("tpot_mean", "ok", 0.02)
	d.want("decode_calls_s", "ok", 20)
	d.want("tokens_per_decode", "ok", 3)
	d.want("running_mean", "ok", 2)
	d.want("running_peak", "ok", 2)
	d.want("waiting_mean", "ok", 1)
	d.want("waiting_peak", "ok", 1)
	d.want("busy_slots_mean", "ok", 3)
	d.want("kv_usage_mean", "ok", 0.5)
	d.want("prefill_share", "ok", 0.25)
	d.want("busy_streams", "ok", 1.6)
	d.want("prefix_hit_ratio", "ok", 0.2)
	d.want("spec_acceptance_rate", "ok", 0.75)
	d = inTenSeconds(t, without(llamaLines, "cached"))
	d.want("prefix_hit_ratio", "missing", 0)
	d.want("input_tok_s", "bound", 100)
	inTenSeconds(t, strings.Replace(llamaLines, " 12\n", " 0\n", 1)).want("decode_tok_s", "zero_denominator", 0)
}

// A mean since the start becomes one of the window by the calls at both ends.
func TestLlamaBusySlots(t *testing.T) {
	const mean, calls = "llamacpp:n_busy_slots_per_decode", "llamacpp:n_decode"
	check := func(v, n [2]float64, typ metric.Type, resets int, status string, want float64) {
		t.Helper()
		gains := []catalog.Gain{{Family: mean, Type: typ, First: v[0], Last: v[1]},
			{Family: calls, Type: metric.Counter, First: n[0], Last: n[1], Total: n[1] - n[0], Resets: resets}}
		derive(t, known(t), 10, gains).want("busy_slots_mean", status, want)
	}
	// 2*100 = 200 and 5*400 = 2000: 1800 slots of 300 calls.
	check([2]float64{2, 5}, [2]float64{100, 400}, metric.Gauge, 0, "ok", 6)
	check([2]float64{2, 5}, [2]float64{100, 400}, metric.Counter, 0, "ok", 6) // as older builds call it
	check([2]float64{0, 5}, [2]float64{0, 400}, metric.Gauge, 0, "ok", 5)
	check([2]float64{2, 2}, [2]float64{100, 100}, metric.Gauge, 0, "zero_denominator", 0)
	check([2]float64{2, 5}, [2]float64{100, 40}, metric.Gauge, 1, "missing", 0)
	derive(t, known(t), 10, []catalog.Gain{{Family: calls, Type: metric.Counter, Last: 4,
		Total: 4}}).want("busy_slots_mean", "missing", 0)
}
