package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

// vllmUser tells peaks and SLOs: 0.5 is a bound of the buckets below, 1.5 is none.
const vllmUser = "inputs: {peak_tflops: 10, peak_gb_s: 100, slo: {ttft_s: 0.5, e2e_s: 1.5, itl_s: 0.1}}"

// vllmBody is a server with numbers that a person can divide. It ran 10 s.
func vllmBody() string {
	var b strings.Builder
	line := func(name, labels, value string) {
		b.WriteString(name + "{model_name=\"m\"" + labels + "} " + value + "\n")
	}
	kind := func(name, t string) { b.WriteString("# TYPE " + name + " " + t + "\n") }
	counter := func(name, value string) {
		kind("vllm:"+name+"_total", "counter")
		line("vllm:"+name+"_total", "", value)
	}
	gauge := func(name, value string) { kind("vllm:"+name, "gauge"); line("vllm:"+name, "", value) }
	byLabel := func(name, typ, label string, values ...string) {
		kind("vllm:"+name, typ)
		for i := 0; i+1 < len(values); i += 2 {
			line("vllm:"+name, ","+label+"=\""+values[i]+"\"", values[i+1])
		}
	}
	// histogram: sum, count, then bound and cumulative count in turn
	histogram := func(name, sum, count string, buckets ...string) {
		kind("vllm:"+name, "histogram")
		for i := 0; i+1 < len(buckets); i += 2 {
			line("vllm:"+name+"_bucket", ",le=\""+buckets[i]+"\"", buckets[i+1])
		}
		line("vllm:"+name+"_bucket", ",le=\"+Inf\"", count)
		line("vllm:"+name+"_sum", "", sum)
		line("vllm:"+name+"_count", "", count)
	}
	gauge("num_requests_running", "4")
	gauge("num_requests_waiting", "2")
	byLabel("num_requests_waiting_by_reason", "gauge", "reason", "capacity", "1.5", "deferred", "0.5")
	gauge("kv_cache_usage_perc", "0.95")
	kind("vllm:cache_config_info", "gauge")
	b.WriteString("vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"101\",engine=\"0\"} 1\n")
	byLabel("request_success_total", "counter", "finished_reason", "stop", "14", "length", "3", "abort", "2", "error", "1")
	counter("prompt_tokens", "4000")
	counter("generation_tokens", "1000")
	byLabel("prompt_tokens_by_source_total", "counter", "source", "local_compute", "3000", "local_cache_hit", "1000")
	counter("prompt_tokens_cached", "1000")
	counter("prompt_tokens_recomputed", "40")
	counter("prefix_cache_queries", "4000")
	counter("prefix_cache_hits", "1000")
	counter("external_prefix_cache_queries", "3000")
	counter("external_prefix_cache_hits", "600")
	counter("mm_cache_queries", "10")
	counter("mm_cache_hits", "4")
	counter("num_preemptions", "5")
	byLabel("admission_rejections_total", "counter", "reason", "max_num_queued_reqs", "5")
	counter("corrupted_requests", "1")
	histogram("iteration_tokens_total", "5000", "500", "8", "200", "16", "400")
	histogram("time_to_first_token_seconds", "10", "20", "0.25", "5", "0.5", "16", "1", "19")
	histogram("inter_token_latency_seconds", "49", "980", "0.05", "490", "0.1", "882")
	histogram("request_time_per_output_token_seconds", "1.2", "20", "0.1", "20")
	histogram("e2e_request_latency_seconds", "60", "20", "1", "10", "2", "18")
	histogram("request_queue_time_seconds", "6", "20", "1", "20")
	histogram("request_inference_time_seconds", "51", "20", "5", "20")
	histogram("request_prefill_time_seconds", "2", "20", "1", "20")
	histogram("request_decode_time_seconds", "49", "20", "5", "20")
	histogram("request_prompt_tokens", "4000", "20", "500", "20")
	histogram("request_generation_tokens", "1000", "20", "100", "20")
	histogram("request_prefill_kv_computed_tokens", "3000", "20", "500", "20")
	histogram("request_num_preemptions", "5", "20", "1", "19", "2", "19")
	histogram("kv_block_lifetime_seconds", "100", "10", "60", "10")
	histogram("kv_block_idle_before_evict_seconds", "30", "10", "60", "10")
	histogram("kv_block_reuse_gap_seconds", "50", "10", "60", "10")
	counter("spec_decode_num_drafts", "100")
	counter("spec_decode_num_draft_tokens", "300")
	counter("spec_decode_num_accepted_tokens", "150")
	byLabel("spec_decode_num_accepted_tokens_per_pos_total", "counter", "position", "0", "80", "1", "50", "2", "20")
	histogram("nixl_xfer_time_seconds", "2", "8", "1", "8")
	histogram("nixl_bytes_transferred", "8e9", "8", "1e9", "8")
	counter("nixl_num_failed_transfers", "2")
	counter("estimated_flops_per_gpu", "2e13")
	counter("estimated_read_bytes_per_gpu", "3e11")
	counter("estimated_write_bytes_per_gpu", "1e11")
	b.WriteString(`# TYPE http_requests_total counter
http_requests_total{handler="/v1/completions",method="POST",status="2xx"} 18
http_requests_total{handler="/v1/completions",method="POST",status="5xx"} 2
http_requests_total{handler="/metrics",method="GET",status="2xx"} 10
# TYPE http_request_duration_seconds histogram
http_request_duration_seconds_bucket{handler="/v1/completions",method="POST",le="+Inf"} 20
http_request_duration_seconds_sum{handler="/v1/completions",method="POST"} 61
http_request_duration_seconds_count{handler="/v1/completions",method="POST"} 20
http_request_duration_seconds_bucket{handler="/metrics",method="GET",le="+Inf"} 10
http_request_duration_seconds_sum{handler="/metrics",method="GET"} 5
http_request_duration_seconds_count{handler="/metrics",method="GET"} 10
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 25
# TYPE process_start_time_seconds gauge
process_start_time_seconds 990
`)
	return b.String()
}

