package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

// speechLines are a pipeline that speaks, over 10 s: stage 0 thinks, the two
// replicas of stage 1 talk, stage 2 makes the sound. 20 requests succeeded.
const speechLines = `
counter vllm_omni:requests_success_total{finished_reason="stop"} 11
counter vllm_omni:requests_success_total{finished_reason="length"} 9
counter vllm_omni:requests_success_total{finished_reason="abort"} 2
counter vllm_omni:requests_failed_total{reason="error"} 3
counter vllm_omni:requests_failed_total{reason="abort"} 2
counter vllm_omni:generation_tokens_total 5000
counter vllm_omni:prompt_tokens_total 800
counter vllm:prompt_tokens_total{stage="0",replica="0"} 600
gauge vllm_omni:num_requests_running 4
gauge vllm_omni:num_requests_waiting 1
histogram vllm_omni:e2e_request_latency_s 20 60
histogram vllm_omni:request_queue_wait_s 20 2
histogram vllm_omni:kv_wait_s{connector_type="shm"} 10 0.5
histogram vllm_omni:kv_wait_s{connector_type="tcp"} 4 0.8
histogram vllm:e2e_request_latency_seconds{stage="0",replica="0"} 20 18
histogram vllm:e2e_request_latency_seconds{stage="1",replica="0"} 15 16
histogram vllm:e2e_request_latency_seconds{stage="1",replica="1"} 5 8
histogram vllm:request_queue_time_seconds{stage="0",replica="0"} 20 2
histogram vllm:request_queue_time_seconds{stage="1",replica="0"} 15 1
histogram vllm:request_queue_time_seconds{stage="1",replica="1"} 5 3
counter vllm:generation_tokens_total{stage="0",replica="0"} 1000
counter vllm:generation_tokens_total{stage="1",replica="0"} 3200
counter vllm:generation_tokens_total{stage="1",replica="1"} 800
histogram vllm_omni:stage_gen_time_s{stage="2",replica="0"} 30 8
histogram vllm_omni:stage_in_queue_s{stage="2",replica="0"} 30 2
histogram vllm_omni:transfer_size_bytes{from_stage="0",from_replica="0",to_stage="1",to_replica="0"} 15 1500000
histogram vllm_omni:transfer_size_bytes{from_stage="0",from_replica="0",to_stage="1",to_replica="1"} 5 500000
histogram vllm_omni:transfer_tx_s{from_stage="0",from_replica="0",to_stage="1",to_replica="0"} 15 0.6
histogram vllm_omni:transfer_tx_s{from_stage="0",from_replica="0",to_stage="1",to_replica="1"} 5 0.4
histogram vllm_omni:transfer_in_flight_s{from_stage="0",from_replica="0",to_stage="1",to_replica="0"} 15 0.3
histogram vllm_omni:transfer_in_flight_s{from_stage="0",from_replica="0",to_stage="1",to_replica="1"} 5 0.2
histogram vllm_omni:transfer_rx_s{from_stage="0",from_replica="0",to_stage="1",to_replica="0"} 15 0.3
histogram vllm_omni:transfer_rx_s{from_stage="0",from_replica="0",to_stage="1",to_replica="1"} 5 0.2
histogram vllm_omni:transfer_size_bytes{from_stage="1",from_replica="0",to_stage="2",to_replica="0"} 60 600000
histogram vllm_omni:transfer_size_bytes{from_stage="1",from_replica="1",to_stage="2",to_replica="0"} 20 200000
histogram vllm_omni:transfer_tx_s{from_stage="1",from_replica="0",to_stage="2",to_replica="0"} 60 1.5
histogram vllm_omni:transfer_tx_s{from_stage="1",from_replica="1",to_stage="2",to_replica="0"} 20 0.5
histogram vllm_omni:transfer_in_flight_s{from_stage="1",from_replica="0",to_stage="2",to_replica="0"} 60 0.75
histogram vllm_omni:transfer_in_flight_s{from_stage="1",from_replica="1",to_stage="2",to_replica="0"} 20 0.25
histogram vllm_omni:transfer_rx_s{from_stage="1",from_replica="0",to_stage="2",to_replica="0"} 60 0.75
histogram vllm_omni:transfer_rx_s{from_stage="1",from_replica="1",to_stage="2",to_replica="0"} 20 0.25
histogram vllm_omni:audio_duration_s{stage="2",replica="0"} 16 80 1:0 10:16
histogram vllm_omni:audio_rtf{stage="2",replica="0"} 16 8 0.5:8 0.75:12 0.9:13 1.0:14
histogram vllm_omni:audio_ttfp_s{stage="2",replica="0"} 10 4 0.25:3 0.5:7 1.0:9
histogram vllm_omni:audio_underrun_s{stage="2",replica="0"} 10 0.7 0.001:5 0.05:6 0.1:8 0.2:9
counter vllm_omni:audio_continuity_ok_total{stage="2",replica="0",threshold_ms="50"} 6
counter vllm_omni:audio_continuity_ok_total{stage="2",replica="0",threshold_ms="100"} 8
counter vllm_omni:audio_skipped_requests_total{stage="2",replica="0"} 4
counter vllm_omni:audio_frames_total{stage="2",replica="0"} 1920000
counter vllm_omni:duplex_append_requests_total{outcome="success"} 30
counter vllm_omni:duplex_append_requests_total{outcome="deduplicated"} 6
counter vllm_omni:duplex_append_requests_total{outcome="rejected"} 4
counter vllm_omni:duplex_kv_rebuilds_total{reason="evicted",outcome="success"} 3
counter vllm_omni:duplex_kv_rebuilds_total{reason="evicted",outcome="failed"} 1
histogram vllm_omni:duplex_append_latency_s{outcome="success"} 30 0.6
histogram vllm_omni:duplex_control_queue_wait_s{operation="close"} 5 0.5
`

