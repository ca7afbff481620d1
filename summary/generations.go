package summary

import (
	"fmt"
	"maps"
	"slices"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

// named is a family of an endpoint under one of its names.
type named struct {
	family   *catalog.Family
	endpoint int
}

// supersede finds series under the name of an older generation at an endpoint that has a newer one: they are as
// recorded, and no part of sums. Where the older are of processes that the newer lack, versions are mixed behind the
// endpoint, as behind an agent, and their numbers are missing: a warning tells.
func (r *Run) supersede() {
	if r.Options.Catalog == nil {
		return
	}
	newest, first := map[named]int{}, map[named]*Metric{} // rank, and the metric of that rank
	r.generations(func(k named, rank int, m *Metric, _ *Series) {
		if best, seen := newest[k]; !seen || rank < best {
			newest[k], first[k] = rank, m
		}
	})
	mixed := map[int]string{}
	places := append(r.Options.Catalog.ReplicaLabels(), r.Options.Catalog.VolatileLabels()...)
	r.generations(func(k named, rank int, m *Metric, s *Series) {
		if rank == newest[k] {
			return
		}
		s.Superseded = first[k].Name
		place := s.Labels.Only(places...)
		beside := func(o Series) bool { return o.Endpoint == k.endpoint && has(o.Labels, place) }
		if mixed[k.endpoint] == "" && !slices.ContainsFunc(first[k].Series, beside) {
			mixed[k.endpoint] = m.Name
		}
	})
	for _, e := range slices.Sorted(maps.Keys(mixed)) {
		r.Endpoints[e].Warnings = append(r.Endpoints[e].Warnings, metric.Warning{Code: "mixed_generations",
			Text: fmt.Sprintf("processes of several versions are behind it: what only older ones show, such as %s, is no part "+
				"of sums; collect them as targets of their own", mixed[e])})
	}
}

// generations calls each for the series of families that have generations.
func (r *Run) generations(each func(k named, rank int, m *Metric, s *Series)) {
	for i := range r.Metrics {
		m := &r.Metrics[i]
		f, rank, ok := r.Options.Catalog.Generation(m.Name)
		for j := range m.Series {
			if s := &m.Series[j]; ok && len(f.Aliases) > 0 {
				each(named{f, s.Endpoint}, rank, m, s)
			}
		}
	}
}

// has reports whether labels have all of others.
func has(l, others metric.Labels) bool {
	for name, value := range others.All() {
		if v, ok := l.Get(name); !ok || v != value {
			return false
		}
	}
	return true
}
