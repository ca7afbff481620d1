package catalog_test

import (
	"math"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/testkit"
)

// gained derives from what a real server gained between two bodies, or since zero
// without a first one, as if that had taken 1000 s.
func gained(t *testing.T, before, after string) derived {
	t.Helper()
	w := &watch{}
	if before == "" {
		w.bodies, w.at = append(w.bodies, body{}), append(w.at, 0)
	} else {
		w.see(string(testkit.Data(t, "bodies/"+before+".prom")), 0)
	}
	w.see(string(testkit.Data(t, "bodies/"+after+".prom")), 1000)
	c, err := catalog.New(strings.NewReader("inputs: {slo: {ttft_s: 0.5}}"))
	if err != nil {
		t.Fatal(err)
	}
	return derived{t, c.Derive(w.stretch(), catalog.Window)}
}

// The numbers of the tests below come from a program in another language that reads
// the same bodies; sums are those of the server, not rounded.

// 200 requests of 120.13 prompt and 48 generated tokens in the mean, all ended.
func TestVLLMBody(t *testing.T) {
	d := gained(t, "vllm-0.32.0-before-run1", "vllm-0.32.0-after-run1")
	d.want("request_rate", "ok", 0.2)
	d.want("isl_mean", "ok", 24026.0/200)
	d.want("osl_mean", "ok", 9600.0/200)
	d.want("queue_share_e2e", "ok", 9.64502810e-05)
	d.want("prefill_share_e2e", "ok", 0.05565607396)
	d.want("decode_share_e2e", "ok", 0.858199153336)
	d.want("frontend_share_e2e", "ok", 0.086048322422)
	d.want("itl_mean_token_weighted", "ok", 0.004070800540531996)
	d.want("tpot_mean_request_weighted", "ok", 0.004070800540531995)
	d.want("tokens_per_step", "ok", 4.885369751561819)
	d.want("finished_share", "ok", 1, "finished_reason", "length")
	d.want("finished_share", "ok", 0, "finished_reason", "stop")
	d.want("preemptions_per_request", "ok", 0)
	d.want("prefix_hit_ratio", "ok", 0)
	d.want("slo_attainment", "ok", 196.0/200, "slo", "ttft_s")
	d.want("decode_batch_mean", "estimate", (9600.0-200)/6883)
	d.want("http_overhead_mean", "estimate", 0.002722538130273051)
	for _, name := range []string{"inference", "decode", "first_tokens", "step_tokens"} {
		if got := d.one("self_check_" + name); got == nil || got.Status != catalog.OK || len(got.Flags) > 0 ||
			math.Abs(got.Value) > 1e-9 {
			t.Errorf("self_check_%s: %+v", name, got)
		}
	}
	if d := d.one("tflops_per_gpu"); d == nil || d.Status != catalog.Missing || d.Flags[0] != "not_enabled" {
		t.Errorf("tflops_per_gpu of a server that does not estimate: %+v", d)
	}
}

// A server with few blocks that preempts, speculates in vain, and estimates FLOPs.
func TestVLLMUnderLoad(t *testing.T) {
	d := gained(t, "vllm-0.32.0-spec-mfu-idle", "vllm-0.32.0-spec-mfu-under-load")
	d.want("preemptions_per_request", "ok", 2.0/2)
	d.want("prefix_hit_ratio", "ok", 640.0/1779)
	d.want("running_peak", "ok", 2)
	d.want("waiting_peak", "ok", 9)
	d.want("kv_usage_peak", "ok", 8.0/11)
	d.want("spec_mean_acceptance_length", "ok", 1)
	d.want("tflops_per_gpu", "ok", 1067851264/1000/1e12)
	d.want("hbm_gbs_per_gpu", "ok", (287409152.0+11478912)/1000/1e9)
	d = gained(t, "vllm-0.32.0-2apiservers-idle", "vllm-0.32.0-2apiservers-end")
	d.want("request_rate", "ok", 3/1000.0)
	d.want("ttft_mean", "ok", 0.3067702054977417)
	d.want("http_5xx_ratio", "ok", 137.0/150, "handler", "/v1/completions")
}

