package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
)

// listed reports whether the families of an endpoint are told.
func (t *pageBuilder) listed(m *summary.Metric, endpoint int) bool {
	if t.o.Metric != nil {
		return !t.skipped(m.Name)
	}
	return t.o.Families || t.o.All || !t.explained[endpoint]
}

// skipped reports whether --metric leaves a family out.
func (t *pageBuilder) skipped(name string) bool {
	if t.o.Metric == nil {
		return false
	}
	return !headline.Called(t.o.Metric, name, t.run.Options.Catalog.Canonical(name))
}

// familyKind is how the series of a type are told: the table, its columns between those that say which series, and the
// cells under these. A series that did not move is told only on request.
type familyKind struct {
	typ             metric.Type
	id, title, head string
	columns         []column
	cells           func(m *summary.Metric, s *summary.Series) (cells []cell, moved bool) // nil for no data
}

// families has a table for each type that the run has series of.
func (t *pageBuilder) families() {
	var flags histest.Flags
	spread := t.histogramColumns()
	percentiles := func(u string, n int64, noSum bool, avg float64, list []histest.Estimate) ([]cell, bool) {
		return t.histogramCells(u, n, nanIf(noSum, avg), list, &flags), n != 0
	}
	for _, k := range []familyKind{
		{metric.Counter, "counters", "counters", "COUNTER",
			[]column{number("total", "TOTAL"), number("rate", "PER SECOND"), number("resets", "RESETS")}, counterCells},
		{metric.Gauge, "gauges", "gauges", "GAUGE", []column{number("avg", "AVG"), hidden("time_avg"), number("min", "MIN"),
			number("max", "MAX"), number("p50", "P50"), number("p99", "P99"), number("last", "LAST")}, t.gaugeCells},
		{metric.Histogram, "histograms", "histograms", "HISTOGRAM", spread,
			func(m *summary.Metric, s *summary.Series) ([]cell, bool) {
				if h := s.Histogram; h != nil {
					return percentiles(m.ShownUnit(), h.Count, h.NoSum, h.Avg, h.Quantiles)
				}
				return nil, false
			}},
		{metric.Summary, "summaries", "summaries", "SUMMARY", []column{number("count", "COUNT"),
			number("rate", "PER SECOND"), number("avg", "AVG"),
			words("server_quantiles", "SERVER QUANTILES (cumulative, not of the window)")}, summaryCells},
		{metric.StateSet, "states", "states", "STATE SET",
			[]column{number("share", "ACTIVE"), words("now", "NOW"), number("changes", "CHANGES")}, stateCells},
		{metric.GaugeHistogram, "gauge_histograms", "distributions at the last scrape", "HISTOGRAM", spread,
			func(m *summary.Metric, s *summary.Series) ([]cell, bool) {
				if h := s.GaugeHistogram; h != nil {
					return percentiles(m.ShownUnit(), h.Count, h.NoSum, h.Avg, h.Quantiles)
				}
				return nil, false
			}},
		{metric.Info, "infos", "information", "INFO", nil,
			func(_ *summary.Metric, s *summary.Series) ([]cell, bool) { return []cell{}, s.Info != nil }},
	} {
		flags = 0
		tab := t.family(&k)
		tab.notes = legend(flags)
		tab.programs = t.o.first()
		t.add(tab)
	}
}

// family has the series of one type that the options let through.
func (t *pageBuilder) family(k *familyKind) *table {
	end := "SERIES"
	if k.typ == metric.Info {
		end = "LABELS"
	}
	tab := newTable(k.id, k.title, append(append(identity(k.head), k.columns...), face(end))...)
	for i := range t.run.Metrics {
		m := &t.run.Metrics[i]
		if m.Type != k.typ && !(k.typ == metric.Gauge && m.Type == metric.Unknown) {
			continue
		}
		for j := range m.Series {
			s := &m.Series[j]
			if !t.listed(m, s.Endpoint) {
				continue
			}
			cells, moved := k.cells(m, s)
			if s.Increase.Status != continuity.OK {
				cells, moved = marked(cells, len(k.columns), m.ShownUnit(), &s.Increase), moved || !s.Increase.Status.Certain()
			}
			switch {
			case !moved && !t.o.All && t.o.Metric == nil:
				t.quiet++
			case cells != nil:
				tab.row(append(append(t.identify(m, s), cells...), only(t.where(s)))...)
			}
		}
	}
	return tab
}

// marked marks the first cell, what was gained, with how sure it is; the others of a refused series are dashes.
func marked(cells []cell, n int, unit string, i *continuity.Increase) []cell {
	if len(cells) == 0 {
		cells = make([]cell, n)
		for k := range cells {
			cells[k] = only("-")
		}
	}
	cells[0].Text = summary.ShownIncrease(cells[0].Text, i, func(v float64) string { return units.Format(v, unit) })
	return cells
}

// identity are the columns that begin a table of families, head that of people.
func identity(head string) []column {
	return []column{words("name", head), hidden("target"), hidden("labels"), hidden("unit")}
}

