package export_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

func writeAIPerf(tb testing.TB, r *summary.Run, recs ...export.Recording) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := export.Parquet(tb.Context(), &b, r, recs, export.Options{}); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// TestParquetCase63 is case 63 of aiperf.md section 8.
func TestParquetCase63(t *testing.T) {
	p := newTape("http://a/metrics")
	labels := []string{"method", "GET", "value", "x", "bucket_le", "y"}
	for _, s := range []struct{ at, v float64 }{{0.5, 100}, {1, 150}, {2, 250}, {3, 400}} {
		p.poll(int64(s.at*1e9), counterPoint("requests", s.v, labels...))
	}
	data := writeAIPerf(t, runOf(1e9, 3e9, p), p)
	_, rows := readTable(t, data)
	var got []float64
	for _, row := range rows {
		got = append(got, row[9].Double())
	}
	if want := []float64{50, 150, 300}; !slices.Equal(got, want) {
		t.Errorf("values %v, want %v", got, want)
	}
	f, _ := readTable(t, data)
	want := []string{"endpoint_url", "metric_name", "metric_type", "unit", "description", "timestamp_ns",
		"label_bucket_le", "label_value", "method", "value", "sum", "count", "bucket_le", "bucket_count"}
	if diff := cmp.Diff(want, columnsOf(f)); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

func TestParquetFooter(t *testing.T) {
	a, b := newTape("http://b/metrics"), newTape("http://a/metrics")
	a.poll(2e9, gaugePoint("g", 1, "x", "1"), counterPoint("c", 5))
	b.poll(1e9, histogramPoints("h", 1, []float64{1, 2, 3}, "y", "2")...)
	f, rows := readTable(t, writeAIPerf(t, runOf(1e9, 3e9, a, b), a, b))
	check := func(key, want string) {
		t.Helper()
		if got, ok := f.Lookup(key); got != want || !ok {
			t.Errorf("footer %s is %q, want %q", key, got, want)
		}
	}
	check("aiperf.schema_version", "1.0")
	check("aiperf.benchmark_id", "0a1b")
	check("aiperf.exporter", "ServerMetricsParquetExporter")
	check("aiperf.export_timestamp_utc", "1970-01-01T00:00:03+00:00")
	check("aiperf.time_filter_start_ns", "1000000000")
	check("aiperf.time_filter_end_ns", "3000000000")
	check("aiperf.profiling_duration_ns", "2000000000")
	check("aiperf.profiling_duration_seconds", "2.0")
	check("aiperf.endpoint_urls", `["http://a/metrics","http://b/metrics"]`)
	check("aiperf.endpoint_count", "2")
	check("aiperf.label_columns", `["x","y"]`)
	check("aiperf.label_count", "2")
	check("aiperf.metric_count", "3")
	check("aiperf.metric_type_counts", `{"gauge":1,"counter":1,"histogram":1,"unknown":0}`)
	check("aiperf.concurrency", "None")
	check("aiperf.input_config", "{}")
	check("scrapestat.layout", "aiperf")

	// Endpoints come in the order of their first poll, series as they appeared.
	var names []string
	for _, row := range rows {
		names = append(names, string(row[1].ByteArray()))
	}
	if want := []string{"h", "h", "h", "g", "c"}; !slices.Equal(names, want) {
		t.Errorf("metrics in the order %v, want %v", names, want)
	}
}

func TestParquetNulls(t *testing.T) {
	p := newTape("http://a/metrics")
	p.poll(1e9, gaugePoint("bare", 1), gaugePoint("labelled", 2, "l", ""))
	r := runOf(0, 2e9, p)
	r.Metrics[0].Unit = ""
	f, rows := readTable(t, writeAIPerf(t, r, p))
	names := columnsOf(f)
	null := func(row int, column string) bool { return rows[row][slices.Index(names, column)].IsNull() }
	for _, c := range []struct {
		row    int
		column string
		want   bool
	}{{0, "unit", true}, {0, "l", true}, {0, "sum", true}, {0, "bucket_le", true}, {0, "description", false},
		{1, "unit", false}, {1, "l", false}, {1, "value", false}} {
		if got := null(c.row, c.column); got != c.want {
			t.Errorf("row %d column %s: null is %v, want %v", c.row, c.column, got, c.want)
		}
	}
}

// hostileTexts are texts that have broken files before.
var hostileTexts = []string{"", "a,b", `quo"te`, "new\nline", "{}=", "nul\x00", "\u202ertl", "😀", "\xff\xfe",
	strings.Repeat("x", 64<<10), "endpoint_url", "A", "a", "a-label.x/y", "日本"}

func TestParquetHostileLabels(t *testing.T) {
	p := newTape("http://a/metrics")
	var labels []string
	var points []point
	for _, text := range hostileTexts {
		points = append(points, gaugePoint("g", 1, "v", text))
		if text != "" && len(text) < 100 {
			labels = append(labels, text, "name "+text)
		}
	}
	p.poll(1e9, append(points, gaugePoint("g", 2, labels...))...)
	for layout, write := range map[string]writeTable{"aiperf": export.Parquet, "tidy": export.TidyParquet} {
		var b bytes.Buffer
		if err := write(t.Context(), &b, runOf(0, 2e9, p), []export.Recording{p}, export.Options{}); err != nil {
			t.Fatal(err)
		}
		_, rows := readTable(t, b.Bytes())
		var texts []string
		for _, row := range rows {
			for _, v := range row {
				texts = append(texts, v.String())
			}
		}
		for _, v := range hostileTexts {
			v = strings.ToValidUTF8(v, "\ufffd")
			if !slices.Contains(texts, v) {
				t.Errorf("%s layout: no cell is %.40q", layout, v)
			}
			want := v != "" && len(v) < 100
			if got := slices.Contains(texts, "name "+v); got != want {
				t.Errorf("%s layout: label %.40q is there: %v", layout, v, got)
			}
		}
	}
}

func TestParquetEmpty(t *testing.T) {
	silent, early := newTape("http://a/metrics"), newTape("http://b/metrics")
	silent.fail(1e9)
	early.poll(1e9, gaugePoint("g", 1, "l", "v"))
	for name, recs := range map[string][]*tape{"no target": nil, "no poll": {silent}, "nothing in window": {early}} {
		var list []export.Recording
		for _, p := range recs {
			list = append(list, p)
		}
		for layout, write := range map[string]writeTable{"aiperf": export.Parquet, "tidy": export.TidyParquet} {
			var b bytes.Buffer
			if err := write(t.Context(), &b, runOf(5e9, 6e9, recs...), list, export.Options{}); err != nil {
				t.Fatal(err)
			}
			f, rows := readTable(t, b.Bytes())
			if want := layout == "tidy" && name == "nothing in window"; len(rows) > 0 != want || len(columnsOf(f)) < 11 {
				t.Errorf("%s, %s layout: %d rows, %d columns", name, layout, len(rows), len(columnsOf(f)))
			}
		}
	}
}

// TestParquetStream compares both layouts with the polls they were made of, for
// random recordings: gaps, restarts, vanished and late series and buckets, failed
// polls, NaN, infinities, -0, integers beyond 2^53.
func TestParquetStream(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		tapes := []*tape{drawTape(rt, "http://a/metrics"), drawTape(rt, "http://b/metrics")}
		start := rapid.Int64Range(0, 15).Draw(rt, "start") * 1e9
		end := start + rapid.Int64Range(0, 25).Draw(rt, "length")*1e9
		run, recs := runOf(start, end, tapes...), []export.Recording{tapes[0], tapes[1]}
		bounds := export.Bounds{Budget: rapid.SampledFrom([]int{1, 200, 1 << 20}).Draw(rt, "budget"),
			GroupRows: rapid.SampledFrom([]int{30, 150, 1 << 20}).Draw(rt, "rows"), Workers: rapid.IntRange(1, 4).Draw(rt,
				"workers")}
		arrival := slices.Clone(tapes)
		if first := func(i int) int64 { return run.Endpoints[i].Fetches.FirstNS }; run.Endpoints[0].Fetches.Total == 0 ||
			run.Endpoints[1].Fetches.Total > 0 && first(1) < first(0) {
			slices.Reverse(arrival)
		}
		compareRows(rt, aiperfRows(t, writeBounded(t, "aiperf", run, recs, bounds)), oracle(start, end, arrival...))
		compareRows(rt, tidyRows(t, writeBounded(t, "tidy", run, recs, bounds)), tidyOracle(start, end, tapes...))
	})
}

