package summary

import (
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
}

// NewObserver returns an observer of one target that knows families as c does.
func NewObserver(c *catalog.Catalog) *Observer {
	return &Observer{traffic.NewDetector(c), continuity.New(Continuity(c))}
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
	adjusted.Delta = step.Delta
	return o.Detector.Add(&adjusted, step.Born)
}

// FindTraffic joins what was seen of all targets of a run.
func FindTraffic(all []*Observer) traffic.Traffic {
	detectors := make([]*traffic.Detector, len(all))
	for i, o := range all {
		detectors[i] = o.Detector
	}
	return traffic.Find(detectors)
}
