package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog/pack"
	"github.com/scrapestat/scrapestat/metric"
)

// Caveat is why a quantity is not what the same quantity of another engine is, or not what a reader may take it for.
type Caveat struct {
	Letter string `json:"letter"`
	Text   string `json:"text"`
	// Forbids is set where the quantity means something else: neither is better or worse.
	Forbids bool `json:"-"`
}

// Quantity is a canonical quantity of an engine, or of one of its packs.
type Quantity struct{ ID, Engine string }

// words are those of a note for what servers and ids mean.
func (c *Catalog) words(n *pack.Note) func(key string) string {
	packs, key := c.all(), cmp.Or(n.Name, n.Letter)
	return func(name string) string {
		if i := slices.IndexFunc(packs, func(p *pack.Pack) bool { return p.Name == name && p.Part == "" }); i >= 0 {
			return packs[i].Says[key]
		}
		return n.IDs[name]
	}
}

// meaning returns what q means to a note, "" for what most engines do.
func (q Quantity) meaning(word func(string) string) string {
	return cmp.Or(word(q.Engine), word(packEngine(q.Engine)), word(q.ID))
}

// Comparability returns the caveats that apply between two quantities, in the order of their letters; nil when they
// mean the same.
func (c *Catalog) Comparability(a, b Quantity) []Caveat {
	return c.caveats(func(n *pack.Note) bool {
		word := c.words(n)
		comparable := a.ID == b.ID || n.IDs[a.ID] != n.IDs[b.ID]
		return comparable && slices.Contains(n.Of, a.ID) && slices.Contains(n.Of, b.ID) && a.meaning(word) != b.meaning(word)
	})
}

// Caveats returns the caveats of a quantity on its own, in the order of their letters.
func (c *Catalog) Caveats(q Quantity) []Caveat {
	return c.caveats(func(n *pack.Note) bool {
		return n.Alone && slices.Contains(n.Of, q.ID) && q.meaning(c.words(n)) != ""
	})
}

// Beside returns the caveats of a quantity beside the same one of servers for which it means something else.
func (c *Catalog) Beside(q Quantity) []Caveat {
	return c.caveats(func(n *pack.Note) bool { return slices.Contains(n.Of, q.ID) && q.meaning(c.words(n)) != "" })
}

// AllCaveats returns every caveat, in the order of their letters.
func (c *Catalog) AllCaveats() []Caveat { return c.caveats(func(*pack.Note) bool { return true }) }

// SortCaveats sorts a list by letter and drops what occurs again; it changes the list.
func SortCaveats(list []Caveat) []Caveat {
	slices.SortFunc(list, func(a, b Caveat) int { return cmp.Compare(a.Letter, b.Letter) })
	return slices.Compact(list)
}

func (c *Catalog) caveats(applies func(*pack.Note) bool) []Caveat {
	var out []Caveat
	for _, p := range c.all() {
		for i := range p.Notes {
			n := &p.Notes[i]
			if x := (Caveat{n.Letter, n.Text, n.Forbids}); applies(n) && !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
	}
	return SortCaveats(out)
}

// packEngine returns the engine of a pack.
func packEngine(pack string) string {
	for _, part := range []string{"-stats", "-worker", "-path", "-proxy", "-host"} {
		pack = strings.TrimSuffix(pack, part)
	}
	return pack
}

// labelsOf joins what packs tell of labels.
func labelsOf(packs []*pack.Pack) (out pack.Labels) {
	for _, p := range packs {
		l := &p.Labels
		out.Replica, out.Kept = append(out.Replica, l.Replica...), append(out.Kept, l.Kept...)
		out.Volatile, out.Apart = append(out.Volatile, l.Volatile...), append(out.Apart, l.Apart...)
		for _, name := range slices.Sorted(maps.Keys(l.Whole)) {
			out.Wholes = append(out.Wholes, metric.Label{Name: name, Value: l.Whole[name]})
		}
	}
	return out
}

func (c *Catalog) roles() *pack.Labels {
	if c == nil {
		return &ours().labels
	}
	return &c.labels
}

// ReplicaLabels are the labels that tell replicas apart and are aggregated over unless somebody asks for them.
func (c *Catalog) ReplicaLabels() []string { return slices.Clone(c.roles().Replica) }

// KeptLabels are the labels that are not aggregated over.
func (c *Catalog) KeptLabels() []string { return slices.Clone(c.roles().Kept) }

// VolatileLabels are the labels that differ between two runs of the same, of any family, and are left out when series
// of two runs are matched.
func (c *Catalog) VolatileLabels() []string { return slices.Clone(c.roles().Volatile) }

// Wholes are labels one value of which stands for all: where a series has it, its siblings with other values are parts
// or copies of it and would count twice.
func (c *Catalog) Wholes() []metric.Label { return slices.Clone(c.roles().Wholes) }

// Apart are the labels over which a family is never added up.
func (c *Catalog) Apart(family string) (out []string) {
	for _, a := range c.roles().Apart {
		if pack.MatchAny(a.Families, family) {
			out = append(out, a.Label)
		}
	}
	return out
}

// Volatile reports whether a label of a family, by any of its names, is one of those, or one that is volatile for this
// family; of configurations all are.
func (c *Catalog) Volatile(family, label string) bool {
	f, ok := c.Family(family)
	return slices.Contains(c.roles().Volatile, label) || ok && slices.Contains(f.Volatile, label) || Configuration(family)
}

// Configuration reports whether the labels of a family are its content, such as those of cache_config_info: to be
// compared as settings, not as series.
func Configuration(family string) bool { return strings.HasSuffix(family, "_info") }
