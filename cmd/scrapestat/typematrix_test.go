package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	dto "github.com/prometheus/client_model/go"
)

// typesServer shows a family of every type its format has. What it shows at the
// n-th scrape follows from n.
type typesServer struct {
	format string
	n      int
}

// typesText is the body in text; @1 is 10 times the number of the scrape, @2 and @3 two and three times as much.
const typesText = `# HELP c_total A counter.
# TYPE c_total counter
c_total{engine="0"} @1
# HELP g A gauge.
# TYPE g gauge
g @1
# TYPE "utf8.näme" gauge
{"utf8.näme","läbel.x"="wört"} @1
# TYPE u UNTYPED
u @1
# TYPE h_seconds histogram
h_seconds_bucket{le="1"} @1
h_seconds_bucket{le="2.5"} @1
h_seconds_bucket{le="+Inf"} @2
h_seconds_sum @3
h_seconds_count @2
# TYPE s_seconds summary
s_seconds{quantile="0.5"} 5
s_seconds{quantile="0.9"} NaN
s_seconds_sum @3
s_seconds_count @2
`

// typesOpen is what only OpenMetrics has in text.
const typesOpen = `# TYPE i info
i_info{version="1.2"} 1
# TYPE e stateset
e{e="on"} 1
e{e="off"} 0
# TYPE q_bytes gaugehistogram
# UNIT q_bytes bytes
q_bytes_bucket{le="1"} 1
q_bytes_bucket{le="+Inf"} 3
q_bytes_gsum 7
q_bytes_gcount 3
# EOF
`

func (s *typesServer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.n++
	n := 10 * s.n
	text := strings.NewReplacer("@3", fmt.Sprint(3*n), "@2", fmt.Sprint(2*n), "@1", fmt.Sprint(n)).Replace(typesText)
	switch s.format {
	case "openmetrics":
		w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
		text = strings.Replace(strings.ReplaceAll(text, " c_total ", " c "), "UNTYPED", "unknown", 1)
		text = strings.NewReplacer("# HELP c_total", "# HELP c", "# TYPE c_total", "# TYPE c").Replace(text) + typesOpen
	case "protobuf":
		w.Header().Set("Content-Type", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; "+
			"encoding=delimited")
		var b bytes.Buffer
		encoder := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeProtoDelim).WithEscapingScheme(model.NoEscaping))
		for _, f := range typesFamilies(uint64(n)) {
			if err := encoder.Encode(f); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		text = b.String()
	default:
		w.Header().Set("Content-Type", "text/plain; version="+s.format+"; charset=utf-8")
		text = strings.Replace(text, "UNTYPED", "untyped", 1)
	}
	_, _ = w.Write([]byte(text)) // a write fails when the client has gone
}

