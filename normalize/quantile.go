package normalize

import (
	"cmp"
	"math"
	"slices"
)

// sorted returns runs in the order of their values. It sorts by the bytes of the values, lowest first, which is several
// times faster than comparing when a gauge has changed at every poll. Runs and the scratch memory of v are overwritten.
func (v *view) sorted(runs []run) []run {
	var counts [8][256]int32
	for i := range runs {
		key := sortKey(runs[i].value)
		for b := range counts {
			counts[b][byte(key>>(8*b))]++
		}
	}
	if len(v.spare) < len(runs) {
		v.spare = make([]run, len(runs))
	}
	spare := v.spare[:len(runs)]
	for b := range counts {
		at := &counts[b]
		if slices.Contains(at[:], int32(len(runs))) {
			continue // the same byte everywhere
		}
		sum := int32(0)
		for i, n := range at {
			at[i] = sum
			sum += n
		}
		for _, r := range runs {
			p := &at[byte(sortKey(r.value)>>(8*b))]
			spare[*p] = r
			*p++
		}
		runs, spare = spare, runs
	}
	return runs
}

// sortKey orders finite values as whole numbers.
func sortKey(v float64) uint64 {
	bits := math.Float64bits(v)
	return bits ^ (uint64(int64(bits)>>63) | 1<<63)
}

// weightedQuantiles returns quantiles of n samples given as runs sorted by value,
// whose ends it overwrites: numpy's default, linear between order statistics.
func weightedQuantiles(runs []run, n int, quantiles []float64) []float64 {
	total := 0
	for i := range runs {
		total += int(runs[i].to - runs[i].from)
		runs[i].to = int32(total) // from here on: order statistics up to this run
	}
	statistic := func(k int) float64 {
		i, _ := slices.BinarySearchFunc(runs, k, func(r run, k int) int { return cmp.Compare(int(r.to), k+1) })
		return runs[i].value
	}
	out := make([]float64, len(quantiles))
	for i, q := range quantiles {
		at := float64(n-1) * q
		k := int(at)
		g := at - float64(k)
		a := statistic(k)
		b := a
		if g > 0 {
			b = statistic(min(k+1, n-1))
		}
		out[i] = interpolate(a, b, g)
	}
	return out
}

// interpolate is numpy's, exact at both ends; only where a difference is beyond
// the range of float64 it takes another form.
func interpolate(a, b, g float64) float64 {
	d := b - a
	switch {
	case math.IsInf(d, 0):
		return a*(1-g) + b*g
	case g < 0.5:
		return a + d*g
	default:
		return b - d*(1-g)
	}
}