// imageLines are a pipeline that paints, over 10 s: 8 requests of two images each,
// on two replicas of its only stage.
const imageLines = `
counter vllm_omni:requests_success_total{finished_reason="stop"} 8
histogram vllm_omni:e2e_request_latency_s 8 40
histogram vllm_omni:stage_gen_time_s{stage="0",replica="0"} 6 27
histogram vllm_omni:stage_gen_time_s{stage="0",replica="1"} 2 9
histogram vllm_omni:stage_in_queue_s{stage="0",replica="0"} 6 3
histogram vllm_omni:stage_in_queue_s{stage="0",replica="1"} 2 1
histogram vllm_omni:diffusion_exec_s{stage="0",replica="0"} 6 25
histogram vllm_omni:diffusion_exec_s{stage="0",replica="1"} 2 7
histogram vllm_omni:diffusion_exec_per_step_s{stage="0",replica="0"} 8 0.8
histogram vllm_omni:num_inference_steps{stage="0",replica="0"} 8 400
histogram vllm_omni:denoise_step_latency_s{stage="0",replica="0"} 400 30
histogram vllm_omni:diffusion_preprocess_s{stage="0",replica="0"} 8 1.6
histogram vllm_omni:diffusion_postprocess_s{stage="0",replica="0"} 8 0.8
histogram vllm_omni:vae_decode_s{stage="0",replica="0"} 8 3.2
histogram vllm_omni:diffusion_kv_load_s{stage="0",replica="0"} 8 0.32
histogram vllm_omni:diffusion_forward_s{stage="0",replica="0"} 8 24
histogram vllm_omni:image_ttfp_s{stage="0",replica="0"} 8 32 1:0 2:2 5:6 10:8
histogram vllm_omni:image_pixels{stage="0",replica="0"} 16 16000000
counter vllm_omni:image_count_total{stage="0",replica="0"} 16
gauge vllm_omni:peak_memory_mb{stage="0",replica="0"} 20000
gauge vllm_omni:peak_memory_mb{stage="0",replica="1"} 24000
`

// omniWant is a value that a person worked out.
type omniWant = vllmWant

func speechWants() []omniWant {
	w := func(name string, value float64, labels ...string) omniWant {
		return omniWant{name, "ok", value, labels}
	}
	as := func(status, name string, value float64, labels ...string) omniWant {
		return omniWant{name, status, value, labels}
	}
	return slices.Concat([]omniWant{
		// 22 left; of the 20 that succeeded and the 5 that failed, 2 of which were aborted and are in both.
		w("omni_request_rate", 2.2), w("omni_finished_share", 0.5, "finished_reason", "stop"),
		w("omni_finished_share", 2.0/22, "finished_reason", "abort"), w("omni_failed_share", 5.0/25),
		w("omni_failure_ratio", 3.0/25, "reason", "error"), w("omni_failure_ratio", 2.0/25, "reason", "abort"),
		w("omni_output_tok_s", 500), w("omni_input_tok_s", 80), as("estimate", "omni_running_mean", 4),
		as("estimate", "omni_waiting_mean", 1), w("omni_concurrency", 6), w("kv_wait_mean", 0.05, "connector_type", "shm"),
		w("kv_wait_mean", 0.2, "connector_type", "tcp"),
		// 3 = 0.9 + 1.2 + 0.4 in the stages, 0.1 + 0.2 on the hops, 0.1 in the queue, 0.1 left.
		w("omni_e2e_mean", 3), w("omni_queue_mean", 0.1), w("queue_wait_share", 2.0/60), w("omni_stages_mean", 2.5),
		w("omni_hops_mean", 0.3), w("omni_slack_mean", 0.5), w("omni_residual_mean", 0.1), w("omni_overlap_mean", 0),
		w("check_success_count", 0), w("check_stage_time_missing", 0), w("check_continuity", 0),
	}, stageWants(), edgeWants(), audioWants(), []omniWant{
		w("duplex_append_success_ratio", 0.9), w("duplex_rebuild_ratio", 0.75),
		w("duplex_append_mean", 0.02, "outcome", "success"), w("duplex_control_wait_mean", 0.1, "operation", "close"),
	})
}

