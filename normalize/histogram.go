package normalize

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
)

// extra is the position of a slot that its histogram does not track: a bucket
// that appeared after the layout was frozen.
const extra = -1

// histogram is the state of a histogram. Its values are kept by position: the buckets by ascending bound, then
// the count, then the sum. NaN stands for a slot that the sample does not have; under ResetClamp it is 0, as in
// AIPerf. As with counters, all but the sum never fall but under ResetClamp.
//
// The layout is frozen at the reference (ResetClamp: at the first sample): from then on buckets can only be lost.
type histogram struct {
	track     track
	series    int32
	mode      histogramMode
	quantiles []int32 // slots of a summary's quantiles
	// quantilesEnd are those when the window closed; nil before.
	quantilesEnd []quantileEnd
	ids          []int32 // slots by position; -1 for none
	bounds       []float64
	cur, prev    []float64 // this poll, the last sample
	ref          []float64 // what gains are counted from
	bornBound    int32     // boundaries before it are before the birth
	first        []float64 // sample of one that was born inside the window and so is counted from zero; else nil
	moved        bool      // first is the reference, of which what is published late was taken off
	end          []float64 // prev when the window closed
	late         []float64 // what was gained after that and belongs to it; nil for nothing
	common       []bool    // by position: in every sample since the reference

	est       histest.Estimator // nil without a finite bound
	fileEst   histest.Estimator // of Options.FileEstimator, nil without
	estBounds []float64
	estAt     []int32 // positions of estBounds; nil when they are the first ones

	present, bad  int32 // slots that are there, and those not finite
	segments      int32
	bound         int32 // boundaries of slices before the last change
	layout        uint64
	seen, frozen  bool
	dirty, queued bool
	created       metric.Created
	line          changeLog
}

func newHistogram(series int32, mode histogramMode) histogram {
	return histogram{track: newTrack(), series: series, mode: mode, segments: 1}
}

// buckets, countAt and sumAt say what is at which position.
func (h *histogram) buckets() int { return len(h.bounds) }
func (h *histogram) countAt() int { return len(h.bounds) }
func (h *histogram) sumAt() int   { return len(h.bounds) + 1 }

// infAt returns the position of the +Inf bucket, -1 without one.
func (h *histogram) infAt() int {
	if n := len(h.bounds) - 1; n >= 0 && math.IsInf(h.bounds[n], 1) {
		return n
	}
	return -1
}

// arrange takes in new slots of the dictionary.
func (h *histogram) arrange(f *Accumulator) {
	var ids []int32
	count, sum := int32(-1), int32(-1)
	for _, id := range f.dict.SlotsOf(int(h.series)) {
		switch s := &f.dict.Slots[id]; {
		case f.slots[id].kind != kindHistogram:
		case s.Role == metric.RoleBucket:
			ids = append(ids, id)
		case s.Role == metric.RoleCount && count < 0:
			count = id
		case s.Role == metric.RoleSum && sum < 0:
			sum = id
		}
	}
	bound := func(id int32) float64 { return f.dict.Slots[id].Bound }
	if h.frozen {
		ids = slices.Clone(h.ids[:h.buckets()])
	} else {
		slices.SortStableFunc(ids, func(a, b int32) int { return cmp.Compare(bound(a), bound(b)) })
		ids = slices.CompactFunc(ids, func(a, b int32) bool { return bound(a) == bound(b) })
	}
	h.place(f, append(ids, count, sum))
}

// place gives positions to the slots ids, buckets first, and moves the values there.
func (h *histogram) place(f *Accumulator, ids []int32) {
	missing := h.missing(f)
	cur, prev := make([]float64, len(ids)), make([]float64, len(ids))
	for p, id := range ids {
		cur[p], prev[p] = missing, missing
		if id >= 0 && f.slots[id].pos != extra {
			cur[p], prev[p] = h.cur[f.slots[id].pos], h.prev[f.slots[id].pos]
		}
	}
	for p, id := range h.ids {
		if id < 0 {
			continue
		}
		if f.slots[id].plain {
			f.bits[id] = math.Float64bits(h.cur[p])
		}
		f.slots[id].pos, f.slots[id].plain = extra, false
	}
	h.ids, h.cur, h.prev = ids, cur, prev
	h.bounds = make([]float64, len(ids)-2)
	for p, id := range ids {
		if id >= 0 {
			f.slots[id].pos = int32(p)
		}
		if p < len(h.bounds) {
			h.bounds[p] = f.dict.Slots[id].Bound
		}
	}
	if len(f.scratch.gained) < len(ids) {
		f.scratch.gained = make([]float64, 2*len(ids))
		f.scratch.cum = make([]float64, 2*len(ids))
	}
}

// missing is the value of a slot that is not there.
func (h *histogram) missing(f *Accumulator) float64 {
	if h.frozen && f.o.Resets == ResetClamp {
		return 0
	}
	return math.NaN()
}

