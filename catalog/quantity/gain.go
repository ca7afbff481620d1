package quantity

import (
	"math"
	"strconv"

	"github.com/scrapestat/scrapestat/metric"
)

// Gain is what one series did over a stretch of time: its increase, or for a gauge its values. Only the fields of its
// type are set.
type Gain struct {
	Family string // as the recording names it
	Type   metric.Type
	Labels metric.Labels
	Source int // the endpoint, where a stretch has gains of several: equal labels do not make one series of them
	Resets int // restarts that the gain was corrected for
	// Status is OK, Ambiguous, LowerBound or Refused: whether the increase is known. Low and High bound that of a counter
	// and the count of a histogram or summary unless it is OK.
	Status    Status
	Low, High float64

	// Total is the increase of a counter. Exact is the same as an integer where HasExact is set.
	Total    float64
	Exact    uint64
	HasExact bool

	// Count and Sum are the increases of a histogram; HasSum reports whether it has a sum. Buckets are cumulative,
	// ascending, with +Inf last; nil when unusable.
	Count, Sum float64
	HasSum     bool
	Buckets    []Bucket

	// TimeAvg is the mean of a gauge weighted by time.
	TimeAvg, Min, Max float64
	// First and Last are, of a counter and of a gauge, the sample that the increase is counted from and the last one, as
	// the server shows them. Slices know only a mean, which is then Last, and no First.
	First, Last float64

	// Above is the share of the time that a gauge was above each level of its family; nil when not known.
	Above []float64
	// Born reports whether a counter or histogram appeared within the stretch, at its first event. What a counter showed
	// then is part of the gain if other series of its family were there before.
	Born bool

	// Slices has what a counter, or the count of a histogram, gained in each slice of Interval.SliceSeconds; nil when not
	// known.
	Slices []float64
}

// Bucket is the cumulative increase of one bucket of a histogram.
type Bucket struct{ Upper, Count float64 }

// Interval is what an endpoint gained between two instants, Seconds apart, which are those of the polls that were
// used. Gains belong to the caller and are only read.
type Interval struct {
	Seconds float64
	EndNS   int64 // when it ended; 0 is not known
	Gains   []Gain
	// SliceSeconds are the lengths of the slices of the stretch; nil without any.
	SliceSeconds []float64
}

// Part is what of a gain a term takes.
type Part uint8

// The parts. Value, the zero value, is the increase of a counter and the last value of a gauge; Mean is the mean of a
// gauge over time.
const (
	Value Part = iota
	Count
	Sum
	Mean
	Max
	Min
	Integral // of a gauge over time: Mean times the seconds of the stretch
	First    // the sample that the increase is counted from
	Last
	Delta   // of a gauge the last less the first value, of a counter the increase
	Gained  // the increase of a counter, and of nothing else
	Present // 1: the number of series
	Over    // the observations above the largest finite bound
	Changed // 1 when a gauge was not the same all the time
)

// Of returns that part; false when a gain of its type has none.
func (p Part) Of(g *Gain) (v float64, ok bool) {
	switch {
	case p == Present:
		return 1, true
	case p == First || p == Last:
		return pick(p == First, g.First, g.Last), g.Type != metric.Histogram && g.Type != metric.Summary
	case g.Type == metric.Counter:
		return g.Total, p == Value || p == Delta || p == Gained
	case g.Type == metric.Histogram || g.Type == metric.Summary:
		return p.ofHistogram(g)
	}
	switch p {
	case Value:
		return g.Last, true
	case Mean, Integral:
		return g.TimeAvg, true
	case Max:
		return g.Max, true
	case Min:
		return g.Min, true
	case Delta:
		return g.Last - g.First, true
	case Changed:
		return pick[float64](g.Last != g.First || g.Min != g.Max, 1, 0), true
	}
	return 0, false
}

func (p Part) ofHistogram(g *Gain) (v float64, ok bool) {
	switch p {
	case Count:
		return g.Count, true
	case Sum:
		return g.Sum, g.HasSum
	case Over:
		if n := len(g.Buckets); n >= 2 {
			return g.Count - g.Buckets[n-2].Count, true
		}
	}
	return 0, false
}

func pick[T any](yes bool, a, b T) T {
	if yes {
		return a
	}
	return b
}

// IsGauge reports whether a gain is of neither a counter nor a histogram or summary.
func (g *Gain) IsGauge() bool {
	return g.Type != metric.Counter && g.Type != metric.Histogram && g.Type != metric.Summary
}

// Aggregate says how the series of a family become one number.
type Aggregate uint8

