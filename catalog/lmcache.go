package catalog

// LMCachePack is the name of the pack of LMCache.
const LMCachePack = "lmcache"

const lmcache = "lmcache:"

func lmcachePacks() []Pack {
	return []Pack{{Name: LMCachePack, Title: "LMCache", Prefixes: []string{lmcache}, Split: []string{"model_name"},
		Rules: append(lmcacheHits(), lmcacheTimes()...)}}
}

func lmcacheHits() []Rule {
	hit, requested, prompt := increase(lmcache+"num_hit_tokens"), increase(lmcache+"num_requested_tokens"),
		increase(lmcache+"num_prompt_tokens")
	retrievals, lookups := increase(lmcache+"num_retrieve_requests"), increase(lmcache+"num_lookup_requests")
	evictions, failed := increase(lmcache+"local_cpu_evict_count"), increase(lmcache+"local_cpu_evict_failed_count")
	return []Rule{
		ratio("retrieve_hit_ratio", "Tokens found by those asked for.", hit, requested).category(Cache,
			HigherBetter).headline(""),
		ratio("lookup_hit_ratio", "Tokens found by those looked up.", increase(lmcache+"num_lookup_hits"),
			increase(lmcache+"num_lookup_tokens")).category(Cache, HigherBetter).headline(""),
		ratio("combined_prefix_hit_ratio", "Prompt tokens that vLLM's own cache or this one had.",
			plus(increase(lmcache+"num_vllm_hit_tokens"), hit), prompt).
			category(Cache, HigherBetter).headline("prefix_hit_ratio"),
		ratio("store_ratio", "Tokens stored by prompt tokens.", increase(lmcache+"num_stored_tokens"), prompt).category(Cache,
			Neutral).headline(""),
		ratio("zero_hit_share", "Share of the lookups that found nothing.", increase(lmcache+"lookup_0_hit_requests"),
			lookups).category(Cache, LowerBetter),
		ratio("slow_share_by_time", "Share of the retrievals that took too long.",
			increase(lmcache+"num_slow_retrieval_by_time"), retrievals).category(Latency, LowerBetter),
		ratio("slow_share_by_speed", "Share of the retrievals that were too slow.",
			increase(lmcache+"num_slow_retrieval_by_speed"), retrievals).category(Latency, LowerBetter),
		ratio("eviction_failure_ratio", "Share of the evictions that failed.", failed,
			plus(evictions, failed)).category(Errors, LowerBetter),
	}
}

func lmcacheTimes() []Rule {
	hit := increase(lmcache + "num_hit_tokens")
	return []Rule{
		// Zeros are not observed: means are too high.
		latency("retrieve_mean", "Of a retrieval; zeros are left out.", lmcache+"time_to_retrieve").atMost(Estimate).headline(
			""),
		latency("store_mean", "Of a store; zeros are left out.", lmcache+"time_to_store").atMost(Estimate),
		latency("lookup_mean", "Of a lookup; zeros are left out.", lmcache+"time_to_lookup").atMost(Estimate),
		Rule{Name: "retrieve_tok_s", Unit: "tokens/s", Help: "Tokens found by the time of retrievals.", Num: hit,
			Den: sumOf(lmcache + "time_to_retrieve")}.
			category(Throughput, HigherBetter).headline(""),
		rate("retrieve_rate", "requests/s", "Retrievals.", increase(lmcache+"num_retrieve_requests")).category(Throughput,
			Neutral),
		rate("remote_read_gb_s", "gb/s", "Read from the remote store.",
			times(1e-9, increase(lmcache+"num_remote_read_bytes"))).category(Throughput, Neutral),
		rate("remote_write_gb_s", "gb/s", "Written to the remote store.",
			times(1e-9, increase(lmcache+"num_remote_write_bytes"))).category(Throughput, Neutral),
		level("local_cache_bytes_mean", "bytes", "Held by the local cache.", lmcache+"local_cache_usage"),
	}
}