// setHistogram takes over the slots of one histogram, beginning with slot i of
// the frame of poll n, and returns the position of the last one.
func (f *Accumulator) setHistogram(fr *metric.Delta, i int, n int32) int {
	slots, ids := f.slots, fr.Slots[i:]
	values := fr.Bits[i:][:len(ids)]
	owner := slots[ids[0]].owner
	h := &f.histograms[owner]
	k, moved := setPlain(h.cur, slots, ids, values, owner)
	for k < len(ids) {
		s, bits := &slots[ids[k]], values[k]
		if s.kind != kindHistogram || s.owner != owner {
			break
		}
		if id := ids[k]; s.plain || !s.present || f.bits[id] != bits {
			moved = 1
			h.set(s, f.bits[id], bits)
			f.bits[id] = bits
		}
		more, differ := setPlain(h.cur, slots, ids[k+1:], values[k+1:], owner)
		k, moved = k+1+more, moved|differ
	}
	if moved != 0 {
		f.changed = n
		f.queue(h, owner)
	}
	return i + k - 1
}

// setPlain takes over the first slots of ids as long as they are plain ones of a histogram and their values finite. It
// returns how many those are, and bits that are 0 when no value differs.
func setPlain(cur []float64, slots []slot, ids []uint32, values []uint64, owner int32) (k int, moved uint64) {
	values = values[:len(ids)]
	for k, id := range ids {
		s, bits := &slots[id], values[k]
		if !s.plain || s.owner != owner || !isFinite(bits) { // only histograms have plain slots
			return k, moved
		}
		at := &cur[s.pos]
		moved |= math.Float64bits(*at) ^ bits
		*at = math.Float64frombits(bits)
	}
	return len(ids), moved
}

// set takes over a slot that may appear or be no number. old are its bits before;
// those of a plain slot are out of date, but finite as well.
func (h *histogram) set(s *slot, old, bits uint64) {
	if !s.present {
		h.present++
		h.dirty = true
	} else if !s.finite(old) {
		h.bad--
	}
	if !s.finite(bits) {
		h.bad++
	}
	if s.pos != extra {
		h.cur[s.pos] = s.value(bits)
	}
	s.present = true
	s.plain = s.pos != extra && !s.integer && isFinite(bits)
}

func (f *Accumulator) queue(h *histogram, index int32) {
	if !h.queued {
		h.queued = true
		f.touched = append(f.touched, index)
	}
}

// vanishHistogram handles a slot that is no longer there; old as in set.
func (f *Accumulator) vanishHistogram(s *slot, old uint64) {
	h := &f.histograms[s.owner]
	h.present--
	if !s.finite(old) {
		h.bad--
	}
	h.dirty, s.plain = true, false
	if s.pos != extra {
		h.cur[s.pos] = h.missing(f)
	}
	f.queue(h, s.owner)
}

func (f *Accumulator) setHistogramCreated(s *slot, bits uint64) {
	h := &f.histograms[s.owner]
	h.created.Set(s.value(bits))
}

// step takes over the changed slots of poll n as a sample.
func (h *histogram) step(f *Accumulator, n int32) {
	h.queued = false
	state := absent
	if h.present > 0 {
		state = good
		if h.bad > 0 {
			state = bad
		}
	}
	if state != h.track.state {
		h.track.set(state, n, f.window)
	}
	switch {
	case state != good:
	case !h.seen:
		h.begin(f, n)
	case n < f.window.from:
		h.relayout(f, n)
		copy(h.prev, h.cur)
	default:
		h.advance(f, n)
	}
}

// begin takes the first sample.
func (h *histogram) begin(f *Accumulator, n int32) {
	h.seen = true
	if f.o.Resets == ResetClamp {
		h.freezeClamp(f)
	}
	h.relayout(f, n)
	h.segments = 1
	copy(h.prev, h.cur)
	if n >= f.window.from {
		h.freeze(f)
	}
}

// freezeClamp fixes the buckets to those of the first sample.
func (h *histogram) freezeClamp(f *Accumulator) {
	var ids []int32
	for p, id := range h.ids {
		if p >= h.buckets() || !math.IsNaN(h.cur[p]) {
			ids = append(ids, id)
		}
	}
	h.place(f, ids)
	h.frozen = true
	for p := range h.cur {
		if math.IsNaN(h.cur[p]) {
			h.cur[p] = 0
		}
	}
}

// open begins the window at poll n.
func (h *histogram) open(f *Accumulator, n int32) {
	h.track.open(n)
	h.segments, h.first, h.moved = 1, nil, false
	if h.seen {
		h.freeze(f)
	}
}

// freeze makes the last sample the reference.
func (h *histogram) freeze(f *Accumulator) {
	h.frozen = true
	h.ref = slices.Clone(h.prev)
	h.common = make([]bool, len(h.prev))
	for p := range h.common {
		h.common[p] = !math.IsNaN(h.prev[p])
	}
	h.makeEstimator(f)
}

func (h *histogram) close(f *Accumulator) {
	h.keepQuantiles(f)
	if h.seen {
		h.end = slices.Clone(h.prev)
	}
}

