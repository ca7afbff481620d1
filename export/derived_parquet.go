package export

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/summary"
)

// DerivedName is the name of the file of derived quantities.
const DerivedName = "derived.parquet"

// The leaves of the file of derived quantities.
const (
	derivedURL = iota
	derivedEndpoint
	derivedPack
	derivedMetric
	derivedUnit
	derivedLabelKey
	derivedLabelValue
	derivedSpan
	derivedStart
	derivedEnd
	derivedComplete
	derivedStatus
	derivedNumber
	derivedShown
	derivedNumerator
	derivedDenominator
	derivedFamilies
	derivedFlags
)

// derivedSchema gives the columns their names and order. Rows are written as
// values, as a Go map has no order.
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
}

// someValue makes v a present value of an optional column.
func someValue(column int, v parquet.Value) parquet.Value { return v.Level(0, 1, column) }

// noValue is the null of an optional column.
func noValue(column int) parquet.Value { return parquet.Value{}.Level(0, 0, column) }

func textValue(s string) parquet.Value { return parquet.ByteArrayValue([]byte(validText(s))) }

// optionalText is null when s is empty.
func optionalText(column int, s string) parquet.Value {
	if s == "" {
		return noValue(column)
	}
	return someValue(column, textValue(s))
}

// DerivedParquet writes the derived quantities of a run, one row for the window
// and one for each slice:
//
//	endpoint_url, endpoint_name, pack, name, unit   STRING
//	labels                   MAP     labels['model']
//	span                     STRING  window or slice
//	start_ns, end_ns         INT64   since 1970
//	complete                 BOOLEAN false for a slice that the window cuts short
//	status                   STRING  ok, reset_corrected, zero_denominator, missing, ...
//	value                    DOUBLE  null where the status says that there is none
//	shown                    DOUBLE  value, or the nearest that makes sense
//	numerator, denominator   DOUBLE  null for what is no quotient
//	families, flags          STRING  words with spaces between
//
//	select labels['model'], value from 'derived.parquet'
//	where name = 'triton_derived_avg_queue_seconds' and span = 'window'
func DerivedParquet(w io.Writer, r *summary.Run, _ Options) error {
	config := *parquet.DefaultWriterConfig()
	config.CreatedBy = "scrapestat version " + cmp.Or(r.Version, "unknown")
	config.Compression = &zstd.Codec{Level: zstd.SpeedDefault}
	config.KeyValueMetadata = map[string]string{"scrapestat.layout": "derived", "scrapestat.run": runFacts(r)}
	config.Schema = parquet.SchemaOf(derivedSchema{})
	file := parquet.NewGenericWriter[any](w, &config)
	var row parquet.Row
	for i := range r.Derived {
		q := &r.Derived[i]
		e := &r.Endpoints[q.Endpoint]
		window := summary.DerivedSlice{Status: q.Status, Value: q.Value, Shown: q.Shown, Numerator: q.Numerator, Denominator: q.Denominator}
		window.StartNS, window.EndNS = e.StartNS, e.EndNS
		row = derivedRow(row[:0], e, q, &window, "window")
		if _, err := file.WriteRows([]parquet.Row{row}); err != nil {
			return fmt.Errorf("write derived Parquet: %w", err)
		}
		for k := range q.Slices {
			row = derivedRow(row[:0], e, q, &q.Slices[k], "slice")
			if _, err := file.WriteRows([]parquet.Row{row}); err != nil {
				return fmt.Errorf("write derived Parquet: %w", err)
			}
		}
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write derived Parquet: %w", err)
	}
	return nil
}

func derivedRow(row parquet.Row, e *summary.Endpoint, q *summary.Derived, s *summary.DerivedSlice, span string) parquet.Row {
	number := func(column int, v float64, there bool) parquet.Value {
		if !there || !isFinite(v) {
			return noValue(column)
		}
		return someValue(column, parquet.DoubleValue(v))
	}
	row = append(row, optionalText(derivedURL, e.URL), optionalText(derivedEndpoint, e.Name), optionalText(derivedPack, q.Pack),
		optionalText(derivedMetric, q.Name), optionalText(derivedUnit, q.Unit))
	row = appendLabels(row, q)
	parts := q.HasParts && s.Status != catalog.Missing
	return append(row, optionalText(derivedSpan, span),
		someValue(derivedStart, parquet.Int64Value(s.StartNS)), someValue(derivedEnd, parquet.Int64Value(s.EndNS)),
		someValue(derivedComplete, parquet.BooleanValue(!s.Partial)), optionalText(derivedStatus, s.Status.String()),
		number(derivedNumber, s.Value, s.Status.Defined()), number(derivedShown, s.Shown, s.Status.Defined()),
		number(derivedNumerator, s.Numerator, parts), number(derivedDenominator, s.Denominator, parts),
		optionalText(derivedFamilies, strings.Join(q.Families, " ")), optionalText(derivedFlags, strings.Join(q.Flags, " ")))
}

// appendLabels appends the map: all its keys, then all its values, as rows hold
// the leaves of a column one after the other.
func appendLabels(row parquet.Row, q *summary.Derived) parquet.Row {
	if q.Labels.Len() == 0 {
		return append(row, noValue(derivedLabelKey), noValue(derivedLabelValue))
	}
	n := 0
	for name := range q.Labels.All() {
		row = append(row, textValue(name).Level(min(1, n), 1, derivedLabelKey))
		n++
	}
	n = 0
	for _, value := range q.Labels.All() {
		row = append(row, textValue(value).Level(min(1, n), 1, derivedLabelValue))
		n++
	}
	return row
}
