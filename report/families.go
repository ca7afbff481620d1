package report

import (
	"math"
	"strconv"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
)

func (t *text) counters() {
	var tab texttab.Table
	tab.Header("COUNTER", "TOTAL", "PER SECOND", "RESETS", "SERIES")
	tab.Right(1, 2, 3)
	rows := 0
	t.shown(metric.Counter, func(s *summary.Series) bool { return s.Counter != nil && s.Counter.Total != 0 },
		func(m *summary.Metric, s *summary.Series) {
			c := s.Counter
			if c == nil {
				return
			}
			rows++
			unit := unitOf(m)
			tab.Row(m.Name, dashIf(!c.Defined, units.Format(c.Total, unit)), dashIf(!c.Defined, number(c.Rate)), resets(s.Resets), t.where(s))
		})
	t.table("counters", &tab, rows)
}

func (t *text) gauges() {
	var tab texttab.Table
	tab.Header("GAUGE", "AVG", "MIN", "MAX", "P50", "P99", "LAST", "SERIES")
	tab.Right(1, 2, 3, 4, 5, 6)
	rows := 0
	t.shown(metric.Gauge, func(s *summary.Series) bool { return s.Gauge != nil && s.Gauge.Min != s.Gauge.Max },
		func(m *summary.Metric, s *summary.Series) {
			g := s.Gauge
			if g == nil {
				return
			}
			rows++
			u, none := unitOf(m), g.N == 0
			cell := func(v float64) string { return dashIf(none || math.IsNaN(v), units.Format(v, u)) }
			tab.Row(m.Name, cell(g.Avg), cell(g.Min), cell(g.Max), cell(t.quantile(g.Quantiles, 0.5)),
				cell(t.quantile(g.Quantiles, 0.99)), cell(g.Last), t.where(s))
		})
	t.table("gauges", &tab, rows)
}

func (t *text) histograms() {
	var tab texttab.Table
	t.histogramHead(&tab, "SERIES")
	rows := 0
	t.shown(metric.Histogram, func(s *summary.Series) bool { return s.Histogram != nil && s.Histogram.Count != 0 },
		func(m *summary.Metric, s *summary.Series) {
			h := s.Histogram
			if h == nil {
				return
			}
			rows++
			tab.Row(append(t.histogramCells(m, h.Count, nanIf(h.NoSum, h.Avg), h.Quantiles), t.where(s))...)
		})
	t.table("histograms", &tab, rows)
	t.legend()
}

// histogramHead sets the columns of a table of histograms; last are those after
// the numbers.
func (t *text) histogramHead(tab *texttab.Table, last ...string) {
	head := []string{"HISTOGRAM", "COUNT", "AVG"}
	for _, q := range t.shownQuantiles() {
		head = append(head, "P"+strconv.FormatFloat(t.run.Options.Quantiles[q]*100, 'g', 6, 64))
	}
	for i := 1; i < len(head); i++ {
		tab.Right(i)
	}
	tab.Header(append(head, last...)...)
}

// histogramCells are the cells under those of histogramHead; avg is NaN where
// there is none.
func (t *text) histogramCells(m *summary.Metric, count int64, avg float64, quantiles []histest.Estimate) []string {
	u := unitOf(m)
	row := []string{m.Name, strconv.FormatInt(count, 10), dashIf(count == 0 || math.IsNaN(avg), units.Format(avg, u))}
	for _, q := range t.shownQuantiles() {
		row = append(row, t.estimate(quantiles, q, u))
	}
	return row
}

// nanIf is NaN where a number is missing.
func nanIf(missing bool, v float64) float64 {
	if missing {
		return math.NaN()
	}
	return v
}

// shownQuantiles picks the columns of the histogram table: those that were
// asked for, or p50, p90 and p99 of the usual nine.
func (t *text) shownQuantiles() []int {
	var idx []int
	for i, q := range t.run.Options.Quantiles {
		if len(t.run.Options.Quantiles) <= 5 || q == 0.5 || q == 0.9 || q == 0.99 || q > 0.99 {
			idx = append(idx, i)
		}
	}
	return idx
}

// estimate prints a percentile with the interval the true one lies in and the
// first letters of its flags: 0.31 [0.25, 0.5] f. A question mark stands for
// what is not known.
func (t *text) estimate(qs []histest.Estimate, i int, unit string) string {
	if i >= len(qs) || math.IsNaN(qs[i].Value) {
		return "-"
	}
	bound := func(v float64) string {
		if math.IsNaN(v) {
			return "?"
		}
		return units.Format(v, unit)
	}
	e := qs[i]
	t.flags |= e.Flags
	cell := units.Format(e.Value, unit) + " [" + bound(e.Low) + ", " + bound(e.High) + "]"
	if e.Flags != 0 {
		cell += " "
	}
	for _, name := range summary.FlagNames(e.Flags) {
		cell += name[:1]
	}
	return cell
}

// legend explains the letters of the estimates printed since the last one.
func (t *text) legend() {
	for _, f := range [...]struct {
		flag histest.Flags
		text string
	}{
		{histest.Degenerate, "all observations are in one bucket"},
		{histest.Overflow, "beyond the last finite bound"},
		{histest.Few, "few observations: one or two of them decide"},
	} {
		if t.flags&f.flag != 0 {
			t.printf("%s: %s\n", summary.FlagNames(f.flag)[0][:1], f.text)
		}
	}
	t.flags = 0
}

func (t *text) quantile(qs []float64, q float64) float64 {
	for i, have := range t.run.Options.Quantiles {
		if have == q && i < len(qs) {
			return qs[i]
		}
	}
	return math.NaN()
}

// where names a series: its target when there are several, and its labels.
func (t *text) where(s *summary.Series) string {
	labels := s.Labels.String()
	if len(t.run.Endpoints) < 2 {
		return labels
	}
	return endpointName(&t.run.Endpoints[s.Endpoint]) + " " + labels
}

func unitOf(m *summary.Metric) string {
	if m.OwnUnit != "" {
		return m.OwnUnit
	}
	return m.Unit
}

func resets(n int) string {
	if n == 0 {
		return ""
	}
	return itoa(n)
}

// number prints a rate with four significant digits.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
