package normalize

import (
	"math"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
)

// view is what the results of all series share: the window as it stands.
type view struct {
	resets ResetMode
	polls  span
	times  []int64
	from   int64 // the window in time, in which gauges stand; until 0 is up to the last poll
	until  int64
	parts  [][2]int64 // in which they stand alone; nil for all of it
	sliced bool
	clip   bool // Options.Clip
	torn   bool // Accumulator.torn
	// watched is that of the target; gauges share it.
	watched *Watched
	grid    []Slice
	first   []int32 // by slice, and one more: the first poll at or after its start
	runs    []run   // scratch, as spare
	spare   []run
}

// scratch is memory that polls use again and again.
type scratch struct {
	gained []float64 // by position in a histogram
	cum    []float64
	delta  histest.Delta
}

// view settles where the window ends: polls after endNS that showed nothing new
// are left out, as AIPerf does with a duplicate final scrape.
func (f *Accumulator) view(endNS int64) (*view, int64) {
	v := &view{resets: f.o.Resets, times: f.times, polls: f.window, sliced: f.width > 0, from: f.o.StartNS, until: endNS,
		parts: f.span.Parts, clip: f.o.Clip, torn: f.torn()}
	v.polls.to = min(v.polls.to, int32(len(f.times)))
	if v.polls.from > v.polls.to {
		v.polls = span{0, 0} // nothing yet
	}
	if f.o.EndNS != 0 && (endNS == 0 || endNS > f.o.EndNS) {
		endNS = f.o.EndNS
	}
	if endNS != 0 {
		cut := int32(len(f.times))
		for cut > f.changed+1 && cut > v.polls.from && f.times[cut-1] > endNS {
			cut--
		}
		v.polls.to = min(v.polls.to, cut)
	}
	if v.polls.from < v.polls.to {
		endNS = max(endNS, v.times[v.polls.to-1])
	}
	v.watch()
	return v, max(endNS, f.o.StartNS)
}

// cut makes the slices of the window.
func (v *view) cut(start, end, width int64) bool {
	var ok bool
	if v.clip && v.until > start {
		end = v.until
	}
	if v.grid, ok = grid(start, end, width); !ok {
		v.sliced = false
		return false
	}
	v.first = make([]int32, len(v.grid)+1)
	n := v.polls.from
	for k := range v.first {
		boundary := end
		if k < len(v.grid) {
			boundary = v.grid[k].StartNS
		}
		for n < v.polls.to && v.times[n] < boundary {
			n++
		}
		v.first[k] = n
	}
	for n < v.polls.to && (!v.clip || v.times[n] == end) {
		n++
	}
	v.first[len(v.grid)] = n
	return true
}

// reference is the poll that gains are counted from.
func (t *track) reference() int32 {
	if t.ref >= 0 {
		return t.ref
	}
	return t.first
}

// Result returns the statistics of what was added so far. endNS is the nominal end of the window, up to which
// slices are cut: for an open window the later of the end of the profiling phase and the last update. Samples
// after it count too, except those of trailing polls that changed nothing. With endNS 0 the window ends at
// Options.EndNS, or at the last poll when that is open.
//
// The result is the caller's; only its Dict shares memory with the fold: the
// families, series and slots in it stay as they are while the fold goes on.
func (f *Accumulator) Result(endNS int64) *Result { return f.ResultEach(endNS, inTurn) }

// Each calls f(0) to f(n-1), each of them once, and returns when all calls have
// returned. They may run in any order and at the same time.
type Each func(n int, f func(i int))

func inTurn(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}

// ResultEach is Result with its costly part, the estimates of the histograms, handed to each: histogram by histogram,
// as what they are made of is not shared. This package starts no goroutines; a caller that has processors to spare does
// so in each. The result is the same, bit for bit. What an estimate needs beyond its result is freed with the call, so
// the memory in use at a time grows with the calls that run at a time, never with the number of histograms.
//
// When each leaves calls out, their histograms have no statistics.
func (f *Accumulator) ResultEach(endNS int64, each Each) *Result {
	out := f.result(endNS, each)
	if f.aiperf == nil {
		return out
	}
	aiperf := f.aiperf.result(endNS, each)
	if f.whole {
		return beside(aiperf, out, f.pauses == nil && f.aiperf.o.Resets == ResetAdjust)
	}
	return clamped(aiperf, out)
}

