package summary

import (
	"errors"
	"fmt"
	"slices"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
)

// Names in Options.By that stand for the endpoint: by its URL, and by the name that the user gave to the target
// (its URL where there is none). Labels of these names are then not seen. Any other name is that of a label of
// series, or else of a label of the target: job, role.
const (
	ByEndpoint = "endpoint"
	ByTarget   = "target"
)

// checkBy refuses label names that cannot be meant.
func (o *Options) checkBy() error {
	for i, name := range o.By {
		if name == "" {
			return errors.New("aggregate by label: its name is empty")
		}
		if slices.Contains(o.By[:i], name) {
			return fmt.Errorf("aggregate by label %q: it is named twice", name)
		}
	}
	return nil
}

// PlaceLabels are the labels that tell replicas within a target apart: those of the catalog except ranks that each
// report the whole.
func PlaceLabels(c *catalog.Catalog) []string {
	wholes := c.Wholes()
	return slices.DeleteFunc(c.ReplicaLabels(), func(name string) bool {
		return slices.ContainsFunc(wholes, func(l metric.Label) bool { return l.Name == name })
	})
}

// Continuity are the options of the trackers of a run whose servers c knows. An engine is a part of the process that
// tells of it, which mostly begins with it.
func Continuity(c *catalog.Catalog) continuity.Options {
	isPart := func(name string) bool { return name == "engine" }
	places := slices.DeleteFunc(PlaceLabels(c), isPart)
	return continuity.Options{Places: places, Parts: []string{"engine"}, Uptime: func(name string) bool {
		f, ok := c.Family(name)
		return ok && f.Moves == "age"
	}}
}

// group is the series that agree in their labels.
type group struct {
	labels  metric.Labels
	series  []*Series
	leftOut int
}

// family is what the catalog knows of a metric, nil for nothing.
func (r *Run) family(m *Metric) *catalog.Family {
	f, _ := r.Options.Catalog.Family(m.Name)
	return f
}

// rule returns how the series of a metric are taken together.
func (r *Run) rule(m *Metric) catalog.Aggregate {
	f := r.family(m)
	switch {
	case f == nil:
		return catalog.AggregateByType
	case f.Aggregate == catalog.AggregateRank0: // countedTwice leaves out the others
		return catalog.AggregateSum
	}
	return f.Aggregate
}

// groups returns the groups of a metric by some labels, in their order; their series keep their order.
func (r *Run) groups(m *Metric, by []string) []*group {
	for _, label := range r.Options.Catalog.Apart(m.Name) {
		if !slices.Contains(by, label) {
			by = append(slices.Clone(by), label)
		}
	}
	twice := r.countedTwice(m, by)
	var out []*group
	at := map[metric.Labels]*group{}
	for i := range m.Series {
		s := &m.Series[i]
		labels := r.kept(s.Endpoint, s.Labels, by)
		g := at[labels]
		if g == nil {
			g = &group{labels: labels}
			at[labels] = g
			out = append(out, g)
		}
		first := r.Endpoints[s.Endpoint].SameAs
		if twice[i] || first > 0 && r.kept(first-1, s.Labels, by) == labels {
			// the whole may be in another group, and this one empty
			g.leftOut++
			continue
		}
		g.series = append(g.series, s)
	}
	out = slices.DeleteFunc(out, func(g *group) bool { return len(g.series) == 0 })
	slices.SortFunc(out, func(a, b *group) int { return a.labels.Compare(b.labels) })
	return out
}

// countedTwice finds the series, by index, that must be left out unless their
// label is one of by. It is nil when there is none.
func (r *Run) countedTwice(m *Metric, by []string) map[int]bool {
	var out map[int]bool
	type sibling struct {
		endpoint int
		labels   metric.Labels
	}
	all := r.Options.Catalog.Wholes()
	if f := r.family(m); f != nil {
		all = append(slices.Clone(f.Only), all...)
	}
	for _, w := range all {
		if slices.Contains(by, w.Name) {
			continue
		}
		var whole map[sibling]bool
		for i := range m.Series {
			s := &m.Series[i]
			if v, ok := s.Labels.Get(w.Name); v == w.Value && (ok || v == "") {
				if whole == nil {
					whole = map[sibling]bool{}
				}
				whole[sibling{s.Endpoint, s.Labels.Without(w.Name)}] = true
			}
		}
		if whole == nil {
			continue
		}
		for i := range m.Series {
			s := &m.Series[i]
			if v, ok := s.Labels.Get(w.Name); ok && v != w.Value && whole[sibling{s.Endpoint, s.Labels.Without(w.Name)}] {
				if out == nil {
					out = map[int]bool{}
				}
				out[i] = true
			}
		}
	}
	return out
}

// kept returns the labels of a series of an endpoint, and of the endpoint, that are named in by.
func (r *Run) kept(endpoint int, labels metric.Labels, by []string) metric.Labels {
	e := &r.Endpoints[endpoint]
	if e.Labels.Len() == 0 && !slices.Contains(by, ByEndpoint) && !slices.Contains(by, ByTarget) {
		return labels.Only(by...)
	}
	var pairs []metric.Label
	for _, name := range by {
		value, ok := "", true
		switch name {
		case ByEndpoint:
			value = e.URL
		case ByTarget:
			value = e.Shown()
		default:
			if value, ok = labels.Get(name); !ok {
				value, ok = e.Labels.Get(name)
			}
		}
		if ok {
			pairs = append(pairs, metric.Label{Name: name, Value: value})
		}
	}
	return metric.NewLabels(pairs...)
}

// Skew tells how unevenly replicas were used.
type Skew struct {
	Replicas int
	// Ratio is the largest over the mean: 1 for evenly used replicas, and at most their number.
	Ratio float64
	// Endpoint and Labels are those of the replica that did most.
	Endpoint int
	Labels   metric.Labels
}

// skewOf compares replicas, that is endpoints and within them the values of
// places. It is nil for less than two, or when nothing happened.
func skewOf(series []*Series, places []string) *Skew {
	type replica struct {
		endpoint int
		labels   metric.Labels
	}
	var order []replica
	sum := map[replica]float64{}
	for _, s := range series {
		v := 0.0
		switch {
		case s.Counter != nil && s.Counter.Defined:
			v = s.Counter.Total
		case s.Gauge != nil && s.Gauge.N > 0:
			v = s.Gauge.TimeAvg
		case s.Histogram != nil:
			v = float64(s.Histogram.Count)
		case s.Summary != nil && s.Summary.Defined && !s.Summary.NoCount:
			v = float64(s.Summary.Count)
		default:
			continue
		}
		k := replica{s.Endpoint, s.Labels.Only(places...)}
		if _, ok := sum[k]; !ok {
			order = append(order, k)
		}
		sum[k] += v
	}
	if len(order) < 2 {
		return nil
	}
	total, most := 0.0, order[0]
	for _, k := range order {
		if sum[k] < 0 {
			return nil // the mean says nothing
		}
		total += sum[k]
		if sum[k] > sum[most] {
			most = k
		}
	}
	if !(total > 0) {
		return nil
	}
	return &Skew{Replicas: len(order), Ratio: sum[most] / (total / float64(len(order))), Endpoint: most.endpoint,
		Labels: most.labels}
}

// Pool is the series of a metric that agree in some labels, without those that would count twice.
type Pool struct {
	Labels metric.Labels
	Series []*Series
}

// Pools returns the series of a metric of r by some labels, in the order of those.
func (r *Run) Pools(m *Metric, by []string) (out []Pool) {
	for _, g := range r.groups(m, by) {
		out = append(out, Pool{g.labels, g.series})
	}
	return out
}
