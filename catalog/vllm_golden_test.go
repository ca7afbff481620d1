package catalog_test

import (
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
)

// The values of a real server after 41 requests: section 9 of the design document
// derived-metrics.md.
func TestCapturedVLLM(t *testing.T) {
	c, err := catalog.New(strings.NewReader("inputs: {slo: {ttft_s: 0.5}}"))
	if err != nil {
		t.Fatal(err)
	}
	d := derive(t, c, 1000, exposed(t, capture(t, "vllm.prom")))
	near := func(name string, want, tolerance float64, labels ...string) {
		t.Helper()
		got := d.one(name, labels...)
		if got == nil || got.Status != catalog.OK || got.Value < want-tolerance || got.Value > want+tolerance {
			t.Errorf("%s %v: %+v, want %v", name, labels, got, want)
		}
	}
	near("queue_share_e2e", 0.537110, 5e-7)
	near("prefill_share_e2e", 0.005975, 5e-7)
	near("decode_share_e2e", 0.455822, 5e-7)
	near("frontend_share_e2e", 0.001093, 5e-7)
	near("itl_mean_token_weighted", 24.7677e-3, 5e-8)
	near("tpot_mean_request_weighted", 23.9549e-3, 5e-8)
	near("tokens_per_step", 8.6741, 5e-5)
	near("finished_share", 1, 0, "finished_reason", "length")
	near("finished_share", 0, 0, "finished_reason", "stop")
	near("preemptions_per_request", 22.0/41, 1e-12)
	near("prefix_hit_ratio", 0, 0)
	near("slo_attainment", 19.0/41, 1e-12, "slo", "ttft_s")
	near("request_rate", 0.041, 1e-12)
	d.want("decode_batch_mean", "estimate", 32103.0/4038)
	d.want("http_overhead_mean", "estimate", 0.0957558/41)
	for _, name := range []string{"self_check_inference", "self_check_decode", "self_check_requests", "self_check_step_tokens"} {
		if got := d.one(name); got == nil || got.Status != catalog.OK || len(got.Flags) > 0 || got.Value > 1e-9 || got.Value < -1e-9 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if d := d.one("tflops_per_gpu"); d == nil || d.Status != catalog.Missing || d.Flags[0] != "not_enabled" {
		t.Errorf("tflops_per_gpu of a server that does not estimate: %+v", d)
	}
}

// A Ray body has the same families under a prefix of its own.
func TestCapturedRay(t *testing.T) {
	d := derive(t, known(t), 100, exposed(t, capture(t, "ray_vllm_excerpt.prom")))
	n := 0
	for i := range d.list {
		if d.list[i].Pack == catalog.VLLMPack && d.list[i].Status.Defined() {
			n++
		}
	}
	if n < 5 {
		t.Errorf("%d quantities of vLLM in Ray's body", n)
	}
}