// What real servers show that earlier versions of the packs had wrong: the numbers are
// those of the bodies, by hand.
func TestCorrections(t *testing.T) {
	unflagged := func(d derived, name string) {
		t.Helper()
		if got := d.one(name); got == nil || len(got.Flags) > 0 {
			t.Errorf("%s: %+v, want no flags", name, got)
		}
	}
	d := gained(t, "vllm-0.32.0-2apiservers-idle", "vllm-0.32.0-2apiservers-end")
	d.want("error_ratio", "ok", 145.0/148)
	d.want("rejected_share", "ok", 145.0/148)
	d.want("abandoned_requests", "bound", 1)
	d.want("self_check_first_tokens", "ok", 0)
	d.want("self_check_step_tokens", "ok", 0)
	d.want("self_check_decode", "ok", -0.0583676)
	unflagged(d, "self_check_decode")
	d = gained(t, "vllm-0.32.0-spec-mfu-idle", "vllm-0.32.0-spec-mfu-under-load")
	d.want("self_check_step_tokens", "ok", 0)
	d.want("self_check_first_tokens", "ok", 0)
	d.want("kv_capacity", "ok", 1536)
	gained(t, "vllm-0.32.0-before-run1", "vllm-0.32.0-after-run1").want("kv_capacity", "ok", 2097152)
	d = gained(t, "", "vllm-omni-0.30.0-allstages")
	d.want("stage_time_mean", "ok", 90.9/300, "stage", "3")
	d.want("omni_stages_mean", "ok", 2.811329655)
	d.want("omni_slack_mean", "ok", -1.648214411)
	d = gained(t, "", "dynamo-worker-load")
	d.want("network_transit_mean", "ok", 0.059151262/93)
	d.want("first_response_mean", "ok", 0.213254317/93)
	d.want("kv_usage_mean", "ok", 0, "dynamo_component", "backend")
	d = gained(t, "", "dynamo-frontend-load")
	d.want("kv_capacity", "ok", 32000, "model", "tiny")
	d.want("kv_hit_rate_mean", "ok", 128.7206519730815/183, "model", "tiny")
	d.want("router_overhead_mean", "ok", 35.905848e-3/183, "model", "tiny")
	d = gained(t, "llamacpp-idle", "llamacpp-load")
	d.want("spec_acceptance_rate", "zero_denominator", 0)
	d = gained(t, "torchserve-idle", "torchserve-load")
	d.want("queue_time_last", "estimate", 5)
	d.want("prediction_time_last", "estimate", 8.75)
	d.want("worker_thread_time_last", "estimate", 2)
}

