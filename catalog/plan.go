package catalog

import (
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// Plan applies the packs of a catalog to stretches one after the other. What the series of a stretch are to the rules
// it finds out once: the slices of a window have the same series, and finding that out is most of the work. A Plan is
// not for several goroutines at a time.
type Plan struct {
	catalog *Catalog
	gains   []Gain  // of the last stretch
	views   []scope // of them
	// renamed are those gains that the rules see under other labels or in another unit, each after what it was made of.
	renamed []renamed
	results int // of the last stretch
}

// scope is a view that the rules of a pack apply to.
type scope struct {
	pack     *Pack
	view     *View
	formulas formulas
}

// renamed is a gain as rules see it; scale is 0 for that of the original.
type renamed struct {
	to, from *Gain
	scale    float64
}

// Plan returns an empty plan.
func (c *Catalog) Plan() *Plan { return &Plan{catalog: c} }

// Derive applies all packs to what one endpoint gained. The results are sorted: by pack, scope, rule, then by further
// labels, numbers as numbers.
func (c *Catalog) Derive(s Interval, span Span) []Derived { return c.Plan().Derive(s, span) }

// Derive does what [Catalog.Derive] does.
func (p *Plan) Derive(s Interval, span Span) []Derived {
	if slices.EqualFunc(p.gains, s.Gains, sameSeries) {
		copy(p.gains, s.Gains)
		for _, r := range p.renamed {
			r.refresh()
		}
	} else {
		p.lay(s.Gains)
	}
	out := make([]Derived, 0, p.results) // those of a slice are as many as those of the one before
	for _, x := range p.views {
		v := x.view
		v.Seconds, v.EndNS, v.SliceSeconds, v.stretch, v.omni = s.Seconds, s.EndNS, s.SliceSeconds, &s, nil
		for i := range x.pack.Rules {
			if x.pack.Rules[i].WindowOnly && span == Slice {
				continue
			}
			if r := &x.pack.Rules[i]; r.native == nil {
				out = x.formulas.evaluate(out, i, v, x.pack)
			} else {
				out = append(out, x.pack.apply(v, r, x.formulas.bindings[i])...)
			}
		}
	}
	if p.results = len(out); len(out) == 0 {
		return nil
	}
	return out
}

// sameSeries reports whether two gains are of one series.
func sameSeries(a, b Gain) bool {
	return a.Family == b.Family && a.Type == b.Type && a.Source == b.Source && a.Labels == b.Labels
}

// lay finds the views of what series gained.
func (p *Plan) lay(gains []Gain) {
	p.gains = append(p.gains[:0], gains...)
	p.views, p.renamed = p.views[:0], p.renamed[:0]
	everything := p.everything()
	rules := p.catalog.Packs()
	for i := range rules {
		pack := &rules[i]
		all := everything.part(metric.Labels{})
		for name, gains := range everything.byName {
			if pack.reads(name) {
				all.byName[name] = gains
			}
		}
		if len(all.byName) == 0 {
			continue
		}
		if pack.requires != "" && !all.has(pack.requires) {
			continue
		}
		for _, v := range all.scopes(pack) {
			p.views = append(p.views, scope{pack, v, pack.bind(v)})
		}
	}
}

// rename returns a gain under other labels and, where scale is neither 0 nor 1, in another unit.
func (p *Plan) rename(g *Gain, labels metric.Labels, scale float64) *Gain {
	if scale == 1 {
		scale = 0
	}
	if labels == g.Labels && scale == 0 {
		return g
	}
	r := renamed{to: &Gain{Labels: labels}, from: g, scale: scale}
	r.refresh()
	p.renamed = append(p.renamed, r)
	return r.to
}

// refresh takes the values of the original over.
func (r renamed) refresh() {
	out, labels := r.to, r.to.Labels
	*out = *r.from
	out.Labels = labels
	if r.scale == 0 {
		return
	}
	for _, x := range []*float64{&out.Sum, &out.TimeAvg, &out.Min, &out.Max, &out.First, &out.Last, &out.Total} {
		*x *= r.scale
	}
	out.Exact, out.HasExact = 0, false
	out.Buckets = slices.Clone(out.Buckets)
	for i := range out.Buckets {
		out.Buckets[i].Upper *= r.scale
	}
	if out.Type == metric.Counter {
		out.Slices = slices.Clone(out.Slices)
		for i := range out.Slices {
			out.Slices[i] *= r.scale
		}
	}
}
