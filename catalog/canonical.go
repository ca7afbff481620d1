package catalog

import (
	"cmp"
	"slices"
	"strings"
)

// Caveat is why a quantity is not what the same quantity of another engine is, or not what a reader may take it for.
type Caveat struct {
	Letter string `json:"letter"`
	Text   string `json:"text"`
}

// Quantity is a canonical quantity of an engine, or of one of its packs.
type Quantity struct{ ID, Engine string }

// caveat applies between two quantities that mean different things, of different engines or, between ids that mean
// different things themselves, of one.
type caveat struct {
	Caveat
	ids   []string
	means map[string]string // by pack, engine or id, in this order; others mean ""
	alone bool              // also without another engine beside it
}

// meaning returns what q means to a caveat, "" for what most engines do.
func (c *caveat) meaning(q Quantity) string {
	for _, key := range []string{q.Engine, packEngine(q.Engine), q.ID} {
		if m, ok := c.means[key]; ok {
			return m
		}
	}
	return ""
}

// Comparability returns the caveats that apply between two quantities, in the order of their letters; nil when they
// mean the same.
func Comparability(a, b Quantity) []Caveat {
	return caveatsOf(func(c *caveat) bool {
		comparable := a.ID == b.ID || c.means[a.ID] != c.means[b.ID]
		return comparable && slices.Contains(c.ids, a.ID) && slices.Contains(c.ids, b.ID) && c.meaning(a) != c.meaning(b)
	})
}

// Caveats returns the caveats of a quantity on its own, in the order of their letters.
func (q Quantity) Caveats() []Caveat {
	return caveatsOf(func(c *caveat) bool { return c.alone && slices.Contains(c.ids, q.ID) && c.meaning(q) != "" })
}

// AllCaveats returns every caveat, in the order of their letters.
func AllCaveats() []Caveat { return caveatsOf(func(*caveat) bool { return true }) }

// SortCaveats sorts a list by letter and drops what occurs again; it changes the list.
func SortCaveats(list []Caveat) []Caveat {
	slices.SortFunc(list, func(a, b Caveat) int { return cmp.Compare(a.Letter, b.Letter) })
	return slices.Compact(list)
}

