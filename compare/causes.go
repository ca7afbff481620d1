package compare

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/compare/judge"
)

// Cause is a quantity that moved below a change of the headline. Rows of one quantity under several names are one.
type Cause struct {
	ID       string // the word of the canonical id, else the name of the derived quantity, with labels such as the stage
	Aliases  []string
	Side     int
	From, To float64
	Unit     string
	Change   float64
	// Explains is by how much it changed the mean time of a request, in seconds; NaN of what is no time.
	Explains float64
}

// causes finds what explains the changes that the headline shows.
func (c *comparer) causes(rows []*draft) {
	r := c.result
	for side := 1; side < len(c.sides); side++ {
		changed := func(l Line) bool { return l.Side == side && l.Found() }
		if c.o.Causes || slices.ContainsFunc(r.Headline, changed) {
			r.Causes = append(r.Causes, c.causesOf(rows, side)...)
		}
	}
}

// Found reports whether a line is a change.
func (l *Line) Found() bool {
	return slices.Contains([]judge.Verdict{judge.Worse, judge.Better, judge.Changed, judge.MovedUp, judge.MovedDown},
		l.Verdict)
}

// causesOf returns the groups of rows of which one changed: what explains most of the time of a request first, then
// what is no time, the largest change first.
func (c *comparer) causesOf(rows []*draft, side int) []Cause {
	groups := map[string][]*draft{}
	for _, d := range rows {
		if id := c.causeID(d, rows); id != "" {
			groups[id] = append(groups[id], d)
		}
	}
	var out []Cause
	for id, list := range groups {
		moved := func(d *draft) bool { v := d.Against[side].Verdict; return v == Worse || v == Better || v == Changed }
		if !slices.ContainsFunc(list, moved) {
			continue
		}
		d := list[max(0, slices.IndexFunc(list, func(d *draft) bool { return d.Kind == FamilyRow }))]
		x := Cause{ID: id, Side: side, From: d.Cells[0].Value, To: d.Cells[side].Value, Unit: d.Unit,
			Change: d.Against[side].Change, Explains: c.explains(d, rows, side)}
		for _, d := range list {
			if name := shortName(d.Family); name != id && !slices.Contains(x.Aliases, name) {
				x.Aliases = append(x.Aliases, name)
			}
		}
		slices.Sort(x.Aliases)
		out = append(out, x)
	}
	size := func(v float64) float64 {
		if math.IsNaN(v) {
			return -1
		}
		return math.Abs(v)
	}
	slices.SortFunc(out, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(size(b.Explains), size(a.Explains)), cmp.Compare(size(b.Change), size(a.Change)),
			cmp.Compare(a.ID, b.ID))
	})
	return out
}

// shortName is a name without the prefix of its engine.
func shortName(name string) string { return name[strings.LastIndexByte(name, ':')+1:] }

// causeID is what the rows of one quantity have in common, with the labels that keep it apart; "" of a row that
// explains nothing: whole families, percentiles, the time of requests itself and what follows from the load.
func (c *comparer) causeID(d *draft, rows []*draft) string {
	id := d.facts.canonical
	switch {
	case !c.selected(d) || d.fixed != "" || d.facts.family == nil && d.Kind == FamilyRow:
		return ""
	case d.Kind == FamilyRow && (d.Stat != "mean" || id == ""):
		return ""
	case d.Kind == DerivedRow:
		asks := []catalog.Category{catalog.Latency, catalog.Saturation, catalog.TimeSpent, catalog.Cache}
		if !slices.Contains(asks, d.facts.question) {
			return ""
		}
		if id == "" && len(d.facts.families) == 1 && strings.HasSuffix(d.Family, "_mean") {
			id = c.o.Catalog.Canonical(d.facts.families[0])
		}
	}
	id = strings.TrimSuffix(strings.TrimSuffix(cmp.Or(id, d.Family), "_s"), "_mean")
	if id == "e2e" {
		return ""
	}
	if id == "tpot" && slices.ContainsFunc(rows, func(d *draft) bool { return d.facts.canonical == "itl_s" }) {
		id = "itl"
	}
	drop := append(c.o.Catalog.ReplicaLabels(), identityLabels...)
	if l := d.Labels.Without(drop...); l.Len() > 0 {
		id += l.String()
	}
	if d.Target != "" {
		id += " @ " + d.Target
	}
	return id
}

// explains is the change of the mean times the observations of a request.
func (c *comparer) explains(d *draft, rows []*draft, side int) float64 {
	i := slices.IndexFunc(rows, func(e *draft) bool {
		return e.facts.canonical == "e2e_s" && e.Stat == "mean" && e.Target == d.Target && e.Kind == FamilyRow
	})
	if i < 0 || d.Kind != FamilyRow || d.Unit != "seconds" {
		return math.NaN()
	}
	per := func(side int) float64 {
		own, all := d.observations(side), rows[i].observations(side)
		return d.Cells[side].Value * own / all
	}
	return per(side) - per(0)
}

// observations is how many there were in the runs of a side.
func (d *draft) observations(side int) (n float64) {
	for _, m := range d.measures[side] {
		if m.counts == nil {
			return math.NaN()
		}
		n += m.counts.cum[len(m.counts.cum)-1]
	}
	return n
}
