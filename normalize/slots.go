package normalize

import (
	"math"

	"github.com/scrapestat/scrapestat/metric"
)

// kind is who keeps a slot.
type kind uint8

const (
	kindNone kind = iota // nobody: a role that its family has no use for
	kindCounter
	kindInteger // a counter of 64-bit integers
	kindCounterCreated
	kindGauge
	kindHistogram
	kindHistogramCreated
	kindNative // a part of a native histogram
	kindNativeCreated
	kindQuantile // of a summary
)

// slot is what a slot of the dictionary is and how it was last seen; its bits
// are in Accumulator.bits. It is small because every changed value goes through it.
type slot struct {
	owner   int32 // index among the counters, integers, gauges or histograms
	pos     int32 // within its histogram; extra when the histogram does not track it
	kind    kind
	present bool
	integer bool
	// plain is set for a slot of a histogram that is present, tracked, finite and
	// no integer. Its value is only kept in its histogram.
	plain bool
}

// value is what bits mean in this slot.
func (s *slot) value(bits uint64) float64 {
	if s.integer {
		return float64(bits)
	}
	return math.Float64frombits(bits)
}

// finite reports whether bits are a finite value of this slot.
func (s *slot) finite(bits uint64) bool { return s.integer || isFinite(bits) }

// holder is the state that keeps a series; kindNone when nothing was needed yet.
type holder struct {
	kind  kind
	index int32
}

// grow gives each new slot to the state of its series. What first appears after the window has no part in it.
func (f *Accumulator) grow() {
	known := len(f.slots)
	if known == len(f.dict.Slots) && len(f.holders) == len(f.dict.Series) {
		return
	}
	f.holders = append(f.holders, make([]holder, len(f.dict.Series)-len(f.holders))...)
	added := f.dict.Slots[known:]
	f.findNatives(added)
	for i := range added {
		f.slots = append(f.slots, slot{integer: added[i].Integer})
		f.bits = append(f.bits, 0)
	}
	for i := range added {
		if f.window.to == never {
			f.assign(int32(known+i), &added[i])
		}
	}
	for _, h := range f.stale {
		f.histograms[h].arrange(f)
	}
	f.stale = f.stale[:0]
}

// assign gives a new slot to the state of its series. Roles that the type of
// the family has no use for, and a second value of a series, are left alone.
func (f *Accumulator) assign(id int32, s *metric.SampleID) {
	value, created := s.Role == metric.RoleValue, s.Role == metric.RoleCreated
	h, sl := &f.holders[s.Series], &f.slots[id]
	switch f.dict.FamilyOf(s.Series).Type {
	case metric.Counter:
		switch {
		case created:
			sl.kind, sl.owner = kindCounterCreated, int32(s.Series)
		case value && h.kind == kindNone && s.Integer:
			*h = holder{kindInteger, int32(len(f.integers))}
			f.integers = append(f.integers, counter[uint64]{track: newTrack()})
			sl.kind, sl.owner = h.kind, h.index
		case value && h.kind == kindNone:
			*h = holder{kindCounter, int32(len(f.counters))}
			f.counters = append(f.counters, counter[float64]{track: newTrack()})
			sl.kind, sl.owner = h.kind, h.index
		}
	case metric.Gauge, metric.Unknown, metric.Info, metric.StateSet:
		if value && h.kind == kindNone {
			*h = holder{kindGauge, int32(len(f.gauges))}
			f.gauges = append(f.gauges, gauge{track: newTrack()})
			sl.kind, sl.owner = h.kind, h.index
		}
	case metric.Summary:
		f.assignSummary(id, s)
	case metric.Histogram, metric.GaugeHistogram:
		if h.kind == kindNative || f.native[int32(s.Series)] {
			f.assignNative(id, s)
		} else {
			f.assignHistogram(id, s)
		}
	}
}

// findNatives notes which series are native histograms: those that have a native
// bucket when they first appear, as each has one for zero.
func (f *Accumulator) findNatives(added []metric.SampleID) {
	for i := range added {
		if s := &added[i]; s.Role == metric.RoleNative && f.holders[s.Series].kind == kindNone {
			if f.native == nil {
				f.native = map[int32]bool{}
			}
			f.native[int32(s.Series)] = true
		}
	}
}

// histogramOf returns the histogram of a series, made when there is none.
func (f *Accumulator) histogramOf(series int) int32 {
	h := &f.holders[series]
	if h.kind == kindNone {
		mode := modeCumulative
		switch f.dict.FamilyOf(series).Type {
		case metric.Summary:
			mode = modeSummary
		case metric.GaugeHistogram:
			mode = modeGauge
		}
		*h = holder{kindHistogram, int32(len(f.histograms))}
		f.histograms = append(f.histograms, newHistogram(int32(series), mode))
		f.stale = append(f.stale, h.index)
	}
	return h.index
}

// assignHistogram gives a slot to its histogram. Which bucket it is, is settled
// by histogram.arrange when all slots of the growth are known.
func (f *Accumulator) assignHistogram(id int32, s *metric.SampleID) {
	sl := &f.slots[id]
	switch s.Role {
	case metric.RoleBucket:
		if math.IsNaN(s.Bound) || math.IsInf(s.Bound, -1) {
			return
		}
		sl.kind = kindHistogram
	case metric.RoleSum, metric.RoleCount:
		sl.kind = kindHistogram
	case metric.RoleCreated:
		sl.kind = kindHistogramCreated
	default:
		return
	}
	owner := f.histogramOf(s.Series)
	sl.owner, sl.pos = owner, extra
	if n := len(f.stale); n == 0 || f.stale[n-1] != owner {
		f.stale = append(f.stale, owner)
	}
}
