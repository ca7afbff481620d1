package export_test

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

func writeTidy(tb testing.TB, r *summary.Run, recs ...export.Recording) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := export.TidyParquet(tb.Context(), &b, r, recs, export.Options{}); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// deltasOf returns the deltas of the rows of a component with a bound text, as
// they stand in the file; NaN where there is none.
func deltasOf(tb testing.TB, data []byte, component, le string) []float64 {
	tb.Helper()
	f, rows := readTable(tb, data)
	names := columnsOf(f)
	var out []float64
	for _, row := range rows {
		match, delta, identity := 0, math.NaN(), false
		for _, v := range row {
			switch name := names[v.Column()]; {
			case name == "component" && string(v.ByteArray()) == component, name == "le_text" &&
				(le == "" || string(v.ByteArray()) == le):
				match++
			case name == "gain" && !v.IsNull():
				delta = v.Double()
			case name == "metric_name":
				identity = string(v.ByteArray()) == "process_start_time_seconds"
			}
		}
		if match == 2 && !identity {
			out = append(out, delta)
		}
	}
	return out
}

func TestTidyGains(t *testing.T) {
	nan := math.NaN()
	adjust, clamp := normalize.ResetAdjust, normalize.ResetClamp
	check := func(name string, resets normalize.ResetMode, component, le string, want []float64, polls ...[]point) {
		t.Helper()
		p := newTape("http://a/metrics")
		for i, points := range polls {
			p.poll(int64(i+1)*1e9, points...)
		}
		r := runOf(2e9, int64(len(polls))*1e9, p)
		r.Options.Resets, r.Endpoints[0].Eventful = resets, true
		data := writeTidy(t, r, p)
		got := deltasOf(t, data, component, le)
		equal := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
		if !slices.EqualFunc(got, want, equal) {
			t.Errorf("%s: gains %v, want %v", name, got, want)
		}
		f, rows := readTable(t, data)
		process := rows[len(rows)-1][slices.Index(columnsOf(f), "process")].Int32()
		if again := strings.HasSuffix(name, "restart"); resets == adjust && again != (process == 1) {
			t.Errorf("%s: the last row is of process %d", name, process)
		}
	}
	one := func(values ...float64) (polls [][]point) {
		for _, v := range values {
			polls = append(polls, []point{counterPoint("c", v)})
		}
		return polls
	}
	// restarted are polls of a process that started before all of them, and from number n on of another one.
	restarted := func(n int, polls ...[]point) [][]point {
		for i := range polls {
			start := -1000.0
			if i >= n {
				start = float64(n) + 0.5
			}
			polls[i] = append(polls[i], gaugePoint("process_start_time_seconds", start))
		}
		return polls
	}
	check("counter", adjust, "value", "", []float64{nan, 5, 7}, one(100, 105, 107)...)
	check("counter, restart", adjust, "value", "", []float64{nan, 5, 7, 10}, restarted(2, one(100, 105, 2, 5)...)...)
	check("counter, early restart", adjust, "value", "", []float64{nan, 3, 4}, restarted(1, one(100, 3, 4)...)...)
	check("counter, clamp", clamp, "value", "", []float64{nan, 5, 7, 115}, restarted(2, one(100, 105, 2, 110)...)...)
	check("counter, NaN", adjust, "value", "", []float64{nan, 5, nan, 7}, one(100, 105, nan, 107)...)
	check("integers, restart", adjust, "value", "", []float64{nan, 1, 3}, restarted(2, []point{integerPoint("c", 1<<63)},
		[]point{integerPoint("c", 1<<63+1)}, []point{integerPoint("c", 2)})...)
	check("integers, born", adjust, "value", "", []float64{7, 9}, []point{}, []point{integerPoint("c", 7)},
		[]point{integerPoint("c", 9)})
	check("gauge", adjust, "value", "", []float64{nan, nan}, []point{gaugePoint("g", 1)}, []point{gaugePoint("g", 2)})

	histograms := func() [][]point {
		return restarted(2, histogramPoints("h", 10, []float64{1, 5, 9}), histogramPoints("h", 11, []float64{2, 6, 10}),
			histogramPoints("h", 2, []float64{2, 2, 3}))
	}
	check("histogram bucket, restart", adjust, "bucket", "0.5", []float64{nan, 1, 3}, histograms()...)
	check("histogram sum, restart", adjust, "sum", "", []float64{nan, 1, 3}, histograms()...)
	check("histogram count, restart", adjust, "count", "", []float64{nan, 1, 4}, histograms()...)
	check("histogram count, clamp", clamp, "count", "", []float64{nan, 1, 4}, histograms()...)
	check("histogram, falling sum", adjust, "sum", "", []float64{nan, -3}, histogramPoints("h", 10, []float64{1, 2}),
		histogramPoints("h", 7, []float64{1, 3}))
	check("late bucket", adjust, "bucket", "1", []float64{0, 2}, histogramPoints("h", 1, []float64{1, 2}),
		histogramPoints("h", 1, []float64{1, 5, 9}), histogramPoints("h", 1, []float64{1, 7, 9}))
}

