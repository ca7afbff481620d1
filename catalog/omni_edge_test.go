package catalog_test

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

// omni derives what the pack of vLLM-Omni makes of lines, with one of them replaced.
func omni(t *testing.T, lines string, oldnew ...string) derived {
	t.Helper()
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(lines, oldnew[i]) {
			t.Fatalf("nothing to replace: %q", oldnew[i])
		}
	}
	return omniOf(inTenSeconds(t, strings.NewReplacer(oldnew...).Replace(lines)))
}

// flagged checks a value, what it shows and its flags.
func (d derived) flagged(name, status string, value, shown float64, flags []string, labels ...string) {
	d.t.Helper()
	d.want(name, status, value, labels...)
	if got := d.one(name, labels...); got != nil && (!close(got.Shown, shown) || !slices.Equal(got.Flags, flags)) {
		d.t.Errorf("%s: shown %v, flags %v, want %v, %v", name, got.Shown, got.Flags, shown, flags)
	}
}

// Stages that overlap add up to more than the whole; what is left of it then is
// less than nothing, and says so.
func TestOmniOverlap(t *testing.T) {
	d := omni(t, speechLines, "e2e_request_latency_s 20 60", "e2e_request_latency_s 20 40")
	d.want("omni_e2e_mean", "ok", 2)
	d.want("omni_stages_mean", "ok", 2.5)
	d.want("omni_slack_mean", "ok", -0.5)
	d.want("omni_overlap_mean", "ok", 0.5)
	d.flagged("omni_residual_mean", "ok", -0.9, 0, []string{"overlapped", "negative"})
	d.want("stage_share_of_e2e", "ok", 0.6, "stage", "1")
}

// What a split lacks is in what is left, which is partial then.
func TestOmniPartialSplit(t *testing.T) {
	untimed := []string{"stage_time_missing"}
	d := omniOf(inTenSeconds(t, without(speechLines, "stage_gen_time")))
	d.want("check_stage_time_missing", "ok", 1)
	d.want("stage_time_mean", "missing", 0, "stage", "2")
	d.absent("stage_utilization", "stage", "2")
	d.absent("fan_out", "stage", "2")
	d.flagged("omni_stages_mean", "partial", 2.1, 2.1, untimed)
	d.flagged("omni_slack_mean", "partial", 0.9, 0.9, untimed)
	d.flagged("omni_residual_mean", "partial", 0.5, 0.5, untimed)
	d.flagged("omni_overlap_mean", "partial", 0, 0, untimed)
	d.flagged("bottleneck_stage", "partial", 1.8, 1.8, untimed, "stage", "0")

	d = omniOf(inTenSeconds(t, without(speechLines, "stage_gen_time", "vllm:e2e")))
	for _, name := range []string{"omni_stages_mean", "omni_slack_mean", "omni_overlap_mean", "omni_residual_mean"} {
		d.want(name, "missing", 0)
	}
	d.absent("bottleneck_stage")
	d.want("omni_hops_mean", "ok", 0.3)

	d = omniOf(inTenSeconds(t, without(speechLines, "queue_wait_s")))
	d.absent("omni_queue_mean")
	d.flagged("omni_residual_mean", "partial", 0.2, 0.2, []string{"queue_missing"})
	d = omniOf(inTenSeconds(t, without(speechLines, "transfer")))
	d.absent("omni_hops_mean")
	d.absent("edges_share_of_e2e")
	d.flagged("omni_residual_mean", "partial", 0.4, 0.4, []string{"hops_missing"})

	d = omniOf(inTenSeconds(t, without(speechLines, "transfer_rx")))
	part := []string{"hop_part_missing"}
	d.flagged("edge_hop_mean", "partial", 1.5/20, 1.5/20, part, "from_stage", "0")
	d.flagged("edge_share_of_e2e", "partial", 1.5/60, 1.5/60, part, "from_stage", "0")
	d.flagged("omni_hops_mean", "partial", 4.5/20, 4.5/20, part)
	d.flagged("edges_share_of_e2e", "partial", 4.5/60, 4.5/60, part)
	d.flagged("omni_residual_mean", "partial", 0.5-4.5/20-0.1, 0.5-4.5/20-0.1, part)
	d.want("edge_bandwidth", "ok", 4e6, "from_stage", "0")
	d = omniOf(inTenSeconds(t, without(speechLines, "transfer_rx", "transfer_tx", "transfer_in")))
	d.absent("check_edge_counts") // nothing to compare with
	d.absent("edge_hop_mean")
	d.want("edge_bandwidth", "missing", 0)
	d.want("edge_throughput", "ok", 2e5, "from_stage", "0")
}

