package normalize

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
)

// Options are the statistics that an [Accumulator] makes.
type Options struct {
	// StartNS and EndNS are the window, inclusive at both ends. EndNS 0 leaves it open: everything from StartNS on counts.
	StartNS, EndNS int64
	// Slice is the width of timeslices, counted from StartNS; 0 makes none.
	Slice  time.Duration
	Resets ResetMode
	// Tracker decides what changes mean; nil is one of the accumulator's own. Who gives one steps it and passes the
	// steps to [Accumulator.AddStep], so that the windows of one target share its decisions.
	Tracker *continuity.Tracker
	// Estimator names the estimator of histogram quantiles, see package histest; "" is the polynomial one.
	Estimator string
	// FileEstimator, where it is another one, makes Histogram.FileQuantiles of the same fold: those of files beside those
	// of screens; "" makes none.
	FileEstimator string
	// Quantiles are those of gauges and histograms, 0 to 1, in any order; nil gives [AIPerfQuantiles].
	Quantiles []float64
	// SliceQuantiles asks for the quantiles of every histogram slice, estimated from the slice's own gain alone.
	SliceQuantiles bool
	// Levels returns the levels of a family of gauges such that the time above
	// them is worth knowing; nil is none of any family.
	Levels func(family string) []float64
	// Clip ends the slices where the window does, the last one with all that is published after it, and gives gauges
	// Gauge.Clipped.
	Clip bool
	// Mergeable keeps in each result what [MergeHistograms] needs.
	Mergeable bool
	// MergeableFamily, where not nil, names families to which that applies anyway.
	MergeableFamily func(name string) bool
}

// inFiles is the estimator of what only files show.
func (o *Options) inFiles() string { return cmp.Or(o.FileEstimator, o.Estimator) }

// AIPerfQuantiles returns the nine quantiles that AIPerf exports.
func AIPerfQuantiles() []float64 {
	return []float64{0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99}
}

// Accumulator gathers the statistics of one target over one window. It has one owner
// and is not safe for concurrent use.
type Accumulator struct {
	o     Options
	width int64 // of a slice; 0 for none
	// aiperf has AIPerf's arithmetic beside ours: on raw values under ResetClamp, and as Span.Whole says.
	aiperf *Accumulator
	whole  bool    // Span.Whole, where that makes a difference
	pauses *pauses // nil for none
	// doubtful are by series observations of histograms that may be of what went before the window.
	doubtful map[int32]int64

	dict    *metric.Schema // of the tracker
	slots   []slot
	bits    []uint64 // by slot, as last seen
	holders []holder // by series

	counters   []counter[float64]
	integers   []counter[uint64]
	gauges     []gauge
	histograms []histogram
	natives    []native
	native     map[int32]bool // series whose histogram is native

	span    Span    // as given to Begin
	times   []int64 // of the stored polls
	window  span    // the polls inside the window
	changed int32   // the last poll that changed anything
	bound   int32   // boundaries of slices before the present poll

	touchedNatives []int32

	touched []int32 // histograms changed by the present poll
	stale   []int32 // histograms with slots that are not arranged yet

	observed       map[int][]observed // by series: events inside the window
	events, unkept int                // how many there are, and were beyond the limit

	scratch scratch
}

// NewFold returns an empty fold. It refuses a window that starts before 1970 or
// ends before it starts, a negative slice, a quantile outside 0 to 1 and an unknown estimator.
func NewFold(o Options) (*Accumulator, error) {
	if o.StartNS < 0 {
		return nil, fmt.Errorf("make fold: window starts at %d ns, before 1970", o.StartNS)
	}
	if o.EndNS != 0 && o.EndNS < o.StartNS {
		return nil, fmt.Errorf("make fold: window ends at %d ns, before its start at %d ns", o.EndNS, o.StartNS)
	}
	if o.Slice < 0 {
		return nil, fmt.Errorf("make fold: slice width %v: slice_duration must be positive", o.Slice)
	}
	if o.Resets > ResetClamp {
		return nil, fmt.Errorf("make fold: unknown reset mode %d", o.Resets)
	}
	if o.Quantiles == nil {
		o.Quantiles = AIPerfQuantiles()
	}
	for _, q := range o.Quantiles {
		if !(q >= 0 && q <= 1) {
			return nil, fmt.Errorf("make fold: quantile %v is not between 0 and 1", q)
		}
	}
	o.Estimator = cmp.Or(o.Estimator, histest.Polynomial)
	if o.FileEstimator == o.Estimator {
		o.FileEstimator = ""
	}
	for _, name := range []string{o.Estimator, cmp.Or(o.FileEstimator, o.Estimator)} {
		if _, err := histest.New(name, []float64{1}); err != nil {
			return nil, fmt.Errorf("make fold: %w", err)
		}
	}
	o.Quantiles = slices.Clone(o.Quantiles)
	if o.Tracker == nil {
		o.Tracker = continuity.New(continuity.Options{})
	}
	f := newAccumulator(o)
	if o.Resets == ResetClamp {
		f.aiperf = newAccumulator(o)
		f.o.Resets = ResetAdjust
	}
	return f, nil
}

