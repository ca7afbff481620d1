package scrape

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// pace decides on how many ticks of its grid a target is polled.
//
// A target that fails is polled on each tick after its first two failures, then on every second, fourth, ...
// one, but at least on the first tick after 5 s; one that has answered three times in a row with something else
// than metrics after 30 s. A success ends that at once.
//
// A target that spends more than the permitted share of its time on answers is polled on every n-th tick, and
// not more often when it fails. Its time for an answer is the shortest of the last 16, less the time a connect
// takes: neither the network's nor our own delays are to be mistaken for its work.
type pace struct {
	interval time.Duration
	share    float64 // of time, 0 to 1; not positive is no limit

	fails, foreign int
	took           []time.Duration // ring of the last answers
	answers        int
	stretch        int // by share
}

const (
	maxFailDelay    = 5 * time.Second
	foreignDelay    = 30 * time.Second
	foreignInRow    = 3
	shareWindow     = 16
	shareMinAnswers = 8
)

func newPace(interval time.Duration, sharePercent float64) *pace {
	return &pace{interval: interval, share: sharePercent / 100, took: make([]time.Duration, 0, shareWindow), stretch: 1}
}

// after takes the result of a poll and returns the number of ticks to the next
// one. A warning is returned when the share makes it slower than before.
func (p *pace) after(s *metric.Snapshot, distance time.Duration) (ticks int, warning *metric.Warning) {
	switch {
	case s.Outcome == metric.Cancelled:
		return 1, nil
	case s.Outcome.Stored():
		p.fails, p.foreign = 0, 0
		warning = p.answered(max(s.Duration-distance, 0))
		return p.stretch, warning
	}
	p.fails++
	if s.Outcome == metric.NotPrometheus {
		p.foreign++
	} else {
		p.foreign = 0
	}
	if p.foreign == foreignInRow {
		warning = &metric.Warning{Code: "not_prometheus",
			Text: fmt.Sprintf("%d answers in a row were no metrics; trying every %v from now on", foreignInRow, foreignDelay)}
	}
	if p.foreign >= foreignInRow {
		return max(p.stretch, p.ticks(foreignDelay)), warning
	}
	return max(p.stretch, min(1<<min(max(p.fails-2, 0), 20), p.ticks(maxFailDelay))), nil
}

// ticks is the number of intervals that cover d.
func (p *pace) ticks(d time.Duration) int {
	return max(1, int((d+p.interval-1)/p.interval))
}

func (p *pace) answered(took time.Duration) *metric.Warning {
	if p.share <= 0 {
		return nil
	}
	if len(p.took) < shareWindow {
		p.took = append(p.took, took)
	} else {
		p.took[p.answers%shareWindow] = took
	}
	if p.answers++; p.answers < shareMinAnswers {
		return nil
	}
	best := slices.Min(p.took)
	before := p.stretch
	p.stretch = max(1, int(math.Ceil(float64(best)/(p.share*float64(p.interval)))))
	if p.stretch <= before {
		return nil
	}
	return &metric.Warning{Code: "scrape_share", Text: fmt.Sprintf(
		"an answer takes %v, %.1f %% of the interval; polling every %v to stay below %.3g %% (--scrape-budget)",
		best.Round(10*time.Microsecond), 100*float64(best)/float64(p.interval), time.Duration(p.stretch)*p.interval,
		100*p.share)}
}
