package catalog_test

import (
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

// dictOf has one series for each "name" or "name label=value".
func dictOf(t *testing.T, families ...string) *metric.Schema {
	t.Helper()
	var d metric.Schema
	for i, text := range families {
		name, pair, _ := strings.Cut(text, " ")
		var labels []metric.Label
		if k, v, ok := strings.Cut(pair, "="); ok {
			labels = append(labels, metric.Label{Name: k, Value: v})
		}
		g := metric.DictDelta{Families: []metric.Family{{Name: name}},
			Series: []metric.Series{{Family: i, Labels: metric.NewLabels(labels...)}}}
		if err := d.Grow(&g); err != nil {
			t.Fatal(err)
		}
	}
	return &d
}

func TestEngines(t *testing.T) {
	check := func(want string, families ...string) {
		t.Helper()
		var got []string
		for _, e := range catalog.Embedded().Engines(dictOf(t, families...)) {
			got = append(got, strings.TrimSpace(e.ID+" "+e.Version))
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("Engines(%q): %q, want %q", families, s, want)
		}
	}
	check("")
	check("", "up", "http_requests", "e2e_request_latency_seconds", "rayleigh")
	check("vllm", "vllm:num_requests_running")
	check("vllm-omni", "vllm:num_requests_running", "vllm_omni:audio_rtf")
	check("vllm-omni", "vllm:omni_audio_rtf")
	check("sglang", "sglang:num_running_reqs")
	check("sglang 0.5", "sglang:build_info version=0.5")
	check("sglang", "sglang:build_info version=")
	check("sglang", "sglang:num_running_reqs version=0.5")
	check("trtllm", "trtllm_num_requests_running")
	check("trtllm", "trtllm:kv_cache_hit_rate")
	check("trtllm", "e2e_request_latency_seconds engine_type=undefined")
	check("dynamo", "dynamo_frontend_requests")
	check("dynamo", "nv_llm_http_service_requests")
	check("dynamo, vllm", "vllm:num_requests_running", "dynamo_component_requests")
	check("triton, vllm", "nv_inference_count", "vllm:prompt_tokens")
	check("triton", "nv_trt_llm_request_metrics")
	check("triton", "triton_stats_requests")
	check("torchserve", "ts_inference_requests")
	check("tgi", "tgi_request_count")
	check("llamacpp", "llamacpp:n_decode")
	check("vllm, ray 2.32", "ray_vllm:num_requests_running Version=2.32")
	check("vllm, lmcache", "vllm:prompt_tokens", "lmcache:num_hit_tokens")
	check("dcgm", "DCGM_FI_DEV_GPU_UTIL DCGM_FI_DRIVER_VERSION=570")
	host := metric.Schema{Families: []metric.Family{{Name: "Requests2XX",
		Help: "Torchserve prometheus counter metric with unit: Count"}}}
	if e := catalog.Embedded().Engines(&host); len(e) != 1 || e[0].ID != "torchserve" || e[0].Refresh != 0 ||
		e[0].Refreshed != "" {
		t.Errorf("a TorchServe without requests: %+v", e)
	}
	host.Families = append(host.Families, metric.Family{Name: "CPUUtilization"})
	if e := catalog.Embedded().Engines(&host); len(e) != 1 || e[0].Refresh == 0 || e[0].Refreshed == "" {
		t.Errorf("a TorchServe with gauges of its host: %+v", e)
	}
}

// What means that there is no value is told by packs, of names that nobody lists too, under all spellings.
func TestSentinels(t *testing.T) {
	for _, c := range []struct {
		family string
		blank  []float64
		value  []float64
	}{
		{"DCGM_FI_DEV_OF_TOMORROW", []float64{9223372036854775794, 2147483632, 2147483647, 140737488355328},
			[]float64{0, -1, 2147483631, 2147483648, 1e19}},
		{"vllm:gpu_prefix_cache_hit_rate", []float64{-1}, []float64{0, -2, 0.5}},
		{"ray_vllm_cpu_prefix_cache_hit_rate", []float64{-1}, []float64{0}},
		{"trtllm_max_batch_size_runtime", []float64{0}, []float64{1}},
		{"vllm:num_requests_running", nil, nil},
	} {
		blank := catalog.Embedded().Sentinel(c.family)
		if (blank == nil) != (c.blank == nil) {
			t.Errorf("%s has sentinels: %v", c.family, blank != nil)
			continue
		}
		for _, v := range c.blank {
			if !blank(v) {
				t.Errorf("%v of %s is a value", v, c.family)
			}
		}
		for _, v := range c.value {
			if blank(v) {
				t.Errorf("%v of %s is none", v, c.family)
			}
		}
	}
}
