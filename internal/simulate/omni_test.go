package simulate_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

// knownPlan has three stages of two replicas and no variation.
func knownPlan(overlap bool) *simulate.Plan {
	p := simulate.FixedPlan(2, overlap)
	p.StreamShare = -1
	return &p
}

func known(overlap bool) simulate.Options {
	return simulate.Options{
		Seed: 4, Rate: 3, Load: []simulate.LoadStep{{At: 5 * time.Minute}}, Plan: knownPlan(overlap),
		AbortShare: -1, ErrorShare: -1, KeepTruth: true,
	}
}

// split is the mean time of a request by derived-metrics.md, section 4.2.
type split struct{ n, e2e, queue, hops, residual float64 }

func splitOf(f families, stage *[3]float64) split {
	n := float64(f.count("vllm_omni:e2e_request_latency_s"))
	s := split{
		n:     n,
		e2e:   f.value("vllm_omni:e2e_request_latency_s") / n,
		queue: f.value("vllm_omni:request_queue_wait_s") / n,
		hops: (f.value("vllm_omni:transfer_tx_s") + f.value("vllm_omni:transfer_in_flight_s") +
			f.value("vllm_omni:transfer_rx_s")) / n,
	}
	stage[0] = f.value("vllm:e2e_request_latency_seconds", "stage=0") / n
	stage[1] = f.value("vllm:e2e_request_latency_seconds", "stage=1") / n
	stage[2] = f.value("vllm_omni:stage_gen_time_s", "stage=2") / n
	s.residual = s.e2e - stage[0] - stage[1] - stage[2] - s.hops - s.queue
	return s
}

func TestOmniSplitWithoutOverlap(t *testing.T) {
	t.Parallel()
	c := newClock()
	o := known(false)
	s := start(t, c, "vllm-omni", o)
	c.add(time.Hour)
	var stage [3]float64
	got := splitOf(scrape(t, s), &stage)
	if got.n < 700 {
		t.Fatalf("%v requests", got.n)
	}
	near(t, "queue", got.queue, 0)
	near(t, "hops", got.hops, 4*0.006+5*0.0015)
	near(t, "residual", got.residual, 0.007)
	for i, p := range o.Plan.Stages {
		// A request that arrives during a step waits for its end.
		step := 0.0
		if p.Tokens > 0 {
			step = p.Service.Seconds() / float64(p.Tokens)
		}
		if d := stage[i] - p.Service.Seconds(); d < -1e-9 || d > step {
			t.Errorf("stage %d: mean %v, want %v and at most %v more", i, stage[i], p.Service.Seconds(), step)
		}
	}
}

func TestOmniSplitWithOverlap(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := start(t, c, "vllm-omni", known(true))
	c.add(time.Hour)
	var stage [3]float64
	got := splitOf(scrape(t, s), &stage)
	if overlap := stage[0] + stage[1] + stage[2] - got.e2e; overlap < 0.3 {
		t.Errorf("stages %v overlap by %v s of %v", stage, overlap, got.e2e)
	}
	// The pipeline is as long as its longest stage and the ways in and out of it.
	if want := 0.007 + 0.3/4 + 0.006 + 0.8 + 0.0015 + 0.2/5; math.Abs(got.e2e-want) > 0.02 {
		t.Errorf("end to end %v, want about %v", got.e2e, want)
	}
	near(t, "hops", got.hops, 4*0.006+5*0.0015)
	for _, q := range s.Truth().Requests {
		p := q.Pipeline
		if len(p.Stages) != 3 || len(p.Hops) != 9 {
			t.Fatalf("request %d: %d stages, %d hops", q.ID, len(p.Stages), len(p.Hops))
		}
		if p.Stages[0].Finished > p.Stages[1].Finished || p.Stages[1].Finished > p.Stages[2].Finished {
			t.Errorf("request %d: a stage ends before its input", q.ID)
		}
	}
}

