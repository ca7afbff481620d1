// Package check holds a run against what is demanded of it, for a gate in CI.
//
// A demand is an expression over one number, or over one number of each series that a selector finds:
//
//	vllm:time_to_first_token_seconds p99 < 450ms
//	vllm:omni_audio_rtf{stage="1"} p99 < 1
//	vllm:request_success by (finished_reason) total > 0
//	derived:output_tok_s by () >= baseline - 5%
//	requests:qps ~= 100 ±10%
//
// Parse reads one, ReadSLO a file of them, ParseReady names a ready-made check, and a Gate of them answers:
//
//	d, err := check.Parse("vllm:num_preemptions total == 0")
//	gate := check.Gate{Demands: []check.Assertion{d}}
//	result, err := gate.Judge(&check.Evidence{Run: run})
//	// result.Verdict is PASS, FAIL or NO DATA
//
// A demand passes only when every series that it is about has the number and keeps the limit. What is missing,
// misspelt, empty or NaN never passes: it is NO DATA, with the reason and the nearest names. FAIL wins over NO DATA.
//
// The package reads results that others made (summary, events) and computes no statistic of its own. All functions are
// pure, and safe for concurrent use.
package check
