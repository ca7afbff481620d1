package scrape

import (
	"math"

	"github.com/scrapestat/scrapestat/metric"
)

// dictionary is the growing side of metric.Schema: it finds the index of what it has and appends what it has not.
type dictionary struct {
	limits Limits
	memory *metric.MemoryShare

	families []metric.Family
	series   []metric.Series
	slots    []slot
	roles    []metric.Role     // by slot
	fresh    []metric.SampleID // those the consumer has not been told
	chains   []chain           // by series

	bySeries map[seriesKey]int32
	bounds   map[string]bound // by text: all series share the spellings

	sent struct{ families, series int } // what the consumer has been told
	told bool                           // fresh too
}

// slot is what finding a slot again takes, besides its role; the consumer has the rest.
type slot struct {
	bound  float64
	series int32
	before int32 // the previous slot of its series, or noSlot
}

// bound is the text of a bucket bound or quantile, and what it means.
type bound struct {
	text  string
	value float64
	ok    bool
}

// maxBounds bounds the memory for texts that a target makes up.
const maxBounds = 100_000

func (d *dictionary) bound(text []byte) bound {
	b, ok := d.bounds[string(text)]
	if !ok {
		b.text = string(text)
		b.value, b.ok = parseBound(b.text)
		if len(d.bounds) < maxBounds {
			d.bounds[b.text] = b
		}
	}
	return b
}

type seriesKey struct {
	family int32
	labels metric.Labels
}

// chain is the slots of a series, linked from the last one back.
type chain struct {
	last    int32
	buckets int32
	top     float64 // highest bucket bound
}

func newDictionary(l Limits) *dictionary {
	return &dictionary{limits: l, bySeries: map[seriesKey]int32{}, bounds: map[string]bound{}}
}

// reserve makes room for the first body of that many lines.
func (d *dictionary) reserve(lines int) {
	if d.slots == nil {
		d.slots, d.roles, d.fresh = make([]slot, 0, lines), make([]metric.Role, 0, lines), make([]metric.SampleID, 0, lines)
	}
}

func (d *dictionary) addFamily(f metric.Family) int {
	d.families = append(d.families, f)
	return len(d.families) - 1
}

// slot returns the slot of a series, adding both when they are new.
func (d *dictionary) slot(family int, pairs []metric.Label, s metric.SampleID) (int32, reason) {
	key := seriesKey{int32(family), metric.NewLabels(pairs...)}
	series, known := d.bySeries[key]
	if known {
		return d.slotIn(series, s)
	}
	if len(d.slots) >= d.limits.Series {
		return noSlot, seriesLimit
	}
	if !d.memory.Take(1, key.labels.Size()) {
		return noSlot, memoryLimit
	}
	series = int32(len(d.series))
	d.series = append(d.series, metric.Series{Family: family, Labels: key.labels})
	d.chains = append(d.chains, chain{last: noSlot, top: math.Inf(-1)})
	d.bySeries[key] = series
	return d.add(series, s), stored
}

// slotIn returns the slot of a known series, adding it when it is new.
func (d *dictionary) slotIn(series int32, s metric.SampleID) (int32, reason) {
	c := &d.chains[series]
	bucket := s.Role == metric.RoleBucket
	// Buckets come in ascending order: most are seen to be new without a search.
	if !bucket || s.Bound <= c.top {
		for at := c.last; at != noSlot; at = d.slots[at].before {
			if d.roles[at] == s.Role && d.slots[at].bound == s.Bound {
				return at, stored
			}
		}
	}
	switch {
	case len(d.slots) >= d.limits.Series:
		return noSlot, seriesLimit
	case bucket && int(c.buckets) >= d.limits.Buckets:
		return noSlot, bucketLimit
	case !d.memory.Take(1, 0):
		return noSlot, memoryLimit
	}
	return d.add(series, s), stored
}

// add appends a slot to those of its series.
func (d *dictionary) add(series int32, s metric.SampleID) int32 {
	c := &d.chains[series]
	s.Series = int(series)
	if s.Role == metric.RoleBucket {
		c.buckets++
		c.top = max(c.top, s.Bound)
	}
	d.fresh = append(d.fresh, s)
	d.slots, d.roles = append(d.slots, slot{s.Bound, series, c.last}), append(d.roles, s.Role)
	c.last = int32(len(d.slots) - 1)
	return c.last
}

// growth returns what is new since the last call of tell.
func (d *dictionary) growth() metric.DictDelta {
	return metric.DictDelta{
		Families: d.families[d.sent.families:],
		Series:   d.series[d.sent.series:],
		Slots:    d.fresh,
	}
}

// tell marks all as delivered.
func (d *dictionary) tell() {
	d.sent.families, d.sent.series, d.told = len(d.families), len(d.series), true
}

// release frees what was delivered, once the consumer is done with it.
func (d *dictionary) release() {
	if d.told {
		d.fresh, d.told = nil, false
	}
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

// native adds the slot of a native bucket; the caller knows that it is new.
func (d *dictionary) native(series int32, lower, upper float64) (int32, reason) {
	if len(d.slots) >= d.limits.Series {
		return noSlot, seriesLimit
	}
	if !d.memory.Take(1, 0) {
		return noSlot, memoryLimit
	}
	return d.add(series, metric.SampleID{Role: metric.RoleNative, Lower: lower, Bound: upper}), stored
}
