package report

import (
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/units"
)

// distributions prints the exact statistics of events that the source logs one
// by one, by line and, where lines stand for several requests, by request.
func (t *text) distributions() {
	var tab texttab.Table
	tab.Header("LOGGED", "EACH", "COUNT", "AVG", "MIN", "P50", "P90", "P99", "P99.9", "MAX", "SERIES")
	tab.Right(2, 3, 4, 5, 6, 7, 8, 9)
	rows := 0
	for i := range t.run.Metrics {
		m := &t.run.Metrics[i]
		if t.o.Metric != nil && !t.o.Metric.MatchString(m.Name) {
			continue
		}
		for j := range m.Series {
			s := &m.Series[j]
			if s.Distribution == nil {
				continue
			}
			add := func(each string, e *normalize.Exact) {
				cell := func(v float64) string { return units.Format(v, unitOf(m)) }
				tab.Row(m.Name, each, itoa(e.N), cell(e.Avg), cell(e.Min), cell(e.P50), cell(e.P90), cell(e.P99), cell(e.P999), cell(e.Max), t.where(s))
				rows++
			}
			add("line", &s.Distribution.Lines)
			if s.Distribution.Requests != nil {
				add("request", s.Distribution.Requests)
			}
		}
	}
	t.table("logged events (exact)", &tab, rows)
}
