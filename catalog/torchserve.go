package catalog

// TorchServePack and TorchServeHostPack are the names of the packs of TorchServe: of its models, and of its frontend.
const (
	TorchServePack     = "torchserve"
	TorchServeHostPack = "torchserve-host"
)

func torchservePacks() []Pack {
	return []Pack{
		{Name: TorchServePack, Title: "TorchServe", Prefixes: []string{"ts_"}, Scope: []string{"model_name", "model_version"},
			Rules: torchserveModel()},
		{Name: TorchServeHostPack, Title: "TorchServe frontend",
			Prefixes: []string{"Requests2XX", "Requests4XX", "Requests5XX", "CPUUtilization", "GPUUtilization",
				"GPUMemoryUtilization", "MemoryUtilization"}, Rules: torchserveHost()},
	}
}

// torchserveModel counts requests at their arrival, of REST and gRPC, but times only at the end of REST predictions:
// means are too low by the share of gRPC and of failures.
func torchserveModel() []Rule {
	requests := increase("ts_inference_requests")
	inference, queue := times(1e-6, increase("ts_inference_latency_microseconds")),
		times(1e-6, increase("ts_queue_latency_microseconds"))
	mean := func(name, help string, num []Term) Rule {
		return Rule{Name: name, Unit: "seconds", Help: help, Num: num, Den: requests}.category(Latency, LowerBetter)
	}
	return []Rule{
		rate("request_rate", "requests/s", "Requests that came.", requests).headline("request_rate"),
		mean("avg_inference", "From the begin of a job to its end, the queue included.", inference).headline("e2e_mean_s"),
		mean("avg_queue", "In the queue.", queue).headline("queue_mean_s"),
		mean("avg_compute", "From the end of the queue on.", minus(inference, queue)).headline(""),
		ratio("queue_share", "Share of the latency spent in the queue.", queue, inference).category(TimeSpent,
			LowerBetter).headline("queue_share"),
		rate("concurrency_little", "requests", "Requests in the server, by Little's law.", inference).category(Saturation,
			Neutral).headline("running"),
		rate("waiting_mean_little", "requests", "Requests that wait, by Little's law.", queue).category(Saturation,
			LowerBetter).headline("waiting"),
	}
}

func torchserveHost() []Rule {
	ok, client, server := increase("Requests2XX"), increase("Requests4XX"), increase("Requests5XX")
	all := plus(ok, maybe(client), maybe(server))
	return []Rule{
		rate("answers_s", "requests/s", "Answers of the frontend, those to scrapes and pings included.",
			all).category(Throughput, Neutral),
		ratio("client_error_ratio", "Share of the answers that blamed the client; absent before the first.", client,
			all).category(Errors, LowerBetter),
		ratio("error_ratio", "Share of the answers that blamed the server; absent before the first.", server,
			all).category(Errors, LowerBetter).headline("error_ratio"),
		level("cpu_utilization_mean", "percent", "Use of the CPUs.", "CPUUtilization"),
		level("gpu_utilization_mean", "percent", "Share of the time a kernel ran, of all GPUs.", "GPUUtilization"),
		level("gpu_memory_utilization_mean", "percent", "Share of the GPU memory in use.", "GPUMemoryUtilization"),
		level("memory_utilization_mean", "percent", "Share of the memory in use.", "MemoryUtilization"),
	}
}
