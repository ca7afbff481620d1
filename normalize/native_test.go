package normalize_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// sparse is a native histogram as a client library keeps it.
type sparse struct {
	schema    int
	threshold float64
	values    []float64
	started   float64 // when the process did; 0 when the server does not say
}

// bound is the upper bound of bucket i: 2^(i / 2^schema).
func bound(schema, i int) float64 {
	if schema <= 0 {
		return math.Ldexp(1, i<<-schema)
	}
	whole, part := i>>schema, i&(1<<schema-1)
	return math.Ldexp(math.Exp2(float64(part)/float64(int(1)<<schema)), whole)
}

// bucketOf returns the bucket of a value.
func (h *sparse) bucketOf(v float64) (lower, upper float64) {
	abs := math.Abs(v)
	if abs <= h.threshold {
		return -h.threshold, h.threshold
	}
	i := int(math.Ceil(math.Log2(abs) * math.Ldexp(1, h.schema)))
	for bound(h.schema, i) < abs {
		i++
	}
	for bound(h.schema, i-1) >= abs {
		i--
	}
	lower, upper = bound(h.schema, i-1), bound(h.schema, i)
	if v < 0 {
		return -upper, -lower
	}
	return lower, upper
}

// poll writes the histogram as one poll shows it.
func (h *sparse) poll(g *metric.SnapshotBuilder, typ metric.Type) {
	s := g.Series(g.Family("n", typ, "", ""), metric.Labels{})
	counts := map[[2]float64]float64{{-h.threshold, h.threshold}: 0}
	sum := 0.0
	for _, v := range h.values {
		lower, upper := h.bucketOf(v)
		counts[[2]float64{lower, upper}]++
		sum += v
	}
	g.Set(g.Slot(s, metric.SampleID{Role: metric.RoleCount}), float64(len(h.values)))
	g.Set(g.Slot(s, metric.SampleID{Role: metric.RoleSum}), sum)
	if h.started != 0 {
		p := g.Series(g.Family("process_start_time_seconds", metric.Gauge, "", ""), metric.Labels{})
		g.Set(g.Slot(p, metric.SampleID{}), h.started)
	}
	for b, n := range counts {
		g.Set(g.Slot(s, metric.SampleID{Role: metric.RoleNative, Lower: b[0], Bound: b[1]}), n)
	}
}

// checkNative compares a histogram with the observations it is made of: count,
// sum, cumulative counts at each bound, and that each quantile's true value is
// within its bounds.
func checkNative(t interface {
	Helper()
	Errorf(string, ...any)
}, h *normalize.Histogram, values, quantiles []float64) {
	t.Helper()
	values = slices.Sorted(slices.Values(values))
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	if h.Count != int64(len(values)) || math.Abs(h.Sum-sum) > 1e-9*(1+math.Abs(sum)) {
		t.Errorf("got count %d and sum %v, want %d and %v", h.Count, h.Sum, len(values), sum)
	}
	last := math.Inf(-1)
	for i, b := range h.Buckets {
		if b.Upper <= last || h.Bounds[i].Upper != b.Upper {
			t.Errorf("bound %d: %v after %v", i, b.Upper, last)
		}
		last = b.Upper
		at, _ := slices.BinarySearchFunc(values, b.Upper, func(v, u float64) int { return cmp.Or(cmp.Compare(v, u), -1) })
		// A negative bucket does not hold its upper bound: values on it count above.
		if b.Upper < 0 {
			at, _ = slices.BinarySearch(values, b.Upper)
		}
		if b.Count != int64(at) {
			t.Errorf("bucket %v: got %d, want %d of %v", b.Upper, b.Count, at, values)
		}
	}
	if len(values) == 0 || sum < 0 {
		return
	}
	if len(h.Quantiles) != len(quantiles) {
		t.Errorf("got %d quantiles, want %d: %+v", len(h.Quantiles), len(quantiles), h.Buckets)
		return
	}
	for i, q := range quantiles {
		at := float64(len(values)-1) * q
		k := int(at)
		v := values[k]
		if k+1 < len(values) {
			v += (values[k+1] - v) * (at - float64(k))
		}
		e := h.Quantiles[i]
		if tol := 1e-9 * (1 + math.Abs(v)); !(e.Low <= v+tol && v-tol <= e.High) {
			t.Errorf("quantile %v is %v, outside [%v, %v]; estimate %v of %v", q, v, e.Low, e.High, e.Value, values)
		}
	}
}

