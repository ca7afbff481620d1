package normalize

import (
	"cmp"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
)

// Summary is what a summary gained over the window, and the quantiles its server computed, which no window applies to.
type Summary struct {
	// Defined is false when there is nothing to take a difference of: a single sample. All but Quantiles is then 0.
	Defined  bool
	Count    int64
	Sum, Avg float64
	NoCount  bool // the server sends no count: Count is 0 and there is no Avg
	NoSum    bool // the server sends no sum
	// CountRate and SumRate are per second; HasRates is false when no time passed.
	CountRate, SumRate float64
	HasRates           bool
	// Quantiles are those of the last sample of the window, ascending. They are the
	// server's: over all it has seen, or a time of its own choice.
	Quantiles []SummaryQuantile
	Slices    []SummarySlice
}

// SummaryQuantile is a quantile as a server reports it.
type SummaryQuantile struct {
	Q     float64
	Text  string  // of Q as the server writes it
	Value float64 // NaN when the server has no data for it
}

// SummarySlice is what a summary gained within one slice.
type SummarySlice struct {
	Slice
	Count    int64
	Sum, Avg float64
}

// State is one state of a state set over the window.
type State struct {
	// Share is the part of the time the state was active, 0 to 1: each sample stands until the next one.
	Share   float64
	Last    bool // active in the last sample
	Changes int  // times it became active or inactive
	Slices  []StateSlice
}

// StateSlice is a state within one slice. Slices without any known time are left out.
type StateSlice struct {
	Slice
	Share float64
}

// Info is a series that was there. Its value, 1 by convention, means nothing.
type Info struct {
	Slices []InfoSlice
}

// InfoSlice counts the samples within one slice; slices without one are left out.
type InfoSlice struct {
	Slice
	N int
}

// GaugeHistogram is a distribution as it is at an instant, such as the sizes of
// the requests that wait: that of the last sample of the window.
type GaugeHistogram struct {
	Count    int64
	Sum, Avg float64
	NoSum    bool
	Native   bool // its buckets are those of a native histogram
	// Bounds holds the bucket bounds, Buckets the cumulative counts; as those of Histogram.
	Bounds, Buckets []Bucket
	// Quantiles is parallel to Options.Quantiles; nil when there is no estimate.
	Quantiles []histest.Estimate
	// FileQuantiles are those of Options.FileEstimator; nil without it.
	FileQuantiles []histest.Estimate
	// Slices have what the last sample in or before them showed.
	Slices []HistogramSlice
}

// histogramMode is what the values of a histogram mean.
type histogramMode uint8

const (
	modeCumulative histogramMode = iota // they only grow
	modeGauge                           // they are as of now
	modeSummary                         // count and sum only grow, there are no buckets
)

// gaugeHistogram turns the result of a histogram that is a gauge.
func gaugeHistogram(h *Histogram) *GaugeHistogram {
	if h == nil {
		return nil
	}
	return &GaugeHistogram{Count: h.Count, Sum: h.Sum, Avg: h.Avg, NoSum: h.NoSum, Native: h.Native != nil,
		Bounds: h.Bounds, Buckets: h.Buckets, Quantiles: h.Quantiles, FileQuantiles: h.FileQuantiles,
		Slices: h.Slices}
}

// summary turns the result of a histogram without buckets.
func (h *histogram) summary(f *Accumulator, e *estimated) *Summary {
	r, t := e.histogram, e.track
	if r == nil {
		return nil
	}
	s := &Summary{Count: r.Count, Sum: r.Sum, Avg: r.Avg, NoSum: r.NoSum, CountRate: r.CountRate, SumRate: r.SumRate,
		HasRates: r.HasRates}
	if s.Defined = t.samples > 1 || t.ref >= 0; !s.Defined {
		*s = Summary{NoCount: s.NoCount, NoSum: s.NoSum}
	}
	counted := h
	if h.common == nil {
		counted = h.idle()
	}
	s.NoCount = !counted.usesCount()
	s.HasRates = s.HasRates && !s.NoCount
	for i, id := range h.quantiles {
		present, bits := f.slots[id].present, f.bits[id]
		if h.quantilesEnd != nil {
			present, bits = h.quantilesEnd[i].present, h.quantilesEnd[i].bits
		}
		if present {
			slot := &f.dict.Slots[id]
			s.Quantiles = append(s.Quantiles, SummaryQuantile{slot.Bound, slot.Text, f.slots[id].value(bits)})
		}
	}
	sortQuantiles(s.Quantiles)
	for i := range r.Slices {
		sl := &r.Slices[i]
		s.Slices = append(s.Slices, SummarySlice{sl.Slice, sl.Count, sl.Sum, sl.Avg})
	}
	return s
}

