package events

// WeightedPercentile is what a report weighted by tokens has.
func WeightedPercentile(sorted []Weighted, p float64) float64 {
	total := 0
	for _, w := range sorted {
		total += w.N
	}
	return weightedAt(sorted, p, total)
}