// The rules. Of counters and histograms the gains are meant, of gauges the values.
const (
	AggregateByType Aggregate = iota // counters add up, histograms merge, gauges do neither
	AggregateSum                     // add up
	AggregateMax                     // take the largest
	AggregateMean                    // the mean, each series with the same weight
	AggregateRank0                   // every rank reports the whole: add up those of rank 0
	AggregateMerge                   // pool the observations of histograms
	AggregateNever                   // no number of them means anything together
)

var aggregateNames = [...]string{"", "sum", "max", "mean", "rank0", "merge", "never"}

// AggregateNames returns the rules as files spell them, in their order; "" is none.
func AggregateNames() []string { return aggregateNames[:] }

// String returns the rule as files spell it, "" for none.
func (a Aggregate) String() string { return WordOf(aggregateNames[:], int(a)) }

// WordOf returns a word of a list, or a text that tells the number when it has none of that index.
func WordOf(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return "unknown(" + strconv.Itoa(i) + ")"
	}
	return names[i]
}

// Status says how far a derived value can be believed.
type Status uint8

// The statuses, the better first. The first ones come with a value.
const (
	OK             Status = iota
	ResetCorrected        // counters of it were reset; each restart counted from zero
	BornInWindow          // a series of it appeared in the window, and counts from zero
	Partial               // part of the input is missing, and the value says so
	Estimate              // not exact
	Bound                 // a bound of the quantity
	Ambiguous             // the true value may be another one of a known range
	LowerBound            // the true value is this or more
	ZeroDenominator
	Missing // part of the input does not exist
	Refused // what the series did cannot be told
)

var statusNames = [...]string{"ok", "reset_corrected", "born_in_window", "partial", "estimate", "bound", "ambiguous",
	"lower_bound", "zero_denominator", "missing", "refused"}

// String returns the name of the status as exports spell it.
func (s Status) String() string {
	if int(s) >= len(statusNames) {
		return "status(" + strconv.Itoa(int(s)) + ")"
	}
	return statusNames[s]
}

// ParseStatus is the inverse of String.
func ParseStatus(name string) (Status, bool) {
	for s, n := range statusNames {
		if n == name {
			return Status(s), true
		}
	}
	return Missing, false
}

// Defined reports whether there is a value.
func (s Status) Defined() bool { return s < ZeroDenominator }

// Certain reports whether a value may be judged as it is; of the others a gate knows at most a bound.
func (s Status) Certain() bool { return s < Ambiguous }

// SLOAttainment is how many of a histogram's observations are at most x.
type SLOAttainment struct {
	// Lower and Upper bound the number; they are the same where x is the bound of a bucket. Estimate lies between them:
	// linear within the bucket, and Lower above the largest bound.
	Lower, Estimate, Upper float64
	Count                  float64 // all observations
}

// Exact reports whether x is the bound of a bucket.
func (a *SLOAttainment) Exact() bool { return a.Lower == a.Upper }

// Add pools two histograms.
func (a *SLOAttainment) Add(b SLOAttainment) {
	a.Lower += b.Lower
	a.Estimate += b.Estimate
	a.Upper += b.Upper
	a.Count += b.Count
}

// AtMost counts the observations of a histogram that are at most x; false when its buckets are not usable. Bounds are
// compared as numbers: "1", "1.0".
func (g *Gain) AtMost(x float64) (a SLOAttainment, ok bool) {
	if len(g.Buckets) == 0 {
		return a, false
	}
	a.Count = g.Count
	below, under := 0.0, math.Inf(-1) // the last bound that is less than x
	for _, b := range g.Buckets {
		if math.Abs(b.Upper-x) <= 1e-9*math.Abs(x) {
			a.Lower, a.Estimate, a.Upper = b.Count, b.Count, b.Count
			return a, true
		}
		if b.Upper > x {
			return a.between(below, under, b, x), true
		}
		below, under = b.Count, b.Upper
	}
	return a.between(below, under, Bucket{math.Inf(1), g.Count}, x), true
}

// between fills in the numbers where x lies in a bucket.
func (a SLOAttainment) between(below, under float64, b Bucket, x float64) SLOAttainment {
	a.Lower, a.Estimate, a.Upper = below, below, b.Count
	if math.IsInf(under, -1) && b.Upper > 0 {
		under = min(0, x) // times and sizes are not negative
	}
	if !math.IsInf(b.Upper, 1) && !math.IsInf(under, -1) && b.Upper > under {
		a.Estimate += (b.Count - below) * (x - under) / (b.Upper - under)
	}
	return a
}
