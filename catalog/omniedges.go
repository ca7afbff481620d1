package catalog

import (
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// The families of transfers, one observation a chunk.
const (
	omniTx       = omniPrefix + "transfer_tx_s"
	omniInFlight = omniPrefix + "transfer_in_flight_s"
	omniRx       = omniPrefix + "transfer_rx_s"
	omniSize     = omniPrefix + "transfer_size_bytes"
)

// edgeFamilies are those that have an observation for each chunk.
func edgeFamilies() []string { return []string{omniSize, omniTx, omniInFlight, omniRx} }

// hopTerms are the time on a hop. A part that is not there adds nothing.
func hopTerms(where ...metric.Label) []Term {
	var out []Term
	for _, family := range edgeFamilies()[1:] {
		out = append(out, Term{Family: family, Part: Sum, Where: where, Optional: true})
	}
	return out
}

// edge is the way between two stages.
type edge struct{ from, to string }

func (e edge) labels() []metric.Label {
	return []metric.Label{{Name: "from_stage", Value: e.from}, {Name: "to_stage", Value: e.to}}
}

// edges are the pairs of stages between which there were transfers, in order.
func (o *omniRun) edges() []edge {
	var out []edge
	for _, family := range edgeFamilies() {
		for _, g := range o.v.Series(family) {
			from, okFrom := g.Labels.Get("from_stage")
			to, okTo := g.Labels.Get("to_stage")
			if e := (edge{from, to}); okFrom && okTo && !slices.Contains(out, e) {
				out = append(out, e)
			}
		}
	}
	slices.SortFunc(out, func(a, b edge) int {
		if c := compareNumbers(a.from, b.from); c != 0 {
			return c
		}
		return compareNumbers(a.to, b.to)
	})
	return out
}

// part is one sum of a family of the edge.
func (o *omniRun) part(e edge, family string, p Part) total {
	return o.v.total(Term{Family: family, Part: p, Where: e.labels()})
}

// omniEdgeNatives are of each pair of stages, over all pairs of their replicas.
func omniEdgeNatives() map[string]func(*omniRun, edge) []Derived {
	return map[string]func(*omniRun, edge) []Derived{
		"omni_edge_hop_mean":           (*omniRun).hopMean,
		"omni_edge_chunks_per_request": func(o *omniRun, e edge) []Derived { return o.part(e, omniTx, Count).some(o.n) },
		"omni_edge_bandwidth":          func(o *omniRun, e edge) []Derived { return o.rate(e, omniInFlight) },
		"omni_edge_serialisation_rate": func(o *omniRun, e edge) []Derived { return o.rate(e, omniTx) },
		"omni_edge_share_of_e2e":       func(o *omniRun, e edge) []Derived { return o.whole(o.hop(e).some(o.e2e), e) },
	}
}

func perEdge(of func(*omniRun, edge) []Derived) func(*View) []Derived {
	return perRun(func(o *omniRun) []Derived {
		var out []Derived
		for _, e := range o.edges() {
			out = append(out, label(of(o, e), metric.NewLabels(e.labels()...))...)
		}
		return out
	})
}

// hopMean is partial when parts of the hop are missing, or were not observed for every chunk: an observation whose
// replica cannot be told is left out.
func (o *omniRun) hopMean(e edge) []Derived {
	d := o.whole(o.hop(e).some(o.n), e)
	if len(d) > 0 && d[0].Status.Defined() && o.spread(e).sum > 0 {
		d[0].Flag("counts_differ")
		d[0].atBest(Partial)
	}
	return d
}

func (o *omniRun) hop(e edge) total { return o.v.total(hopTerms(e.labels()...)...) }

// whole makes a result of hops partial when a part of one of them is missing.
func (o *omniRun) whole(d []Derived, hops ...edge) []Derived {
	if len(d) == 0 || !d[0].Status.Defined() {
		return d
	}
	for _, e := range hops {
		for _, family := range edgeFamilies()[1:] {
			if o.part(e, family, Sum).series == 0 {
				d[0].Flag("hop_part_missing")
				d[0].atBest(Partial)
			}
		}
	}
	return d
}

// rate is bytes by a time. Pairs of sums whose counts differ are of different chunks.
func (o *omniRun) rate(e edge, family string) []Derived {
	d := o.part(e, omniSize, Sum).some(o.part(e, family, Sum))
	if len(d) > 0 && d[0].Status.Defined() && differ(o.part(e, omniSize, Count).sum, o.part(e, family, Count).sum) {
		d[0].Flag("counts_differ")
		d[0].atBest(Partial)
	}
	return d
}

func differ(a, b float64) bool { return a-b > 0.5 || b-a > 0.5 }

// spread is the most less the fewest observations that a family of the edge has, of at least two.
func (o *omniRun) spread(e edge) total {
	var all total
	var counts []float64
	for _, family := range edgeFamilies() {
		if a := o.part(e, family, Count); a.series > 0 {
			all, counts = all.and(1, a), append(counts, a.sum)
		}
	}
	if len(counts) < 2 {
		return total{}
	}
	all.sum = slices.Max(counts) - slices.Min(counts)
	return all
}

func (o *omniRun) edgeCounts() []Derived {
	var out []Derived
	for _, e := range o.edges() {
		s := o.spread(e)
		out = append(out, label(countDiffers(s, total{series: 1}), metric.NewLabels(e.labels()...))...)
	}
	return out
}