// typesFamilies is the body in protobuf.
func typesFamilies(n uint64) []*dto.MetricFamily {
	family := func(name string, typ dto.MetricType, m *dto.Metric) *dto.MetricFamily {
		return &dto.MetricFamily{Name: &name, Type: &typ, Metric: []*dto.Metric{m}}
	}
	v := float64(n)
	buckets := func(one, all uint64) []*dto.Bucket {
		return []*dto.Bucket{{UpperBound: new(1.0), CumulativeCount: &one}, {UpperBound: new(2.5), CumulativeCount: &one}}
	}
	native := func(n uint64) *dto.Histogram {
		return &dto.Histogram{SampleCount: new(2 * n), SampleSum: new(3 * float64(n)), Schema: new(int32(0)),
			ZeroThreshold: new(0.0), ZeroCount: &n,
			PositiveSpan: []*dto.BucketSpan{{Offset: new(int32(2)), Length: new(uint32(1))}}, PositiveDelta: []int64{int64(n)}}
	}
	return []*dto.MetricFamily{
		family("c_total", dto.MetricType_COUNTER, &dto.Metric{Label: []*dto.LabelPair{{Name: new("engine"), Value: new("0")}},
			Counter: &dto.Counter{Value: &v}}),
		family("g", dto.MetricType_GAUGE, &dto.Metric{Gauge: &dto.Gauge{Value: &v}}),
		family("utf8.näme", dto.MetricType_GAUGE,
			&dto.Metric{Label: []*dto.LabelPair{{Name: new("läbel.x"), Value: new("wört")}}, Gauge: &dto.Gauge{Value: &v}}),
		family("u", dto.MetricType_UNTYPED, &dto.Metric{Untyped: &dto.Untyped{Value: &v}}),
		family("h_seconds", dto.MetricType_HISTOGRAM,
			&dto.Metric{Histogram: &dto.Histogram{SampleCount: new(2 * n), SampleSum: new(3 * v), Bucket: buckets(n, 2*n)}}),
		family("s_seconds", dto.MetricType_SUMMARY,
			&dto.Metric{Summary: &dto.Summary{SampleCount: new(2 * n), SampleSum: new(3 * v),
				Quantile: []*dto.Quantile{{Quantile: new(0.5), Value: new(5.0)}, {Quantile: new(0.9), Value: new(math.NaN())}}}}),
		family("q_bytes", dto.MetricType_GAUGE_HISTOGRAM,
			&dto.Metric{Histogram: &dto.Histogram{SampleCount: new(uint64(3)), SampleSum: new(7.0), Bucket: buckets(1, 3)}}),
		family("n_seconds", dto.MetricType_HISTOGRAM, &dto.Metric{Histogram: native(n)}),
		family("nq_bytes", dto.MetricType_GAUGE_HISTOGRAM, &dto.Metric{Histogram: native(4)}),
	}
}

// TestEveryTypeFormatExport collects each type in each format and reads it back
// from each export.
func TestEveryTypeFormatExport(t *testing.T) {
	t.Parallel()
	for format, protocols := range map[string]string{"0.0.4": "PrometheusText0.0.4", "1.0.0": "PrometheusText1.0.0",
		"openmetrics": "openmetrics,text", "protobuf": "protobuf"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			s := &typesServer{format: format}
			server := httptest.NewServer(s)
			defer server.Close()
			dir := t.TempDir()
			runOK(t, "collect", server.URL, "-o", dir, "--force", "--duration", "600ms", "--interval", "100ms", "--settle", "0s",
				"--scrape-budget", "0",
				"--protocols", protocols, "--slice-duration", "200ms", "--formats", "json,csv,jsonl,parquet", "--quiet")
			runOK(t, "export", dir, "-o", dir, "--parquet-layout", "tidy", "--formats", "parquet")
			m := matrix{t: t, dir: dir, gain: float64(10 * (s.n - referenceScrape(t, dir))), last: float64(10 * s.n),
				open: format == "openmetrics", proto: format == "protobuf"}
			m.json()
			m.csv()
			m.jsonl()
			m.aiperfParquet()
			m.tidyParquet()
			m.show()
		})
	}
}

// matrix reads one run back. Between the first scrape and the last all that only
// grows gained a multiple of gain; last is the last value.
type matrix struct {
	t           *testing.T
	dir         string
	gain, last  float64
	open, proto bool
}

func (m *matrix) read(name string) []byte {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join(m.dir, name))
	if err != nil {
		m.t.Fatal(err)
	}
	return data
}

// want compares the values under name, printed.
func (m *matrix) want(where, name string, got any, want ...any) {
	m.t.Helper()
	if g, w := fmt.Sprintf("%v", got), fmt.Sprintf("%v", want); g != w {
		m.t.Errorf("%s: %s is %v, want %v", where, name, g, w)
	}
}

// dig walks into decoded JSON; a missing key gives nil.
func dig(v any, path ...any) any {
	for _, p := range path {
		switch k := p.(type) {
		case string:
			o, _ := v.(map[string]any)
			v = o[k]
		case int:
			a, _ := v.([]any)
			if k >= len(a) {
				return nil
			}
			v = a[k]
		}
	}
	return v
}

