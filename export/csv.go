package export

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// CSV writes the statistics of a run as AIPerf does: a section for each type,
// one row per series, a column for each label, four decimals. Texts that a
// spreadsheet would compute are marked, see [Options].
func CSV(w io.Writer, r *summary.Run, o Options) error {
	if err := o.validate(); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	s := &sheet{w: w, run: r, nine: pickNine(r.Options.Quantiles), raw: o.CSVRaw}
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
	raw   bool
	err   error
}

// row is one line of a section.
type row struct {
	metric   *summary.Metric
	series   *summary.Series
	endpoint string // as displayed
	fill     string // a 1 for each label column the series has, else 0
	labels   string // as Python prints them
}

func (s *sheet) write() {
	id := cmp.Or(s.run.ID, "None")
	for _, line := range []string{"AIPerf Server Metrics Export (CSV)", "aiperf_version: " + toolVersion(s.run), "schema_version: 1.0",
		"benchmark_id: " + id, "Note: Same benchmark_id and version appear in JSON and Parquet exports"} {
		s.buf = append(s.buf, "# "...)
		s.buf = append(append(s.buf, oneLine(line)...), '\n')
	}
	s.buf = append(s.buf, "#\n"...)
	var rows [metric.GaugeHistogram + 1][]row
	var info []row
	for i := range s.run.Metrics {
		m := &s.run.Metrics[i]
		if !exportedType(m.Type) && m.Type != metric.Info {
			continue
		}
		for j := range m.Series {
			if !hasStats(&m.Series[j]) {
				continue
			}
			r := row{metric: m, series: &m.Series[j], endpoint: displayName(s.run.Endpoints[m.Series[j].Endpoint].URL)}
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
	s.otherSections()
}

// isInfo says that the labels of a metric describe its endpoint and are no
// columns. A gauge of this kind has its own section; what AIPerf does with those
// of other types, a row without labels, is done here too.
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
	histogramColumns = append([]string{"count", "count_rate", "sum", "sum_rate", "avg"}, nineEstimates[:]...)
)

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
	stats := gaugeColumns
	switch typ {
	case metric.Counter:
		stats = counterColumns
	case metric.Histogram:
		stats = histogramColumns
	}
	s.texts("Endpoint", "Type", "Metric", "Unit")
	s.texts(stats...)
	s.texts(columns...)
	s.texts("Description")
	if typ == metric.Histogram {
		s.texts("buckets")
	}
	s.endRow()
	for i := range rows {
		r := &rows[i]
		s.texts(r.endpoint, typ.String(), r.metric.Name, r.metric.Unit)
		s.stats(r.series)
		for _, c := range columns {
			value, _ := r.series.Labels.Get(c)
			if isInfo(r.metric) {
				value = ""
			}
			s.text(value)
		}
		s.text(r.metric.Help)
		if r.series.Histogram != nil {
			s.bucketCell(r.series)
		}
		s.endRow()
	}
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

func (s *sheet) stats(series *summary.Series) {
	switch {
	case series.Counter != nil:
		c := series.Counter
		s.total(c)
		s.number(c.Rate)
		if r := c.SliceRates; r != nil {
			s.numbers(r.Avg, r.Min, r.Max, r.Std)
		} else {
			s.texts("", "", "", "")
		}
	case series.Gauge != nil:
		g := series.Gauge
		s.numbers(g.Avg, g.Min, g.Max, g.Std)
		for _, at := range s.nine {
			if at >= 0 && at < len(g.Quantiles) {
				s.number(g.Quantiles[at])
			} else {
				s.text("")
			}
		}
	default:
		s.histogram(series)
	}
}

func (s *sheet) histogram(series *summary.Series) {
	h := series.Histogram
	some := h.Count != 0
	s.cell()
	s.buf = strconv.AppendInt(s.buf, h.Count, 10)
	s.numberIf(some && h.HasRates, h.CountRate)
	s.numberIf(some && !h.NoSum, h.Sum)
	s.numberIf(some && h.HasRates && !h.NoSum, h.SumRate)
	s.numberIf(some && !h.NoSum, h.Avg)
	for _, at := range s.nine {
		if some && at >= 0 && at < len(h.Quantiles) {
			s.number(h.Quantiles[at].Value)
		} else {
			s.text("")
		}
	}
}

// bucketCell writes le=n;le=n.
func (s *sheet) bucketCell(series *summary.Series) {
	s.text(bucketList(series.Histogram.Buckets))
}

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
