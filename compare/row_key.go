package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

// placeRows makes the rows of a series, or of those taken together: one for each statistic that any run has.
func (c *comparer) placeRows(key string, first *familyEntry, hold []*familyEntry, at place) []*draft {
	inPlace := make([]*familyEntry, len(hold))
	for i, h := range hold {
		if h != nil && h.groups[at] != nil {
			inPlace[i] = h
		}
	}
	if reason := c.missingPlace(key, hold, inPlace, at); reason != "" {
		d := c.draft(key, first, hold, at, "")
		d.fixed = reason
		return []*draft{d}
	}
	var stats []string
	found := make([]map[string]*measure, len(hold))
	for i, h := range inPlace {
		found[i] = map[string]*measure{}
		if h == nil {
			continue
		}
		for _, m := range h.groups[at].measures() {
			if !slices.Contains(stats, m.stat) {
				stats = append(stats, m.stat)
			}
			found[i][m.stat] = m.measure
		}
	}
	f := first.facts
	var out []*draft
	for _, stat := range stats {
		d := c.draft(key, first, hold, at, stat)
		for i, h := range inPlace {
			c.fill(d, i, h, at, found[i][stat])
		}
		d.direct()
		d.describeNames(c)
		d.caveats = c.o.Catalog.Caveats(f.quantity(stat, d.Type))
		for _, x := range d.caveats {
			d.note("caveat " + x.Letter)
		}
		out = append(out, d)
	}
	return out
}

// missingPlace says why a series has nothing to be compared with; "" when it has.
func (c *comparer) missingPlace(key string, hold, inPlace []*familyEntry, at place) string {
	reason := c.missingSides(key, inPlace, func(h *familyEntry) bool { return h != nil })
	if reason == "" {
		return ""
	}
	for i, h := range hold {
		if h != nil && inPlace[i] == nil && at.target != "" && !slices.Contains(c.stocks[i].targets, at.target) {
			return "target " + reason
		}
	}
	for i, h := range hold {
		if h != nil && inPlace[i] == nil && h.byEngine() && hasLabel(at.labels, "stage") {
			return "series by engine, not by stage and replica, and not as many of them: " + reason
		}
	}
	return "series " + reason
}

func hasLabel(l metric.Labels, name string) bool {
	_, ok := l.Get(name)
	return ok
}

// fill adds the measure of run i to a row.
func (c *comparer) fill(d *draft, i int, h *familyEntry, at place, m *measure) {
	side := c.stocks[i].side
	cell := &d.Cells[side]
	switch {
	case h == nil:
		m = absent("no such series")
	case m == nil:
		m = absent("no " + d.Stat)
	}
	if h != nil {
		d.Series = max(d.Series, len(h.groups[at].series))
	}
	for _, n := range m.notes {
		d.note(n)
	}
	if m.missing != "" {
		cell.Missing = cmp.Or(cell.Missing, m.missing)
		return
	}
	cell.Values = append(cell.Values, m.value)
	d.measures[side] = append(d.measures[side], m)
}

func (d *draft) note(text string) {
	if !slices.Contains(d.Notes, text) {
		d.Notes = append(d.Notes, text)
	}
}

// direct sets direction and unit of a row by its statistic.
func (d *draft) direct() {
	d.Better = d.facts.better
	if d.Stat != "rate" {
		return
	}
	if d.Type != metric.Counter {
		d.Better, d.Unit = catalog.Neutral, "" // how often is a matter of the load
	}
	d.Unit += "/s"
}

// describeNames notes what the alignment did to a row.
func (d *draft) describeNames(c *comparer) {
	for side, name := range d.Names {
		if name != "" && name != d.Family {
			d.note(fmt.Sprintf("renamed: %s in %s", name, c.sides[side]))
		}
	}
	for _, s := range c.stocks {
		h := s.families[d.key]
		switch {
		case h == nil:
		case h.lone:
			d.note("label engine, of one value, dropped in " + c.sides[s.side])
		case h.renumbered:
			d.note("engines of " + c.sides[s.side] + " taken as stages and replicas in their order")
		}
		if h != nil && h.unit != "" && h.unit != d.unitOfFamily(c) {
			d.note(fmt.Sprintf("converted from %s in %s", h.unit, c.sides[s.side]))
		}
	}
	for side := range d.Cells {
		if n, runs := len(d.Cells[side].Values), len(c.result.Sides[side].Runs); n > 0 && n < runs {
			d.note(fmt.Sprintf("in %d of %d runs of %s", n, runs, c.sides[side]))
		}
	}
}

// unitOfFamily is the unit all runs were brought to.
func (d *draft) unitOfFamily(c *comparer) string {
	for _, s := range c.stocks {
		if h := s.families[d.key]; h != nil {
			return h.unit
		}
	}
	return ""
}

// cells fills in medians and intervals.
func (c *comparer) cells(d *draft) {
	for side := range d.Cells {
		cell := &d.Cells[side]
		nan := math.NaN()
		cell.Value, cell.Low, cell.High, cell.BoundLow, cell.BoundHigh = nan, nan, nan, nan, nan
		n := len(cell.Values)
		if n == 0 {
			cell.Missing = cmp.Or(cell.Missing, "no such family")
			continue
		}
		cell.Missing = ""
		cell.Value, cell.Low, cell.High = median(cell.Values, 1-c.o.Alpha)
		if n == 1 {
			cell.BoundLow, cell.BoundHigh = d.measures[side][0].low, d.measures[side][0].high
		}
	}
}
