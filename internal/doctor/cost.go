package doctor

import (
	"fmt"
	"math"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
)

// What a recording takes, from runs of a minute against simulated vllm, sglang and vllm-omni at 333 ms (58, 38 and 110
// kB, the empty file left out): so much for a poll, and for a value that changed.
const (
	bytesPerPoll    = 60
	bytesPerChanged = 0.7
)

// niceIntervals are those that a person would choose.
func niceIntervals() []time.Duration {
	ms, s := time.Millisecond, time.Second
	return []time.Duration{333 * ms, 500 * ms, s, 2 * s, 5 * s, 10 * s, 15 * s, 30 * s, 60 * s, 120 * s, 300 * s}
}

// costOf derives intervals from the time of an answer.
//
// steady reports whether hardly a scrape brought anything new: only then does the usual refresh of an engine count,
// which can be set otherwise.
func costOf(answer time.Duration, changed float64, steady bool, samples int, o Options, engines []catalog.Engine) Cost {
	smallest := time.Duration(math.Ceil(float64(answer) * 100 / o.MaxShare))
	smallest = max(time.Millisecond, smallest.Round(time.Millisecond/10))
	best, why := o.Interval, "the default"
	if smallest > best {
		best = nice(smallest)
		why = fmt.Sprintf("an answer takes %s, and may take %g %% of the server's time", short(answer), o.MaxShare)
	}
	perPoll := math.Min(float64(samples), changed*float64(best)/float64(o.Pause))
	for _, e := range engines {
		if steady && e.Refresh > best && e.Refreshed == "" {
			best, perPoll = e.Refresh, float64(samples)
			why = fmt.Sprintf("%s renews its values every %v only", e.Name, e.Refresh)
		}
	}
	polls := float64(time.Hour) / float64(best)
	return Cost{AnswerMS: millis(answer), Changed: changed, SmallestMS: millis(smallest), RecommendedMS: millis(best),
		Why:          why,
		BytesPerHour: int64(polls * (bytesPerPoll + bytesPerChanged*perPoll))}
}

// nice is the next interval that a person would choose.
func nice(d time.Duration) time.Duration {
	for _, n := range niceIntervals() {
		if n >= d {
			return n
		}
	}
	return d.Round(time.Second)
}

// short is a duration with three digits.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
