package catalog_test

import (
	"math"
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
)

// captured derives from one captured body of a server that started at zero.
func captured(t *testing.T, name string) []catalog.Derived {
	t.Helper()
	w := &watch{}
	w.see(capture(t, name), 0)
	s := w.stretch()
	for _, family := range unknown(known(t), s) {
		t.Errorf("%s: %s is not in the catalog", name, family)
	}
	return known(t).Derive(s, catalog.Window)
}

// value returns a quantity of a pack without regard to the labels, NaN without
// one.
func value(list []catalog.Derived, pack, name string) float64 {
	for _, d := range list {
		if d.Pack == pack && d.Name == name && d.Status.Defined() {
			return d.Value
		}
	}
	return math.NaN()
}

// TestCaptures is section 9 of the design document derived-metrics.md, and reads
// the other captures without a family that nobody knows.
func TestCaptures(t *testing.T) {
	check := func(list []catalog.Derived, pack, name string, want float64) {
		t.Helper()
		got := value(list, pack, name)
		if !(math.Abs(got-want) <= 1e-6*max(1, math.Abs(want))) {
			t.Errorf("%s %s = %v, want %v", pack, name, got, want)
		}
	}
	none := func(list []catalog.Derived, pack, name string) {
		t.Helper()
		if got := value(list, pack, name); !math.IsNaN(got) {
			t.Errorf("%s %s = %v, want none", pack, name, got)
		}
	}

	l := captured(t, "trtllm.prom")
	check(l, "trtllm", "concurrency_little", 730.928324)
	check(l, "trtllm", "self_check_e2e", 0)
	check(l, "trtllm", "self_check_ttft", 0)
	check(l, "trtllm", "self_check_inference", 0)
	check(l, "trtllm", "ttft_mean", 18.078892/41)
	check(l, "trtllm", "inference_mean", 721.459360/41)
	check(l, "trtllm", "itl_mean_token_weighted", 0.02220507)
	check(l, "trtllm", "tpot_mean_request_weighted", 0.02150607)
	check(l, "trtllm", "prefix_hit_ratio", 6.0/2879)
	check(l, "trtllm", "finished_share", 1)
	check(l, "trtllm", "running_peak", 32)
	none(l, "trtllm", "running_mean") // the gauge still says 32 of a server with no block in use
	none(l, "trtllm", "error_ratio")

	l = captured(t, "sglang_docs_2025.prom")
	check(l, "sglang", "ttft_overflow_share", 0.771711)
	check(l, "sglang", "itl_mean_token_weighted", 866964.5791549598/7.400757e+06)
	check(l, "sglang", "osl_mean", 7.557572e+06/11228)
	none(l, "sglang", "tpot_mean_request")
	none(l, "sglang", "prefix_hit_ratio") // there is but the gauge of the last batch

	l = captured(t, "sglang_live_0.5.20_excerpt.prom")
	check(l, "sglang", "output_tok_s", 32154)
	check(l, "sglang", "prefix_hit_ratio", 0)
	check(l, "sglang", "running_mean", 0) // though decode_sum_seq_lens is 2183 for ever
	check(l, "sglang", "cuda_graph_share", 1)
	none(l, "sglang", "spec_mean_acceptance_length")

	l = captured(t, "triton.prom")
	i := slices.IndexFunc(l, func(d catalog.Derived) bool {
		m, _ := d.Labels.Get("model")
		return m == "densenet_onnx" && d.Name == "avg_request"
	})
	if i < 0 || math.Abs(l[i].Value-1.327965/3) > 1e-12 {
		t.Errorf("triton: no mean of densenet_onnx")
	}
	check(l, "triton-host", "j_per_inference", 4879631.328000044/3)

	l = captured(t, "triton_trtllm.prom")
	check(l, "triton", "kv_usage_mean", 1.0/6239)
	check(l, "triton", "kv_capacity", 6239*64)
	none(l, "triton", "kv_transfer_mean")

	l = captured(t, "torchserve.prom")
	check(l, "torchserve", "avg_inference", 9136028.087e-6/11)
	check(l, "torchserve-host", "error_ratio", 60.0/177)
	captured(t, "torchserve_docs.prom")

	l = captured(t, "llamacpp_idle_windows.prom")
	none(l, "llamacpp", "busy_slots_mean")
	check(l, "llamacpp", "kv_usage_mean", 0)

	l = captured(t, "dcgm.prom")
	check(l, "dcgm", "power_peak", 8.969)
	check(l, "dcgm", "avg_power", 128996.013) // of a second
	captured(t, "dcgm_quirks_synthetic.prom")

	l = captured(t, "dynamo_docs_example.prom")
	check(l, "dynamo-worker", "e2e_mean", 2.5/42)
	captured(t, "ray_vllm_excerpt.prom")
}
