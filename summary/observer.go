package summary

import (
	"slices"
	"sync"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/window/traffic"
)

// Observer looks for traffic of one target, in polls as its tracker adjusts them. The tracker is its own, as windows
// are found before the folds see a poll. It has one owner and is not safe for concurrent use.
type Observer struct {
	*traffic.Detector
	tracker *continuity.Tracker
	// believed is when the last poll was sent that was taken for what it shows; doubts is set when others came after it.
	believed int64
	doubts   bool
}

// NewObserver returns an observer of one target that knows families as c does.
func NewObserver(c *catalog.Catalog) *Observer {
	tracker := continuity.New(Continuity(c))
	return &Observer{Detector: traffic.NewDetector(c, tracker.Schema()), tracker: tracker}
}

// Add takes the next poll of the target. It keeps nothing of s. One that does not fit is refused.
func (o *Observer) Add(s *metric.Snapshot) error {
	step, err := o.tracker.Step(s)
	if err != nil {
		return err
	}
	if step == nil {
		return o.Detector.Add(s, nil)
	}
	adjusted := *s
	if adjusted.Delta = step.Delta; step.Held {
		adjusted.Outcome = metric.SkippedOverlap // no sample of anything, and yet it may name what is new
	}
	if o.doubts && o.believed != 0 {
		o.Doubted(o.believed)
	}
	if o.doubts = step.Held || step.Tentative; !o.doubts {
		o.believed = s.SentNS
	}
	whole := func(e continuity.Event) bool { return e.Kind == continuity.Restart && e.Series < 0 }
	if slices.ContainsFunc(step.Events, whole) {
		o.Restarted()
	}
	return o.Detector.Add(&adjusted, step.Born)
}

// Load is when the targets of a run that is being recorded have requests. It is safe for concurrent use.
type Load struct {
	catalog *catalog.Catalog

	mu        sync.Mutex
	observers []*Observer // by target
}

// NewLoad returns one that knows families as c does.
func NewLoad(c *catalog.Catalog) *Load { return &Load{catalog: c} }

// Add takes the next poll of its target and reports whether another stretch of requests began. It keeps nothing of s.
func (l *Load) Add(s *metric.Snapshot) (began bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.observers) <= s.Target {
		l.observers = append(l.observers, NewObserver(l.catalog))
	}
	o := l.observers[s.Target]
	before := o.Stretches()
	err = o.Add(s)
	return o.Stretches() != before, err
}

// Found is what there was so far.
func (l *Load) Found() traffic.Traffic {
	l.mu.Lock()
	defer l.mu.Unlock()
	return FindTraffic(l.observers)
}

// Seen reports whether a target had requests so far, as Detector.Seen does.
func (l *Load) Seen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.observers, func(o *Observer) bool { return o.Seen() })
}

// FindTraffic joins what was seen of all targets of a run.
func FindTraffic(all []*Observer) traffic.Traffic {
	detectors := make([]*traffic.Detector, len(all))
	for i, o := range all {
		detectors[i] = o.Detector
	}
	return traffic.Find(detectors)
}
