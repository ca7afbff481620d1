package export_test

import (
	"bytes"
	"context"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/internal/column"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// busy is a recording of vLLM-like targets in which two thirds of the samples
// change with each poll. It is made while it is read, so that it needs no memory.
type busy struct {
	targets, polls int
}

const (
	busyHistograms = 40
	busyBuckets    = 22
	busyCounters   = 60
	busyGauges     = 67
	busyRows       = busyHistograms*busyBuckets + busyCounters + busyGauges // of a poll
)

func (b busy) Targets() []metric.Target {
	targets := make([]metric.Target, b.targets)
	for i := range targets {
		targets[i] = metric.Target{URL: "http://10.0.0." + strconv.Itoa(i) + ":8000/metrics"}
	}
	return targets
}

func (b busy) bounds() []float64 {
	bounds := make([]float64, busyBuckets)
	for i := range bounds {
		bounds[i] = 0.001 * math.Pow(1.6, float64(i))
	}
	return bounds
}

func (b busy) growth() metric.DictDelta {
	var g metric.DictDelta
	bounds := b.bounds()
	family := func(name string, typ metric.Type) {
		g.Families = append(g.Families, metric.Family{Name: name, Type: typ,
			Help: "Number of things that the engine did with " + name + "."})
		g.Series = append(g.Series, metric.Series{Family: len(g.Families) - 1,
			Labels: metric.NewLabels(metric.Label{Name: "engine", Value: "0"}, metric.Label{Name: "model_name",
				Value: "meta-llama/Llama-3.1-8B-Instruct"})})
	}
	slot := func(role metric.Role, bound float64, text string) {
		g.Slots = append(g.Slots, metric.SampleID{Series: len(g.Series) - 1, Role: role, Bound: bound, Text: text})
	}
	for i := range busyHistograms {
		family("vllm:histogram_"+strconv.Itoa(i)+"_seconds", metric.Histogram)
		for _, bound := range bounds[:busyBuckets-1] {
			slot(metric.RoleBucket, bound, strconv.FormatFloat(bound, 'g', 5, 64))
		}
		slot(metric.RoleBucket, math.Inf(1), "+Inf")
		slot(metric.RoleCount, 0, "")
		slot(metric.RoleSum, 0, "")
	}
	for i := range busyCounters + busyGauges {
		typ := metric.Counter
		if i >= busyCounters {
			typ = metric.Gauge
		}
		family("vllm:scalar_"+strconv.Itoa(i), typ)
		slot(metric.RoleValue, 0, "")
	}
	return g
}

func (b busy) Snapshots(ctx context.Context, target int) iter.Seq2[*metric.Snapshot, error] {
	return func(yield func(*metric.Snapshot, error) bool) {
		rng := rand.New(rand.NewPCG(uint64(target), 1))
		g := b.growth()
		values, bounds := make([]float64, len(g.Slots)), b.bounds()
		at := int64(1_700_000_000_000_000_000)
		for n := range b.polls {
			at += 333_000_000 + rng.Int64N(1_000_000) - 500_000
			s := metric.Snapshot{Seq: uint64(n), SentNS: at - 1e6, FirstByteNS: at, Outcome: metric.OK}
			if n == 0 {
				s.DictDelta, s.Delta.Full = g, true
			}
			change := func(slot int, v float64) {
				if v != values[slot] || n == 0 {
					values[slot] = v
					s.Delta.Slots = append(s.Delta.Slots, uint32(slot))
					s.Delta.Bits = append(s.Delta.Bits, math.Float64bits(v))
				}
			}
			b.step(rng, bounds, values, change)
			if !yield(&s, nil) {
				return
			}
		}
	}
}

// step lets each histogram observe a few values and the scalars move.
func (b busy) step(rng *rand.Rand, bounds, values []float64, change func(slot int, v float64)) {
	slot := 0
	for range busyHistograms {
		observed, sum := rng.IntN(20), 0.0
		var gained [busyBuckets]float64
		for range observed {
			x := math.Exp(rng.NormFloat64()*0.6) * 0.4
			sum += x
			for j := range busyBuckets {
				if j == busyBuckets-1 || x <= bounds[j] {
					gained[j]++
				}
			}
		}
		for j := range busyBuckets {
			change(slot, values[slot]+gained[j])
			slot++
		}
		change(slot, values[slot]+float64(observed))
		change(slot+1, values[slot+1]+sum)
		slot += 2
	}
	for range busyCounters {
		change(slot, values[slot]+float64(rng.IntN(40)))
		slot++
	}
	for i := range busyGauges {
		if i%2 == 0 {
			change(slot, float64(rng.IntN(64)))
		} else {
			change(slot, float64(rng.IntN(20480))/20480)
		}
		slot++
	}
}

func (b busy) run() *summary.Run {
	r := &summary.Run{ID: "0a1b", Version: "1.2.3", Window: summary.Window{StartNS: 0, EndNS: math.MaxInt64 - 1}}
	g := b.growth()
	for endpoint, t := range b.Targets() {
		r.Endpoints = append(r.Endpoints, summary.Endpoint{Target: t, EndNS: r.Window.EndNS})
		for i, s := range g.Series {
			addSeries(r, endpoint, i, &g.Families[s.Family], s.Labels)
		}
	}
	return r
}

type countWriter struct{ n int64 }

func (w *countWriter) Write(p []byte) (int, error) {
	w.n += int64(len(p))
	return len(p), nil
}

type writeTable func(context.Context, io.Writer, *summary.Run, []export.Recording, export.Options) error

func benchmarkTable(b *testing.B, write writeTable, rows int) {
	rec := busy{targets: 2, polls: 1800}
	run := rec.run()
	var out countWriter
	for b.Loop() {
		out = countWriter{}
		if err := write(b.Context(), &out, run, []export.Recording{rec}, export.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	total := float64(rows) * float64(rec.targets) * float64(rec.polls)
	b.ReportMetric(total*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
	b.ReportMetric(float64(out.n)/total, "bytes/row")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkParquet(b *testing.B) { benchmarkTable(b, export.Parquet, busyRows) }

func BenchmarkTidyParquet(b *testing.B) {
	benchmarkTable(b, export.TidyParquet, busyRows+2*busyHistograms)
}

const ratioPolls = 100

// BenchmarkParquetColumns and BenchmarkParquetRows are a pair of .ci/ratios: the
// same table, ours from a recording, the peer's by the library's generic writer
// from rows in memory.
func BenchmarkParquetColumns(b *testing.B) {
	rec := keep(busy{targets: 1, polls: ratioPolls})
	run := rec.run()
	for b.Loop() {
		if err := export.Parquet(b.Context(), io.Discard, run, []export.Recording{rec}, export.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// libraryRow is a row of AIPerf's layout as a user of the library declares it.
type libraryRow struct {
	URL         *string  `parquet:"endpoint_url,optional,dict,zstd"`
	Name        *string  `parquet:"metric_name,optional,dict,zstd"`
	Type        *string  `parquet:"metric_type,optional,dict,zstd"`
	Unit        *string  `parquet:"unit,optional,dict,zstd"`
	Description *string  `parquet:"description,optional,dict,zstd"`
	Time        *int64   `parquet:"timestamp_ns,optional,zstd"`
	Engine      *string  `parquet:"engine,optional,dict,zstd"`
	Model       *string  `parquet:"model_name,optional,dict,zstd"`
	Value       *float64 `parquet:"value,optional,split,zstd"`
	Sum         *float64 `parquet:"sum,optional,split,zstd"`
	Count       *float64 `parquet:"count,optional,split,zstd"`
	LE          *string  `parquet:"bucket_le,optional,dict,zstd"`
	Bucket      *float64 `parquet:"bucket_count,optional,split,zstd"`
}

func BenchmarkParquetRows(b *testing.B) {
	rec := keep(busy{targets: 1, polls: ratioPolls})
	var file bytes.Buffer
	if err := export.Parquet(b.Context(), &file, rec.run(), []export.Recording{rec}, export.Options{}); err != nil {
		b.Fatal(err)
	}
	rows, err := parquet.Read[libraryRow](bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil || len(rows) != busyRows*ratioPolls {
		b.Fatalf("%d rows, %v", len(rows), err)
	}
	for b.Loop() {
		w := parquet.NewGenericWriter[libraryRow](io.Discard)
		if _, err := w.Write(rows); err != nil {
			b.Fatal(err)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParquetColumnWriters does the same work with the library's writers of
// columns: the recording is turned round as ours is, then the values of each column
// are made and handed to its writer.
func BenchmarkParquetColumnWriters(b *testing.B) {
	rec := keep(busy{targets: 1, polls: ratioPolls})
	var file bytes.Buffer
	if err := export.Parquet(b.Context(), &file, rec.run(), []export.Recording{rec}, export.Options{}); err != nil {
		b.Fatal(err)
	}
	f, table := readTable(b, file.Bytes())
	columns := make([][]parquet.Value, len(f.Schema().Columns()))
	for _, row := range table {
		for _, v := range row {
			columns[v.Column()] = append(columns[v.Column()], v)
		}
	}
	values := make([]parquet.Value, 0, 16<<10)
	for b.Loop() {
		src := column.Source{Recording: rec, Keep: func(int) bool { return true }}
		if batch, err := src.Collect(b.Context(), 1<<30); err != nil || !src.Done || walk(batch) != busyRows*ratioPolls {
			b.Fatalf("collect: done %v, %v", src.Done, err)
		}
		w := parquet.NewGenericWriter[libraryRow](io.Discard)
		for i, c := range w.ColumnWriters() {
			for part := range slices.Chunk(columns[i], cap(values)) {
				values = values[:0]
				for j := range part {
					values = append(values, part[j].Level(0, part[j].DefinitionLevel(), i))
				}
				if _, err := c.WriteRowValues(values); err != nil {
					b.Fatal(err)
				}
			}
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// walk visits all samples of a batch and counts the rows that they give.
func walk(batch *column.Batch) (rows int) {
	var r column.Reader
	var slots []int32
	for series := batch.From; series < batch.To; series++ {
		slots = column.SamplesOf(slots, batch.Schema, series)
		n := max(1, len(slots)-2) // of a histogram less its sum and count
		for r.Open(batch, slots); r.Next(); {
			rows += n
		}
	}
	return rows
}
