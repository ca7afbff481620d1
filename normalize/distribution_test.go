package normalize_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// observe folds one poll a second with the given events and returns the
// distribution of its only series.
func observe(t interface{ Fatal(...any) }, start int64, polls ...[]metric.Observation) *normalize.Distribution {
	f, err := normalize.NewFold(normalize.Options{StartNS: start})
	if err != nil {
		t.Fatal(err)
	}
	var g metric.SnapshotBuilder
	for i, events := range polls {
		at := int64(i+1) * 1e9
		s := metric.Snapshot{SentNS: at, FirstByteNS: at, Observations: events}
		series := g.Series(g.Family("d", metric.Gauge, "", ""), metric.Labels{})
		g.Set(g.Slot(series, metric.SampleID{}), 1)
		g.Finish(&s)
		if err := f.Add(&s); err != nil {
			t.Fatal(err)
		}
	}
	return f.Result(0).Series[0].Distribution
}

func TestDistribution(t *testing.T) {
	event := func(v float64, ids ...string) metric.Observation { return metric.Observation{Value: v, Requests: ids} }
	d := observe(t, 2e9, []metric.Observation{event(1000)}, // before the window
		[]metric.Observation{event(3, "a"), event(1), event(math.NaN())}, nil, []metric.Observation{event(2, "b", "c", "d")})
	if d.Lines != (normalize.Exact{N: 3, Sum: 6, Avg: 2, Min: 1, Max: 3, P50: 2, P90: 2.8, P95: 2.9, P99: 2.98,
		P999: 2.998}) {
		t.Errorf("lines: %+v", d.Lines)
	}
	if d.Requests == nil || d.Requests.N != 5 || d.Requests.Sum != 10 || d.Requests.P50 != 2 || d.Requests.P90 != 2.6 {
		t.Errorf("requests: %+v", d.Requests)
	}
	if d := observe(t, 1e9, nil); d != nil {
		t.Errorf("no events give %+v", d)
	}
	d = observe(t, 1e9, []metric.Observation{event(7)})
	if d.Lines != (normalize.Exact{N: 1, Sum: 7, Avg: 7, Min: 7, Max: 7, P50: 7, P90: 7, P95: 7, P99: 7, P999: 7}) ||
		d.Requests != nil {
		t.Errorf("one event: %+v, %+v", d.Lines, d.Requests)
	}
	f, _ := normalize.NewFold(normalize.Options{})
	if err := f.Add(&metric.Snapshot{SentNS: 1, Observations: []metric.Observation{{Series: 3}}}); err == nil {
		t.Error("an event of an unknown series was accepted")
	}
}

// Weighting by requests equals writing each value as often.
func TestDistributionProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var events []metric.Observation
		var long []float64
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			v := rapid.Float64Range(-1e6, 1e6).Draw(t, "value")
			n := rapid.IntRange(1, 5).Draw(t, "requests")
			events = append(events, metric.Observation{Value: v, Requests: make([]string, n)})
			for range n {
				long = append(long, v)
			}
		}
		d := observe(t, 1e9, events)
		slices.Sort(long)
		got := d.Requests
		if got == nil {
			got = &d.Lines
		}
		quantile := func(q float64) float64 {
			at := float64(len(long)-1) * q
			k := int(at)
			if k+1 == len(long) {
				return long[k]
			}
			return long[k] + (long[k+1]-long[k])*(at-float64(k))
		}
		for _, c := range [][2]float64{{got.P50, quantile(0.5)}, {got.P99, quantile(0.99)}, {got.P999, quantile(0.999)},
			{got.Max, long[len(long)-1]}} {
			if math.Abs(c[0]-c[1]) > 1e-9*(1+math.Abs(c[1])) {
				t.Fatalf("got %v, want %v", c[0], c[1])
			}
		}
		if got.N != len(long) {
			t.Fatalf("n is %d, want %d", got.N, len(long))
		}
	})
}
