package normalize

import (
	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
)

// Result is the statistics of one target over one window.
type Result struct {
	StartNS, EndNS int64 // the window, inclusive at both ends
	// RefNS and LastNS are the polls that gains are counted from and up to, 0 where there is none: that before the
	// window, and the last one in it.
	RefNS, LastNS int64
	// Series holds an entry for each series with statistics, in dictionary order.
	Series   []Series
	Dict     *metric.Schema   // what the indices of Series refer to; not to be changed
	Warnings []metric.Warning // about the window as a whole
	// SlicePolls is how many polls each slice has; nil without slices.
	SlicePolls []int32
	// NonFinite counts, by the name of their family, the samples of series that have no finite one.
	NonFinite map[string]int
}

// Series is the statistics of one series. Exactly one of the first seven pointers is set, by the type of its
// family: unknown families are treated as gauges, as AIPerf does. None is set where the increase is refused.
type Series struct {
	Index     int // into Result.Dict.Series
	Counter   *Counter
	Gauge     *Gauge
	Histogram *Histogram

	Summary        *Summary
	Info           *Info
	State          *State // of a state set, whose states are series of their own
	GaugeHistogram *GaugeHistogram

	// Increase is what a counter gained, or the count of a histogram or summary, and how sure that is.
	Increase continuity.Increase
	// AIPerf is the series by AIPerf's arithmetic where that gives other numbers: from the first sample of a series that
	// is counted from zero, and under ResetClamp of raw values. Else nil; also where the increase is refused.
	AIPerf *Series

	// Distribution is that of single events, where the source logs them; nil otherwise.
	Distribution *Distribution

	// CreatedNS is when the server says the series began, the last time if that
	// changed; 0 when it does not say. Gauges have none.
	CreatedNS int64

	Samples         int   // samples inside the window
	FirstNS, LastNS int64 // the first and last of them
	RefNS           int64 // time of the sample gains are counted from: the reference, or the first
	HasRef          bool  // there is a reference sample before the window, or a poll at which the series was still to come
	Resets          int   // restarts inside the window
	Gaps            int   // times the series vanished and came back inside the window
	NonFinite       int   // samples inside the window that were left out as not finite
	Warnings        []metric.Warning
}

// Gained returns what its statistics have as the gain: the total of a counter, the count of a histogram or summary. ok
// is false where there is none.
func (s *Series) Gained() (gain float64, ok bool) {
	switch {
	case s.Counter != nil:
		return s.Counter.Total, true
	case s.Histogram != nil:
		return float64(s.Histogram.Count), true
	case s.Summary != nil:
		return float64(s.Summary.Count), true
	}
	return 0, false
}

// Slice is one timeslice of the window: [StartNS, EndNS).
type Slice struct {
	StartNS, EndNS int64
	Partial        bool // cut short by the end of the window
}

// Counter is the statistics of a counter.
type Counter struct {
	// Defined is false when there is nothing to take a difference of (a single
	// sample); Total and Rate are then 0 and only AIPerf's form shows them.
	Defined bool
	Total   float64
	Rate    float64 // Total per second from reference to last sample; 0 when they coincide
	// Exact is the total as an integer, for series of integers; HasExact says so.
	Exact    uint64
	HasExact bool
	// First and Last are the sample that Total is counted from and the last one, as
	// the server shows them: a restart between them is not corrected for.
	First, Last float64
	// SliceRates summarises the rates of the complete slices; nil without one.
	SliceRates *Spread
	Slices     []CounterSlice
	Sliced     bool // slices were asked for; Slices may still be empty
}

// Spread is mean, extremes and sample standard deviation (n-1; 0 for n=1).
type Spread struct{ Avg, Min, Max, Std float64 }

// CounterSlice is the increase within one slice.
type CounterSlice struct {
	Slice
	Total, Rate float64
}

