package export

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/query"
	"github.com/scrapestat/scrapestat/summary"
)

// statsRows bounds what is held of a file of statistics.
const statsRows = 1 << 17

// statsSchema are the columns of package query, in their order, which TestStatsColumns holds to those.
type statsSchema struct {
	Run      string            `parquet:"run,optional,dict"`
	RunID    string            `parquet:"run_id,optional,dict"`
	Tags     map[string]string `parquet:"tags"`
	Level    string            `parquet:"level,optional,dict"`
	Target   string            `parquet:"target,optional,dict"`
	URL      string            `parquet:"endpoint_url,optional,dict"`
	Engine   string            `parquet:"engine,optional,dict"`
	Metric   string            `parquet:"metric,optional,dict"`
	Quantity string            `parquet:"quantity,optional,dict"`
	Kind     string            `parquet:"kind,optional,dict"`
	Labels   map[string]string `parquet:"labels"`
	Phase    string            `parquet:"phase,optional,dict"`
	Span     string            `parquet:"span,optional,dict"`
	Slice    int32             `parquet:"slice,optional"`
	StartNS  int64             `parquet:"start_ns,optional"`
	EndNS    int64             `parquet:"end_ns,optional"`
	T        float64           `parquet:"t_s,optional"`
	Complete bool              `parquet:"complete,optional"`
	Stat     string            `parquet:"stat,optional,dict"`
	Q        float64           `parquet:"q,optional"`
	Value    float64           `parquet:"value,optional"`
	Low      float64           `parquet:"low,optional"`
	High     float64           `parquet:"high,optional"`
	Unit     string            `parquet:"unit,optional,dict"`
	N        int64             `parquet:"n,optional"`
	Series   int32             `parquet:"series,optional"`
	Source   string            `parquet:"source,optional,dict"`
	Status   string            `parquet:"status,optional,dict"`
	Flags    string            `parquet:"flags,optional,dict"`
}

// Stats writes the statistics of every series, and of all of an engine together, as the table of package query.
func Stats(ctx context.Context, w io.Writer, r *summary.Run, _ []Recording, o Options) error {
	rows := query.Stats(r, query.Options{Run: cmp.Or(o.Run, r.ID),
		Levels: []string{query.LevelSeries, query.LevelFleet}})
	return statsParquet(ctx, w, Rows{Seq: rows, Runs: []*summary.Run{r}})
}

// statsParquet writes rows sorted by run, level and metric.
func statsParquet(ctx context.Context, w io.Writer, rows Rows) error {
	config := *parquet.DefaultWriterConfig()
	config.CreatedBy = "scrapestat"
	config.Compression = &zstd.Codec{Level: zstd.SpeedDefault}
	config.MaxRowsPerRowGroup = statsRows
	config.KeyValueMetadata = map[string]string{"scrapestat.layout": "stats",
		"scrapestat.estimator": rows.Runs[0].Options.Estimator, "scrapestat.run": runFacts(rows.Runs[0])}
	config.Sorting.SortingColumns = []parquet.SortingColumn{parquet.Ascending("run"), parquet.Ascending("level"),
		parquet.Ascending("metric")}
	config.Schema = parquet.SchemaOf(statsSchema{})
	file := parquet.NewGenericWriter[any](w, &config)
	columns := query.Columns()
	l := leaves{}
	for r := range rows.Seq {
		l.row, l.column = l.row[:0], 0
		for i := range columns {
			l.value(&columns[i], columns[i].Of(r))
		}
		if _, err := file.WriteRows([]parquet.Row{l.row}); err != nil {
			return fmt.Errorf("write stats: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("write stats: %w", err)
		}
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write stats: %w", err)
	}
	return nil
}

// value appends a value of a column of package query.
func (l *leaves) value(c *query.Column, v any) {
	switch v := v.(type) {
	case string:
		l.texts(v)
	case metric.Labels:
		l.labels(v)
	case float64:
		l.numbers(v)
	case bool:
		l.add(parquet.BooleanValue(v), true)
	case int64:
		if c.Kind == query.Small {
			l.add(parquet.Int32Value(int32(v)), true)
			return
		}
		l.add(parquet.Int64Value(v), true)
	default:
		l.add(parquet.Value{}, false)
	}
}
