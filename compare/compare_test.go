package compare_test

import (
	"math"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// second is the width of the slices of built runs.
const second = int64(1e9)

// built is a run made by hand.
type built struct{ *summary.Run }

func newRun(id string) built {
	return built{&summary.Run{ID: id, Version: "test", Window: summary.Window{Phase: "profiling", EndNS: 20 * second},
		Options:   summary.Options{Estimator: histest.Polynomial, Quantiles: []float64{0.5, 0.99}},
		Endpoints: []summary.Endpoint{{Target: metric.Target{URL: "http://a/metrics"}}}}}
}

// add adds a series to the metric of that name and type.
func (b built) add(name string, typ metric.Type, unit string, s summary.Series) built {
	for i := range b.Metrics {
		if m := &b.Metrics[i]; m.Name == name && m.Type == typ {
			m.Series = append(m.Series, s)
			return b
		}
	}
	b.Metrics = append(b.Metrics, summary.Metric{Name: name, Type: typ, OwnUnit: unit, Series: []summary.Series{s}})
	return b
}

func labels(pairs ...string) metric.Labels {
	var out []metric.Label
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, metric.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	return metric.NewLabels(out...)
}

func slice(i int) normalize.Slice {
	return normalize.Slice{StartNS: int64(i) * second, EndNS: int64(i+1) * second}
}

// counter adds a counter that gains these amounts, one a second.
func (b built) counter(name string, l metric.Labels, gains ...float64) built {
	c := &normalize.Counter{Defined: true}
	for i, v := range gains {
		c.Total += v
		c.Slices = append(c.Slices, normalize.CounterSlice{Slice: slice(i), Total: v, Rate: v})
	}
	c.Rate = c.Total / float64(len(gains))
	return b.add(name, metric.Counter, "requests", summary.Series{Labels: l, Series: normalize.Series{Counter: c}})
}

// gauge adds a gauge with these means, one a second.
func (b built) gauge(name, unit string, l metric.Labels, values ...float64) built {
	g := &normalize.Gauge{N: len(values)}
	for i, v := range values {
		g.Avg += v / float64(len(values))
		g.Slices = append(g.Slices, normalize.GaugeSlice{Slice: slice(i), Avg: v, N: 1})
	}
	return b.add(name, metric.Gauge, unit, summary.Series{Labels: l, Series: normalize.Series{Gauge: g}})
}

// histogram adds a histogram of values, perSecond of them a second, observed in
// bounds.
func (b built) histogram(name, unit string, l metric.Labels, bounds []float64, perSecond int, values ...float64) built {
	h := &normalize.Histogram{HasRates: true, Count: int64(len(values)), CountRate: float64(perSecond), Segments: 1}
	for _, upper := range append(append([]float64{}, bounds...), math.Inf(1)) {
		h.Bounds = append(h.Bounds, normalize.Bucket{Upper: upper})
	}
	h.Buckets = append([]normalize.Bucket{}, h.Bounds...)
	for at := 0; at < len(values); at += perSecond {
		s := normalize.HistogramSlice{Slice: slice(at / perSecond), Counts: make([]int64, len(h.Bounds))}
		for _, v := range values[at:min(at+perSecond, len(values))] {
			s.Count++
			s.Sum += v
			h.Sum += v
			for i := range h.Bounds {
				if v <= h.Bounds[i].Upper {
					s.Counts[i]++
					h.Buckets[i].Count++
				}
			}
		}
		h.Slices = append(h.Slices, s)
	}
	h.Avg = h.Sum / float64(h.Count)
	for _, q := range b.Options.Quantiles {
		lo, v, hi := 0.0, 0.0, math.NaN()
		for i := range h.Buckets {
			if float64(h.Buckets[i].Count) >= q*float64(h.Count) {
				hi = h.Buckets[i].Upper
				v = (lo + hi) / 2
				break
			}
			lo = h.Buckets[i].Upper
		}
		h.Quantiles = append(h.Quantiles, histest.Estimate{Value: v, Low: lo, High: hi})
	}
	return b.add(name, metric.Histogram, unit, summary.Series{Labels: l, Series: normalize.Series{Histogram: h}})
}

// wave is n values around mean, none twice in a row.
func wave(n int, mean, swing float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = mean + swing*math.Sin(float64(i)*2.3)
	}
	return out
}