// beside is our result with that of AIPerf's arithmetic at each series; with alike a series has the same numbers where
// both are counted from and up to the same polls.
func beside(aiperf, ours *Result, alike bool) *Result {
	at := 0
	for i := range ours.Series {
		s := &ours.Series[i]
		for at < len(aiperf.Series) && aiperf.Series[at].Index < s.Index {
			at++
		}
		if at == len(aiperf.Series) || aiperf.Series[at].Index != s.Index || s.Increase.Status == continuity.Refused {
			s.AIPerf = nil
			continue
		}
		their := &aiperf.Series[at]
		if alike && their.RefNS == s.RefNS && their.FirstNS == s.FirstNS && their.LastNS == s.LastNS {
			continue
		}
		if s.AIPerf = their; their.AIPerf != nil {
			s.AIPerf = their.AIPerf
		}
	}
	return ours
}

// clamped is the result of AIPerf's arithmetic with ours where it differs: a series with an event, or that was born,
// is ours and has AIPerf's beside it.
func clamped(aiperf, ours *Result) *Result {
	at := 0
	var series []Series
	for i := range ours.Series {
		s := &ours.Series[i]
		for at < len(aiperf.Series) && aiperf.Series[at].Index < s.Index {
			series, at = append(series, aiperf.Series[at]), at+1
		}
		if at == len(aiperf.Series) || aiperf.Series[at].Index != s.Index {
			series = append(series, *s) // of older bodies alone
			continue
		}
		raw := aiperf.Series[at]
		at++
		if s.Increase.Status == continuity.OK && s.AIPerf == nil {
			raw.Increase = s.Increase
			series = append(series, raw)
			continue
		}
		if s.Resets > 0 {
			raw.Resets = s.Resets
			raw.Warnings = append(raw.Warnings, metric.Warnf("counter_reset",
				"%d resets inside the window: what was gained before them is lost", s.Resets))
		}
		if s.AIPerf = &raw; s.Increase.Status == continuity.Refused {
			s.AIPerf = nil
		}
		series = append(series, *s)
	}
	aiperf.Series = append(series, aiperf.Series[at:]...)
	return aiperf
}

func (f *Accumulator) result(endNS int64, each Each) *Result {
	f.grow() // the tracker may know more
	v, end := f.view(endNS)
	dict := *f.dict
	out := &Result{StartNS: f.o.StartNS, EndNS: end, Dict: &dict}
	if v.polls.from < v.polls.to {
		if out.LastNS = v.times[v.polls.to-1]; v.polls.from > 0 {
			out.RefNS = v.times[v.polls.from-1]
		}
	}
	if v.sliced && !v.cut(f.o.StartNS, end, f.width) {
		out.Warnings = append(out.Warnings, metric.Warnf("too_many_slices",
			"slices of %d ns would cut the window into more than %d; none were made", f.width, maxSlices))
	}
	for k := range v.grid {
		out.SlicePolls = append(out.SlicePolls, v.first[k+1]-v.first[k])
	}
	hollow, first := 0, 0
	ready := make([]estimated, len(f.histograms))
	each(len(ready), func(i int) { ready[i] = f.estimate(&f.histograms[i], v) })
	for series := range f.holders {
		s, ok := f.series(series, v, ready)
		if ok {
			out.Series = append(out.Series, s)
		} else if s.NonFinite > 0 {
			if hollow == 0 {
				first = series
			}
			hollow++
			if out.NonFinite == nil {
				out.NonFinite = map[string]int{}
			}
			out.NonFinite[dict.FamilyOf(series).Name] += s.NonFinite
		}
	}
	if hollow > 0 {
		out.Warnings = append(out.Warnings, metric.Warnf("only_non_finite",
			"series without statistics, as all their samples are NaN or infinite: %d; the first is %s%s",
			hollow, dict.FamilyOf(first).Name, dict.Series[first].Labels))
	}
	if f.unkept > 0 {
		out.Warnings = append(out.Warnings, metric.Warnf("observation_limit",
			"%d logged events beyond the first %d are not in the distributions", f.unkept, maxObserved))
	}
	return out
}

