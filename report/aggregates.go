package report

import (
	"fmt"
	"strings"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// aggregates tells the series taken together: how many they are, the labels they have in common, and how unevenly
// replicas were used.
func (t *pageBuilder) aggregates() {
	if t.run.Options.By == nil {
		return
	}
	title := t.byTitle()
	of := func(head string, columns ...column) []column {
		all := append([]column{words("name", head), hidden("labels"), hidden("unit")}, columns...)
		return append(all, number("series", "SERIES"), hidden("left_out"), number("skew", "SKEW"),
			words("skewed_to", "MOST AT"), face("OF"))
	}
	counters := newTable("aggregated_counters", "counters by "+title,
		of("COUNTER", number("total", "TOTAL"), number("rate", "PER SECOND"), number("resets", "RESETS"))...)
	gauges := newTable("aggregated_gauges", "gauges by "+title,
		of("GAUGE", words("rule", "RULE"), number("time_avg", "AVG"), number("min", "MIN"), number("max", "MAX"))...)
	histograms := newTable("aggregated_histograms", "histograms by "+title, of("HISTOGRAM", t.histogramColumns()...)...)
	summaries := newTable("aggregated_summaries", "summaries by "+title,
		of("SUMMARY", number("count", "COUNT"), number("rate", "PER SECOND"), number("avg", "AVG"))...)
	var flags histest.Flags
	for i := range t.run.Aggregates {
		a := &t.run.Aggregates[i]
		m := &t.run.Metrics[a.Metric]
		if t.skipped(m.Name) {
			continue
		}
		row := func(tab *table, cells ...cell) {
			tab.row(append(append([]cell{str(m.Name), raw(a.Labels), raw(m.ShownUnit())}, cells...), t.aggregateOf(a)...)...)
		}
		all, u := t.o.All || t.o.Metric != nil, m.ShownUnit()
		switch c, g, h, s := a.Counter, a.Gauge, a.Histogram, a.Summary; {
		case c != nil && (all || c.Total != 0):
			row(counters, in(c.Total, c.Defined, u), float(c.Rate, c.Defined, digits(c.Rate)), resets(a.Resets))
		case g != nil && (all || g.Max != g.Min):
			row(gauges, str(g.Rule), in(g.TimeAvg, true, u), in(g.Min, true, u), in(g.Max, true, u))
		case h != nil && (all || h.Count != 0):
			row(histograms, t.histogramCells(m.ShownUnit(), h.Count, nanIf(h.NoSum, h.Avg), h.Quantiles, &flags)...)
		case s != nil && (all || s.Count != 0):
			row(summaries, tally(s.Count), float(s.CountRate, s.HasRates, digits(s.CountRate)), in(s.Avg, s.Count != 0 &&
				!s.NoSum, u))
		}
	}
	histograms.notes = legend(flags)
	for _, tab := range []*table{counters, gauges, histograms, summaries} {
		t.add(tab)
	}
}

// aggregateOf are the last cells of an aggregate.
func (t *pageBuilder) aggregateOf(a *summary.Aggregate) []cell {
	skew, at := cell{}, cell{}
	if s := a.Skew; s != nil {
		skew = both(digits(s.Ratio), s.Ratio)
		at = str(t.replica(s.Endpoint, s.Labels))
	}
	n := tally(a.Series)
	if a.LeftOut > 0 {
		n.Text += fmt.Sprintf(" (and %d repeats)", a.LeftOut)
	}
	return []cell{n, raw(int64(a.LeftOut)), skew, at, only(a.Labels.String())}
}

// replica names a replica.
func (t *pageBuilder) replica(endpoint int, labels metric.Labels) string {
	name := labels.String()
	if len(t.run.Endpoints) > 1 || labels.Len() == 0 {
		name = strings.TrimSpace(t.run.Endpoints[endpoint].Shown() + " " + name)
	}
	return name
}

// byTitle names the labels that aggregates are made by.
func (t *pageBuilder) byTitle() string {
	if by := t.run.Options.By; len(by) > 0 {
		return strings.Join(by, ", ")
	}
	return "all series"
}
