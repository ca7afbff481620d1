package summary

import (
	"math"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// NoiseSlices as Options.Slice asks for the slices of NoiseSlice.
const NoiseSlices time.Duration = math.MinInt64

// NoiseSlice is the width of the timeslices from which the noise within a run is estimated: a hundredth of the window
// that is analysed, at least two intervals between polls, rounded up to a millisecond.
func NoiseSlice(window, interval time.Duration) time.Duration {
	slice := max(2*interval, window/100, time.Millisecond)
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

// noiseSlice is the NoiseSlice of the window of a recording, from its first poll to its last one where those are known.
func (p *plan) noiseSlice(meta *rundb.Meta, polls []pollTimes) time.Duration {
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
	return NoiseSlice(time.Duration(max(0, end-start)), max(0, interval))
}
