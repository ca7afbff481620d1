package export

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// CSV writes the statistics of a run as AIPerf does: a section for each type, one row per series, a column for each
// label, four decimals. Texts that a spreadsheet would compute are marked, see [Options].
func CSV(w io.Writer, r *summary.Run, o Options) error {
	if err := o.validate(); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	s := &sheet{w: w, run: r, nine: pickNine(r.Options.Quantiles), o: o}
	s.write()
	if s.flush(); s.err != nil {
		return fmt.Errorf("write CSV: %w", s.err)
	}
	return nil
}

// sheet writes one run. The first write error sticks.
type sheet struct {
	w     io.Writer
	buf   []byte
	run   *summary.Run
	nine  [9]int
	cells int // in the present row
	parts int // sections written
	o     Options
	err   error
}

// row is one line of a section.
type row struct {
	metric   *summary.Metric
	series   *summary.Series
	increase *jsonIncrease // nil where it is certain and what series has
	endpoint string        // as displayed
	fill     string        // a 1 for each label column the series has, else 0
	labels   string        // as Python prints them
}

func (s *sheet) write() {
	id := cmp.Or(s.run.ID, "None")
	for _, line := range []string{"AIPerf Server Metrics Export (CSV)", "aiperf_version: " + toolVersion(s.run),
		"schema_version: 1.0",
		"benchmark_id: " + id, "Note: Same benchmark_id and version appear in JSON and Parquet exports"} {
		s.buf = append(s.buf, "# "...)
		s.buf = append(append(s.buf, oneLine(line)...), '\n')
	}
	s.buf = append(s.buf, "#\n"...)
	var rows [metric.GaugeHistogram + 1][]row
	var info []row
	for i := range s.run.Metrics {
		m := &s.run.Metrics[i]
		for j := range m.Series {
			x := asAIPerf(s.run, &m.Series[j])
			if !hasStats(x) && x.Summary == nil && x.State == nil && x.GaugeHistogram == nil {
				continue
			}
			r := row{metric: m, series: x, increase: increaseOf(m, &m.Series[j]),
				endpoint: displayName(s.run.Endpoints[x.Endpoint].URL)}
			if m.Type == metric.Info || m.Type == metric.Gauge && isInfo(m) {
				info = append(info, r)
			} else {
				rows[m.Type] = append(rows[m.Type], r)
			}
		}
	}
	for _, typ := range []metric.Type{metric.Gauge, metric.Counter, metric.Histogram, metric.Unknown} {
		s.section(typ, rows[typ])
	}
	s.info(info)
	for _, typ := range []metric.Type{metric.Summary, metric.StateSet, metric.GaugeHistogram} {
		s.section(typ, rows[typ])
	}
}

// isInfo reports whether the labels of a metric describe its endpoint and are no columns. A gauge of this kind has its
// own section; what AIPerf does with those of other types, a row without labels, is done here too.
func isInfo(m *summary.Metric) bool { return strings.HasSuffix(m.Name, "_info") }

// oneLine keeps a header line one line.
func oneLine(s string) string {
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(strings.ToValidUTF8(s, "\ufffd"))
}

// displayName is host and path of a URL without a final /metrics.
func displayName(url string) string {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		url = rest
	}
	if i := strings.IndexAny(url, "?#"); i >= 0 {
		url = url[:i]
	}
	return strings.TrimSuffix(url, "/metrics")
}

var (
	gaugeColumns     = append([]string{"avg", "min", "max", "std"}, nineNames[:]...)
	counterColumns   = []string{"total", "rate", "rate_avg", "rate_min", "rate_max", "rate_std"}
	summaryColumns   = []string{"count", "count_rate", "sum", "sum_rate", "avg"}
	histogramColumns = append(summaryColumns[:5:5], nineEstimates[:]...)
	stateColumns     = []string{stateShare, "active_last", "changes"}
	currentColumns   = append([]string{"count_last", "sum_last", "avg_last"}, nineEstimates[:]...)
)