// A label that is new, or that tells kinds apart in one family, makes no scopes: vLLM
// 0.33 has a gauge by step of a transfer, which another engine's stages are called.
func TestNoPhantomScopes(t *testing.T) {
	more := ""
	for _, family := range []string{"num_requests_kv_fetch_by_stage", "nobody_knows"} {
		for _, stage := range []string{"waiting_to_start", "in_progress", "done"} {
			more += "vllm:" + family + `{engine="0",model_name="tiny",stage="` + stage + "\"} 0\n"
		}
	}
	w := &watch{}
	w.see(string(testkit.Data(t, "bodies/vllm-0.32.0-before-run1.prom"))+more, 0)
	w.see(string(testkit.Data(t, "bodies/vllm-0.32.0-after-run1.prom"))+more, 10)
	n := 0
	for _, d := range known(t).Derive(w.stretch(), catalog.Window) {
		if d.Pack == catalog.VLLMPack && d.Name == "output_tok_s" {
			if n++; d.Value != 960 || d.Labels.String() != `{model_name="tiny"}` {
				t.Errorf("output_tok_s%s is %v, want 960 of the model alone", d.Labels, d.Value)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d scopes, want 1", n)
	}
}

func TestOmniBodies(t *testing.T) {
	d := gained(t, "vllm-omni-0.30.0-t0", "vllm-omni-0.30.0-t1")
	d.want("omni_request_rate", "ok", 0.187)
	d.want("omni_finished_share", "ok", 7.0/187, "finished_reason", "abort")
	d.want("omni_e2e_mean", "ok", 1.1167675060666196)
	d.want("stage_output_tok_s", "ok", 7.280, "stage", "0")
	d.want("stage_output_tok_s", "ok", 29.120, "stage", "1")
	d.want("stage_replicas", "ok", 2, "stage", "1")
}

// The bodies of SGLang's classes: each method was called with known observations.
func TestSGLangBody(t *testing.T) {
	d := gained(t, "", "sglang-driven")
	d.want("request_rate", "ok", 0.420)
	d.want("ttft_mean", "ok", 0.25974854253426244)
	d.want("itl_mean_token_weighted", "ok", 0.23804290248045204)
	d.want("e2e_mean", "ok", 69.17025515585769/279)
	d.want("queue_mean", "ok", 0.24707111711697938)
}

func TestDynamoBodies(t *testing.T) {
	d := gained(t, "", "dynamo-frontend-load")
	d.want("request_rate", "ok", 0.183, "model", "tiny")
	d.want("request_rate", "ok", 0.013, "model", "unknown_model")
	d.want("error_ratio", "ok", 1, "model", "unknown_model")
	d.want("output_tok_s", "ok", 3.518, "model", "tiny")
	d.want("isl_mean", "ok", 82290.0/183, "model", "tiny")
	d.want("osl_mean", "ok", 3518.0/183, "model", "tiny")
	d.want("ttft_mean", "ok", 0.016186997721311474, "model", "tiny")
	d.want("itl_mean_token_weighted", "ok", 0.0018427736935532227, "model", "tiny")
	d.want("e2e_mean", "ok", 9.179916987/183, "model", "tiny")
	d.want("cached_share", "ok", 59664.0/82290, "model", "tiny")
	d = gained(t, "", "dynamo-worker-load")
	d.want("e2e_mean", "ok", 4.194217072/92, "dynamo_component", "backend")
}

func TestTritonBodies(t *testing.T) {
	d := gained(t, "triton-idle", "triton-load")
	dyn := []string{"model", "dyn", "version", "1"}
	d.want("request_rate", "ok", 0.327, dyn...)
	d.want("avg_request", "ok", 0.016255366972477064, dyn...)
	d.want("avg_queue", "ok", 2648692e-6/327, dyn...)
	d.want("avg_compute_infer", "ok", 0.007992697247706422, dyn...)
	d.want("avg_batch_size", "ok", 897.0/188, dyn...)
	d.want("avg_request", "ok", 0.013113720982142857, "model", "dyn", "version", "2")
	d.want("cache_hit_ratio", "ok", 73.0/103, "model", "cached")
}

// 230 requests of the client were predictions; the host counts answers of all kinds.
func TestTorchServeBodies(t *testing.T) {
	d := gained(t, "torchserve-idle", "torchserve-load")
	d.want("request_rate", "ok", 0.230, "model_name", "toy")
	d.want("avg_inference", "ok", 0.0480480208, "model_name", "toy")
	d.want("avg_queue", "ok", 2294059.487e-6/230, "model_name", "toy")
	d.want("error_ratio", "ok", 14.0/271)
	d.want("client_error_ratio", "ok", 10.0/271)
}

func TestLlamaCPPBodies(t *testing.T) {
	d := gained(t, "llamacpp-idle", "llamacpp-load")
	d.want("prefill_tok_s", "ok", 21192.489626054026)
	d.want("decode_tok_s", "ok", 1725.353086998488)
	d.want("tokens_per_decode", "ok", 1.98378041172801)
	d.want("prefix_hit_ratio", "ok", 0.7204356846473029)
	for _, name := range []string{"running_mean", "waiting_mean"} {
		if got := d.one(name); got != nil && got.Value != 0 {
			t.Errorf("%s is %v of a server at rest", name, got.Value)
		}
	}
}

// Two families that no pack had, from a server that is used by few.
func TestBentoMLBody(t *testing.T) {
	d := gained(t, "", "bentoml-load")
	d.want("request_rate", "ok", 0.2, "service_name", "S")
	d.want("e2e_mean", "ok", 4.667344255996795/200)
}
