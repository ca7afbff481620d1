package catalog

import "slices"

// DynamoPack and DynamoWorkerPack are the names of the packs of NVIDIA Dynamo: of its frontend and of the workers,
// which pass the families of their engine through.
const (
	DynamoPack       = "dynamo"
	DynamoWorkerPack = "dynamo-worker"
	// DynamoPathPack is of what lies between the two; it takes both endpoints together.
	DynamoPathPack = "dynamo-path"
)

const (
	dynamo       = "dynamo_frontend_"
	dynamoWorker = "dynamo_component_"
)

func dynamoPacks() []Pack {
	return []Pack{
		{Name: DynamoPack, Title: "NVIDIA Dynamo", Prefixes: []string{dynamo}, Split: []string{"model"},
			Rules: slices.Concat(dynamoThroughput(), dynamoLatency(), dynamoState(), dynamoGoodput())},
		{Name: DynamoWorkerPack, Title: "NVIDIA Dynamo worker", Prefixes: []string{dynamoWorker},
			Split: []string{"dynamo_component"},
			Rules: slices.Concat(dynamoWork(), dynamoWorkerState())},
		{Name: DynamoPathPack, Title: "NVIDIA Dynamo, frontend to worker", Rules: dynamoPath(),
			Prefixes: []string{dynamo + "request_duration_seconds", dynamoWorker + "request_duration_seconds"}},
	}
}

// dynamoPath needs the frontend and all of its workers among the endpoints. With separate workers for prefill and
// decode a request is in two of them.
func dynamoPath() []Rule {
	outer, inner := dynamo+"request_duration_seconds", sumOf(dynamoWorker+"request_duration_seconds", "dynamo_endpoint",
		"generate")
	overhead := func(den []Term) func(v *View) []Derived {
		return func(v *View) []Derived { return remainder(v, minus(sumOf(outer), inner), den) }
	}
	return []Rule{
		{Name: "frontend_overhead", Unit: "seconds",
			Help: "Of a request what no worker had it: frontend, router and the way.", Category: TimeSpent, Better: LowerBetter,
			Headline: true, Formula: "(duration at the frontend - duration at the workers) / requests",
			Make: overhead(countOf(outer))},
		{Name: "frontend_share", Unit: "ratio", Help: "Share of the latency in which no worker had the request.",
			Category: TimeSpent, Better: LowerBetter,
			Formula: "(duration at the frontend - duration at the workers) / duration at the frontend",
			Make:    overhead(sumOf(outer))},
	}
}

func dynamoThroughput() []Rule {
	ended := countOf(dynamo + "output_sequence_tokens")
	return []Rule{
		rate("request_rate", "requests/s", "Requests ended.", increase(dynamo+"requests")).headline("request_rate"),
		rate("output_tok_s", "tokens/s", "Tokens generated, as they come.", increase(dynamo+"output_tokens")).
			or(sumOf(dynamo+"output_sequence_tokens"), nil, OK).headline("output_tok_s"),
		rate("input_tok_s", "tokens/s", "Prompt tokens, at the first token of a request.",
			sumOf(dynamo+"input_sequence_tokens")).headline("input_tok_s"),
		meanOf("isl_mean", "tokens", "Prompt tokens of a request.", dynamo+"input_sequence_tokens").category(Throughput,
			Neutral),
		Rule{Name: "osl_mean", Unit: "tokens", Help: "Generated tokens of a request.",
			Num: sumOf(dynamo + "output_sequence_tokens"), Den: ended}.category(Throughput, Neutral),
	}
}

func dynamoLatency() []Rule {
	requests, duration := increase(dynamo+"requests"), sumOf(dynamo+"request_duration_seconds")
	// A combination of labels that a counter does not show has not happened yet.
	failed := minus(requests, maybe(increase(dynamo+"requests", "status", "success")))
	reasons := increase(dynamo+"requests", "status", "error")
	return []Rule{
		latency("ttft_mean", "From the arrival to the first token.", dynamo+"time_to_first_token_seconds").headline(
			"ttft_mean_s"),
		latency("itl_mean_token_weighted", "Between two tokens, each gap with the same weight.",
			dynamo+"inter_token_latency_seconds").headline("itl_mean_s"),
		latency("e2e_mean", "From the arrival to the end of a request.",
			dynamo+"request_duration_seconds").headline("e2e_mean_s"),
		meanOf("tokenizer_mean", "milliseconds", "In the tokenizer.", dynamo+"tokenizer_latency_ms").category(Latency,
			LowerBetter),
		overflow("ttft_overflow_share", dynamo+"time_to_first_token_seconds"),
		ratio("ttft_share", "Share of the latency before the first token.", sumOf(dynamo+"time_to_first_token_seconds"),
			duration).category(TimeSpent, Neutral).headline(""),
		ratio("error_ratio", "Share of the requests that failed.", failed, requests).category(Errors,
			LowerBetter).headline("error_ratio"),
		ratio("error_share", "Requests that failed for a reason, by all.", reasons, requests).category(Errors,
			LowerBetter).shares("error_type"),
		ratio("migrations_per_request", "Moves to another worker, per request.", increase(dynamo+"model_migration"),
			requests).category(Errors, LowerBetter),
	}
}