func writeBounded(tb testing.TB, layout string, r *summary.Run, recs []export.Recording, bounds export.Bounds) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := export.WriteTable(tb.Context(), &b, layout, r, recs, bounds); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// drawTape draws up to 25 polls of a few series.
func drawTape(rt *rapid.T, url string) *tape {
	t := newTape(url)
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), -3, 1e300, 0.1, 1 << 60, 5e-324}
	value := rapid.OneOf(rapid.Float64Range(0, 5), rapid.Map(rapid.IntRange(0, 9),
		func(i int) float64 { return float64(i) }), rapid.SampledFrom(odd))
	var total, whole float64
	var exact uint64 = 1 << 60
	cumulative := make([]float64, 4)
	for at := range rapid.IntRange(0, 25).Draw(rt, "polls") {
		ns := int64(at+1) * 1e9
		switch rapid.IntRange(0, 9).Draw(rt, "event") {
		case 0:
			t.fail(ns)
			continue
		case 1: // a restart
			total, whole, exact = 0, 0, 0
			clear(cumulative)
		}
		total += value.Draw(rt, "total")
		whole += float64(rapid.IntRange(0, 3).Draw(rt, "whole"))
		exact += rapid.Uint64Range(0, 5).Draw(rt, "exact")
		for i := range cumulative {
			cumulative[i] += float64(rapid.IntRange(0, 2).Draw(rt, "bucket"))
		}
		points := []point{counterPoint("total", total, "l", "1"), counterPoint("whole", whole), integerPoint("exact", exact),
			summaryPoint("quantiles", value.Draw(rt, "quantile")), gaugePoint("level", value.Draw(rt, "level"), "l",
				"1"), gaugePoint("level", value.Draw(rt, "level"), "l", "2", "m", "x")}
		points = append(points, histogramPoints("size", value.Draw(rt, "sum"), cumulative, "l", "1")...)
		points = slices.DeleteFunc(points, func(point) bool { return rapid.IntRange(0, 30).Draw(rt, "gone") == 0 })
		t.poll(ns, points...)
	}
	return t
}

