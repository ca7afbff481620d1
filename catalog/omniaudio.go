package catalog

import (
	"math"
	"slices"
	"strconv"

	"github.com/scrapestat/scrapestat/metric"
)

// The families of audio, by stage and replica.
const (
	audioTTFP       = omniPrefix + "audio_ttfp_s"
	audioDuration   = omniPrefix + "audio_duration_s"
	audioRTF        = omniPrefix + "audio_rtf"
	audioFrames     = omniPrefix + "audio_frames"
	audioUnderrun   = omniPrefix + "audio_underrun_s"
	audioContinuity = omniPrefix + "audio_continuity_ok"
	audioSkipped    = omniPrefix + "audio_skipped_requests"
)

// omniAudioRules are the rules of stages that make sound.
func omniAudioRules() []Rule {
	by := []string{"stage"}
	rules := []Rule{
		{Name: "rtf_mean", Help: "Real-time factor, a mean over requests of stage time by length.", Category: Latency,
			Better: LowerBetter, By: by,
			Num: sumOf(audioRTF), Den: countOf(audioRTF)},
		slo("rtf_slo_attainment", "Requests whose audio was made at least this fast; 1 is real time.", audioRTF, 0.5, 0.75,
			0.9, 1),
		{Name: "ttfp_mean", Unit: "seconds", Help: "To the first packet of audio, of requests that stream.",
			Category: Latency, Better: LowerBetter,
			By: by, Headline: true, Canonical: "ttft_mean_s", Num: sumOf(audioTTFP), Den: countOf(audioTTFP)},
		slo("ttfp_slo", "Streaming requests whose first packet came within so many seconds.", audioTTFP, 0.25, 0.5, 1),
		{Name: "continuity_ok_ratio", Unit: "ratio", Help: "Streams whose worst underrun was at most threshold_ms.",
			Category: Latency,
			Better:   HigherBetter, Headline: true, By: []string{"stage", "threshold_ms"},
			Num: []Term{{Family: audioContinuity}}, Den: countOf(audioUnderrun),
			Formula: "d(audio_continuity_ok{threshold_ms}) / d(audio_underrun_s_count)", Make: continuityRatio},
		slo("underrun_free_ratio", "Streams that never ran dry, to a millisecond.", audioUnderrun, 0.001),
		slo("underrun_slo", "Streams whose worst underrun was at most so many seconds.", audioUnderrun, 0.05, 0.1, 0.2),
		{Name: "underrun_mean", Unit: "seconds", Help: "Worst underrun of a stream, a mean over streams.", Category: Latency,
			Better: LowerBetter, By: by,
			Num: sumOf(audioUnderrun), Den: countOf(audioUnderrun)},
		{Name: "silent_loss_ratio", Unit: "ratio", Help: "Requests that ended without audio.", Category: Errors,
			Better: LowerBetter, By: by,
			Num: []Term{{Family: audioSkipped}}, Den: []Term{{Family: audioDuration, Part: Count}, {Family: audioSkipped}}},
		{Name: "audio_realtime_streams", Unit: "streams",
			Help:     "Seconds of audio by second: as many listeners could be served in real time.",
			Category: Throughput, Better: HigherBetter, Headline: true, By: by, Num: sumOf(audioDuration)},
		{Name: "audio_mean_duration", Unit: "seconds", Help: "Length of the audio of a request.", Category: Throughput,
			By:  by,
			Num: sumOf(audioDuration), Den: countOf(audioDuration)},
		{Name: "audio_frames_s", Unit: "frames/s", Help: "Frames of audio.", Category: Throughput, Better: HigherBetter,
			By: by, Num: []Term{{Family: audioFrames}}},
		{Name: "audio_sample_rate", Unit: "frames/s", Help: "Frames by length: the sample rate, where a frame is a sample.",
			Category: Check, By: by,
			Num: []Term{{Family: audioFrames}}, Den: sumOf(audioDuration), Formula: "d(audio_frames) / d(audio_duration_s_sum)",
			Make: sampleRateOf},
		{Name: "stream_share", Unit: "ratio", Help: "Requests with audio that stream.", Category: Throughput, By: by,
			Num: countOf(audioUnderrun), Den: countOf(audioDuration)},
	}
	for i := range rules {
		if rules[i].Make == nil {
			rules[i] = rules[i].ifMade()
		}
	}
	return append(rules, audioGoodputRules()...)
}

// slo is the share of the observations of a family that are at most each of xs, by stage, and of the time to the first
// packet at most what the user asks for.
func slo(name, help, family string, xs ...float64) Rule {
	return Rule{Name: name, Unit: "ratio", Help: help, Category: Latency, Better: HigherBetter,
		Formula: "d(bucket{le=slo}) / d(count)", Make: func(v *View) []Derived {
			at := slices.Clone(xs)
			if own := v.Inputs().SLO["ttft_s"]; own > 0 && family == audioTTFP && !slices.Contains(at, own) {
				at = append(at, own)
			}
			return perValue(v, family, "stage", func(stage metric.Label) []Derived {
				own := v.within(v.Scope, []metric.Label{stage})
				var out []Derived
				for _, x := range at {
					out = append(out, label(own.sloAttainment(family, x), oneLabel("slo", strconv.FormatFloat(x, 'g', -1, 64)))...)
				}
				return out
			})
		}}
}

