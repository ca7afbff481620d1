package catalog

import (
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// everything indexes the gains of a plan by the newest names of their families.
func (p *Plan) everything() *View {
	c := p.catalog
	v := &View{catalog: c, byName: map[string][]*Gain{}}
	seen := map[spelt]spelling{}
	newest := p.generations()
	for i := range p.gains {
		g := &p.gains[i]
		f, ok := c.Family(g.Family)
		if !ok {
			v.byName[g.Family] = append(v.byName[g.Family], g)
			continue
		}
		as := f.As(g.Family)
		rank := rankOf(f, as)
		if best, ok := newest[generation{f, g.Source}]; ok && rank > best && f.Implied[as] == nil {
			continue
		}
		if g = p.newest(f, as, g); c.repeats(f, g.Labels) {
			continue
		}
		key := spelt{f, g.Labels, g.Source}
		if before, twice := seen[key]; twice && before.rank != rank {
			// A name that says a part of it, beside one that has the part by a label.
			if rank < before.rank {
				v.byName[f.Name][before.at] = g
				seen[key] = spelling{rank, before.at}
			}
			continue
		}
		seen[key] = spelling{rank, len(v.byName[f.Name])}
		v.byName[f.Name] = append(v.byName[f.Name], g)
	}
	for name, gains := range v.byName {
		if f, ok := c.Family(name); ok && len(f.Only) > 0 {
			v.byName[name] = wholes(gains, f.Only)
		}
	}
	p.numberStages(v)
	return v
}

// spelt is a series of a family, whatever its name is spelt like.
type spelt struct {
	family *Family
	labels metric.Labels
	source int
}

// spelling is where a series was put, and how new its name is: 0 is the newest.
type spelling struct{ rank, at int }

func rankOf(f *Family, as string) int { return slices.Index(f.Aliases, as) + 1 }

// generation is a family of one endpoint.
type generation struct {
	family *Family
	source int
}

// generations finds the newest name that each endpoint has of a family. A server that shows older names too shows the
// same under them, if with fewer labels: they are never added up. Names of parts are of no generation.
func (p *Plan) generations() map[generation]int {
	out := map[generation]int{}
	for i := range p.gains {
		f, rank, ok := p.catalog.Generation(p.gains[i].Family)
		if !ok {
			continue
		}
		key := generation{f, p.gains[i].Source}
		if best, ok := out[key]; !ok || rank < best {
			out[key] = rank
		}
	}
	return out
}

// Generation returns the family of a name and how new that name of it is, 0 for the newest. It is not ok for a name
// that nobody knows, and for one of a part, which is of no generation.
func (c *Catalog) Generation(name string) (f *Family, rank int, ok bool) {
	f, ok = c.Family(name)
	if !ok {
		return nil, 0, false
	}
	as := f.As(name)
	return f, rankOf(f, as), f.Implied[as] == nil
}

// newest returns a gain as the newest generation of its server would show it; the given one where it is of that.
func (p *Plan) newest(f *Family, as string, g *Gain) *Gain {
	labels := p.catalog.Labels(f, g.Labels)
	if implied := f.Implied[as]; len(implied) > 0 {
		labels = join(metric.NewLabels(implied...), labels)
	}
	return p.rename(g, labels, f.Scales[as])
}

// repeats reports whether another rank tells the same.
func (c *Catalog) repeats(f *Family, l metric.Labels) bool {
	if f.Aggregate != AggregateRank0 {
		return false
	}
	return slices.ContainsFunc(c.roles().Wholes, func(w metric.Label) bool {
		rank, ok := l.Get(w.Name)
		return ok && w.Value == "0" && rank != "0" && rank != ""
	})
}

// wholes leaves out the series that are parts of others. Without any whole the parts stand for it.
func wholes(gains []*Gain, only []metric.Label) []*Gain {
	var out []*Gain
	for _, g := range gains {
		whole := true
		for _, p := range only {
			value, _ := g.Labels.Get(p.Name)
			whole = whole && value == p.Value
		}
		if whole {
			out = append(out, g)
		}
	}
	if len(out) == 0 {
		return gains
	}
	return out
}

// scopes splits a view as a pack wants its results kept apart.
func (v *View) scopes(p *Pack) []*View {
	if len(p.Split) == 0 {
		return v.split(p.Scope)
	}
	labels := slices.Concat(p.Scope, p.Split)
	keys := map[metric.Labels]bool{}
	of := map[string][]string{} // the labels that make scopes, by family: nobody knows what those of others mean
	for name, gains := range v.byName {
		of[name] = v.scopeLabels(name, labels)
		for _, g := range gains {
			if _, known := v.catalog.Family(name); known && g.Labels.Only(p.Scope...).Len() == len(p.Scope) {
				keys[g.Labels.Only(of[name]...)] = true
			}
		}
	}
	var order []metric.Labels
	for k := range keys {
		if !covered(k, keys) {
			order = append(order, k)
		}
	}
	slices.SortFunc(order, metric.Labels.Compare)
	out := make([]*View, len(order))
	at := map[metric.Labels]*View{}
	for i, k := range order {
		out[i] = v.part(k)
		at[k] = out[i]
	}
	for name, gains := range v.byName {
		for _, g := range gains {
			key := g.Labels.Only(of[name]...)
			if own := at[key]; own != nil {
				own.byName[name] = append(own.byName[name], g)
				continue
			}
			for _, group := range out {
				if has(group.Scope, pairs(key)) {
					group.byName[name] = append(group.byName[name], g)
				}
			}
		}
	}
	return out
}

// scopeLabels are those of the labels that do not tell kinds apart within a family.
func (v *View) scopeLabels(family string, labels []string) []string {
	f, ok := v.catalog.Family(family)
	if !ok || f.Kinds == nil {
		return labels
	}
	return slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return slices.Contains(f.Kinds, l) })
}

// covered reports whether another key has all labels of k and more.
func covered(k metric.Labels, keys map[metric.Labels]bool) bool {
	for other := range keys {
		if other.Len() > k.Len() && has(other, pairs(k)) {
			return true
		}
	}
	return false
}
