package catalog_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

const rayLines = `
counter ray_serve_deployment_request_counter_total{application="a",deployment="d",replica="1"} 30
counter ray_serve_deployment_request_counter_total{application="a",deployment="d",replica="2"} 10
counter ray_serve_deployment_error_counter_total{application="a",deployment="d",replica="1"} 4
histogram ray_serve_deployment_processing_latency_ms{application="a",deployment="d",replica="1"} 40 20000
gauge ray_serve_replica_processing_queries{application="a",deployment="d",replica="1"} 2
gauge ray_serve_deployment_queued_queries{application="a",deployment="d"} 3
gauge ray_serve_deployment_replica_healthy{application="a",deployment="d",replica="1"} 1
gauge ray_serve_deployment_replica_healthy{application="a",deployment="d",replica="2"} 1
histogram ray_serve_health_check_latency_ms{application="a",deployment="d"} 10 20
histogram ray_serve_multiplexed_model_load_latency_ms{application="a",deployment="d"} 2 3000
histogram ray_serve_batch_wait_time_ms{application="a",deployment="d"} 10 100
histogram ray_serve_batch_execution_time_ms{application="a",deployment="d"} 10 500
histogram ray_serve_actual_batch_size{application="a",deployment="d"} 10 40
histogram ray_serve_batch_utilization_percent{application="a",deployment="d"} 10 600
counter ray_serve_num_http_requests_total{application="a",route="/"} 40
counter ray_serve_num_http_error_requests_total{application="a",route="/"} 2
histogram ray_serve_http_request_latency_ms{application="a",route="/"} 40 24000
`

func TestRay(t *testing.T) {
	all := inTenSeconds(t, rayLines)
	d := of(all, "ray")
	d.want("request_rate", "ok", 4)
	d.want("processing_mean", "ok", 0.5)
	d.want("busy_replicas", "ok", 2)
	d.want("running_mean", "ok", 2)
	d.want("waiting_mean", "ok", 3)
	d.want("waiting_peak", "ok", 3)
	d.want("error_ratio", "ok", 0.1)
	d.want("replica_skew", "ok", 1.5)
	d.want("replicas_healthy_mean", "ok", 2)
	d.want("health_check_mean", "ok", 0.002)
	d.want("model_load_mean", "ok", 1.5)
	d.want("batch_wait_mean", "ok", 0.01)
	d.want("batch_execution_mean", "ok", 0.05)
	d.want("batch_size_mean", "ok", 4)
	d.want("batch_utilization", "ok", 60)
	d = of(all, "ray-proxy")
	d.want("request_rate", "ok", 4)
	d.want("e2e_mean", "ok", 0.6)
	d.want("concurrency_little", "ok", 2.4)
	d.want("error_ratio", "ok", 0.05)
	d.want("proxy_overhead", "estimate", 0.1)
	d = inTenSeconds(t, without(rayLines, "counter", "num_http", "processing_latency"))
	of(d, "ray").absent("replica_skew")
	of(d, "ray-proxy").want("request_rate", "ok", 4) // by the count of the latencies
	d.absent("proxy_overhead")
	// One replica has nobody to be compared with.
	of(inTenSeconds(t, without(rayLines, `replica="2"`)), "ray").absent("replica_skew")
}

// of keeps the results of a pack.
func of(d derived, pack string) derived {
	return derived{d.t, slices.DeleteFunc(slices.Clone(d.list), func(x catalog.Derived) bool { return x.Pack != pack })}
}

