package normalize_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/normalize"
)

// sameResults fails unless two results of the same stream say the same.
func sameResults(t *rapid.T, a, b *normalize.Result) {
	t.Helper()
	if len(a.Series) != len(b.Series) || a.StartNS != b.StartNS || a.EndNS != b.EndNS {
		t.Fatalf("got %d series in [%d, %d], want %d in [%d, %d]", len(a.Series), a.StartNS, a.EndNS, len(b.Series),
			b.StartNS, b.EndNS)
	}
	want := byFamily(b)
	for name, s := range byFamily(a) {
		w := want[name]
		if w == nil {
			t.Fatalf("series %s is only in one result", name)
		}
		sameCounter(t, name, s.Counter, w.Counter)
		sameGauge(t, name, s.Gauge, w.Gauge)
		sameHistogram(t, s.Histogram, w.Histogram)
		got := [...]int64{int64(s.Samples), s.FirstNS, s.LastNS, s.RefNS, int64(s.Resets), int64(s.Gaps),
			int64(s.NonFinite), int64(len(s.Warnings))}
		if wanted := [...]int64{int64(w.Samples), w.FirstNS, w.LastNS, w.RefNS, int64(w.Resets), int64(w.Gaps),
			int64(w.NonFinite), int64(len(w.Warnings))}; got != wanted {
			t.Fatalf("%s: got %v, want %v", name, got, wanted)
		}
	}
}

func TestFullFramesChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStream(t)
		n := len(s.polls)
		sameResults(t, s.feed(t, true, false, n).Result(s.end), s.feed(t, false, false, n).Result(s.end))
	})
}

func TestSlotOrderIsIrrelevant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStream(t)
		n := len(s.polls)
		sameResults(t, s.feed(t, false, true, n).Result(s.end), s.feed(t, false, false, n).Result(s.end))
	})
}

// A result in the middle of the stream is that of the stream cut there, and
// leaves no trace in later ones.
func TestLiveResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStream(t)
		f, err := normalize.NewFold(s.options)
		if err != nil {
			t.Fatal(err)
		}
		b := newBuilder(false)
		for i, p := range s.polls {
			if s.failed[i] {
				continue
			}
			if err := f.Add(b.poll(p.at, p.lines)); err != nil {
				t.Fatal(err)
			}
			if i%5 == 0 || i == len(s.polls)-1 {
				sameResults(t, f.Result(0), s.feed(t, false, false, i+1).Result(0))
			}
		}
	})
}

// Totals are never negative under ResetAdjust, and the slices add up to them, also where a sample lies exactly on the
// start of the window.
func TestAdjustedTotals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStream(t)
		s.options.Resets = normalize.ResetAdjust
		for _, series := range s.feed(t, false, false, len(s.polls)).Result(s.end).Series {
			if !series.Increase.Status.Certain() {
				continue // the total is the least that it can be, the slices are what was seen
			}
			if c := series.Counter; c != nil && c.Last >= 0 { // else it is none
				if c.Total < 0 || c.Rate < 0 {
					t.Fatalf("got total %v and rate %v", c.Total, c.Rate)
				}
				sum := 0.0
				for _, sl := range c.Slices {
					sum += sl.Total
				}
				if len(c.Slices) > 0 && !near(1e3+sum, 1e3+c.Total) {
					t.Fatalf("slices add up to %v, total %v", sum, c.Total)
				}
			}
			if h := series.Histogram; h != nil {
				checkHistogramSums(t, h)
			}
		}
	})
}

func checkHistogramSums(t *rapid.T, h *normalize.Histogram) {
	if h.Count < 0 || h.Buckets == nil {
		t.Fatalf("got count %d, buckets %v", h.Count, h.Buckets)
	}
	var count int64
	var sum float64
	for _, sl := range h.Slices {
		count += sl.Count
		sum += sl.Sum
	}
	if len(h.Slices) > 0 && (count != h.Count || !near(1e3+sum, 1e3+h.Sum)) {
		t.Fatalf("slices add up to %d and %v, total %d and %v", count, sum, h.Count, h.Sum)
	}
}

// FuzzFold feeds polls made of arbitrary bytes: nothing panics and no result
// holds NaN or an infinite number.
func FuzzFold(f *testing.F) {
	f.Add([]byte("\x01\x02\x03\x04\x05\x06\x07\x08\x09"), uint8(0))
	f.Add([]byte("\x00\xff\x00\xff\x10\x20\x30\x40\x50\x60\x70\x80\x90\xa0\xb0\xc0\xd0\xe0\xf0\x01\x11\x21\x31"), uint8(7))
	f.Add([]byte("aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggghhhhhhhhhh"), uint8(255))
	f.Fuzz(func(t *testing.T, data []byte, mode uint8) {
		defer fuzzbound.Check(t)()
		if len(data) > 4096 {
			return
		}
		r := fuzzResult(t, data, mode)
		if r == nil {
			return
		}
		for _, s := range r.Series {
			for i, v := range numbersOf(&s) {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("number %d of %+v is %v", i, s, v)
				}
			}
		}
	})
}

// numbersOf returns the statistics of a series that exports may print.
func numbersOf(s *normalize.Series) []float64 {
	var out []float64
	if c := s.Counter; c != nil {
		out = append(out, c.Total, c.Rate)
		out = append(out, spreadNumbers(c.SliceRates)...)
		for _, sl := range c.Slices {
			out = append(out, sl.Total, sl.Rate)
		}
	}
	if g := s.Gauge; g != nil {
		out = append(out, g.TimeAvg, g.First, g.Last)
		out = append(append(out, spreadNumbers(&g.Spread)...), g.Quantiles...)
		for _, sl := range g.Slices {
			out = append(out, sl.Avg, sl.Min, sl.Max)
		}
	}
	if h := s.Histogram; h != nil {
		out = append(out, h.Sum, h.Avg, h.CountRate, h.SumRate)
		for _, e := range h.Quantiles {
			out = append(out, e.Value)
		}
		for _, sl := range h.Slices {
			out = append(out, sl.Sum, sl.Avg)
		}
	}
	return out
}