// columnsOf returns the statistics of a type, and the column after all others, "" for none. AIPerf's files do not have
// the last three types; the last column of summaries is what the server computed itself.
func columnsOf(typ metric.Type) (stats []string, last string) {
	switch typ {
	case metric.Counter:
		return counterColumns, ""
	case metric.Histogram:
		return histogramColumns, "buckets"
	case metric.Summary:
		return summaryColumns, "server_quantiles"
	case metric.StateSet:
		return stateColumns, ""
	case metric.GaugeHistogram:
		return currentColumns, "buckets"
	}
	return gaugeColumns, ""
}

// section writes the rows of one type.
func (s *sheet) section(typ metric.Type, rows []row) {
	if len(rows) == 0 {
		return
	}
	s.begin()
	columns := labelColumns(rows)
	for i := range rows {
		rows[i].arrange(columns)
	}
	slices.SortStableFunc(rows, compareRows)
	labels := map[string]bool{}
	for _, c := range columns {
		labels[c] = true
	}
	names := labelNames(labels, csvFixed(typ)...)
	stats, last := columnsOf(typ)
	s.texts("Endpoint", "Type", "Metric", "Unit")
	s.texts(stats...)
	for _, c := range columns {
		s.text(names[c])
	}
	s.texts("Description")
	if last != "" {
		s.text(last)
	}
	unsure := slices.ContainsFunc(rows, func(r row) bool { return r.increase != nil })
	if unsure {
		s.texts(increaseColumns(columns)...)
	}
	s.endRow()
	for i := range rows {
		if s.err != nil {
			return
		}
		s.row(&rows[i], columns, last != "", unsure)
	}
}

// increaseColumns are the last columns of a section with series that are not certain, or gained something else than
// AIPerf's columns say. Labels keep their names.
func increaseColumns(labels []string) []string {
	names := []string{"status", "low", "high"}
	for i, name := range names {
		if slices.Contains(labels, name) {
			names[i] = "increase_" + name
		}
	}
	return names
}

// row writes one line; columns are those of labels.
func (s *sheet) row(r *row, columns []string, hasLast, unsure bool) {
	known, unit := exportedType(r.metric.Type), r.metric.Unit
	if !known {
		unit = r.metric.ShownUnit()
	}
	s.texts(r.endpoint, r.metric.Type.String(), r.metric.Name, unit)
	last := s.stats(r.series)
	for _, c := range columns {
		value, _ := r.series.Labels.Get(c)
		if known && isInfo(r.metric) {
			value = ""
		}
		s.text(value)
	}
	s.text(r.metric.Help)
	if hasLast {
		s.text(last)
	}
	if i := r.increase; unsure && i == nil {
		s.texts(catalog.OK.String(), "", "")
	} else if unsure {
		increase := i.read()
		s.text(summary.StatusWord(&increase))
		s.numbers(increase.Low, increase.High)
	}
	s.endRow()
}

// compareRows orders the rows of a section as AIPerf does.
func compareRows(a, b row) int {
	return cmp.Or(cmp.Compare(a.fill, b.fill), cmp.Compare(a.metric.Name, b.metric.Name),
		cmp.Compare(a.endpoint, b.endpoint), cmp.Compare(a.labels, b.labels))
}

func (r *row) arrange(columns []string) {
	fill := make([]byte, len(columns))
	for i, c := range columns {
		fill[i] = '0'
		if _, ok := r.series.Labels.Get(c); ok {
			fill[i] = '1'
		}
	}
	r.fill, r.labels = string(fill), summary.PythonLabels(r.series.Labels)
}