// A chunk whose sending was not seen makes partial what compares it with others.
func TestOmniEdgeCounts(t *testing.T) {
	d := omni(t, speechLines, `to_replica="0"} 15 0.6`, `to_replica="0"} 14 0.6`)
	differ := []string{"counts_differ"}
	d.want("check_edge_counts", "ok", 1, "from_stage", "0")
	d.want("check_edge_counts", "ok", 0, "from_stage", "1")
	d.flagged("edge_hop_mean", "partial", 0.1, 0.1, differ, "from_stage", "0")
	d.flagged("edge_serialisation_rate", "partial", 2e6, 2e6, differ, "from_stage", "0")
	d.flagged("edge_bandwidth", "ok", 4e6, 4e6, nil, "from_stage", "0")
	d.want("edge_tx_mean", "ok", 1.0/19, "from_stage", "0")
	d.want("edge_chunks_per_request", "ok", 19.0/20, "from_stage", "0")

	d = omni(t, imageLines, "vllm_omni:e2e_request_latency_s 8 40", `vllm_omni:e2e_request_latency_s 8 40
histogram vllm_omni:transfer_size_bytes{from_stage="0",to_stage="1"} 4 800
histogram vllm_omni:transfer_tx_s{from_stage="0",to_stage="1"} 4 0
histogram vllm_omni:transfer_in_flight_s{from_stage="0",to_stage="1"} 0 0
histogram vllm_omni:transfer_rx_s{from_stage="0",to_stage="1"} 4 0.4`)
	d.want("edge_serialisation_rate", "zero_denominator", 0)
	d.want("edge_bandwidth", "zero_denominator", 0)
	d.want("edge_in_flight_mean", "zero_denominator", 0)
	d.want("edge_tx_mean", "ok", 0)
	d.want("check_edge_counts", "ok", 4)
}

// Where no request ended, what is by requests is not defined, and the stages still
// have work.
func TestOmniNothingEnded(t *testing.T) {
	d := omni(t, speechLines, "e2e_request_latency_s 20 60", "e2e_request_latency_s 0 0")
	for _, name := range []string{"omni_e2e_mean", "omni_queue_mean", "omni_stages_mean", "omni_slack_mean",
		"omni_overlap_mean", "omni_residual_mean",
		"omni_hops_mean", "stage_time_mean", "stage_share_of_e2e", "stage_queue_mean", "fan_out", "edge_hop_mean",
		"edge_chunks_per_request",
		"edge_share_of_e2e", "edges_share_of_e2e", "queue_wait_share"} {
		d.want(name, "zero_denominator", 0)
	}
	d.want("stage_utilization", "ok", 1.2, "stage", "1")
	d.want("bottleneck_stage", "ok", 1.8, "stage", "0")
	d.want("check_success_count", "ok", 20)
	d.want("omni_concurrency", "ok", 0)
}

