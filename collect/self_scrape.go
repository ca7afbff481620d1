package collect

import (
	"math"
	"sync"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// ownRequests looks after counters of every answer of a server, those to our own scrapes included, such as one of
// TorchServe: at ten a second it is mostly the scraper itself. It says so, or takes our scrapes off. It is safe for
// concurrent use.
type ownRequests struct {
	to       scrape.Sink
	catalog  *catalog.Catalog
	subtract bool

	mu      sync.Mutex
	targets map[int]*ownTarget
}

// ownTarget is what is known of one target. It belongs to the goroutine of that
// target.
type ownTarget struct {
	// What the dictionary held before this poll. The dictionary itself is not
	// kept: it would be the largest thing that collect has of a target.
	families, series, slots int
	counter                 int          // index of the family, when of is not nil
	of                      map[int]bool // its series
	name                    string

	known   bool
	slot    uint32  // of the counter
	raw     float64 // its last value
	answers float64 // to scrapes before this one that it counted
}

func newOwnRequests(to scrape.Sink, c *catalog.Catalog, subtract bool) *ownRequests {
	return &ownRequests{to: to, catalog: c, subtract: subtract, targets: map[int]*ownTarget{}}
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
		t.find(s, o.catalog, o.subtract)
		if t.known && o.subtract {
			t.adjust(s)
			t.answers++
		}
	}
	return o.to.Record(s)
}

// find looks for the counter among what is new.
func (t *ownTarget) find(s *metric.Snapshot, c *catalog.Catalog, subtract bool) {
	g := &s.DictDelta
	if t.known || g.Empty() {
		return
	}
	for i, f := range g.Families {
		if known, ok := c.Family(f.Name); ok && known.Scrapes && f.Type == metric.Counter {
			t.counter, t.of, t.name = t.families+i, map[int]bool{}, f.Name
		}
	}
	for i, x := range g.Series {
		if t.of != nil && x.Family == t.counter {
			t.of[t.series+i] = true
		}
	}
	for i, sl := range g.Slots {
		if t.known || !t.of[sl.Series] || sl.Role != metric.RoleValue || sl.Integer {
			continue
		}
		t.known, t.slot, t.raw = true, uint32(t.slots+i), math.NaN()
		if !subtract {
			s.Warnings = append(s.Warnings, metric.Warning{Code: "own_scrapes",
				Text: t.name + " also counts every scrape of ours; --torchserve-subtract-self takes them off"})
		}
	}
	t.families, t.series, t.slots = t.families+len(g.Families), t.series+len(g.Series), t.slots+len(g.Slots)
}

// adjust takes our scrapes off. One that the counter did not count, as it stood
// still, is not taken off; after a restart of the server counting begins anew.
func (t *ownTarget) adjust(s *metric.Snapshot) {
	raw, at := t.raw, -1
	for i, slot := range s.Delta.Slots {
		if slot == t.slot {
			raw, at = s.Delta.Float(i), i
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
		s.Delta.Bits[at] = math.Float64bits(raw - t.answers)
	}
}
