package catalog

import (
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// Engine is a program whose families are in a body.
type Engine struct {
	ID   string // a stable word: "vllm", "vllm-omni", "sglang", ...
	Name string // as its makers write it
	// Version is what the body tells of the version, "" when it does not, and VersionFrom the family and label that told
	// it.
	Version, VersionFrom string
	// Refresh is how often the engine itself renews the body, or that part of it that Refreshed names; 0 means at each
	// event.
	Refresh   time.Duration
	Refreshed string // "" means all of it
	// Host reports whether the families describe a machine or a wrapper around an engine rather than an engine.
	Host bool
}

// known is an engine with the signs of it: prefixes of family names.
type known struct {
	Engine
	prefixes []string
	versions []labelAt // where the version may be
}

// labelAt names a label of the families with a prefix.
type labelAt struct{ prefix, name string }

// engines lists the specific ones before those that they contain. A Ray or Dynamo body passes the families of its
// engine through.
func engines() []known {
	const second = time.Second
	return []known{
		{Engine: Engine{ID: "vllm-omni", Name: "vLLM-Omni", Refresh: second,
			Refreshed: "scheduler gauges and prefix counters"},
			prefixes: []string{"vllm_omni:", "vllm:omni_"}},
		{Engine: Engine{ID: "sglang", Name: "SGLang"}, prefixes: []string{"sglang:"}},
		{Engine: Engine{ID: "trtllm", Name: "TensorRT-LLM"}, prefixes: []string{"trtllm_", "trtllm:"}},
		{Engine: Engine{ID: "dynamo", Name: "NVIDIA Dynamo"}, prefixes: []string{"dynamo_", "nv_llm_http_service_"}},
		{Engine: Engine{ID: "triton", Name: "Triton", Refresh: 2 * second, Refreshed: "GPU and CPU gauges"},
			prefixes: []string{"nv_inference_", "nv_gpu_", "nv_trt_llm_", "nv_cache_", "nv_cpu_", "nv_energy_consumption",
				"triton_stats_"}},
		{Engine: Engine{ID: "torchserve", Name: "TorchServe", Refresh: 60 * second, Refreshed: "host and GPU gauges"},
			prefixes: []string{"ts_inference_", "ts_queue_latency_"}},
		{Engine: Engine{ID: "tgi", Name: "Text Generation Inference"}, prefixes: []string{"tgi_"}},
		{Engine: Engine{ID: "llamacpp", Name: "llama.cpp server"}, prefixes: []string{"llamacpp:"}},
		{Engine: Engine{ID: "vllm", Name: "vLLM"}, prefixes: []string{"vllm:", "ray_vllm:", "ray_vllm_"}},
		{Engine: Engine{ID: "ray", Name: "Ray Serve", Host: true}, prefixes: []string{"ray_"},
			versions: []labelAt{{"ray_", "Version"}}},
		{Engine: Engine{ID: "lmcache", Name: "LMCache", Host: true}, prefixes: []string{"lmcache:", "lmcache_"}},
		{Engine: Engine{ID: "dcgm", Name: "DCGM exporter", Refresh: 30 * second, Host: true}, prefixes: []string{"DCGM_FI_"}},
	}
}

// Engines returns the engines of which the dictionary has families, the most specific first. The vllm:* families of
// vLLM-Omni are its own.
func Engines(d *metric.Schema) []Engine {
	var out []Engine
	for _, k := range engines() {
		if k.ID == "vllm" && len(out) > 0 && out[0].ID == "vllm-omni" {
			continue
		}
		if hasFamily(d, k.prefixes) || k.ID == "trtllm" && bareTRTLLM(d) || k.ID == "torchserve" && hostTorchServe(d) {
			k.Version, k.VersionFrom = version(d, k)
			out = append(out, k.Engine)
		}
	}
	return out
}

func hasFamily(d *metric.Schema, prefixes []string) bool {
	for i := range d.Families {
		if hasPrefix(d.Families[i].Name, prefixes) {
			return true
		}
	}
	return false
}

func hasPrefix(name string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// bareTRTLLM recognises TensorRT-LLM before 1.2, whose names have no prefix: by the label engine_type of a family that
// others prefix.
func bareTRTLLM(d *metric.Schema) bool {
	for i := range d.Series {
		if d.FamilyOf(i).Name == "e2e_request_latency_seconds" {
			if _, ok := d.Series[i].Labels.Get("engine_type"); ok {
				return true
			}
		}
	}
	return false
}

// hostTorchServe recognises a TorchServe that has had no request yet.
func hostTorchServe(d *metric.Schema) bool {
	for i := range d.Families {
		if strings.HasPrefix(d.Families[i].Help, "Torchserve prometheus ") {
			return true
		}
	}
	return false
}

// version looks for a version in the labels that may have it: those listed, and the label version of a build or
// version information of the engine.
func version(d *metric.Schema, k known) (v, from string) {
	for i := range d.Series {
		f, l := d.FamilyOf(i), d.Series[i].Labels
		for _, at := range k.versions {
			if v, ok := l.Get(at.name); ok && v != "" && strings.HasPrefix(f.Name, at.prefix) {
				return v, f.Name + "{" + at.name + "}"
			}
		}
		if !hasPrefix(f.Name, k.prefixes) || !isInfo(f) {
			continue
		}
		for _, name := range []string{"version", "engine_version", "build_version"} {
			if v, ok := l.Get(name); ok && v != "" {
				return v, f.Name + "{" + name + "}"
			}
		}
	}
	return "", ""
}

// isInfo reports whether the labels of a family are its content.
func isInfo(f *metric.Family) bool {
	return f.Type == metric.Info || strings.HasSuffix(f.Name, "_info") || strings.HasSuffix(f.Name, "_version")
}
