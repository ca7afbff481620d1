package catalog

import (
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

const omniPrefix = "vllm_omni:"

// The families that several rules read.
const (
	omniSuccess   = omniPrefix + "requests_success"
	omniFailed    = omniPrefix + "requests_failed"
	omniE2E       = omniPrefix + "e2e_request_latency_s"
	omniQueueWait = omniPrefix + "request_queue_wait_s"
	omniStageTime = omniPrefix + "stage_gen_time_s"
	omniInQueue   = omniPrefix + "stage_in_queue_s"
)

// omniNatives are the algorithms of section 4 of the design document derived-metrics.md that no formula expresses.
func omniNatives() map[string]func(*View) []Derived {
	out := map[string]func(*View) []Derived{"omni_failed_share": failedShare, "omni_failure_ratio": failedByReason,
		"omni_continuity_ok_ratio": continuityRatio, "omni_audio_sample_rate": sampleRateOf,
		"omni_audio_goodput_ratio": func(v *View) []Derived { return audioGoodput(v, false) },
		"omni_audio_goodput":       func(v *View) []Derived { return audioGoodput(v, true) },
		"omni_diffusion_share":     diffusionShares, "omni_bottleneck_stage": omniBottleneck}
	for name, of := range omniSplit() {
		out[name] = perRun(of)
	}
	for name, of := range omniStageNatives() {
		out[name] = perStage(of)
	}
	for name, of := range omniEdgeNatives() {
		out[name] = perEdge(of)
	}
	return out
}

// isOmni reports whether a view has families of the pipeline.
func isOmni(v *View) bool { return v.has(omniPrefix) }

// omniAborts are left out of the successes where failures count them too.
var omniAborts = []metric.Label{{Name: "finished_reason", Value: "abort"}}

// endedOf are the requests that ended: the successes, aborts apart, and the failures. A server shows no reason before a
// request ends for it, so that one that shows no success but failures had none, unless it tells the time of some.
func endedOf(v *View) total {
	failed, success := v.total(Term{Family: omniFailed}), v.total(Term{Family: omniSuccess, Except: omniAborts})
	if success.series == 0 && v.Amount(Term{Family: omniE2E, Part: Count}).Value > 0 {
		return success
	}
	return failed.and(1, success)
}

func failedShare(v *View) []Derived {
	failed := v.total(Term{Family: omniFailed})
	if failed.series == 0 && len(v.Series(omniSuccess)) == 0 {
		return nil
	}
	return single(failed.by(endedOf(v)))
}

func failedByReason(v *View) []Derived {
	return perValue(v, omniFailed, "reason", func(reason metric.Label) []Derived {
		return v.total(Term{Family: omniFailed, Where: []metric.Label{reason}}).some(endedOf(v))
	})
}

func (v *View) total(terms ...Term) total { return v.sum(terms) }

// and adds a total, times a factor.
func (t total) and(factor float64, u total) total {
	return total{sum: t.sum + factor*u.sum, series: t.series + u.series, resets: t.resets + u.resets,
		bound: t.bound || u.bound, born: t.born || u.born, families: slices.Concat(t.families, u.families)}
}

// by is the quotient of two totals. One without series is missing.
func (t total) by(u total) Derived {
	d := Derived{Families: slices.Concat(t.families, u.families), Numerator: t.sum, Denominator: u.sum, HasParts: true}
	switch {
	case t.series == 0 || u.series == 0:
		d.Status, d.HasParts, d.Numerator, d.Denominator = Missing, false, 0, 0
	case u.sum == 0:
		d.Status = ZeroDenominator
	default:
		d.Value = t.sum / u.sum
		d.believe(t, u)
	}
	d.Shown = d.Value
	return d
}

// believe lowers the status of a result to what its parts allow.
func (d *Derived) believe(parts ...total) {
	for _, t := range parts {
		if t.resets > 0 {
			d.atBest(ResetCorrected)
		}
		if t.born {
			d.atBest(BornInWindow)
		}
	}
}

// seconds is the length of the stretch as a total.
func (v *View) seconds() total { return total{sum: v.Seconds, series: 1} }

// of labels a result.
func (d Derived) of(labels ...metric.Label) Derived {
	d.Labels = metric.NewLabels(labels...)
	return d
}

// notBelow shows a negative value, which a difference of means can have, as 0.
func (d Derived) notBelow() Derived {
	if d.Status.Defined() && d.Value < 0 {
		d.Shown = 0
		d.Flag("negative")
	}
	return d
}