// Aborts are in both families and count once; a reason that no request ended for
// is not shown.
func TestOmniFailures(t *testing.T) {
	ended := func(reasons ...string) derived {
		var lines strings.Builder
		for _, r := range reasons {
			lines.WriteString("counter vllm_omni:requests_" + r + "\n")
		}
		return omniOf(inTenSeconds(t, lines.String()))
	}
	stop, aborted, both, failed := `success_total{finished_reason="stop"} 6`, `success_total{finished_reason="abort"} 2`,
		`failed_total{reason="abort"} 2`, `failed_total{reason="error"} 4`
	ended(stop, aborted, both, failed).want("omni_failed_share", "ok", 0.5)
	ended(stop, aborted, both).want("omni_failure_ratio", "ok", 0.25, "reason", "abort")
	d := ended(aborted, both)
	d.want("omni_failed_share", "ok", 1)
	d.want("omni_finished_share", "ok", 1, "finished_reason", "abort")
	d.want("omni_request_rate", "ok", 0.2)
	d = ended(failed)
	d.want("omni_failed_share", "ok", 1)
	d.absent("omni_request_rate")
	d = ended(stop)
	d.want("omni_failed_share", "missing", 0)
	d.absent("omni_failure_ratio")
	// Somebody succeeded, so that the family of successes was not recorded.
	d = omniOf(inTenSeconds(t, "counter vllm_omni:requests_failed_total{reason=\"error\"} 4\nhistogram "+
		"vllm_omni:e2e_request_latency_s 6 6\n"))
	d.want("omni_failed_share", "missing", 0)
	d.want("omni_failure_ratio", "missing", 0)
	d = omni(t, speechLines, `reason="stop"} 11`, `reason="stop"} 10`)
	d.want("check_success_count", "ok", -1)
}

