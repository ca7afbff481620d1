package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
)

// The first screen of an engine has at most 40 lines: so many rows of its tables, and what stands around them.
const (
	firstQuantities = 20
	firstLatencies  = 8
)

// engine is what the first screen tells of an engine.
type engine struct {
	title     string
	id        string // as the tables of the catalog name it
	packs     []catalog.Pack
	fleet     []summary.Derived // over all its endpoints
	endpoints []int
	scopes    []metric.Labels // models, say, that results are kept apart by
	// second reports whether an engine before has the same id, and tells the latencies.
	second bool
}

// questionOrder is the order of the first screen.
var questionOrder = [...]catalog.Category{catalog.Throughput, catalog.Latency, catalog.Saturation, catalog.TimeSpent,
	catalog.Cache, catalog.Errors, catalog.Efficiency, catalog.Check, catalog.Other}

// inRun returns the engines that the run has quantities of, in the order of the packs.
func (t *pageBuilder) inRun() []*engine {
	if len(t.run.Combined) == 0 {
		return nil
	}
	var out []*engine
	for _, p := range t.packs {
		title := cmp.Or(p.Title, p.Name)
		i := slices.IndexFunc(out, func(e *engine) bool { return e.title == title })
		if i < 0 {
			i = len(out)
			out = append(out, &engine{title: title})
		}
		out[i].packs = append(out[i].packs, p)
	}
	for _, e := range out {
		of := func(pack string) bool {
			return slices.ContainsFunc(e.packs, func(p catalog.Pack) bool { return p.Name == pack })
		}
		for _, d := range t.run.Combined[0].Derived {
			if !of(d.Pack) {
				continue
			}
			e.fleet = append(e.fleet, d)
			// What a server says of itself has no model; that is no scope beside others.
			if scope := d.Labels.Only(e.scopeNames()...); scope.Len() > 0 && !slices.Contains(e.scopes, scope) {
				e.scopes = append(e.scopes, scope)
			}
			if e.id == "" {
				e.id = t.engineOf(d.Families)
			}
		}
		for _, d := range t.run.Derived {
			if of(d.Pack) && !slices.Contains(e.endpoints, d.Endpoint) && e.knows(&d) &&
				t.run.Endpoints[d.Endpoint].SameAs == 0 {
				e.endpoints = append(e.endpoints, d.Endpoint)
			}
		}
	}
	out = slices.DeleteFunc(out, func(e *engine) bool { return len(e.fleet) == 0 })
	for i, e := range out {
		e.second = slices.ContainsFunc(out[:i], func(x *engine) bool { return x.id == e.id })
	}
	return out
}

// knows reports whether a quantity of an endpoint is of what the fleet was made of: the stages of a vLLM-Omni beside a
// vLLM are not.
func (e *engine) knows(d *summary.Derived) bool {
	return slices.ContainsFunc(e.fleet, func(x summary.Derived) bool { return x.Name == d.Name && x.Labels == d.Labels })
}

// engineOf is the engine that the catalog says the first known family is of.
func (t *pageBuilder) engineOf(families []string) string {
	for _, name := range families {
		if f, ok := t.run.Options.Catalog.Family(name); ok {
			return f.Engine
		}
	}
	return ""
}

func (e *engine) scopeNames() []string {
	var out []string
	for _, p := range e.packs {
		out = append(append(out, p.Scope...), p.Split...)
	}
	return out
}

// heading names an engine, where it was found, and what of it there is only one.
func (t *pageBuilder) heading(e *engine) string {
	line := e.title
	if n := len(e.endpoints); n > 1 {
		line += fmt.Sprintf("  %d targets", n)
	} else if n == 1 && len(t.run.Endpoints) > 1 {
		line += "  " + t.run.Endpoints[e.endpoints[0]].Shown()
	}
	if len(e.scopes) == 1 {
		for name, value := range e.scopes[0].All() {
			line += "  " + name + " " + value
		}
	}
	return line
}