func caveatsOf(applies func(*caveat) bool) []Caveat {
	var out []Caveat
	for i := range caveats {
		if c := &caveats[i]; applies(c) && !slices.Contains(out, c.Caveat) {
			out = append(out, c.Caveat)
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

// sawtooth is of two lists of engines: SGLang has a live counter of generated tokens.
var sawtooth = Caveat{"d", "Where an engine counts tokens when a request ends, its rate by slice is a sawtooth; " +
	"that of the whole window is right but for requests under way at its ends."}

// caveats is what is known to differ between engines, by letter.
var caveats = []caveat{
	{Caveat{"a", "TensorRT-LLM's time to the first token begins in the engine, that of the others at the arrival: " +
		"less ttft_other they can be compared."},
		[]string{"ttft_s", "ttft_mean_s"}, map[string]string{"trtllm": "engine"}, false},
	{Caveat{"b", "One is per token, the other per request: long answers weigh more in the first, and means differ " +
		"even for the same tokens."},
		[]string{"itl_s", "itl_mean_s", "tpot_s", "tpot_mean_s"},
		map[string]string{"llamacpp": "tokens", "itl_s": "tokens", "itl_mean_s": "tokens"}, false},
	{Caveat{"c", "The buckets differ: compare means and attainment at common bounds first, percentiles only with " +
		"their bounds."},
		[]string{"ttft_s", "itl_s", "tpot_s", "e2e_s", "queue_s", "prefill_s", "decode_s", "inference_s"},
		map[string]string{"vllm": "vllm", "trtllm": "vllm", "vllm-omni": "omni", "sglang": "sglang",
			"dynamo": "dynamo", "tgi": "tgi", "triton": "triton", "ray": "ray"}, false},
	{sawtooth, []string{"output_tokens", "input_tokens", "input_tok_s"}, map[string]string{"trtllm": "finish",
		"tgi": "finish", "llamacpp": "finish", "sglang": "finish", "vllm-omni": "finish"}, false},
	{sawtooth, []string{"output_tok_s"}, map[string]string{"trtllm": "finish", "tgi": "finish",
		"llamacpp": "finish", "vllm-omni": "finish"}, true},
	{Caveat{"e", "llama.cpp's prompt tokens leave out those found in the cache, those of the others do not."},
		[]string{"input_tokens", "input_tok_s"}, map[string]string{"llamacpp": "computed"}, true},
	{Caveat{"f", "Tokens of a vLLM-Omni pipeline are those of all its stages, codec tokens among them."},
		[]string{"input_tokens", "output_tokens", "input_tok_s", "output_tok_s"},
		map[string]string{"vllm-omni": "stages"}, true},
	{Caveat{"g", "Success is not the same: vLLM counts aborted and failed requests too, vLLM-Omni aborted ones, " +
		"SGLang those that finished, the others leave failures out."},
		[]string{"success", "failure", "request_rate", "error_ratio"}, map[string]string{"vllm": "ended",
			"vllm-omni": "aborts", "sglang": "finished", "torchserve": "approximate"}, false},
	{Caveat{"h", "vLLM-Omni's first packet is one of sound or of an image, not a token; Triton's first response " +
		"need not be one."},
		[]string{"ttft_s", "ttft_mean_s"}, map[string]string{"vllm-omni": "packet", "triton": "response"}, false},
	{Caveat{"i", "Text Generation Inference counts the first token in its time per token, the others do not."},
		[]string{"tpot_s", "tpot_mean_s"}, map[string]string{"tgi": "first"}, false},
	{Caveat{"j", "Dynamo's running requests contain those that wait, and TensorRT-LLM tells of them only when a " +
		"request ends."},
		[]string{"running"}, map[string]string{"dynamo": "waiting", "trtllm": "stale"}, false},
	{Caveat{"k", "SGLang has queues for grammars and for disaggregation beside this one; Dynamo's is that of its " +
		"router, and its workers have their own."},
		[]string{"waiting"}, map[string]string{"sglang": "one of several", "dynamo": "router"}, false},
	{Caveat{"l", "vLLM-Omni's time of requests is that of those that succeeded; Triton and TorchServe know its " +
		"mean only."},
		[]string{"e2e_s", "e2e_mean_s"},
		map[string]string{"vllm-omni": "successes", "triton": "mean", "torchserve": "mean"}, false},
	{Caveat{"m", "TorchServe's time of a request contains its queue, as do its shares."},
		[]string{"inference_s"}, map[string]string{"torchserve": "queue"}, false},
	{Caveat{"n", "SGLang's times to the first token have no bucket below 100 ms: percentiles there are invented, " +
		"the mean is not."},
		[]string{"ttft_s"}, map[string]string{"sglang": "floor"}, true},
	{Caveat{"o", "The row of an ensemble of Triton holds what its composing models do: rows of models must not be " +
		"added up."},
		[]string{"request_rate"}, map[string]string{"triton": "ensembles"}, true},
	{Caveat{"p", "A Dynamo frontend and its workers see the same requests: their numbers must not be added up."},
		[]string{"output_tok_s", "request_rate"}, map[string]string{"dynamo": "frontend", "dynamo-worker": "worker"}, false},
}

// The labels of section 8 of the design document.
var (
	replicaLabels = []string{"engine", "replica", "tp_rank", "pp_rank", "moe_ep_rank", "dp_rank", "worker_id", "pid",
		"gpu"}
	keptLabels = []string{"model", "model_name", "stage", "finished_reason", "reason", "source", "mode", "threshold_ms",
		"from_stage", "to_stage", "handler", "method", "position"}
	volatileLabels = []string{"pid", "WorkerId", "actor_id", "SessionName", "NodeAddress", "Version", "Hostname",
		"hostname", "instance", "pod", "container", "namespace", "router_id", "worker_id", "UUID", "gpu_uuid"}
)

// ReplicaLabels are the labels that tell replicas apart and are aggregated over unless somebody asks for them.
func ReplicaLabels() []string { return slices.Clone(replicaLabels) }

// KeptLabels are the labels that are not aggregated over.
func KeptLabels() []string { return slices.Clone(keptLabels) }

// VolatileLabels are the labels that differ between two runs of the same, of any family, and are left out when series
// of two runs are matched.
func VolatileLabels() []string { return slices.Clone(volatileLabels) }

// Volatile reports whether a label of a family, by any of its names, is one of those, or one that is volatile for this
// family; of configurations all are.
func (c *Catalog) Volatile(family, label string) bool {
	f, ok := c.Family(family)
	return slices.Contains(volatileLabels, label) || ok && slices.Contains(f.Volatile, label) || Configuration(family)
}

// Configuration reports whether the labels of a family are its content, such as those of cache_config_info: to be
// compared as settings, not as series.
func Configuration(family string) bool { return strings.HasSuffix(family, "_info") }
