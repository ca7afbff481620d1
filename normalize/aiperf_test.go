package normalize_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// The cases of the design document aiperf.md section 8, by number. Filters and
// slices are in seconds; the samples are one second apart from t = 0.

func number(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(err)
	}
	return v
}

// filter is a time filter and a slice width in seconds; to 0 is open.
type filter struct{ from, to, slice float64 }

func (f filter) options(resets normalize.ResetMode) normalize.Options {
	return normalize.Options{StartNS: int64(f.from * 1e9), EndNS: int64(f.to * 1e9),
		Slice: time.Duration(f.slice * 1e9), Resets: resets}
}

// both runs polls under clamp, as full and as changed-only frames.
func clamped(t *testing.T, f filter, polls []poll) *normalize.Result {
	t.Helper()
	r := fold(t, f.options(normalize.ResetClamp), 0, false, polls)
	for i := range r.Series {
		r.Series[i] = *asAIPerf(&r.Series[i])
	}
	return r
}

// ramp returns n samples 0, step, 2*step, ...
func ramp(n int, step float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(i) * step
	}
	return out
}

func only(t *testing.T, r *normalize.Result) *normalize.Series {
	t.Helper()
	if len(r.Series) != 1 {
		t.Fatalf("got %d series, want 1", len(r.Series))
	}
	return &r.Series[0]
}

func TestAIPerfCounters(t *testing.T) {
	type want struct {
		total, rate float64
		spread      []float64 // rate_avg, min, max, std; nil: absent
		rates       []float64 // of the slices
	}
	check := func(name string, f filter, polls []poll, w want) {
		t.Helper()
		c := only(t, clamped(t, f, polls)).Counter
		if !near(c.Total, w.total) || !near(c.Rate, w.rate) {
			t.Errorf("case %s: got total %v rate %v, want %v and %v", name, c.Total, c.Rate, w.total, w.rate)
		}
		var rates, spread []float64
		for _, s := range c.Slices {
			rates = append(rates, s.Rate)
		}
		if s := c.SliceRates; s != nil {
			spread = []float64{s.Avg, s.Min, s.Max, s.Std}
		}
		if w.rates != nil && !nearAll(rates, w.rates) {
			t.Errorf("case %s: got slice rates %v, want %v", name, rates, w.rates)
		}
		if !nearAll(spread, w.spread) {
			t.Errorf("case %s: got spread %v, want %v", name, spread, w.spread)
		}
	}
	at := func(from float64, samples ...float64) []poll { return each(from, samples, counterLine) }
	s1 := filter{0, 4, 1}
	check("1", s1, at(0, 0, 100, 250, 450, 700), want{700, 175, []float64{175, 100, 250, 64.54972243679029}, nil})
	check("2", filter{from: 5}, at(0, ramp(10, 200)...), want{1000, 200, nil, nil})
	check("3", filter{}, at(0, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100), want{})
	check("4", s1, at(0, 0, 50, 150, 300, 500), want{500, 125, []float64{125, 50, 200, 64.54972243679029},
		[]float64{50, 100, 150, 200}})
	check("5", s1, at(0, 0, 100, 50, 100, 200), want{200, 50, []float64{62.5, 0, 100, 47.871355387816905},
		[]float64{100, 0, 50, 100}})
	check("6", filter{}, at(0, 1000, 500), want{})
	check("7", filter{0, 4, 1}, at(0, 100), want{})
	check("8", s1, []poll{{0, counterLine(0)}, {2 * second, counterLine(200)}, {4 * second, counterLine(400)}},
		want{400, 100, []float64{100, 0, 200, 115.47005383792515}, []float64{0, 200, 0, 200}})
	check("9", filter{0, 0.5, 1}, []poll{{0, counterLine(0)}, {second / 2, counterLine(50)}},
		want{50, 100, nil, []float64{100}})
	check("10", filter{0, 1, 1}, at(0, 0, 100), want{100, 100, []float64{100, 100, 100, 0}, nil})
	check("12", filter{from: 5, to: 10}, at(5, 100, 200, 300), want{200, 100, nil, nil})
	check("13", filter{from: 5, to: 10}, at(0, ramp(10, 100)...), want{500, 100, nil, nil})
	check("15", filter{}, at(1, 100, 200, 300), want{200, 100, nil, nil}) // the fold refuses other orders
	check("16", filter{}, at(0, 1e15, 1e15+1000, 1e15+2000), want{2000, 1000, nil, nil})
	check("17", filter{0, 8, 2}, at(0, ramp(10, 100)...),
		want{800, 100, []float64{100, 100, 100, 0}, []float64{100, 100, 100, 100}})
}

