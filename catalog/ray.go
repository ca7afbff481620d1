package catalog

import "slices"

// RayPack and RayProxyPack are the names of the packs of Ray Serve: of its deployments, and of the proxy before them.
const (
	RayPack      = "ray"
	RayProxyPack = "ray-proxy"
)

const ray = "ray_serve_"

func rayPacks() []Pack {
	proxy := []string{ray + "http_", ray + "num_http_", ray + "deployment_processing_latency_ms"}
	deployment := []string{ray + "deployment_", ray + "replica_", ray + "batch_", ray + "actual_batch_", ray + "health_",
		ray + "multiplexed_"}
	return []Pack{
		{Name: RayPack, Title: "Ray Serve", Prefixes: deployment, Split: []string{"application", "deployment"},
			Rules: slices.Concat(rayWork(), rayBatches())},
		{Name: RayProxyPack, Title: "Ray Serve proxy", Prefixes: proxy, Split: []string{"application"}, Rules: rayProxy()},
	}
}

// milli is the mean of a histogram of milliseconds, in seconds.
func milli(name, help, family string) Rule {
	return Rule{Name: name, Unit: "seconds", Help: help, Num: times(1e-3, sumOf(family)),
		Den: countOf(family)}.category(Latency, LowerBetter)
}

func rayWork() []Rule {
	requests := increase(ray + "deployment_request_counter")
	processing := ray + "deployment_processing_latency_ms"
	return []Rule{
		rate("request_rate", "requests/s", "Requests of the replicas.", requests).or(countOf(processing), nil,
			OK).headline("request_rate"),
		milli("processing_mean", "Of a request in a replica, without its queue.", processing).headline(""),
		rate("busy_replicas", "requests", "Requests in replicas, by Little's law.",
			times(1e-3, sumOf(processing))).category(Saturation, Neutral),
		level("running_mean", "requests", "Requests in replicas.", ray+"replica_processing_queries").headline("running"),
		level("waiting_mean", "requests", "Requests that wait for a replica.",
			ray+"deployment_queued_queries").category(Saturation, LowerBetter).headline("waiting"),
		peak("waiting_peak", "requests", "Most requests that waited for a replica.",
			ray+"deployment_queued_queries").category(Saturation, LowerBetter),
		ratio("error_ratio", "Share of the requests that failed; absent before the first.",
			increase(ray+"deployment_error_counter"), requests).
			category(Errors, LowerBetter).headline("error_ratio"),
		skew("replica_skew", "Requests of the busiest replica by the mean of all.", "replica", Value,
			ray+"deployment_request_counter").headline(""),
		level("replicas_healthy_mean", "replicas", "Healthy replicas.", ray+"deployment_replica_healthy"),
		milli("model_load_mean", "To load a multiplexed model.", ray+"multiplexed_model_load_latency_ms"),
		milli("health_check_mean", "Of a health check.", ray+"health_check_latency_ms"),
	}
}

func rayBatches() []Rule {
	return []Rule{
		milli("batch_wait_mean", "A batch waited to fill.", ray+"batch_wait_time_ms"),
		milli("batch_execution_mean", "Of a batch.", ray+"batch_execution_time_ms"),
		meanOf("batch_size_mean", "requests", "Requests of a batch.", ray+"actual_batch_size").category(Efficiency, Neutral),
		meanOf("batch_utilization", "percent", "Fill of a batch.", ray+"batch_utilization_percent").category(Efficiency,
			HigherBetter),
	}
}

func rayProxy() []Rule {
	latency, requests := ray+"http_request_latency_ms", increase(ray+"num_http_requests")
	return []Rule{
		rate("request_rate", "requests/s", "Requests of the proxy.", requests).or(countOf(latency), nil,
			OK).headline("request_rate"),
		milli("e2e_mean", "From the proxy to the end of a request.", latency).headline("e2e_mean_s"),
		rate("concurrency_little", "requests", "Requests under way, by Little's law.",
			times(1e-3, sumOf(latency))).category(Saturation, Neutral),
		ratio("error_ratio", "Share of the requests that failed; absent before the first.",
			increase(ray+"num_http_error_requests"), requests).
			category(Errors, LowerBetter).headline("error_ratio"),
		{Name: "proxy_overhead", Unit: "seconds",
			Help:     "Of a request what no replica processed it: proxy and queues. Too low where deployments call each other.",
			Category: TimeSpent, Better: LowerBetter, Status: Estimate,
			Formula: "(proxy time - processing time) / requests of the proxy", Make: func(v *View) []Derived {
				return remainder(v, times(1e-3, minus(sumOf(latency), sumOf(ray+"deployment_processing_latency_ms"))),
					countOf(latency))
			}},
	}
}