// A goal that is no bound of a bucket has an estimate and two bounds.
func TestOmniGoals(t *testing.T) {
	off := []string{"not_a_bound"}
	check := func(d derived, name, slo string, estimate, lower, upper float64) {
		t.Helper()
		d.flagged(name, "estimate", estimate, estimate, off, "slo", slo)
		d.want(name, "bound", lower, "slo", slo, "bound", "lower")
		d.want(name, "bound", upper, "slo", slo, "bound", "upper")
	}
	d := omni(t, speechLines, "0.5:8 0.75:12 0.9:13 1.0:14", "0.25:2 0.75:12 1.25:15", "0.001:5 0.05:6 0.1:8 0.2:9",
		"0.002:4 0.1:8")
	check(d, "rtf_slo_attainment", "0.5", (2.0+10*0.5)/16, 2.0/16, 12.0/16)
	d.want("rtf_slo_attainment", "ok", 0.75, "slo", "0.75")
	check(d, "rtf_slo_attainment", "1", (12.0+3*0.5)/16, 12.0/16, 15.0/16)
	check(d, "underrun_free_ratio", "0.001", 0.2, 0, 0.4)
	check(d, "underrun_slo", "0.2", 0.8, 0.8, 1) // beyond the last bound
	check(d, "underrun_slo", "0.05", (4.0+4*(0.048/0.098))/10, 0.4, 0.8)
	// RTF: at least 12 of 16, so that 4 are slow, at most 15; 2 dry, 1 late.
	d.want("audio_goodput_ratio", "bound", 0.3, "bound", "lower")
	d.want("audio_goodput_ratio", "bound", 0.8, "bound", "upper")

	c, err := catalog.New(strings.NewReader("inputs: {slo: {ttft_s: 0.6}}"))
	if err != nil {
		t.Fatal(err)
	}
	d = omniOf(derive(t, c, 10, exposed(t, exposition(speechLines))))
	check(d, "ttfp_slo", "0.6", (7+2*0.2)/10, 0.7, 0.9)
	d.want("ttfp_slo", "ok", 0.7, "slo", "0.5")
	d.want("audio_goodput_ratio", "bound", 0.3, "bound", "lower") // 3 may be late
	d.want("audio_goodput", "bound", 0.8, "bound", "upper")
	c, err = catalog.New(strings.NewReader("inputs: {slo: {ttft_s: 0.5}}"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, x := range omniOf(derive(t, c, 10, exposed(t, exposition(speechLines)))).list {
		if x.Name == "ttfp_slo" {
			n++
		}
	}
	if n != 3 {
		t.Errorf("%d results of three goals, of which the user's is one", n)
	}
	// Without buckets that can be used a goal is missing.
	gains := exposed(t, exposition(speechLines))
	for i := range gains {
		gains[i].Buckets = nil
	}
	d = omniOf(derive(t, known(t), 10, gains))
	for _, name := range []string{"rtf_slo_attainment", "ttfp_slo", "underrun_slo", "underrun_free_ratio",
		"audio_goodput", "audio_goodput_ratio"} {
		d.want(name, "missing", 0)
	}
	d.absent("check_continuity")
	d.want("continuity_ok_ratio", "ok", 0.8, "threshold_ms", "100")
}

// The bounds of the joint share are those that any way to spread the misses over
// the streams has: tried out for 4 streams, and one more request that does not
// stream but has an RTF.
func TestOmniGoodputBounds(t *testing.T) {
	const streams = 4
	type marginals struct{ rtf, ttfp, underrun int }
	least, most := map[marginals]int{}, map[marginals]int{}
	for rtf := range uint(1 << (streams + 1)) {
		for ttfp := range uint(1 << streams) {
			for underrun := range uint(1 << streams) {
				m := marginals{bits.OnesCount(rtf), bits.OnesCount(ttfp), bits.OnesCount(underrun)}
				good := bits.OnesCount(rtf & ttfp & underrun)
				if was, seen := least[m]; !seen || good < was {
					least[m] = good
				}
				most[m] = max(most[m], good)
			}
		}
	}
	c := known(t)
	for m := range least {
		one := func(family string, count, within int) catalog.Gain {
			n := float64(count)
			return catalog.Gain{Family: "vllm_omni:" + family, Type: metric.Histogram,
				Labels: metric.LabelsFromMap(map[string]string{"stage": "0"}), Count: n,
				Buckets: []catalog.Bucket{{Upper: 0.1, Count: 0}, {Upper: 1, Count: float64(within)},
					{Upper: math.Inf(1), Count: n}}}
		}
		dry := one("audio_underrun_s", streams, m.underrun)
		dry.Buckets[0].Count = float64(m.underrun)
		d := omniOf(derive(t, c, 2, []catalog.Gain{one("audio_rtf", streams+1, m.rtf), one("audio_ttfp_s", streams, m.ttfp),
			dry}))
		d.want("audio_goodput_ratio", "bound", float64(least[m])/streams, "bound", "lower")
		d.want("audio_goodput_ratio", "bound", float64(most[m])/streams, "bound", "upper")
		d.want("audio_goodput", "bound", float64(least[m])/2, "bound", "lower")
		d.want("audio_goodput", "bound", float64(most[m])/2, "bound", "upper")
	}
	// A stream without an RTF may have been slow or fast.
	d := omni(t, speechLines, "16 8 0.5:8 0.75:12 0.9:13 1.0:14", "6 3 0.5:6 1.0:6")
	d.want("audio_goodput_ratio", "bound", 0.3, "bound", "lower")
	d.want("audio_goodput_ratio", "bound", 0.8, "bound", "upper")
}

// Sound that is missing, that does not stream, or at a rate that no model has.
func TestOmniAudio(t *testing.T) {
	d := omniOf(inTenSeconds(t, without(speechLines, "continuity")))
	d.want("continuity_ok_ratio", "missing", 0) // no stream was all right, or it is not counted
	d.absent("check_continuity")
	d = omni(t, speechLines, `threshold_ms="100"} 8`, `threshold_ms="100"} 7`)
	d.want("check_continuity", "ok", -1)
	d.want("continuity_ok_ratio", "ok", 0.7, "threshold_ms", "100")
	d = omniOf(inTenSeconds(t, without(speechLines, "skipped")))
	d.absent("silent_loss_ratio")
	d = omni(t, speechLines, "16 80 1:0 10:16", "0 0 1:0 10:0")
	d.want("silent_loss_ratio", "ok", 1)
	d.want("audio_mean_duration", "zero_denominator", 0)
	d.want("audio_realtime_streams", "ok", 0)
	d.want("stream_share", "zero_denominator", 0)
	d.want("audio_sample_rate", "zero_denominator", 0)
	d = omni(t, speechLines, " 1920000", " 960000")
	d.flagged("audio_sample_rate", "ok", 12000, 12000, []string{"unusual"})
	d = omniOf(inTenSeconds(t, without(speechLines, "audio")))
	for _, name := range []string{"rtf_mean", "rtf_slo_attainment", "ttfp_slo", "silent_loss_ratio", "audio_goodput",
		"stream_share", "images_s"} {
		d.absent(name) // a pipeline without sound does not miss it
	}
}

// Replicas: one that served nothing counts, one that nobody names is not known,
// and those of several servers are not the same.
func TestOmniReplicas(t *testing.T) {
	idle := without(speechLines, `latency_seconds{stage="1",replica="1"}`, `tokens_total{stage="1",replica="1"}`,
		`time_seconds{stage="1",replica="1"}`)
	d := omniOf(inTenSeconds(t, idle))
	d.want("stage_replicas", "ok", 2, "stage", "1")
	d.want("replica_skew", "ok", 2, "stage", "1", "of", "requests")
	d.want("replica_skew", "ok", 2, "stage", "1", "of", "tokens")
	d.absent("replica_requests", "stage", "1", "replica", "1")
	d.want("stage_utilization", "ok", 16.0/20, "stage", "1")
	nobody := "histogram vllm_omni:e2e_request_latency_s 20 60\nhistogram vllm_omni:stage_gen_time_s{stage=\"0\"} 20 40\n"
	d = omniOf(inTenSeconds(t, nobody))
	d.absent("stage_replicas")
	d.flagged("stage_utilization", "partial", 4, 4, []string{"replicas_unknown"})

	one := exposed(t, exposition(speechLines))
	two := slices.Clone(one)
	for _, g := range one {
		g.Source = 1
		two = append(two, g)
	}
	d = omniOf(derive(t, known(t), 10, two))
	for _, w := range stageWants() {
		switch w.name {
		case "stage_replicas", "stage_request_rate", "stage_output_tok_s", "replica_requests", "check_stage_count":
			d.want(w.name, w.status, 2*w.value, w.labels...)
		default:
			d.want(w.name, w.status, w.value, w.labels...)
		}
	}
	d.want("omni_residual_mean", "ok", 0.1)
	d.want("omni_request_rate", "ok", 4.4)
}

// older spells the pipeline as servers did at first: other names and labels,
// transfers in milliseconds.
func older(lines string) string {
	names := strings.NewReplacer("vllm_omni:e2e_request_latency_s", "vllm:omni_e2e_request_latency_seconds",
		"vllm_omni:request_queue_wait_s", "vllm:omni_request_queue_time_seconds",
		"vllm_omni:transfer_tx_s", "vllm:omni_transfer_tx_time_ms", "vllm_omni:transfer_in_flight_s",
		"vllm:omni_transfer_in_flight_time_ms",
		"vllm_omni:transfer_rx_s", "vllm:omni_transfer_rx_decode_time_ms", "vllm_omni:", "vllm:omni_", "{stage=",
		"{stage_id=", ",replica=", ",replica_id=")
	var b strings.Builder
	for line := range strings.Lines(lines) {
		if f := strings.Fields(names.Replace(line)); len(f) > 0 && strings.Contains(line, "vllm_omni:") {
			if strings.Contains(f[1], "_ms{") {
				f[3] += "e3"
			}
			line = strings.Join(f, " ") + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// Servers that number the engines of all stages, and those of before, give the
// same numbers; a server of vLLM alone is no pipeline.
func TestOmniGenerations(t *testing.T) {
	vllm := func(stage, replica int) string { return fmt.Sprintf(`{stage="%d",replica="%d"}`, stage, replica) }
	numbered := strings.NewReplacer("seconds"+vllm(0, 0), `seconds{engine="0"}`, "seconds"+vllm(1, 0),
		`seconds{engine="1"}`, "seconds"+vllm(1, 1), `seconds{engine="2"}`,
		"generation_tokens_total"+vllm(0, 0), `generation_tokens_total{engine="0"}`, "generation_tokens_total"+vllm(1, 0),
		`generation_tokens_total{engine="1"}`,
		"generation_tokens_total"+vllm(1, 1), `generation_tokens_total{engine="2"}`, "prompt_tokens_total"+vllm(0, 0),
		`prompt_tokens_total{engine="0"}`).Replace(speechLines)
	check := func(lines string) {
		t.Helper()
		gains := exposed(t, exposition(lines))
		for range 2 { // in any order
			d := omniOf(derive(t, known(t), 10, gains))
			for _, w := range speechWants() {
				d.want(w.name, w.status, w.value, w.labels...)
			}
			slices.Reverse(gains)
		}
	}
	check(numbered)
	check(older(numbered))
	// Without the edges nobody knows which stage an engine is of.
	d := omniOf(inTenSeconds(t, without(numbered, "transfer")))
	d.flagged("omni_slack_mean", "partial", 0.5, 0.5, []string{"stages_unknown"})
	d.want("stage_time_mean", "ok", 16.0/20, "stage", "engine1")

	d = omniOf(inTenSeconds(t, without(speechLines, "vllm_omni:generation", "vllm_omni:prompt")))
	d.want("omni_output_tok_s", "ok", 500)
	d.want("omni_input_tok_s", "ok", 60)
	var alone []string
	for line := range strings.Lines(speechLines) {
		if strings.Contains(line, " vllm:") {
			alone = append(alone, line)
		}
	}
	if d := omniOf(inTenSeconds(t, strings.Join(alone, ""))); len(d.list) > 0 {
		t.Errorf("vLLM alone has %d quantities of a pipeline, the first %s", len(d.list), d.list[0].Name)
	}
}

// Where an edge tells of fewer replicas than there are engines, no engine is given a
// stage, whichever family is looked at first: one with engine 0 alone would agree.
func TestOmniStagesUnknown(t *testing.T) {
	const lines = `
histogram vllm_omni:e2e_request_latency_s 20 60
histogram vllm_omni:transfer_tx_s{from_stage="0",from_replica="0"} 15 0.6
counter vllm:generation_tokens_total{engine="0"} 1000
histogram vllm:e2e_request_latency_seconds{engine="0"} 20 18
histogram vllm:e2e_request_latency_seconds{engine="1"} 15 16
`
	for range 50 { // families come in another order each time
		stages := map[string]bool{}
		for _, d := range omniOf(inTenSeconds(t, lines)).list {
			if stage, ok := d.Labels.Get("stage"); ok && d.Name == "stage_output_tok_s" {
				stages[stage] = true
			}
		}
		if got := slices.Sorted(maps.Keys(stages)); !slices.Equal(got, []string{"engine0"}) {
			t.Fatalf("stages %v", got)
		}
	}
}

// Appends and rebuilds without a success.
func TestOmniDuplex(t *testing.T) {
	d := omniOf(inTenSeconds(t, without(speechLines, "deduplicated")))
	d.want("duplex_append_success_ratio", "ok", 30.0/34)
	d = omni(t, speechLines, `outcome="success"} 3`+"\n", `outcome="success"} 0`+"\n", `outcome="failed"} 1`,
		`outcome="failed"} 0`)
	d.want("duplex_rebuild_ratio", "zero_denominator", 0)
	d = omniOf(inTenSeconds(t, without(speechLines, "duplex", "kv_wait")))
	for _, name := range []string{"duplex_append_success_ratio", "duplex_rebuild_ratio", "duplex_append_mean",
		"duplex_control_wait_mean", "kv_wait_mean"} {
		d.absent(name)
	}
	d = omniOf(inTenSeconds(t, without(imageLines, "vae", "forward", "preprocess", "postprocess")))
	d.want("diffusion_share", "ok", 0.01, "part", "kv_load")
	d.absent("diffusion_share", "part", "forward")
	d = omniOf(inTenSeconds(t, without(imageLines, "num_inference")))
	d.want("diffusion_step_mean", "missing", 0)
	d.want("diffusion_step_mean_by_request", "ok", 0.1)
}