func TestNativeHistogram(t *testing.T) {
	quantiles := []float64{0.1, 0.5, 0.9, 0.99}
	h := sparse{schema: 3, threshold: 1e-128, values: []float64{0.5, 0.5, 7}}
	var polls []func(*metric.SnapshotBuilder)
	add := func(values ...float64) {
		h.values = append(slices.Clone(h.values), values...)
		c := h
		polls = append(polls, func(g *metric.SnapshotBuilder) { c.poll(g, metric.Histogram) })
	}
	add()
	add(0.01, 0.02, 0.5, 0)
	h.schema = 1 // the server merges buckets
	add(3, 3.1, 100)
	h.threshold = 0.015 // and widens that of zero, less than a whole bucket
	add(0.001)
	r := feed(t, normalize.Options{Quantiles: quantiles, Slice: time.Second, SliceQuantiles: true}, polls...)
	s := &r.Series[0]
	if s.Resets != 0 || s.Histogram.Native == nil || len(s.Warnings) != 0 {
		t.Fatalf("got %+v", s)
	}
	checkNative(t, s.Histogram, h.values[3:], quantiles)
	var counts []int64
	for _, sl := range s.Histogram.Slices {
		counts = append(counts, sl.Count)
		if n := sl.Counts[len(sl.Counts)-1]; n != sl.Count || len(sl.Counts) != len(s.Histogram.Bounds) ||
			len(sl.Quantiles) != len(quantiles) {
			t.Errorf("slice %+v does not fit its bounds", sl)
		}
	}
	same(t, "slices", counts, []int64{4, 3, 1})
	if !s.Histogram.HasRates || s.Histogram.CountRate != 8.0/3 {
		t.Errorf("got rate %v, want 8/3", s.Histogram.CountRate)
	}
}

// A restart begins as a whole, also when no count falls but buckets do.
func TestNativeReset(t *testing.T) {
	check := func(want []float64, resets int, states ...sparse) {
		t.Helper()
		var polls []func(*metric.SnapshotBuilder)
		for i, h := range states {
			h.started = -1000
			if resets > 0 && i == len(states)-1 {
				h.started = float64(i) - 0.5
			}
			polls = append(polls, func(g *metric.SnapshotBuilder) { h.poll(g, metric.Histogram) })
		}
		r := feed(t, normalize.Options{}, polls...)
		if s := &r.Series[0]; s.Resets != resets {
			t.Errorf("got %d resets, want %d", s.Resets, resets)
		}
		checkNative(t, r.Series[0].Histogram, want, normalize.AIPerfQuantiles())
	}
	check([]float64{1, 3}, 1, sparse{values: []float64{5, 6, 7}}, sparse{values: []float64{1, 3}})
	check([]float64{1, 3, 9, 10}, 1, sparse{values: []float64{5, 6, 7}}, sparse{values: []float64{1, 3, 9, 10}})
	// It may come back with finer buckets, which coarse ones of before then hold.
	check([]float64{1.5, 1.2, 1.7}, 1, sparse{schema: -1, values: []float64{5}},
		sparse{schema: -1, values: []float64{5, 1.5}}, sparse{schema: 4, values: []float64{1.2, 1.7}})
	check(nil, 0, sparse{values: []float64{5, 6, 7}}, sparse{values: []float64{5, 6, 7}})
}