func TestParquetBounds(t *testing.T) {
	t.Parallel()
	rec := busy{targets: 2, polls: 6}
	run := rec.run()
	for _, layout := range []string{export.LayoutAIPerf, export.LayoutTidy} {
		write := func(b export.Bounds) []byte { return writeBounded(t, layout, run, []export.Recording{rec}, b) }
		f, all := readTable(t, write(export.Bounds{}))
		if n := len(f.RowGroups()); n != 1 {
			t.Errorf("%s: %d row groups for %d rows, want 1", layout, n, len(all))
		}
		small := export.Bounds{Budget: 20_000, GroupRows: 1000, Workers: 3}
		data := write(small)
		f, cut := readTable(t, data)
		for i, g := range f.RowGroups() {
			if g.NumRows() > 1000 {
				t.Errorf("%s: row group %d has %d rows, the limit is 1000", layout, i, g.NumRows())
			}
		}
		if diff := cmp.Diff(len(all), len(cut)); diff != "" {
			t.Errorf("%s: rows under tight bounds (-want +got): %s", layout, diff)
		}
		for i := range min(len(all), len(cut)) {
			if !all[i].Equal(cut[i]) {
				t.Fatalf("%s: row %d is %v under tight bounds, else %v", layout, i, cut[i], all[i])
			}
		}
		small.Workers = 1
		if !bytes.Equal(data, write(small)) {
			t.Errorf("%s: one worker writes other bytes than three", layout)
		}
	}
}

// failing yields a few polls and then an error.
type failing struct {
	busy
	err error
}

func (f failing) Snapshots(ctx context.Context, target int) iter.Seq2[*metric.Snapshot, error] {
	return func(yield func(*metric.Snapshot, error) bool) {
		for s, err := range f.busy.Snapshots(ctx, target) {
			if !yield(s, err) {
				return
			}
		}
		yield(nil, f.err)
	}
}

func TestParquetErrors(t *testing.T) {
	defer goleak.VerifyNone(t)
	rec := busy{targets: 1, polls: 8}
	damaged := errors.New("damaged")
	check := func(name string, ctx context.Context, w *diskWriter, rec export.Recording, want error) {
		t.Helper()
		err := export.WriteTable(ctx, w, export.LayoutAIPerf, busy{targets: 1}.run(), []export.Recording{rec},
			export.Bounds{GroupRows: 500, Workers: 3})
		if !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	check("good", t.Context(), &diskWriter{left: 1 << 30}, rec, nil)
	check("unreadable recording", t.Context(), &diskWriter{left: 1 << 30}, failing{rec, damaged}, damaged)
	check("cancelled", cancelled, &diskWriter{left: 1 << 30}, rec, context.Canceled)
	check("full disk", t.Context(), &diskWriter{left: 1000}, rec, errDisk)

	bad := newTape("http://a/metrics")
	bad.poll(1e9, gaugePoint("g", 1))
	bad.polls[0].Delta.Slots[0] = 9
	if err := export.Parquet(t.Context(), &bytes.Buffer{}, runOf(0, 2e9, bad), []export.Recording{bad},
		export.Options{}); err == nil ||
		!strings.Contains(err.Error(), "http://a/metrics: poll 0: damaged delta: slot 9 of 1") {
		t.Errorf("slot outside the dictionary: error %v", err)
	}
	if err := export.Parquet(t.Context(), &bytes.Buffer{}, rec.run(), nil, export.Options{}); err == nil {
		t.Error("no error for a run without its recordings")
	}
}

var errDisk = errors.New("disk full")

type diskWriter struct{ left int }

func (w *diskWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errDisk
	}
	return len(p), nil
}

// TestParquetLong has more polls than a page has entries, and more distinct times
// and integers than a dictionary of numbers takes.
func TestParquetLong(t *testing.T) {
	p := newTape("http://a/metrics")
	const polls = 70_000
	for i := range polls {
		if i%1000 == 500 {
			p.fail(int64(i+1) * 1e6)
			continue
		}
		p.poll(int64(i+1)*1e6, integerPoint("exact", 1<<60+uint64(i)), gaugePoint("level", float64(i%777)))
	}
	r := runOf(1e6, polls*1e6, p)
	compareRows(t, aiperfRows(t, writeAIPerf(t, r, p)), oracle(1e6, polls*1e6, p))
	compareRows(t, tidyRows(t, writeBounded(t, "tidy", r, []export.Recording{p}, export.Bounds{})),
		tidyOracle(1e6, polls*1e6, p))
}
