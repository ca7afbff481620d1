package catalog

import (
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// Gain is what one series did over a stretch of time: its increase, or for a
// gauge its values. Only the fields of its type are set.
type Gain struct {
	Family string // as the recording names it
	Type   metric.Type
	Labels metric.Labels
	Resets int // restarts that the gain was corrected for

	// Total is the increase of a counter. Exact is the same as an integer where
	// HasExact is set.
	Total    float64
	Exact    uint64
	HasExact bool

	// Count and Sum are the increases of a histogram; HasSum says that it has a
	// sum. Buckets are cumulative, ascending, with +Inf last; nil when unusable.
	Count, Sum float64
	HasSum     bool
	Buckets    []Bucket

	// TimeAvg is the mean of a gauge weighted by time.
	TimeAvg, Min, Max float64
	// First and Last are, of a counter and of a gauge, the sample that the
	// increase is counted from and the last one, as the server shows them. Slices
	// know only a mean, which is then Last, and no First.
	First, Last float64
}

// Bucket is the cumulative increase of one bucket of a histogram.
type Bucket struct{ Upper, Count float64 }

// Stretch is what an endpoint gained between two instants, Seconds apart, which
// are those of the polls that were used. Gains belong to the caller and are only
// read.
type Stretch struct {
	Seconds float64
	Gains   []Gain
}

// Part is what of a gain a term takes.
type Part uint8

// The parts. Value, the zero value, is the increase of a counter and the last
// value of a gauge; Mean is the mean of a gauge over time.
const (
	Value Part = iota
	Count
	Sum
	Mean
	Max
	Min
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
	case Mean:
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
	Factor float64        // 0 is 1
	// Optional says that a server without the family adds nothing. Otherwise what
	// is missing makes the whole quantity missing.
	Optional bool
}

// Amount is the value of a term.
type Amount struct {
	Value  float64
	Series int // that were added up; 0 says that it is missing
	Resets int
}

// View is the gains of one scope, by family.
type View struct {
	Seconds float64
	Scope   metric.Labels
	byName  map[string][]*Gain
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

// Amount returns the value of a term.
func (v *View) Amount(t Term) Amount {
	var a Amount
	for _, g := range v.byName[t.Family] {
		if x, ok := t.Part.of(g); ok && has(g.Labels, t.Where) {
			a.Value += x
			a.Series++
			a.Resets += g.Resets
		}
	}
	if t.Factor != 0 {
		a.Value *= t.Factor
	}
	return a
}

// within returns the part of the view that has the labels.
func (v *View) within(scope metric.Labels, pairs []metric.Label) *View {
	out := &View{Seconds: v.Seconds, Scope: scope, byName: make(map[string][]*Gain, len(v.byName))}
	for name, gains := range v.byName {
		for _, g := range gains {
			if has(g.Labels, pairs) {
				out.byName[name] = append(out.byName[name], g)
			}
		}
	}
	return out
}

// split groups the view by the values of some labels, sorted. A series without
// one of the labels is in no group.
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
				group = &View{Seconds: v.Seconds, Scope: scope, byName: map[string][]*Gain{}}
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
