package catalog

// The names of packs that other packages know.
const (
	VLLMPack               = "vllm"
	OmniPack               = "vllm-omni" // its autoregressive stages are those of the pack of vLLM too, each on its own
	SGLangPack             = "sglang"
	TRTLLMPack             = "trtllm"
	DynamoPack             = "dynamo"
	DynamoWorkerPack       = "dynamo-worker"
	DynamoPathPack         = "dynamo-path" // what lies between the two; it takes both endpoints together
	TritonPack             = "triton-stats"
	TritonPerfAnalyzerPack = "perf_analyzer"
	TritonServerPack       = "triton" // of its Prometheus page, which knows less
	TritonHostPack         = "triton-host"
	TorchServePack         = "torchserve"
	TorchServeHostPack     = "torchserve-host"
	TGIPack                = "tgi"
	LlamaPack              = "llamacpp"
	RayPack                = "ray"
	RayProxyPack           = "ray-proxy"
	LMCachePack            = "lmcache"
	DCGMPack               = "dcgm"
	EnergyPack             = "energy" // of GPUs by what engines made with it, which takes endpoints of both together
)
