package summary

import (
	"slices"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/continuity"
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

// DerivedSlice is a derived quantity within one slice; its fields are those of catalog.Derived.
type DerivedSlice struct {
	normalize.Slice
	Status                 catalog.Status
	Value, Shown           float64
	Low, High              float64
	Numerator, Denominator float64
}

// DerivedList is derived quantities, of one pack and endpoint say, to be looked up.
type DerivedList []*Derived

// Get returns the quantity with exactly these labels, given as names and values in turn; nil for none.
func (l DerivedList) Get(name string, labels ...string) *Derived {
	var pairs []metric.Label
	for i := 0; i+1 < len(labels); i += 2 {
		pairs = append(pairs, metric.Label{Name: labels[i], Value: labels[i+1]})
	}
	want := metric.NewLabels(pairs...)
	for _, d := range l {
		if d.Name == name && d.Labels == want {
			return d
		}
	}
	return nil
}

// Values returns the values of a label of a quantity, in their order.
func (l DerivedList) Values(name, label string) (out []string) {
	for _, d := range l {
		if v, ok := d.Labels.Get(label); ok && d.Name == name && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// source is the series of an endpoint that quantities are made of.
type source struct {
	endpoint int
	seconds  float64 // that rates divide by
	dict     *metric.Schema
	series   []*normalize.Series
}

// sourcesOf returns the series that packs read, by endpoint; results are by endpoint, nil where there is none.
func (r *Run) sourcesOf(c *catalog.Catalog, results []*normalize.Result) []source {
	reads := map[string]bool{}
	var out []source
	for endpoint, res := range results {
		if res == nil {
			continue
		}
		from := source{endpoint: endpoint, seconds: r.Endpoints[endpoint].Seconds, dict: res.Dict}
		for i := range res.Series {
			name := res.Dict.FamilyOf(res.Series[i].Index).Name
			yes, known := reads[name]
			if !known {
				yes = c.Reads(name)
				reads[name] = yes
			}
			if yes {
				from.series = append(from.series, &res.Series[i])
			}
		}
		if len(from.series) > 0 {
			out = append(out, from)
		}
	}
	return out
}

// derive applies the rules of package catalog to each endpoint.
func derive(c *catalog.Catalog, sources []source) []Derived {
	var out []Derived
	for i := range sources {
		out = append(out, deriveTogether(c, sources[i:i+1], sources[i].endpoint)...)
	}
	return out
}

// deriveTogether applies the rules to endpoints taken together. A vLLM server beside a vLLM-Omni one is no
// stage of its pipeline, nor are its stages servers: each of the two packs sees its own.
func deriveTogether(c *catalog.Catalog, sources []source, endpoint int) []Derived {
	omni, plain := pipelines(c, sources)
	if len(omni) == 0 || len(plain) == 0 {
		return deriveAll(c, sources, endpoint)
	}
	own := func(sources []source, pack string) []Derived {
		return slices.DeleteFunc(deriveAll(c, sources, endpoint), func(d Derived) bool { return d.Pack != pack })
	}
	out := slices.DeleteFunc(deriveAll(c, sources, endpoint),
		func(d Derived) bool { return d.Pack == catalog.OmniPack || d.Pack == catalog.VLLMPack })
	out = slices.Concat(out, own(omni, catalog.OmniPack), own(plain, catalog.VLLMPack))
	packs := c.Packs()
	slices.SortStableFunc(out, func(a, b Derived) int { return packIndex(packs, a.Pack) - packIndex(packs, b.Pack) })
	return out
}

// pipelines tells the endpoints of vLLM-Omni from other ones of vLLM.
func pipelines(c *catalog.Catalog, sources []source) (omni, plain []source) {
	for _, s := range sources {
		has := func(server string) bool {
			return slices.ContainsFunc(s.dict.Families, func(f metric.Family) bool { return c.ServerOf(f.Name) == server })
		}
		switch {
		case has(catalog.OmniPack):
			omni = append(omni, s)
		case has(catalog.VLLMPack):
			plain = append(plain, s)
		}
	}
	return omni, plain
}

// deriveAll applies all rules to all that endpoints gained.
func deriveAll(c *catalog.Catalog, sources []source, endpoint int) []Derived {
	cuts := slicesOf(sources)
	window := catalog.Interval{Seconds: secondsOf(sources), SliceSeconds: make([]float64, len(cuts))}
	for k, slice := range cuts {
		window.SliceSeconds[k] = float64(slice.EndNS-slice.StartNS) / 1e9
	}
	for i := range sources {
		window.Gains = append(window.Gains, sources[i].gains()...)
		for _, s := range sources[i].series {
			window.EndNS = max(window.EndNS, s.LastNS)
		}
	}
	weigh(c, window.Gains, sources)
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
	if len(cuts) == 0 {
		return out
	}
	part := newParts(c, sources)
	for k, slice := range cuts {
		for _, d := range part.derive(k, slice, window.SliceSeconds[k]) {
			if i, ok := at[key{d.Pack, d.Name, d.Labels}]; ok {
				out[i].Slices = append(out[i].Slices, DerivedSlice{slice, d.Status, d.Value, d.Shown,
					d.Low, d.High, d.Numerator, d.Denominator})
			}
		}
	}
	return out
}

// weigh makes the means of gauges that are to be added up those of all the time that the endpoints were watched
// for together: an engine or a replica that was there for half of it counts half.
func weigh(c *catalog.Catalog, gains []catalog.Gain, sources []source) {
	var all span
	for i := range sources {
		for _, s := range sources[i].series {
			all.watch(s.Gauge)
		}
	}
	at := 0
	for i := range sources {
		for _, s := range sources[i].series {
			if _, ok := sources[i].gain(s); !ok {
				continue
			}
			if f, known := c.Family(gains[at].Family); known && s.Gauge != nil &&
				(f.Aggregate == catalog.AggregateSum || f.Aggregate == catalog.AggregateRank0) {
				gains[at].TimeAvg *= all.share(s.Gauge)
			}
			at++
		}
	}
}

// secondsOf is the time that the rates of endpoints taken together divide by: that of the window, or the mean of
// theirs where their polls lie differently about an edge.
func secondsOf(sources []source) float64 {
	sum := 0.0
	for i := range sources {
		sum += sources[i].seconds
	}
	return sum / float64(len(sources))
}

// span is a stretch of time in nanoseconds; the zero value is none.
type span struct{ from, to int64 }

// watch adds the time for which the target of a gauge was watched.
func (w *span) watch(g *normalize.Gauge) {
	if g == nil || g.Watched == nil {
		return
	}
	if w.from == 0 || g.Watched.FromNS < w.from {
		w.from = g.Watched.FromNS
	}
	w.to = max(w.to, g.Watched.ToNS)
}

// share is the part of that time for which a gauge was there. Targets that were watched for all of it but two polls,
// as each is polled at moments of its own, were watched for all of it.
func (w *span) share(g *normalize.Gauge) float64 {
	of := g.Watched
	if of == nil || of.NS <= 0 {
		return 1
	}
	whole := float64(of.NS)
	if own, all := of.ToNS-of.FromNS, w.to-w.from; own+2*own/int64(max(1, of.Polls-1)) < all {
		whole *= float64(all) / float64(own) // the pauses of the window are not watched
	}
	return min(1, float64(g.StoodNS)/whole)
}

// slicesOf returns the slices of the window; none where those of the endpoints do not begin together.
func slicesOf(sources []source) []normalize.Slice {
	var out []normalize.Slice
	for i := range sources {
		for _, s := range sources[i].series {
			if s.Counter == nil || len(s.Counter.Slices) == 0 {
				continue
			}
			if out != nil && s.Counter.Slices[0].StartNS != out[0].StartNS {
				return nil
			}
			for k := len(out); k < len(s.Counter.Slices); k++ {
				out = append(out, s.Counter.Slices[k].Slice)
			}
			break
		}
	}
	return out
}

// gains returns what the series gained over the window.
func (from *source) gains() []catalog.Gain {
	out := make([]catalog.Gain, 0, len(from.series))
	for _, s := range from.series {
		if g, ok := from.gain(s); ok {
			out = append(out, g)
		}
	}
	return out
}

// gain returns what a series gained over the window; false when that is not defined.
func (from *source) gain(s *normalize.Series) (catalog.Gain, bool) {
	g := from.emptyGain(s)
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
		g.TimeAvg, g.Min, g.Max, g.First, g.Last, g.Above = v.TimeAvg, v.Min, v.Max, v.Ref, v.Last, v.Above
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
	case s.Info != nil: // it is for its labels
		g.Type, g.TimeAvg, g.Min, g.Max, g.First, g.Last = metric.Gauge, 1, 1, 1, 1, 1
		return g, true
	}
	return g, g.Status == catalog.Refused
}

// StatusOf is how sure a quantity of an increase is, as far as it limits what may be judged: restarts and births are
// noted apart.
func StatusOf(s continuity.Status) catalog.Status {
	switch s {
	case continuity.Ambiguous:
		return catalog.Ambiguous
	case continuity.LowerBound:
		return catalog.LowerBound
	case continuity.Refused:
		return catalog.Refused
	}
	return catalog.OK
}

func (from *source) emptyGain(s *normalize.Series) catalog.Gain {
	f := from.dict.FamilyOf(s.Index)
	i := &s.Increase
	g := catalog.Gain{Family: f.Name, Type: f.Type, Labels: from.dict.Series[s.Index].Labels, Source: from.endpoint,
		Resets: s.Resets, Born: i.Status == continuity.Born, Status: StatusOf(i.Status), Low: i.Low, High: i.High}
	if s.Gauge != nil {
		g.Type = metric.Gauge
	}
	return g
}