// relayout notes a changed set of buckets in poll n.
func (h *histogram) relayout(f *Accumulator, n int32) {
	if !h.dirty {
		return
	}
	h.dirty = false
	sum := fnv.New64a()
	for _, id := range f.dict.SlotsOf(int(h.series)) {
		if f.slots[id].present && f.dict.Slots[id].Role == metric.RoleBucket {
			sum.Write([]byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)})
		}
	}
	if layout := sum.Sum64(); layout != h.layout {
		h.layout = layout
		if n < f.window.to {
			h.segments++
		}
	}
	if h.common == nil {
		return
	}
	lost := false
	for p := range h.common {
		if h.common[p] && math.IsNaN(h.cur[p]) {
			h.common[p] = false
			lost = lost || p < h.buckets()
		}
	}
	if lost {
		h.makeEstimator(f)
	}
}

// makeEstimator begins to learn for the finite bounds that are common.
func (h *histogram) makeEstimator(f *Accumulator) {
	h.est, h.fileEst, h.estBounds, h.estAt = nil, nil, nil, nil
	var at []int32
	for p, b := range h.bounds {
		if h.common[p] && !math.IsInf(b, 1) {
			at = append(at, int32(p))
			h.estBounds = append(h.estBounds, b)
		}
	}
	if len(at) == 0 {
		return
	}
	if at[len(at)-1] != int32(len(at)-1) {
		h.estAt = at
	}
	h.est = newEstimator(f.o.Estimator, h.estBounds)
	if f.o.FileEstimator != "" {
		h.fileEst = newEstimator(f.o.FileEstimator, h.estBounds)
	}
}

// newEstimator makes an estimator whose name was tried in NewFold, for bounds that ascend.
func newEstimator(name string, bounds []float64) histest.Estimator {
	est, err := histest.New(name, bounds)
	if err != nil {
		return nil // not reached
	}
	return est
}

// advance takes a changed sample of poll n inside the window, or after it.
func (h *histogram) advance(f *Accumulator, n int32) {
	if f.bound > h.bound {
		h.mark(f.bound)
	}
	h.relayout(f, n)
	cur := h.cur
	if h.mode == modeGauge {
		copy(h.prev, cur)
		return
	}
	gained, prev := f.scratch.gained[:len(cur)], h.prev[:len(cur)]
	for p, v := range cur {
		gained[p] = v - prev[p]
		prev[p] = v
	}
	if h.est != nil && h.common[h.sumAt()] && h.usesCount() {
		h.learn(f, gained)
	}
}

// birth makes the first sample, that of poll n, count from zero. The estimator does not learn from it: how long it
// took to gain that is not known.
func (h *histogram) birth(f *Accumulator, n int32) {
	if !h.seen || h.ref == nil {
		return
	}
	h.first, h.track.ref = slices.Clone(h.prev), n-1
	for p := range h.ref {
		if h.common[p] {
			h.ref[p] = 0
		}
	}
	h.bornBound = f.bound
}

// cut makes what was gained up to now belong to what goes before the window.
func (h *histogram) cut(f *Accumulator) {
	if h.ref == nil {
		return
	}
	if h.first == nil {
		h.first, h.moved = h.ref, true
	}
	h.ref, h.bornBound = slices.Clone(h.prev), f.bound
	h.makeEstimator(f)
}

// unborn is the histogram as AIPerf counts it: from its first sample, and from the last one before the window up to the
// last one in it.
func (h *histogram) unborn() *histogram {
	u := *h
	if u.late = nil; h.first == nil {
		return &u
	}
	if u.ref = h.first; !h.moved {
		u.track.ref = -1
	}
	return &u
}

// learn shows the estimator what was gained between two samples.
func (h *histogram) learn(f *Accumulator, gained []float64) {
	d := &f.scratch.delta
	h.fill(d, f.scratch.cum, gained)
	d.Count = gained[h.counter()]
	d.Sum = gained[h.sumAt()]
	h.est.Interval(d)
	if h.fileEst != nil {
		h.fileEst.Interval(d)
	}
}

// differs reports whether AIPerf counts it in another way.
func (h *histogram) differs() bool { return h.first != nil || h.late != nil }

// counter returns the position whose gain is the number of observations: the
// count, or the +Inf bucket where the server sends no count.
func (h *histogram) counter() int {
	if p := h.infAt(); !h.common[h.countAt()] && p >= 0 {
		return p
	}
	return h.countAt()
}

// fill makes the input of the estimator from gains by position, except count and
// sum. Bounds that are not the first ones are gathered in cum.
func (h *histogram) fill(d *histest.Delta, cum, gained []float64) {
	d.Bounds, d.Cum = h.estBounds, gained[:len(h.estBounds)]
	if h.estAt != nil {
		d.Cum = cum[:len(h.estBounds)]
		for i, p := range h.estAt {
			d.Cum[i] = gained[p]
		}
	}
	d.Inf, d.HasInf = 0, false
	if p := h.infAt(); p >= 0 && h.common[p] {
		d.Inf, d.HasInf = gained[p], true
	}
}

// mark writes down the values at the boundaries before bound.
func (h *histogram) mark(bound int32) {
	h.bound = bound
	h.line.floats(bound, h.prev)
}
