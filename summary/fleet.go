package summary

import (
	"context"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// FleetResult is what follows from several endpoints, or from the part of one that a
// label names: sums are taken after the gains, and nothing is a mean of quotients.
type FleetResult struct {
	// Labels are those of Options.By that all of it has in common; none for all endpoints together.
	Labels    metric.Labels
	Endpoints []int     // ascending
	Derived   []Derived // whose Endpoint is -1, in the order of the catalog
}

// fleet fills Fleet: the endpoints of each engine together, then the groups that Options.By asks for.
func (r *Run) fleet(sources []source) {
	sources = slices.DeleteFunc(slices.Clone(sources), func(s source) bool { return r.Endpoints[s.endpoint].SameAs > 0 })
	all := FleetResult{}
	packs := r.Options.Catalog.Packs()
	for _, crowd := range crowds(r.Options.Catalog, packs, sources) {
		var got []Derived
		if len(crowd.sources) == 1 { // it is what that endpoint has
			for _, d := range r.Derived {
				if d.Endpoint == crowd.sources[0].endpoint {
					d.Endpoint = -1
					got = append(got, d)
				}
			}
		} else {
			got = deriveTogether(r.Options.Catalog, crowd.sources, -1)
		}
		for _, d := range got {
			if slices.Contains(crowd.packs, d.Pack) && (len(crowd.sources) == 1 || d.Pack != catalog.TritonPerfAnalyzerPack) {
				all.Derived = append(all.Derived, d)
			}
		}
		for _, s := range crowd.sources {
			all.Endpoints = append(all.Endpoints, s.endpoint)
		}
	}
	if len(all.Derived) == 0 {
		return
	}
	slices.Sort(all.Endpoints)
	all.Endpoints = slices.Compact(all.Endpoints)
	slices.SortStableFunc(all.Derived, func(a, b Derived) int {
		return packIndex(packs, a.Pack) - packIndex(packs,
			b.Pack)
	})
	r.Combined = append(r.Combined, all)
	r.Combined = append(r.Combined, r.together(sources)...)
}

func packIndex(packs []catalog.Pack, name string) int {
	return slices.IndexFunc(packs, func(p catalog.Pack) bool { return p.Name == name })
}

// crowd is the endpoints that the same packs read.
type crowd struct {
	packs   []string
	sources []source
}

// crowds returns the endpoints of each pack, packs of the same endpoints as one:
// the time that rates are made with is theirs, whatever else was watched.
func crowds(c *catalog.Catalog, packs []catalog.Pack, sources []source) []crowd {
	var out []crowd
	for _, p := range packs {
		var of []source
		for _, s := range sources {
			if s.read(c, &p) {
				of = append(of, s)
			}
		}
		same := func(x crowd) bool {
			return slices.EqualFunc(x.sources, of, func(a, b source) bool { return a.endpoint == b.endpoint })
		}
		if i := slices.IndexFunc(out, same); i >= 0 {
			out[i].packs = append(out[i].packs, p.Name)
		} else if len(of) > 0 {
			out = append(out, crowd{[]string{p.Name}, of})
		}
	}
	return out
}

// read reports whether a pack reads some series of the source.
func (from *source) read(c *catalog.Catalog, p *catalog.Pack) bool {
	last := ""
	return slices.ContainsFunc(from.series, func(s *normalize.Series) bool {
		name := from.dict.FamilyOf(s.Index).Name
		if name == last {
			return false // looked at already
		}
		last = name
		if f, ok := c.Family(name); ok {
			name = f.Name
		}
		return slices.ContainsFunc(p.Prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
}

// together derives for each combination of those labels of Options.By that say where something happened: those
// of targets, of replicas, and of models or stages as the packs have them. Others, such as why a request ended,
// are kinds of what is counted; a quotient within one kind would mean little.
func (r *Run) together(sources []source) []FleetResult {
	by := slices.DeleteFunc(slices.Clone(r.Options.By), func(name string) bool { return !r.tellsWhere(name) })
	if len(by) == 0 || len(by) == 1 && (by[0] == ByEndpoint || by[0] == ByTarget) {
		return nil // endpoints are in Derived
	}
	parts := map[metric.Labels][]source{}
	var order []metric.Labels
	for _, s := range sources {
		for _, x := range s.series {
			labels := r.kept(s.endpoint, s.dict.Series[x.Index].Labels, by)
			if labels.Len() == 0 {
				continue
			}
			part := parts[labels]
			if part == nil {
				order = append(order, labels)
			}
			if n := len(part); n == 0 || part[n-1].endpoint != s.endpoint {
				part = append(part, source{endpoint: s.endpoint, seconds: s.seconds, dict: s.dict})
			}
			part[len(part)-1].series = append(part[len(part)-1].series, x)
			parts[labels] = part
		}
	}
	slices.SortFunc(order, metric.Labels.Compare)
	out := make([]FleetResult, len(order))
	_ = parallel(context.Background(), len(order), func(_ context.Context, i int) error { // cannot fail
		t := FleetResult{Labels: order[i], Derived: deriveTogether(r.Options.Catalog, parts[order[i]], -1)}
		// What a group lacks is mostly what has no such label.
		t.Derived = slices.DeleteFunc(t.Derived, func(d Derived) bool {
			return d.Status == catalog.Missing || d.Pack == catalog.TritonPerfAnalyzerPack
		})
		for _, s := range parts[order[i]] {
			t.Endpoints = append(t.Endpoints, s.endpoint)
		}
		out[i] = t
		return nil
	})
	return slices.DeleteFunc(out, func(t FleetResult) bool { return len(t.Derived) == 0 })
}

// tellsWhere reports whether a label names a place rather than a kind of thing.
func (r *Run) tellsWhere(name string) bool {
	if name == ByEndpoint || name == ByTarget || slices.Contains(PlaceLabels(r.Options.Catalog), name) {
		return true
	}
	for i := range r.Endpoints {
		if _, ok := r.Endpoints[i].Labels.Get(name); ok {
			return true
		}
	}
	return slices.ContainsFunc(r.Options.Catalog.Packs(), func(p catalog.Pack) bool {
		return slices.Contains(p.Scope, name) || slices.Contains(p.Split, name)
	})
}

// latencyIDs are the canonical quantities of section 7 of the design document derived-metrics.md that are distributions
// of times, in the order of a request, and the real-time factor.
var latencyIDs = [...]string{"ttft_s", "itl_s", "tpot_s", "e2e_s", "queue_s", "prefill_s", "decode_s", "inference_s",
	"audio_ttfp_s", "rtf"}

// isLatency reports whether the histogram of a family is one of them.
func isLatency(c *catalog.Catalog, family string) bool {
	f, ok := c.Family(family)
	return ok && slices.Contains(latencyIDs[:], f.Canonical)
}

// latencies fills Latencies. Those of the stages of a vLLM-Omni are of that engine where a vLLM stands beside it.
func (r *Run) latencies() {
	var members [][]*Series
	omni, plain := r.omniEndpoints()
	for _, id := range latencyIDs {
		for i := range r.Metrics {
			m := &r.Metrics[i]
			f := r.family(m)
			if f == nil || f.Canonical != id || m.Type != metric.Histogram {
				continue
			}
			for _, g := range r.groups(m, f.Identity) {
				engine := f.Engine
				if engine == catalog.VLLMPack && plain && omni[g.series[0].Endpoint] {
					engine = catalog.OmniPack
				}
				r.Latencies = append(r.Latencies, Latency{ID: id, Engine: engine,
					Aggregate: Aggregate{Metric: i, Labels: g.labels, Series: len(g.series), LeftOut: g.leftOut}})
				members = append(members, g.series)
			}
		}
	}
	_ = parallel(context.Background(), len(members), func(_ context.Context, i int) error { // cannot fail
		r.Latencies[i].merge(members[i], catalog.AggregateMerge, &r.Options)
		return nil
	})
}

// omniEndpoints tells the endpoints of vLLM-Omni, and whether another has families of vLLM.
func (r *Run) omniEndpoints() (omni map[int]bool, plain bool) {
	omni, vllm := map[int]bool{}, map[int]bool{}
	for i := range r.Metrics {
		server := r.Options.Catalog.ServerOf(r.Metrics[i].Name)
		for j := range r.Metrics[i].Series {
			e := r.Metrics[i].Series[j].Endpoint
			omni[e] = omni[e] || server == catalog.OmniPack
			vllm[e] = vllm[e] || server == catalog.VLLMPack
		}
	}
	for e := range vllm {
		plain = plain || vllm[e] && !omni[e]
	}
	return omni, plain
}

// Latency is a histogram of times that engines have in common, over all endpoints and replicas of an engine;
// what differs in the labels that say what it is of, such as the model, is kept apart.
type Latency struct {
	ID     string // canonical: "ttft_s"
	Engine string // as the catalog names it
	Aggregate
}
