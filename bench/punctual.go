package main

import (
	"math"
	"slices"
	"time"
)

// punctuality is how well requests kept to a grid, as the targets saw them.
type punctuality struct {
	expected, missed int
	p50, p99, worst  time.Duration // how far from the grid
	drift            time.Duration // per interval, the worst of all targets
	stolen           float64       // share of the machine that others had
}

// judge compares the times of requests within a window with a grid of the
// interval. The phase of the grid is that of the median request of each target:
// when a target's turn is, is the scraper's choice.
func judge(came [][]int64, from, to int64, every time.Duration) punctuality {
	var p punctuality
	var off []float64
	for _, all := range came {
		var times []int64
		for _, t := range all {
			if t >= from && t <= to {
				times = append(times, t)
			}
		}
		want := int((to - from) / every.Nanoseconds())
		p.expected += want
		p.missed += max(0, want-len(times))
		if len(times) < 3 {
			continue
		}
		residuals, slope := fit(times, float64(every.Nanoseconds()))
		off = append(off, residuals...)
		if math.Abs(slope) > math.Abs(float64(p.drift)) {
			p.drift = time.Duration(slope)
		}
	}
	slices.Sort(off)
	if n := len(off); n > 0 {
		p.p50, p.p99, p.worst = time.Duration(off[n/2]), time.Duration(off[n*99/100]), time.Duration(off[n-1])
	}
	return p
}

// fit returns the absolute distances from the grid and the drift per interval by
// Theil and Sen's method on pairs half the window apart, so that single late
// requests do not count.
func fit(times []int64, every float64) (residuals []float64, drift float64) {
	signed := make([]float64, len(times))
	index := make([]float64, len(times))
	for i, t := range times {
		since := float64(t - times[0])
		index[i] = math.Round(since / every)
		signed[i] = since - index[i]*every
	}
	sorted := slices.Sorted(slices.Values(signed))
	middle := sorted[len(sorted)/2]
	for _, s := range signed {
		residuals = append(residuals, math.Abs(s-middle))
	}
	half := len(times) / 2
	var slopes []float64
	for i := range half {
		if steps := index[i+half] - index[i]; steps > 0 {
			slopes = append(slopes, (signed[i+half]-signed[i])/steps)
		}
	}
	if len(slopes) == 0 {
		return residuals, 0
	}
	slices.Sort(slopes)
	return residuals, slopes[len(slopes)/2]
}