func (m *matrix) json() {
	var doc any
	if err := json.Unmarshal(m.read("server_metrics_export.json"), &doc); err != nil {
		m.t.Fatal(err)
	}
	at := func(name string, path ...any) any {
		return dig(doc, append([]any{"metrics", name, "series", 0}, path...)...)
	}
	slices := func(name string, v any) {
		m.t.Helper()
		if list, _ := v.([]any); len(list) < 3 {
			m.t.Errorf("JSON: %s has %d slices", name, len(list))
		}
	}
	m.want("JSON", "c", []any{at("c", "stats", "total"), at("c", "labels", "engine")}, m.gain, "0")
	m.want("JSON", "g", []any{at("g", "stats", "max")}, m.last)
	m.want("JSON", "utf8", []any{at("utf8.näme", "stats", "max"), at("utf8.näme", "labels", "läbel.x")}, m.last, "wört")
	m.want("JSON", "u", []any{dig(doc, "metrics", "u", "type"), at("u", "stats", "max")}, "unknown", m.last)
	m.want("JSON", "h", []any{at("h_seconds", "stats", "count"), at("h_seconds", "stats", "sum")}, 2*m.gain, 3*m.gain)
	for _, name := range []string{"c", "g", "u", "h_seconds"} {
		slices(name, at(name, "timeslices"))
	}
	others := map[string]any{}
	for i := 0; dig(doc, "scrapestat", "metrics", i) != nil; i++ {
		others[dig(doc, "scrapestat", "metrics", i, "name").(string)] = dig(doc, "scrapestat", "metrics", i)
	}
	of := func(name string, path ...any) any {
		return dig(others[name], append([]any{"series", 0}, path...)...)
	}
	m.want("JSON", "s", []any{of("s_seconds", "stats", "count"), of("s_seconds", "stats", "sum"),
		of("s_seconds", "server_quantiles", "0.5"), of("s_seconds", "server_quantiles", "0.9")},
		2*m.gain, 3*m.gain, 5.0, nil)
	slices("s_seconds", of("s_seconds", "timeslices"))
	if m.open {
		m.want("JSON", "i", []any{of("i", "labels", "version"), of("i", "stats")}, "1.2", nil)
		slices("i", of("i", "timeslices"))
		m.want("JSON", "e off", []any{of("e", "labels", "e"), of("e", "stats", "active_share")}, "off", 0.0)
		m.want("JSON", "e on", []any{dig(others["e"], "series", 1, "stats", "active_share"),
			dig(others["e"], "series", 1, "stats", "active_last")}, 1.0, true)
		slices("e", of("e", "timeslices"))
	}
	if m.open || m.proto {
		m.want("JSON", "q", []any{dig(others["q_bytes"], "unit"), of("q_bytes", "stats_of_last_sample", "count"),
			of("q_bytes", "stats_of_last_sample", "sum"), of("q_bytes", "buckets", "+Inf")}, "bytes", 3.0, 7.0, 3.0)
		slices("q", of("q_bytes", "timeslices"))
	}
	if m.proto {
		m.want("JSON", "n", []any{at("n_seconds", "stats", "count"), at("n_seconds", "stats", "sum"),
			at("n_seconds", "buckets")}, 2*m.gain, 3*m.gain,
			map[string]any{"0.0": m.gain, "2.0": m.gain, "4.0": 2 * m.gain, "+Inf": 2 * m.gain})
		slices("n", at("n_seconds", "timeslices"))
		m.want("JSON", "nq", []any{of("nq_bytes", "native"), of("nq_bytes", "stats_of_last_sample", "count")}, true, 8.0)
		slices("nq", of("nq_bytes", "timeslices"))
	}
}