func stageWants() []omniWant {
	var out []omniWant
	each := func(name string, values ...float64) {
		for i, v := range values {
			out = append(out, omniWant{name, "ok", v, []string{"stage", string(rune('0' + i))}})
		}
	}
	each("stage_time_mean", 18.0/20, 24.0/20, 8.0/20) // by the requests of the pipeline, not the 30 visits
	each("stage_share_of_e2e", 18.0/60, 24.0/60, 8.0/60)
	each("stage_queue_mean", 2.0/20, 4.0/20, 2.0/20)
	each("in_queue_share", 2.0/18, 4.0/24, 2.0/8)
	each("stage_request_rate", 2, 2, 3)
	each("stage_output_tok_s", 100, 400)
	each("fan_out", 1, 1, 1.5)
	each("check_stage_count", 0, 0, 10)
	each("stage_replicas", 1, 2, 1)
	each("stage_utilization", 1.8, 1.2, 0.8) // stage 1 takes longer than 0, on two replicas
	return append(out, omniWant{"bottleneck_stage", "ok", 1.8, []string{"stage", "0"}},
		omniWant{"replica_requests", "ok", 15, []string{"stage", "1", "replica", "0"}},
		omniWant{"replica_requests", "ok", 5, []string{"stage", "1", "replica", "1"}},
		omniWant{"replica_requests", "ok", 16, []string{"stage", "2", "replica", "0"}}, // with audio
		omniWant{"replica_skew", "ok", 15.0 / 10, []string{"stage", "1", "of", "requests"}},
		omniWant{"replica_skew", "ok", 3200.0 / 2000, []string{"stage", "1", "of", "tokens"}})
}

func edgeWants() []omniWant {
	var out []omniWant
	both := func(name string, first, second float64) {
		out = append(out, omniWant{name, "ok", first, []string{"from_stage", "0", "to_stage", "1"}},
			omniWant{name, "ok", second, []string{"from_stage", "1", "to_stage", "2"}})
	}
	both("edge_hop_mean", (1+0.5+0.5)/20, (2.0+1+1)/20)
	both("edge_chunks_per_request", 1, 4)
	both("edge_tx_mean", 1.0/20, 2.0/80)
	both("edge_in_flight_mean", 0.5/20, 1.0/80)
	both("edge_rx_mean", 0.5/20, 1.0/80)
	both("edge_chunk_bytes", 2e6/20, 8e5/80)
	both("edge_throughput", 2e6/10, 8e5/10)
	both("edge_bandwidth", 2e6/0.5, 8e5/1)
	both("edge_serialisation_rate", 2e6/1, 8e5/2)
	both("edge_share_of_e2e", 2.0/60, 4.0/60)
	both("check_edge_counts", 0, 0)
	return append(out, omniWant{"edges_share_of_e2e", "ok", 6.0 / 60, nil})
}

func audioWants() []omniWant {
	var out []omniWant
	w := func(name string, value float64, labels ...string) {
		out = append(out, omniWant{name, "ok", value, append(labels, "stage", "2")})
	}
	slos := func(name string, values map[string]float64) {
		for x, v := range values {
			w(name, v, "slo", x)
		}
	}
	w("rtf_mean", 0.5)
	slos("rtf_slo_attainment", map[string]float64{"0.5": 8.0 / 16, "0.75": 12.0 / 16, "0.9": 13.0 / 16, "1": 14.0 / 16})
	w("ttfp_mean", 0.4)
	slos("ttfp_slo", map[string]float64{"0.25": 0.3, "0.5": 0.7, "1": 0.9})
	w("continuity_ok_ratio", 0.6, "threshold_ms", "50")
	w("continuity_ok_ratio", 0.8, "threshold_ms", "100")
	slos("underrun_free_ratio", map[string]float64{"0.001": 0.5})
	slos("underrun_slo", map[string]float64{"0.05": 0.6, "0.1": 0.8, "0.2": 0.9})
	w("underrun_mean", 0.07)
	w("silent_loss_ratio", 4.0/20)
	w("audio_realtime_streams", 8)
	w("audio_mean_duration", 5)
	w("audio_frames_s", 192000)
	w("audio_sample_rate", 24000)
	w("stream_share", 10.0/16)
	// Of 10 streams 1 was late, 2 ran dry and 2 may be the 2 of 16 that were slow:
	// at least 5 are good, and at most the 8 that did not run dry.
	for i, bound := range []string{"lower", "upper"} {
		good := []float64{5, 8}[i]
		out = append(out, omniWant{"audio_goodput_ratio", "bound", good / 10, []string{"bound", bound}},
			omniWant{"audio_goodput", "bound", good / 10, []string{"bound", bound}})
	}
	return out
}

