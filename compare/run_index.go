package compare

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
)

// stock is what one run has, by the name under which families meet.
type stock struct {
	in       *Input
	side     int
	families map[string]*familyEntry
	declared map[string]bool // families announced without a sample, by the same name
	targets  []string        // by endpoint: the name under which targets meet
	infos    []*summary.Metric
}

// familyEntry is a family, or a derived quantity, of one run.
type familyEntry struct {
	kind       Kind
	name       string // as the run has it
	typ        metric.Type
	unit       string
	help       string
	facts      facts
	entry      []entry
	groups     map[place]*group
	renumbered bool // engine became stage and replica
	lone       bool // engine had one value and was dropped
}

// entry is a series or a derived quantity of a holding.
type entry struct {
	target string
	labels metric.Labels
	series *summary.Series
	derive *summary.Derived
}

// place is where in a family a row is.
type place struct {
	target string
	labels metric.Labels
}

// isInstant reports whether a family is a Unix timestamp.
func isInstant(name string) bool {
	return strings.HasSuffix(name, "_start_time_seconds") || strings.HasSuffix(name, "_timestamp_seconds") ||
		strings.HasSuffix(name, "_created")
}

// newStock takes stock of a run.
func (c *comparer) newStock(in *Input, side int) *stock {
	s := &stock{in: in, side: side, families: map[string]*familyEntry{}, declared: map[string]bool{},
		targets: targetNames(in.Run)}
	have := map[string]bool{}
	for i := range in.Run.Metrics {
		have[in.Run.Metrics[i].Name] = true
	}
	for i := range in.Run.Metrics {
		if m := &in.Run.Metrics[i]; m.Type == metric.Info || catalog.Configuration(m.Name) {
			s.infos = append(s.infos, m)
		} else {
			c.stockFamily(s, m, have)
		}
	}
	for i := range in.Run.Derived {
		c.stockDerived(s, &in.Run.Derived[i])
	}
	for i := range in.Run.Endpoints {
		for _, name := range in.Run.Endpoints[i].Declared {
			s.declared[c.canon(name, have)] = true
		}
	}
	return s
}

func (c *comparer) stockFamily(s *stock, m *summary.Metric, have map[string]bool) {
	key := c.canon(m.Name, have)
	if m.Conflict || s.families[key] != nil {
		key = m.Name + " as " + m.Type.String()
	}
	h := &familyEntry{name: m.Name, typ: typeName(m.Type), unit: m.ShownUnit(), help: m.Help, facts: c.family(m.Name)}
	if h.facts.scale != 0 || h.unit == "" {
		h.unit = h.facts.unit
	}
	s.families[key] = h
	for j := range m.Series {
		e := &m.Series[j]
		h.entry = append(h.entry, entry{target: s.targets[e.Endpoint], labels: c.stable(m.Name, h.facts, e.Labels),
			series: e})
	}
}

func (c *comparer) stockDerived(s *stock, d *summary.Derived) {
	key := d.Pack + "/" + d.Name
	h := s.families[key]
	if h == nil {
		h = &familyEntry{kind: DerivedRow, name: d.Name, unit: d.Unit, facts: rule(d)}
		s.families[key] = h
	}
	h.entry = append(h.entry, entry{target: s.targetOf(d.Endpoint),
		labels: rename(d.Labels.Without(c.o.Catalog.VolatileLabels()...)), derive: d})
}

// targetOf is the name of the target of a derived quantity; "" for one of all targets together.
func (s *stock) targetOf(endpoint int) string {
	if endpoint < 0 || endpoint >= len(s.targets) {
		return ""
	}
	return s.targets[endpoint]
}

// canon is the name under which a family meets those of other runs. A run that has a family under both its names keeps
// them apart.
func (c *comparer) canon(name string, have map[string]bool) string {
	if f, ok := c.o.Catalog.Family(name); ok && f.Name != name && !have[f.Name] {
		return f.Name
	}
	if short := strings.TrimSuffix(name, "_total"); !have[short] {
		return short
	}
	return name
}

// targetNames is the name of each target under which it meets those of other runs: the alias, else the URL.
func targetNames(r *summary.Run) []string {
	out := make([]string, len(r.Endpoints))
	for i := range r.Endpoints {
		out[i] = r.Endpoints[i].Shown()
	}
	return out
}

// gather sorts the entries of all families into groups, one for each row to be.
func (c *comparer) gather(s *stock) {
	pooled := c.pooledBy(s)
	for _, key := range slices.Sorted(maps.Keys(s.families)) {
		h := s.families[key]
		h.groups = map[place]*group{}
		for i := range h.entry {
			e := &h.entry[i]
			if c.o.By != nil && !slices.Contains(c.o.By, summary.ByEndpoint) && e.series != nil && s.in.Run.Repeats(e.series) {
				continue // the row has it of another address
			}
			at := c.placeOf(h, e)
			g := h.groups[at]
			if g == nil {
				g = &group{run: s.in.Run, factor: 1, rule: h.facts.rule, typ: h.typ, quantiles: c.o.Quantiles,
					pooled: pooled[h.name+"\x00"+at.labels.String()]}
				h.groups[at] = g
			}
			if e.series != nil {
				g.series = append(g.series, e.series)
			} else {
				g.derived = append(g.derived, e.derive)
			}
		}
	}
}

// placeOf is the row an entry belongs to.
func (c *comparer) placeOf(h *familyEntry, e *entry) place {
	if c.o.By == nil || h.kind == DerivedRow {
		return place{e.target, e.labels}
	}
	at := place{labels: e.labels.Only(c.o.By...)}
	if slices.Contains(c.o.By, summary.ByEndpoint) {
		at.target = e.target
	}
	return at
}

// pooledBy are the aggregates of a run that was analysed with the same labels.
func (c *comparer) pooledBy(s *stock) map[string]*summary.Aggregate {
	out := map[string]*summary.Aggregate{}
	r := s.in.Run
	if c.o.By == nil || !slices.Equal(r.Options.By, c.o.By) || slices.Contains(c.o.By, summary.ByEndpoint) {
		return out
	}
	for i := range r.Aggregates {
		a := &r.Aggregates[i]
		out[r.Metrics[a.Metric].Name+"\x00"+rename(a.Labels).String()] = a
	}
	return out
}

// convert brings the values of a holding into another unit; false when there is no way.
func (h *familyEntry) convert(unit string) bool {
	if h.unit == unit {
		h.scaleBy(1)
		return true
	}
	from, a := units.Base(h.unit)
	to, b := units.Base(unit)
	if h.unit == "" || unit == "" || from != to || b == 0 {
		h.scaleBy(1)
		return h.unit == "" || unit == ""
	}
	factor := a / b
	if inverse := b / a; inverse > 1 && math.Abs(inverse-math.Round(inverse)) < 1e-6*inverse {
		factor = 1 / math.Round(inverse)
	}
	h.scaleBy(factor)
	return true
}

// scaleBy sets the factor of all groups, on top of that of the spelling.
func (h *familyEntry) scaleBy(factor float64) {
	if h.facts.scale != 0 {
		factor *= h.facts.scale
	}
	for _, g := range h.groups {
		g.factor = factor
	}
}
