package sweep

import (
	"cmp"
	"math"
	"slices"
)

// State is whether a server kept up with a load.
type State string

// The states.
const (
	Stable    State = "stable"
	Over      State = "over-saturated" // requests pile up
	AtLimit   State = "at the limit"   // of a load of so many at once: a part of them waits all the time
	Undecided State = "undecided"      // more requests at the end, which may be chance
	Draining  State = "draining"       // it begins with the queue of the point before it
	Restart   State = "restart"        // a server restarted
	Unknown   State = "unknown"        // Point.Why says what is missing
)

// The units of a load.
const (
	PerSecond  = "req/s"
	Concurrent = "concurrent"
)

// Value is a number of a point, NaN where there is none, for the reason Why. Low and High are provable bounds, both the
// value where it is exact. Weight is how many observations it is of, 0 where that is not known.
type Value struct {
	Value, Low, High, Weight float64
	Why                      string
}

// exact is a value without bounds.
func exact(v, weight float64) Value { return Value{Value: v, Low: v, High: v, Weight: weight} }

// known reports whether there is a number.
func (v *Value) known() bool { return v.Why == "" && !math.IsNaN(v.Value) }

// Point is what a server did under a load.
type Point struct {
	Load     float64
	Measured bool   // nobody told the load: it is that of the arrivals
	Label    string // the phase, or the run
	Run      string
	// StartNS and EndNS are the window, Seconds its length.
	StartNS, EndNS int64
	Seconds        float64
	// X is requests ended per second, Arrivals those that came by the balance of flow, Refused the share of them that
	// was not taken; NaN where that is not known.
	X, Arrivals, Refused float64
	// Values are by the names of rows of package headline, such as ttft_mean, and of Columns.
	Values map[string]Value
	// Waiting and Running are requests of all replicas by timeslice of Slice seconds; nil where they are not shown.
	Waiting, Running []float64
	Slice            float64
	Restarts         int
	// Doubt is why X must not be judged, "" where it may be.
	Doubt string
	// Follows is the point of the same list that came right before this one in the same run, from 1; 0 for none.
	Follows int
	// Bound is what the point was bound by as package explain tells it: a class of queue such as kv, "" for none;
	// QueueShare is the part of the time of requests that was queueing. Missing is what would be needed to tell, where it
	// cannot be told.
	Bound      string
	QueueShare float64
	Missing    []string

	Front string // what MarkFront finds: front, dominated, or ""

	// What Analyse finds.
	State             State
	Why               string  // of Unknown
	Accumulation, Err float64 // the share of the work done that piled up, and its standard error; NaN for none
	// MeanWaiting and MeanRunning are over the window.
	MeanWaiting, MeanRunning float64
	Limit                    string // the resource that bound it, "" for none
	Repeats                  []Point
}

// Value returns a value by name, with a reason where there is none.
func (p *Point) Value(name string) Value {
	v, ok := p.Values[name]
	if !ok {
		v = Value{Value: math.NaN(), Low: math.NaN(), High: math.NaN(), Why: "not shown"}
	}
	if v.Why == "" && (math.IsNaN(v.Value) || math.IsInf(v.Value, 0)) {
		v.Why = "no number"
	}
	return v
}

// usable reports whether the numbers of a point are those of its own load and of one life of its servers.
func (p *Point) usable() bool { return p.State != Draining && p.State != Restart }

// byLoad returns the points by load, those of one load as repeats of one.
func byLoad(points []Point, unit string) (out []Point) {
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Load, b.Load), cmp.Compare(a.Run, b.Run), cmp.Compare(a.StartNS, b.StartNS),
			cmp.Compare(a.Label, b.Label), cmp.Compare(a.X, b.X))
	})
	for from := 0; from < len(points); {
		to := from + 1
		for to < len(points) && points[to].Load == points[from].Load {
			to++
		}
		if p := points[from]; to > from+1 {
			out = append(out, pooled(points[from:to], unit))
		} else {
			p.Repeats = points[from:to]
			out = append(out, p)
		}
		from = to
	}
	return out
}

// counted are the repeats that a point is made of: those that are usable and whose state can be told, else all.
func (p *Point) counted() []Point {
	of := slices.DeleteFunc(slices.Clone(p.Repeats), func(p Point) bool { return !p.usable() || p.State == Unknown })
	if len(of) == 0 {
		return p.Repeats
	}
	return of
}

// pooled makes one point of repeats. Rates are of all their time, means of
// all their observations. A percentile of all lies between the bounds of the repeats; its value is their mean.
func pooled(all []Point, unit string) Point {
	p := Point{Repeats: all}
	of := p.counted()
	p = of[0]
	p.Repeats, p.Values, p.Missing = all, map[string]Value{}, nil
	p.X, p.Arrivals, p.Refused = mean(of, func(p *Point) float64 { return p.X }),
		mean(of, func(p *Point) float64 { return p.Arrivals }), mean(of, func(p *Point) float64 { return p.Refused })
	p.QueueShare = mean(of, func(p *Point) float64 { return p.QueueShare })
	p.MeanWaiting, p.MeanRunning = mean(of, func(p *Point) float64 { return p.MeanWaiting }),
		mean(of, func(p *Point) float64 { return p.MeanRunning })
	p.Seconds, p.Err = 0, 0
	p.Accumulation = mean(of, func(p *Point) float64 { return p.Accumulation })
	bounds := map[string]int{}
	for i := range of {
		p.Measured = p.Measured || of[i].Measured
		p.Seconds += of[i].Seconds
		p.Err += of[i].Err * of[i].Err / float64(len(of)*len(of))
		p.Missing = append(p.Missing, of[i].Missing...)
		if bounds[of[i].Bound]++; bounds[of[i].Bound] > bounds[p.Bound] {
			p.Bound = of[i].Bound
		}
		for name := range of[i].Values {
			if _, ok := p.Values[name]; !ok {
				p.Values[name] = pooledValue(of, name)
			}
		}
	}
	p.Err = math.Sqrt(p.Err)
	slices.Sort(p.Missing)
	p.Missing = slices.Compact(p.Missing)
	if p.usable() && p.State != Unknown {
		p.State = p.verdict(unit)
	}
	return p
}

// mean is that of points by their length.
func mean(of []Point, get func(*Point) float64) float64 {
	sum, seconds := 0.0, 0.0
	for i := range of {
		weight := of[i].Seconds
		if len(of) > 1 && !(weight > 0) {
			weight = 1
		}
		sum, seconds = sum+get(&of[i])*weight, seconds+weight
	}
	return sum / seconds
}

// pooledValue is a value of all repeats together.
func pooledValue(of []Point, name string) Value {
	out := Value{Low: math.Inf(1), High: math.Inf(-1)}
	sum, weight, exactly := 0.0, 0.0, true
	for i := range of {
		v := of[i].Value(name)
		if v.Why != "" {
			return Value{Value: math.NaN(), Low: math.NaN(), High: math.NaN(), Why: v.Why}
		}
		w := cmp.Or(v.Weight, of[i].Seconds, 1)
		sum, weight, out.Weight = sum+v.Value*w, weight+w, out.Weight+v.Weight
		exactly = exactly && v.Low == v.Value && v.High == v.Value
		out.Low, out.High = min(out.Low, v.Low), max(out.High, v.High)
	}
	if out.Value = sum / weight; exactly {
		out.Low, out.High = out.Value, out.Value
	}
	return out
}
