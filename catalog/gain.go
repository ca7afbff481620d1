package catalog

import (
	"slices"

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

	// Above is the share of the time that a gauge was above each level of [Family] Above; nil when not known.
	Above []float64
	// Born reports whether a counter or histogram appeared within the stretch, at its first event. What a counter showed
	// then is part of the gain if other series of its family were there before.
	Born bool

	// Slices has what a counter, or the count of a histogram, gained in each slice of Stretch.SliceSeconds; nil when not
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
)

func (p Part) of(g *Gain) (v float64, ok bool) {
	switch g.Type {
	case metric.Counter:
		return g.Total, p == Value
	case metric.Histogram, metric.Summary:
		switch p {
		case Count:
			return g.Count, true
		case Sum:
			return g.Sum, g.HasSum
		}
		return 0, false
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
	}
	return 0, false
}

// Term is a sum over the series of a family, times Factor.
type Term struct {
	Family string
	Part   Part
	Where  []metric.Label // the series must have these
	Except []metric.Label // and none of these
	Factor float64        // 0 is 1
	// Optional reports whether a server without the family adds nothing. Otherwise what is missing makes the whole
	// quantity missing.
	Optional bool
}

// Amount is the value of a term.
type Amount struct {
	Value  float64
	Series int // that were added up; 0 is missing
	Resets int
	// Bound: Value can only be too large: the sum of the largest values of several gauges, which need not have had them
	// at the same time.
	Bound bool
	Born  bool // see Gain.Born
}

// View is the gains of one scope, by the newest names of their families. Series that repeat what others say are left
// out: see [Family] Aggregate and Only.
type View struct {
	Seconds      float64
	EndNS        int64 // see Stretch
	SliceSeconds []float64
	Scope        metric.Labels
	catalog      *Catalog
	byName       map[string][]*Gain
	omni         *omniRun // made when first asked for
}

// Inputs returns what the user told.
func (v *View) Inputs() Inputs { return v.catalog.Inputs() }

// part is an empty view of the same stretch.
func (v *View) part(scope metric.Labels) *View {
	return &View{Seconds: v.Seconds, EndNS: v.EndNS, SliceSeconds: v.SliceSeconds, Scope: scope, catalog: v.catalog,
		byName: map[string][]*Gain{}}
}

// Series returns the series of a family that have the labels, in their order.
func (v *View) Series(family string, where ...metric.Label) []*Gain {
	all := v.byName[family]
	if len(where) == 0 {
		return all
	}
	var out []*Gain
	for _, g := range all {
		if has(g.Labels, where) {
			out = append(out, g)
		}
	}
	return out
}

func has(l metric.Labels, where []metric.Label) bool {
	for _, w := range where {
		if value, ok := l.Get(w.Name); !ok || value != w.Value {
			return false
		}
	}
	return true
}

// Amount returns the value of a term: the sum over its series, or of a gauge what the rule of its family says.
func (v *View) Amount(t Term) Amount {
	var a Amount
	rule := v.rule(t.Family)
	for _, g := range v.byName[t.Family] {
		x, ok := t.Part.of(g)
		if !ok || !has(g.Labels, t.Where) || hasAny(g.Labels, t.Except) {
			continue
		}
		if t.Part == Integral {
			x *= v.Seconds
		}
		if isGauge(g) && rule == AggregateMax && a.Series > 0 {
			a.Value = max(a.Value, x)
		} else {
			a.Value += x
		}
		a.Bound = a.Bound || isGauge(g) && t.Part == Max && rule != AggregateMax && a.Series > 0
		a.Series++
		a.Resets += g.Resets
		a.Born = a.Born || g.Born
	}
	if rule == AggregateMean && a.Series > 1 {
		a.Value /= float64(a.Series)
	}
	if t.Factor != 0 {
		a.Value *= t.Factor
	}
	return a
}

// rule returns how the series of a family become one number.
func (v *View) rule(family string) Aggregate {
	if f, ok := v.catalog.Family(family); ok {
		return f.Aggregate
	}
	return AggregateByType
}

func isGauge(g *Gain) bool {
	return g.Type != metric.Counter && g.Type != metric.Histogram && g.Type != metric.Summary
}

func hasAny(l metric.Labels, some []metric.Label) bool {
	return slices.ContainsFunc(some, func(p metric.Label) bool { return has(l, []metric.Label{p}) })
}

// within returns the part of the view that has the labels.
func (v *View) within(scope metric.Labels, pairs []metric.Label) *View {
	out := v.part(scope)
	for name, gains := range v.byName {
		for _, g := range gains {
			if has(g.Labels, pairs) {
				out.byName[name] = append(out.byName[name], g)
			}
		}
	}
	return out
}

// split groups the view by the values of some labels, sorted. A series without one of the labels is in no group.
func (v *View) split(names []string) []*View {
	if len(names) == 0 {
		return []*View{v}
	}
	groups := map[metric.Labels]*View{}
	var order []metric.Labels
	for name, gains := range v.byName {
		for _, g := range gains {
			scope := g.Labels.Only(names...)
			if scope.Len() != len(names) {
				continue
			}
			group := groups[scope]
			if group == nil {
				group = v.part(scope)
				groups[scope] = group
				order = append(order, scope)
			}
			group.byName[name] = append(group.byName[name], g)
		}
	}
	slices.SortFunc(order, metric.Labels.Compare)
	out := make([]*View, len(order))
	for i, scope := range order {
		out[i] = groups[scope]
	}
	return out
}
