package catalog

import (
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

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
	stretch      *Interval // that is derived from
	catalog      *Catalog
	byName       map[string][]*Gain
	omni         *omniRun // made when first asked for
}

// Inputs returns what the user told.
func (v *View) Inputs() Inputs { return v.catalog.Inputs() }

// part is an empty view of the same stretch.
func (v *View) part(scope metric.Labels) *View {
	return &View{Seconds: v.Seconds, EndNS: v.EndNS, SliceSeconds: v.SliceSeconds, Scope: scope, stretch: v.stretch,
		catalog: v.catalog, byName: map[string][]*Gain{}}
}

// has reports whether there is a family whose name begins so.
func (v *View) has(prefix string) bool {
	for name := range v.byName {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
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
	all := v.byName[t.Family]
	if len(all) == 0 {
		return a
	}
	rule := v.rule(t.Family)
	for _, g := range all {
		x, ok := t.Part.Of(g)
		if !ok || !has(g.Labels, t.Where) || hasAny(g.Labels, t.Except) {
			continue
		}
		if t.Part == Integral {
			x *= v.Seconds
		}
		if g.IsGauge() && rule == AggregateMax && a.Series > 0 {
			a.Value = max(a.Value, x)
		} else {
			a.Value += x
		}
		a.Bound = a.Bound || g.IsGauge() && t.Part == Max && rule != AggregateMax && a.Series > 0
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