// serversFirst puts what clients talk to first.
func (t *pageBuilder) serversFirst(list []*engine) []*engine {
	return slices.SortedStableFunc(slices.Values(list), func(a, b *engine) int {
		switch server, other := t.isServer(a), t.isServer(b); {
		case server && other:
			return t.run.Options.Catalog.CompareServers(a.id, b.id)
		case server:
			return -1
		case other:
			return 1
		}
		return 0
	})
}

// engines tells the first screen of each engine, the answer of each server first.
func (t *pageBuilder) engines() {
	t.explained = map[int]bool{}
	list := t.inRun()
	servers := t.serversFirst(list)
	var rest []*table
	for _, e := range servers {
		latencies, ids := t.latencies(e)
		quantities := t.quantities(e, ids)
		if len(quantities.Rows)+len(latencies.Rows) > 0 ||
			slices.ContainsFunc(t.special(e), func(tab *table) bool { return len(tab.Rows) > 0 }) {
			for _, i := range e.endpoints {
				t.explained[i] = true
			}
		}
		if t.o.Metric != nil {
			continue // some of it is wanted, not the whole
		}
		within, missing := t.within(e, list) && !t.o.All, t.missing(e)
		of := []*table{}
		if t.isServer(e) && !within {
			t.answer(e, latencies)
			of = append(of, t.rest(e, false))
		} else if !within {
			of = append(of, t.rest(e, true))
			of[0].heading = t.heading(e)
		}
		for _, tab := range t.special(e) {
			if t.o.first() {
				tab.Width = t.width()
			}
			of = append(of, tab)
		}
		notes := t.notes(e, quantities, latencies)
		notes.programs = !t.o.All && !t.o.Derived
		missing.programs = missing.programs || within
		rest, t.lacking = append(rest, append(of, notes)...), append(t.lacking, missing)
		quantities.programs, latencies.programs = true, true
		t.add(quantities)
		t.add(latencies)
	}
	serverless := !slices.ContainsFunc(list, t.isServer)
	if t.o.first() && !serverless {
		t.busiest(false)
	}
	for _, tab := range rest {
		t.add(tab)
	}
	if t.o.first() && serverless {
		t.busiest(true)
	}
}

// special are tables that only one engine has.
func (t *pageBuilder) special(e *engine) []*table {
	if slices.ContainsFunc(e.packs, func(p catalog.Pack) bool { return p.Name == catalog.TritonPack }) {
		return []*table{t.tritonModels(e)}
	}
	if slices.ContainsFunc(e.packs, func(p catalog.Pack) bool { return p.Name == catalog.OmniPack }) {
		return omniTables(e)
	}
	return nil
}

// quantities are the headline quantities of an engine. What a table of latencies says already is left out.
func (t *pageBuilder) quantities(e *engine, latencyIDs []string) *table {
	tab := newTable("quantities", "", hidden("engine"), words("question", "QUESTION"), words("name", "QUANTITY"),
		hidden("labels"), hidden("canonical"), hidden("better"), hidden("unit"), number("value", "VALUE"), hidden("status"),
		hidden("flags"), hidden("numerator"), hidden("denominator"), number("lowest", "LOWEST"), hidden("lowest_target"),
		number("highest", "HIGHEST"), hidden("highest_target"), words("note", "NOTE"), words("help", "WHAT IT IS"),
		face("OF"))
	t.limit(tab, firstQuantities, "--derived")
	last := ""
	for _, q := range questionOrder {
		for i := range e.fleet {
			d := &e.fleet[i]
			if !d.Headline || d.Category != q || slices.Contains(latencyIDs, strings.TrimSuffix(d.Canonical, "_mean_s")+"_s") ||
				d.Status == catalog.Missing {
				continue
			}
			question := str(strings.ReplaceAll(q.String(), "_", " "))
			if question.Value = q.String(); question.Text == last {
				question.Text = ""
			} else {
				last = question.Text
			}
			low, lowAt, high, highAt := t.spread(e, d)
			tab.row(append([]cell{raw(e.title), question, str(d.Name), raw(d.Labels), raw(optional(d.Canonical)),
				raw(d.Better.String()), raw(optional(d.Unit)), t.derivedCell(d), raw(d.Status.String()), raw(d.Flags)},
				append(parts(d), low, lowAt, high, highAt, opt(derivedNote(d)), opt(d.Help), only(t.beyondScope(e, d)))...)...)
		}
	}
	return tab
}

