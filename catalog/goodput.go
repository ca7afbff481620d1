package catalog

import (
	"slices"

	"github.com/scrapestat/scrapestat/catalog/pack"
	"github.com/scrapestat/scrapestat/metric"
)

// attainment pools the series of a family.
func (v *View) attainment(family string, x float64) (a SLOAttainment, status Status) {
	series := v.Series(family)
	if len(series) == 0 {
		return a, Missing
	}
	for _, g := range series {
		b, ok := g.AtMost(x)
		if !ok {
			return a, Missing
		}
		a.Add(b)
		if g.Born {
			status = max(status, BornInWindow)
		}
		if g.Resets > 0 {
			status = max(status, ResetCorrected)
		}
	}
	if a.Count == 0 {
		status = ZeroDenominator
	}
	return a, status
}

// beyond is the share of the observations above a bound of the buckets, bounds of it where x is none.
func beyond(v *View, family string, x float64) []Derived {
	if len(v.Series(family)) == 0 {
		return nil
	}
	a, status := v.attainment(family, x)
	d := Derived{Families: []string{family}, Status: status}
	if status.Defined() {
		d = divided(a.Count-a.Estimate, a.Count, family)
		d.atBest(status)
		if !a.Exact() {
			d.atBest(Estimate)
		}
	}
	return []Derived{d}
}

// times are the histograms of an engine by the canonical ids that may have a longest good time: of several the first
// that has series; nil where the user tells no such time.
func (v *View) times(engine string) map[string]string {
	if len(v.Inputs().SLO) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, f := range v.catalog.Families() {
		if f.Engine != engine || f.Type != metric.Histogram || !slices.Contains(pack.SLOIDs(), f.Canonical) {
			continue
		}
		if old := out[f.Canonical]; old == "" || len(v.Series(old)) == 0 && len(v.Series(f.Name)) > 0 {
			out[f.Canonical] = f.Name
		}
	}
	return out
}

// sloOfEngine is the share of the observations within each time that the user calls good.
func sloOfEngine(v *View, of argument) []Derived {
	var out []Derived
	families := v.times(of.engine)
	for _, id := range pack.SLOIDs() {
		if x := v.Inputs().SLO[id]; x > 0 && families[id] != "" {
			out = append(out, label(v.sloAttainment(families[id], x), oneLabel("slo", id))...)
		}
	}
	return out
}

func (v *View) sloAttainment(family string, x float64) []Derived {
	a, status := v.attainment(family, x)
	if !status.Defined() {
		if len(v.Series(family)) == 0 {
			return nil
		}
		return []Derived{{Status: status, Families: []string{family}}}
	}
	d := divided(a.Estimate, a.Count, family)
	d.atBest(status)
	if a.Exact() {
		return []Derived{d}
	}
	d.atBest(Estimate)
	d.Flag("not_a_bound")
	out := []Derived{d}
	for _, side := range []struct {
		name string
		n    float64
	}{{"lower", a.Lower}, {"upper", a.Upper}} {
		b := divided(side.n, a.Count, family)
		b.atBest(Bound)
		out = append(out, label([]Derived{b}, oneLabel("bound", side.name))...)
	}
	return out
}

// goodput is the share of the requests that are good in every respect, times what the formula beside it says. Only the
// shares of each respect are known, so that the joint share of k is bounded: at most their least, at least their sum
// less k-1 (the bounds of Fréchet). Times between tokens are none of requests and left out.
func goodput(v *View, of argument) []Derived {
	low, high, ok := v.joint(v.times(of.engine))
	if !ok || of.asked && !of.ok {
		return nil
	}
	for _, d := range []*Derived{&low, &high} {
		if of.asked {
			d.Status = max(d.Status, of.Status)
			d.Value *= of.Value
			d.Families = append(d.Families, of.Families...)
		}
		d.Shown = d.Value
	}
	if !low.Status.Defined() || low.Status < Estimate && low.Value == high.Value {
		return []Derived{low}
	}
	low.atBest(Bound)
	high.atBest(Bound)
	return slices.Concat(label([]Derived{low}, oneLabel("bound", "lower")),
		label([]Derived{high}, oneLabel("bound", "upper")))
}

// joint bounds the share of the requests that are good in every respect; false when the user names none.
func (v *View) joint(families map[string]string) (low, high Derived, ok bool) {
	sum, least, k := 0.0, 1.0, 0
	for _, id := range pack.SLOIDs() {
		x := v.Inputs().SLO[id]
		if x <= 0 || id == "itl_s" || families[id] == "" {
			continue
		}
		a, status := v.attainment(families[id], x)
		low.Families = append(low.Families, families[id])
		low.Status = max(low.Status, status)
		if k++; status.Defined() {
			sum += a.Lower / a.Count
			least = min(least, a.Upper/a.Count)
		}
	}
	if low.Status.Defined() {
		low.Value = max(0, sum-float64(k-1))
	}
	high = low
	high.Families = slices.Clone(low.Families)
	if high.Value = least; !high.Status.Defined() {
		high.Value = 0
	}
	there := slices.ContainsFunc(low.Families, func(f string) bool { return len(v.Series(f)) > 0 })
	return low, high, k > 0 && there
}