func (m *matrix) csv() {
	cells := map[string]string{} // metric and column to value
	for part := range strings.SplitSeq(strings.ReplaceAll(string(m.read("server_metrics_export.csv")), "\r\n\r\n", "\x00"),
		"\x00") {
		part = strings.TrimLeft(part, "\r\n")
		for strings.HasPrefix(part, "#") {
			_, part, _ = strings.Cut(part, "\n")
		}
		rows, err := csv.NewReader(strings.NewReader(part)).ReadAll()
		if err != nil {
			m.t.Fatal(err)
		}
		for _, row := range rows[1:] {
			for i, column := range rows[0] {
				name := row[2]
				if rows[0][1] == "Metric" {
					name = row[1]
				}
				if name == "e" {
					name += row[len(row)-2] // the state
				}
				cells[name+" "+column] = row[i]
			}
		}
	}
	want := func(key string, v any) {
		m.t.Helper()
		text := fmt.Sprint(v)
		if f, ok := v.(float64); ok {
			text = fmt.Sprintf("%.4f", f)
		}
		m.want("CSV", key, []any{cells[key]}, text)
	}
	want("c total", m.gain)
	want("c engine", "0")
	want("g max", m.last)
	want("u max", m.last)
	want("utf8.näme max", m.last)
	want("utf8.näme läbel.x", "wört")
	want("h_seconds count", int(2*m.gain))
	want("h_seconds sum", 3*m.gain)
	want("s_seconds count", int(2*m.gain))
	want("s_seconds server_quantiles", "0.5=5.0;0.9=")
	if m.open {
		want("i Value", "1.2")
		want("eon active_share", 1.0)
		want("eoff active_last", "false")
	}
	if m.open || m.proto {
		want("q_bytes count_last", 3)
		want("q_bytes sum_last", 7.0)
	}
	if m.proto {
		want("n_seconds count", int(2*m.gain))
		want("nq_bytes count_last", 8)
	}
}

func (m *matrix) jsonl() {
	lines := bytes.Split(bytes.TrimSpace(m.read("server_metrics_export.jsonl")), []byte("\n"))
	var line any
	if err := json.Unmarshal(lines[len(lines)-1], &line); err != nil {
		m.t.Fatal(err)
	}
	at := func(name string, path ...any) any {
		return dig(line, append([]any{"metrics", name, 0}, path...)...)
	}
	of := func(name string, path ...any) any {
		return dig(line, append([]any{"scrapestat", "metrics", name, "series", 0}, path...)...)
	}
	m.want("JSONL", "values", []any{at("c", "value"), at("g", "value"), at("u", "value"), at("h_seconds", "count"),
		at("h_seconds", "buckets", "+Inf")}, m.last, m.last, m.last, 2*m.last, 2*m.last)
	m.want("JSONL", "utf8", []any{at("utf8.näme", "value"), at("utf8.näme", "labels", "läbel.x")}, m.last, "wört")
	m.want("JSONL", "s", []any{of("s_seconds", "count"), of("s_seconds", "quantiles")}, 2*m.last,
		map[string]any{"0.5": 5.0})
	if m.open {
		m.want("JSONL", "i and e", []any{of("i", "labels", "version"), of("e", "value")}, "1.2", 1.0)
	}
	if m.open || m.proto {
		m.want("JSONL", "q", []any{of("q_bytes", "count"), of("q_bytes", "sum")}, 3.0, 7.0)
	}
	if m.proto {
		m.want("JSONL", "n", []any{at("n_seconds", "buckets", "4.0"), of("nq_bytes", "count")}, 2*m.last, 8.0)
	}
}

// rows reads a Parquet file as one map per row, and calls each with them in order.
func (m *matrix) rows(name string, each func(row map[string]parquet.Value)) {
	data := m.read(name)
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		m.t.Fatal(err)
	}
	columns := f.Schema().Columns()
	for _, g := range f.RowGroups() {
		r := g.Rows()
		buf := make([]parquet.Row, 1)
		for {
			n, err := r.ReadRows(buf)
			if n == 0 {
				break
			}
			row := map[string]parquet.Value{}
			for _, v := range buf[0] {
				row[strings.Join(columns[v.Column()], ".")] = v
			}
			each(row)
			if err != nil {
				break
			}
		}
		if err := r.Close(); err != nil {
			m.t.Fatal(err)
		}
	}
}