// stats writes the statistics of a series and returns its last cell.
func (s *sheet) stats(x *summary.Series) (last string) {
	switch {
	case x.Counter != nil:
		c, r := x.Counter, normalize.Spread{Avg: math.NaN(), Min: math.NaN(), Max: math.NaN(), Std: math.NaN()}
		if c.SliceRates != nil {
			r = *c.SliceRates
		}
		s.total(c)
		s.numbers(s.rate(x, c.Total, c.Rate), r.Avg, r.Min, r.Max, r.Std)
	case x.Gauge != nil:
		g, quantiles := gaugeOf(s.run, x.Gauge)
		s.numbers(g.Avg, g.Min, g.Max, g.Std)
		s.nineCells(len(quantiles), func(i int) float64 { return quantiles[i] })
	case x.Summary != nil:
		return s.summaryCells(x.Summary)
	case x.State != nil:
		s.number(x.State.Share)
		s.texts(strconv.FormatBool(x.State.Last), strconv.Itoa(x.State.Changes))
	case x.GaugeHistogram != nil:
		h := x.GaugeHistogram
		s.text(strconv.FormatInt(h.Count, 10))
		s.numberIf(!h.NoSum, h.Sum)
		s.numberIf(!h.NoSum && h.Count != 0, h.Avg)
		s.estimates(inFiles(s.run, h.Quantiles, h.FileQuantiles))
		return bucketList(h.Buckets)
	default:
		return s.histogram(x)
	}
	return ""
}

func (s *sheet) rate(x *summary.Series, gain, ours float64) float64 {
	return rate(s.run, x, gain, ours, s.run.Endpoints[x.Endpoint].Seconds)
}

// nineCells writes AIPerf's percentiles out of n quantiles.
func (s *sheet) nineCells(n int, quantile func(i int) float64) {
	for _, at := range s.nine {
		if at >= 0 && at < n {
			s.number(quantile(at))
		} else {
			s.text("")
		}
	}
}

func (s *sheet) estimates(list []histest.Estimate) {
	s.nineCells(len(list), func(i int) float64 { return list[i].Value })
}

func (s *sheet) histogram(x *summary.Series) (last string) {
	h := x.Histogram
	some := h.Count != 0
	var list []histest.Estimate
	if some {
		list = inFiles(s.run, h.Quantiles, h.FileQuantiles)
	}
	s.text(strconv.FormatInt(h.Count, 10))
	s.numberIf(some && h.HasRates, s.rate(x, float64(h.Count), h.CountRate))
	s.numberIf(some && !h.NoSum, h.Sum)
	s.numberIf(some && h.HasRates && !h.NoSum, s.rate(x, h.Sum, h.SumRate))
	s.numberIf(some && !h.NoSum, h.Avg)
	s.estimates(list)
	return bucketList(h.Buckets)
}

func (s *sheet) summaryCells(x *normalize.Summary) (last string) {
	if s.text(""); x.Defined && !x.NoCount {
		s.buf = strconv.AppendInt(s.buf, x.Count, 10)
	}
	s.numberIf(x.HasRates, x.CountRate)
	s.numberIf(x.Defined && !x.NoSum, x.Sum)
	s.numberIf(x.HasRates && !x.NoSum, x.SumRate)
	s.numberIf(x.Count != 0 && !x.NoSum, x.Avg)
	var b []byte
	for i := range x.Quantiles {
		q := &x.Quantiles[i]
		if i > 0 {
			b = append(b, ';')
		}
		b = append(append(b, quantileText(q)...), '=')
		if metric.Finite(q.Value) {
			b = appendFloat(b, q.Value)
		}
	}
	return string(b)
}

// bucketList is le=n;le=n.
func bucketList(buckets []normalize.Bucket) string {
	var b []byte
	for i := range buckets {
		bucket := &buckets[i]
		if i > 0 {
			b = append(b, ';')
		}
		b = append(append(b, boundText(bucket)...), '=')
		b = strconv.AppendInt(b, bucket.Count, 10)
	}
	return string(b)
}

// info writes a row for each label of the metrics that only describe.
func (s *sheet) info(rows []row) {
	if len(rows) == 0 {
		return
	}
	s.begin()
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.metric.Name, b.metric.Name), cmp.Compare(a.endpoint, b.endpoint))
	})
	s.texts("Endpoint", "Metric", "Key", "Value", "Description")
	s.endRow()
	for _, r := range rows {
		for name, value := range r.series.Labels.All() {
			s.texts(r.endpoint, r.metric.Name, name, value, r.metric.Help)
			s.endRow()
		}
	}
}

// begin separates a section from the one before by an empty row.
func (s *sheet) begin() {
	if s.parts++; s.parts > 1 {
		s.endRow()
	}
}
