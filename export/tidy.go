package export

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/scrapestat/scrapestat/internal/column"
	"github.com/scrapestat/scrapestat/internal/gain"
	"github.com/scrapestat/scrapestat/internal/parquetwriter"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// TidyParquet writes everything that was recorded, one row per number: the value of a counter or gauge, and each
// bucket, quantile, sum and count of a histogram or summary, at each poll of the whole run. Its columns, none of which
// depends on what was measured, so that files of several runs unite:
//
//	series_id      INT64   a label set of a family at an endpoint; ascending, not dense
//	endpoint_url   STRING
//	endpoint_name  STRING  the alias the user gave, or null
//	metric_name    STRING
//	metric_type    STRING  counter, gauge, histogram, summary, unknown, info, ...
//	unit           STRING  or null
//	labels         MAP     labels['engine']; without le and quantile
//	timestamp      TIMESTAMP in nanoseconds, UTC, without a zone: DuckDB cuts zoned ones to microseconds
//	timestamp_ns   INT64   the same since 1970
//	phase          STRING  warmup, profiling, ..., or null outside of all
//	in_window      BOOLEAN the sample counts for the statistics
//	component      STRING  value, bucket, native_bucket, quantile, sum or count
//	le             DOUBLE  upper bound of a bucket, inf for the last; else null
//	above          DOUBLE  lower bound of a native bucket, which is not cumulative; else null
//	le_text        STRING  the bound as the server writes it
//	quantile       DOUBLE  of a summary; else null
//	value          DOUBLE  as exposed, NaN and -0 included
//	value_uint64   UINT64  exact, for 64-bit integers; else null
//	gain           DOUBLE  increase since the reference of the window, or null
//	process        INT32   which of the processes that answered the target: 0 for the first
//	sample_ms      INT64   the time that the server gave the sample, since 1970; else null
//
// Rows are sorted by series_id, then time, then component and bound, and declared so. What a series gained in the
// window is its gain in the last row of the window: what continuity makes of restarts, dips and other processes, also
// under AIPerf's clamp. gain is null outside the window, for gauges, and in samples with a number that
// is not finite. A native bucket has all that its range gained, also while it was several buckets. A poll that failed
// and a series that was not there have no rows. Creation times have none either. The key "scrapestat.run" of the footer
// says what was run, as JSON.
//
//	select labels['engine'], max(gain) from 'run.parquet'
//	where metric_name = 'vllm:generation_tokens' and in_window group by all
//
// recs are the recordings r was built of, in the same order; see [Parquet] for how they are read and what is started.
func TidyParquet(ctx context.Context, w io.Writer, r *summary.Run, recs []Recording, o Options) error {
	if err := checkTargets(r, recs); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	t, err := newTidyTable(ctx, r, recs)
	if err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	t.Layout.(*tidyLayout).wanted = o.Family
	return t.Write(ctx, w)
}

func newTidyTable(ctx context.Context, r *summary.Run, recs []Recording) (*parquetwriter.Table, error) {
	l := newTidyLayout(r)
	for _, rec := range recs {
		for target := range rec.Targets() {
			var a *gain.Adjustment
			if r.Endpoints[len(l.adjustments)].Eventful {
				var err error
				if a, err = gain.Adjust(ctx, summary.Continuity(r.Options.Catalog), rec, target); err != nil {
					return nil, err
				}
			}
			l.adjustments = append(l.adjustments, a)
		}
	}
	return &parquetwriter.Table{Columns: tidyColumns(), Layout: l,
		Sources:   stripeSources(recs, func(int, int) bool { return true }),
		CreatedBy: createdBy(r),
		Metadata:  map[string]string{"scrapestat.layout": LayoutTidy, "scrapestat.run": runFacts(r)},
		Sorting:   []int{tidySeries, tidyTimeNS}}, nil
}

// The leaves of the tidy layout.
const (
	tidySeries = iota
	tidyURL
	tidyName
	tidyMetric
	tidyType
	tidyUnit
	tidyLabelKey
	tidyLabelValue
	tidyTime
	tidyTimeNS
	tidyPhase
	tidyInWindow
	tidyComponent
	tidyLE
	tidyAbove
	tidyLEText
	tidyQuantile
	tidyValue
	tidyUint
	tidyGain
	tidyProcess
	tidySampleMS
	tidyRule
	tidySeconds
	tidyLeaves
)

func tidyColumns() []parquetwriter.Column {
	text, whole, steady, double := parquetwriter.Text, parquetwriter.Whole, parquetwriter.Steady, parquetwriter.Double
	columns := []parquetwriter.Column{whole("series_id"), text("endpoint_url"), text("endpoint_name"), text("metric_name"),
		text("metric_type"), text("unit")}
	columns = append(columns, parquetwriter.Map("labels")...)
	columns = append(columns, parquetwriter.Time("timestamp"), whole("timestamp_ns"), text("phase"),
		parquetwriter.Flag("in_window"), text("component"), steady("le"), steady("above"), text("le_text"),
		steady("quantile"), double("value"), parquetwriter.Unsigned("value_uint64"), double("gain"),
		parquetwriter.Small("process"), whole("sample_ms"), text("window_rule"), steady("window_seconds"))
	columns[tidyURL].Bounds, columns[tidyMetric].Bounds, columns[tidyMetric].Bloom = true, true, true
	return columns
}

// tidyLayout is the table of everything.
type tidyLayout struct {
	run   *summary.Run
	units map[metric.Family]string // by name and type
	// adjustments are those of the endpoints of which something happened.
	adjustments []*gain.Adjustment
	wanted      func(family string) bool // nil for all
}

func newTidyLayout(r *summary.Run) *tidyLayout {
	l := &tidyLayout{run: r, units: map[metric.Family]string{}}
	for _, metrics := range [][]summary.Metric{r.Warmup, r.Metrics} {
		for i := range metrics {
			m := &metrics[i]
			l.units[metric.Family{Name: m.Name, Type: m.Type}] = m.ShownUnit()
		}
	}
	return l
}

func (l *tidyLayout) unit(f *metric.Family) string {
	return cmp.Or(l.units[metric.Family{Name: f.Name, Type: f.Type}], f.Unit)
}

func (l *tidyLayout) Polls(st *column.Batch) (from, to int32) { return 0, int32(len(st.Times)) }

func (l *tidyLayout) Rows(st *column.Batch, series int) int {
	n := 0
	if l.wanted != nil && !l.wanted(st.Schema.FamilyOf(series).Name) {
		return 0
	}
	for _, slot := range st.Schema.SlotsOf(series) {
		if !st.Schema.Slots[slot].Role.Metadata() {
			n++
		}
	}
	return n
}

func (l *tidyLayout) Filler() parquetwriter.Filler {
	return &tidyFiller{layout: l}
}

// phaseAt returns the phase of an instant: of those that hold it the one that began last, "" when there is none.
func (l *tidyLayout) phaseAt(ns int64) string {
	name, start := "", int64(0)
	for i := range l.run.Phases {
		p := &l.run.Phases[i]
		if p.StartNS <= ns && ns < p.EndNS && (name == "" || p.StartNS >= start) {
			name, start = p.Name, p.StartNS
		}
	}
	return name
}
