package compare

import (
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// facts is what the catalog says of a family or derived quantity. The zero value is that nothing is known.
type facts struct {
	family    *catalog.Family // nil when the catalog has none, and for derived quantities
	engine    string          // or pack
	better    catalog.Direction
	meaning   string
	unit      string
	rule      catalog.Aggregate
	scale     float64 // of the spelling the run has, to unit; 0 for none
	headline  bool
	question  catalog.Category
	canonical string
	families  []string // that a derived quantity is made of
}

func (c *comparer) family(name string) facts {
	f, ok := c.o.Catalog.Family(name)
	if !ok {
		return facts{}
	}
	return facts{family: f, engine: f.Engine, better: f.Better, meaning: f.Meaning, unit: f.Unit, rule: f.Aggregate,
		scale: f.Scales[f.As(name)], canonical: f.Canonical, headline: f.Canonical != ""}
}

func rule(d *summary.Derived) facts {
	return facts{engine: d.Pack, better: d.Better, meaning: d.Help, unit: d.Unit, headline: d.Headline,
		question: d.Category, canonical: d.Canonical, families: d.Families}
}

// quantity is what the catalog calls a statistic of it.
func (f facts) quantity(stat string, typ metric.Type) catalog.Quantity {
	id := f.canonical
	switch {
	case stat == "mean":
		id = strings.TrimSuffix(id, "_s") + "_mean_s"
	case stat == "rate" && typ != metric.Counter:
		id = "" // how often, not how much
	}
	return catalog.Quantity{ID: id, Engine: f.engine}
}

// labelNames are older names of labels, for families that the catalog does not know.
var labelNames = map[string]string{"stage_id": "stage", "replica_id": "replica"}

// stable returns the labels by which a series is found again in another run: by their newest names, with those that
// its name implies, without those that name a process or a place.
func (c *comparer) stable(name string, f facts, l metric.Labels) metric.Labels {
	l = l.Without(c.o.Catalog.VolatileLabels()...)
	if f.family == nil {
		return rename(l)
	}
	l = rename(c.o.Catalog.Labels(f.family, l).Without(f.family.Volatile...))
	if implied := f.family.Implied[f.family.As(name)]; len(implied) > 0 {
		l = metric.NewLabels(implied...).Join(l)
	}
	return l
}

func rename(l metric.Labels) metric.Labels {
	var pairs []metric.Label
	renamed := false
	for name, value := range l.All() {
		if to, ok := labelNames[name]; ok {
			name, renamed = to, true
		}
		pairs = append(pairs, metric.Label{Name: name, Value: value})
	}
	if !renamed {
		return l
	}
	return metric.NewLabels(pairs...)
}
