package catalog

import (
	"slices"
	"strings"
)

// Canonical is a quantity that several engines have: section 7 of the design
// document derived-metrics.md.
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
	{"running", "Requests that run.", "requests", Neutral},
	{"waiting", "Requests that wait.", "requests", LowerBetter},
	{"kv_usage", "Share of the KV cache in use.", "ratio", Neutral},
	{"kv_capacity", "Size of the KV cache.", "tokens", HigherBetter},
	{"input_tokens", "Prompt tokens.", "tokens", HigherBetter},
	{"output_tokens", "Generated tokens.", "tokens", HigherBetter},
	{"success", "Requests that ended well.", "requests", HigherBetter},
	{"failure", "Requests that did not.", "requests", LowerBetter},
	{"preemption", "Requests thrown out of the batch for want of memory.", "requests", LowerBetter},
	{"prefix_query", "Prompt tokens looked up in a cache of prefixes.", "tokens", Neutral},
	{"prefix_hit", "Prompt tokens found in a cache of prefixes.", "tokens", HigherBetter},
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
	{"queue_share", "Share of the time of requests that they wait.", "ratio", LowerBetter},
	{"j_per_token", "Energy per generated token.", "joule", LowerBetter},
}

// Canonicals returns the quantities across engines: those that families are, then
// those that are derived.
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

// Note is why a quantity of two engines is not quite the same. Letters a to g are
// those of section 8 of the design document.
type Note struct{ Letter, Text string }

// distinction tells what engines mean by some quantities. A note applies between
// two that mean different things; engines that are not listed mean "".
type distinction struct {
	Note
	ids   []string
	means map[string]string // by engine
}

// Comparability returns the notes that apply to a canonical quantity between two
// engines, in their order; nil when it means the same. The name of a pack stands
// for its engine.
func Comparability(id, engineA, engineB string) []Note {
	engineA, engineB = packEngine(engineA), packEngine(engineB)
	var out []Note
	for i := range differences {
		d := &differences[i]
		if slices.Contains(d.ids, id) && d.means[engineA] != d.means[engineB] {
			out = append(out, d.Note)
		}
	}
	return out
}