const lmcacheLines = `
counter lmcache:num_requested_tokens_total{model_name="m"} 1000
counter lmcache:num_hit_tokens_total{model_name="m"} 400
counter lmcache:num_vllm_hit_tokens_total{model_name="m"} 600
counter lmcache:num_prompt_tokens_total{model_name="m"} 2000
counter lmcache:num_stored_tokens_total{model_name="m"} 500
counter lmcache:num_lookup_tokens_total{model_name="m"} 800
counter lmcache:num_lookup_hits_total{model_name="m"} 600
counter lmcache:num_lookup_requests_total{model_name="m"} 50
counter lmcache:lookup_0_hit_requests_total{model_name="m"} 5
counter lmcache:num_retrieve_requests_total{model_name="m"} 40
counter lmcache:num_slow_retrieval_by_time_total{model_name="m"} 4
counter lmcache:num_slow_retrieval_by_speed_total{model_name="m"} 2
counter lmcache:local_cpu_evict_count_total{model_name="m"} 9
counter lmcache:local_cpu_evict_failed_count_total{model_name="m"} 1
counter lmcache:num_remote_read_bytes_total{model_name="m"} 3e9
counter lmcache:num_remote_write_bytes_total{model_name="m"} 1e9
histogram lmcache:time_to_retrieve{model_name="m"} 40 2
histogram lmcache:time_to_store{model_name="m"} 40 4
histogram lmcache:time_to_lookup{model_name="m"} 40 0.4
gauge lmcache:local_cache_usage{model_name="m"} 123
gauge lmcache:retrieve_hit_rate{model_name="m"} 1
`

func TestLMCache(t *testing.T) {
	d := inTenSeconds(t, lmcacheLines)
	d.want("retrieve_hit_ratio", "ok", 0.4)
	d.want("lookup_hit_ratio", "ok", 0.75)
	d.want("combined_prefix_hit_ratio", "ok", 0.5)
	d.want("store_ratio", "ok", 0.25)
	d.want("zero_hit_share", "ok", 0.1)
	d.want("slow_share_by_time", "ok", 0.1)
	d.want("slow_share_by_speed", "ok", 0.05)
	d.want("eviction_failure_ratio", "ok", 0.1)
	d.want("retrieve_mean", "estimate", 0.05)
	d.want("store_mean", "estimate", 0.1)
	d.want("lookup_mean", "estimate", 0.01)
	d.want("retrieve_tok_s", "ok", 200)
	d.want("retrieve_rate", "ok", 4)
	d.want("remote_read_gb_s", "ok", 0.3)
	d.want("remote_write_gb_s", "ok", 0.1)
	d.want("local_cache_bytes_mean", "ok", 123)
	d = inTenSeconds(t, without(lmcacheLines, "num_hit", "requested"))
	d.absent("retrieve_hit_ratio") // never the gauge, which says 1 of nothing
	d.want("combined_prefix_hit_ratio", "missing", 0)
}

const dcgmLines = `
counter DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="a"} 4000000
gauge DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="a"} 380
gauge DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="a"} 75
gauge DCGM_FI_DEV_MEM_COPY_UTIL{gpu="0",UUID="a"} 50
gauge DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="a"} 0.75
gauge DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="a"} 0.5
gauge DCGM_FI_PROF_SM_OCCUPANCY{gpu="0",UUID="a"} 0.25
gauge DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu="0",UUID="a"} 0.4
gauge DCGM_FI_PROF_DRAM_ACTIVE{gpu="0",UUID="a"} 0.6
gauge DCGM_FI_DEV_FB_USED{gpu="0",UUID="a"} 70000
gauge DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="a"} 66
counter DCGM_FI_DEV_POWER_VIOLATION{gpu="0",UUID="a"} 2e9
counter DCGM_FI_DEV_THERMAL_VIOLATION{gpu="0",UUID="a"} 1e9
counter DCGM_FI_DEV_SYNC_BOOST_VIOLATION{gpu="0",UUID="a"} 3e9
counter DCGM_FI_DEV_BOARD_LIMIT_VIOLATION{gpu="0",UUID="a"} 4e9
counter DCGM_FI_DEV_RELIABILITY_VIOLATION{gpu="0",UUID="a"} 5e9
gauge DCGM_FI_PROF_PCIE_TX_BYTES{gpu="0",UUID="a"} 3e9
counter DCGM_FI_PROF_PCIE_RX_BYTES{gpu="0",UUID="a"} 2e10
gauge DCGM_FI_PROF_NVLINK_TX_BYTES{gpu="0",UUID="a"} 5e9
counter DCGM_FI_PROF_NVLINK_RX_BYTES{gpu="0",UUID="a"} 4e10
counter DCGM_FI_DEV_ECC_SBE_VOL_TOTAL{gpu="0",UUID="a"} 3
counter DCGM_FI_DEV_ECC_SBE_AGG_TOTAL{gpu="0",UUID="a"} 3
counter DCGM_FI_DEV_ECC_DBE_AGG_TOTAL{gpu="0",UUID="a"} 1
counter DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS{gpu="0",UUID="a"} 2
counter DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{gpu="0",UUID="a"} 1
counter DCGM_FI_DEV_PCIE_REPLAY_COUNTER{gpu="0",UUID="a"} 6
counter DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL{gpu="0",gpu_uuid="a",nvlink="0"} 4
counter DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL{gpu="0",gpu_uuid="a",nvlink="0"} 1
gauge DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="a"} 31
`

