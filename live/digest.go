package live

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
)

// all stands for all targets together, where an index of one is asked for.
const all = -1

// digest is what the view draws of a result: of all targets together, or of one. It is immutable.
type digest struct {
	target   int
	engines  []engine
	families []family
	warnings []metric.Warning
}

// engine is the summary of one engine.
type engine struct {
	title     string
	scope     string // model and the like, where there is only one
	rows      []row
	latencies []latency
}

// row is a quantity of an engine.
type row struct {
	scope              string // model and the like, where the engine has several
	name, labels, note string
	canonical          string
	sofar, now         string
	trend              []float64
	load               bool // how much the server had to do: it stands before the latencies
}

// latency is a distribution of times of an engine.
type latency struct {
	name, labels        string
	count               int64
	mean, p50, p90, p99 string
	trend               []float64
}

// family is a family over the series of the chosen targets.
type family struct {
	name, typ, unit, help string
	engine                string // as the catalog names it, "" when it does not know the family
	series                int
	sofar, now            string
	trend                 []float64
	top                   []member
}

// member is a series of a family.
type member struct{ labels, target, value string }

// history keeps the trends between two digests. It has one owner.
type history struct {
	before map[string]point
	trends map[string]*trend
	seen   int // number of the look
}

// point is a quotient as it was at the last look.
type point struct{ num, den float64 }

type trend struct {
	ring
	seen int
}

// maxTrends bounds the memory of the trends; more of them are not kept.
const maxTrends = 20_000

func newHistory() *history { return &history{before: map[string]point{}, trends: map[string]*trend{}} }

// next begins a look. What did not appear in the last ten is forgotten.
func (h *history) next() {
	h.seen++
	for key, t := range h.trends {
		if t.seen < h.seen-10 {
			delete(h.trends, key)
			delete(h.before, key)
		}
	}
}

// gain is what a quotient was since the last look; NaN when nothing can be said.
// Each key is to be asked for once a look.
func (h *history) gain(key string, num, den float64) float64 {
	last, ok := h.before[key]
	if ok || len(h.before) < maxTrends {
		h.before[key] = point{num, den}
	}
	above, below := num-last.num, den-last.den
	if !ok || above < 0 || below <= 0 {
		return math.NaN() // the result was made anew, or nothing happened
	}
	return above / below
}

// trend adds a value and returns a copy of all of the key.
func (h *history) trend(key string, v float64) []float64 {
	t := h.trends[key]
	if t == nil {
		if len(h.trends) >= maxTrends {
			return nil
		}
		t = &trend{}
		h.trends[key] = t
	}
	t.seen = h.seen
	if t.n > 0 || !math.IsNaN(v) { // no gap before the first
		t.add(v)
	}
	return t.values()
}

// digester makes digests of the results of one run.
type digester struct {
	*history
	run    *summary.Run
	target int
	key    string // of the target, before all others
}

// digest makes the digest of one target, or of all, and adds to its trends.
func (h *history) digest(run *summary.Run, target int) *digest {
	d := digester{history: h, run: run, target: target, key: fmt.Sprint(target, "\x00")}
	return &digest{target: target, engines: d.engines(), families: d.families(), warnings: run.Warnings}
}

// derived are the quantities of the target, or of all targets together.
func (d *digester) derived() []summary.Derived {
	if d.target == all {
		if len(d.run.Combined) == 0 {
			return nil
		}
		return d.run.Combined[0].Derived
	}
	var out []summary.Derived
	for _, q := range d.run.Derived {
		if q.Endpoint == d.target {
			out = append(out, q)
		}
	}
	return out
}

// questionOrder is the order of quantities.
var questionOrder = [...]catalog.Category{catalog.Throughput, catalog.Latency, catalog.Saturation,
	catalog.TimeSpent, catalog.Cache, catalog.Errors, catalog.Efficiency, catalog.Check, catalog.Other}

// group is an engine while its rows are gathered.
type group struct {
	engine
	id     string // of the engine, as families have it
	scopes []metric.Labels
	names  []string // of labels that are scopes
}

// groups returns the engines of the packs, in their order, and those of each pack.
func groups(c *catalog.Catalog) (list []*group, of map[string]*group) {
	of = map[string]*group{}
	for _, p := range c.Packs() {
		title := cmp.Or(p.Title, p.Name)
		i := slices.IndexFunc(list, func(g *group) bool { return g.title == title })
		if i < 0 {
			i = len(list)
			list = append(list, &group{engine: engine{title: title}})
		}
		g := list[i]
		g.names = append(append(g.names, p.Scope...), p.Split...)
		of[p.Name] = g
	}
	return list, of
}

// meet notes what a quantity tells of its engine.
func (g *group) meet(q *summary.Derived, c *catalog.Catalog) {
	if s := q.Labels.Only(g.names...); s.Len() > 0 && !slices.Contains(g.scopes, s) {
		g.scopes = append(g.scopes, s)
	}
	for _, name := range q.Families {
		if f, ok := c.Family(name); ok && g.id == "" {
			g.id = f.Engine
		}
	}
}