func TestTidyColumns(t *testing.T) {
	p := newTape("http://a/metrics")
	p.target.Name = "prefill"
	points := histogramPoints("h", 1.5, []float64{1, 2, 3}, "z", "1", "b", "2")
	own := gaugePoint("g", 1_700_000_000_123) // the time that the server gave g
	own.role = metric.RoleSampleTime
	p.poll(1, append(points, summaryPoint("s", 4), integerPoint("i", 1<<63+1), gaugePoint("g", 7), own)...)
	r := runOf(0, 10, p)
	r.Phases = []summary.Phase{{Name: metric.PhaseProfiling, EndNS: 10}, {Name: "ramp", StartNS: 1, EndNS: 2}}
	r.Window.Resolved, r.Endpoints[0].Seconds = &window.Window{Rule: window.Traffic}, 2.5
	f, rows := readTable(t, writeTidy(t, r, p))
	want := strings.Fields("series_id endpoint_url endpoint_name metric_name metric_type unit labels.key_value.key " +
		"labels.key_value.value " +
		"timestamp timestamp_ns phase in_window component le above le_text quantile value value_uint64 gain process " +
		"sample_ms window_rule window_seconds")
	if diff := cmp.Diff(want, columnsOf(f)); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	check := func(row int, column, want string) {
		t.Helper()
		var got []string
		for _, v := range rows[row] {
			switch {
			case columnsOf(f)[v.Column()] != column:
			case column == "value_uint64" && !v.IsNull():
				got = append(got, strconv.FormatUint(v.Uint64(), 10))
			default:
				got = append(got, v.String())
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("row %d: %s is %q, want %q", row, column, got, want)
		}
	}
	check(0, "endpoint_name", "prefill")
	check(0, "unit", "seconds")
	check(0, "labels.key_value.key", "b z")
	check(0, "labels.key_value.value", "2 1")
	check(0, "phase", "ramp")
	check(0, "in_window", "true")
	check(0, "component", "bucket")
	check(0, "le", "0.5")
	check(2, "le", "+Inf")
	check(2, "le_text", "+Inf")
	check(3, "component", "sum")
	check(3, "le", "<null>")
	check(4, "component", "count")
	check(5, "component", "quantile")
	check(5, "quantile", "0.99")
	check(5, "labels.key_value.key", "<null>")
	check(6, "value_uint64", "9223372036854775809")
	check(7, "value", "7")
	check(7, "value_uint64", "<null>")
	check(7, "sample_ms", "1700000000123")
	check(6, "sample_ms", "<null>")
	check(7, "process", "0")
	if kind := f.Root().Column("process").Type().String(); kind != "INT(32,true)" {
		t.Errorf("process is %v", kind)
	}
	check(0, "window_rule", "traffic")
	check(7, "window_seconds", "2.5")
	if len(rows) != 8 {
		t.Errorf("%d rows, want 8: the time of a sample is no number of its own", len(rows))
	}

	sorting := f.Metadata().RowGroups[0].SortingColumns
	if len(sorting) != 2 || columnsOf(f)[sorting[0].ColumnIdx] != "series_id" ||
		columnsOf(f)[sorting[1].ColumnIdx] != "timestamp_ns" {
		t.Errorf("declared sorting %+v", sorting)
	}
	if facts, _ := f.Lookup("scrapestat.run"); !strings.Contains(facts,
		`"endpoints":[{"url":"http://a/metrics","name":"prefill","source":"prometheus"}]`) {
		t.Errorf("facts of the run: %s", facts)
	}
}