func TestAIPerfCounterSliceList(t *testing.T) {
	c := only(t, clamped(t, filter{0, 4, 1}, each(0, []float64{100}, counterLine))).Counter
	if !c.Sliced || len(c.Slices) != 0 {
		t.Errorf("case 7: got sliced %v with %d slices, want an empty list", c.Sliced, len(c.Slices))
	}
	c = only(t, clamped(t, filter{0, 0.5, 1}, []poll{{0, counterLine(0)}, {second / 2, counterLine(50)}})).Counter
	if len(c.Slices) != 1 || !c.Slices[0].Partial || c.Slices[0].Total != 50 {
		t.Errorf("case 9: got %+v, want one partial slice with 50", c.Slices)
	}
	if _, err := normalize.NewFold(normalize.Options{Slice: -1}); err == nil {
		t.Error("case 11: a negative slice was accepted")
	}
	before := append(counterLine(1), gaugeLine(1)...)
	if r := clamped(t, filter{from: 5}, []poll{{0, before}}); len(r.Series) != 0 {
		t.Errorf("case 14: got %d series, want none", len(r.Series))
	}
	f, _ := normalize.NewFold(normalize.Options{})
	b := newBuilder(false)
	if err := f.Add(b.poll(2, counterLine(1))); err != nil {
		t.Fatal(err)
	}
	if err := f.Add(b.poll(1, counterLine(2))); err == nil {
		t.Error("case 15: a poll that goes back in time was accepted")
	}
}

func TestAIPerfGauges(t *testing.T) {
	spread := func(name string, f filter, polls []poll, want ...float64) {
		t.Helper()
		g := only(t, clamped(t, f, polls)).Gauge
		if got := []float64{g.Avg, g.Min, g.Max, g.Std}[:len(want)]; !nearAll(got, want) {
			t.Errorf("case %s: got %v, want %v", name, got, want)
		}
	}
	quantiles := func(name string, polls []poll, want ...float64) {
		t.Helper()
		if got := only(t, clamped(t, filter{}, polls)).Gauge.Quantiles; !nearAll(got, want) {
			t.Errorf("case %s: got %v, want %v", name, got, want)
		}
	}
	sliced := func(name string, f filter, polls []poll, want ...[4]float64) {
		t.Helper()
		g := only(t, clamped(t, f, polls)).Gauge
		var got [][4]float64
		for _, s := range g.Slices {
			got = append(got, [4]float64{float64(s.StartNS) / 1e9, float64(s.EndNS) / 1e9, s.Avg,
				map[bool]float64{true: 1}[s.Partial]})
		}
		if len(got) != len(want) {
			t.Errorf("case %s: got %v, want %v", name, got, want)
			return
		}
		for i := range got {
			if !nearAll(got[i][:], want[i][:]) {
				t.Errorf("case %s: slice %d is %v, want %v", name, i, got[i], want[i])
			}
		}
	}
	at := func(from float64, samples ...float64) []poll { return each(from, samples, gaugeLine) }
	spread("18", filter{}, at(0, 10, 20, 30, 40, 50), 30, 10, 50, 15.811388300841896)
	quantiles("19", at(0, ramp(100, 1)...), .99, 4.95, 9.9, 24.75, 49.5, 74.25, 89.10000000000001, 94.05, 98.01)
	spread("20", filter{from: 10}, at(0, ramp(20, 1)...), 14.5)
	edge := []poll{{second - 1, gaugeLine(1)}, {second, gaugeLine(2)}, {3 * second, gaugeLine(4)},
		{3*second + 1, gaugeLine(8)}}
	spread("21", filter{from: 1, to: 3}, edge, 3, 2, 4)
	spread("22", filter{}, at(0, 42, 42, 42), 42, 42, 42, 0)
	quantiles("22", at(0, 42, 42, 42), 42, 42, 42, 42, 42, 42, 42, 42, 42)
	sliced("23", filter{0, 4, 1}, at(0, 10, 20, 30, 40, 50), [4]float64{0, 1, 10}, [4]float64{1, 2, 20},
		[4]float64{2, 3, 30}, [4]float64{3, 4, 45})
	var quarter []poll
	for i := range 9 {
		quarter = append(quarter, poll{int64(i) * second / 4, gaugeLine(10 + 5*float64(i))})
	}
	sliced("24", filter{0, 2, 1}, quarter, [4]float64{0, 1, 17.5}, [4]float64{1, 2, 40})
	sliced("25", filter{0, 3, 1}, []poll{{0, gaugeLine(10)}, {3 * second, gaugeLine(40)}}, [4]float64{0, 1, 10},
		[4]float64{2, 3, 40})
	sliced("26", filter{0, 1, 10}, at(0, 10, 20), [4]float64{0, 1, 15, 1})
	sliced("27", filter{0, 1, 1}, at(0, 10))
	sliced("28", filter{0, 5.5, 2}, at(0, 1, 2, 3, 4, 5, 6), [4]float64{0, 2, 1.5}, [4]float64{2, 4, 3.5},
		[4]float64{4, 5.5, 5.5, 1})
	spread("29", filter{}, at(0, 10, 20, 30), 20)
	spread("29 tiny", filter{}, at(0, 1e-10, 2e-10, 3e-10), 2e-10, 1e-10, 3e-10, 1e-10)
	unknown := []poll{{0, []changeLog{{family: "u", value: 10}}}, {second, []changeLog{{family: "u", value: 30}}}}
	spread("29 unknown", filter{}, unknown, 20)
}