func TestDCGM(t *testing.T) {
	d := inTenSeconds(t, dcgmLines)
	d.want("avg_power", "estimate", 400, "gpu", "0") // of less than a reading
	within(t, 1000, dcgmLines).want("avg_power", "ok", 4)
	within(t, 10, strings.Replace(dcgmLines, " 4000000", " 0", 1)).want("avg_power", "estimate", 380) // not read again
	d.want("power_peak", "ok", 380)
	d.want("gpu_util_mean", "ok", 75)
	d.want("mem_copy_util_mean", "ok", 50)
	d.want("gr_engine_active_mean", "ok", 0.75)
	d.want("sm_active_mean", "ok", 0.5)
	d.want("sm_occupancy_mean", "ok", 0.25)
	d.want("tensor_active_mean", "ok", 0.4)
	d.want("dram_active_mean", "ok", 0.6)
	d.absent("dram_gb_s") // nobody told the peak
	d.want("fb_used_peak", "ok", 70000)
	d.want("gpu_temp_peak", "ok", 66)
	d.want("throttled_share_power", "ok", 0.2)
	d.want("throttled_share_thermal", "ok", 0.1)
	d.want("throttled_share_sync_boost", "ok", 0.3)
	d.want("throttled_share_board_limit", "ok", 0.4)
	d.want("throttled_share_reliability", "ok", 0.5)
	d.want("pcie_tx_gb_s", "ok", 3)
	d.want("pcie_rx_gb_s", "ok", 2)
	d.want("nvlink_tx_gb_s", "ok", 5)
	d.want("nvlink_rx_gb_s", "ok", 4)
	d.want("ecc_corrected", "ok", 3) // both counters have the same errors
	d.want("ecc_uncorrected", "ok", 1)
	d.want("rows_remapped", "ok", 3)
	d.want("pcie_replays", "ok", 6)
	d.want("nvlink_errors", "ok", 5)
	d.want("xid_changed", "bound", 0)
	d.absent("j_per_output_token") // nobody made any
	d = inTenSeconds(t, without(dcgmLines, "ENERGY"))
	d.want("avg_power", "estimate", 380)

	c, err := catalog.New(strings.NewReader("inputs: {peak_gb_s: 3000}"))
	if err != nil {
		t.Fatal(err)
	}
	derive(t, c, 10, exposed(t, exposition(dcgmLines))).want("dram_gb_s", "estimate", 1800)
	// Another error than at the beginning, and the same: the same again is not seen.
	gains := []catalog.Gain{{Family: "DCGM_FI_DEV_XID_ERRORS", Type: metric.Gauge,
		Labels: metric.LabelsFromMap(map[string]string{"gpu": "0"}), First: 0, Max: 31, Last: 31}}
	derive(t, c, 10, gains).want("xid_changed", "bound", 1)
}