// optional is nil for "".
func optional(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// parts are numerator and denominator.
func parts(d *summary.Derived) []cell {
	if !d.HasParts {
		return []cell{{}, {}}
	}
	return []cell{bound(d.Numerator), bound(d.Denominator)}
}

// beyondScope are the labels of a quantity that the heading does not have.
func (t *pageBuilder) beyondScope(e *engine, d *summary.Derived) string {
	labels := d.Labels
	if len(e.scopes) < 2 {
		labels = labels.Without(e.scopeNames()...)
	}
	if labels.Len() == 0 {
		return ""
	}
	return labels.String()
}

// spread is the lowest and highest value among the endpoints of an engine, and at which; empty for one endpoint, or
// where they are the same.
func (t *pageBuilder) spread(e *engine, of *summary.Derived) (low, lowAt, high, highAt cell) {
	if len(e.endpoints) < 2 {
		return
	}
	var least, most *summary.Derived
	for i := range t.run.Derived {
		d := &t.run.Derived[i]
		if d.Pack != of.Pack || d.Name != of.Name || d.Labels != of.Labels || !d.Status.Defined() {
			continue
		}
		if least == nil || d.Shown < least.Shown {
			least = d
		}
		if most == nil || d.Shown > most.Shown {
			most = d
		}
	}
	if least == nil || least == most {
		return
	}
	at := func(d *summary.Derived) (cell, cell) {
		c, name := t.derivedCell(d), t.run.Endpoints[d.Endpoint].Shown()
		c.Text += " (" + name + ")"
		return c, raw(name)
	}
	low, lowAt = at(least)
	high, highAt = at(most)
	return
}

// latencies are the histograms of times that engines have in common, and which these are.
func (t *pageBuilder) latencies(e *engine) (*table, []string) {
	tab := newTable("latencies", "", append(append([]column{hidden("engine"), words("canonical", "LATENCY"),
		hidden("name"), hidden("labels"), hidden("unit")}, t.histogramColumns()...), number("series", "SERIES"),
		words("note", "NOTE"), face("OF"))...)
	t.limit(tab, firstLatencies, "--all")
	var flags histest.Flags
	var ids []string
	for i := range t.run.Latencies {
		l := &t.run.Latencies[i]
		if l.Engine != e.id || e.second {
			continue
		}
		m := &t.run.Metrics[l.Metric]
		unit := t.latencyUnit(m)
		h := l.Histogram
		row := []cell{raw(e.title), str(l.ID), raw(m.Name), raw(l.Labels), raw(unit)}
		switch {
		case h == nil:
			row = append(row, t.histogramCells(unit, 0, 0, nil, &flags)...)
			row[5] = only("-")
		case h.Count == 0:
			continue // nothing was observed: the means say so
		default:
			row = append(row, t.histogramCells(unit, h.Count, nanIf(h.NoSum, h.Avg), h.Quantiles, &flags)...)
		}
		note := l.Refused
		if h != nil && !l.Increase.Status.Certain() {
			row[5].Text = summary.ShownIncrease(row[5].Text, &l.Increase, digits)
			note = cmp.Or(note, strings.ReplaceAll(l.Increase.Status.String(), "_", " "))
		}
		ids = append(ids, l.ID)
		of := ""
		if l.Labels.Len() > 0 && (len(e.scopes) > 1 || t.several(l)) {
			of = l.Labels.String()
		}
		series := tally(l.Series)
		if l.Series < 2 {
			series.Text = ""
		}
		tab.row(append(row, series, opt(note), only(of))...)
	}
	if len(tab.Rows) > 0 {
		tab.notes = append([]string{"Percentiles are estimates; the true ones lie within the brackets. Means are exact."},
			legend(flags)...)
	}
	return tab, ids
}

// several reports whether an engine has a time more than once: by stage, say.
func (t *pageBuilder) several(l *summary.Latency) bool {
	n := 0
	for i := range t.run.Latencies {
		if x := &t.run.Latencies[i]; x.Engine == l.Engine && x.ID == l.ID {
			n++
		}
	}
	return n > 1
}

// latencyUnit is the unit of a time, which a server may not tell.
func (t *pageBuilder) latencyUnit(m *summary.Metric) string {
	unit := m.ShownUnit()
	if f, ok := t.run.Options.Catalog.Family(m.Name); unit == "" && ok {
		unit = f.Unit
	}
	return cmp.Or(unit, "seconds")
}

// missing lists the headline quantities that the servers gave no input for, and how to get it.
func (t *pageBuilder) missing(e *engine) *table {
	tab := newList("missing", "missing", hidden("engine"), words("name", "NAME"), words("reason", "REASON"),
		words("hint", "HINT"))
	t.limit(tab, 4, "--derived")
	there := t.present()
	add := func(name string, families []string) {
		var lacking []string
		hint := ""
		for _, f := range families {
			if !there[f] {
				lacking = append(lacking, f)
				hint = cmp.Or(hint, t.run.Options.Catalog.Hint(f))
			}
		}
		reason := "no number was to be had"
		if len(lacking) > 0 {
			reason = "no " + strings.Join(lacking[:min(3, len(lacking))], ", ")
		}
		tab.row(raw(e.title), str(name), str(reason), opt(hint))
	}
	for _, p := range e.packs {
		for i := range p.Rules {
			r := &p.Rules[i]
			if !r.Headline || r.Name == "" {
				continue
			}
			found, defined := false, false
			var families []string
			for k := range e.fleet {
				if d := &e.fleet[k]; d.Pack == p.Name && d.Name == r.Name {
					found, defined = true, defined || d.Status != catalog.Missing
					families = append(families, d.Families...)
				}
			}
			switch {
			case !found && r.Optional: // it may need what the user did not tell
			case !found:
				add(r.Name, r.Families())
			case !defined:
				slices.Sort(families)
				add(r.Name, slices.Compact(families))
			}
		}
	}
	return tab
}

// present are the families of the run by their newest names.
func (t *pageBuilder) present() map[string]bool {
	out := map[string]bool{}
	for i := range t.run.Metrics {
		name := t.run.Metrics[i].Name
		out[name] = true
		if f, ok := t.run.Options.Catalog.Family(name); ok {
			out[f.Name] = true
		}
	}
	return out
}

// derivedCell is the value as people read it, a dash where there is none.
func derivedCell(d *summary.Derived) cell {
	if d == nil || !d.Status.Defined() {
		if d != nil && d.Status == catalog.Refused {
			return only("refused")
		}
		return only("-")
	}
	text := ""
	switch {
	case d.Unit == "count" || d.Unit == "":
		text = digits(d.Shown)
	case d.Unit == "seconds" && math.Abs(d.Shown) < 1e-9: // what rounding leaves of a difference
		text = units.Format(0, d.Unit)
	default:
		text = units.Format(d.Shown, d.Unit)
	}
	switch {
	case d.Status == catalog.LowerBound:
		text = ">= " + text
	case d.Status == catalog.Ambiguous && !math.IsInf(d.Low, 0) && !math.IsInf(d.High, 0):
		text += " (" + units.Format(d.Low, d.Unit) + " .. " + units.Format(d.High, d.Unit) + ")"
	}
	return both(text, d.Shown)
}

// derivedNote is the status where it is not ok, and the flags.
func derivedNote(d *summary.Derived) string {
	var words []string
	if d.Status != catalog.OK {
		words = append(words, strings.ReplaceAll(d.Status.String(), "_", " "))
	}
	for _, f := range d.Flags {
		words = append(words, strings.ReplaceAll(f, "_", " "))
	}
	return strings.Join(words, ", ")
}

// closing tells people where the rest is.
func (t *pageBuilder) closing() {
	tab := newList("", "", face("LINE"))
	if t.quiet > 0 && !t.o.first() {
		tab.row(only(fmt.Sprintf("%d series did not change and are not shown (--all shows them).", t.quiet)))
	}
	t.add(tab)
	if t.o.Metric == nil {
		t.colophon()
	}
}
