package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
)

// summaries tells what summaries counted, and the quantiles of their servers.
func (t *pageBuilder) summaries() {
	tab := newTable("summaries", "summaries", append(identity("SUMMARY"), number("count", "COUNT"),
		number("rate", "PER SECOND"), number("avg", "AVG"), words("server_quantiles",
			"SERVER QUANTILES (cumulative, not of the window)"), face("SERIES"))...)
	t.shown(metric.Summary, func(s *summary.Series) bool { return s.Summary != nil && s.Summary.Count != 0 },
		func(m *summary.Metric, s *summary.Series) {
			x := s.Summary
			if x == nil {
				return
			}
			u := m.ShownUnit()
			n := tally(x.Count)
			if !x.Defined || x.NoCount {
				n = only("-")
			}
			tab.row(append(t.identify(m, s), n, float(x.CountRate, x.HasRates, digits(x.CountRate)), in(x.Avg, x.Count != 0 &&
				!x.NoSum, u), opt(serverQuantiles(x.Quantiles, u)), only(t.where(s)))...)
		})
	t.add(tab)
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

// states tells the share of the time that each state of a state set was active.
func (t *pageBuilder) states() {
	tab := newTable("states", "states", append(identity("STATE SET"), number("share", "ACTIVE"), words("now", "NOW"),
		number("changes", "CHANGES"), face("SERIES"))...)
	t.shown(metric.StateSet, func(s *summary.Series) bool {
		return s.State != nil && (s.State.Share > 0 ||
			s.State.Changes > 0)
	},
		func(m *summary.Metric, s *summary.Series) {
			if s.State == nil {
				return
			}
			now := both("no", false)
			if s.State.Last {
				now = both("yes", true)
			}
			tab.row(append(t.identify(m, s), both(units.Format(100*s.State.Share, "percent"), s.State.Share), now,
				tally(s.State.Changes), only(t.where(s)))...)
		})
	t.add(tab)
}

// currents tells gauge histograms as their last sample has them.
func (t *pageBuilder) currents() {
	tab := newTable("gauge_histograms", "distributions at the last scrape",
		append(append(identity("HISTOGRAM"), t.histogramColumns()...), face("SERIES"))...)
	var flags histest.Flags
	t.shown(metric.GaugeHistogram, func(s *summary.Series) bool {
		return s.GaugeHistogram != nil &&
			s.GaugeHistogram.Count != 0
	},
		func(m *summary.Metric, s *summary.Series) {
			if h := s.GaugeHistogram; h != nil {
				tab.row(append(append(t.identify(m, s), t.histogramCells(m.ShownUnit(), h.Count, nanIf(h.NoSum, h.Avg),
					h.Quantiles, &flags)...), only(t.where(s)))...)
			}
		})
	tab.notes = legend(flags)
	t.add(tab)
}

// infos tells what describes a target: labels without a value.
func (t *pageBuilder) infos() {
	tab := newTable("infos", "information", append(identity("INFO"), face("LABELS"))...)
	t.shown(metric.Info, func(s *summary.Series) bool { return s.Info != nil },
		func(m *summary.Metric, s *summary.Series) {
			if s.Info != nil {
				tab.row(append(t.identify(m, s), only(t.where(s)))...)
			}
		})
	t.add(tab)
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