func newAccumulator(o Options) *Accumulator {
	f := &Accumulator{o: o, dict: o.Tracker.Schema(), window: span{never, never}, changed: -1}
	if o.Slice > 0 {
		f.width = max(1, int64(o.Slice.Seconds()*1e9)) // AIPerf's float product: 1.001 s is 1000999999 ns
	}
	return f
}

// Span is the window of an [Accumulator].
type Span struct {
	StartNS, EndNS int64 // as in Options
	// LastNS is where not 0 the time up to which polls count in place of EndNS: what is published late, or before it
	// so that no poll is in two windows.
	LastNS int64
	// SnapStart and SnapEnd let what is gained be counted from, and up to, the poll nearest to the edge, also when that
	// is beyond it: where nobody polled at the edge itself. Without them that holds for a poll that was made because of
	// a mark there.
	SnapStart, SnapEnd bool
	// Parts are the stretches of a window with gaps, ascending, as start and end: gauges stand within them alone. None is
	// all of the window. What is gained between them counts, unless Pause is set.
	Parts [][2]int64
	Pause bool
	// Whole gives series Series.AIPerf where the window has pauses or snaps, as AIPerf's have none and do not.
	Whole bool
}

// Begin sets the window of an accumulator whose Options.StartNS was far in the future, while its polls lie before it.
func (f *Accumulator) Begin(s Span) {
	if n := len(f.times); n > 0 {
		s.StartNS = max(s.StartNS, f.times[n-1]+1)
	}
	f.o.StartNS, f.o.EndNS, f.span = s.StartNS, s.EndNS, s
	if s.Pause {
		f.pauses = pausesOf(s.Parts)
	}
	f.whole = s.Whole && (s.SnapStart || s.SnapEnd || f.pauses != nil)
	if f.whole && f.aiperf == nil && len(f.times) == 0 {
		f.aiperf = newAccumulator(f.o)
	}
	if f.aiperf != nil {
		if s.Pause = false; f.whole {
			s.SnapStart, s.SnapEnd = false, false
		}
		f.aiperf.Begin(s)
	}
}

// Opened reports whether the window has begun.
func (f *Accumulator) Opened() bool { return f.window.from != never }

// Closed reports whether the window has ended.
func (f *Accumulator) Closed() bool { return f.window.to != never }

// Cut makes all that the histograms of some families gained so far belong to what goes before the window.
func (f *Accumulator) Cut(families []int) {
	for i := range f.histograms {
		if h := &f.histograms[i]; slices.Contains(families, f.dict.Series[h.series].Family) {
			h.cut(f)
		}
	}
}

// Late adds gains by slot that came after the window and belong to it. Series.AIPerf has them where they came.
func (f *Accumulator) Late(gains map[int32]float64) {
	for i := range f.histograms {
		h := &f.histograms[i]
		for p, id := range h.ids {
			if g := gains[id]; g != 0 && h.ref != nil {
				if h.late == nil {
					h.late = make([]float64, len(h.ids))
				}
				h.late[p] += g
			}
		}
	}
}

// Doubt tells how many observations of each series may be of what went before the window, published late: for
// Histogram.Late of results from now on, which share the map.
func (f *Accumulator) Doubt(bySeries map[int32]int64) { f.doubtful = bySeries }

