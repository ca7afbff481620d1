# Reads the output of "go test -bench" and compares the fastest run of
# benchmark/ours with that of benchmark/peer; the fastest is what noise of a
# shared machine disturbs least. The variable "goal" is "ours peer limit".
BEGIN { split(goal, g, " ") }
/^Benchmark/ {
	name = $1
	sub(/-[0-9]+$/, "", name)
	if (!(name in best) || $3 + 0 < best[name]) best[name] = $3 + 0
}
END {
	ours = benchmark "/" g[1]
	peer = benchmark "/" g[2]
	if (!best[ours] || !best[peer]) {
		printf "%s: no result of %s or %s\n", package, ours, peer
		exit 1
	}
	ratio = best[ours] / best[peer]
	printf "%s: %s %.0f ns, %s %.0f ns, ratio %.3f, limit %s: %s\n", package, ours, best[ours], g[2], best[peer], ratio, g[3], ratio <= g[3] ? "met" : "NOT MET"
	exit ratio > g[3]
}
