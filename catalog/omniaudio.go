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

// attained is the share of the observations of a family that are at most each of the values asked for, by stage, and of
// the time to the first packet at most what the user asks for.
func attained(v *View, of argument) []Derived {
	at := of.at
	if own := v.Inputs().SLO["ttft_s"]; own > 0 && of.first == audioTTFP && !slices.Contains(at, own) {
		at = append(slices.Clone(at), own)
	}
	return perValue(v, of.first, "stage", func(stage metric.Label) []Derived {
		own := v.within(v.Scope, []metric.Label{stage})
		var out []Derived
		for _, x := range at {
			out = append(out, label(own.sloAttainment(of.first, x), oneLabel("slo", strconv.FormatFloat(x, 'g', -1, 64)))...)
		}
		return out
	})
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
	counter := o.v.total(Term{Family: audioContinuity, Where: []metric.Label{{Name: "threshold_ms", Value: "100"}}})
	a, status := o.v.attainment(audioUnderrun, 0.1)
	if !status.Defined() || !a.Exact() {
		return nil
	}
	return countDiffers(counter, total{sum: a.Lower, series: 1, born: status == BornInWindow,
		families: []string{audioUnderrun}})
}

// earlyPacket is when a first packet is early, in seconds, unless the user says.
const earlyPacket = 1.0

// audioGoodput bounds how many streams were all right in every respect: faster than real time, with an early first
// packet, without a gap. Only how many met each goal is known, so the answer is an interval. It is of the stages whose
// streams have all three families, or with rate what they give a second.
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
