package export

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/internal/column"
	"github.com/scrapestat/scrapestat/internal/parquetwriter"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// Parquet writes every sample of the window in AIPerf's layout, design document aiperf.md section 5.4: one row per
// sample, for histograms one per bucket, counters and histograms counted from the reference and never below 0, labels
// as columns. It holds the series the JSON has, endpoints in order of their first poll, series as they first appeared,
// then time, then bucket.
//
// As in AIPerf's file, a counter that restarts shows max(value - reference, 0): [TidyParquet] has the raw values and
// the increase across restarts. Unlike AIPerf's, a file without rows is written too, with its columns and footer; a
// bucket that appears late is counted from its first sample; and pages are compressed with zstd, which every reader of
// AIPerf's files knows.
//
// A native histogram has rows for the bounds of its populated buckets, as a
// classic one of those buckets would have, and +Inf.
//
// recs are the recordings r was built of, in the same order. They are read once or, when they are big, several times;
// memory does not grow with their length. Parquet starts one goroutine per processor and waits for them.
func Parquet(ctx context.Context, w io.Writer, r *summary.Run, recs []Recording, _ Options) error {
	if err := checkTargets(r, recs); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	return newAIPerfTable(r, recs).Write(ctx, w)
}

// checkTargets refuses recordings that r was not built of.
func checkTargets(r *summary.Run, recs []Recording) error {
	n := 0
	for _, rec := range recs {
		n += len(rec.Targets())
	}
	if n != len(r.Endpoints) {
		return fmt.Errorf("the recordings have %d targets, the run has %d endpoints", n, len(r.Endpoints))
	}
	return nil
}

func newAIPerfTable(r *summary.Run, recs []Recording) *parquetwriter.Table {
	l := newAIPerfLayout(r)
	t := &parquetwriter.Table{Columns: l.columns, Layout: l, Sources: stripeSources(recs, l.keep), CreatedBy: createdBy(r),
		Metadata: aiperfFooter(r, l)}
	orderByArrival(r, t.Sources)
	return t
}

func createdBy(r *summary.Run) string { return "scrapestat version " + cmp.Or(r.Version, "unknown") }

// stripeSources returns the targets of all recordings in the order of r.Endpoints.
func stripeSources(recs []Recording, keep func(endpoint, series int) bool) []*column.Source {
	var sources []*column.Source
	for _, rec := range recs {
		for target, t := range rec.Targets() {
			endpoint := len(sources)
			sources = append(sources, &column.Source{Recording: rec, Target: target, Endpoint: endpoint, URL: t.URL,
				Keep: func(series int) bool { return keep(endpoint, series) }})
		}
	}
	return sources
}

// orderByArrival sorts sources by the first stored poll, as AIPerf lists endpoints; those without one come last.
func orderByArrival(r *summary.Run, sources []*column.Source) {
	first := func(src *column.Source) int64 {
		if e := &r.Endpoints[src.Endpoint]; e.Fetches.Total > 0 {
			return e.Fetches.FirstNS
		}
		return math.MaxInt64
	}
	slices.SortStableFunc(sources, func(a, b *column.Source) int { return cmp.Compare(first(a), first(b)) })
}

// aiperfFixed are the columns that no label may take: AIPerf drops labels of these names.
var aiperfFixed = []string{"endpoint_url", "metric_name", "metric_type", "unit", "description", "timestamp_ns",
	"value", "sum", "count", "bucket_le", "bucket_count"}

// The first columns of the AIPerf layout; the labels follow, then the values.
const (
	aiperfURL = iota
	aiperfName
	aiperfType
	aiperfUnit
	aiperfHelp
	aiperfTime
	aiperfLabels
)

// aiperfLayout is the table in AIPerf's form.
type aiperfLayout struct {
	run     *summary.Run
	columns []parquetwriter.Column
	labels  map[string]int            // column of a label
	names   map[string]string         // name of that column
	metrics []map[int]*summary.Metric // by endpoint, then series

	value, sum, count, le, bucket int // columns
}

func newAIPerfLayout(r *summary.Run) *aiperfLayout {
	l := &aiperfLayout{run: r, labels: map[string]int{}, metrics: make([]map[int]*summary.Metric, len(r.Endpoints))}
	names := map[string]bool{}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		if !exportedType(m.Type) {
			continue
		}
		for j := range m.Series {
			s := &m.Series[j]
			if r.Endpoints[s.Endpoint].Client() {
				continue
			}
			if l.metrics[s.Endpoint] == nil {
				l.metrics[s.Endpoint] = map[int]*summary.Metric{}
			}
			l.metrics[s.Endpoint][s.Index] = m
			for name := range s.Labels.All() {
				names[parquetwriter.ValidText(name)] = true
			}
		}
	}
	l.names = labelNames(names, aiperfFixed...)
	l.arrange()
	return l
}

// arrange lays out the columns: fixed, labels by name, values.
func (l *aiperfLayout) arrange() {
	add := func(c parquetwriter.Column) int {
		l.columns = append(l.columns, c)
		return len(l.columns) - 1
	}
	for _, name := range aiperfFixed[:aiperfTime] {
		add(parquetwriter.Text(name))
	}
	l.columns[aiperfURL].Bounds, l.columns[aiperfName].Bounds = true, true
	add(parquetwriter.Whole("timestamp_ns"))
	for _, name := range slices.SortedFunc(maps.Keys(l.names), func(a, b string) int {
		return cmp.Compare(l.names[a], l.names[b])
	}) {
		l.labels[name] = add(parquetwriter.Text(l.names[name]))
	}
	l.value = add(parquetwriter.Double("value"))
	l.sum = add(parquetwriter.Double("sum"))
	l.count = add(parquetwriter.Double("count"))
	l.le = add(parquetwriter.Text("bucket_le"))
	l.bucket = add(parquetwriter.Double("bucket_count"))
}

func (l *aiperfLayout) keep(endpoint, series int) bool {
	return endpoint < len(l.metrics) && l.metrics[endpoint][series] != nil
}

// start returns where the window of an endpoint begins. The end is the same for all: the statistics of one end with its
// own last update, the file of AIPerf with that of any.
func (l *aiperfLayout) start(endpoint int) int64 { return l.run.Endpoints[endpoint].StartNS }

// Polls returns the polls of the window.
func (l *aiperfLayout) Polls(st *column.Batch) (from, to int32) {
	return pollsBetween(st.Times, l.start(st.Endpoint), l.run.Window.EndNS)
}

// pollsBetween returns the range of polls with start <= time <= end.
func pollsBetween(times []int64, start, end int64) (from, to int32) {
	i, _ := slices.BinarySearch(times, start)
	j, _ := slices.BinarySearch(times, end+1)
	return int32(i), int32(j)
}

func (l *aiperfLayout) Rows(st *column.Batch, series int) int {
	if !l.keep(st.Endpoint, series) {
		return 0
	}
	if st.Schema.FamilyOf(series).Type != metric.Histogram {
		return 1
	}
	n, native := 0, 0
	for _, slot := range st.Schema.SlotsOf(series) {
		switch st.Schema.Slots[slot].Role {
		case metric.RoleBucket:
			n++
		case metric.RoleNative:
			native++
		}
	}
	if native > 0 {
		return 2*native + 1 // both ends of each, and +Inf
	}
	return n
}

func (l *aiperfLayout) Filler() parquetwriter.Filler { return &aiperfFiller{layout: l} }