func (m *matrix) aiperfParquet() {
	last := map[string]float64{} // by metric, bound and column: the last row counts
	labelled := map[string]string{}
	m.rows("server_metrics_export.parquet", func(row map[string]parquet.Value) {
		key := row["metric_name"].String() + " " + row["bucket_le"].String()
		for _, column := range []string{"value", "count", "bucket_count"} {
			if v := row[column]; !v.IsNull() {
				last[key+" "+column] = v.Double()
			}
		}
		if v := row["läbel.x"]; !v.IsNull() {
			labelled[v.String()] = row["metric_name"].String()
		}
	})
	get := func(key string) any { return last[key] }
	m.want("AIPerf Parquet", "rows", []any{get("c <null> value"), get("g <null> value"), get("u <null> value"),
		get("h_seconds +Inf count"), get("h_seconds +Inf bucket_count")},
		m.gain, m.last, m.last, 2*m.gain, 2*m.gain)
	m.want("AIPerf Parquet", "utf8", []any{get("utf8.näme <null> value"), labelled["wört"]}, m.last, "utf8.näme")
	if m.proto {
		m.want("AIPerf Parquet", "n", []any{get("n_seconds 4.0 bucket_count"), get("n_seconds +Inf count"),
			get("n_seconds 2.0 bucket_count")}, 2*m.gain, 2*m.gain, m.gain)
	}
	for key := range last {
		switch name, _, _ := strings.Cut(key, " "); name {
		case "s_seconds", "i", "e", "q_bytes", "nq_bytes":
			m.t.Errorf("AIPerf Parquet: %s has rows, its reader does not know the type", name)
		}
	}
}

func (m *matrix) tidyParquet() {
	last := map[string]string{}
	m.rows("server_metrics_tidy.parquet", func(row map[string]parquet.Value) {
		key := row["metric_name"].String() + " " + row["component"].String()
		for _, part := range []string{"above", "le", "quantile"} {
			if v := row[part]; !v.IsNull() {
				key += " " + v.String()
			}
		}
		if name := row["metric_name"].String(); name == "e" || name == "utf8.näme" {
			key += " " + row["labels.key_value.value"].String()
		}
		last[key] = row["metric_type"].String() + " " + row["value"].String() + " " + row["gain"].String()
	})
	want := func(key, typ string, value float64, delta any) {
		m.t.Helper()
		m.want("tidy Parquet", key, []any{last[key]}, fmt.Sprintf("%s %v %v", typ, value, delta))
	}
	want("c value", "counter", m.last, m.gain)
	want("g value", "gauge", m.last, "<null>")
	want("utf8.näme value wört", "gauge", m.last, "<null>")
	want("u value", "unknown", m.last, "<null>")
	want("h_seconds bucket 2.5", "histogram", m.last, m.gain)
	want("s_seconds count", "summary", 2*m.last, 2*m.gain)
	want("s_seconds quantile 0.5", "summary", 5, "<null>")
	if m.open {
		want("i value", "info", 1, "<null>")
		want("e value on", "stateset", 1, "<null>")
	}
	if m.open || m.proto {
		want("q_bytes count", "gaugehistogram", 3, "<null>")
		want("q_bytes bucket 1", "gaugehistogram", 1, "<null>")
	}
	if m.proto {
		want("n_seconds native_bucket 2 4", "histogram", m.last, m.gain)
		want("n_seconds count", "histogram", 2*m.last, 2*m.gain)
		want("nq_bytes native_bucket 2 4", "gaugehistogram", 4, "<null>")
	}
}

// show looks for a line of each type in the text for people.
func (m *matrix) show() {
	var out, talk bytes.Buffer
	if code := run(m.t.Context(), []string{"show", m.dir, "--all"}, stdio{nil, &out, &talk}); code != exitDone {
		m.t.Fatalf("show: exit code %d\n%s", code, talk.String())
	}
	words := []string{"COUNTER", "GAUGE", "HISTOGRAM", "SUMMARY", "0.5: 5", "0.9: -", "utf8.näme"}
	if m.open {
		words = append(words, "INFO", `version="1.2"`, "STATE SET", "100", "distributions at the last scrape")
	}
	if m.proto {
		words = append(words, "n_seconds", "nq_bytes")
	}
	for _, w := range words {
		if !strings.Contains(out.String(), w) {
			m.t.Errorf("show: no %q in\n%s", w, out.String())
		}
	}
}
