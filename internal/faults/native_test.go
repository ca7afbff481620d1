package faults_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/scrapestat/scrapestat/summary"
)

// native is a body of one native histogram of n observations in one bucket each
// of zero, (1,2] and what follows it at schema 0.
func native(t *testing.T, typ dto.MetricType, change func(h *dto.Histogram), n uint64) string {
	t.Helper()
	h := &dto.Histogram{SampleCount: new(3 * n), SampleSum: new(5 * float64(n)), Schema: new(int32(0)),
		ZeroThreshold: new(0.001), ZeroCount: new(n),
		PositiveSpan: []*dto.BucketSpan{{Offset: new(int32(1)), Length: new(uint32(2))}}, PositiveDelta: []int64{int64(n), 0}}
	if change != nil {
		change(h)
	}
	var b bytes.Buffer
	f := &dto.MetricFamily{Name: new("h"), Type: &typ, Metric: []*dto.Metric{{Histogram: h}}}
	if err := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeProtoDelim)).Encode(f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// nativeHistograms changes what may change between two polls of a native
// histogram, and wants what was gained in between.
func nativeHistograms(t *testing.T) {
	histogram := dto.MetricType_HISTOGRAM
	check := func(name string, count int64, resets int, bodies ...string) {
		t.Helper()
		x := timed(t, time.Second, summary.Options{}, bodies...).metric("h").Series[0]
		if x.Histogram == nil || x.Histogram.Count != count || x.Resets != resets {
			t.Errorf("%s: got %+v, %d resets; want %d observations, %d resets", name, x.Histogram, x.Resets, count, resets)
		}
	}
	one, three := native(t, histogram, nil, 1), native(t, histogram, nil, 3)
	check("plain", 6, 0, one, three)
	coarse := func(h *dto.Histogram) { // (1,4] and (4,16] hold what (1,2] and (2,4] held
		h.Schema = new(int32(-1))
		h.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32(1)), Length: new(uint32(1))}}
		h.PositiveDelta = []int64{6}
	}
	check("schema", 6, 0, one, native(t, histogram, coarse, 3))
	wide := func(h *dto.Histogram) { h.ZeroThreshold = new(0.5) }
	check("zero bucket", 6, 0, one, native(t, histogram, wide, 3))
	check("reset", 3, 1, three, one, one)
	stale := func(h *dto.Histogram) { h.SampleSum = new(math.Float64frombits(0x7ff0000000000002)) }
	s := timed(t, time.Second, summary.Options{}, one, native(t, histogram, stale, 2), three)
	if x := s.metric("h").Series[0]; x.Histogram.Count != 6 {
		t.Errorf("stale: got %+v, want 6 observations", x.Histogram)
	}
	gauge := dto.MetricType_GAUGE_HISTOGRAM
	s = timed(t, time.Second, summary.Options{}, native(t, gauge, nil, 5), native(t, gauge, nil, 2))
	if x := s.metric("h").Series[0]; x.GaugeHistogram == nil || x.GaugeHistogram.Count != 6 {
		t.Errorf("gauge: got %+v, want what the last poll shows", x.GaugeHistogram)
	}
}