// vllmGains is the body with what an exposition alone does not tell: slices, time
// above levels.
func vllmGains(t tester) []catalog.Gain {
	gains := exposed(t, vllmBody())
	for i := range gains {
		switch g := &gains[i]; g.Family {
		case "vllm:iteration_tokens_total":
			g.Slices = []float64{200, 0, 250, 50, 0}
		case "vllm:kv_cache_usage_perc":
			g.Above = []float64{0.75}
		case "vllm:num_requests_waiting":
			g.Above = []float64{0.25}
		}
	}
	return gains
}

type vllmWant struct {
	name, status string
	value        float64
	labels       []string
}

func vllmWants() []vllmWant {
	w := func(name string, value float64, labels ...string) vllmWant {
		return vllmWant{name, "ok", value, labels}
	}
	estimate := func(name string, value float64) vllmWant { return vllmWant{name, "estimate", value, nil} }
	bound := func(name string, value float64, labels ...string) vllmWant {
		return vllmWant{name, "bound", value, labels}
	}
	return []vllmWant{
		w("request_rate", 2), w("output_tok_s", 100), w("input_tok_s", 400), w("total_tok_s", 500),
		w("prefill_computed_tok_s", 300), w("finished_share", 0.7, "finished_reason", "stop"),
		w("finished_share", 0.05, "finished_reason", "error"), w("isl_mean", 200), w("osl_mean", 50),
		w("output_input_ratio", 0.25), w("tokens_per_step", 10), w("steps_per_s", 50),
		estimate("decode_batch_mean", 980.0/500/2.5), w("ttft_mean", 0.5), w("itl_mean_token_weighted", 0.05),
		w("tpot_mean_request_weighted", 0.06), w("e2e_mean", 3), w("queue_mean", 0.3), w("prefill_mean", 0.1),
		w("decode_mean", 2.45), w("inference_mean", 2.55), w("ttft_other", 0.1), w("ttft_overflow_share", 0.05),
		w("itl_overflow_share", 0.1), w("e2e_overflow_share", 0.1), w("queue_overflow_share", 0), w("running_mean", 4),
		w("running_peak", 4), w("waiting_mean", 2), w("waiting_peak", 2), w("time_waiting", 0.25), w("kv_usage_mean", 0.95),
		w("kv_usage_peak", 0.95), w("time_kv_above_90", 0.75),
		w("kv_tokens_used_mean", 1520), estimate("kv_capacity_requests", 4), w("running_mean_little", 5.1),
		w("waiting_mean_little", 0.6), w("concurrency_little", 6), w("preemptions_per_request", 0.25),
		w("preemptions_per_1000_tokens", 5), w("preempted_twice_share", 0.05),
		bound("preempted_request_share", 0.05, "bound", "lower"), bound("preempted_request_share", 0.2, "bound", "upper"),
		w("wait_reason_share", 0.75, "reason", "capacity"), w("queue_share_e2e", 0.1), w("prefill_share_e2e", 2.0/60),
		w("decode_share_e2e", 49.0/60), w("frontend_share_e2e", 3.0/60), w("prefill_decode_ratio", 2.0/49),
		w("ttft_queue_share", 0.6),
		w("engine_busy_share", 0.6), w("mean_step_time", 6.0/500), w("prefix_hit_ratio", 0.25), w("external_hit_ratio", 0.2),
		w("cached_prompt_share", 0.25), w("source_share", 0.75, "source", "local_compute"),
		w("kv_computed_per_request", 150), w("mm_hit_ratio", 0.4), w("recomputed_share", 0.01),
		w("kv_block_lifetime_mean", 10), w("kv_block_idle_mean", 3), w("kv_block_reuse_gap_mean", 5),
		w("kv_reuse_gap_by_lifetime", 0.5), w("spec_acceptance_rate", 0.5), w("spec_mean_acceptance_length", 2.5),
		w("spec_acceptance_at", 0.5, "position", "1"), w("spec_conditional_acceptance_at", 0.8, "position", "0"),
		w("spec_conditional_acceptance_at", 0.4, "position", "2"), w("spec_waste", 150), w("decode_rate_per_request", 25),
		w("tflops_per_gpu", 2), w("hbm_gbs_per_gpu", 40),
		w("mfu", 0.2), w("memory_bandwidth_share", 0.4), w("arithmetic_intensity", 50), w("nixl_gb_s", 4),
		w("nixl_link_gb_s", 0.8), w("nixl_xfer_mean", 0.25), w("nixl_fail_ratio", 0.2), w("error_ratio", 0.32),
		w("rejected_share", 0.2), w("kv_capacity", 1616), bound("abandoned_requests", 0),
		w("corrupted_share", 0.05),
		estimate("http_overhead_mean", 0.05), w("http_error_ratio", 0.1, "handler", "/v1/completions"),
		w("http_error_ratio", 0, "handler", "/metrics"), w("http_5xx_ratio", 0.1, "handler", "/v1/completions"),
		w("http_request_rate", 2, "handler", "/v1/completions"),
		w("http_duration_mean", 0.5, "handler", "/metrics"), w("process_cpu_cores", 2.5), w("process_uptime", 10),
		w("process_restarts", 0), w("self_check_inference", 0), w("self_check_decode", 0),
		w("self_check_first_tokens", 7.5),
		w("self_check_step_tokens", 0.2),
		w("slo_attainment", 0.8, "slo", "ttft_s"), w("slo_attainment", 0.9, "slo", "itl_s"),
		bound("slo_attainment", 0.5, "slo", "e2e_s", "bound", "lower"), bound("slo_attainment", 0.9, "slo", "e2e_s", "bound",
			"upper"), bound("goodput_share", 0.3, "bound", "lower"), bound("goodput_share", 0.8, "bound", "upper"),
		bound("request_goodput", 0.6, "bound", "lower"), bound("request_goodput", 1.6, "bound", "upper"),
		bound("token_goodput", 30, "bound", "lower"), bound("token_goodput", 80, "bound", "upper"),
	}
}

