package normalize_test

import (
	"math"
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

func adjusted(t *testing.T, f filter, polls []poll) *normalize.Result {
	t.Helper()
	return fold(t, f.options(normalize.ResetAdjust), 0, false, polls)
}

func codes(s *normalize.Series) []string {
	var out []string
	for _, w := range s.Warnings {
		out = append(out, w.Code)
	}
	return out
}

// S01 of faults.md: a restart between the reference and the first sample of the window counts, earlier ones do not.
func TestCounterResets(t *testing.T) {
	// Each value comes with the second at which its process started.
	samples := [][2]float64{{500, 0}, {520, 0}, {3, 1.5}, {20, 1.5}, {40, 1.5}, {2, 4.5}, {12, 4.5}, {20, 4.5}, {30, 4.5}}
	started := func(s [2]float64) []changeLog {
		return append(counterLine(s[0]), changeLog{family: "process_start_time_seconds", typ: metric.Gauge, value: s[1]})
	}
	first := func(r *normalize.Result) *normalize.Series { return byFamily(r)["c"] }
	for from, want := range map[float64]struct {
		total    float64
		restarts int
	}{0: {20 + 40 + 30, 2}, 2: {40 + 30, 2}, 3: {37 + 30, 1}, 6: {28, 0}} {
		s := first(adjusted(t, filter{from: from}, each(0, samples, started)))
		if s.Counter.Total != want.total || s.Resets != want.restarts || s.Increase.Restarts != want.restarts ||
			s.Increase.Value != want.total || (want.restarts > 0) != slices.Contains(codes(s), "counter_reset") {
			t.Errorf("from %v s: %+v of %+v, want %+v", from, s.Increase, s.Counter, want)
		}
	}
	// Under clamp AIPerf's arithmetic stands beside it.
	r := fold(t, filter{}.options(normalize.ResetClamp), 0, false, each(0, samples, started))
	s := &r.Series[0]
	if s.Counter.Total != 90 || s.AIPerf == nil || s.AIPerf.Counter.Total != 0 ||
		!slices.Equal(codes(s.AIPerf), []string{"counter_reset"}) {
		t.Errorf("clamp: %+v, AIPerf's %+v", s.Counter, s.AIPerf)
	}
	// Without an event both are the same series.
	s = only(t, fold(t, filter{}.options(normalize.ResetClamp), 0, false, each(0, []float64{1, 5}, counterLine)))
	if s.AIPerf != nil || s.Counter.Total != 4 || s.Increase.Value != 4 {
		t.Errorf("clamp without an event: %+v", s)
	}
}

// S02: a single sample gives no total.
func TestSingleSample(t *testing.T) {
	s := only(t, adjusted(t, filter{0, 4, 1}, each(0, []float64{100}, counterLine)))
	if s.Counter.Defined || s.Counter.Total != 0 || !slices.Equal(codes(s), []string{"single_sample"}) {
		t.Errorf("got %+v with warnings %v", s.Counter, codes(s))
	}
	s = only(t, adjusted(t, filter{from: 1}, each(0, []float64{100, 150}, counterLine)))
	if !s.Counter.Defined || s.Counter.Total != 50 || s.Counter.Rate != 50 {
		t.Errorf("got %+v", s.Counter)
	}
}

// S04: a series vanishes and returns.
func TestGaps(t *testing.T) {
	other := changeLog{family: "o", typ: metric.Gauge, value: 1}
	polls := []poll{
		{0, append(gaugeLine(2), other)}, {second, []changeLog{other}}, {9 * second, append(gaugeLine(4), other)},
		{10 * second, append(gaugeLine(6), other)}, {11 * second, append(gaugeLine(6), other)},
	}
	r := byFamily(adjusted(t, filter{}, polls))
	g := r["g"]
	if g.Gaps != 1 || g.Samples != 4 || g.Gauge.Avg != 4.5 || g.Gauge.TimeAvg != 5 ||
		!slices.Equal(codes(g), []string{"gap"}) {
		t.Errorf("got %+v with %+v", g, g.Gauge)
	}
	if r["o"].Gaps != 0 || r["o"].Gauge.TimeAvg != 1 || r["o"].Gauge.N != 5 {
		t.Errorf("got %+v", r["o"])
	}
	// A failed poll is no gap.
	f, _ := normalize.NewFold(normalize.Options{})
	b := newBuilder(false)
	for _, s := range []*metric.Snapshot{b.poll(1, counterLine(1)), {SentNS: 2, Outcome: metric.Timeout},
		b.poll(3, counterLine(4))} {
		if err := f.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	if s := only(t, f.Result(0)); s.Gaps != 0 || s.Samples != 2 || s.Counter.Total != 3 {
		t.Errorf("got %+v", s)
	}
}

// Integers beyond 2^53 are subtracted exactly.
func TestExactCounter(t *testing.T) {
	sample := func(v uint64) []changeLog {
		return []changeLog{{family: "c", typ: metric.Counter, whole: true, bits: v}}
	}
	c := only(t, adjusted(t, filter{}, each(0, []uint64{1 << 63, 1<<63 + 1, 1<<63 + 4}, sample))).Counter
	if !c.HasExact || c.Exact != 4 || c.Total != 4 {
		t.Errorf("got %+v", c)
	}
	c = only(t, clamped(t, filter{}, each(0, []uint64{1<<63 + 9, 3}, sample))).Counter
	if !c.HasExact || c.Exact != 0 || c.Total != 0 {
		t.Errorf("got %+v", c)
	}
}

// S05, S06 and changing buckets.
func TestHistogramFaults(t *testing.T) {
	type m = map[string]float64
	check := func(name string, want []string, samples ...hist) *normalize.Histogram {
		t.Helper()
		s := only(t, adjusted(t, filter{}, each(0, samples, histLines)))
		if !slices.Equal(codes(s), want) {
			t.Errorf("%s: got warnings %v, want %v", name, codes(s), want)
		}
		return s.Histogram
	}
	h := check("sum falls", nil, hist{10, 5, m{"1": 5, "+Inf": 5}}, hist{4, 8, m{"1": 6, "+Inf": 8}})
	if h.Sum != -6 || h.Count != 3 || h.Avg != -2 {
		t.Errorf("sum falls: got %+v", h)
	}
	h = check("layout", []string{"buckets_changed"}, hist{0, 0, m{"1": 0, "2": 0, "+Inf": 0}},
		hist{3, 3, m{"1": 1, "2": 2, "+Inf": 3}}, hist{9, 7, m{"1": 3, "4": 5, "+Inf": 7}})
	if h.Segments != 2 || h.Count != 7 || len(h.Buckets) != 2 || h.Buckets[0].Count != 3 || h.Buckets[1].Text != "+Inf" {
		t.Errorf("layout: got %+v", h)
	}
	h = check("no count", []string{"count_missing"}, hist{0, math.Inf(-1), m{"1": 0, "+Inf": 0}},
		hist{3, math.Inf(-1), m{"1": 1, "+Inf": 3}})
	if h.Count != 3 || h.Avg != 1 || h.Quantiles == nil {
		t.Errorf("no count: got %+v", h)
	}
	h = check("nothing counts", []string{"count_missing"}, hist{0, math.Inf(-1), m{"1": 0}},
		hist{3, math.Inf(-1), m{"1": 1}})
	if h.Count != 0 || h.Quantiles != nil {
		t.Errorf("nothing counts: got %+v", h)
	}
	h = check("no sum", []string{"sum_missing"}, hist{math.Inf(-1), 0, m{"1": 0, "+Inf": 0}},
		hist{math.Inf(-1), 3, m{"1": 1, "+Inf": 3}})
	if !h.NoSum || h.Count != 3 || h.Avg != 0 || h.Quantiles != nil {
		t.Errorf("no sum: got %+v", h)
	}
	h = check("not monotone", []string{"buckets_not_monotone", "count_mismatch"},
		hist{0, 0, m{"1": 0, "2": 0, "+Inf": 0}}, hist{3, 5, m{"1": 3, "2": 2, "+Inf": 4}})
	if h.Buckets[0].Count != 3 || h.Buckets[1].Count != 2 || h.Quantiles == nil {
		t.Errorf("not monotone: got %+v", h)
	}
	h = check("no +Inf", []string{"inf_missing"}, hist{0, 0, m{"1": 0, "2": 0}}, hist{500, 200, m{"1": 100, "2": 150}})
	if q := h.Quantiles[len(h.Quantiles)-1]; h.Count != 200 || q.Flags != histest.Overflow || q.Low != 2 ||
		!(q.High < 120) {
		t.Errorf("no +Inf: got %+v, p99 %+v", h, q)
	}
	const huge = 1 << 60
	h = check("inexact", []string{"counts_inexact"}, hist{0, huge, m{"1": huge, "+Inf": huge}},
		hist{500, huge + 1024, m{"1": huge + 512, "+Inf": huge + 1024}})
	if h.Count != 1024 || h.Quantiles != nil {
		t.Errorf("inexact: got %+v", h)
	}
}

// Integer slots stay whole up to where float64 does, and no further.
func TestHistogramOfIntegers(t *testing.T) {
	samples := func(from, by uint64) []poll {
		return each(0, []uint64{0, 1}, func(i uint64) []changeLog {
			at := func(role metric.Role, text string, v uint64) changeLog {
				return changeLog{family: "h", typ: metric.Histogram, role: role, text: text, bits: v, whole: true}
			}
			return []changeLog{at(metric.RoleBucket, "1", from+i*by), at(metric.RoleBucket, "+Inf", from+2*i*by),
				at(metric.RoleCount, "", from+2*i*by), at(metric.RoleSum, "", 3*i*by)}
		})
	}
	exact := only(t, adjusted(t, filter{}, samples(1<<53-20, 10)))
	if h := exact.Histogram; h.Count != 20 || h.Buckets[0].Count != 10 || h.Quantiles == nil || len(codes(exact)) > 0 {
		t.Errorf("up to 2^53: got %+v %v", h, codes(exact))
	}
	beyond := only(t, adjusted(t, filter{}, samples(1<<60, 10)))
	if h := beyond.Histogram; h.Quantiles != nil || !slices.Contains(codes(beyond), "counts_inexact") {
		t.Errorf("beyond 2^53: got %+v %v, want no quantiles and a warning", h, codes(beyond))
	}
}

// One line that is no number costs the sample of its label set.
func TestHistogramNonFinite(t *testing.T) {
	type m = map[string]float64
	samples := []hist{{1, 1, m{"1": 1, "+Inf": 1}}, {math.NaN(), 5, m{"1": 5, "+Inf": 5}}, {9, 9, m{"1": 4, "+Inf": 9}}}
	s := only(t, adjusted(t, filter{}, each(0, samples, histLines)))
	if s.Samples != 2 || s.NonFinite != 1 || s.Resets != 0 || s.Histogram.Count != 8 ||
		!slices.Equal(codes(s), []string{"non_finite"}) {
		t.Errorf("got %+v with %+v", s, s.Histogram)
	}
}

// Values at the end of the range of float64 give no infinite statistics, and
// constant ones no deviation.
func TestHugeValues(t *testing.T) {
	const most = math.MaxFloat64
	g := only(t, adjusted(t, filter{0, 2, 1}, each(0, []float64{most, -most, most}, gaugeLine))).Gauge
	if !near(g.Avg, most/3) || g.Std != most || g.TimeAvg != 0 || g.Quantiles[0] != -most+most/100*4 {
		t.Errorf("got %+v", g)
	}
	g = only(t, adjusted(t, filter{}, each(0, []float64{0.1, 0.1, 0.1}, gaugeLine))).Gauge
	if g.Avg != 0.1 || g.Std != 0 || g.TimeAvg != 0.1 {
		t.Errorf("got %+v", g)
	}
	c := only(t, adjusted(t, filter{}, each(0, []float64{0, most / 2, most}, counterLine))).Counter
	if c.Total != most || c.Rate != most/2 {
		t.Errorf("got %+v", c)
	}
	h := only(t, clamped(t, filter{}, each(0, []hist{{-most, -most, nil}, {most, most, nil}}, histLines))).Histogram
	if h.Count != math.MaxInt64 || h.Sum != most {
		t.Errorf("got %+v", h)
	}
	h = only(t, clamped(t, filter{}, each(0, []hist{{most, most, nil}, {-most, -most, nil}}, histLines))).Histogram
	if h.Count != math.MinInt64 || h.Sum != -most {
		t.Errorf("got %+v", h)
	}
}

// A refused series keeps no number that somebody could take for one.
func TestRefused(t *testing.T) {
	var samples []float64
	for i := range 60 {
		samples = append(samples, []float64{1000, 40, 7000}[i%3]+float64(i))
	}
	lines := func(v float64) []changeLog {
		var out []changeLog
		for _, family := range []string{"a", "b", "c", "d", "e"} {
			out = append(out, changeLog{family: family, typ: metric.Counter, value: v * float64(family[0]-'a'+1)})
		}
		return out
	}
	for _, mode := range []normalize.ResetMode{normalize.ResetAdjust, normalize.ResetClamp} {
		r := fold(t, filter{}.options(mode), 0, false, each(0, samples, lines))
		if len(r.Series) != 5 {
			t.Fatalf("%d series", len(r.Series))
		}
		for _, s := range r.Series {
			if s.Increase.Status != continuity.Refused || s.Counter != nil || s.AIPerf != nil {
				t.Errorf("mode %d: %+v with %+v", mode, s.Increase, s.Counter)
			}
		}
	}
}
