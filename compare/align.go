package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

// alignTargets gives targets the name by which they meet. A run of one target meets any other run of one; of several
// targets aliases count, then URLs.
func (c *comparer) alignTargets() {
	for _, s := range c.stocks {
		if len(s.targets) != 1 {
			return // some run has several: names count in all
		}
	}
	for _, s := range c.stocks {
		for _, h := range s.families {
			for i := range h.entry {
				h.entry[i].target = ""
			}
		}
	}
}

// alignEngines lets series by engine, as older servers number them, meet those by stage and replica: the engines in
// their order are the replicas of the first stage, then those of the second, and so on. It does so for families whose
// numbers agree.
func (c *comparer) alignEngines() {
	keys := map[string]bool{}
	for _, s := range c.stocks {
		for key := range s.families {
			keys[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		c.dropLoneEngine(key)
		pairs := c.stagePairs(key)
		if pairs == nil {
			continue
		}
		for _, s := range c.stocks {
			if h := s.families[key]; h != nil && h.byEngine() {
				h.renumber(pairs)
			}
		}
	}
}

// dropLoneEngine takes the label engine away where it has one value only and other runs do not have it: the first
// vLLM-Omni had one on all families of the pipeline.
func (c *comparer) dropLoneEngine(key string) {
	without := false
	for _, s := range c.stocks {
		if h := s.families[key]; h != nil {
			without = without || !slices.ContainsFunc(h.entry, func(e entry) bool { return hasLabel(e.labels, "engine") })
		}
	}
	for _, s := range c.stocks {
		h := s.families[key]
		if !without || h == nil || h.byEngine() && c.stagePairs(key) != nil {
			continue
		}
		values := map[string]bool{}
		for i := range h.entry {
			v, _ := h.entry[i].labels.Get("engine")
			values[v] = true
		}
		if len(values) != 1 || values[""] {
			continue
		}
		for i := range h.entry {
			h.entry[i].labels = h.entry[i].labels.Without("engine")
		}
		h.lone = true
	}
}

// byEngine reports whether series are told apart by engine and not by stage.
func (h *familyEntry) byEngine() bool {
	for i := range h.entry {
		if _, ok := h.entry[i].labels.Get("stage"); ok {
			return false
		}
		if _, ok := h.entry[i].labels.Get("engine"); !ok {
			return false
		}
	}
	return len(h.entry) > 0
}

// stagePairs returns the stages and replicas of a family in their order, from the first run that has them.
func (c *comparer) stagePairs(key string) []metric.Labels {
	for _, s := range c.stocks {
		h := s.families[key]
		if h == nil {
			continue
		}
		seen := map[metric.Labels]bool{}
		for i := range h.entry {
			pair := h.entry[i].labels.Only("stage", "replica")
			if pair.Len() == 2 {
				seen[pair] = true
			}
		}
		if len(seen) > 0 {
			out := slices.Collect(maps.Keys(seen))
			slices.SortFunc(out, func(a, b metric.Labels) int {
				return cmp.Or(compareNumbers(a, b, "stage"), compareNumbers(a, b, "replica"))
			})
			return out
		}
	}
	return nil
}

func compareNumbers(a, b metric.Labels, name string) int {
	x, _ := a.Get(name)
	y, _ := b.Get(name)
	return compareNumberTexts(x, y)
}

// compareNumberTexts orders texts that are numbers by their value, others as text.
func compareNumberTexts(x, y string) int {
	m, errM := strconv.Atoi(x)
	n, errN := strconv.Atoi(y)
	if errM == nil && errN == nil {
		return cmp.Compare(m, n)
	}
	return cmp.Compare(x, y)
}

// renumber puts stage and replica in the place of engine, if there are as many.
func (h *familyEntry) renumber(pairs []metric.Labels) {
	seen := map[string]bool{}
	for i := range h.entry {
		v, _ := h.entry[i].labels.Get("engine")
		seen[v] = true
	}
	engines := slices.SortedFunc(maps.Keys(seen), compareNumberTexts)
	if len(engines) != len(pairs) {
		return
	}
	for i := range h.entry {
		e := &h.entry[i]
		v, _ := e.labels.Get("engine")
		e.labels = e.labels.Without("engine").Join(pairs[slices.Index(engines, v)])
	}
	h.renumbered = true
}

// draft is a row in the making, with the measures behind it.
type draft struct {
	Row
	key      string
	facts    facts
	measures [][]*measure // by side, then run; only those with a value
	caveats  []catalog.Caveat
	fixed    string // reason why the row cannot be compared at all
}

// rows makes the rows of all families.
func (c *comparer) rows() []*draft {
	keys := map[string]bool{}
	for _, s := range c.stocks {
		for key := range s.families {
			keys[key] = true
		}
		for key := range s.declared {
			keys[key] = true
		}
	}
	var out []*draft
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, c.familyRows(key)...)
	}
	return out
}

