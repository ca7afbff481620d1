package catalog

import "math"

func vllmErrors() []Rule {
	requests := increase(vllmSuccess)
	reason := func(name string) []Term { return increase(vllmSuccess, "finished_reason", name) }
	return []Rule{
		ratio("error_or_abort_share", "Share of the requests that were aborted or failed; those that the front end "+
			"refused are in http_5xx_ratio only.",
			plus(reason("abort"), maybe(reason("error"))), requests).category(Errors, LowerBetter).headline("error_ratio"),
		ratio("corrupted_share", "Share of the requests with NaN in their logits.", increase(vllm+"corrupted_requests"),
			requests).category(Errors, LowerBetter),
	}
}

// vllmGenerating are the paths whose requests are those of the engine.
var vllmGenerating = []string{"/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/generate",
	"/inference/v1/generate", "/v1/audio/transcriptions", "/v1/audio/translations"}

func vllmHTTP() []Rule {
	const duration = "http_request_duration_seconds"
	return []Rule{{Name: "http_overhead_mean", Unit: "seconds", Category: Latency, Better: LowerBetter, Status: Estimate,
		Help: "Time of a request in the HTTP server outside of the engine client; too short where the duration ends " +
			"before a stream does.",
		Formula: "(sum of " + duration + " of the handlers that generate - sum of " + vllmE2E + ") / " + vllmSuccess,
		Make: func(v *View) []Derived {
			var handlers []Term
			for _, path := range vllmGenerating {
				if t := sumOf(duration, "handler", path); v.Amount(t[0]).Series > 0 {
					handlers = plus(handlers, t)
				}
			}
			if handlers == nil || v.Amount(increase(vllmSuccess)[0]).Series == 0 {
				return nil
			}
			d, _ := v.divide(minus(handlers, sumOf(vllmE2E)), increase(vllmSuccess))
			if d.Shown < 0 {
				d.Shown = 0
				d.Flag("negative")
			}
			return []Derived{d}
		}}}
}

// checkTolerance is how far two sums of a server may differ that are the same.
const checkTolerance = 1e-6

// vllmChecks are the identities of section 3.1 of the design document engines.md.
func vllmChecks() []Rule {
	return []Rule{
		selfCheck("self_check_inference", "Prefill and decode make the time in the engine.", false,
			sumOf(vllmInference), plus(sumOf(vllmPrefill), sumOf(vllmDecode))),
		selfCheck("self_check_decode", "The gaps between tokens make the decode time.", true, sumOf(vllmDecode),
			sumOf(vllmITL)),
		selfCheck("self_check_requests", "Each request has one token more than gaps.", true, increase(vllmSuccess),
			minus(increase(vllmGenerated), countOf(vllmITL))),
		selfCheck("self_check_step_tokens", "The tokens of the steps are those of prompts and answers.", true,
			sumOf(vllmSteps), plus(increase(vllmPrompt), increase(vllmGenerated))),
	}
}

// selfCheck is the difference of two sums that are the same, by the first. It is flagged "violated" when it is more
// than rounding and, where one side is counted when requests end and the other before, than the requests that were
// under way at the edges of the window can explain.
func selfCheck(name, help string, edges bool, a, b []Term) Rule {
	formula := "(" + formulaOf(a) + " - (" + formulaOf(b) + ")) / " + formulaOf(a)
	return Rule{Name: name, Unit: "ratio", Help: help, Category: Check, Formula: formula, WindowOnly: true,
		Make: func(v *View) []Derived {
			d, some := v.divide(minus(a, b), a)
			if !some {
				return nil
			}
			allowed := checkTolerance
			if edges {
				if share, ok := underWay(v); ok {
					allowed += share
				}
			}
			if d.Status.Defined() && math.Abs(d.Value) > allowed {
				d.Flag("violated")
			}
			return []Derived{d}
		}}
}

// underWay is the requests in the engine at both edges of the window by those that ended within it: the largest error
// of what is counted at their end.
func underWay(v *View) (share float64, ok bool) {
	ended, n := v.Amount(increase(vllmSuccess)[0]).Value, 0.0
	for _, family := range []string{vllmRunning, vllmWaiting} {
		for _, g := range v.Series(family) {
			n += g.First + g.Last
		}
	}
	return n / ended, ended > 0
}

func vllmGoodput() []Rule {
	return goodput(map[string]string{"ttft_s": vllmTTFT, "itl_s": vllmITL, "tpot_s": vllmTPOT, "e2e_s": vllmE2E,
		"queue_s": vllmQueue},
		increase(vllmSuccess), sumOf(vllm+"request_generation_tokens"), countOf(vllm+"request_generation_tokens"))
}
