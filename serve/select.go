package serve

import (
	"context"
	"math"
	"slices"
	"sort"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/scrapestat/scrapestat/metric"
)

// match returns the series that all matchers fit, in order of their labels.
func (s *store) match(matchers []*labels.Matcher) (out []*series) {
	names := s.names
	for _, m := range matchers {
		if m.Name == metric.NameLabel && m.Type == labels.MatchEqual {
			names = []string{m.Value}
			break
		}
	}
	for _, name := range names {
		other := func(m *labels.Matcher) bool { return m.Name == metric.NameLabel && !m.Matches(name) }
		if slices.ContainsFunc(matchers, other) {
			continue
		}
		for _, x := range s.byName[name] {
			if x.fits(matchers) {
				out = append(out, x)
			}
		}
	}
	if len(names) > 1 {
		slices.SortFunc(out, func(a, b *series) int { return labels.Compare(a.labels, b.labels) })
	}
	return out
}

func (x *series) fits(matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if m.Name != metric.NameLabel && !m.Matches(x.labels.Get(m.Name)) {
			return false
		}
	}
	return true
}

// matchAny returns the series that any of the selectors fits and that a run within the times may have.
func (s *store) matchAny(selectors [][]*labels.Matcher, fromMS, toMS int64) (out []*series) {
	if selectors == nil {
		selectors = [][]*labels.Matcher{nil}
	}
	seen := map[*series]bool{}
	for _, m := range selectors {
		for _, x := range s.match(m) {
			if from, to := x.run.span(); !seen[x] && to >= fromMS && from <= toMS {
				seen[x] = true
				out = append(out, x)
			}
		}
	}
	if len(selectors) > 1 {
		slices.SortFunc(out, func(a, b *series) int { return labels.Compare(a.labels, b.labels) })
	}
	return out
}

// querier is the store as the engine reads it, within a query that holds its lock.
type querier struct{ *store }

// Querier implements storage.Queryable.
func (q querier) Querier(int64, int64) (storage.Querier, error) { return q, nil }

// Close implements storage.Querier.
func (q querier) Close() error { return nil }

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, m ...*labels.Matcher) storage.SeriesSet {
	return &seriesSet{all: q.match(m), at: -1}
}

// LabelValues implements storage.LabelQuerier.
func (q querier) LabelValues(_ context.Context, name string, _ *storage.LabelHints, m ...*labels.Matcher) ([]string,
	annotations.Annotations, error) {
	return labelValues(q.matchAny([][]*labels.Matcher{m}, math.MinInt64, math.MaxInt64), name), nil, nil
}

// LabelNames implements storage.LabelQuerier.
func (q querier) LabelNames(_ context.Context, _ *storage.LabelHints, m ...*labels.Matcher) ([]string,
	annotations.Annotations, error) {
	return labelNames(q.matchAny([][]*labels.Matcher{m}, math.MinInt64, math.MaxInt64)), nil, nil
}

func labelValues(all []*series, name string) []string {
	set := map[string]bool{}
	for _, x := range all {
		if v := x.labels.Get(name); v != "" {
			set[v] = true
		}
	}
	return sorted(set)
}

func labelNames(all []*series) []string {
	set := map[string]bool{}
	for _, x := range all {
		x.labels.Range(func(l labels.Label) { set[l.Name] = true })
	}
	return sorted(set)
}

func sorted(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for name := range set {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

// seriesSet implements storage.SeriesSet.
type seriesSet struct {
	all []*series
	at  int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.all) }
func (s *seriesSet) At() storage.Series                { return s.all[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