// TestOmniTruth computes the pipeline histograms from the requests alone.
func TestOmniTruth(t *testing.T) {
	t.Parallel()
	for _, overlap := range []bool{false, true} {
		plan := simulate.StandardPlan(2)
		plan.Overlap, plan.MaxInFlight = overlap, 30
		c := newClock()
		s := start(t, c, "vllm-omni", simulate.Options{
			Rate: 8, Seed: 2, Plan: &plan, KeepTruth: true, ErrorShare: 0.05, AbortShare: 0.05,
			Load: []simulate.LoadStep{{At: 2 * time.Minute}},
		})
		c.add(30 * time.Second)
		checkTruth(t, scrape(t, s), s.Truth())
		c.add(time.Hour)
		f, truth := scrape(t, s), s.Truth()
		checkTruth(t, f, truth)
		values := map[string][]float64{}
		add := func(name string, v float64) { values["vllm_omni:"+name] = append(values["vllm_omni:"+name], v) }
		for _, q := range truth.Requests {
			p := q.Pipeline
			for _, h := range p.Hops {
				add("transfer_tx_s", h.Tx.Seconds())
				add("transfer_size_bytes", float64(h.Bytes))
			}
			if p.TTFP > 0 {
				add("audio_ttfp_s", p.TTFP.Seconds())
			}
			if q.Reason != "stop" {
				continue
			}
			add("e2e_request_latency_s", (q.Last - q.Arrival).Seconds())
			add("request_queue_wait_s", (q.Scheduled - q.Arrival).Seconds())
			if p.Sound > 0 {
				add("audio_rtf", p.RTF)
			}
			if p.Streamed {
				add("audio_underrun_s", p.Underrun.Seconds())
			}
		}
		if len(values) != 7 {
			t.Errorf("the requests have only %d kinds of values", len(values))
		}
		for name, v := range values {
			sum := 0.0
			for _, x := range v {
				sum += x
			}
			if got := f.count(name); got != uint64(len(v)) {
				t.Errorf("%s: count %d, want %d", name, got, len(v))
			}
			near(t, name+" sum", f.value(name), sum)
		}
		near(t, "e2e count", float64(f.count("vllm_omni:e2e_request_latency_s")),
			f.value("vllm_omni:requests_success_total", "finished_reason=stop"))
		near(t, "failures", f.value("vllm_omni:requests_failed_total", "reason=client_abort"),
			f.value("vllm_omni:requests_success_total", "finished_reason=abort"))
		near(t, "frames", f.value("vllm_omni:audio_frames_total"), 24000*f.value("vllm_omni:audio_duration_s"))
		near(t, "generated", f.value("vllm_omni:generation_tokens_total"), f.value("vllm:generation_tokens_total"))
		near(t, "prompt", f.value("vllm_omni:prompt_tokens_total"), f.value("vllm:prompt_tokens_total"))
		near(t, "ITL sum", f.value("vllm:inter_token_latency_seconds"), f.value("vllm:request_decode_time_seconds"))
		near(t, "running", f.value("vllm_omni:num_requests_running"), 0)
	}
}

func TestOmniReplicasShareTheLoad(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := start(t, c, "vllm-omni", simulate.Options{Engines: 3, Rate: 12})
	c.add(3 * time.Minute)
	f := scrape(t, s)
	for stage := range 2 {
		total := f.value("vllm:request_success_total", "stage="+strconv.Itoa(stage))
		for r := range 3 {
			n := f.value("vllm:request_success_total", "stage="+strconv.Itoa(stage), "replica="+strconv.Itoa(r))
			if math.Abs(n-total/3) > total/30 {
				t.Errorf("stage %d replica %d served %v of %v", stage, r, n, total)
			}
		}
	}
	if n := len(f.find("vllm_omni:transfer_tx_s")); n != 18 {
		t.Errorf("%d edges, want 2 hops of 3x3", n)
	}
}

