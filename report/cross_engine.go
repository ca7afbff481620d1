package report

import (
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/summary"
)

// notes lists the caveats of the quantities that the tables of one engine show.
func (t *pageBuilder) notes(e *engine, quantities, latencies *table) *table {
	var all []catalog.Caveat
	add := func(tab *table, canonical int) {
		for _, row := range tab.Rows {
			id, _ := row[canonical].Value.(string)
			all = append(all, t.run.Options.Catalog.Caveats(e.quantity(id))...)
		}
	}
	add(quantities, 4)
	add(latencies, 1)
	return noteTable(e.title, all)
}

// quantity is a canonical quantity of an engine as the catalog names it.
func (e *engine) quantity(id string) catalog.Quantity {
	return catalog.Quantity{ID: id, Engine: e.packs[0].Name}
}

// noteTable lists caveats by their letters, each once.
func noteTable(engine string, caveats []catalog.Caveat) *table {
	tab := newList("notes", "notes", hidden("engine"), words("letter", "LETTER"), words("text", "NOTE"))
	for _, c := range catalog.SortCaveats(caveats) {
		tab.row(raw(optional(engine)), str(c.Letter), str(c.Text))
	}
	return tab
}

// canonicals are the quantities across engines that an engine has numbers of.
func (e *engine) canonicals(r *summary.Run) []string {
	var out []string
	for i := range e.fleet {
		if d := &e.fleet[i]; d.Canonical != "" && d.Status.Defined() {
			out = append(out, d.Canonical)
		}
	}
	for i := range r.Latencies {
		if l := &r.Latencies[i]; l.Engine == e.id && !e.second && l.Histogram != nil && l.Histogram.Count > 0 {
			out = append(out, l.ID)
		}
	}
	return out
}

// CrossNotes tells, by their letters, what makes the quantities hard to compare that several engines of a run have.
// Texts are not escaped.
func CrossNotes(r *summary.Run) (out []string) {
	t := &pageBuilder{run: r, packs: r.Options.Catalog.Packs()}
	t.crossEngine()
	for _, tab := range t.tables {
		for _, row := range tab.Rows {
			if tab.id == "notes" {
				out = append(out, row[1].Text+": "+row[2].Text)
			}
		}
	}
	return out
}

// crossEngine tells the quantities that several engines of the run have, side by side, with what makes them hard to
// compare.
func (t *pageBuilder) crossEngine() {
	engines := slices.DeleteFunc(t.inRun(), func(e *engine) bool { return len(e.canonicals(t.run)) == 0 })
	if len(engines) < 2 {
		return
	}
	tab := newTable("cross_engine", "", words("canonical", "QUANTITY"), hidden("unit"))
	tab.heading = "across engines"
	for _, e := range engines {
		id := e.id
		if id == "" || e.second {
			id = e.title
		}
		tab.Columns = append(tab.Columns, number(id, e.title))
	}
	var ids []string
	for _, e := range engines {
		for i := range e.fleet {
			if d := &e.fleet[i]; d.Canonical != "" && !slices.Contains(ids, d.Canonical) {
				ids = append(ids, d.Canonical)
			}
		}
	}
	for _, id := range ids {
		row := []cell{str(id), {}}
		has := 0
		for _, e := range engines {
			value, unit := e.canonical(id)
			row = append(row, value)
			if value.Value != nil {
				has++
				row[1] = raw(optional(unit))
			}
		}
		if has > 1 {
			tab.row(row...)
		}
	}
	t.crossLatencies(tab, engines)
	if len(tab.Rows) == 0 {
		return
	}
	tab.Columns = append(tab.Columns, words("notes", "NOTES"))
	notes := t.crossNotes(tab, engines)
	tab.programs = !t.o.All && !t.o.Derived
	notes.programs = tab.programs
	t.add(tab)
	t.add(notes)
}

// canonical is the value of an engine for a canonical id, all models added up where it is a rate, else that of the
// only one.
func (e *engine) canonical(id string) (cell, string) {
	var found []*summary.Derived
	for i := range e.fleet {
		if d := &e.fleet[i]; d.Canonical == id && d.Status.Defined() && d.Labels.Without(e.scopeNames()...).Len() == 0 {
			found = append(found, d)
		}
	}
	switch {
	case len(found) == 0:
		return only("-"), ""
	case len(found) == 1:
		return derivedCell(found[0]), found[0].Unit
	case found[0].Category != catalog.Throughput:
		return only("several"), found[0].Unit
	}
	sum := *found[0]
	for _, d := range found[1:] {
		sum.Shown += d.Shown
	}
	return derivedCell(&sum), sum.Unit
}

// crossLatencies adds a row for each percentile of times that several engines have.
func (t *pageBuilder) crossLatencies(tab *table, engines []*engine) {
	var ids []string
	for i := range t.run.Latencies {
		if id := t.run.Latencies[i].ID; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	columns := t.histogramColumns()
	for _, id := range ids {
		for k, q := range t.shownQuantiles() {
			row := []cell{str(id + " " + columns[2+4*k].ID), raw("seconds")}
			has := 0
			for _, e := range engines {
				value := only("-")
				several := 0
				for i := range t.run.Latencies {
					l := &t.run.Latencies[i]
					if l.Engine != e.id || e.second || l.ID != id || l.Histogram == nil || q >= len(l.Histogram.Quantiles) ||
						math.IsNaN(l.Histogram.Quantiles[q].Value) {
						continue
					}
					unit := t.latencyUnit(&t.run.Metrics[l.Metric])
					if several++; several > 1 {
						value = only("several")
					} else if value.Text = estimate(l.Histogram.Quantiles[q], unit); unit == "seconds" {
						value.Value = l.Histogram.Quantiles[q].Value
					} else if unit == "milliseconds" {
						value.Value = l.Histogram.Quantiles[q].Value / 1e3
					}
				}
				if value.Value != nil {
					has++
				}
				row = append(row, value)
			}
			if has > 1 {
				tab.row(row...)
			}
		}
	}
}

// crossNotes fills in the column of caveats, the last one, and lists them: those between the quantities of different
// engines, or different ids, in the table.
func (t *pageBuilder) crossNotes(tab *table, engines []*engine) *table {
	shown := make([][]catalog.Quantity, len(tab.Rows))
	for i, row := range tab.Rows {
		id, _, _ := strings.Cut(row[0].Value.(string), " ") // without the percentile
		for k, e := range engines {
			if row[2+k].Value != nil {
				shown[i] = append(shown[i], e.quantity(id))
			}
		}
	}
	var all []catalog.Caveat
	others := slices.Concat(shown...)
	for i := range tab.Rows {
		var of []catalog.Caveat
		for _, q := range shown[i] {
			for _, other := range others {
				of = append(of, t.run.Options.Catalog.Comparability(q, other)...)
			}
		}
		of = catalog.SortCaveats(of)
		var letters []string
		for _, c := range of {
			letters = append(letters, c.Letter)
		}
		tab.Rows[i] = append(tab.Rows[i], both(strings.Join(letters, " "), letters))
		all = append(all, of...)
	}
	return noteTable("", all)
}
