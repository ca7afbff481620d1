package compare

import (
	"cmp"
	"slices"
)

// adjust returns Benjamini and Hochberg's adjusted p-values in the order of p: a row whose adjusted value is at most
// alpha belongs to a set of rows of which, on average, at most the share alpha is there by chance. It changes nothing
// in p.
func adjust(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	q := make([]float64, len(p))
	least := 1.0
	for k := len(order) - 1; k >= 0; k-- {
		i := order[k]
		least = min(least, p[i]*float64(len(p))/float64(k+1))
		q[i] = least
	}
	return q
}
