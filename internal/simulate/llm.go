package simulate

import (
	"slices"
	"strconv"
	"time"
)

// cacheConfigLabels are the labels of vllm:cache_config_info besides those of
// the engine, with the values of a server of that size.
func cacheConfigLabels(hw Hardware) [][2]string {
	itoa := strconv.Itoa
	tokens := hw.Blocks * hw.BlockSize
	return [][2]string{
		{"_block_size_resolved", "True"}, {"block_size", itoa(hw.BlockSize)}, {"cache_dtype", "auto"},
		{"enable_prefix_caching", "True"}, {"gpu_memory_utilization", "0.9"}, {"is_attention_free", "False"},
		{"kv_cache_dtype_skip_layers", "[]"},
		{"kv_cache_max_concurrency", string(appendFloat(nil, float64(tokens)/float64(hw.MaxModelLen)))},
		{"kv_cache_memory_bytes", "None"}, {"kv_cache_size_tokens", itoa(tokens)},
		{"kv_offloading_backend", "native"}, {"kv_offloading_size", "None"}, {"kv_sharing_fast_prefill", "False"},
		{"mamba_block_size", "None"}, {"mamba_cache_dtype", "auto"}, {"mamba_cache_mode", "none"},
		{"mamba_page_size_padded", "None"}, {"mamba_ssm_cache_dtype", "auto"}, {"num_cpu_blocks", "None"},
		{"num_gpu_blocks", itoa(hw.Blocks)}, {"num_gpu_blocks_override", "None"},
		{"prefix_caching_hash_algo", "sha256"}, {"prefix_match_unit", "None"}, {"sliding_window", "None"},
		{"user_specified_block_size", "False"}, {"user_specified_mamba_block_size", "False"},
	}
}

// newLLMTable registers the vllm:* families of autoregressive engines, in the order in which vLLM 0.28 to 0.30 does.
// vLLM labels them with model_name and engine; vLLM-Omni puts stage and replica in the place of engine.
func newLLMTable(w *world, hw Hardware, labels []string) *table {
	config := slices.Clip(labels)
	for _, l := range cacheConfigLabels(hw) {
		config = append(config, l[0])
	}
	return w.table("llm", variant{
		labels:  map[string][]string{"": labels, "config": config},
		layouts: map[string][]float64{"tokens": tokenBounds(hw.MaxModelLen)},
	})
}

// llmSeries are the series of one engine.
type llmSeries struct {
	*panel
	// throttled lets scheduler statistics come out once a second at most, as in vLLM-Omni, else with each step.
	throttled    bool
	scheduledAt  time.Duration
	queryN, hitN int // not yet out
	gaps         tokenGaps
}

// newLLMSeries makes the series of one engine, all visible at zero.
func newLLMSeries(t *table, hw Hardware, values ...string) *llmSeries {
	s := &llmSeries{panel: t.panel("", values...), scheduledAt: -time.Hour}
	s.gaps.to = s.of("inter_token_latency_seconds")
	s.set("engine_sleep_state", 1, "awake")
	for _, l := range cacheConfigLabels(hw) {
		values = append(slices.Clip(values), l[1])
	}
	t.panel("config", values...).set("cache_config_info", 1)
	return s
}
