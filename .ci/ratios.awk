# Reads the output of "go test -bench" and compares the fastest run of "ours"
# with that of "peer"; the fastest is what noise of a shared machine disturbs
# least. Fails when ours/peer is over "limit" or a result is missing.
/^Benchmark/ {
	name = $1
	sub(/-[0-9]+$/, "", name)
	if (!(name in best) || $3 + 0 < best[name]) best[name] = $3 + 0
}
END {
	if (!best[ours] || !best[peer]) {
		printf "%s: no result of %s or %s\n", package, ours, peer
		exit 1
	}
	ratio = best[ours] / best[peer]
	printf "%s: %s %.0f ns, %s %.0f ns, ratio %.3f, limit %s: %s\n", package, ours, best[ours], peer, best[peer], ratio, limit, ratio <= limit + 0 ? "met" : "NOT MET"
	exit ratio > limit + 0
}