func TestEnergy(t *testing.T) {
	d := within(t, 1000, dcgmLines+sglangLines)
	d.want("j_per_output_token", "ok", 4000.0/500)
	d.want("tokens_s_per_watt", "ok", 500.0/4000)
	d.want("j_per_request", "ok", 200)
	if got := d.one("j_per_output_token"); !slices.Contains(got.Flags, "all_gpus_watched") {
		t.Errorf("flags %v", got.Flags)
	}
	within(t, 1000, without(dcgmLines, "ENERGY")+sglangLines).want("j_per_output_token", "estimate", 380*1000.0/500)
	within(t, 1000, strings.Replace(dcgmLines, " 4000000", " 0", 1)+sglangLines).want("j_per_output_token", "estimate",
		380*1000.0/500)
	within(t, 10, dcgmLines+sglangLines).want("j_per_output_token", "estimate", 8) // of less than a reading
	within(t, 1000, tritonLines+"counter vllm:generation_tokens_total 800\n").want("j_per_output_token", "ok", 5)
	// not counted twice
	within(t, 1000, dcgmLines+dynamoLines+"counter vllm:generation_tokens_total 799\n").want("j_per_output_token", "ok", 5)
	// of two engines
	within(t, 1000, dcgmLines+sglangLines+"counter vllm:generation_tokens_total 300\n").want("j_per_output_token", "ok", 5)
	d = within(t, 1000, dcgmLines+"histogram vllm_omni:audio_duration_s 5 20\ncounter vllm_omni:image_count_total 8\n")
	d.want("j_per_audio_second", "ok", 200)
	d.want("j_per_image", "ok", 500)
	within(t, 1000, dcgmLines+strings.Replace(trtllmLines, " 840", " 0", 1)).want("j_per_output_token",
		"zero_denominator", 0)
	within(t, 1000, dcgmLines+trtllmLines).want("j_per_output_token", "ok", 4000.0/840)
	within(t, 1000, dcgmLines+tgiLines).want("j_per_output_token", "ok", 4000.0/1120)
	within(t, 1000, dcgmLines+llamaLines).want("j_per_output_token", "ok", 4000.0/600)
	within(t, 1000, sglangLines).absent("j_per_output_token")
}

// AMD's energy is a gauge that only grows, and all partitions of a GPU tell that of the whole; Intel's exporter has
// power alone. GPUs of several makers are added up, meters of one GPU are not.
func TestEnergyOfOthers(t *testing.T) {
	amd := func(energy0, energy1 float64) []catalog.Gain {
		gauge := func(family, partition string, first, last, mean float64) catalog.Gain {
			return catalog.Gain{Family: family, Type: metric.Gauge, First: first, Last: last, Max: last, TimeAvg: mean,
				Labels: metric.LabelsFromMap(map[string]string{"gpu_id": "0", "gpu_partition_id": partition})}
		}
		return []catalog.Gain{gauge("gpu_energy_consumed", "0", energy0, energy1, 0),
			gauge("gpu_energy_consumed", "1", energy0, energy1, 0), gauge("gpu_package_power", "0", 390, 390, 390)}
	}
	tokens := exposed(t, exposition("counter lmdeploy:generation_tokens_total 1000\n"))
	of := func(gains ...catalog.Gain) derived { return derive(t, known(t), 1000, append(gains, tokens...)) }
	d := of(amd(7e9, 4e11+7e9)...)
	d.want("avg_power", "ok", 400, "gpu_id", "0")
	d.want("j_per_output_token", "ok", 400)
	d = of(amd(4e11, 1e6)...) // the driver began anew
	d.want("avg_power", "estimate", 390)
	of(amd(5, 5)...).want("j_per_output_token", "estimate", 390) // not read again
	d = of(append(amd(0, 4e11), exposed(t, exposition(dcgmLines+"gauge nv_gpu_power_usage{gpu_uuid=\"a\"} 390\n"+
		"gauge hw_power_watts{hw_id=\"i\"} 100\n"))...)...)
	d.want("j_per_output_token", "estimate", 400+4+100)
	of(exposed(t, exposition("gauge gpu_power_usage{gpu_id=\"0\"} 50\n"))...).want("j_per_output_token", "estimate", 50)
}

