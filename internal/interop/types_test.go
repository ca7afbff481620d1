package interop_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const (
	openMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	protobuf    = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)

// typesOpen is a body of OpenMetrics with a family of each type, one with names
// that only quotes allow, an exemplar and a creation time.
func typesOpen(at time.Duration) string {
	n := 1 + int(at/(500*time.Millisecond))
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# HELP c A counter.\n# TYPE c counter\nc_total{engine=\"0\"} %d\nc_created{engine=\"0\"} 1600000000.5", 10*n)
	line("# TYPE g gauge\ng %g\n# TYPE u unknown\nu %d", math.Sqrt(float64(n)), n%7)
	line("# HELP \"utf8.näme\" A gauge.\n# TYPE \"utf8.näme\" gauge\n{\"utf8.näme\",\"läbel.x\"=\"wört\"} %d", n)
	line("# TYPE h_seconds histogram\n# UNIT h_seconds seconds")
	line("h_seconds_bucket{le=\"1.0\"} %d # {trace_id=\"t%d\"} 0.5 1600000001.25\nh_seconds_bucket{le=\"2.5\"} "+
		"%d\nh_seconds_bucket{le=\"+Inf\"} %d", n, n, 3*n, 5*n)
	line("h_seconds_sum %g\nh_seconds_count %d", 7.5*float64(n), 5*n)
	line("# TYPE s_seconds summary\ns_seconds{quantile=\"0.5\"} %g\ns_seconds{quantile=\"0.9\"} NaN\ns_seconds_sum "+
		"%g\ns_seconds_count %d", 0.1*float64(n), 2.5*float64(n), 4*n)
	line("# TYPE i info\ni_info{version=\"1.2\"} 1")
	line("# TYPE e stateset\ne{e=\"on\"} %d\ne{e=\"off\"} %d", n/3%2, 1-n/3%2)
	line("# TYPE q_bytes gaugehistogram\n# UNIT q_bytes bytes\nq_bytes_bucket{le=\"1.0\"} "+
		"%d\nq_bytes_bucket{le=\"+Inf\"} %d\nq_bytes_gsum %d\nq_bytes_gcount %d", n%5, n%5+3, 2*n, n%5+3)
	return b.String() + "# EOF\n"
}

// typesProtobuf is a body of protobuf with a family of each type and native
// histograms: of whole numbers, of floats, and of present values.
func typesProtobuf(at time.Duration) string {
	n := 1 + uint64(at/(500*time.Millisecond))
	v := float64(n)
	family := func(name string, typ dto.MetricType, m *dto.Metric) *dto.MetricFamily {
		return &dto.MetricFamily{Name: &name, Help: new("Help of " + name), Type: &typ, Metric: []*dto.Metric{m}}
	}
	spans := []*dto.BucketSpan{{Offset: new(int32(0)), Length: new(uint32(2))},
		{Offset: new(int32(3)), Length: new(uint32(1))}}
	label := func(name, value string) []*dto.LabelPair { return []*dto.LabelPair{{Name: &name, Value: &value}} }
	buckets := []*dto.Bucket{{UpperBound: new(1.0), CumulativeCount: new(n)},
		{UpperBound: new(2.5), CumulativeCount: new(3 * n)}}
	families := []*dto.MetricFamily{
		family("c_total", dto.MetricType_COUNTER, &dto.Metric{Label: label("engine", "0"),
			Counter: &dto.Counter{Value: new(10 * v)}}),
		family("g", dto.MetricType_GAUGE, &dto.Metric{Gauge: &dto.Gauge{Value: new(math.Sqrt(v))}}),
		family("utf8.näme", dto.MetricType_GAUGE, &dto.Metric{Label: label("läbel.x", "wört"), Gauge: &dto.Gauge{Value: &v}}),
		family("u", dto.MetricType_UNTYPED, &dto.Metric{Untyped: &dto.Untyped{Value: &v}}),
		family("h_seconds", dto.MetricType_HISTOGRAM,
			&dto.Metric{Histogram: &dto.Histogram{SampleCount: new(5 * n), SampleSum: new(7.5 * v), Bucket: buckets}}),
		family("s_seconds", dto.MetricType_SUMMARY,
			&dto.Metric{Summary: &dto.Summary{SampleCount: new(4 * n), SampleSum: new(2.5 * v),
				Quantile: []*dto.Quantile{{Quantile: new(0.5), Value: new(0.1 * v)},
					{Quantile: new(0.9), Value: new(math.NaN())}}}}),
		family("q_bytes", dto.MetricType_GAUGE_HISTOGRAM,
			&dto.Metric{Histogram: &dto.Histogram{SampleCount: new(4 * n), SampleSum: &v, Bucket: buckets}}),
		// 2n at zero; n and 3n in (0.5, 1] and (1, 2], 2n in (16, 32]; n in [-1, -0.5).
		family("n_seconds", dto.MetricType_HISTOGRAM, &dto.Metric{Label: label("engine", "0"),
			Histogram: &dto.Histogram{SampleCount: new(9 * n), SampleSum: new(30 * v),
				Schema: new(int32(0)), ZeroThreshold: new(1e-128), ZeroCount: new(2 * n), PositiveSpan: spans,
				PositiveDelta: []int64{int64(n), 2 * int64(n), -int64(n)},
				NegativeSpan:  spans[:1], NegativeDelta: []int64{int64(n), -int64(n)}}}),
		family("f_seconds", dto.MetricType_HISTOGRAM,
			&dto.Metric{Histogram: &dto.Histogram{SampleCountFloat: new(6 * v), SampleSum: new(20 * v),
				Schema: new(int32(2)), ZeroThreshold: new(1e-128), ZeroCountFloat: new(0.0), PositiveSpan: spans,
				PositiveCount: []float64{v, 2 * v, 3 * v}}}),
		family("nq_bytes", dto.MetricType_GAUGE_HISTOGRAM,
			&dto.Metric{Histogram: &dto.Histogram{SampleCount: new(4 + n%3), SampleSum: &v,
				Schema: new(int32(0)), ZeroThreshold: new(0.0), ZeroCount: new(n % 3), PositiveSpan: spans[:1],
				PositiveDelta: []int64{1, 2}}}),
	}
	var b bytes.Buffer
	encoder := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeProtoDelim).WithEscapingScheme(model.NoEscaping))
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			panic(err) // a family above is not well formed
		}
	}
	return b.String()
}
