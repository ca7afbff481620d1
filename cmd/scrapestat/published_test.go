package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/source/triton"
	"github.com/scrapestat/scrapestat/summary"
)

// TestPublishedCaptures reads bodies that others published. They are not ours to
// distribute, so they lie in a folder beside the repository or nowhere; whatever
// they show about the program, bodies of testdata/ and simulated ones show too.
func TestPublishedCaptures(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared")
	if _, err := os.Stat(filepath.Join(dir, "captures")); err != nil {
		t.Skip("no folder ../shared beside the repository: it holds bodies that others published")
	}
	p := published{t, dir}
	for _, c := range []struct {
		name, engine string
		lines        int
	}{
		{"vllm", "vllm", 430}, {"ray_vllm_excerpt", "vllm", 43},
		{"sglang_live_0.5.20_excerpt", "sglang", 168}, {"sglang_docs_2025", "sglang", 91}, {"trtllm", "trtllm", 227},
		{"triton", "triton", 377}, {"triton_trtllm", "triton", 30}, {"torchserve", "torchserve", 45},
		{"torchserve_docs", "torchserve", 17}, {"dcgm", "dcgm", 38}, {"dcgm_quirks_synthetic", "dcgm", 12},
		{"dynamo_docs_example", "dynamo", 6}, {"llamacpp_idle_windows", "llamacpp", 12},
	} {
		p.decoded(c.name, c.engine, c.lines)
	}
	p.vllm()
	p.engines()
	p.triton()
}

// published is the folder of the captures.
type published struct {
	t   *testing.T
	dir string
}

