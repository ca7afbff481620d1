package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
)

// summaries prints what summaries counted, and the quantiles of their servers.
func (t *text) summaries() {
	var tab texttab.Table
	tab.Header("SUMMARY", "COUNT", "PER SECOND", "AVG", "SERVER QUANTILES (cumulative, not of the window)", "SERIES")
	tab.Right(1, 2, 3)
	rows := 0
	t.shown(metric.Summary, func(s *summary.Series) bool { return s.Summary != nil && s.Summary.Count != 0 },
		func(m *summary.Metric, s *summary.Series) {
			x := s.Summary
			if x == nil {
				return
			}
			rows++
			u := unitOf(m)
			tab.Row(m.Name, dashIf(!x.Defined || x.NoCount, strconv.FormatInt(x.Count, 10)), dashIf(!x.HasRates, number(x.CountRate)),
				dashIf(x.Count == 0 || x.NoSum, units.Format(x.Avg, u)), serverQuantiles(x.Quantiles, u), t.where(s))
		})
	t.table("summaries", &tab, rows)
}

// serverQuantiles prints 0.5: 12 ms, 0.9: -; a dash is no data.
func serverQuantiles(list []normalize.SummaryQuantile, unit string) string {
	var parts []string
	for _, q := range list {
		parts = append(parts, strconv.FormatFloat(q.Q, 'g', 6, 64)+": "+dashIf(math.IsNaN(q.Value), units.Format(q.Value, unit)))
	}
	return strings.Join(parts, ", ")
}

// states prints the share of the time that each state of a state set was active.
func (t *text) states() {
	var tab texttab.Table
	tab.Header("STATE SET", "ACTIVE", "NOW", "CHANGES", "SERIES")
	tab.Right(1, 3)
	rows := 0
	t.shown(metric.StateSet, func(s *summary.Series) bool { return s.State != nil && (s.State.Share > 0 || s.State.Changes > 0) },
		func(m *summary.Metric, s *summary.Series) {
			if s.State == nil {
				return
			}
			rows++
			now := "no"
			if s.State.Last {
				now = "yes"
			}
			tab.Row(m.Name, units.Format(100*s.State.Share, "percent"), now, itoa(s.State.Changes), t.where(s))
		})
	t.table("states", &tab, rows)
}

// currents prints gauge histograms as their last sample has them.
func (t *text) currents() {
	var tab texttab.Table
	t.histogramHead(&tab, "SERIES")
	rows := 0
	t.shown(metric.GaugeHistogram, func(s *summary.Series) bool { return s.GaugeHistogram != nil && s.GaugeHistogram.Count != 0 },
		func(m *summary.Metric, s *summary.Series) {
			h := s.GaugeHistogram
			if h == nil {
				return
			}
			rows++
			tab.Row(append(t.histogramCells(m, h.Count, nanIf(h.NoSum, h.Avg), h.Quantiles), t.where(s))...)
		})
	t.table("distributions at the last scrape", &tab, rows)
}

// infos prints what describes a target: labels without a value.
func (t *text) infos() {
	var tab texttab.Table
	tab.Header("INFO", "LABELS")
	rows := 0
	t.shown(metric.Info, func(s *summary.Series) bool { return s.Info != nil },
		func(m *summary.Metric, s *summary.Series) {
			if s.Info != nil {
				rows++
				tab.Row(m.Name, t.where(s))
			}
		})
	t.table("information", &tab, rows)
}
