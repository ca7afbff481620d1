package catalog

// canonicalIDs are the quantities that several engines have: section 7 of the
// design document derived-metrics.md.
func canonicalIDs() []string {
	return []string{"ttft_s", "itl_s", "tpot_s", "e2e_s", "queue_s", "prefill_s", "decode_s", "inference_s", "running", "waiting",
		"kv_usage", "kv_capacity", "input_tokens", "output_tokens", "success", "failure", "preemption", "prefix_hit", "prefix_query",
		"spec_acceptance_length", "request_rate", "output_tok_s", "input_tok_s", "prefix_hit_ratio", "error_ratio",
		"ttft_mean_s", "itl_mean_s", "tpot_mean_s", "e2e_mean_s", "queue_mean_s", "queue_share", "j_per_token"}
}