func imageWants() []omniWant {
	w := func(name string, value float64, labels ...string) omniWant {
		return omniWant{name, "ok", value, labels}
	}
	return []omniWant{
		// No failure was ever counted, nor is there a queue.
		{"omni_failed_share", "missing", 0, nil}, {"queue_wait_share", "missing", 0, nil},
		w("images_s", 1.6), w("megapixels_s", 1.6), w("mean_pixels", 1e6), w("steps_mean", 50),
		w("diffusion_step_mean", 32.0/400), w("diffusion_step_mean_by_request", 0.1, "stage", "0"),
		w("denoise_step_mean", 0.075, "stage", "0"), w("diffusion_exec_mean", 4, "stage", "0"),
		w("image_ttfp_mean", 4, "stage", "0"), w("image_ttfp_slo", 0, "slo", "1"), w("image_ttfp_slo", 0.25, "slo", "2"),
		w("image_ttfp_slo", 0.75, "slo", "5"), w("image_ttfp_slo", 1, "slo", "10"),
		w("diffusion_share", 0.05, "part", "preprocess"), w("diffusion_share", 0.025, "part", "postprocess"),
		w("diffusion_share", 0.1, "part", "vae_decode"), w("diffusion_share", 0.01, "part", "kv_load"),
		w("diffusion_share", 0.75, "part", "forward"), w("peak_memory", 24000, "stage", "0"),
		// 5 = 4.5 in the stage and 0.5 that nothing explains.
		// no queue family
		w("omni_e2e_mean", 5), w("stage_time_mean", 4.5), w("omni_slack_mean", 0.5),
		{"omni_residual_mean", "partial", 0.5, nil}, w("in_queue_share", 4.0/36), w("stage_utilization", 1.8),
		w("replica_skew", 6.0/4, "of", "requests"),
		w("replica_requests", 2, "replica", "1"),
	}
}

// isMissing reports whether a quantity is missing before anything was taken away.
func isMissing(whole derived, d *catalog.Derived) bool {
	was := same(whole.list, *d)
	return was != nil && was.Status == catalog.Missing
}

func omniOf(d derived) derived { return of(d, catalog.OmniPack) }

// Every formula of vLLM-Omni gives what a person gets, and none is left out.
func TestOmniFormulas(t *testing.T) {
	_, others := formulaLines(t)
	names := map[string]bool{}
	check := func(lines string, wants []omniWant) {
		t.Helper()
		d := omniOf(inTenSeconds(t, lines))
		for _, w := range wants {
			d.want(w.name, w.status, w.value, w.labels...)
			names[w.name] = true
		}
	}
	check(speechLines, speechWants())
	check(imageLines, imageWants())
	for _, p := range catalog.Packs() {
		if p.Name != catalog.OmniPack {
			continue
		}
		for _, r := range p.Rules {
			if !names[r.Name] && !tested(others, p.Name, r.Name) {
				t.Errorf("no case for %s", r.Name)
			}
		}
	}
	d := omniOf(inTenSeconds(t, speechLines))
	if got := d.one("stage_time_mean", "stage", "2"); got == nil || !slices.Equal(got.Flags, []string{"count_differs"}) {
		t.Errorf("30 visits of 20 requests: %+v", got)
	}
	for _, name := range []string{"audio_sample_rate", "omni_residual_mean", "bottleneck_stage", "edge_hop_mean",
		"edge_bandwidth", "stage_utilization"} {
		if got := d.one(name); got == nil || len(got.Flags) > 0 {
			t.Errorf("%s: %+v, want no flag", name, got)
		}
	}
	if got := d.one("replica_skew", "stage", "0"); got != nil {
		t.Errorf("one replica has nobody to be compared with: %+v", got)
	}
}