// table is a catalog of one engine for the tests.
const table = `
pack: test
prefixes: ["t:"]
identity: [model_name]
families:
  - name: latency_seconds
    aliases: [latency_ms]
    unit: seconds
    better: lower
    canonical: e2e_s
    meaning: How long.
    scales: {latency_ms: 0.001}
  - name: served
    unit: requests
    better: higher
    meaning: How many.
  - name: waiting
    unit: requests
    better: lower
    aggregate: sum
    meaning: Queue.
  - name: usage
    unit: ratio
    aggregate: max
    meaning: Share.
`

func testCatalog(t testing.TB) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New(strings.NewReader(table))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func run(side string, b built) compare.Input {
	return compare.Input{Side: side, Path: side, Run: b.Run}
}

func do(t testing.TB, o compare.Options, inputs ...compare.Input) *compare.Result {
	t.Helper()
	if o.Catalog == nil {
		o.Catalog = testCatalog(t)
	}
	r, err := compare.Compare(inputs, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// find returns the row of a family and statistic with these labels.
func find(t testing.TB, r *compare.Result, family, stat string, l metric.Labels) *compare.Row {
	t.Helper()
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Family == family && row.Stat == stat && row.Labels == l {
			return row
		}
	}
	t.Fatalf("no row %s %s %s in %d rows", family, stat, l, len(r.Rows))
	return nil
}

// TestVerdicts: each verdict from the least data that gives it.
func TestVerdicts(t *testing.T) {
	none := metric.Labels{}
	check := func(name string, want compare.Verdict, evidence compare.Evidence, a, b built, family, stat string) {
		t.Helper()
		r := do(t, compare.Options{}, run("a", a), run("b", b))
		got := find(t, r, family, stat, none).Against[1]
		if got.Verdict != want || got.Evidence != evidence {
			t.Errorf("%s: %v by %v (change %v [%v, %v] %s), want %v by %v", name, got.Verdict, got.Evidence, got.Change,
				got.Low, got.High, got.Reason, want, evidence)
		}
		if !math.IsNaN(got.P) || !math.IsNaN(got.Q) {
			t.Errorf("%s: p %v, q %v of single runs", name, got.P, got.Q)
		}
	}
	rate := func(id string, mean, swing float64) built {
		return newRun(id).counter("t:served", none, wave(40, mean, swing)...)
	}
	check("equal", compare.Same, compare.Exact, rate("1", 10, 1), rate("2", 10, 1), "t:served", "rate")
	check("less than the minimum", compare.Same, compare.WithinRun, rate("1", 10, 1), rate("2", 10.1, 1), "t:served",
		"rate")
	check("more is better", compare.Better, compare.WithinRun, rate("1", 10, 1), rate("2", 12, 1), "t:served", "rate")
	check("less is worse", compare.Worse, compare.WithinRun, rate("1", 12, 1), rate("2", 10, 1), "t:served", "rate")
	check("noise", compare.NeedsRepeats, compare.WithinRun, rate("1", 10, 20), rate("2", 10.5, 21), "t:served", "rate")
	check("no slices", compare.NeedsRepeats, compare.None, newRun("1").counter("t:served", none, 10),
		newRun("2").counter("t:served", none, 20), "t:served", "rate")
	level := func(id, name string, mean float64) built {
		return newRun(id).gauge(name, "", none, wave(40, mean, mean/20)...)
	}
	check("more waiting is worse", compare.Worse, compare.WithinRun, level("1", "t:waiting", 4),
		level("2", "t:waiting", 6), "t:waiting", "avg")
	check("no direction", compare.Changed, compare.WithinRun, level("1", "t:usage", .4), level("2", "t:usage", .6),
		"t:usage", "avg")
	check("unknown family", compare.Changed, compare.WithinRun, level("1", "other", 4), level("2", "other", 6), "other",
		"avg")
	check("from zero", compare.Changed, compare.WithinRun, level("1", "other", 0), level("2", "other", 6), "other", "avg")
	check("both zero", compare.Same, compare.Exact, level("1", "other", 0), level("2", "other", 0), "other", "avg")
	latency := func(id string, mean float64) built {
		return newRun(id).histogram("t:latency_seconds", "", none, []float64{.5, 1, 2, 4}, 5, wave(200, mean, mean/2)...)
	}
	for _, stat := range []string{"mean", "p50", "p99"} {
		check("slower "+stat, compare.Worse, compare.WithinRun, latency("1", .9), latency("2", 1.8), "t:latency_seconds",
			stat)
		check("faster "+stat, compare.Better, compare.WithinRun, latency("1", 1.8), latency("2", .9), "t:latency_seconds",
			stat)
	}
	check("as often", compare.Same, compare.Exact, latency("1", 1.8), latency("2", .9), "t:latency_seconds", "rate")
}

// sides are repeats of two sides, with the given rates.
func sides(a, b []float64) []compare.Input {
	var out []compare.Input
	for i, v := range a {
		out = append(out, run("a", newRun("a"+string(rune('0'+i))).counter("t:served", metric.Labels{},
			wave(40, v, v/100)...)))
	}
	for i, v := range b {
		out = append(out, run("b", newRun("b"+string(rune('0'+i))).counter("t:served", metric.Labels{},
			wave(40, v, v/100)...)))
	}
	return out
}

// TestRepeats: repeats are tested by ranks, with the exact p-value.
func TestRepeats(t *testing.T) {
	check := func(name string, a, b []float64, want compare.Verdict, p float64) *compare.Comparison {
		t.Helper()
		r := do(t, compare.Options{}, sides(a, b)...)
		got := &find(t, r, "t:served", "rate", metric.Labels{}).Against[1]
		if got.Verdict != want || !(math.Abs(got.P-p) < 1e-9 || math.IsNaN(p) && math.IsNaN(got.P)) {
			t.Errorf("%s: %v, p %v by %v, want %v, p %v", name, got.Verdict, got.P, got.Evidence, want, p)
		}
		return got
	}
	nan := math.NaN()
	got := check("five against five, apart", []float64{10, 10.1, 10.2, 10.3, 10.4}, []float64{9, 9.1, 9.2, 9.3, 9.4},
		compare.Worse, 2.0/252)
	if got.Q != got.P || got.Effect != -1 {
		t.Errorf("q %v, Cliff's delta %v, want %v and -1", got.Q, got.Effect, got.P)
	}
	check("four against four, apart", []float64{9, 9.1, 9.2, 9.3}, []float64{10, 10.1, 10.2, 10.3}, compare.Better, 2.0/70)
	check("mixed", []float64{9, 10, 11, 12}, []float64{9.5, 10.5, 11.5, 12.5}, compare.Same, 48.0/70)
	check("apart by less than 2 %", []float64{10, 10.01, 10.02, 10.03}, []float64{10.1, 10.11, 10.12, 10.13},
		compare.Same, 2.0/70)
	check("two against two, apart", []float64{10, 10.1}, []float64{12, 12.1}, compare.Better, nan)
	check("two against two, overlapping", []float64{10, 12}, []float64{11, 14}, compare.NeedsRepeats, nan)
	check("one against five", []float64{10}, []float64{12, 12, 12, 12.1, 12.3}, compare.Better, nan)
	check("six equal runs", []float64{10, 10, 10, 10, 10, 10}, []float64{10, 10, 10, 10, 10, 10}, compare.Same, nan)
}

// TestMedianInterval: the interval of the median needs six runs; with them it
// reaches from the smallest to the largest.
func TestMedianInterval(t *testing.T) {
	six := []float64{10, 11, 12, 13, 14, 15}
	row := find(t, do(t, compare.Options{}, sides(six, six[:5])...), "t:served", "rate", metric.Labels{})
	near := func(got, want float64) bool { return math.Abs(got-want) < 0.05 }
	if c := row.Cells[0]; !near(c.Value, 12.5) || !near(c.Low, 10) || !near(c.High, 15) || len(c.Values) != 6 {
		t.Errorf("six runs: %v [%v, %v], want 12.5 [10, 15]", c.Value, c.Low, c.High)
	}
	if c := row.Cells[1]; !near(c.Value, 12) || !math.IsNaN(c.Low) || !math.IsNaN(c.High) {
		t.Errorf("five runs: %v [%v, %v], want 12 without an interval", c.Value, c.Low, c.High)
	}
}