func (t *pageBuilder) identify(m *summary.Metric, s *summary.Series) []cell {
	return []cell{str(m.Name), raw(t.run.Endpoints[s.Endpoint].Shown()), raw(s.Labels), raw(m.ShownUnit())}
}

func counterCells(m *summary.Metric, s *summary.Series) ([]cell, bool) {
	c := s.Counter
	if c == nil {
		return nil, false
	}
	return []cell{in(c.Total, c.Defined, m.ShownUnit()), float(c.Rate, c.Defined, digits(c.Rate)), resets(s.Resets)},
		c.Total != 0
}

func (t *pageBuilder) gaugeCells(m *summary.Metric, s *summary.Series) (cells []cell, moved bool) {
	g := s.Gauge
	if g == nil {
		return nil, false
	}
	for _, v := range []float64{g.Avg, g.TimeAvg, g.Min, g.Max, t.quantile(g.Quantiles, 0.5),
		t.quantile(g.Quantiles, 0.99), g.Last} {
		cells = append(cells, in(v, g.N > 0, m.ShownUnit()))
	}
	return cells, g.Min != g.Max
}

// histogramColumns are count, mean and percentiles with what bounds them.
func (t *pageBuilder) histogramColumns() []column {
	out := []column{number("count", "COUNT"), number("avg", "AVG")}
	for _, q := range t.shownQuantiles() {
		name := "p" + strconv.FormatFloat(t.run.Options.Quantiles[q]*100, 'g', 6, 64)
		out = append(out, number(name, "P"+name[1:]), hidden(name+"_low"), hidden(name+"_high"), hidden(name+"_flags"))
	}
	return out
}

// histogramCells are the cells under those of histogramColumns; avg is NaN where there is none. The flags of the
// estimates are added to flags.
func (t *pageBuilder) histogramCells(u string, n int64, avg float64, quantiles []histest.Estimate,
	flags *histest.Flags) []cell {
	row := []cell{tally(n), in(avg, n != 0, u)}
	for _, i := range t.shownQuantiles() {
		if i >= len(quantiles) || math.IsNaN(quantiles[i].Value) {
			row = append(row, only("-"), cell{}, cell{}, cell{})
			continue
		}
		e := quantiles[i]
		*flags |= e.Flags
		row = append(row, both(estimate(e, u), e.Value), bound(e.Low), bound(e.High), raw(summary.FlagNames(e.Flags)))
	}
	return row
}

func bound(v float64) cell { return cell{Value: float(v, true, "").Value} }

// nanIf is NaN where a number is missing.
func nanIf(missing bool, v float64) float64 {
	if missing {
		return math.NaN()
	}
	return v
}

// shownQuantiles picks the columns of the histogram table: those that were asked for, or p50, p90 and p99 of the usual
// nine.
func (t *pageBuilder) shownQuantiles() []int {
	var idx []int
	for i, q := range t.run.Options.Quantiles {
		if len(t.run.Options.Quantiles) <= 5 || q == 0.5 || q == 0.9 || q == 0.99 || q > 0.99 {
			idx = append(idx, i)
		}
	}
	return idx
}

// estimate is a percentile with the interval the true one lies in and the first letters of its flags: 0.31 [0.25, 0.5]
// f. A question mark stands for what is not known.
func estimate(e histest.Estimate, unit string) string {
	end := func(v float64) string {
		if math.IsNaN(v) {
			return "?"
		}
		return units.Format(v, unit)
	}
	text := units.Format(e.Value, unit) + " [" + end(e.Low) + ", " + end(e.High) + "]"
	if e.Flags != 0 {
		text += " "
	}
	for _, name := range summary.FlagNames(e.Flags) {
		text += name[:1]
	}
	return text
}

// legend explains the letters of estimates.
func legend(flags histest.Flags) (out []string) {
	for _, f := range [...]struct {
		flag histest.Flags
		text string
	}{
		{histest.Degenerate, "all observations are in one bucket"},
		{histest.Overflow, "beyond the last finite bound"},
		{histest.Few, "few observations: one or two of them decide"},
	} {
		if flags&f.flag != 0 {
			out = append(out, summary.FlagNames(f.flag)[0][:1]+": "+f.text)
		}
	}
	return out
}

func (t *pageBuilder) quantile(qs []float64, q float64) float64 {
	if i := slices.Index(t.run.Options.Quantiles, q); i >= 0 && i < len(qs) {
		return qs[i]
	}
	return math.NaN()
}

// where names a series: its target when there are several, and its labels.
func (t *pageBuilder) where(s *summary.Series) string {
	labels := s.Labels.String()
	if s.Superseded != "" {
		labels += " (superseded by " + s.Superseded + ")"
	}
	if len(t.run.Endpoints) < 2 {
		return labels
	}
	return t.run.Endpoints[s.Endpoint].Shown() + " " + labels
}

func resets(n int) cell {
	if n == 0 {
		return cell{Value: int64(0)}
	}
	return tally(n)
}

// digits prints a rate with four significant digits.
func digits(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

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
			if s.Distribution == nil || t.skipped(m.Name) {
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