func vllmCatalog(t tester) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New(strings.NewReader(vllmUser))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func vllmStretch(gains []catalog.Gain) catalog.Interval {
	return catalog.Interval{Seconds: 10, EndNS: 1000e9, Gains: gains, SliceSeconds: []float64{2, 2, 2, 2, 2}}
}

// Every formula of vLLM gives what a person gets, and none is left out.
func TestVLLMFormulas(t *testing.T) {
	_, others := formulaLines(t)
	d := derived{t, vllmCatalog(t).Derive(vllmStretch(vllmGains(t)), catalog.Window)}
	names := map[string]bool{}
	for _, w := range vllmWants() {
		d.want(w.name, w.status, w.value, w.labels...)
		names[w.name] = true
	}
	for _, p := range catalog.Packs() {
		if p.Name != catalog.VLLMPack && p.Name != "http" && p.Name != "process" {
			continue
		}
		for _, r := range p.Rules {
			if !names[r.Name] && !tested(others, p.Name, r.Name) {
				t.Errorf("no case for %s", r.Name)
			}
			if r.Text == "" || r.Help == "" {
				t.Errorf("%s: formula %q, help %q", r.Name, r.Text, r.Help)
			}
		}
	}
	estimate := d.one("slo_attainment", "slo", "e2e_s")
	if estimate == nil || estimate.Status != catalog.Estimate || !close(estimate.Value, 0.7) ||
		!slices.Contains(estimate.Flags, "not_a_bound") {
		t.Errorf("1.5 s lies in (1, 2], of 10 to 18 of 20: %+v", estimate)
	}
	for i := range d.list {
		fits := d.list[i].Name == "self_check_inference" || d.list[i].Name == "self_check_decode"
		if fits && len(d.list[i].Flags) > 0 {
			t.Errorf("%s is flagged %v", d.list[i].Name, d.list[i].Flags)
		}
	}
}

