package normalize_test

import (
	"math"
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// recorded is what a counter, a gauge and a histogram gave that go up by one a second from 1 to 11 s, in a window from
// 2.5 to 9.5 s, which is set before the poll at a second; after has more to say after each.
func recorded(t *testing.T, set float64, s normalize.Span,
	after func(*normalize.Accumulator, float64),
) *normalize.Result {
	t.Helper()
	f, err := normalize.NewFold(normalize.Options{StartNS: math.MaxInt64 / 2})
	if err != nil {
		t.Fatal(err)
	}
	b := newBuilder(false)
	for n := 1.0; n <= 11; n++ {
		if n == set {
			s.StartNS, s.EndNS = 2.5e9, 9.5e9
			f.Begin(s)
		}
		if f.Opened() != (n > 3) || f.Closed() != (n > 10) {
			t.Errorf("before poll %v: opened %v, closed %v", n, f.Opened(), f.Closed())
		}
		h := hist{sum: n / 2, count: n, buckets: map[string]float64{"1": n, "+Inf": n}}
		whole := changeLog{family: "i", typ: metric.Counter, bits: uint64(n), whole: true}
		lines := append(slices.Concat(counterLine(n), gaugeLine(n), h.lines()), whole)
		if err := f.Add(b.poll(int64(n*1e9), lines)); err != nil {
			t.Fatal(err)
		}
		after(f, n)
	}
	return f.Result(11e9)
}

// TestSpanPause: what is gained in a pause does not count, and to AIPerf, which has none, it does.
func TestSpanPause(t *testing.T) {
	s := normalize.Span{Parts: [][2]int64{{2.5e9, 4.5e9}, {6.5e9, 9.5e9}}, Pause: true, Whole: true}
	for _, set := range []float64{1, 3} {
		r := recorded(t, set, s, func(*normalize.Accumulator, float64) {})
		c, g, h := r.Series[0], r.Series[1], r.Series[2]
		if c.Counter.Total != 5 || h.Histogram.Count != 5 || h.Histogram.Sum != 2.5 {
			t.Errorf("gained %v, %v, %v: want 5, 5, 2.5", c.Counter.Total, h.Histogram.Count, h.Histogram.Sum)
		}
		if i := r.Series[3].Counter; i.Total != 5 || i.Exact != 5 || !i.HasExact {
			t.Errorf("the counter of integers gained %+v, want 5", i)
		}
		if set > 1 { // its polls are not there any more
			continue
		}
		if c.AIPerf == nil || c.AIPerf.Counter.Total != 7 || h.AIPerf == nil || h.AIPerf.Histogram.Count != 7 {
			t.Errorf("AIPerf's: %+v, %+v: want 7", c.AIPerf, h.AIPerf)
		}
		if g.AIPerf == nil || g.AIPerf.Gauge.N != 7 {
			t.Errorf("AIPerf's gauge: %+v", g.AIPerf)
		}
	}
}

// TestSpanTorn: what a restart that only values tell gained is booked when it is believed. Where that is on the other
// side of an edge of a pause, no total is certain; elsewhere it is.
func TestSpanTorn(t *testing.T) {
	for down, want := range map[float64]continuity.Status{5: continuity.Corrected, 9: continuity.Corrected,
		10: continuity.Ambiguous, 13: continuity.Corrected, 16: continuity.Ambiguous, 18: continuity.Corrected} {
		f, err := normalize.NewFold(normalize.Options{StartNS: math.MaxInt64 / 2})
		if err != nil {
			t.Fatal(err)
		}
		f.Begin(normalize.Span{StartNS: 2.5e9, EndNS: 24.5e9, Pause: true,
			Parts: [][2]int64{{2.5e9, 10.5e9}, {16.5e9, 24.5e9}}})
		b, value := newBuilder(false), 100.0
		for n := 1.0; n <= 25; n++ {
			if value++; n == down {
				value = 0
			}
			if err := f.Add(b.poll(int64(n*1e9), slices.Concat(counterLine(value), gaugeLine(n)))); err != nil {
				t.Fatal(err)
			}
		}
		if i := f.Result(25e9).Series[0].Increase; i.Status != want || want == continuity.Ambiguous && (i.Low > 0 ||
			!math.IsInf(i.High, 1)) {
			t.Errorf("restart at %v s: %+v, want %v", down, i, want)
		}
	}
}

// TestSpanWithoutPause: parts that touch have no pause between them.
func TestSpanWithoutPause(t *testing.T) {
	s := normalize.Span{Parts: [][2]int64{{2.5e9, 4.5e9}, {4.5e9, 9.5e9}}, Pause: true, Whole: true}
	r := recorded(t, 1, s, func(*normalize.Accumulator, float64) {})
	if c := r.Series[0]; c.Counter.Total != 7 || c.AIPerf != nil {
		t.Errorf("gained %v, AIPerf's %+v: want 7 and none", c.Counter.Total, c.AIPerf)
	}
}

// TestSpanLate: observations that were published on the other side of an edge are moved over it.
func TestSpanLate(t *testing.T) {
	const family, inf, bound, sum, count = 2, 2, 3, 4, 5 // slots of the histogram
	r := recorded(t, 3, normalize.Span{}, func(f *normalize.Accumulator, n float64) {
		switch n {
		case 4: // of the two so far the window has none
			f.Cut([]int{family})
		case 10:
			f.Late(map[int32]float64{inf: 2, bound: 2, sum: 1, count: 2})
			f.Doubt(map[int32]int64{2: 1})
		}
	})
	h := r.Series[2].Histogram
	if h.Count != 9-4+2 || h.Sum != 3.5 || h.Late != 1 {
		t.Errorf("count %v, sum %v, late %v: want 7, 3.5, 1", h.Count, h.Sum, h.Late)
	}
	if got := r.Series[0].Counter.Total; got != 7 {
		t.Errorf("the counter gained %v, want 7", got)
	}
}
