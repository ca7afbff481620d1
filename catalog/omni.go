package catalog

import (
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// OmniPack is the name of the pack of vLLM-Omni's pipeline. Its autoregressive stages are those of the pack of vLLM
// too, each on its own.
const OmniPack = "vllm-omni"

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

// omniPacks are the rules of section 4 of the design document derived-metrics.md.
func omniPacks() []Pack {
	return []Pack{{Name: OmniPack, Title: "vLLM-Omni", Prefixes: []string{omniPrefix, vllmE2E, vllmQueue, vllmGenerated,
		vllmPrompt},
		Rules: slices.Concat(omniPipeline(), omniSplitRules(), omniStageRules(), omniEdgeRules(), omniAudioRules(),
			omniDiffusionRules(), omniDuplexRules(), omniChecks())}}
}

// omniPipeline are the rules of the pipeline as a whole.
func omniPipeline() []Rule {
	return []Rule{
		{Name: "omni_request_rate", Unit: "requests/s", Help: "Requests that left the pipeline, aborted ones among them.",
			Category: Throughput,
			Better:   HigherBetter, Headline: true, Canonical: "request_rate", Num: increase(omniSuccess)},
		{Name: "omni_output_tok_s", Unit: "tokens/s",
			Help:     "Tokens that all stages generated; codec tokens are most of them.",
			Category: Throughput,
			Better:   HigherBetter, Canonical: "output_tok_s", Num: increase(omniPrefix + "generation_tokens"),
			Make: omniOnly(&Rule{Num: increase(omniPrefix + "generation_tokens"),
				Else: []Fallback{{Num: increase(vllmGenerated)}}})},
		{Name: "omni_input_tok_s", Unit: "tokens/s", Help: "Prompt tokens of all stages.", Category: Throughput,
			Better: HigherBetter, Canonical: "input_tok_s", Num: increase(omniPrefix + "prompt_tokens"),
			Make: omniOnly(&Rule{Num: increase(omniPrefix + "prompt_tokens"), Else: []Fallback{{Num: increase(vllmPrompt)}}})},
		ratio("omni_finished_share", "Requests that left the pipeline, by reason.", increase(omniSuccess),
			increase(omniSuccess)).
			category(Errors, Neutral).shares("finished_reason"),
		{Name: "omni_failed_share", Unit: "ratio", Help: "Requests that failed, of all that ended.", Category: Errors,
			Better:   LowerBetter,
			Headline: true, Canonical: "error_ratio", Num: increase(omniFailed), Den: omniEnded(), Make: failedShare},
		{Name: "omni_failure_ratio", Unit: "ratio", Help: "Requests that failed, of all that ended, by reason.",
			Category: Errors, Better: LowerBetter, By: []string{"reason"},
			Num: increase(omniFailed), Den: omniEnded(), Make: failedByReason},
		{Name: "omni_running_mean", Unit: "requests", Help: "Requests in the pipeline, by a gauge that moves when one ends.",
			Category: Saturation,
			Status:   Estimate, Canonical: "running", Num: []Term{{Family: omniPrefix + "num_requests_running",
				Part: Integral}}},
		{Name: "omni_waiting_mean", Unit: "requests", Help: "Requests not yet admitted, by a gauge that moves when one ends.",
			Category: Saturation,
			Better:   LowerBetter, Status: Estimate, Canonical: "waiting",
			Num: []Term{{Family: omniPrefix + "num_requests_waiting", Part: Integral}}},
		{Name: "omni_concurrency", Unit: "requests",
			Help:     "Mean number of requests that are being answered, by Little's law.",
			Category: Saturation,
			Num:      []Term{{Family: omniE2E, Part: Sum}}},
		{Name: "kv_wait_mean", Unit: "seconds", Help: "Wait for the transfer of a KV cache.", Category: TimeSpent,
			Better: LowerBetter,
			By:     []string{"connector_type"}, Num: []Term{{Family: omniPrefix + "kv_wait_s", Part: Sum}},
			Den: []Term{{Family: omniPrefix + "kv_wait_s", Part: Count}}},
	}
}

// omniOnly applies a rule to servers of vLLM-Omni only, of those whose families vLLM has too.
func omniOnly(r *Rule) func(*View) []Derived {
	return func(v *View) []Derived {
		if !isOmni(v) {
			return nil
		}
		return quotient(v, r)
	}
}

// ifMade makes a rule of what only some pipelines make, sound or images: the others do not miss it.
func (r Rule) ifMade() Rule {
	plain := r
	if r.Formula == "" {
		r.Formula = quotientText(r.Num, r.Den)
	}
	r.Make = func(v *View) []Derived { return (&Pack{}).apply(v, &plain) }
	return r
}

// isOmni reports whether a view has families of the pipeline.
func isOmni(v *View) bool {
	for name := range v.byName {
		if strings.HasPrefix(name, omniPrefix) {
			return true
		}
	}
	return false
}

// omniAborts are left out of the successes where failures count them too.
var omniAborts = []metric.Label{{Name: "finished_reason", Value: "abort"}}

func omniEnded() []Term {
	return []Term{{Family: omniSuccess, Except: omniAborts}, {Family: omniFailed}}
}

// endedOf is the value of omniEnded. A server shows no reason before a request ends for it, so that one that shows no
// success but failures had none, unless it tells the time of some.
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