// Without one of its families a quantity is missing, absent, partial or made of
// others that give the same, and never a number that stands for nothing.
func TestOmniMissing(t *testing.T) {
	others := []string{"omni_input_tok_s"} // of the prompts of stages
	c := known(t)
	for _, lines := range []string{speechLines, imageLines} {
		gains := exposed(t, exposition(lines))
		whole := omniOf(derive(t, c, 10, gains))
		seen := map[string]bool{}
		for _, g := range gains {
			if seen[g.Family] {
				continue
			}
			seen[g.Family] = true
			rest := slices.DeleteFunc(slices.Clone(gains), func(h catalog.Gain) bool { return h.Family == g.Family })
			for _, d := range omniOf(derive(t, c, 10, rest)).list {
				was := same(whole.list, d)
				switch {
				case !d.Status.Defined() && (d.Value != 0 || d.Shown != 0 || d.HasParts && d.Status == catalog.Missing):
					t.Errorf("without %s: %s is %s with a value or parts", g.Family, d.Name, d.Status)
				case d.Status.Defined() && slices.Contains(d.Families, g.Family):
					t.Errorf("without %s: %s is %s %v, of it", g.Family, d.Name, d.Status, d.Value)
				case d.Status < catalog.Partial && d.Category != catalog.Check && !slices.Contains(others, d.Name) && was != nil &&
					was.Status < catalog.Partial && !close(d.Value, was.Value):
					t.Errorf("without %s: %s %v is %s %v, was %v", g.Family, d.Name, d.Labels, d.Status, d.Value, was.Value)
				}
			}
		}
	}
}

// A pipeline that did nothing has rates of zero and no ratios.
func TestOmniIdle(t *testing.T) {
	counts := []string{"stage_replicas", "peak_memory"}
	for _, lines := range []string{speechLines, imageLines} {
		gains := exposed(t, exposition(lines))
		whole := omniOf(derive(t, known(t), 10, gains))
		for i := range gains {
			g := &gains[i]
			g.Total, g.Count, g.Sum, g.Exact = 0, 0, 0, 0
			for k := range g.Buckets {
				g.Buckets[k].Count = 0
			}
			if g.Type == metric.Gauge && !strings.HasSuffix(g.Family, "memory_mb") {
				g.TimeAvg, g.Min, g.Max, g.First, g.Last = 0, 0, 0, 0, 0
			}
		}
		idle := omniOf(derive(t, known(t), 10, gains))
		for i := range idle.list {
			d := &idle.list[i]
			switch {
			case slices.Contains(counts, d.Name):
			case d.Value != 0 || d.Shown != 0 || d.Status == catalog.Missing && !isMissing(whole, d):
				t.Errorf("%s of nothing is %s %v", d.Name, d.Status, d.Value)
			case d.Status.Defined() && (d.HasParts && d.Denominator == 0 || d.Unit == "ratio" ||
				strings.HasSuffix(d.Name, "_mean") && d.Unit == "seconds"):
				t.Errorf("%s divides by nothing: %+v", d.Name, d)
			}
		}
		idle.absent("bottleneck_stage") // all are alike
		idle.want("omni_e2e_mean", "zero_denominator", 0)
		idle.want("omni_slack_mean", "zero_denominator", 0)
		idle.want("omni_request_rate", "ok", 0)
	}
}

// A reset of any input shows in all that is made of it, and so does a series that
// is new.
func TestOmniResets(t *testing.T) {
	for _, lines := range []string{speechLines, imageLines} {
		again := exposed(t, exposition(lines))
		whole, born := omniOf(derive(t, known(t), 10, again)), slices.Clone(again)
		for i := range again {
			if g := &again[i]; g.Type == metric.Counter || g.Type == metric.Histogram {
				g.Resets, born[i].Born = 1, true
			}
		}
		for _, d := range omniOf(derive(t, known(t), 10, again)).list {
			if isMissing(whole, &d) {
				continue
			}
			if !d.Status.Defined() {
				t.Errorf("%s: %s", d.Name, d.Status)
			}
			said := d.Status == catalog.ResetCorrected || slices.Contains(d.Flags, "reset_corrected")
			if counted(again, d.Families) && !said {
				t.Errorf("%s hides the restart: %s %v", d.Name, d.Status, d.Flags)
			}
		}
		for _, d := range omniOf(derive(t, known(t), 10, born)).list {
			if counted(born, d.Families) && !isMissing(whole, &d) && (d.Status == catalog.OK || !d.Status.Defined()) {
				t.Errorf("%s hides the new series: %s", d.Name, d.Status)
			}
		}
	}
}
