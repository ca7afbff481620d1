package pack

import "slices"

// Canonical is a quantity that several engines have: section 7 of the design document derived-metrics.md.
type Canonical struct {
	ID, Meaning, Unit string
	Better            Direction
}

// canonicals are those of families first, then those that are derived.
var canonicals = []Canonical{
	{"ttft_s", "Time to the first token.", "seconds", LowerBetter},
	{"itl_s", "Time between two tokens, one observation per token.", "seconds", LowerBetter},
	{"tpot_s", "Time per output token, one observation per request.", "seconds", LowerBetter},
	{"e2e_s", "Time of a request.", "seconds", LowerBetter},
	{"queue_s", "Time that a request waits.", "seconds", LowerBetter},
	{"prefill_s", "Time of prefill.", "seconds", LowerBetter},
	{"decode_s", "Time of decode.", "seconds", LowerBetter},
	{"inference_s", "Time in the model.", "seconds", LowerBetter},
	{"audio_ttfp_s", "Time to the first packet of audio.", "seconds", LowerBetter},
	{"rtf", "Real-time factor: the time it takes to make audio by its length.", "ratio", LowerBetter},
	{"running", "Requests that run.", "requests", Neutral},
	{"waiting", "Requests that wait.", "requests", LowerBetter},
	{"kv_usage", "Share of the KV cache in use.", "ratio", Neutral},
	{"kv_capacity", "Size of the KV cache.", "tokens", HigherBetter},
	{"input_tokens", "Prompt tokens.", "tokens", HigherBetter},
	{"output_tokens", "Generated tokens.", "tokens", HigherBetter},
	{"started", "Requests that came.", "requests", Neutral},
	{"success", "Requests that ended well.", "requests", HigherBetter},
	{"failure", "Requests that did not.", "requests", LowerBetter},
	{"preemption", "Requests thrown out of the batch for want of memory.", "requests", LowerBetter},
	{"aborted", "Requests that their clients left.", "requests", LowerBetter},
	{"refused", "Requests that were not taken.", "requests", LowerBetter},
	{"answers", "Answers of an HTTP server, by the class of their status.", "requests", Neutral},
	{"step_tokens", "Tokens that a step of the scheduler computes.", "tokens", Neutral},
	{"prefix_query", "Prompt tokens looked up in a cache of prefixes.", "tokens", Neutral},
	{"prefix_hit", "Prompt tokens found in a cache of prefixes.", "tokens", HigherBetter},
	{"client_cpu", "Share in use of the CPUs that the load generator may use.", "ratio", Neutral},
	{"client_thread", "Share of the time in which the load generator's busiest thread ran or waited for a CPU.", "ratio",
		Neutral},
	{"spec_acceptance_length", "Tokens that a step of speculative decoding gives.", "tokens", HigherBetter},

	{"request_rate", "Requests that ended, by the time.", "requests/s", HigherBetter},
	{"output_tok_s", "Generated tokens by the time.", "tokens/s", HigherBetter},
	{"input_tok_s", "Prompt tokens by the time.", "tokens/s", HigherBetter},
	{"prefix_hit_ratio", "Share of the prompt tokens found in a cache of prefixes.", "ratio", HigherBetter},
	{"error_ratio", "Share of the requests that did not end well.", "ratio", LowerBetter},
	{"ttft_mean_s", "Mean time to the first token.", "seconds", LowerBetter},
	{"itl_mean_s", "Mean time between two tokens, each gap with the same weight.", "seconds", LowerBetter},
	{"tpot_mean_s", "Mean time per output token, each request with the same weight.", "seconds", LowerBetter},
	{"e2e_mean_s", "Mean time of a request.", "seconds", LowerBetter},
	{"queue_mean_s", "Mean time that a request waits.", "seconds", LowerBetter},
	{"audio_ttfp_mean_s", "Mean time to the first packet of audio.", "seconds", LowerBetter},
	{"queue_share", "Share of the time of requests that they wait.", "ratio", LowerBetter},
	{"j_per_token", "Energy per generated token.", "joule", LowerBetter},
}

// Canonicals returns the quantities across engines: those that families are, then those that are derived.
func Canonicals() []Canonical { return slices.Clone(canonicals) }

func canonicalIDs() []string {
	ids := make([]string, len(canonicals))
	for i := range canonicals {
		ids[i] = canonicals[i].ID
	}
	return ids
}

// CanonicalOf returns the quantity of that id.
func CanonicalOf(id string) (Canonical, bool) {
	i := slices.IndexFunc(canonicals, func(c Canonical) bool { return c.ID == id })
	if i < 0 {
		return Canonical{}, false
	}
	return canonicals[i], true
}
