package explain_test

import (
	"slices"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// TestFewPlaces: of few places one may be empty for a moment between two requests; where more are free as often as not,
// they are not what requests waited for.
func TestFewPlaces(t *testing.T) {
	explained := func(running ...float64) string {
		lines := func(v float64) []float64 { return slices.Repeat([]float64{v}, 20) }
		f := &explain.Facts{Engine: "e", Slice: 1, Sums: map[string]explain.Total{"e2e": {Sum: 100, Count: 100},
			"queue": {Sum: 80, Count: 100}}, Replicas: []explain.Replica{{Waiting: lines(9), KV: lines(0.1),
			Running: slices.Repeat(running, 20/len(running))}}}
		return explain.Explain(f, explain.DefaultRules(), explain.Latency).Verdict
	}
	for _, c := range []struct {
		running []float64
		want    string
	}{{[]float64{3, 2.5, 3, 3}, "queue_slots"}, {[]float64{3, 2, 1, 2}, "queue_budget"},
		{[]float64{32, 31, 32, 31.5}, "queue_slots"}, {[]float64{32, 29, 30, 29}, "queue_budget"}} {
		if got := explained(c.running...); got != c.want {
			t.Errorf("%v running: %s, want %s", c.running, got, c.want)
		}
	}
}

// TestSlicesThatSnap: a timeslice whose start is a moment before where it should be counts in its own place.
func TestSlicesThatSnap(t *testing.T) {
	c := catalog.Embedded()
	const width = 1_001_000_000
	gauge := &normalize.Gauge{}
	for i := range 10 {
		gauge.Slices = append(gauge.Slices, normalize.GaugeSlice{Slice: normalize.Slice{StartNS: 5e9 +
			int64(i)*width - int64(i%2)}, N: 2, Avg: float64(i + 1)})
	}
	run := &summary.Run{Window: summary.Window{StartNS: 5e9, EndNS: 5e9 + 10*width},
		Endpoints: make([]summary.Endpoint, 1), Options: summary.Options{Catalog: c, Slice: width * time.Nanosecond}}
	run.Metrics = []summary.Metric{
		{Name: "vllm:e2e_request_latency_seconds", Type: metric.Histogram, Series: []summary.Series{{Series: normalize.Series{
			Histogram: &normalize.Histogram{}}}}},
		{Name: "vllm:num_requests_running", Type: metric.Gauge, Series: []summary.Series{{Series: normalize.Series{
			Gauge: gauge}}}}}
	f := explain.Read(run)[0]
	if len(f.Replicas) != 1 || !slices.Equal(f.Replicas[0].Running, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
		t.Errorf("%+v", f.Replicas)
	}
}