// perValue makes results for each value of a label of a family.
func perValue(v *View, family, name string, each func(metric.Label) []Derived) []Derived {
	var values []string
	for _, g := range v.Series(family) {
		if value, ok := g.Labels.Get(name); ok && !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	slices.SortFunc(values, compareNumbers)
	var out []Derived
	for _, value := range values {
		l := metric.Label{Name: name, Value: value}
		out = append(out, label(each(l), metric.NewLabels(l))...)
	}
	return out
}

// continuityRatio divides by all streams of the stage.
func continuityRatio(v *View) []Derived {
	return perValue(v, audioUnderrun, "stage", func(stage metric.Label) []Derived {
		den := v.total(Term{Family: audioUnderrun, Part: Count, Where: []metric.Label{stage}})
		own := v.within(v.Scope, []metric.Label{stage})
		out := perValue(own, audioContinuity, "threshold_ms", func(ms metric.Label) []Derived {
			return own.total(Term{Family: audioContinuity, Where: []metric.Label{ms}}).some(den)
		})
		if len(out) == 0 {
			// The counter appears with the first stream that was all right.
			out = single(total{families: []string{audioContinuity}}.by(den))
		}
		return out
	})
}

// sampleRateOf flags a rate that no model of vLLM-Omni has.
func sampleRateOf(v *View) []Derived {
	return perValue(v, audioFrames, "stage", func(stage metric.Label) []Derived {
		where := []metric.Label{stage}
		d := v.total(Term{Family: audioFrames, Where: where}).by(v.total(Term{Family: audioDuration, Part: Sum,
			Where: where}))
		usual := slices.ContainsFunc([]float64{16000, 22050, 24000, 44100, 48000}, func(rate float64) bool {
			return math.Abs(d.Value-rate) <= 0.01*rate
		})
		if d.Status.Defined() && !usual {
			d.Flag("unusual")
		}
		return single(d)
	})
}

// continuity compares the counter at 100 ms with the bucket at 0.1 s, which count the same streams.
func (o *omniRun) continuity() []Derived {
	counter := o.v.total(increase(audioContinuity, "threshold_ms", "100")...)
	a, status := o.v.attainment(audioUnderrun, 0.1)
	if !status.Defined() || !a.Exact() {
		return nil
	}
	return countDiffers(counter, total{sum: a.Lower, series: 1, born: status == BornInWindow,
		families: []string{audioUnderrun}})
}

// audioGoodputRules bound how many streams were all right in every respect: faster than real time, with an early first
// packet, without a gap. Only how many met each goal is known, so the answer is an interval.
func audioGoodputRules() []Rule {
	const formula = "max(0, sum p_i - (k-1)) to min p_i of RTF <= 1, TTFP <= slo, underrun <= 0.1 s"
	return []Rule{
		{Name: "audio_goodput_ratio", Unit: "ratio",
			Help: "Streams that met RTF, first packet and continuity: lower and upper bound.", Category: Latency,
			Better: HigherBetter, Formula: formula, Make: func(v *View) []Derived { return audioGoodput(v, false) }},
		{Name: "audio_goodput", Unit: "requests/s",
			Help:     "Streams a second that met RTF, first packet and continuity: lower and upper bound.",
			Category: Throughput, Better: HigherBetter, Formula: formula + ", times the rate of streams",
			Make: func(v *View) []Derived { return audioGoodput(v, true) }},
	}
}

// earlyPacket is when a first packet is early, in seconds, unless the user says.
const earlyPacket = 1.0

// audioGoodput is of the stages whose streams have all three families, or with rate what they give a second.
func audioGoodput(v *View, rate bool) []Derived {
	early := earlyPacket
	if own := v.Inputs().SLO["ttft_s"]; own > 0 {
		early = own
	}
	return perValue(v, audioUnderrun, "stage", func(stage metric.Label) []Derived {
		own := v.within(v.Scope, []metric.Label{stage})
		var met []SLOAttainment
		status := OK
		for _, goal := range []struct {
			family string
			x      float64
		}{{audioRTF, 1}, {audioTTFP, early}, {audioUnderrun, 0.1}} {
			a, s := own.attainment(goal.family, goal.x)
			status = max(status, s)
			met = append(met, a)
		}
		n := met[len(met)-1].Count // of the underruns: the streams that succeeded
		lower, upper := allGood(n, met)
		var out []Derived
		for i, count := range []float64{lower, upper} {
			d := divided(count, n)
			if rate {
				d = divided(count, v.Seconds)
			}
			if !status.Defined() {
				d = Derived{Status: status}
			}
			d.atBest(status)
			d.atBest(Bound)
			d.Families = []string{audioRTF, audioTTFP, audioUnderrun}
			out = append(out, d.of(metric.Label{Name: "bound", Value: []string{"lower", "upper"}[i]}))
		}
		return out
	})
}

// allGood bounds how many of n requests met several goals, of each of which is known how many observations did: all
// that missed one may be others, or the same (Fréchet). An observation of a request that is none of the n, and a
// request without one, may have met the goal or missed it.
func allGood(n float64, goals []SLOAttainment) (lower, upper float64) {
	bad, most := 0.0, n
	for _, g := range goals {
		bad += g.Count - g.Lower + max(0, n-g.Count)
		most = min(most, g.Upper+max(0, n-g.Count))
	}
	return max(0, n-bad), most
}