// familyRows makes the rows of a family: one if it cannot be compared as a whole.
func (c *comparer) familyRows(key string) []*draft {
	hold := make([]*familyEntry, len(c.stocks))
	var first *familyEntry
	for i, s := range c.stocks {
		if hold[i] = s.families[key]; hold[i] != nil && first == nil {
			first = hold[i]
		}
	}
	if first == nil {
		return []*draft{c.whole(key, &familyEntry{name: key}, hold, "declared, but without a sample in any run")}
	}
	if reason := c.mismatch(key, first, hold); reason != "" {
		return []*draft{c.whole(key, first, hold, reason)}
	}
	places := map[place]bool{}
	for _, h := range hold {
		if h != nil {
			for at := range h.groups {
				places[at] = true
			}
		}
	}
	sorted := slices.Collect(maps.Keys(places))
	slices.SortFunc(sorted, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.target, b.target),
			a.labels.Compare(b.labels))
	})
	var out []*draft
	for _, at := range sorted {
		out = append(out, c.placeRows(key, first, hold, at)...)
	}
	return out
}

// mismatch says why a family cannot be compared as a whole; "" when it can. It brings all runs to the unit of the
// first.
func (c *comparer) mismatch(key string, first *familyEntry, hold []*familyEntry) string {
	if isInstant(first.name) {
		return "an instant of time, not a quantity"
	}
	for i, h := range hold {
		switch {
		case h == nil:
		case h.typ != first.typ:
			return fmt.Sprintf("type changed: %s in %s, %s in %s", first.typ, c.sides[c.firstSide(hold)], h.typ,
				c.sides[c.stocks[i].side])
		case !h.convert(first.unit):
			return fmt.Sprintf("unit changed: %s in %s, %s in %s", first.unit, c.sides[c.firstSide(hold)], h.unit,
				c.sides[c.stocks[i].side])
		}
	}
	return c.missingSides(key, hold, func(h *familyEntry) bool { return h != nil })
}

func (c *comparer) firstSide(hold []*familyEntry) int {
	for i, h := range hold {
		if h != nil {
			return c.stocks[i].side
		}
	}
	return 0
}

// missingSides says which sides have none of something in any of their runs, when so many lack it that nothing is left
// to compare: the base, or all others.
func (c *comparer) missingSides(key string, hold []*familyEntry, has func(*familyEntry) bool) string {
	have := make([]bool, len(c.sides))
	declared := make([]bool, len(c.sides))
	for i, s := range c.stocks {
		have[s.side] = have[s.side] || has(hold[i])
		declared[s.side] = declared[s.side] || s.declared[key]
	}
	if have[0] && slices.Contains(have[1:], true) {
		return ""
	}
	var in, out []string
	for side, name := range c.sides {
		switch {
		case have[side]:
			in = append(in, name)
		case declared[side]:
			out = append(out, name+" (declared without a sample)")
		default:
			out = append(out, name)
		}
	}
	return fmt.Sprintf("only in %s, not in %s", list(in), list(out))
}

// whole makes a row of a family, or of a series, that cannot be compared.
func (c *comparer) whole(key string, first *familyEntry, hold []*familyEntry, reason string) *draft {
	d := c.draft(key, first, hold, place{}, "")
	d.fixed = reason
	return d
}

// draft begins a row.
func (c *comparer) draft(key string, first *familyEntry, hold []*familyEntry, at place, stat string) *draft {
	f := first.facts
	d := &draft{key: key, facts: f, Row: Row{Kind: first.kind, Family: first.name, Type: first.typ, Stat: stat,
		Labels: at.labels, Target: at.target, Unit: first.unit, Headline: f.headline, Meaning: cmp.Or(f.meaning, first.help),
		Cells: make([]Cell, len(c.sides)), Against: make([]Comparison, len(c.sides))}}
	if f.question != 0 {
		d.Question = f.question.String()
	}
	d.Names = make([]string, len(c.sides))
	for i, h := range hold {
		if h != nil && d.Names[c.stocks[i].side] == "" {
			d.Names[c.stocks[i].side] = h.name
		}
	}
	d.measures = make([][]*measure, len(c.sides))
	return d
}

func list(names []string) string {
	switch n := len(names); n {
	case 0:
		return "none"
	case 1:
		return names[0]
	case 2:
		return names[0] + " and " + names[1]
	default:
		return names[0] + " and " + strconv.Itoa(n-1) + " others"
	}
}
