package report

import (
	"strings"

	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/units"
)

// aggregates prints the series taken together: how many they are, and the labels
// they have in common.
func (t *text) aggregates() {
	title := "all series"
	if by := t.run.Options.By; len(by) > 0 {
		title = texttab.Escape(strings.Join(by, ", "))
	}
	var counters, histograms texttab.Table
	counters.Header("COUNTER", "TOTAL", "PER SECOND", "RESETS", "SERIES", "OF")
	counters.Right(1, 2, 3, 4)
	t.histogramHead(&histograms, "SERIES", "OF")
	histograms.Right(3 + len(t.shownQuantiles()))
	nc, nh := 0, 0
	for i := range t.run.Aggregates {
		a := &t.run.Aggregates[i]
		m := &t.run.Metrics[a.Metric]
		if t.o.Metric != nil && !t.o.Metric.MatchString(m.Name) {
			continue
		}
		switch c, h := a.Counter, a.Histogram; {
		case c != nil && (t.o.All || c.Total != 0):
			nc++
			counters.Row(m.Name, dashIf(!c.Defined, units.Format(c.Total, unitOf(m))), dashIf(!c.Defined, number(c.Rate)),
				resets(a.Resets), itoa(a.Series), a.Labels.String())
		case h != nil && (t.o.All || h.Count != 0):
			nh++
			histograms.Row(append(t.histogramCells(m, h.Count, nanIf(h.NoSum, h.Avg), h.Quantiles), itoa(a.Series), a.Labels.String())...)
		}
	}
	t.table("counters by "+title, &counters, nc)
	t.table("histograms by "+title, &histograms, nh)
	t.legend()
}