// snaps reports whether a poll at an edge or beyond it, the first one, stands for it, being nearer than the one before.
func (f *Accumulator) snaps(edge int64, any bool, s *metric.Snapshot) bool {
	n, at := len(f.times), s.AtNS()
	return n > 0 && at >= edge && at-edge < edge-f.times[n-1] && f.times[n-1] < edge && (any || s.Kind == metric.Boundary)
}

// Add takes the next poll. It keeps nothing of s. Polls come in the order of their times; one that goes back in
// time, or that refers to slots which are not in the dictionary, is refused: such a stream is damaged and the
// accumulator is of no further use. A poll without samples only grows the dictionary.
func (f *Accumulator) Add(s *metric.Snapshot) error {
	err := f.inTime(s)
	var step *continuity.Step
	if err == nil {
		step, err = f.o.Tracker.Step(s)
	}
	if err != nil {
		return fmt.Errorf("add poll %d of target %d: %w", s.Seq, s.Target, err)
	}
	return f.AddStep(s, step)
}

// AddStep is Add with what Options.Tracker made of the poll, which it checked. A nil step takes it as it was sent.
func (f *Accumulator) AddStep(s *metric.Snapshot, step *continuity.Step) error {
	if f.aiperf != nil {
		seen := step
		if f.aiperf.o.Resets == ResetClamp {
			seen = nil
		}
		if err := f.aiperf.take(s, seen); err != nil {
			return err
		}
	}
	return f.take(s, step)
}

// take takes the next poll as what it is taken for; nil is as it was sent.
func (f *Accumulator) take(s *metric.Snapshot, step *continuity.Step) error {
	f.grow()
	if err := f.inTime(s); err != nil {
		return fmt.Errorf("add poll %d of target %d: %w", s.Seq, s.Target, err)
	}
	if !s.Outcome.Stored() {
		return nil
	}
	at := s.AtNS()
	n := int32(len(f.times))
	if f.window.from == never && at >= f.o.StartNS {
		if !f.snaps(f.o.StartNS, f.span.SnapStart, s) { // else this poll is what is counted from
			f.open(n)
		}
	}
	if last := cmp.Or(f.span.LastNS, f.o.EndNS); f.window.to == never && last != 0 && at > last {
		if !f.snaps(last, f.span.SnapEnd, s) {
			f.close(n)
		}
	}
	f.times = append(f.times, at)
	if f.window.to != never && f.o.Resets != ResetClamp {
		return nil // nothing after the window matters
	}
	if f.width > 0 && f.window.has(n) {
		f.bound = int32(min(boundariesBefore(f.o.StartNS, f.width, at), maxSlices))
	}
	delta, adjusted := &s.Delta, step != nil && !step.Plain(s)
	if adjusted {
		delta = &step.Delta
	}
	if f.pauses != nil {
		f.pauses.enter(at)
		delta = f.pauses.hold(f, delta)
	}
	f.apply(delta, n, adjusted)
	if adjusted {
		f.setRaw(&s.Delta, n)
	}
	f.step(n)
	if step != nil && n >= f.window.from && (f.pauses == nil || !f.pauses.in) {
		f.bear(step.Born, n)
	}
	if len(s.Observations) > 0 && f.window.has(n) {
		if err := f.observe(s.Observations); err != nil {
			return fmt.Errorf("add poll %d of target %d: %w", s.Seq, s.Target, err)
		}
	}
	return nil
}

// bear makes series that first appeared in poll n count from zero.
func (f *Accumulator) bear(born []int32, n int32) {
	for _, series := range born {
		switch h := f.holders[series]; h.kind {
		case kindCounter:
			f.counters[h.index].birth(f, n)
		case kindInteger:
			f.integers[h.index].birth(f, n)
		case kindHistogram:
			f.histograms[h.index].birth(f, n)
		case kindNative:
			f.natives[h.index].birth(f, n)
		}
	}
}

// inTime refuses a poll with samples that goes back in time.
func (f *Accumulator) inTime(s *metric.Snapshot) error {
	if !s.Outcome.Stored() {
		return nil
	}
	at := s.AtNS()
	if at < 0 {
		return fmt.Errorf("time %d ns is before 1970", at)
	}
	if n := len(f.times); n > 0 && at < f.times[n-1] {
		return fmt.Errorf("time %d ns is before the previous poll at %d ns", at, f.times[n-1])
	}
	return nil
}