func TestAIPerfHistograms(t *testing.T) {
	at := func(from float64, samples ...hist) []poll { return each(from, samples, histLines) }
	buckets := func(low, high, inf float64) map[string]float64 {
		return map[string]float64{"0.1": low, "1.0": high, "+Inf": inf}
	}
	h := only(t, clamped(t, filter{from: 1}, at(0, hist{25, 100, nil}, hist{65, 250, nil}))).Histogram
	if h.Count != 150 || h.Sum != 40 || h.CountRate != 150 || !near(h.Avg, 40.0/150) {
		t.Errorf("case 30: got %+v", h)
	}
	h = only(t, clamped(t, filter{from: 1}, []poll{{second, hist{1, 100, nil}.lines()},
		{6 * second, hist{2, 300, nil}.lines()}})).Histogram
	if h.CountRate != 40 {
		t.Errorf("case 31: got %v, want 40", h.CountRate)
	}
	h = only(t, clamped(t, filter{}, at(0, hist{2500, 10000, buckets(1000, 5000, 10000)},
		hist{125, 500, buckets(50, 200, 500)}))).Histogram
	if h.Count != -9500 || h.Sum != -2375 || h.Avg != 0.25 || h.CountRate != -9500 || h.Buckets != nil ||
		h.Quantiles != nil {
		t.Errorf("case 32: got %+v", h)
	}
	same := hist{5, 10, buckets(1, 5, 10)}
	h = only(t, clamped(t, filter{0, 1, 1}, at(0, same, same))).Histogram
	if h.Count != 0 || h.HasRates || h.Slices != nil || len(h.Buckets) != 3 || h.Buckets[2].Count != 0 {
		t.Errorf("case 33: got %+v", h)
	}
	h = only(t, clamped(t, filter{from: 5}, at(0, same, hist{6, 11, buckets(1, 5, 11)}))).Histogram
	if h.Count != 0 || len(h.Buckets) != 3 {
		t.Errorf("case 34: got %+v", h)
	}
	h = only(t, clamped(t, filter{0, 3, 1}, at(0, same, hist{6, 12, buckets(1, 6, 12)},
		hist{6, 12, buckets(1, 6, 12)}, hist{7, 13, buckets(1, 7, 13)}))).Histogram
	if len(h.Slices) != 3 || h.Slices[1].Count != 0 || h.Slices[1].Avg != 0 || h.Slices[1].Counts[2] != 0 ||
		h.Slices[0].Count != 2 {
		t.Errorf("case 35: got %+v", h.Slices)
	}
	h = only(t, clamped(t, filter{0, 3, 1}, at(0, same))).Histogram
	if h.Count != 0 || h.Slices != nil {
		t.Errorf("case 36: got %+v", h)
	}
	h = only(t, clamped(t, filter{0, 5, 1}, at(3, same, hist{6, 12, buckets(1, 6, 12)},
		hist{7, 13, buckets(1, 7, 13)}))).Histogram
	if len(h.Slices) != 2 || h.Slices[0].StartNS != 3*second {
		t.Errorf("case 37: got %+v", h.Slices)
	}
	h = only(t, clamped(t, filter{}, at(0, hist{1, 0, map[string]float64{"10": 0, "5": 0, "1": 0, "+Inf": 0}},
		hist{2, 7, map[string]float64{"10": 6, "1": 2, "+Inf": 7}}))).Histogram
	if len(h.Buckets) != 4 || h.Buckets[0].Text != "1" || h.Buckets[1].Count != 0 || h.Buckets[2].Text != "10" ||
		h.Buckets[3].Text != "+Inf" {
		t.Errorf("case 38: got %+v", h.Buckets)
	}
	h = only(t, clamped(t, filter{}, at(0, hist{0, 0, buckets(0, 0, 0)},
		hist{1e12, 1e12, buckets(1e12-2, 1e12-1, 1e12)}))).Histogram
	if h.Count != 1e12 || h.Buckets[0].Count != 1e12-2 {
		t.Errorf("case 39: got %+v", h)
	}
}

// Case 58: a NaN beside a good sample.
func TestNonFinite(t *testing.T) {
	two := func(a, b float64) []changeLog {
		return []changeLog{{family: "g", typ: metric.Gauge, labels: "a", value: a},
			{family: "g", typ: metric.Gauge, labels: "b", value: b}}
	}
	r := clamped(t, filter{}, []poll{{0, two(1, math.NaN())}, {second, two(2, math.NaN())}})
	if s := only(t, r); s.Gauge.N != 2 {
		t.Errorf("got %d samples, want 2", s.Gauge.N)
	}
	r = clamped(t, filter{}, []poll{{0, two(1, math.NaN())}, {second, two(2, math.NaN())}, {2 * second, two(2, 5)}})
	if s := r.Series[1]; s.NonFinite != 2 || s.Gauge.NonFinite != 2 || s.Gauge.N != 1 || s.Gauge.Avg != 5 {
		t.Errorf("got %+v", s.Gauge)
	}
}