// Gauge is the statistics of a gauge over its finite samples, each with weight 1.
type Gauge struct {
	Spread
	N         int // finite samples inside the window
	NonFinite int // NaN and infinite samples, left out
	// Quantiles is parallel to Options.Quantiles: numpy's linear interpolation.
	Quantiles []float64
	TimeAvg   float64 // mean weighted by the time each sample stood
	StoodNS   int64   // that time altogether, of that in Watched
	Watched   *Watched
	// Clipped is the gauge as a step function over exactly the window; nil unless Options.Clip asks for it, and where it
	// stood for no time.
	Clipped *Clipped
	// Above is the share of the time above each of Options.Levels, as TimeAvg counts it.
	Above []float64
	First float64
	Last  float64
	// Ref is the last sample before the window, where a counter is counted from, or First when there is none.
	Ref    float64
	Slices []GaugeSlice
}

// Watched is the time of a window for which a target was watched: a gauge that is in all its polls stands for all of
// it.
type Watched struct {
	FromNS, ToNS int64
	NS           int64 // from one to the other, without the pauses of the window
	Polls        int
}

// Clipped is a gauge weighted by time, from the value that stood when the window began to its end.
type Clipped struct {
	Spread              // Std is that of all of the time
	Quantiles []float64 // parallel to Options.Quantiles: at or below which the gauge was for that share of the time
}

// GaugeSlice is a gauge within one slice.
type GaugeSlice struct {
	Slice
	Avg, Min, Max float64
	N             int
}

// Histogram is what a histogram gained over the window.
type Histogram struct {
	Count    int64
	Late     int64 // of Count, at most: may not be of the window, as published late; bounds of quantiles allow for it
	Sum, Avg float64
	NoSum    bool // the server sends no sum (ResetAdjust): Sum, Avg and SumRate are 0
	// CountRate and SumRate are per second; HasRates is false when no time passed.
	CountRate, SumRate float64
	HasRates           bool
	// Bounds holds the bucket bounds that Buckets and the Counts of slices refer
	// to, ascending, +Inf last. Their Count is 0.
	Bounds []Bucket
	// Buckets holds the cumulative gains, parallel to Bounds; nil when they are not usable (a reset under ResetClamp).
	Buckets []Bucket
	// Quantiles is parallel to Options.Quantiles; nil when there is no estimate.
	Quantiles []histest.Estimate
	// FileQuantiles are those of Options.FileEstimator; nil without it.
	FileQuantiles []histest.Estimate
	Slices        []HistogramSlice
	// Segments counts the bucket layouts seen inside the window; 1 is usual.
	Segments int
	// Gain is what Quantiles were made of, for [MergeHistograms]; nil unless
	// Options.Mergeable asked for it, and where there can be no estimate.
	Gain *histest.Gain
	// FileGain is what FileQuantiles were made of, as Gain is.
	FileGain *histest.Gain
	// Native is set for a native histogram: the server makes its buckets as it needs them, and Bounds has those
	// that gained something, with the ends of the empty stretches between them.
	Native *Native
}

// Native is what a native histogram is made of.
type Native struct {
	Spans         Intervals // gained
	Estimator     string    // of the quantiles
	FileEstimator string    // of the FileQuantiles
}

// Bucket is the cumulative gain of one bucket.
type Bucket struct {
	Text  string  // the bound as the server writes it
	Upper float64 // the bound, +Inf for the last
	Count int64
}

// HistogramSlice is what a histogram gained within one slice.
type HistogramSlice struct {
	Slice
	Count    int64
	Sum, Avg float64
	// Counts is parallel to Histogram.Bounds; nil when not usable.
	Counts    []int64
	Quantiles []histest.Estimate // nil unless asked for
}

// ResetMode is what a counter that falls means.
type ResetMode uint8

// The modes: ResetAdjust, the default, sums what package continuity makes of the values; ResetClamp adds AIPerf's
// arithmetic, last minus reference and never below 0, as [Series.AIPerf].
const (
	ResetAdjust ResetMode = iota
	ResetClamp
)
