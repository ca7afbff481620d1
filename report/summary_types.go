package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
)

func summaryCells(m *summary.Metric, s *summary.Series) ([]cell, bool) {
	x := s.Summary
	if x == nil {
		return nil, false
	}
	u, n := m.ShownUnit(), tally(x.Count)
	if !x.Defined || x.NoCount {
		n = only("-")
	}
	return []cell{n, float(x.CountRate, x.HasRates, digits(x.CountRate)), in(x.Avg, x.Count != 0 && !x.NoSum, u),
		opt(serverQuantiles(x.Quantiles, u))}, x.Count != 0
}

// serverQuantiles prints 0.5: 12 ms, 0.9: -; a dash is no data.
func serverQuantiles(list []normalize.SummaryQuantile, unit string) string {
	var parts []string
	for _, q := range list {
		text := "-"
		if !math.IsNaN(q.Value) {
			text = units.Format(q.Value, unit)
		}
		parts = append(parts, strconv.FormatFloat(q.Q, 'g', 6, 64)+": "+text)
	}
	return strings.Join(parts, ", ")
}

// stateCells tell the share of the time that a state of a state set was active.
func stateCells(_ *summary.Metric, s *summary.Series) ([]cell, bool) {
	x := s.State
	if x == nil {
		return nil, false
	}
	now := both("no", false)
	if x.Last {
		now = both("yes", true)
	}
	return []cell{both(units.Format(100*x.Share, "percent"), x.Share), now, tally(x.Changes)}, x.Share > 0 || x.Changes > 0
}

// distributions tells the exact statistics of events that the source logs one by one, by line and, where lines stand
// for several requests, by request.
func (t *pageBuilder) distributions() {
	tab := newTable("logged", "logged events (exact)", append(identity("LOGGED"), words("each", "EACH"),
		number("count", "COUNT"), number("avg", "AVG"), number("min", "MIN"), number("p50", "P50"), number("p90", "P90"),
		number("p99", "P99"), number("p99.9", "P99.9"), number("max", "MAX"), face("SERIES"))...)
	for i := range t.run.Metrics {
		m := &t.run.Metrics[i]
		for j := range m.Series {
			s := &m.Series[j]
			if s.Distribution == nil || t.o.Metric != nil && !t.o.Metric.MatchString(m.Name) {
				continue
			}
			add := func(each string, e *normalize.Exact) {
				row := append(t.identify(m, s), str(each), tally(e.N))
				for _, v := range []float64{e.Avg, e.Min, e.P50, e.P90, e.P99, e.P999, e.Max} {
					row = append(row, in(v, true, m.ShownUnit()))
				}
				tab.row(append(row, only(t.where(s)))...)
			}
			add("line", &s.Distribution.Lines)
			if s.Distribution.Requests != nil {
				add("request", s.Distribution.Requests)
			}
		}
	}
	t.add(tab)
}
