package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
)

// The bounds of what a timeline holds.
const (
	// maxBins is how many stretches of time are kept; at this number neighbours are joined and a stretch is twice as long.
	maxBins = 360
	// defaultSlots is how many slots of all targets together are followed.
	defaultSlots = 40_000
	// maxSpans bounds the gaps and resets that are kept of a target.
	maxSpans = 500
)

// TimelineOptions says what a timeline is of.
type TimelineOptions struct {
	// OriginNS is where its time begins: when the recording did. Polls before it count as at it.
	OriginNS int64
	// Interval is the time between two polls of a target; 0 is 333 ms.
	Interval time.Duration
	// MaxSlots is how many slots are followed over all Targets, 40,000 if 0. A slot is a value of a series, such as one
	// bucket; those that come later are counted and not drawn.
	MaxSlots int
	// Targets is how many targets share MaxSlots; 0 is 1.
	Targets int
	// Continuity are the options of the trackers, as package summary has them.
	Continuity continuity.Options
	// Catalog knows the engines; nil is the embedded one.
	Catalog *catalog.Catalog
}

// Timeline is what the series of a run looked like over time, coarse enough to be drawn: rates of counters, means and
// extremes of gauges, gains of buckets, each over stretches of equal length. Memory does not grow with the length of
// the run: when there are too many stretches, neighbours are joined.
//
// It is for pictures only. What a series gained between two polls, as package continuity counts it, is
// spread evenly over the time between them.
//
// Its methods are safe for concurrent use.
type Timeline struct {
	o TimelineOptions

	mu      sync.Mutex
	targets []*track // by index; nil for one without polls
}

// NewTimeline returns an empty timeline.
func NewTimeline(o TimelineOptions) *Timeline {
	o.Interval = cmp.Or(max(o.Interval, 0), 333*time.Millisecond)
	o.MaxSlots = cmp.Or(max(o.MaxSlots, 0), defaultSlots)
	o.Targets = max(o.Targets, 1)
	o.Catalog = cmp.Or(o.Catalog, catalog.Embedded())
	return &Timeline{o: o}
}

// width is the length of a stretch at first: no shorter than the time between two polls.
func (o *TimelineOptions) width() int64 {
	w := int64(250 * time.Millisecond)
	for w < int64(o.Interval) {
		w *= 2
	}
	return w
}

// Add takes a poll. The polls of a target come in time order and one at a time; nothing of s is kept, and one that was
// added before is ignored. It fails on a poll that does not fit those before it, as only a damaged recording has.
func (t *Timeline) Add(s *metric.Snapshot) error {
	k, err := t.track(s.Target)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.add(s)
}

func (t *Timeline) track(target int) (*track, error) {
	if target < 0 || target > 1<<20 {
		return nil, fmt.Errorf("add poll to timeline: target %d", target)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.targets) <= target {
		t.targets = append(t.targets, nil)
	}
	if t.targets[target] == nil {
		t.targets[target] = &track{tracker: continuity.New(t.o.Continuity),
			bins:     bins{origin: t.o.OriginNS, width: t.o.width()},
			interval: int64(t.o.Interval), maxLanes: max(t.o.MaxSlots/t.o.Targets, 200)}
	}
	return t.targets[target], nil
}

// bins cut time into stretches of equal length.
type bins struct {
	origin int64
	width  int64
	n      int // in use
}

// at returns the stretch that holds an instant.
func (b *bins) at(ns int64) int { return int(max(ns-b.origin, 0) / b.width) }

// span is a stretch of time.
type span struct{ start, end int64 }

// track is the timeline of one target.
type track struct {
	mu sync.Mutex
	bins
	interval int64
	maxLanes int

	tracker  *continuity.Tracker
	dict     metric.Schema
	lanes    []*lane // by slot; nil for one that is not followed
	followed int
	left     int // slots beyond maxLanes

	next        uint64 // number of the poll to come
	first, last int64  // stored polls
	failed      bool   // polls failed since the last stored one
	gaps        []span
	resets      []int64
	took        lane // seconds a scrape took, a level
}

