package export

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/parquetwriter"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// derivedSchema gives the columns their names and order. Rows are written as values, as a Go map has no order.
type derivedSchema struct {
	URL         string            `parquet:"endpoint_url,optional,dict"`
	Endpoint    string            `parquet:"endpoint_name,optional,dict"`
	Pack        string            `parquet:"pack,optional,dict"`
	Name        string            `parquet:"name,optional,dict"`
	Unit        string            `parquet:"unit,optional,dict"`
	Labels      map[string]string `parquet:"labels"`
	Span        string            `parquet:"span,optional,dict"`
	Start       int64             `parquet:"start_ns,optional"`
	End         int64             `parquet:"end_ns,optional"`
	Complete    bool              `parquet:"complete,optional"`
	Status      string            `parquet:"status,optional,dict"`
	Value       float64           `parquet:"value,optional"`
	Shown       float64           `parquet:"shown,optional"`
	Numerator   float64           `parquet:"numerator,optional"`
	Denominator float64           `parquet:"denominator,optional"`
	Families    string            `parquet:"families,optional,dict"`
	Flags       string            `parquet:"flags,optional,dict"`
	Level       string            `parquet:"level,optional,dict"`
	Stat        string            `parquet:"stat,optional,dict"`
	Low         float64           `parquet:"low,optional"`
	High        float64           `parquet:"high,optional"`
	Series      int64             `parquet:"series,optional"`
	Canonical   string            `parquet:"canonical,optional,dict"`
}

// The levels of a row: what it is of.
const (
	levelEndpoint  = "endpoint"  // a derived quantity of one endpoint
	levelFleet     = "fleet"     // of all endpoints of an engine together
	levelGroup     = "group"     // of those that agree in what was asked for
	levelAggregate = "aggregate" // a statistic of series taken together, as was asked for
	levelLatency   = "latency"   // of a time that engines have in common, over all endpoints
)

// DerivedParquet writes the derived quantities of a run and its aggregates, one
// row for the window and one for each slice:
//
//	endpoint_url, endpoint_name, pack, name, unit   STRING; the name is that of the family for an aggregate
//	labels                   MAP     labels['model']; of a group also those that make it one
//	span                     STRING  window or slice
//	start_ns, end_ns         INT64   since 1970
//	complete                 BOOLEAN false for a slice that the window cuts short
//	status                   STRING  ok, reset_corrected, zero_denominator, missing, ...
//	value                    DOUBLE  null where there is none by the status
//	shown                    DOUBLE  value, or the nearest that makes sense
//	numerator, denominator   DOUBLE  null for what is no quotient
//	families, flags          STRING  words with spaces between
//	level                    STRING  endpoint, fleet, group, aggregate or latency; only the first has an endpoint
//	stat                     STRING  of an aggregate or latency: total, rate, count, sum, avg, time_avg, min, max,
//	                                 skew, p50, ...
//	low, high                DOUBLE  what a percentile provably lies between, or a value that is not certain
//	series                   INT64   that were taken together
//	canonical                STRING  the name of the quantity across engines
//
//	select labels['model'], value from 'derived.parquet'
//	where name = 'triton_derived_avg_queue_seconds' and span = 'window' and level = 'endpoint'
func DerivedParquet(w io.Writer, r *summary.Run, _ Options) error {
	config := *parquet.DefaultWriterConfig()
	config.CreatedBy = "scrapestat version " + cmp.Or(r.Version, "unknown")
	config.Compression = &zstd.Codec{Level: zstd.SpeedDefault}
	config.KeyValueMetadata = map[string]string{"scrapestat.layout": "derived", "scrapestat.run": runFacts(r)}
	config.Schema = parquet.SchemaOf(derivedSchema{})
	file := parquet.NewGenericWriter[any](w, &config)
	var buf parquet.Row
	var err error
	write := func(row *derivedRow) {
		if err == nil {
			buf = row.append(buf[:0])
			_, err = file.WriteRows([]parquet.Row{buf})
		}
	}
	for i := range r.Derived {
		q := &r.Derived[i]
		derivedRows(q, derivedRow{endpoint: &r.Endpoints[q.Endpoint], level: levelEndpoint, labels: q.Labels}, r, write)
	}
	if hasFleet(r) {
		for i := range r.Combined {
			t := &r.Combined[i]
			for k := range t.Derived {
				row := derivedRow{level: levelFleet, labels: t.Derived[k].Labels}
				if i > 0 {
					row.level, row.labels = levelGroup, t.Labels.Join(t.Derived[k].Labels)
				}
				derivedRows(&t.Derived[k], row, r, write)
			}
		}
	}
	for i := range r.Latencies {
		aggregateRows(&r.Latencies[i].Aggregate, derivedRow{level: levelLatency, canonical: r.Latencies[i].ID}, r, write)
	}
	for i := range r.Aggregates {
		aggregateRows(&r.Aggregates[i], derivedRow{level: levelAggregate}, r, write)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return fmt.Errorf("write derived Parquet: %w", err)
	}
	return nil
}

