package sweep

import (
	"math"
	"slices"
)

// Plateau is timeslices of one load, from From to before To.
type Plateau struct{ From, To int }

// The rule of plateaus: how long they are at least, in timeslices, and what a boundary must gain in likelihood.
const (
	shortest = 10
	gain     = 3
)

// Plateaus finds stretches of one load in the arrivals of timeslices by binary segmentation: a stretch is cut where two
// rates of Poisson explain it better than one by 3 ln n, as long as both sides have ten timeslices.
func Plateaus(arrivals []float64) []Plateau {
	sum := make([]float64, len(arrivals)+1)
	for i, v := range arrivals {
		if !(v > 0) { // the balance of flow of a slice may be below 0, where more ended than polls saw
			v = 0
		}
		sum[i+1] = sum[i] + v
	}
	// likelihood of a stretch by its own rate, without what all cuts have in common
	likelihood := func(from, to int) float64 {
		k := sum[to] - sum[from]
		if k <= 0 {
			return 0
		}
		return k * math.Log(k/float64(to-from))
	}
	least := gain * math.Log(float64(max(len(arrivals), 2)))
	var cuts []int
	var split func(from, to int)
	split = func(from, to int) {
		best, at := 0.0, 0
		for c := from + shortest; c <= to-shortest; c++ {
			if g := likelihood(from, c) + likelihood(c, to) - likelihood(from, to); g > best {
				best, at = g, c
			}
		}
		if best > least {
			cuts = append(cuts, at)
			split(from, at)
			split(at, to)
		}
	}
	split(0, len(arrivals))
	cuts = append(cuts, 0, len(arrivals))
	slices.Sort(cuts)
	var out []Plateau
	for i := 1; i < len(cuts); i++ {
		if cuts[i] > cuts[i-1] {
			out = append(out, Plateau{cuts[i-1], cuts[i]})
		}
	}
	return out
}