// estimated is what a histogram's result returned; unborn is that of AIPerf's counting where it differs.
type estimated struct {
	histogram *Histogram
	warnings  []metric.Warning
	track     track
	unborn    *estimated
}

func (f *Accumulator) estimate(h *histogram, v *view) (e estimated) {
	e.histogram, e.warnings, e.track = h.result(f, v)
	if h.differs() {
		e.unborn = &estimated{}
		e.unborn.histogram, e.unborn.warnings, e.unborn.track = h.unborn().result(f, v)
	}
	return e
}

// series returns the statistics of one series; ok is false when it has none,
// and only Index and NonFinite are set then. Those of histograms are ready.
func (f *Accumulator) series(index int, v *view, ready []estimated) (s Series, ok bool) {
	if s, ok = f.counted(index, v, ready, false); !ok {
		return s, false
	}
	if f.born(index) {
		if u, ok := f.counted(index, v, ready, true); ok {
			u.Warnings = append(u.Warnings, u.doubts()...)
			s.AIPerf = &u
		}
	}
	if f.o.Resets == ResetAdjust {
		f.judge(&s, v)
	}
	s.Warnings = append(s.Warnings, s.doubts()...)
	return s, true
}

// born reports whether a series counts from zero in the window.
func (f *Accumulator) born(index int) bool {
	switch h := f.holders[index]; h.kind {
	case kindCounter:
		return f.counters[h.index].born
	case kindInteger:
		return f.integers[h.index].born
	case kindHistogram:
		return f.histograms[h.index].differs()
	}
	return false
}

// counted makes the statistics of a series, of one that is born from zero or, as AIPerf does, from its first sample.
func (f *Accumulator) counted(index int, v *view, ready []estimated, unborn bool) (s Series, ok bool) {
	var t track
	s.Index = index
	switch h := f.holders[index]; h.kind {
	case kindCounter:
		s.Counter, t = f.counters[h.index].as(unborn).result(v)
	case kindInteger:
		s.Counter, t = f.integers[h.index].as(unborn).result(v)
	case kindGauge:
		t = f.gaugeOf(&s, &f.gauges[h.index], v)
	case kindHistogram:
		e := &ready[h.index]
		if unborn {
			e = e.unborn
		}
		t = e.track
		f.histogramAs(&s, &f.histograms[h.index], e)
	case kindNative:
		n := &f.natives[h.index]
		var r *Histogram
		r, s.Warnings, t = n.result(f, v)
		if n.gauge {
			s.GaugeHistogram = gaugeHistogram(r)
		} else {
			s.Histogram = r
		}
	}
	s.CreatedNS = f.createdNS(f.holders[index])
	if s.empty() {
		return Series{Index: index, NonFinite: int(t.drops)}, false
	}
	s.Samples, s.Gaps, s.NonFinite = int(t.samples), int(t.gaps), int(t.drops)
	s.HasRef = t.ref >= 0
	if r := t.reference(); r >= 0 {
		s.RefNS = v.times[r]
	}
	if t.samples > 0 {
		s.FirstNS, s.LastNS = v.times[t.first], v.times[t.final]
	}
	s.Distribution = f.distribution(index)
	return s, true
}