// Without one of its families a quantity is missing, absent or made of others, and
// never a number that stands for nothing.
func TestVLLMMissing(t *testing.T) {
	c, gains := vllmCatalog(t), vllmGains(t)
	full := derived{t, c.Derive(vllmStretch(gains), catalog.Window)}
	seen := map[string]bool{}
	for _, g := range gains {
		if seen[g.Family] {
			continue
		}
		seen[g.Family] = true
		rest := slices.DeleteFunc(slices.Clone(gains), func(h catalog.Gain) bool { return h.Family == g.Family })
		for _, d := range c.Derive(vllmStretch(rest), catalog.Window) {
			if d.Status.Defined() && slices.Contains(d.Families, g.Family) {
				t.Errorf("without %s: %s is %s %v, of it", g.Family, d.Name, d.Status, d.Value)
			}
			if !d.Status.Defined() && (d.Value != 0 || d.Shown != 0 || d.HasParts && d.Status == catalog.Missing) {
				t.Errorf("without %s: %s is %s with a value or parts", g.Family, d.Name, d.Status)
			}
		}
	}
	if len(seen) < 49 || len(full.list) < 90 {
		t.Errorf("%d families and %d quantities", len(seen), len(full.list))
	}
}

// A server that did nothing has rates of zero and no ratios.
func TestVLLMIdle(t *testing.T) {
	gains := vllmGains(t)
	for i := range gains {
		g := &gains[i]
		g.Total, g.Count, g.Sum, g.Exact = 0, 0, 0, 0
		g.Slices = make([]float64, len(g.Slices))
		for k := range g.Buckets {
			g.Buckets[k].Count = 0
		}
		if g.Type == metric.Gauge && !strings.HasSuffix(g.Family, "_info") && !strings.HasSuffix(g.Family, "_time_seconds") {
			g.TimeAvg, g.Min, g.Max, g.First, g.Last, g.Above = 0, 0, 0, 0, 0, []float64{0}
		}
	}
	d := derived{t, vllmCatalog(t).Derive(vllmStretch(gains), catalog.Window)}
	zero := []string{"request_rate", "output_tok_s", "steps_per_s", "running_mean", "waiting_peak", "kv_usage_mean",
		"time_kv_above_90",
		"concurrency_little", "engine_busy_share", "kv_tokens_used_mean", "spec_waste", "tflops_per_gpu", "process_cpu_cores"}
	for _, name := range zero {
		d.want(name, "ok", 0)
	}
	d.absent("kv_capacity_requests")
	for i := range d.list {
		q := &d.list[i]
		if q.Name == "abandoned_requests" || q.Name == "kv_capacity" {
			continue // a bound, and a setting
		}
		if q.Status != catalog.OK && q.Status != catalog.ZeroDenominator {
			t.Errorf("%s: %s %v", q.Name, q.Status, q.Value)
		}
		if q.Status == catalog.OK && q.Value != 0 && q.Name != "process_uptime" {
			t.Errorf("%s of an idle server is %v", q.Name, q.Value)
		}
		if q.Unit == "ratio" && q.HasParts && q.Denominator == 0 && q.Status.Defined() {
			t.Errorf("%s divides by zero: %+v", q.Name, q)
		}
	}
	for _, name := range []string{"prefix_hit_ratio", "e2e_mean", "queue_share_e2e", "spec_mean_acceptance_length",
		"mean_step_time", "self_check_first_tokens",
		"slo_attainment", "goodput_share"} {
		d.want(name, "zero_denominator", 0)
	}
}

// A reset of any input shows in all that is made of it.
func TestVLLMResets(t *testing.T) {
	gains := vllmGains(t)
	for i := range gains {
		if g := &gains[i]; g.Type == metric.Counter || g.Type == metric.Histogram {
			g.Resets = 1
		}
	}
	gauges := []string{"running_mean", "running_peak", "waiting_mean", "waiting_peak", "time_waiting", "kv_usage_mean",
		"kv_usage_peak", "time_kv_above_90",
		"kv_tokens_used_mean", "kv_capacity_requests", "wait_reason_share", "process_uptime", "process_restarts",
		"engine_busy_share", "kv_capacity"}
	for _, d := range vllmCatalog(t).Derive(vllmStretch(gains), catalog.Window) {
		if d.Status == catalog.OK && !slices.Contains(gauges, d.Name) {
			t.Errorf("%s hides the restart", d.Name)
		}
		if !d.Status.Defined() {
			t.Errorf("%s: %s", d.Name, d.Status)
		}
	}
}