// Notes returns all notes that [Comparability] may give, in their order.
func Notes() []Note {
	var out []Note
	for i := range differences {
		if n := differences[i].Note; !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// packEngine returns the engine of a pack.
func packEngine(pack string) string {
	for _, part := range []string{"-stats", "-worker", "-path", "-proxy", "-host"} {
		pack = strings.TrimSuffix(pack, part)
	}
	return pack
}

// What families and packs are of that are none of an engine's, in the order in
// which [Comparability] tells of them.
var differences = []distinction{
	{Note{"a", "TensorRT-LLM's time to the first token begins in the engine, that of the others at the arrival: less ttft_other they can be compared."},
		[]string{"ttft_s", "ttft_mean_s"}, map[string]string{"trtllm": "engine"}},
	{Note{"b", "One is a mean over tokens, the other over requests: they differ even for the same tokens."},
		[]string{"tpot_s", "tpot_mean_s"}, map[string]string{"llamacpp": "tokens"}},
	{Note{"c", "The buckets differ: compare means and attainment at common bounds first, percentiles only with their bounds."},
		[]string{"ttft_s", "itl_s", "tpot_s", "e2e_s", "queue_s", "prefill_s", "decode_s", "inference_s"},
		map[string]string{"vllm": "vllm", "trtllm": "vllm", "vllm-omni": "omni", "sglang": "sglang", "dynamo": "dynamo", "tgi": "tgi", "triton": "triton", "ray": "ray"}},
	{Note{"d", "One counts tokens as they come, the other when a request ends, so that its rate by slice has the teeth of a saw."},
		[]string{"output_tokens", "input_tokens", "input_tok_s"},
		map[string]string{"trtllm": "finish", "tgi": "finish", "llamacpp": "finish", "sglang": "finish", "vllm-omni": "finish"}},
	{Note{"d", "One counts tokens as they come, the other when a request ends, so that its rate by slice has the teeth of a saw."},
		[]string{"output_tok_s"}, map[string]string{"trtllm": "finish", "tgi": "finish", "llamacpp": "finish", "vllm-omni": "finish"}},
	{Note{"e", "llama.cpp's prompt tokens leave out those found in the cache, those of the others do not."},
		[]string{"input_tokens", "input_tok_s"}, map[string]string{"llamacpp": "computed"}},
	{Note{"f", "Tokens of a vLLM-Omni pipeline are those of all its stages, codec tokens among them."},
		[]string{"input_tokens", "output_tokens", "input_tok_s", "output_tok_s"}, map[string]string{"vllm-omni": "stages"}},
	{Note{"g", "Success is not the same: vLLM counts aborted and failed requests too, vLLM-Omni aborted ones, SGLang those that finished, the others leave failures out."},
		[]string{"success", "failure", "request_rate", "error_ratio"}, map[string]string{"vllm": "ended", "vllm-omni": "aborts", "sglang": "finished", "torchserve": "approximate"}},
	{Note{"h", "vLLM-Omni's first packet is one of sound or of an image, not a token; Triton's first response need not be one."},
		[]string{"ttft_s", "ttft_mean_s"}, map[string]string{"vllm-omni": "packet", "triton": "response"}},
	{Note{"i", "Text Generation Inference counts the first token in its time per token, the others do not."},
		[]string{"tpot_s", "tpot_mean_s"}, map[string]string{"tgi": "first"}},
	{Note{"j", "Dynamo's running requests contain those that wait, and TensorRT-LLM tells of them only when a request ends."},
		[]string{"running"}, map[string]string{"dynamo": "waiting", "trtllm": "stale"}},
	{Note{"k", "SGLang has queues for grammars and for disaggregation beside this one; Dynamo's is that of its router, and its workers have their own."},
		[]string{"waiting"}, map[string]string{"sglang": "one of several", "dynamo": "router"}},
	{Note{"l", "vLLM-Omni's time of requests is that of those that succeeded; Triton and TorchServe know its mean only."},
		[]string{"e2e_s", "e2e_mean_s"}, map[string]string{"vllm-omni": "successes", "triton": "mean", "torchserve": "mean"}},
	{Note{"m", "TorchServe's time of a request contains its queue, as do its shares."},
		[]string{"inference_s"}, map[string]string{"torchserve": "queue"}},
	{Note{"n", "SGLang's times to the first token have no bucket below 100 ms: percentiles there are invented."},
		[]string{"ttft_s"}, map[string]string{"sglang": "floor"}},
}

// The labels of section 8 of the design document.
var (
	replicaLabels  = []string{"engine", "replica", "tp_rank", "pp_rank", "moe_ep_rank", "dp_rank", "worker_id", "pid", "gpu"}
	keptLabels     = []string{"model", "model_name", "stage", "finished_reason", "reason", "source", "mode", "threshold_ms", "from_stage", "to_stage", "handler", "method", "position"}
	volatileLabels = []string{"pid", "WorkerId", "actor_id", "SessionName", "NodeAddress", "Version", "Hostname", "hostname", "instance", "pod", "container", "namespace",
		"router_id", "worker_id", "UUID", "gpu_uuid"}
)

// ReplicaLabels are the labels that tell replicas apart and are aggregated over
// unless somebody asks for them.
func ReplicaLabels() []string { return slices.Clone(replicaLabels) }

// KeptLabels are the labels that are not aggregated over.
func KeptLabels() []string { return slices.Clone(keptLabels) }

// VolatileLabels are the labels that differ between two runs of the same, of any
// family, and are left out when series of two runs are matched.
func VolatileLabels() []string { return slices.Clone(volatileLabels) }

// Volatile says that a label of a family, by any of its names, is one of those, or
// one that is volatile for this family; of configurations all are.
func (c *Catalog) Volatile(family, label string) bool {
	f, ok := c.Family(family)
	return slices.Contains(volatileLabels, label) || ok && slices.Contains(f.Volatile, label) || Configuration(family)
}

// Configuration says that the labels of a family are its content, such as those of
// cache_config_info: to be compared as settings, not as series.
func Configuration(family string) bool { return strings.HasSuffix(family, "_info") }