// judge gives a series that grows its increase. A refused one keeps no number.
func (f *Accumulator) judge(s *Series, v *view) {
	gained, ok := s.Gained()
	if !ok {
		return
	}
	from := s.RefNS
	if !s.HasRef {
		from-- // how the first sample came counts
	}
	// What happened after the series was last seen was in the window, too.
	to := v.times[v.polls.to-1]
	if f.window.to == never { // nothing follows it, also where that was left out of the view or not believed
		to = v.times[len(v.times)-1]
	}
	verdict := f.o.Tracker.Verdict(s.Index, from, to)
	if s.LastNS < to {
		// What was held back when it was last seen, and booked after that, is not in its numbers.
		if seen := f.o.Tracker.Verdict(s.Index, from, s.LastNS); seen.Status > verdict.Status {
			verdict = seen
		}
	}
	if v.torn && verdict.Status < continuity.Ambiguous {
		verdict.Status, verdict.Low, verdict.High = continuity.Ambiguous, math.Inf(-1), math.Inf(1)
	}
	s.Increase = verdict.Increase(gained)
	s.Resets = s.Increase.Restarts
	if c := s.Counter; c != nil && s.Increase.Value != gained {
		c.Rate *= s.Increase.Value / gained
		c.Total, c.HasExact = s.Increase.Value, false
	} else if c != nil {
		s.Increase.Exact, s.Increase.HasExact = c.Exact, c.HasExact
	}
	if s.Increase.Status == continuity.Refused {
		s.Counter, s.Histogram, s.Summary, s.AIPerf = nil, nil, nil, nil
	}
}

// createdNS returns when a series began, 0 when that is not known.
func (f *Accumulator) createdNS(h holder) int64 {
	var created metric.Created
	switch h.kind {
	case kindCounter:
		created = f.counters[h.index].created
	case kindInteger:
		created = f.integers[h.index].created
	case kindHistogram:
		created = f.histograms[h.index].created
	case kindNative:
		created = f.natives[h.index].created
	}
	return created.NS()
}

// empty reports whether there are no statistics.
func (s *Series) empty() bool {
	return s.Counter == nil && s.Gauge == nil && s.Histogram == nil && s.Summary == nil && s.Info == nil &&
		s.State == nil && s.GaugeHistogram == nil
}

// gaugeOf sets what a series of values is, by the type of its family.
func (f *Accumulator) gaugeOf(s *Series, g *gauge, v *view) (t track) {
	switch f.dict.FamilyOf(s.Index).Type {
	case metric.Info:
		s.Info, t = g.info(v)
	case metric.StateSet:
		s.State, t = g.state(v)
	default:
		if s.Gauge, t = g.result(v, f.o.Quantiles); s.Gauge != nil && f.o.Levels != nil {
			s.Gauge.Above = g.above(v, f.o.Levels(f.dict.FamilyOf(s.Index).Name))
		}
	}
	return t
}

// histogramAs sets what a histogram is, by its mode.
func (f *Accumulator) histogramAs(s *Series, h *histogram, e *estimated) {
	s.Warnings = e.warnings
	switch h.mode {
	case modeGauge:
		s.GaugeHistogram = gaugeHistogram(e.histogram)
	case modeSummary:
		s.Summary = h.summary(f, e)
	default:
		s.Histogram = e.histogram
	}
}

// doubts returns the warnings that follow from the counts of a series.
func (s *Series) doubts() []metric.Warning {
	var out []metric.Warning
	warn := func(code, format string, args ...any) {
		out = append(out, metric.Warnf(code, format, args...))
	}
	if s.Resets > 0 && s.Increase.Status.Defined() {
		warn("counter_reset", "%d resets inside the window: counted from zero after each", s.Resets)
	}
	if s.Gaps > 0 {
		warn("gap", "vanished and came back %d times inside the window", s.Gaps)
	}
	if s.NonFinite > 0 {
		warn("non_finite", "%d samples inside the window were NaN or infinite and left out", s.NonFinite)
	}
	if s.Counter != nil && !s.Counter.Defined || s.Summary != nil && !s.Summary.Defined {
		warn("single_sample", "a single sample: nothing to take a difference of")
	}
	return out
}
