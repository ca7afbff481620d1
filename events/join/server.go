package join

import (
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/catalog/pack"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// source is where a server has a time: histograms or summaries, or counters of a sum with one of its count.
type source struct {
	families []string // as the run has them
	count    string   // of counters: the family of the count
	unit     float64  // seconds in a unit of the families
}

// engine is where a server has what is joined.
type engine struct {
	name                      string
	ttft, e2e, queue, prefill source
	underWay                  []string // gauges that add up to the requests under way
}

// servers are the packs of the known servers, those that are preferred first: a front end comes before what it stands
// in front of, as it has the requests of the clients.
func servers(all []*pack.Pack) []*pack.Pack {
	out := slices.DeleteFunc(all, func(p *pack.Pack) bool { return p.Clients.Rank == 0 })
	slices.SortStableFunc(out, func(a, b *pack.Pack) int { return a.Clients.Rank - b.Clients.Rank })
	return out
}

// names are those of the servers of a catalog, those that are preferred first.
func names(c *catalog.Catalog) (out []string) {
	for _, p := range servers(c.Servers()) {
		out = append(out, p.Name)
	}
	return out
}

// engines finds, by the canonical ids of the catalog, where the servers of a run have what is joined, in the order of
// preference.
func (j *joiner) engines() []engine {
	var out []engine
	for _, p := range servers(j.o.Catalog.Servers()) {
		e := engine{name: p.Name}
		some := false
		for i := range j.run.Metrics {
			name := j.run.Metrics[i].Name
			if f, ok := j.o.Catalog.Family(name); ok && f.Engine == p.Name {
				e.add(name, f, &p.Clients)
				some = true
			}
		}
		if some {
			out = append(out, e)
		}
	}
	return out
}

// add notes a family of the engine.
func (e *engine) add(name string, f *catalog.Family, known *pack.Clients) {
	id := f.Canonical
	for stem, also := range known.Also {
		if strings.HasSuffix(f.Name, ":"+stem) {
			id = also
		}
	}
	to, ok := map[string]*source{"ttft_s": &e.ttft, "audio_ttfp_s": &e.ttft, "e2e_s": &e.e2e, "queue_s": &e.queue,
		"prefill_s": &e.prefill}[id]
	switch {
	case slices.Contains(known.Without, id):
	case id == "running" || id == "waiting":
		e.underWay = append(e.underWay, name)
	case ok:
		if unit := f.Seconds(name); unit != 0 && (to.unit == 0 || to.unit == unit) {
			to.families, to.unit, to.count = append(to.families, name), unit, known.Count
		}
	}
}

// server adds up what all series of a source gained, with the polls that the gain lies between.
func (j *joiner) server(src source) (side ServerSide, fromNS, toNS int64) {
	fromNS = math.MaxInt64
	sum, some, counters := 0.0, false, false
	edges := func(s summary.Series) {
		some = true
		fromNS, toNS = min(fromNS, s.RefNS), max(toNS, s.LastNS)
	}
	for _, s := range j.series(src.families...) {
		switch {
		case s.Histogram != nil && !s.Histogram.NoSum:
			side.Count, sum = side.Count+float64(s.Histogram.Count), sum+s.Histogram.Sum
			edges(s)
		case s.Summary != nil && s.Summary.Defined:
			side.Count, sum = side.Count+float64(s.Summary.Count), sum+s.Summary.Sum
			edges(s)
		case s.Counter != nil && s.Counter.Defined && src.count != "":
			sum, counters = sum+s.Counter.Total, true
			edges(s)
		}
	}
	for _, s := range j.series(src.count) {
		if counters && s.Counter != nil && s.Counter.Defined {
			side.Count += s.Counter.Total
		}
	}
	if !some {
		return ServerSide{}, j.r.FromNS, j.r.ToNS
	}
	side.Family = strings.Join(src.families, " + ")
	side.Mean = quotient(sum*src.unit, side.Count)
	j.percentiles(src, &side)
	return side, fromNS, toNS
}

// percentiles takes those of all series together.
func (j *joiner) percentiles(src source, side *ServerSide) {
	for _, a := range j.run.Aggregates {
		if a.Histogram == nil || len(src.families) != 1 || j.run.Metrics[a.Metric].Name != src.families[0] ||
			len(a.Histogram.Quantiles) != len(percentiles) {
			continue
		}
		for i, e := range a.Histogram.Quantiles {
			if v := e.Value * src.unit; !math.IsNaN(v) && !math.IsInf(v, 0) && a.Histogram.Count > 0 {
				side.p[i] = &v
			}
		}
	}
}

// eachSlice tells what the series of a source gained in each slice.
func (j *joiner) eachSlice(src source, tell func(s normalize.Slice, sumSeconds, count float64)) {
	counters := false
	for _, s := range j.series(src.families...) {
		switch {
		case s.Histogram != nil && !s.Histogram.NoSum:
			for _, h := range s.Histogram.Slices {
				tell(h.Slice, h.Sum*src.unit, float64(h.Count))
			}
		case s.Counter != nil && src.count != "":
			counters = true
			for _, c := range s.Counter.Slices {
				tell(c.Slice, c.Total*src.unit, 0)
			}
		}
	}
	for _, s := range j.series(src.count) {
		if counters && s.Counter != nil {
			for _, c := range s.Counter.Slices {
				tell(c.Slice, 0, c.Total)
			}
		}
	}
}
