package query

import (
	"math"
	"strconv"

	"github.com/scrapestat/scrapestat/metric"
)

// The levels: what a row is of.
const (
	LevelSeries = "series" // one series, or a derived quantity of one target
	LevelGroup  = "group"  // series that agree in the labels of summary.Options.By
	LevelFleet  = "fleet"  // all of an engine
)

// The spans.
const (
	SpanWindow = "window"
	SpanSlice  = "slice"
	SpanWarmup = "warmup"
)

// The statuses that only rows have, beside those of package catalog.
const (
	NoData        = "no_data"        // nothing was observed
	BoundsDiffer  = "bounds_differ"  // histograms of different buckets have no percentiles together
	NotAggregated = "not_aggregated" // the catalog does not say how the gauges are taken together
)

// Row is one statistic of one thing over one span. Texts are "" and numbers NaN where there is none.
type Row struct {
	Run, RunID       string
	Tags             metric.Labels // of the run
	Level            string
	Target, URL      string // alias or address; "" of several
	Engine           string // the catalog's pack
	Metric, Quantity string // the family or derived quantity, and its name across engines
	Kind             string // counter, gauge, histogram, summary, state, derived, ...
	Labels           metric.Labels
	Phase, Span      string
	Slice            int // -1 of other spans
	StartNS, EndNS   int64
	T                float64 // start less the start of the window, seconds
	Complete         bool    // false of a slice that the window cuts short
	Stat             string
	Q                float64 // of a percentile
	Value, Low, High float64
	Unit             string
	N                int64 // observations or samples behind the value, -1 where they are not counted
	Series           int   // how many were taken together
	Source           string
	Status, Flags    string
}

// Kind is what the values of a column are.
type Kind uint8

// The kinds of columns.
const (
	Text Kind = iota
	Map
	Int
	Small // an integer of 32 bits
	Float
	Bool
)

// Column is a column of the table: its name and how a row has it. A value that is not there is "", NaN or nil.
type Column struct {
	Name string
	Kind Kind

	text   func(*Row) string
	labels func(*Row) metric.Labels
	whole  func(*Row) (int64, bool)
	float  func(*Row) float64
}

// Of returns the value of the column: nil, string, int64, float64, bool or metric.Labels.
func (c *Column) Of(r *Row) any {
	switch c.Kind {
	case Text:
		if s := c.text(r); s != "" {
			return s
		}
		return nil
	case Map:
		return c.labels(r)
	case Float:
		if v := c.float(r); metric.Finite(v) {
			return v
		}
		return nil
	}
	v, ok := c.whole(r)
	switch {
	case !ok:
		return nil
	case c.Kind == Bool:
		return v != 0
	}
	return v
}

func text(name string, of func(*Row) string) Column { return Column{Name: name, text: of} }

func float(name string, of func(*Row) float64) Column {
	return Column{Name: name, Kind: Float, float: of}
}

func whole(name string, kind Kind, of func(*Row) (int64, bool)) Column {
	return Column{Name: name, Kind: kind, whole: of}
}

// Columns are those of the table, in their order.
func Columns() []Column {
	return []Column{
		text("run", func(r *Row) string { return r.Run }),
		text("run_id", func(r *Row) string { return r.RunID }),
		{Name: "tags", Kind: Map, labels: func(r *Row) metric.Labels { return r.Tags }},
		text("level", func(r *Row) string { return r.Level }),
		text("target", func(r *Row) string { return r.Target }),
		text("endpoint_url", func(r *Row) string { return r.URL }),
		text("engine", func(r *Row) string { return r.Engine }),
		text("metric", func(r *Row) string { return r.Metric }),
		text("quantity", func(r *Row) string { return r.Quantity }),
		text("kind", func(r *Row) string { return r.Kind }),
		{Name: "labels", Kind: Map, labels: func(r *Row) metric.Labels { return r.Labels }},
		text("phase", func(r *Row) string { return r.Phase }),
		text("span", func(r *Row) string { return r.Span }),
		whole("slice", Small, func(r *Row) (int64, bool) { return int64(r.Slice), r.Slice >= 0 }),
		whole("start_ns", Int, func(r *Row) (int64, bool) { return r.StartNS, true }),
		whole("end_ns", Int, func(r *Row) (int64, bool) { return r.EndNS, true }),
		float("t_s", func(r *Row) float64 { return r.T }),
		whole("complete", Bool, func(r *Row) (int64, bool) {
			if r.Complete {
				return 1, true
			}
			return 0, true
		}),
		text("stat", func(r *Row) string { return r.Stat }),
		float("q", func(r *Row) float64 { return r.Q }),
		float("value", func(r *Row) float64 { return r.Value }),
		float("low", func(r *Row) float64 { return r.Low }),
		float("high", func(r *Row) float64 { return r.High }),
		text("unit", func(r *Row) string { return r.Unit }),
		whole("n", Int, func(r *Row) (int64, bool) { return r.N, r.N >= 0 }),
		whole("series", Small, func(r *Row) (int64, bool) { return int64(r.Series), true }),
		text("source", func(r *Row) string { return r.Source }),
		text("status", func(r *Row) string { return r.Status }),
		text("flags", func(r *Row) string { return r.Flags }),
	}
}

// Percentile is the name of a quantile, "p99.9" of 0.999.
func Percentile(q float64) string { return "p" + strconv.FormatFloat(100*q, 'g', 6, 64) }

// ParsePercentile reads such a name.
func ParsePercentile(name string) (q float64, ok bool) {
	if len(name) < 2 || name[0] != 'p' {
		return 0, false
	}
	v, err := strconv.ParseFloat(name[1:], 64)
	if err != nil || !(v >= 0 && v <= 100) || math.Signbit(v) || name[1] == '+' {
		return 0, false
	}
	return v / 100, true
}
