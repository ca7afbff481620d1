package doctor

// engineRule is what to look for in the body of an engine.
type engineRule struct {
	engine string
	judge  func(*exam)
}

func engineRules() []engineRule {
	return []engineRule{
		{"vllm-omni", judgeOmni}, {"vllm", judgeVLLM}, {"sglang", judgeSGLang}, {"trtllm", judgeTRTLLM},
		{"dynamo", judgeDynamo},
		{"triton", judgeTriton}, {"torchserve", judgeTorchServe}, {"tgi", judgeTGI}, {"llamacpp", judgeLlama},
		{"dcgm", judgeDCGM},
		{"ray", judgeRay}, {"lmcache", judgeLMCache},
	}
}

func judgeOmni(e *exam) {
	if !e.prefix("vllm:") || !e.family("vllm:num_requests_running") {
		e.r.add(Warning, "flag_log_stats", "no vllm:* families: the server has --log-stats off, and tells nothing of its "+
			"stages' engines",
			"start vLLM-Omni with --log-stats (unless no stage is autoregressive)")
	}
}

func judgeVLLM(e *exam) {
	tokens, _ := e.values("vllm:generation_tokens")
	if flops, ok := e.values("vllm:estimated_flops_per_gpu"); ok && flops == 0 && tokens > 0 {
		e.r.add(Note, "flag_mfu", "the estimated_* families stay at 0 while tokens flow",
			"start vLLM with --enable-mfu-metrics to have them")
	}
}

func judgeSGLang(e *exam) {
	if n := e.labelValues("tp_rank"); n > 1 {
		e.r.add(Warning, "ranks", "each tensor-parallel rank reports the same", "add over tp_rank=\"0\" only")
	}
	if n := e.labelValues("priority"); n > 1 {
		e.r.add(Warning, "priorities", "queue gauges have a total under priority=\"\" beside their parts",
			"never add over priority")
	}
	if e.family("sglang:cache_hit_rate") {
		e.r.add(Note, "batch_gauge", "sglang:cache_hit_rate is that of the last batch",
			"take the ratio of prefill_effective_tokens_total, not the mean of this gauge")
	}
	if !e.prefix("sglang:e2e_request_latency_seconds") {
		e.r.add(Note, "no_requests", "no request has finished yet: families of requests appear with the first", "")
	}
}

func judgeTRTLLM(e *exam) {
	requests, gauges := e.prefix("trtllm_e2e_request_latency_seconds"), e.prefix("trtllm_num_requests_running")
	switch {
	case !gauges && requests:
		e.r.add(Warning, "flag_iter_stats", "no gauges of running requests and the KV cache",
			"start trtllm-serve with enable_iter_perf_stats: true")
	case !requests:
		e.r.add(Warning, "flag_perf_metrics", "no families of requests: either none has finished yet, or the server does "+
			"not measure them",
			"send a request and look again; if they stay away, start trtllm-serve with return_perf_metrics: true")
	}
	if gauges {
		e.r.add(Note, "stale_gauges",
			"gauges move only when a request ends, and keep their last value when the server is idle",
			"take running and waiting from latencies (Little's law), not from these gauges")
	}
}

func judgeDynamo(e *exam) {
	if !e.prefix("dynamo_component_") {
		e.r.add(Warning, "workers", "this is the frontend: it knows neither the queues nor the KV caches of its workers",
			"start the workers with DYN_SYSTEM_PORT set, and add host:DYN_SYSTEM_PORT of each as a target")
	}
	if e.family("dynamo_frontend_queued_requests") {
		e.r.add(Note, "queued", "queued_requests counts requests that wait for their first token, prefill included",
			"the queue is in the engine of the worker")
	}
}

func judgeTriton(e *exam) {
	if !e.prefix("nv_gpu_") {
		e.r.add(Warning, "flag_gpu_metrics", "no nv_gpu_* families: no GPU was found, or its metrics are off",
			"start tritonserver with --allow-gpu-metrics=true, in a container that sees the GPU")
	}
	if !e.family("nv_inference_first_response_histogram_ms") && !e.family("nv_inference_request_summary_us") {
		e.r.add(Note, "flag_latencies", "latencies are counters only: means are exact, percentiles are not to be had",
			"--metrics-config histogram_latencies=true or summary_latencies=true (which costs the server time); or poll "+
				"triton+http://HOST:8000 for exact statistics")
	}
	if e.family("nv_trt_llm_general_metrics") {
		e.r.add(Note, "mixed_families", "nv_trt_llm_* families mix units, and counters with gauges, by label value",
			"select one label value")
	}
}

func judgeTorchServe(e *exam) {
	if e.family("Requests2XX") {
		e.r.add(Warning, "counts_scrapes", "Requests2XX counts every scrape as a request",
			"take ts_inference_requests_total, or give collect --torchserve-subtract-self")
	}
	if e.family("PredictionTime") || e.family("HandlerTime") {
		e.r.add(Note, "last_request", "PredictionTime, HandlerTime and QueueTime are those of the last request only",
			"for all requests follow the logs: torchserve-log:PATH")
	}
}

func judgeTGI(e *exam) {
	e.r.add(Note, "no_ttft", "TGI has no time to first token, no KV usage and no model label", "")
	if e.family("tgi_batch_next_size") && e.r.BodyBytes > 64<<10 {
		e.r.add(Note, "many_buckets", "tgi_batch_next_size has 1025 buckets",
			"--drop '^tgi_batch_next_size$' makes the recording smaller")
	}
}

func judgeLlama(e *exam) {
	e.r.add(Warning, "destructive", "prompt_tokens_seconds and predicted_tokens_seconds are averages since the previous "+
		"scrape, by whomever, in recent builds; this look began them anew",
		"divide the counters instead, and let one scraper only read the gauges")
}

func judgeDCGM(e *exam) {
	e.r.add(Note, "flag_interval", "the exporter reads its GPUs every 30 s unless told otherwise: what is scraped in "+
		"between are repeats",
		"set DCGM_EXPORTER_INTERVAL (ms) to the interval of the run, for example 1000")
	if !e.prefix("DCGM_FI_PROF_") {
		e.r.add(Note, "flag_profiling", "no DCGM_FI_PROF_* fields: no tensor and memory activity",
			"enable them in the exporter's list of counters; the GPU must allow profiling")
	}
}

func judgeRay(e *exam) {
	e.r.add(Note, "dead_workers", "series of workers that are gone linger in a Ray agent",
		"look at the births and deaths of series in the run")
}

func judgeLMCache(e *exam) {
	e.r.add(Note, "biased_histograms", "LMCache leaves zeros out of its histograms, and its retrieve_hit_rate is 1 when "+
		"nothing happened", "take ratios of its token counters")
}
