package collect

import (
	"sync"
	"sync/atomic"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// recorder is the sink of a collection: it hands every poll to the recording and
// to the observers, and counts it. It is safe for concurrent use.
type recorder struct {
	to        scrape.Sink
	tell      func(string)
	observers []Observer // told of every poll that was recorded
	uncounted int        // the target that is no server, -1 for none

	polls, stored, failed, lines, dropped, refused atomic.Int64

	mu       sync.Mutex
	trailing map[int]int64 // by target: polls that failed since the last stored one
}

func newRecorder(to scrape.Sink, tell func(string)) *recorder {
	return &recorder{to: to, tell: tell, uncounted: -1, trailing: map[int]int64{}}
}

// Record implements scrape.Sink. It never fails, as the collection goes on whatever
// becomes of a poll: one that the recording refuses is counted.
func (r *recorder) Record(s *metric.Snapshot) error {
	err := r.to.Record(s)
	if err != nil && r.refused.Add(1) == 1 {
		r.tell("warning: " + err.Error())
	}
	switch {
	case s.Target == r.uncounted:
	case s.Outcome.Stored():
		r.polls.Add(1)
		r.stored.Add(1)
		r.lines.Add(int64(s.Lines - s.Dropped()))
		r.dropped.Add(int64(s.Lost()))
	default:
		r.polls.Add(1)
		r.failed.Add(1)
	}
	if err == nil {
		for _, o := range r.observers {
			o.Record(s)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Outcome.Stored() {
		delete(r.trailing, s.Target)
	} else {
		r.trailing[s.Target]++
	}
	return nil
}

// discountFailures discounts failures just before a target was removed: it was no
// longer there, and nothing of it was lost.
func (r *recorder) discountFailures(target int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed.Add(-r.trailing[target])
	delete(r.trailing, target)
}

// Totals is what was recorded, over all targets: polls, and lines of samples.
// Unwritten are polls that are not in the recording as they were, as it could not be
// written.
type Totals struct{ Polls, Stored, Failed, Lines, Dropped, Unwritten int64 }

func (r *recorder) totals() Totals {
	return Totals{r.polls.Load(), r.stored.Load(), r.failed.Load(), r.lines.Load(), r.dropped.Load(), r.refused.Load()}
}

// Lossless reports whether no poll failed, no line was dropped, and all is written.
func (t Totals) Lossless() bool { return t.Failed == 0 && t.Dropped == 0 && t.Unwritten == 0 }