func (k *track) add(s *metric.Snapshot) error {
	if s.Seq < k.next {
		return nil
	}
	k.next = s.Seq + 1
	at := max(s.AtNS(), k.origin)
	if !s.Outcome.Stored() {
		k.failed = k.failed || s.Outcome != metric.SkippedOverlap
		return k.grow(s)
	}
	if k.first == 0 {
		k.first, k.last = at, at
	}
	at = max(at, k.last)
	for k.bins.at(at) >= maxBins {
		k.join()
	}
	k.n = max(k.n, k.bins.at(at)+1)
	if at-k.last > 3*k.interval || k.failed && at > k.last {
		k.gap(span{k.last, at})
	}
	k.failed = false
	if err := k.grow(s); err != nil {
		return err
	}
	step, err := k.tracker.Step(s)
	if err != nil {
		return fmt.Errorf("add poll %d to timeline: %w", s.Seq, err)
	}
	k.frame(step, at)
	if k.took.n == 0 {
		k.took.level = true
	}
	k.took.set(&k.bins, at, at, s.Duration.Seconds())
	k.last = at
	return nil
}

// gap notes a stretch without a stored poll.
func (k *track) gap(g span) {
	if len(k.gaps) < maxSpans {
		k.gaps = append(k.gaps, g)
	}
}

// grow adds what is new in the dictionary and decides which slots are followed.
func (k *track) grow(s *metric.Snapshot) error {
	if err := k.dict.Extend(s); err != nil {
		return fmt.Errorf("add poll %d to timeline: %w", s.Seq, err)
	}
	for i := len(k.lanes); i < len(k.dict.Slots); i++ {
		slot := &k.dict.Slots[i]
		level, drawn := drawing(k.dict.FamilyOf(slot.Series).Type, slot.Role)
		switch {
		case !drawn:
			k.lanes = append(k.lanes, nil)
		case k.followed >= k.maxLanes:
			k.lanes, k.left = append(k.lanes, nil), k.left+1
		default:
			k.lanes, k.followed = append(k.lanes, &lane{level: level}), k.followed+1
		}
	}
	return nil
}

// drawing reports whether a slot is drawn, and whether as a level rather than by what it gains.
func drawing(t metric.Type, r metric.Role) (level, drawn bool) {
	switch r {
	case metric.RoleCreated, metric.RoleSampleTime, metric.RoleNative:
		return false, false // native buckets come from the slices of the result
	case metric.RoleQuantile:
		return true, true
	}
	switch t {
	case metric.Counter, metric.Histogram, metric.Summary:
		return false, true
	case metric.Gauge, metric.Unknown, metric.StateSet:
		return true, true
	}
	return false, false
}

// frame enters the values of a poll.
func (k *track) frame(step *continuity.Step, at int64) {
	f := &step.Delta
	for slot := range f.Absent(len(k.lanes)) {
		if l := k.lanes[slot]; l != nil {
			l.vanish(&k.bins, k.last, at)
		}
	}
	for i, slot := range f.Slots {
		l := k.lanes[slot]
		if l == nil {
			continue
		}
		id := &k.dict.Slots[slot]
		v := id.Float(f.Bits[i])
		if math.IsNaN(v) || math.IsInf(v, 0) {
			l.vanish(&k.bins, k.last, at)
			continue
		}
		if _, born := slices.BinarySearch(step.Born, int32(id.Series)); born && !l.here && !l.level {
			l.set(&k.bins, k.last, k.last, 0)
		}
		l.set(&k.bins, k.last, at, v)
	}
	for _, e := range step.Events {
		if e.Kind == continuity.Restart && len(k.resets) < maxSpans {
			k.resets = append(k.resets, max(e.AtNS, k.origin))
		}
	}
	slices.Sort(k.resets)
	k.resets = slices.Compact(k.resets)
}

// join makes every stretch twice as long.
func (k *track) join() {
	k.width *= 2
	k.n = (k.n + 1) / 2
	for _, l := range k.lanes {
		if l != nil {
			l.join()
		}
	}
	k.took.join()
}
