package catalog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/catalog/pack"
	"github.com/scrapestat/scrapestat/metric"
)

// Engine is a program whose families are in a body.
type Engine struct {
	ID   string // a stable word: "vllm", "vllm-omni", "sglang", ...
	Name string // as its makers write it
	// Version is what the body tells of the version, "" when it does not, and VersionFrom the family and label that told
	// it.
	Version, VersionFrom string
	// Refresh is how often the engine itself renews the body, or that part of it that Refreshed names; 0 means at each
	// event.
	Refresh   time.Duration
	Refreshed string // "" means all of it, or that the body has none of that part
	// Host reports whether the families describe a machine or a wrapper around an engine rather than an engine.
	Host bool
}

// Servers returns the packs that tell how a server is recognised, the specific ones before those that they contain: a
// Ray or Dynamo body passes the families of its engine through. They are only to be read.
func (c *Catalog) Servers() []*pack.Pack {
	return slices.Clone(c.recognisable())
}

func (c *Catalog) recognisable() []*pack.Pack {
	if c == nil {
		return ours().servers
	}
	return c.servers
}

// serversOf are the packs of a set that tell how a server is recognised, in the order of Servers.
func serversOf(set *pack.Set) (out []*pack.Pack) {
	for _, p := range set.Packs() {
		if p.Recognise.Families != nil {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b *pack.Pack) int {
		return cmp.Or(a.Recognise.Order, a.Rank) - cmp.Or(b.Recognise.Order, b.Rank)
	})
	return out
}

// Engines returns the engines of which the dictionary has families, the most specific first.
func (c *Catalog) Engines(d *metric.Schema) []Engine {
	var out []Engine
	for _, p := range c.Servers() {
		r := &p.Recognise
		theirs := slices.ContainsFunc(out, func(e Engine) bool { return e.ID == r.Unless })
		if theirs || !c.recognised(d, r) {
			continue
		}
		e := Engine{ID: p.Name, Name: cmp.Or(r.Name, p.Title), Refresh: r.Every, Refreshed: r.Of, Host: r.Host}
		shown := func(f metric.Family) bool { return pack.MatchAny(r.If, f.Name) }
		if r.If != nil && !slices.ContainsFunc(d.Families, shown) {
			e.Refresh, e.Refreshed = 0, ""
		}
		e.Version, e.VersionFrom = c.version(d, r)
		out = append(out, e)
	}
	return out
}

// recognised reports whether a body has the families of a server; or what an older one, or one that has had no request
// yet, has instead.
func (c *Catalog) recognised(d *metric.Schema, r *pack.Recognise) bool {
	for i := range d.Families {
		f := &d.Families[i]
		if c.of(r, f.Name) || r.Help != "" && strings.HasPrefix(f.Help, r.Help) {
			return true
		}
	}
	for i := range d.Series {
		if r.Bare != "" && d.FamilyOf(i).Name == r.Bare {
			if _, ok := d.Series[i].Labels.Get(r.Label); ok {
				return true
			}
		}
	}
	return false
}

// of reports whether a family is one by which a server is recognised, in any spelling of its name.
func (c *Catalog) of(r *pack.Recognise, name string) bool {
	return pack.MatchAny(r.Families, name, c.spelt(name))
}

// spelt is a name as packs spell it, as it is where none has it.
func (c *Catalog) spelt(name string) string {
	if f, ok := c.Family(name); ok {
		return f.As(name)
	}
	return name
}

// CompareServers orders names of servers: the specific ones before those that they contain, then what is none.
func (c *Catalog) CompareServers(a, b string) int {
	list := c.recognisable()
	rank := func(name string) int { // of several parts of a pack, the last
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].Name == name {
				return i
			}
		}
		return len(list)
	}
	return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b))
}

// ServerOf returns the name of the most specific server that is recognised by a family, "" for none.
func (c *Catalog) ServerOf(family string) string {
	as := c.spelt(family)
	for _, p := range c.recognisable() {
		if pack.MatchAny(p.Recognise.Families, family, as) {
			return p.Name
		}
	}
	return ""
}

// version looks for a version in the labels that may have it: the one that the pack names, and the label version of a
// build or version information of the engine.
func (c *Catalog) version(d *metric.Schema, r *pack.Recognise) (v, from string) {
	for i := range d.Series {
		f, l := d.FamilyOf(i), d.Series[i].Labels
		if !c.of(r, f.Name) {
			continue
		}
		names := []string{"version", "engine_version", "build_version"}
		if !isInfo(f) {
			names = nil
		}
		for _, name := range append(names, r.Version) {
			if v, ok := l.Get(name); ok && v != "" {
				return v, f.Name + "{" + name + "}"
			}
		}
	}
	return "", ""
}

// isInfo reports whether the labels of a family are its content.
func isInfo(f *metric.Family) bool {
	return f.Type == metric.Info || strings.HasSuffix(f.Name, "_info") || strings.HasSuffix(f.Name, "_version")
}

// all are the packs with what is known of servers; nil knows those that are embedded.
func (c *Catalog) all() []*pack.Pack {
	if c == nil {
		c = ours()
	}
	return c.set.Packs()
}

// Sentinel returns what tells the values of a family that mean there is none; nil where all mean something. It is safe
// for concurrent use.
func (c *Catalog) Sentinel(family string) func(v float64) bool {
	as := c.spelt(family)
	for _, p := range c.all() {
		for _, s := range p.Sentinels {
			if pack.MatchAny(s.Families, family, as) {
				return s.Blank
			}
		}
	}
	return nil
}

// Quiet reports whether a family that no pack has tells nothing of requests, by its name.
func (c *Catalog) Quiet(family string) bool {
	return slices.ContainsFunc(c.all(), func(p *pack.Pack) bool { return pack.MatchAny(p.Quiet, family) })
}

// Hint tells what gives a server a family of that name, its newest; "" when nothing is known.
func (c *Catalog) Hint(family string) string {
	for _, p := range c.all() {
		for _, n := range p.Needs {
			if pack.Match(n.Families, family) {
				return n.Text
			}
		}
	}
	return ""
}
