package scrape

import (
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// dictionary is the growing side of metric.Dict: it finds the index of what it
// has and appends what it has not.
type dictionary struct {
	limits Limits

	families []metric.Family
	series   []metric.Series
	slots    []metric.Slot
	buckets  []int32 // buckets of each series

	bySeries map[seriesKey]int32
	bySlot   map[slotKey]int32

	sent struct{ families, series, slots int } // what the consumer has been told
}

type seriesKey struct {
	family int32
	labels metric.Labels
}

type slotKey struct {
	series int32
	role   metric.Role
	bound  float64
}

func newDictionary(l Limits) *dictionary {
	return &dictionary{limits: l, bySeries: map[seriesKey]int32{}, bySlot: map[slotKey]int32{}}
}

func (d *dictionary) addFamily(f metric.Family) int {
	d.families = append(d.families, f)
	return len(d.families) - 1
}

// slot returns the slot of a series, adding both when they are new.
func (d *dictionary) slot(family int, pairs []metric.Label, s metric.Slot) (int32, reason) {
	key := seriesKey{int32(family), metric.NewLabels(pairs...)}
	series, known := d.bySeries[key]
	if known {
		if slot, ok := d.bySlot[slotKey{series, s.Role, s.Bound}]; ok {
			return slot, stored
		}
	}
	if len(d.slots) >= d.limits.Series {
		return -1, seriesLimit
	}
	if s.Role == metric.RoleBucket && known && int(d.buckets[series]) >= d.limits.Buckets {
		return -1, bucketLimit
	}
	if !known {
		series = int32(len(d.series))
		d.series = append(d.series, metric.Series{Family: family, Labels: key.labels})
		d.buckets = append(d.buckets, 0)
		d.bySeries[key] = series
	}
	if s.Role == metric.RoleBucket {
		d.buckets[series]++
	}
	slot := int32(len(d.slots))
	s.Series = int(series)
	s.Text = strings.Clone(s.Text)
	d.slots = append(d.slots, s)
	d.bySlot[slotKey{series, s.Role, s.Bound}] = slot
	return slot, stored
}

// growth returns what is new since the last call of told.
func (d *dictionary) growth() metric.Growth {
	return metric.Growth{
		Families: d.families[d.sent.families:],
		Series:   d.series[d.sent.series:],
		Slots:    d.slots[d.sent.slots:],
	}
}

// told marks all as delivered.
func (d *dictionary) told() {
	d.sent.families, d.sent.series, d.sent.slots = len(d.families), len(d.series), len(d.slots)
}

// busiestLabel returns the label with the most values among the newest series,
// to name the culprit when a target has too many.
func (d *dictionary) busiestLabel() (name string, values int) {
	const sample = 10_000
	seen := map[metric.Label]struct{}{}
	count := map[string]int{}
	for _, s := range d.series[max(0, len(d.series)-sample):] {
		for n, v := range s.Labels.All() {
			l := metric.Label{Name: n, Value: v}
			if _, ok := seen[l]; !ok {
				seen[l] = struct{}{}
				count[n]++
			}
		}
	}
	for n, c := range count {
		if c > values || c == values && n < name {
			name, values = n, c
		}
	}
	return name, values
}
