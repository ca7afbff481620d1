package summary

import (
	"slices"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// Derived is a quantity of one endpoint that follows from several families, as
// package catalog defines it, over the window and over its slices.
type Derived struct {
	Endpoint int // into Run.Endpoints
	catalog.Derived
	Slices []DerivedSlice // those in which it could be asked for
}

// DerivedSlice is a derived quantity within one slice; its fields are those of
// catalog.Derived.
type DerivedSlice struct {
	normalize.Slice
	Status                 catalog.Status
	Value, Shown           float64
	Numerator, Denominator float64
}

// derive applies the rules of package catalog to each endpoint; results are by
// endpoint, nil where there is none.
func derive(c *catalog.Catalog, results []*normalize.Result) []Derived {
	reads := map[string]bool{}
	var out []Derived
	for endpoint, res := range results {
		if res == nil {
			continue
		}
		var series []*normalize.Series
		for i := range res.Series {
			name := res.Dict.FamilyOf(res.Series[i].Index).Name
			yes, known := reads[name]
			if !known {
				yes = c.Reads(name)
				reads[name] = yes
			}
			if yes {
				series = append(series, &res.Series[i])
			}
		}
		if len(series) > 0 {
			out = append(out, deriveEndpoint(c, endpoint, res.Dict, series)...)
		}
	}
	return out
}

func deriveEndpoint(c *catalog.Catalog, endpoint int, dict *metric.Dict, series []*normalize.Series) []Derived {
	cuts := slicesOf(series)
	window := catalog.Stretch{Seconds: spanOf(series), SliceSeconds: make([]float64, len(cuts))}
	for k, slice := range cuts {
		window.SliceSeconds[k] = float64(slice.EndNS-slice.StartNS) / 1e9
	}
	for _, s := range series {
		if g, ok := gainOf(dict, s); ok {
			window.Gains = append(window.Gains, g)
		}
	}
	var out []Derived
	type key struct {
		pack, name string
		labels     metric.Labels
	}
	at := map[key]int{}
	for _, d := range c.Derive(window, catalog.Window) {
		at[key{d.Pack, d.Name, d.Labels}] = len(out)
		out = append(out, Derived{Endpoint: endpoint, Derived: d})
	}
	for k, slice := range cuts {
		part := catalog.Stretch{Seconds: window.SliceSeconds[k]}
		for _, s := range series {
			if g, ok := sliceGain(dict, s, k, slice.StartNS); ok {
				part.Gains = append(part.Gains, g)
			}
		}
		for _, d := range c.Derive(part, catalog.Slice) {
			if i, ok := at[key{d.Pack, d.Name, d.Labels}]; ok {
				out[i].Slices = append(out[i].Slices, DerivedSlice{slice, d.Status, d.Value, d.Shown, d.Numerator, d.Denominator})
			}
		}
	}
	return out
}

// spanOf is the time between the polls that the gains are counted between; of
// gauges alone, between their first and last sample.
func spanOf(series []*normalize.Series) float64 {
	gains, gauges := span{}, span{}
	for _, s := range series {
		switch {
		case s.Samples == 0:
		case s.Gauge != nil:
			gauges.see(s.FirstNS, s.LastNS)
		default:
			gains.see(s.RefNS, s.LastNS)
		}
	}
	if gains.to == 0 {
		gains = gauges
	}
	return float64(gains.to-gains.from) / 1e9
}

// span is a stretch of time in nanoseconds; the zero value is none.
type span struct{ from, to int64 }

func (w *span) see(from, to int64) {
	if w.from == 0 || from < w.from {
		w.from = from
	}
	w.to = max(w.to, to)
}

// slicesOf returns the slices of the window.
func slicesOf(series []*normalize.Series) []normalize.Slice {
	for _, s := range series {
		if s.Counter != nil && len(s.Counter.Slices) > 0 {
			out := make([]normalize.Slice, len(s.Counter.Slices))
			for i := range out {
				out[i] = s.Counter.Slices[i].Slice
			}
			return out
		}
	}
	return nil
}

// gainOf returns what a series gained over the window; false when that is not
// defined.
func gainOf(dict *metric.Dict, s *normalize.Series) (catalog.Gain, bool) {
	g := emptyGain(dict, s)
	switch {
	case s.Counter != nil:
		c := s.Counter
		g.Total, g.Exact, g.HasExact = c.Total, c.Exact, c.HasExact
		g.First, g.Last = c.First, c.Last
		for i := range c.Slices {
			g.Slices = append(g.Slices, c.Slices[i].Total)
		}
		return g, c.Defined
	case s.Gauge != nil:
		v := s.Gauge
		g.TimeAvg, g.Min, g.Max, g.First, g.Last = v.TimeAvg, v.Min, v.Max, v.Ref, v.Last
		return g, v.N > 0
	case s.Summary != nil:
		m := s.Summary
		g.Count, g.Sum, g.HasSum = float64(m.Count), m.Sum, !m.NoSum
		return g, m.Defined && !m.NoCount
	case s.Histogram != nil:
		h := s.Histogram
		g.Count, g.Sum, g.HasSum = float64(h.Count), h.Sum, !h.NoSum
		for i := range h.Slices {
			g.Slices = append(g.Slices, float64(h.Slices[i].Count))
		}
		for _, b := range h.Buckets {
			g.Buckets = append(g.Buckets, catalog.Bucket{Upper: b.Upper, Count: float64(b.Count)})
		}
		return g, true
	}
	return g, false
}

func emptyGain(dict *metric.Dict, s *normalize.Series) catalog.Gain {
	f := dict.FamilyOf(s.Index)
	g := catalog.Gain{Family: f.Name, Type: f.Type, Labels: dict.Series[s.Index].Labels, Resets: s.Resets}
	if s.Gauge != nil {
		g.Type = metric.Gauge
	}
	return g
}

// sliceGain returns what a series gained in slice k, which begins at start. The
// last value of a gauge is not known there; its mean stands for it.
func sliceGain(dict *metric.Dict, s *normalize.Series, k int, start int64) (catalog.Gain, bool) {
	g := emptyGain(dict, s)
	g.Resets = 0 // slices do not tell where they were
	switch {
	case s.Counter != nil && k < len(s.Counter.Slices):
		g.Total = s.Counter.Slices[k].Total
		return g, true
	case s.Gauge != nil:
		i, ok := slices.BinarySearchFunc(s.Gauge.Slices, start, func(v normalize.GaugeSlice, at int64) int { return int(v.StartNS - at) })
		if ok {
			v := s.Gauge.Slices[i]
			g.TimeAvg, g.Min, g.Max, g.Last = v.Avg, v.Min, v.Max, v.Avg
		}
		return g, ok
	case s.Summary != nil && k < len(s.Summary.Slices):
		m := &s.Summary.Slices[k]
		g.Count, g.Sum, g.HasSum = float64(m.Count), m.Sum, !s.Summary.NoSum
		return g, !s.Summary.NoCount
	case s.Histogram != nil && k < len(s.Histogram.Slices):
		h := &s.Histogram.Slices[k]
		g.Count, g.Sum, g.HasSum = float64(h.Count), h.Sum, !s.Histogram.NoSum
		for i, n := range h.Counts {
			g.Buckets = append(g.Buckets, catalog.Bucket{Upper: s.Histogram.Bounds[i].Upper, Count: float64(n)})
		}
		return g, true
	}
	return g, false
}
