// Package suggest finds the names that somebody may have meant by one that nobody knows.
package suggest

import (
	"cmp"
	"slices"
	"strings"
)

// maxNames bounds the names that are compared with a misspelt one.
const maxNames = 20_000

// Nearest returns up to three names that look like name, the best first.
func Nearest(name string, names []string) []string {
	type scored struct {
		name string
		far  int
	}
	limit := max(2, len(name)/3)
	var found []scored
	for _, n := range names[:min(len(names), maxNames)] {
		far := distance(strings.ToLower(name), strings.ToLower(n), limit+1)
		if far > limit && len(name) >= 4 && (strings.Contains(n, name) || strings.Contains(name, n) && len(n) >= 4) {
			far = limit
		}
		if far <= limit {
			found = append(found, scored{n, far})
		}
	}
	slices.SortFunc(found, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.far, b.far),
			strings.Compare(a.name, b.name))
	})
	var out []string
	for _, f := range found[:min(3, len(found))] {
		out = append(out, f.name)
	}
	return out
}

// Clause is a clause with the nearest names, "" when there are none.
func Clause(name string, names []string) string {
	near := Nearest(name, names)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, ", ") + "?"
}

// distance is Levenshtein's, or at least limit where it is not below: two rows, and it stops where the smallest of a
// row has reached limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, least := row[0], i+1
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost = min(before, row[j], row[j+1]) + 1
			}
			before, row[j+1] = row[j+1], cost
			least = min(least, cost)
		}
		if least >= limit {
			return limit
		}
	}
	return row[len(b)]
}
