package html

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

// The limits of the tables.
const (
	maxFamilies   = 1500
	maxSeriesRows = 12_000
)

// familyRow is a family in the table.
type familyRow struct {
	Index                   int
	Name, Type, Unit, Help  string
	Series                  string
	Moved                   bool
	Total, Rate, Avg        string
	Min, Max, P50, P90, P99 string
}

// familyTable is the series of a family for the script: a row of cells each.
type familyTable struct {
	Head []string   `json:"head"`
	Rows [][]string `json:"rows"`
	Cut  int        `json:"cut,omitempty"` // rows that are left out
}

// tables is the series of all families, by row of the table of families.
type tables struct {
	all         []familyTable
	row         map[famKey]int
	rows        int
	cut         int
	cutFamilies int
}

func (p *page) families() {
	p.tables.row = map[famKey]int{}
	for run := range p.ins {
		for i := range p.ins[run].Run.Metrics {
			m := &p.ins[run].Run.Metrics[i]
			k := famKey{m.Name, m.Type}
			row, ok := p.tables.row[k]
			if !ok {
				if len(p.Families) == maxFamilies {
					p.tables.cutFamilies++
					p.tables.cut += len(m.Series)
					continue
				}
				row = len(p.Families)
				p.tables.row[k] = row
				p.Families = append(p.Families, familyRow{Index: row, Name: clip(m.Name, 160), Type: m.Type.String(),
					Unit: clip(m.ShownUnit(), 40), Help: clip(m.Help, 300)})
				p.tables.all = append(p.tables.all, familyTable{Head: p.columns(m, p.ins[run].Run)})
			}
			if run == 0 || !ok {
				p.Families[row].summarise(m, p.ins[run].Run)
			}
			p.series(row, run, m)
		}
	}
}

// series adds the series of a family in one run.
func (p *page) series(row, run int, m *summary.Metric) {
	r := p.ins[run].Run
	t := &p.tables.all[row]
	for j := range m.Series {
		if p.tables.rows >= maxSeriesRows {
			t.Cut++
			p.tables.cut++
			continue
		}
		p.tables.rows++
		s := &m.Series[j]
		cells := []string{endpointLabel(r, s.Endpoint), clip(s.Labels.String(), 400)}
		if p.Many {
			cells = append([]string{p.runName(run)}, cells...)
		}
		t.Rows = append(t.Rows, append(cells, statistics(m, s, r)...))
	}
}

// columns are the headings of the series of a family.
func (p *page) columns(m *summary.Metric, r *summary.Run) []string {
	head := []string{"target", "labels"}
	if p.Many {
		head = append([]string{"run"}, head...)
	}
	var qs []string
	for _, q := range r.Options.Quantiles {
		qs = append(qs, "p"+strconv.FormatFloat(q*100, 'g', 6, 64))
	}
	switch m.Type {
	case metric.Counter:
		return append(head, "total", "per second", "lowest slice", "highest slice", "resets")
	case metric.Histogram:
		return append(append(head, "count", "per second", "mean", "sum"), qs...)
	case metric.GaugeHistogram:
		return append(append(head, "count", "mean", "sum"), qs...)
	case metric.Summary:
		return append(head, "count", "per second", "mean", "quantiles of the server")
	case metric.StateSet:
		return append(head, "share of time", "last", "changes")
	case metric.Info:
		return append(head, "samples")
	}
	return append(append(head, "mean", "over time", "min", "max", "last"), qs...)
}

// statistics are the cells of a series; the first one of a series that grows has how sure it is.
func statistics(m *summary.Metric, s *summary.Series, r *summary.Run) []string {
	cells := statisticsOf(m, s, r)
	if len(cells) == 0 && !s.Increase.Status.Defined() {
		cells = []string{""}
	}
	if len(cells) > 0 {
		cells[0] = summary.ShownIncrease(cells[0], &s.Increase, func(v float64) string { return value(v, m.ShownUnit()) })
	}
	return cells
}

func statisticsOf(m *summary.Metric, s *summary.Series, r *summary.Run) []string {
	u := m.ShownUnit()
	cell := func(v float64) string { return value(v, u) }
	switch {
	case s.Counter != nil:
		return counterCells(s, u)
	case s.Histogram != nil:
		h := s.Histogram
		out := []string{grouped(h.Count), dash(!h.HasRates, plain(h.CountRate)), dash(h.NoSum ||
			h.Count == 0, cell(h.Avg)), dash(h.NoSum, cell(h.Sum))}
		return append(out, estimates(h.Quantiles, len(r.Options.Quantiles), u)...)
	case s.GaugeHistogram != nil:
		h := s.GaugeHistogram
		out := []string{grouped(h.Count), dash(h.NoSum || h.Count == 0, cell(h.Avg)), dash(h.NoSum, cell(h.Sum))}
		return append(out, estimates(h.Quantiles, len(r.Options.Quantiles), u)...)
	case s.Summary != nil:
		x := s.Summary
		var qs []string
		for _, q := range x.Quantiles {
			qs = append(qs, "q"+q.Text+" "+cell(q.Value))
		}
		return []string{dash(!x.Defined || x.NoCount, grouped(x.Count)), dash(!x.HasRates, plain(x.CountRate)),
			dash(!x.Defined || x.NoSum || x.Count == 0, cell(x.Avg)), clip(strings.Join(qs, ", "), 300)}
	case s.State != nil:
		last := "off"
		if s.State.Last {
			last = "on"
		}
		return []string{units.Format(s.State.Share, "ratio"), last, strconv.Itoa(s.State.Changes)}
	case s.Info != nil:
		return []string{strconv.Itoa(s.Samples)}
	case s.Gauge != nil:
		return gaugeCells(s.Gauge, u, len(r.Options.Quantiles))
	}
	return nil
}

