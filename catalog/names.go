package catalog

// The names of packs that other packages know.
const (
	VLLMPack               = "vllm"
	OmniPack               = "vllm-omni" // its autoregressive stages are those of the pack of vLLM too, each on its own
	TritonPack             = "triton-stats"
	TritonPerfAnalyzerPack = "perf_analyzer"
	EnergyPack             = "energy" // of GPUs by what engines made with it, which takes endpoints of both together
)