// derivedRow is a row of the file. NaN stands for a number that does not exist.
type derivedRow struct {
	endpoint                *summary.Endpoint // nil for none
	level, pack, name, unit string
	labels                  metric.Labels
	span                    string
	slice                   normalize.Slice
	status                  string
	value, shown            float64
	numerator, denominator  float64
	families, flags, stat   string
	low, high               float64
	series                  int
	canonical               string
}

// derivedRows writes a quantity, for the window and its slices.
func derivedRows(q *summary.Derived, row derivedRow, r *summary.Run, write func(*derivedRow)) {
	row.pack, row.name, row.unit, row.canonical = q.Pack, q.Name, q.Unit, q.Canonical
	row.families, row.flags = strings.Join(q.Families, " "), strings.Join(q.Flags, " ")
	fill := func(span string, s *summary.DerivedSlice) {
		row.span, row.slice, row.status = span, s.Slice, s.Status.String()
		row.value, row.shown, row.numerator, row.denominator = math.NaN(), math.NaN(), math.NaN(), math.NaN()
		row.low, row.high = math.NaN(), math.NaN()
		if s.Status.Defined() {
			row.value, row.shown = s.Value, s.Shown
			row.low, row.high = summary.BoundsOfStatus(s.Status, s.Low, s.High)
		}
		if q.HasParts && s.Status != catalog.Missing {
			row.numerator, row.denominator = s.Numerator, s.Denominator
		}
		write(&row)
	}
	window := summary.DerivedSlice{Status: q.Status, Value: q.Value, Shown: q.Shown, Low: q.Low, High: q.High,
		Numerator: q.Numerator, Denominator: q.Denominator}
	window.StartNS, window.EndNS = r.Window.StartNS, r.Window.EndNS
	if row.endpoint != nil {
		window.StartNS, window.EndNS = row.endpoint.StartNS, row.endpoint.EndNS
	}
	fill("window", &window)
	for k := range q.Slices {
		fill("slice", &q.Slices[k])
	}
}