// open begins the window with poll n: what is known now is the reference.
func (f *Accumulator) open(n int32) {
	f.window.from = n
	for i := range f.counters {
		f.counters[i].open(n)
	}
	for i := range f.integers {
		f.integers[i].open(n)
	}
	for i := range f.gauges {
		f.gauges[i].open(n)
	}
	for i := range f.histograms {
		f.histograms[i].open(f, n)
	}
	for i := range f.natives {
		f.natives[i].open(n)
	}
}

// close ends the window before poll n. Later polls only teach the estimators, and that under ResetClamp alone.
func (f *Accumulator) close(n int32) {
	f.window.to = n
	for i := range f.histograms {
		f.histograms[i].close(f)
	}
	for i := range f.slots {
		if k := f.slots[i].kind; k != kindHistogram && k != kindHistogramCreated {
			f.slots[i].kind = kindNone
		}
	}
}

// apply takes over the samples of poll n. Of native histograms adjusted ones are only their counts.
func (f *Accumulator) apply(fr *metric.Delta, n int32, adjusted bool) {
	f.vanish(fr, n, adjusted)
	for i := 0; i < len(fr.Slots); i++ {
		id, bits := fr.Slots[i], fr.Bits[i]
		s := &f.slots[id]
		if s.kind == kindHistogram {
			i = f.setHistogram(fr, i, n)
			continue
		}
		if s.kind == kindNative {
			if h := &f.natives[s.owner]; h.count == int32(id) {
				h.counted = s.value(bits)
				f.queueNative(s.owner)
			}
		}
		if s.kind == kindNative && !adjusted || s.kind == kindQuantile {
			f.setPart(id, bits, n)
		}
		if s.kind == kindNative || s.kind == kindQuantile {
			continue
		}
		if s.present && f.bits[id] == bits {
			continue
		}
		f.changed, f.bits[id], s.present = n, bits, true
		switch s.kind {
		case kindCounter:
			f.setCounter(&f.counters[s.owner], bits, n)
		case kindInteger:
			f.integers[s.owner].set(f, bits, n)
		case kindGauge:
			f.setGauge(s, bits, n)
		case kindCounterCreated:
			f.setCounterCreated(s, bits)
		case kindHistogramCreated:
			f.setHistogramCreated(s, bits)
		case kindNativeCreated:
			f.setNativeCreated(s, bits)
		}
	}
}

// step makes samples of what changed in poll n.
func (f *Accumulator) step(n int32) {
	for _, h := range f.touched {
		f.histograms[h].step(f, n)
	}
	f.touched = f.touched[:0]
	for _, h := range f.touchedNatives {
		f.natives[h].step(f, n)
	}
	f.touchedNatives = f.touchedNatives[:0]
}

// vanish handles the slots that a full frame does not list.
func (f *Accumulator) vanish(fr *metric.Delta, n int32, adjusted bool) {
	for id := range fr.Absent(len(f.slots)) {
		s := &f.slots[id]
		if !s.present || adjusted && s.kind == kindNative {
			continue
		}
		f.changed = n
		switch s.kind {
		case kindCounter:
			f.counters[s.owner].track.set(absent, n, f.window)
		case kindInteger:
			f.integers[s.owner].track.set(absent, n, f.window)
		case kindGauge:
			f.gauges[s.owner].leave(absent, n, f.window)
		case kindHistogram:
			f.vanishHistogram(s, f.bits[id])
		case kindNative, kindQuantile:
			f.vanishPart(id)
		}
		s.present = false
	}
}

// isFinite reports whether the bits of a float64 are neither infinite nor NaN.
func isFinite(bits uint64) bool { return bits>>52&0x7ff != 0x7ff }

// finite brings a computed value into the range of float64: a difference or sum
// beyond it becomes its largest value, an undefined one 0.
func finite(v float64) float64 {
	switch {
	case v-v == 0: // neither infinite nor NaN
		return v
	case v > 0:
		return math.MaxFloat64
	case v < 0:
		return -math.MaxFloat64
	}
	return 0
}