// Whatever is taken from a server, no quantity turns into a number that is made
// up, no value is infinite, and restarts are said.
func TestNothingMadeUp(t *testing.T) {
	c := known(t)
	check := func(lines string) {
		t.Helper()
		gains := exposed(t, exposition(lines))
		whole := derive(t, c, 10, gains)
		families := map[string]bool{}
		for _, g := range gains {
			families[g.Family] = true
		}
		for family := range families {
			left := slices.DeleteFunc(slices.Clone(gains), func(g catalog.Gain) bool { return g.Family == family })
			for _, d := range derive(t, c, 10, left).list {
				was := same(whole.list, d)
				if was != nil && was.Value != 0 && d.Status.Defined() && d.Value == 0 {
					t.Errorf("%s without %s is 0, with it %v", d.Name, family, was.Value)
				}
			}
		}
		idle, again, born := slices.Clone(gains), slices.Clone(gains), slices.Clone(gains)
		for i := range idle {
			g := &idle[i]
			g.Total, g.Exact, g.Count, g.Sum, g.First, again[i].Resets = 0, 0, 0, 0, g.Last, 1
			born[i].Born = true
			g.Buckets = slices.Clone(g.Buckets)
			for k := range g.Buckets {
				g.Buckets[k].Count = 0
			}
		}
		for _, d := range derive(t, c, 10, idle).list {
			if math.IsNaN(d.Value) || math.IsInf(d.Value, 0) || d.Status == catalog.OK && d.HasParts && d.Denominator == 0 {
				t.Errorf("of nothing %s is %+v", d.Name, d)
			}
		}
		for _, d := range derive(t, c, 10, again).list {
			if d.Status == catalog.OK && d.HasParts && counted(gains, d.Families) {
				t.Errorf("after a restart %s of %v is ok", d.Name, d.Families)
			}
		}
		for _, d := range derive(t, c, 10, born).list {
			if d.Status == catalog.OK && d.HasParts && counted(gains, d.Families) {
				t.Errorf("of series that are new %s of %v is ok", d.Name, d.Families)
			}
		}
	}
	for _, lines := range []string{sglangLines, trtllmLines, dynamoLines, workerLines, dynamoLines + workerLines,
		tritonLines, torchserveLines, tgiLines, llamaLines,
		rayLines, lmcacheLines, dcgmLines, dcgmLines + sglangLines} {
		check(lines)
	}
}

// Each formula is among those that the tests have numbers for.
func TestEveryFormulaHasNumbers(t *testing.T) {
	_, others := formulaLines(t)
	mine := []string{"sglang", "trtllm", "dynamo", "dynamo-worker",
		"dynamo-path", "triton", "triton-host", "torchserve",
		"torchserve-host", "tgi", "llamacpp", "ray", "ray-proxy",
		"lmcache", "dcgm", catalog.EnergyPack, "llm-d-epp", "sglang-gateway", "lmcache-server", "mooncake", "nixl",
		"envoy-ai-gateway", "amd", "xpum", "host", "container", "bentoml", "kserve", "mlserver"}
	var parts strings.Builder // summaries that differ from the one in the lines by their name only
	for _, of := range []string{"request", "compute_input", "compute_infer", "compute_output"} {
		parts.WriteString("summary nv_inference_" + of + "_summary_us{model=\"m\",version=\"1\"} 100 500000\n")
	}
	c, err := catalog.New(strings.NewReader("inputs: {peak_gb_s: 3000, peak_tflops: 20, slo: {ttft_s: 1, itl_s: 1, " +
		"tpot_s: 1, e2e_s: 1, queue_s: 1}}"))
	if err != nil {
		t.Fatal(err)
	}
	d := derive(t, c, 10, exposed(t, exposition(
		sglangLines+trtllmLines+dynamoLines+workerLines+tritonLines+torchserveLines+tgiLines+llamaLines+rayLines+
			lmcacheLines+dcgmLines+
			"histogram vllm_omni:audio_duration_s 5 20\ncounter vllm_omni:image_count_total 8\n"+parts.String())))
	for _, p := range catalog.Packs() {
		if !slices.Contains(mine, p.Name) {
			continue
		}
		names := map[string]bool{}
		for _, r := range p.Rules {
			if r.Help == "" || r.Category == catalog.Other || names[r.Name] {
				t.Errorf("%s %s: no help, no question, or twice", p.Name, r.Name)
			}
			names[r.Name] = true
			if !slices.ContainsFunc(d.list, func(x catalog.Derived) bool {
				return x.Pack == p.Name && x.Name == r.Name &&
					x.Status.Defined()
			}) && !tested(others, p.Name, r.Name) {
				t.Errorf("%s %s has no numbers", p.Name, r.Name)
			}
		}
	}
}

func same(list []catalog.Derived, d catalog.Derived) *catalog.Derived {
	i := slices.IndexFunc(list, func(o catalog.Derived) bool {
		return o.Pack == d.Pack && o.Name == d.Name &&
			o.Labels == d.Labels
	})
	if i < 0 {
		return nil
	}
	return &list[i]
}

// counted reports whether one of the families is no gauge.
func counted(gains []catalog.Gain, families []string) bool {
	return slices.ContainsFunc(gains, func(g catalog.Gain) bool {
		return g.Type != metric.Gauge && slices.Contains(families, g.Family)
	})
}
