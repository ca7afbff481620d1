package catalog

// LMCachePack is the name of the pack of LMCache.
const LMCachePack = "lmcache"

const lmcache = "lmcache:"

func lmcachePacks() []Pack {
	return []Pack{{Name: LMCachePack, Title: "LMCache", Prefixes: []string{lmcache}, Split: []string{"model_name"}, Rules: append(lmcacheHits(), lmcacheTimes()...)}}
}

func lmcacheHits() []Rule {
	hit, requested, prompt := gained(lmcache+"num_hit_tokens"), gained(lmcache+"num_requested_tokens"), gained(lmcache+"num_prompt_tokens")
	retrievals, lookups := gained(lmcache+"num_retrieve_requests"), gained(lmcache+"num_lookup_requests")
	evictions, failed := gained(lmcache+"local_cpu_evict_count"), gained(lmcache+"local_cpu_evict_failed_count")
	return []Rule{
		ratio("retrieve_hit_ratio", "Tokens found by those asked for.", hit, requested).about(Cache, HigherBetter).head(""),
		ratio("lookup_hit_ratio", "Tokens found by those looked up.", gained(lmcache+"num_lookup_hits"), gained(lmcache+"num_lookup_tokens")).about(Cache, HigherBetter).head(""),
		ratio("combined_prefix_hit_ratio", "Prompt tokens that vLLM's own cache or this one had.", plus(gained(lmcache+"num_vllm_hit_tokens"), hit), prompt).
			about(Cache, HigherBetter).head("prefix_hit_ratio"),
		ratio("store_ratio", "Tokens stored by prompt tokens.", gained(lmcache+"num_stored_tokens"), prompt).about(Cache, Neutral).head(""),
		ratio("zero_hit_share", "Share of the lookups that found nothing.", gained(lmcache+"lookup_0_hit_requests"), lookups).about(Cache, LowerBetter),
		ratio("slow_share_by_time", "Share of the retrievals that took too long.", gained(lmcache+"num_slow_retrieval_by_time"), retrievals).about(Latency, LowerBetter),
		ratio("slow_share_by_speed", "Share of the retrievals that were too slow.", gained(lmcache+"num_slow_retrieval_by_speed"), retrievals).about(Latency, LowerBetter),
		ratio("eviction_failure_ratio", "Share of the evictions that failed.", failed, plus(evictions, failed)).about(Errors, LowerBetter),
	}
}

func lmcacheTimes() []Rule {
	hit := gained(lmcache + "num_hit_tokens")
	return []Rule{
		// Zeros are not observed: means are too high.
		latency("retrieve_mean", "Of a retrieval; zeros are left out.", lmcache+"time_to_retrieve").atMost(Estimate).head(""),
		latency("store_mean", "Of a store; zeros are left out.", lmcache+"time_to_store").atMost(Estimate),
		latency("lookup_mean", "Of a lookup; zeros are left out.", lmcache+"time_to_lookup").atMost(Estimate),
		Rule{Name: "retrieve_tok_s", Unit: "tokens/s", Help: "Tokens found by the time of retrievals.", Num: hit, Den: sumOf(lmcache + "time_to_retrieve")}.
			about(Throughput, HigherBetter).head(""),
		rate("retrieve_rate", "requests/s", "Retrievals.", gained(lmcache+"num_retrieve_requests")).about(Throughput, Neutral),
		rate("remote_read_gb_s", "gb/s", "Read from the remote store.", times(1e-9, gained(lmcache+"num_remote_read_bytes"))).about(Throughput, Neutral),
		rate("remote_write_gb_s", "gb/s", "Written to the remote store.", times(1e-9, gained(lmcache+"num_remote_write_bytes"))).about(Throughput, Neutral),
		level("local_cache_bytes_mean", "bytes", "Held by the local cache.", lmcache+"local_cache_usage"),
	}
}