func TestOmniDiffusion(t *testing.T) {
	t.Parallel()
	for _, overlap := range []bool{false, true} {
		c := newClock()
		s := start(t, c, "vllm-omni", simulate.Options{Seed: 1, KeepTruth: true, AbortShare: -1, ErrorShare: -1,
			Plan: &simulate.Plan{
				Overlap: overlap,
				Stages: []simulate.Stage{
					{Service: 200 * time.Millisecond, Tokens: 40, Slots: 8, Hop: simulate.Hop{Chunks: 3, Bytes: 5 << 20,
						Tx: time.Millisecond}},
					{Kind: simulate.Diffusion, Replicas: 3, Slots: 1, Service: 600 * time.Millisecond, Steps: 20},
				},
			}})
		c.add(10 * time.Minute)
		f := scrape(t, s)
		n := f.value("vllm_omni:image_count_total")
		if n < 1000 {
			t.Errorf("%v images", n)
		}
		near(t, "steps", f.value("vllm_omni:num_inference_steps"), 20*n)
		near(t, "pixels", f.value("vllm_omni:image_pixels"), 1024*1024*n)
		near(t, "execution", f.value("vllm_omni:diffusion_exec_s"), 0.85*0.6*n)
		near(t, "per step", f.value("vllm_omni:diffusion_exec_per_step_s"), 0.85*0.6*n/20)
		near(t, "stage time", f.value("vllm_omni:stage_gen_time_s", "stage_type=diffusion"),
			f.value("vllm_omni:stage_in_queue_s")+0.6*n)
		checkTruth(t, f, s.Truth())
	}
}

func TestOmniBuckets(t *testing.T) {
	c := newClock()
	s := start(t, c, "vllm-omni", simulate.Options{})
	c.add(time.Minute)
	f := scrape(t, s)
	check := func(name string, want ...float64) {
		t.Helper()
		m := f.find("vllm_omni:" + name)
		if len(m) == 0 {
			t.Fatalf("%s is absent", name)
		}
		var got []float64
		for _, b := range m[0].GetHistogram().GetBucket() {
			got = append(got, b.GetUpperBound())
		}
		if !slices.Equal(got, append(want, math.Inf(1))) {
			t.Errorf("%s: bounds %v, want %v", name, got, want)
		}
	}
	check("e2e_request_latency_s", 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300)
	check("audio_underrun_s", 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)
	check("audio_rtf", 0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.25, 1.5, 2, 5, 10)
	check("transfer_size_bytes", 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864, 268435456)
}

func TestOmniGenerations(t *testing.T) {
	t.Parallel()
	body := func(generation string) string {
		c := newClock()
		o := known(false)
		o.Generation, o.Model = generation, "m"
		s := start(t, c, "vllm-omni", o)
		c.add(20 * time.Second)
		return string(s.AppendBody(nil))
	}
	newest := parse(t, body(""))
	check := func(generation, name, canonical string, scale float64) {
		t.Helper()
		f := parse(t, body(generation))
		if len(f.find(name)) == 0 {
			t.Errorf("%s: %s is absent", generation, name)
		}
		if got, want := f.value(name), scale*newest.value("vllm_omni:"+canonical); math.Abs(got-want) > 1e-9*want ||
			want == 0 {
			t.Errorf("%s: %s is %v, want %v", generation, name, got, want)
		}
	}
	check("g4", "vllm_omni:transfer_tx_s", "transfer_tx_s", 1)
	check("g3", "vllm_omni:generation_tokens_total", "generation_tokens_total", 1)
	check("g2", "vllm:omni_audio_rtf", "audio_rtf", 1)
	check("g2", "vllm:omni_e2e_request_latency_s", "e2e_request_latency_s", 1)
	check("g1", "vllm:omni_transfer_tx_time_ms", "transfer_tx_s", 1000)
	check("g1", "vllm:omni_transfer_rx_decode_time_ms", "transfer_rx_s", 1000)
	check("g1", "vllm:omni_transfer_in_flight_time_ms", "transfer_in_flight_s", 1000)
	check("g0", "vllm:omni_e2e_request_latency_seconds", "e2e_request_latency_s", 1)
	check("g0", "vllm:omni_num_requests_success_total", "requests_success_total", 1)
	declared := 0
	for line := range strings.Lines(body("g2")) {
		if strings.HasPrefix(line, "# TYPE vllm:omni_") && !strings.Contains(line, "_created ") {
			declared++
		}
	}
	if declared != 15 {
		t.Errorf("g2 has %d families, want the 15 of the design document", declared)
	}
	if _, err := simulate.New("vllm-omni", simulate.Options{Generation: "g9"}); err == nil {
		t.Error("generation g9 is accepted")
	}
}

