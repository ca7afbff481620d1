package main

import (
	"math"
	"sync"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// ownRequests looks after TorchServe's counter Requests2XX, which counts every
// answer of the server, those to our own scrapes included: at ten a second it is
// mostly the scraper itself. It says so, or takes our scrapes off. It is safe
// for concurrent use.
type ownRequests struct {
	to       scrape.Sink
	subtract bool

	mu      sync.Mutex
	targets map[int]*ownTarget
}

// ownTarget is what is known of one target. It belongs to the goroutine of that
// target.
type ownTarget struct {
	dict    metric.Dict
	known   bool
	slot    uint32  // of Requests2XX
	raw     float64 // its last value
	answers float64 // to scrapes before this one that it counted
}

func newOwnRequests(to scrape.Sink, subtract bool) *ownRequests {
	return &ownRequests{to: to, subtract: subtract, targets: map[int]*ownTarget{}}
}

// Record implements scrape.Sink.
func (o *ownRequests) Record(s *metric.Snapshot) error {
	if s.Status == 0 {
		return o.to.Record(s) // no answer to a request: to read a log adds nothing to it
	}
	o.mu.Lock()
	t := o.targets[s.Target]
	if t == nil {
		t = &ownTarget{}
		o.targets[s.Target] = t
	}
	o.mu.Unlock()
	if s.Outcome.Stored() {
		if err := t.dict.Grow(&s.Growth); err != nil {
			return err
		}
		t.find(s, o.subtract)
		if t.known && o.subtract {
			t.adjust(s)
			t.answers++
		}
	}
	return o.to.Record(s)
}

// find looks for the counter among what is new.
func (t *ownTarget) find(s *metric.Snapshot, subtract bool) {
	for i := range s.Growth.Slots {
		slot := len(t.dict.Slots) - len(s.Growth.Slots) + i
		sl := &t.dict.Slots[slot]
		f := t.dict.FamilyOf(sl.Series)
		if t.known || f.Name != "Requests2XX" || f.Type != metric.Counter || sl.Role != metric.RoleValue || sl.Integer {
			continue
		}
		t.known, t.slot, t.raw = true, uint32(slot), math.NaN()
		if !subtract {
			s.Warnings = append(s.Warnings, metric.Warning{Code: "own_scrapes",
				Text: "Requests2XX of TorchServe also counts every scrape of ours; --torchserve-subtract-self takes them off"})
		}
	}
}

// adjust takes our scrapes off. One that the counter did not count, as it stood
// still, is not taken off; after a restart of the server counting begins anew.
func (t *ownTarget) adjust(s *metric.Snapshot) {
	raw, at := t.raw, -1
	for i, slot := range s.Frame.Slots {
		if slot == t.slot {
			raw, at = s.Frame.Float(i), i
		}
	}
	switch {
	case raw < t.raw:
		t.answers = 0
	case raw == t.raw && t.answers > 0:
		t.answers--
	}
	t.raw = raw
	if at >= 0 {
		s.Frame.Bits[at] = math.Float64bits(raw - t.answers)
	}
}