func counterCells(s *summary.Series, unit string) []string {
	c := s.Counter
	lo, hi := "–", "–"
	if c.SliceRates != nil {
		lo, hi = plain(c.SliceRates.Min), plain(c.SliceRates.Max)
	}
	total := value(c.Total, unit)
	if c.HasExact {
		total = strconv.FormatUint(c.Exact, 10)
	}
	return []string{dash(!c.Defined, total), dash(!c.Defined, plain(c.Rate)), lo, hi, strconv.Itoa(s.Resets)}
}

func gaugeCells(g *normalize.Gauge, unit string, quantiles int) []string {
	cell := func(v float64) string { return dash(g.N == 0, value(v, unit)) }
	out := []string{cell(g.Avg), cell(g.TimeAvg), cell(g.Min), cell(g.Max), cell(g.Last)}
	for i := range quantiles {
		v := math.NaN()
		if i < len(g.Quantiles) {
			v = g.Quantiles[i]
		}
		out = append(out, cell(v))
	}
	return out
}

// estimates are the cells of quantiles, each with its bounds.
func estimates(es []histest.Estimate, n int, unit string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = "–"
		if i < len(es) {
			out[i] = estimate(es[i], unit)
		}
	}
	return out
}

func estimate(e histest.Estimate, unit string) string {
	out := value(e.Value, unit)
	if !math.IsNaN(e.Low) && !math.IsNaN(e.High) {
		out += " [" + value(e.Low, unit) + ", " + value(e.High, unit) + "]"
	}
	if e.Flags != 0 {
		out += " " + strings.Join(summary.FlagNames(e.Flags), " ")
	}
	return out
}

// summarise fills in what can be said of a whole family: sums of counters, the mean of all observations, extremes of
// gauges. Percentiles only of one series, as they cannot be averaged.
func (f *familyRow) summarise(m *summary.Metric, r *summary.Run) {
	f.Series = strconv.Itoa(len(m.Series))
	u := m.ShownUnit()
	var total, rate, sum, count float64
	lo, hi := math.Inf(1), math.Inf(-1)
	some := false
	for i := range m.Series {
		s := &m.Series[i]
		switch {
		case r.Repeats(s): // it is in the sums already
		case s.Counter != nil && s.Counter.Defined:
			total, rate, some = total+s.Counter.Total, rate+s.Counter.Rate, true
		case s.Histogram != nil:
			count, sum, rate, some = count+float64(s.Histogram.Count), sum+s.Histogram.Sum, rate+s.Histogram.CountRate, true
		case s.Summary != nil && s.Summary.Defined:
			count, sum, rate, some = count+float64(s.Summary.Count), sum+s.Summary.Sum, rate+s.Summary.CountRate, true
		case s.Gauge != nil && s.Gauge.N > 0:
			lo, hi = min(lo, s.Gauge.Min), max(hi, s.Gauge.Max)
		}
	}
	switch m.Type {
	case metric.Counter:
		f.Total, f.Rate, f.Moved = dash(!some, value(total, u)), dash(!some, plain(rate)), total != 0
	case metric.Histogram, metric.Summary:
		f.Total, f.Rate, f.Avg, f.Moved = dash(!some, plain(count)), dash(!some, plain(rate)),
			dash(count == 0, value(sum/count, u)), count != 0
	default:
		if hi >= lo {
			f.Min, f.Max, f.Moved = value(lo, u), value(hi, u), hi > lo
		}
	}
	if len(m.Series) == 1 {
		f.quantiles(&m.Series[0], r.Options.Quantiles, u)
	}
}

func (f *familyRow) quantiles(s *summary.Series, qs []float64, unit string) {
	at := func(q float64) string {
		for i, have := range qs {
			switch {
			case math.Abs(have-q) > 1e-9:
			case s.Histogram != nil && i < len(s.Histogram.Quantiles):
				return value(s.Histogram.Quantiles[i].Value, unit)
			case s.Gauge != nil && i < len(s.Gauge.Quantiles):
				return value(s.Gauge.Quantiles[i], unit)
			}
		}
		return ""
	}
	f.P50, f.P90, f.P99 = at(0.5), at(0.9), at(0.99)
	if s.Gauge != nil && s.Gauge.N > 0 {
		f.Avg = value(s.Gauge.Avg, unit)
	}
}

func dash(missing bool, s string) string {
	if missing {
		return "–"
	}
	return s
}

// value writes a number of a unit, a dash for none.
func value(v float64, unit string) string {
	if math.IsNaN(v) {
		return "–"
	}
	return units.Format(v, unit)
}

// plain writes a number without a unit.
func plain(v float64) string { return value(v, units.Number) }