// engines are those that have quantities, in the order of the packs.
func (d *digester) engines() []engine {
	quantities := d.derived()
	list, of := groups(d.run.Options.Catalog)
	for i := range quantities {
		if q := &quantities[i]; of[q.Pack] != nil && q.Status != catalog.Missing {
			of[q.Pack].meet(q, d.run.Options.Catalog)
		}
	}
	for _, question := range questionOrder {
		for i := range quantities {
			q := &quantities[i]
			if g := of[q.Pack]; g != nil && q.Headline && q.Category == question && q.Status != catalog.Missing {
				g.rows = append(g.rows, d.quantity(q, g.names, len(g.scopes) > 1))
			}
		}
	}
	var out []engine
	for _, g := range list {
		if len(g.rows) > 0 {
			out = append(out, d.finish(g))
		}
	}
	return out
}

// finish orders the rows of an engine and adds the others.
func (d *digester) finish(g *group) engine {
	if len(g.scopes) == 1 {
		g.scope = text(g.scopes[0])
	}
	if d.target == all {
		g.latencies = d.latencies(g)
		g.rows = slices.DeleteFunc(g.rows, g.repeats)
	}
	g.rows = append(d.levels(g), g.rows...)
	slices.SortStableFunc(g.rows, func(a, b row) int { return strings.Compare(a.scope, b.scope) })
	return g.engine
}

// repeats reports whether a row is the mean of a latency that has a row of its own.
func (e *engine) repeats(r row) bool {
	id, mean := strings.CutSuffix(r.canonical, "_mean_s")
	return mean && slices.ContainsFunc(e.latencies, func(l latency) bool { return l.name == id+"_s" })
}

// quantity is the row of a quantity; several is set when there is more than one scope.
func (d *digester) quantity(q *summary.Derived, scope []string, several bool) row {
	r := row{name: q.Name, canonical: q.Canonical, load: q.Category == catalog.Throughput,
		labels: text(q.Labels.Without(scope...)), sofar: "-", now: "-"}
	if several {
		r.scope = text(q.Labels.Only(scope...))
	}
	if q.Status.Defined() {
		r.sofar = units.Format(q.Shown, q.Unit)
	}
	if q.Status != catalog.OK {
		r.note = strings.ReplaceAll(q.Status.String(), "_", " ")
	}
	if q.HasParts {
		key := d.key + "q" + q.Pack + "\x00" + q.Name + "\x00" + q.Labels.String()
		now := d.gain(key, q.Numerator, q.Denominator)
		r.trend = d.trend(key, now)
		if !math.IsNaN(now) {
			r.now = units.Format(now, q.Unit)
		}
	}
	return r
}

// text writes labels, "" for none.
func text(l metric.Labels) string {
	if l.Len() == 0 {
		return ""
	}
	return l.String()
}

// levels are the gauges of an engine that the catalog knows across engines: running and waiting requests, the
// use of the cache. Their last values are the state of the engine now.
func (d *digester) levels(g *group) []row {
	var out []row
	scopes := g.scopes
	if len(scopes) < 2 {
		scopes = []metric.Labels{{}}
	}
	own := d.endpointsOf(g)
	for _, scope := range scopes {
		for _, m := range d.metrics() {
			f, ok := d.run.Options.Catalog.Family(m.Name)
			if !ok || f.Canonical == "" || f.Engine != g.id || f.Moves == "start" || catalog.Configuration(f.Name) ||
				m.Type == metric.Counter {
				continue
			}
			fam := d.family(m, "level"+g.title+scope.String(), func(s *summary.Series) bool {
				labels := d.run.Options.Catalog.Labels(f, s.Labels)
				return own[s.Endpoint] && (scope.Len() == 0 || labels.Only(g.names...) == scope)
			})
			if fam == nil || fam.typ != metric.Gauge.String() {
				continue
			}
			out = append(out, row{scope: text(scope), name: f.Canonical, now: fam.now, trend: fam.trend, load: true})
		}
	}
	return out
}

// endpointsOf are the endpoints that the quantities of an engine are of: not those of a pipeline that wraps it.
func (d *digester) endpointsOf(g *group) map[int]bool {
	_, of := groups(d.run.Options.Catalog)
	known := d.derived()
	out := map[int]bool{}
	for i := range d.run.Derived {
		q := &d.run.Derived[i]
		if of[q.Pack] == nil || of[q.Pack].title != g.title || out[q.Endpoint] {
			continue
		}
		out[q.Endpoint] = slices.ContainsFunc(known, func(k summary.Derived) bool {
			return k.Name == q.Name && k.Labels == q.Labels && k.Status != catalog.Missing
		})
	}
	return out
}

// latencies are the times that engines have in common.
func (d *digester) latencies(g *group) []latency {
	at := func(q float64) int { return slices.Index(d.run.Options.Quantiles, q) }
	var out []latency
	for i := range d.run.Latencies {
		l := &d.run.Latencies[i]
		h := l.Histogram
		if h == nil || h.Count == 0 || l.Engine != g.id {
			continue
		}
		unit := d.run.Metrics[l.Metric].ShownUnit()
		row := latency{name: l.ID, labels: text(l.Labels), count: h.Count, mean: "-", p50: "-", p90: "-", p99: "-"}
		if !h.NoSum {
			row.mean = units.Format(h.Avg, unit)
			key := d.key + "l" + l.ID + "\x00" + g.title + "\x00" + l.Labels.String()
			row.trend = d.trend(key, d.gain(key, h.Sum, float64(h.Count)))
		}
		for q, cell := range map[float64]*string{0.5: &row.p50, 0.9: &row.p90, 0.99: &row.p99} {
			if n := at(q); n >= 0 && n < len(h.Quantiles) {
				*cell = units.Format(h.Quantiles[n].Value, unit)
			}
		}
		out = append(out, row)
	}
	return out
}
