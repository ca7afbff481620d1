package summary

import (
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// What Options.Slice asks for by a number of slices of the window: noise within a run is estimated from the first, its
// causes from the second, and the third are as many as others take in a time series.
const (
	NoiseSlices time.Duration = -100
	CauseSlices time.Duration = -60
	PointSlices time.Duration = -255
)

// NoiseSlice is the width of NoiseSlices: a hundredth of the window, at least two intervals between polls, rounded up
// to a millisecond.
func NoiseSlice(window, interval time.Duration) time.Duration {
	return partOf(window, interval, NoiseSlices)
}

// partOf is the width of so many slices.
func partOf(window, interval, slices time.Duration) time.Duration {
	slice := max(2*interval, window/-slices, time.Millisecond)
	return (slice + time.Millisecond - 1).Truncate(time.Millisecond)
}

// pollTimes are when the polls of a target were, as the survey of a recording saw them.
type pollTimes struct {
	first, last int64
	count       int
	gaps        []int64 // kept where the recording does not know its interval
}

func (p *pollTimes) add(s *metric.Snapshot, keep bool) {
	at := s.AtNS()
	if p.count > 0 && keep && at > p.last {
		p.gaps = append(p.gaps, at-p.last)
	}
	if p.count++; p.count == 1 {
		p.first = at
	}
	p.last = max(p.last, at)
}

// slice is the width of a number of slices of the window of a recording, from its first poll to its last one where
// those are known.
func (p *plan) slice(parts time.Duration, meta *rundb.Meta, polls []pollTimes) time.Duration {
	start, end, interval := p.window.StartNS, p.window.EndNS, meta.Interval
	var first, last int64
	var gaps []int64
	for _, t := range polls {
		if t.count > 0 && (first == 0 || t.first < first) {
			first = t.first
		}
		last, gaps = max(last, t.last), append(gaps, t.gaps...)
	}
	if last > 0 {
		start, end = max(start, first), min(end, last)
	}
	if interval <= 0 && len(gaps) > 0 {
		slices.Sort(gaps)
		interval = time.Duration(gaps[len(gaps)/2])
	}
	return partOf(time.Duration(max(0, end-start)), max(0, interval), parts)
}
