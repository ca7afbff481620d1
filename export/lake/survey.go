package lake

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/scrapestat/scrapestat/internal/gain"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// target is a server of the run while it is added.
type target struct {
	rec        Recording
	within     int // of the recording
	endpoint   int // of the run
	adjustment *gain.Adjustment
	dict       metric.Schema
	series     []seen
	polls      int32
	atNS       int64  // of the last stored poll
	present    []bool // by slot
	touched    []int  // series of the present poll
}

// seen is what a pass over a target finds of a series.
type seen struct {
	firstNS, lastNS int64
	live            int   // slots that are there
	since           int32 // poll from which it is there
	rows            int
	changes         int
	origin          float64  // the first value that is a number
	begun           bool     // there was one
	layouts         []layout // of a classic histogram: sets of buckets, one after the other
	touched         bool
}

// layout is a set of buckets that a histogram has from a poll on.
type layout struct {
	from  int32
	slots []int32
}

// entry is a row of table series: a series, or a stretch of it with the same buckets.
type entry struct {
	target     *target
	series     int
	generation int
	status     string
}

func (e *entry) family() *metric.Family { return e.target.dict.FamilyOf(e.series) }

func (e *entry) seen() *seen { return &e.target.series[e.series] }

// stretch is the polls of the entry, from <= poll < to.
func (e *entry) stretch() (from, to int32) {
	layouts := e.seen().layouts
	from, to = 0, e.target.polls
	if e.generation > 0 {
		from = layouts[e.generation].from
	}
	if e.generation+1 < len(layouts) {
		to = layouts[e.generation+1].from
	}
	return from, to
}

// buckets are the slots of the entry's classic buckets.
func (e *entry) buckets() []int32 {
	if s := e.seen(); len(s.layouts) > 0 {
		return s.layouts[e.generation].slots
	}
	return nil
}

// survey reads a target once: what there is, and how much.
func (t *target) survey(ctx context.Context, r *summary.Run) error {
	if r.Endpoints[t.endpoint].Eventful {
		var err error
		if t.adjustment, err = gain.Adjust(ctx, summary.Continuity(r.Options.Catalog), t.rec, t.within); err != nil {
			return err
		}
	}
	for s, err := range t.rec.Snapshots(ctx, t.within) {
		if err == nil {
			err = t.dict.Extend(s)
		}
		if err != nil {
			return fmt.Errorf("read polls of %s: %w", r.Endpoints[t.endpoint].Shown(), err)
		}
		t.present = append(t.present, make([]bool, len(t.dict.Slots)-len(t.present))...)
		t.series = append(t.series, make([]seen, len(t.dict.Series)-len(t.series))...)
		if !s.Outcome.Stored() {
			continue
		}
		t.touched = t.touched[:0]
		for i, id := range s.Delta.Slots {
			t.change(int(id), true)
			slot := &t.dict.Slots[id]
			v, f := slot.Float(s.Delta.Bits[i]), &t.series[slot.Series]
			if !f.begun && slot.Role == metric.RoleValue && metric.Finite(v) {
				f.begun, f.origin = true, v
			}
		}
		for id := range s.Delta.Absent(len(t.present)) {
			if t.present[id] {
				t.change(id, false)
			}
		}
		for _, series := range t.touched {
			t.touch(series, s.AtNS())
		}
		t.polls, t.atNS = t.polls+1, s.AtNS()
	}
	for i := range t.series {
		if f := &t.series[i]; f.live > 0 {
			f.rows, f.lastNS = f.rows+int(t.polls-f.since), t.atNS
		}
	}
	return nil
}

// change takes over that a slot changed, and whether it is there now.
func (t *target) change(id int, now bool) {
	slot := &t.dict.Slots[id]
	f := &t.series[slot.Series]
	if !f.touched {
		f.touched, t.touched = true, append(t.touched, slot.Series)
	}
	if f.changes++; t.present[id] == now || slot.Role.Metadata() {
		return
	}
	if t.present[id] = now; now {
		f.live++
	} else {
		f.live--
	}
}

// touch takes over that slots of a series changed in the present poll.
func (t *target) touch(series int, at int64) {
	f := &t.series[series]
	f.touched = false
	switch was := f.firstNS != 0 && f.since >= 0; {
	case f.live > 0 && !was:
		f.since, f.firstNS = t.polls, cmp.Or(f.firstNS, at)
	case f.live == 0 && was:
		f.rows, f.lastNS, f.since = f.rows+int(t.polls-f.since), t.atNS, -1
	}
	if t.adjustment.Held(t.polls) || t.dict.FamilyOf(series).Type != metric.Histogram {
		return
	}
	var slots []int32
	for _, id := range t.dict.SlotsOf(series) {
		if t.dict.Slots[id].Role == metric.RoleBucket && t.present[id] {
			slots = append(slots, id)
		}
	}
	slices.SortFunc(slots, func(a, b int32) int { return cmp.Compare(t.dict.Slots[a].Bound, t.dict.Slots[b].Bound) })
	if n := len(f.layouts); len(slots) > 0 && (n == 0 || !slices.Equal(f.layouts[n-1].slots, slots)) {
		f.layouts = append(f.layouts, layout{t.polls, slots})
	}
}

// entries are the rows of table series, in the order of their ids; leftOut counts series that the lake has no form for.
func entries(targets []*target) (all []*entry, leftOut int) {
	for _, t := range targets {
		for series := range t.series {
			f := t.dict.FamilyOf(series)
			if t.series[series].firstNS == 0 {
				continue
			}
			if f.Type == metric.GaugeHistogram {
				leftOut++
				continue
			}
			for g := range max(1, len(t.series[series].layouts)) {
				all = append(all, &entry{target: t, series: series, generation: g})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.family().Name, b.family().Name), cmp.Compare(a.family().Type, b.family().Type),
			cmp.Compare(a.target.endpoint, b.target.endpoint),
			a.target.dict.Series[a.series].Labels.Compare(b.target.dict.Series[b.series].Labels),
			cmp.Compare(a.series, b.series), cmp.Compare(a.generation, b.generation))
	})
	return all, leftOut
}