// Of any life of a histogram the window has exactly what was observed in it.
func TestNativeIsWhatWasObserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		negative := rapid.IntRange(0, 3).Draw(t, "negative") == 0
		h := sparse{schema: rapid.IntRange(-4, 8).Draw(t, "schema"),
			threshold: rapid.SampledFrom([]float64{0, 1e-128, 0.001}).Draw(t, "threshold")}
		h.started = -1000
		first := h
		var gained []float64
		f, err := normalize.NewFold(normalize.Options{Estimator: rapid.SampledFrom([]string{"polynomial", "refined",
			"linear"}).Draw(t, "estimator")})
		if err != nil {
			t.Fatal(err)
		}
		var g metric.SnapshotBuilder
		for i := range int64(rapid.IntRange(1, 8).Draw(t, "polls")) {
			at := 10 * i * second
			switch rapid.IntRange(0, 9).Draw(t, "event") {
			case 0:
				h = first // a restart
				h.started = 10*float64(i) - 0.5
			case 1:
				h.schema = max(h.schema-1, -4)
			}
			var fresh []float64
			for range rng.IntN(12) {
				v := math.Exp(rng.NormFloat64() * 2)
				if rng.IntN(9) == 0 {
					v = 0
				}
				if negative && rng.IntN(2) == 0 {
					v = -v
				}
				fresh = append(fresh, v)
			}
			h.values = append(slices.Clone(h.values), fresh...)
			if i > 0 {
				gained = append(gained, fresh...)
			}
			s := metric.Snapshot{SentNS: at, FirstByteNS: at}
			h.poll(&g, metric.Histogram)
			g.Finish(&s)
			if err := f.Add(&s); err != nil {
				t.Fatal(err)
			}
		}
		r := f.Result(0).Series[0]
		checkNative(t, r.Histogram, gained, normalize.AIPerfQuantiles())
	})
}

func TestNativeGauge(t *testing.T) {
	states := []sparse{{values: []float64{1, 2, 3}}, {values: []float64{9}}, {values: []float64{9}},
		{values: []float64{4, 5}}}
	var polls []func(*metric.SnapshotBuilder)
	for _, h := range states {
		polls = append(polls, func(g *metric.SnapshotBuilder) { h.poll(g, metric.GaugeHistogram) })
	}
	s := feed(t, normalize.Options{Slice: time.Second}, polls...).Series[0]
	h := s.GaugeHistogram
	if h == nil || !h.Native || h.Count != 2 || h.Sum != 9 || s.Resets != 0 || len(h.Quantiles) == 0 {
		t.Fatalf("got %+v of %+v", h, s)
	}
	var counts []int64
	for _, sl := range h.Slices {
		counts = append(counts, sl.Count)
	}
	same(t, "slices", counts, []int64{1, 1, 2})
}

// Replicas have other buckets each, and are pooled all the same.
func TestMergeNative(t *testing.T) {
	quantiles := []float64{0.5, 0.9}
	of := func(h sparse) *normalize.Histogram {
		empty := sparse{schema: h.schema, threshold: h.threshold}
		return feed(t, normalize.Options{Quantiles: quantiles, Mergeable: true},
			func(g *metric.SnapshotBuilder) { empty.poll(g, metric.Histogram) },
			func(g *metric.SnapshotBuilder) { h.poll(g, metric.Histogram) }).Series[0].Histogram
	}
	a, b := sparse{schema: 3, values: []float64{1, 2, 30}}, sparse{schema: 0, values: []float64{0.1, 3}}
	all, warnings, err := normalize.MergeHistograms([]*normalize.Histogram{of(a), of(b)}, quantiles)
	if err != nil || len(warnings) != 0 {
		t.Fatal(err, warnings)
	}
	checkNative(t, all, append(a.values, b.values...), quantiles)
	if all.CountRate != 5 {
		t.Errorf("got rate %v, want 5", all.CountRate)
	}
}