func TestOmniWithoutLogStats(t *testing.T) {
	off := false
	c := newClock()
	s := start(t, c, "vllm-omni", simulate.Options{LogStats: &off})
	c.add(time.Minute)
	body := string(s.AppendBody(nil))
	f := parse(t, body)
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "vllm") {
			t.Errorf("a sample without --log-stats: %s", line)
		}
		if strings.HasPrefix(line, "# TYPE vllm:") {
			t.Errorf("a vllm:* family without --log-stats: %s", line)
		}
	}
	if !strings.Contains(body, "# TYPE vllm_omni:audio_rtf histogram\n") || f.value("process_cpu_seconds_total") == 0 {
		t.Error("families that stay are absent")
	}
	if n := strings.Count(body, "\n"); n > 150 {
		t.Errorf("%d lines, want about 124", n)
	}
}

// TestOmniThrottle sees scheduler statistics at most once a second.
func TestOmniThrottle(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := start(t, c, "vllm-omni", simulate.Options{Rate: 20})
	c.add(10 * time.Second)
	last, changes := "", 0
	for range 600 {
		c.add(50 * time.Millisecond)
		_, rest, _ := strings.Cut(string(s.AppendBody(nil)), "\nvllm:kv_cache_usage_perc{")
		_, rest, _ = strings.Cut(rest, "\nvllm:kv_cache_usage_perc{") // of stage 1
		if v, _, _ := strings.Cut(rest, "\n"); v != last {
			last = v
			changes++
		}
	}
	if changes < 20 || changes > 31 {
		t.Errorf("%d changes of the KV cache usage in 30 s", changes)
	}
}

func TestPlanRefused(t *testing.T) {
	check := func(want string, p simulate.Plan) {
		t.Helper()
		_, err := simulate.New("vllm-omni", simulate.Options{Plan: &p})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	stage := func(change func(*simulate.Stage)) simulate.Plan {
		p := simulate.StandardPlan(1)
		change(&p.Stages[1])
		return p
	}
	check("no stages", simulate.Plan{})
	check("Overhead", simulate.Plan{Overhead: -1, Stages: make([]simulate.Stage, 1)})
	check("kind", stage(func(s *simulate.Stage) { s.Kind = 9 }))
	check("Replicas", stage(func(s *simulate.Stage) { s.Slots = -1 }))
	check("Tokens", stage(func(s *simulate.Stage) { s.Tokens = 1e6 }))
	check("Service", stage(func(s *simulate.Stage) { s.Service = 0 }))
	check("chunk", stage(func(s *simulate.Stage) { s.Hop.Tx = -1 }))
}

func TestOmniGolden(t *testing.T) {
	c := newClock()
	o := known(false)
	o.Rate, o.Plan.StreamShare = 0.5, 1
	o.Plan.Stages[0].Kind, o.Plan.Stages[0].Replicas = simulate.Audio, 1
	o.Plan.Stages = o.Plan.Stages[:1]
	s := start(t, c, "vllm-omni", o)
	c.add(20 * time.Second)
	golden(t, "omni-audio.prom", s.AppendBody(nil))
}