// quantileEnd is a quantile when the window closed.
type quantileEnd struct {
	present bool
	bits    uint64
}

// keepQuantiles notes the quantiles at the end of the window.
func (h *histogram) keepQuantiles(f *Accumulator) {
	if h.mode != modeSummary {
		return
	}
	h.quantilesEnd = make([]quantileEnd, len(h.quantiles))
	for i, id := range h.quantiles {
		h.quantilesEnd[i] = quantileEnd{f.slots[id].present, f.bits[id]}
	}
}

// info returns nil when the window has no sample.
func (g *gauge) info(v *view) (*Info, track) {
	s, t := g.result(v, nil)
	if s == nil {
		return nil, t
	}
	out := &Info{}
	for i := range s.Slices {
		out.Slices = append(out.Slices, InfoSlice{s.Slices[i].Slice, s.Slices[i].N})
	}
	return out, t
}

// state returns nil when the window has no sample.
func (g *gauge) state(v *view) (*State, track) {
	t := g.track
	t.settle(v.polls.to, v.polls)
	if t.samples == 0 {
		return nil, t
	}
	runs := make([]run, 0, len(g.runs))
	for _, r := range g.runs {
		r.to = min(r.to, v.polls.to)
		if r.value != 0 {
			r.value = 1
		}
		if k := len(runs) - 1; k >= 0 && runs[k].to == r.from && runs[k].value == r.value {
			runs[k].to = r.to
			continue
		}
		if r.from < r.to {
			runs = append(runs, r)
		}
	}
	last := runs[len(runs)-1].value
	out := &State{Last: last != 0}
	for i := 1; i < len(runs); i++ {
		if runs[i].value != runs[i-1].value {
			out.Changes++
		}
	}
	first, end := v.times[runs[0].from], v.times[runs[len(runs)-1].to-1]
	var ok bool
	if out.Share, ok = activeShare(runs, v.times, first, end); !ok {
		out.Share = last // all samples are of one instant
	}
	if !v.sliced {
		return out, t
	}
	for _, sl := range v.grid {
		if share, ok := activeShare(runs, v.times, sl.StartNS, sl.EndNS); ok {
			out.Slices = append(out.Slices, StateSlice{sl, share})
		}
	}
	return out, t
}

// activeShare is the part of the known time from start to end in which runs of 0
// and 1 are 1; ok is false when none of that time is known.
func activeShare(runs []run, times []int64, start, end int64) (share float64, ok bool) {
	var active, total float64
	for i, r := range runs {
		until := times[r.to-1]
		if i+1 < len(runs) && runs[i+1].from == r.to {
			until = times[r.to]
		}
		from, to := max(times[r.from], start), min(until, end)
		if from >= to {
			continue
		}
		total += seconds(to - from)
		active += r.value * seconds(to-from)
	}
	if total == 0 {
		return 0, false
	}
	return active / total, true
}

// assignSummary gives a slot to the state of a summary.
func (f *Accumulator) assignSummary(id int32, s *metric.SampleID) {
	if s.Role != metric.RoleQuantile {
		f.assignHistogram(id, s)
		return
	}
	if math.IsNaN(s.Bound) {
		return
	}
	h := f.histogramOf(s.Series)
	f.slots[id].kind, f.slots[id].owner = kindQuantile, h
	f.histograms[h].quantiles = append(f.histograms[h].quantiles, id)
}

func sortQuantiles(q []SummaryQuantile) {
	slices.SortStableFunc(q, func(a, b SummaryQuantile) int { return cmp.Compare(a.Q, b.Q) })
}