func (p published) read(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, filepath.FromSlash(name)))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// decode returns the schema of a body and its only poll.
func (p published) decode(body string) (*metric.Schema, *metric.Snapshot) {
	p.t.Helper()
	d, err := scrape.NewDecoder(scrape.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	s, schema := &metric.Snapshot{}, &metric.Schema{}
	d.Decode(s, scrape.Body{Bytes: []byte(body), ContentType: "text/plain; version=0.0.4"})
	if err := schema.Grow(&s.DictDelta); err != nil {
		p.t.Fatal(err)
	}
	return schema, s
}

// decoded checks that no line of a body is lost, but for one without an end, and
// that its engine is recognised, with no family that nobody knows.
func (p published) decoded(name, engine string, lines int) {
	p.t.Helper()
	body := p.read("captures/" + name + ".prom")
	schema, s := p.decode(body)
	outcome, dropped := metric.OK, 0
	if !strings.HasSuffix(body, "\n") {
		outcome, dropped = metric.Partial, 1
	}
	if s.Lines != lines || s.Dropped() != dropped || s.Outcome != outcome {
		p.t.Errorf("%s: %v, %d lines, want %d; drops %v; %s", name, s.Outcome, s.Lines, lines, s.Drops, s.Err)
	}
	if e := catalog.Embedded().Engines(schema); len(e) == 0 || e[0].ID != engine {
		p.t.Errorf("%s: engines %+v, want %s first", name, e, engine)
	}
	known, err := catalog.New()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range schema.Families {
		kind, _, _ := strings.Cut(f.Name, "_")
		general := kind == "go" || kind == "python" || kind == "process"
		if _, ok := known.Family(f.Name); !ok && !general {
			p.t.Errorf("%s: %s is not in the catalogue", name, f.Name)
		}
	}
}

// captured is what the catalogue derives from one body of a server that started at zero.
type captured struct {
	t    *testing.T
	name string
	list []catalog.Derived
}

func (p published) derive(name, inputs string, seconds float64) captured {
	p.t.Helper()
	body := strings.TrimRight(p.read("captures/"+name+".prom"), "\n") + "\n"
	if inputs == "" {
		inputs = "inputs: {}"
	}
	c, err := catalog.New(strings.NewReader(inputs))
	if err != nil {
		p.t.Fatal(err)
	}
	schema, s := p.decode(body)
	stretch := catalog.Interval{Seconds: seconds, Gains: gainsSinceZero(schema, s)}
	return captured{p.t, name, c.Derive(stretch, catalog.Window)}
}

// gainsSinceZero are those of a server that started at zero and whose gauges stood still.
func gainsSinceZero(schema *metric.Schema, s *metric.Snapshot) []catalog.Gain {
	gains := make([]catalog.Gain, len(schema.Series))
	for i := range gains {
		f := schema.FamilyOf(i)
		gains[i] = catalog.Gain{Family: f.Name, Type: f.Type, Labels: schema.Series[i].Labels}
	}
	for i, id := range s.Delta.Slots {
		slot, v := schema.Slots[id], s.Delta.Float(i)
		g := &gains[slot.Series]
		switch {
		case slot.Role == metric.RoleSum:
			g.Sum, g.HasSum = v, true
		case slot.Role == metric.RoleCount:
			g.Count = v
		case slot.Role == metric.RoleBucket:
			g.Buckets = append(g.Buckets, catalog.Bucket{Upper: slot.Bound, Count: v})
		case slot.Role != metric.RoleValue || math.IsNaN(v):
		case g.Type == metric.Counter:
			g.Total, g.Last = v, v
		default:
			g.TimeAvg, g.Min, g.Max, g.First, g.Last = v, v, v, v, v
		}
	}
	return gains
}

// find returns a quantity of a pack with that label, or with any.
func (c captured) find(pack, name string, label ...string) *catalog.Derived {
	for i := range c.list {
		d := &c.list[i]
		ok := d.Pack == pack && d.Name == name && d.Status.Defined()
		if len(label) > 0 {
			v, _ := d.Labels.Get(label[0])
			ok = ok && v == label[1]
		}
		if ok {
			return d
		}
	}
	return nil
}

func (c captured) want(pack, name string, want float64, label ...string) {
	c.t.Helper()
	d := c.find(pack, name, label...)
	if d == nil || !(math.Abs(d.Value-want) <= 1e-6*max(1, math.Abs(want))) {
		c.t.Errorf("%s: %s %s %v is %+v, want %v", c.name, pack, name, label, d, want)
	}
}

func (c captured) none(pack, name string) {
	c.t.Helper()
	if d := c.find(pack, name); d != nil {
		c.t.Errorf("%s: %s %s is %v, want none", c.name, pack, name, d.Value)
	}
}

// vllm is a server after 41 requests, 22 of them preempted.
func (p published) vllm() {
	c := p.derive("vllm", "inputs: {slo: {ttft_s: 0.5}}", 1000)
	c.want("vllm", "queue_share_e2e", 0.537110)
	c.want("vllm", "prefill_share_e2e", 0.005975)
	c.want("vllm", "decode_share_e2e", 0.455822)
	c.want("vllm", "frontend_share_e2e", 0.001093)
	c.want("vllm", "itl_mean_token_weighted", 24.7677e-3)
	c.want("vllm", "tpot_mean_request_weighted", 23.9549e-3)
	if d := c.find("vllm", "tokens_per_step"); d == nil || math.Abs(d.Value-8.6741) > 5e-5 {
		p.t.Errorf("vllm: tokens_per_step is %+v", d)
	}
	c.want("vllm", "finished_share", 1, "finished_reason", "length")
	c.want("vllm", "finished_share", 0, "finished_reason", "stop")
	c.want("vllm", "preemptions_per_request", 22.0/41)
	c.want("vllm", "prefix_hit_ratio", 0)
	c.want("vllm", "slo_attainment", 19.0/41, "slo", "ttft_s")
	c.want("vllm", "request_rate", 0.041)
	c.want("vllm", "decode_batch_mean", 32103.0/4038)
	c.want("vllm", "http_overhead_mean", 0.0957558/41)
	for _, name := range []string{"inference", "decode", "first_tokens", "step_tokens"} {
		d := c.find("vllm", "self_check_"+name)
		if d == nil || d.Status != catalog.OK || len(d.Flags) > 0 || math.Abs(d.Value) > 1e-9 {
			p.t.Errorf("vllm: self_check_%s is %+v", name, d)
		}
	}
	c.none("vllm", "tflops_per_gpu") // the server does not estimate
	c = p.derive("ray_vllm_excerpt", "", 100)
	n := 0
	for i := range c.list {
		if c.list[i].Pack == "vllm" && c.list[i].Status.Defined() {
			n++
		}
	}
	if n < 5 {
		p.t.Errorf("%d quantities of vLLM in Ray's body", n)
	}
}

// engines are the other bodies.
func (p published) engines() {
	c := p.derive("trtllm", "", 1)
	c.want("trtllm", "concurrency_little", 730.928324)
	c.want("trtllm", "self_check_e2e", 0)
	c.want("trtllm", "self_check_ttft", 0)
	c.want("trtllm", "self_check_inference", 0)
	c.want("trtllm", "ttft_mean", 18.078892/41)
	c.want("trtllm", "inference_mean", 721.459360/41)
	c.want("trtllm", "itl_mean_token_weighted", 0.02220507)
	c.want("trtllm", "tpot_mean_request_weighted", 0.02150607)
	c.want("trtllm", "prefix_hit_ratio", 6.0/2879)
	c.want("trtllm", "finished_share", 1)
	c.want("trtllm", "running_peak", 32)
	c.none("trtllm", "running_mean") // the gauge still shows 32 of a server with no block in use
	c.none("trtllm", "error_ratio")
	c = p.derive("sglang_docs_2025", "", 1)
	c.want("sglang", "ttft_overflow_share", 0.771711)
	c.want("sglang", "itl_mean_token_weighted", 866964.5791549598/7.400757e+06)
	c.want("sglang", "osl_mean", 7.557572e+06/11228)
	c.none("sglang", "tpot_mean_request")
	c.none("sglang", "prefix_hit_ratio") // there is but the gauge of the last batch
	c = p.derive("sglang_live_0.5.20_excerpt", "", 1)
	c.want("sglang", "output_tok_s", 32154)
	c.want("sglang", "prefix_hit_ratio", 0)
	c.want("sglang", "running_mean", 0) // though decode_sum_seq_lens stays at 2183
	c.want("sglang", "cuda_graph_share", 1)
	c.none("sglang", "spec_mean_acceptance_length")
	c = p.derive("triton", "", 1)
	c.want("triton", "avg_request", 1.327965/3, "model", "densenet_onnx")
	c.want("triton-host", "j_per_inference", 4879631.328000044/3)
	c = p.derive("triton_trtllm", "", 1)
	c.want("triton", "kv_usage_mean", 1.0/6239)
	c.want("triton", "kv_capacity", 6239*64)
	c.none("triton", "kv_transfer_mean")
	c = p.derive("torchserve", "", 1)
	c.want("torchserve", "avg_inference", 9136028.087e-6/11)
	c.want("torchserve-host", "error_ratio", 60.0/177)
	c = p.derive("llamacpp_idle_windows", "", 1)
	c.none("llamacpp", "busy_slots_mean")
	c.want("llamacpp", "kv_usage_mean", 0)
	c = p.derive("dcgm", "", 1)
	c.want("dcgm", "power_peak", 8.969)
	c.want("dcgm", "avg_power", 128996.013) // of a second
	c = p.derive("dynamo_docs_example", "", 1)
	c.want("dynamo-worker", "e2e_mean", 2.5/42)
}

// triton are answers of the statistics extension, baseline zero.
func (p published) triton() {
	run := func(name string) tritonRun {
		return newTritonRun(p.t, triton.Options{}, summary.Options{}, noModels, p.read("fixtures/triton/"+name))
	}
	averages := func(r tritonRun, batch string, averages ...string) {
		p.t.Helper()
		for i, what := range []string{"request", "queue", "compute_input", "compute_infer", "compute_output", "overhead"} {
			r.want("derived_avg_"+what+"_seconds", us, averages[i])
		}
		r.want("derived_avg_batch_size", 1, batch)
		r.want("derived_invariant_violations", 1, "0")
	}
	integers := func(r tritonRun, want ...string) {
		p.t.Helper()
		for i, what := range []string{"request", "queue", "compute_input", "compute_infer", "compute_output"} {
			r.want("pa_"+what+"_us", 1, want[i])
		}
	}
	r := run("cap_dynbatch_2025.json")
	averages(r, "3.720207", "100368.840", "44946.240", "197.332", "55003.265", "215.623", "6.380")
	integers(r, "100368", "44946", "197", "55003", "215")
	r.want("pa_overhead_us", 1, "6")
	for p, want := range map[string][2]string{"50": {"3", "5"}, "90": {"6", "6"}, "99": {"7", "7"}} {
		r.want("derived_batch_size_p"+p, 1, want[0], "weight", "execution")
		r.want("derived_batch_size_p"+p, 1, want[1], "weight", "inference")
	}
	r = run("cap_wav_2024.json")
	averages(r, "6", "1573460.3506", "11.5488", "441.3613", "1572225.9327", "677.2843", "104.2235")
	integers(r, "1573460", "11", "441", "1572225", "677")
	averages(run("cap_2021_pre_cache.json"), "3",
		"93163.5085", "8211.8967", "28439.0073", "56346.5322", "158.424", "7.6483")
	run("cap_protojson_strings_2023.json").want("derived_avg_request_seconds", us, "4414607.379")
	run("cap_failonly_2021.json").want("derived_avg_failure_seconds", us, "2919.154")
}
