package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// pivotScopes is how many scopes, such as models, stand side by side.
const pivotScopes = 6

// pivot sets the scopes of an engine side by side, as many as there is room for.
func (t *pageBuilder) pivot(e *engine, of ...catalog.Category) *table {
	scopes := e.busyScopes(t.o.All)
	for n := len(scopes); ; n-- {
		tab := t.pivotOf(e, scopes[:n], of)
		if n > 1 && (tab.Natural() > tab.Width || n > pivotScopes) && !t.o.All {
			continue
		}
		if left := len(e.scopes) - n; left > 0 {
			var names []string
			for _, s := range e.scopes {
				if !slices.Contains(scopes[:n], s) {
					names = append(names, ofText(s))
				}
			}
			tab.notes = []string{fmt.Sprintf("%d more (--all shows them): %s", left, strings.Join(names[:min(left, 6)], ", "))}
		}
		return tab
	}
}

// busyScopes are the scopes of an engine that had requests; all, where none had.
func (e *engine) busyScopes(all bool) []metric.Labels {
	busy := func(s metric.Labels) bool {
		return slices.ContainsFunc(e.fleet, func(d summary.Derived) bool {
			return d.Category == catalog.Throughput && d.Status.Defined() && d.Shown != 0 &&
				d.Labels.Only(e.scopeNames()...) == s
		})
	}
	if all || !slices.ContainsFunc(e.scopes, busy) {
		return e.scopes
	}
	return slices.DeleteFunc(slices.Clone(e.scopes), func(s metric.Labels) bool { return !busy(s) })
}

// idle reports whether labels are of a scope without a request, which the first screen leaves out.
func (t *pageBuilder) idle(e *engine, labels metric.Labels) bool {
	scope := labels.Only(e.scopeNames()...)
	return len(e.scopes) > 1 && scope.Len() > 0 && !slices.Contains(e.busyScopes(t.o.All), scope)
}

func (t *pageBuilder) pivotOf(e *engine, scopes []metric.Labels, of []catalog.Category) *table {
	tab := t.screenTable(face("QUANTITY"))
	for _, s := range scopes {
		tab.Columns = append(tab.Columns, number("", texttab.Truncate(ofText(s), 24)))
	}
	tab.Columns = append(tab.Columns, face("NOTE"))
	at := map[string]int{}
	for _, d := range e.headlines(of) {
		c := slices.Index(scopes, d.Labels.Only(e.scopeNames()...))
		if c < 0 {
			continue
		}
		name := e.word(d)
		if rest := d.Labels.Without(e.scopeNames()...); rest.Len() > 0 {
			name += rest.String()
		}
		k, ok := at[name]
		if !ok {
			k = len(tab.Rows)
			at[name] = k
			tab.row(make([]cell, len(tab.Columns))...)
			tab.Rows[k][0] = only(name)
		}
		tab.Rows[k][1+c] = only(t.derivedCell(d).Text)
		if note, at := derivedNote(d), &tab.Rows[k][1+len(scopes)]; note != "" && !strings.Contains(at.Text, note) {
			at.Text = strings.TrimPrefix(at.Text+", "+note, ", ")
		}
	}
	return tab
}