func dynamoState() []Rule {
	return []Rule{
		level("inflight_mean", "requests", "Requests under way, those in a queue included.",
			dynamo+"inflight_requests").headline("running"),
		peak("inflight_peak", "requests", "Most requests under way.", dynamo+"inflight_requests"),
		level("starting_mean", "requests", "Requests without a first token, in queue or prefill.",
			dynamo+"queued_requests").category(Saturation, LowerBetter),
		level("router_waiting_mean", "requests", "Requests that wait in the router.",
			dynamo+"router_queue_pending_requests").category(Saturation, LowerBetter).headline("waiting"),
		rate("concurrency_little", "requests", "Requests under way, by Little's law.",
			sumOf(dynamo+"request_duration_seconds")).category(Saturation, Neutral),
		ratio("cached_share", "Share of the prompt tokens that were in a cache.", sumOf(dynamo+"cached_tokens"),
			sumOf(dynamo+"input_sequence_tokens")).
			category(Cache, HigherBetter).headline("prefix_hit_ratio"),
		meanOf("kv_hit_rate_mean", "ratio", "Share of a prompt that was in the cache of its worker, each request with "+
			"the same weight.", dynamo+"kv_hit_rate").
			category(Cache, HigherBetter),
		skew("decode_block_skew", "KV blocks of the busiest worker by the mean of all.", "worker_id", Mean,
			dynamo+"worker_active_decode_blocks"),
	}
}

// dynamoWork is of the endpoint generate, where the work is done.
func dynamoWork() []Rule {
	requests := increase(dynamoWorker+"requests", "dynamo_endpoint", "generate")
	duration := dynamoWorker + "request_duration_seconds"
	errors := increase(dynamoWorker+"errors", "dynamo_endpoint", "generate")
	mean := func(name, help, family string) Rule {
		return Rule{Name: name, Unit: "seconds", Help: help, Num: sumOf(family, "dynamo_endpoint", "generate"),
			Den: countOf(family, "dynamo_endpoint", "generate")}.
			category(Latency, LowerBetter)
	}
	split := rate("request_rate_by_type", "requests/s", "Requests by kind of worker: prefill, decode.",
		increase(dynamoWorker+"requests")).by("worker_type")
	return []Rule{
		rate("request_rate", "requests/s", "Requests of the worker.", requests).headline("request_rate"),
		split.category(Throughput, Neutral),
		mean("e2e_mean", "Of a request in the worker.", duration).headline("e2e_mean_s"),
		mean("first_response_mean", "From the arrival at the worker to its first answer.",
			dynamoWorker+"time_to_first_response_seconds").headline(""),
		mean("network_transit_mean", "From the frontend to the worker.", dynamoWorker+"network_transit_seconds").headline(""),
		ratio("network_transit_share", "Share of the latency spent on the way to the worker.",
			sumOf(dynamoWorker+"network_transit_seconds", "dynamo_endpoint", "generate"),
			sumOf(duration, "dynamo_endpoint", "generate")).category(TimeSpent, LowerBetter),
		ratio("error_ratio", "Share of the requests that failed; absent before the first.", errors, requests).category(Errors,
			LowerBetter).canonical("error_ratio"),
		rate("received_bytes_s", "bytes/s", "Requests to the worker.", increase(dynamoWorker+"request_bytes")).category(
			Throughput, Neutral),
		rate("sent_bytes_s", "bytes/s", "Answers of the worker.", increase(dynamoWorker+"response_bytes")).category(
			Throughput, Neutral),
		skew("worker_skew", "Requests of the busiest worker by the mean of all.", "worker_id", Value,
			dynamoWorker+"requests"),
	}
}

func dynamoWorkerState() []Rule {
	return []Rule{
		level("inflight_mean", "requests", "Requests in the worker.", dynamoWorker+"inflight_requests", "dynamo_endpoint",
			"generate").headline("running"),
		rate("concurrency_little", "requests", "Requests in the worker, by Little's law.",
			sumOf(dynamoWorker+"request_duration_seconds", "dynamo_endpoint", "generate")).
			category(Saturation, Neutral),
		ratio("kv_usage_mean", "Share of the KV blocks in use.", meanOver(dynamoWorker+"kvstats_active_blocks"),
			meanOver(dynamoWorker+"kvstats_total_blocks")).
			or(integral(dynamoWorker+"kvstats_gpu_cache_usage_percent"), nil, OK).category(Saturation,
			Neutral).headline("kv_usage"),
		peak("kv_usage_peak", "ratio", "Largest share of the KV blocks in use.",
			dynamoWorker+"kvstats_gpu_cache_usage_percent"),
	}
}

func dynamoGoodput() []Rule {
	return goodput(map[string]string{"ttft_s": dynamo + "time_to_first_token_seconds",
		"itl_s": dynamo + "inter_token_latency_seconds",
		"e2e_s": dynamo + "request_duration_seconds"}, increase(dynamo+"requests"), sumOf(dynamo+"output_sequence_tokens"),
		countOf(dynamo+"output_sequence_tokens"))
}