// aggregateRows writes an aggregate, a row for each of its statistics.
func aggregateRows(a *summary.Aggregate, row derivedRow, r *summary.Run, write func(*derivedRow)) {
	m := &r.Metrics[a.Metric]
	row.name, row.unit, row.labels, row.series, row.families = m.Name, m.ShownUnit(), a.Labels, a.Series, m.Name
	row.span, row.slice.StartNS, row.slice.EndNS = "window", r.Window.StartNS, r.Window.EndNS
	row.status = summary.StatusWord(&a.Increase)
	nan := math.NaN()
	row.numerator, row.denominator, row.low, row.high = nan, nan, nan, nan
	add := func(stat string, v float64) {
		row.stat, row.value, row.shown = stat, v, v
		write(&row)
	}
	switch {
	case a.Counter != nil && a.Counter.Defined:
		add("total", a.Counter.Total)
		add("rate", a.Counter.Rate)
	case a.Gauge != nil:
		add("time_avg", a.Gauge.TimeAvg)
		add("min", a.Gauge.Min)
		add("max", a.Gauge.Max)
	case a.Summary != nil && a.Summary.Defined && !a.Summary.NoCount:
		addDistribution(add, a.Summary.Count, a.Summary.Sum, a.Summary.CountRate, a.Summary.NoSum, a.Summary.HasRates)
	case a.Histogram != nil:
		h := a.Histogram
		addDistribution(add, h.Count, h.Sum, h.CountRate, h.NoSum, h.HasRates)
		for i, e := range inFiles(r, h.Quantiles, h.FileQuantiles) {
			row.low, row.high, row.flags = e.Low, e.High, strings.Join(summary.FlagNames(e.Flags), " ")
			add("p"+strconv.FormatFloat(100*r.Options.Quantiles[i], 'g', 6, 64), e.Value)
		}
		row.low, row.high, row.flags = nan, nan, ""
	default:
		if row.flags = "not_merged"; a.Increase.Status.Defined() {
			row.status = catalog.Missing.String()
		}
		add("", nan)
	}
	if a.Skew != nil {
		add("skew", a.Skew.Ratio)
	}
}

func addDistribution(add func(string, float64), count int64, sum, rate float64, noSum, hasRates bool) {
	add("count", float64(count))
	if hasRates {
		add("rate", rate)
	}
	if noSum {
		return
	}
	add("sum", sum)
	if count != 0 {
		add("avg", sum/float64(count))
	}
}

// append appends the values of a row in the order of the leaves.
func (d *derivedRow) append(row parquet.Row) parquet.Row {
	l := leaves{row: row}
	if e := d.endpoint; e != nil {
		l.texts(e.URL, e.Name)
	} else {
		l.texts("", "")
	}
	l.texts(d.pack, d.name, d.unit)
	l.labels(d.labels)
	l.texts(d.span)
	l.add(parquet.Int64Value(d.slice.StartNS), true)
	l.add(parquet.Int64Value(d.slice.EndNS), true)
	l.add(parquet.BooleanValue(!d.slice.Partial), true)
	l.texts(d.status)
	l.numbers(d.value, d.shown, d.numerator, d.denominator)
	l.texts(d.families, d.flags, d.level, d.stat)
	l.numbers(d.low, d.high)
	l.add(parquet.Int64Value(int64(d.series)), d.series > 0)
	l.texts(d.canonical)
	return l.row
}

// leaves appends the values of a row, column by column.
type leaves struct {
	row    parquet.Row
	column int
}

// add appends a value of an optional column, a null if it is not there.
func (l *leaves) add(v parquet.Value, there bool) {
	if there {
		l.row = append(l.row, v.Level(0, 1, l.column))
	} else {
		l.row = append(l.row, parquet.Value{}.Level(0, 0, l.column))
	}
	l.column++
}

func (l *leaves) texts(texts ...string) {
	for _, s := range texts {
		l.add(textValue(s), s != "")
	}
}

func (l *leaves) numbers(numbers ...float64) {
	for _, v := range numbers {
		l.add(parquet.DoubleValue(v), metric.Finite(v))
	}
}

func textValue(s string) parquet.Value {
	return parquet.ByteArrayValue([]byte(parquetwriter.ValidText(s)))
}

// labels appends the map: all its keys, then all its values, as rows hold the leaves of a column one after the other.
func (l *leaves) labels(set metric.Labels) {
	var keys, values parquet.Row
	for name, value := range set.All() {
		level := min(1, len(keys))
		keys = append(keys, textValue(name).Level(level, 1, l.column))
		values = append(values, textValue(value).Level(level, 1, l.column+1))
	}
	if len(keys) == 0 {
		keys = parquet.Row{parquet.Value{}.Level(0, 0, l.column)}
		values = parquet.Row{parquet.Value{}.Level(0, 0, l.column+1)}
	}
	l.row = append(append(l.row, keys...), values...)
	l.column += 2
}
