package normalize_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/normalize"
)

// served is the histogram of a replica that observes one value per second.
func served(t *testing.T, o normalize.Options, values ...float64) *normalize.Histogram {
	t.Helper()
	total := hist{buckets: map[string]float64{"1": 0, "2": 0, "+Inf": 0}}
	samples := []hist{total}
	for _, v := range values {
		next := hist{sum: total.sum + v, count: total.count + 1, buckets: map[string]float64{}}
		for le, n := range total.buckets {
			if next.buckets[le] = n; v <= boundOf(le) {
				next.buckets[le]++
			}
		}
		total = next
		samples = append(samples, total)
	}
	return histogramOf(t, o, samples)
}

func histogramOf(t *testing.T, o normalize.Options, samples []hist) *normalize.Histogram {
	t.Helper()
	r := fold(t, o, 0, false, each(0, samples, histLines))
	if len(r.Series) != 1 || r.Series[0].Histogram == nil {
		t.Fatalf("got %+v, want one histogram", r.Series)
	}
	return r.Series[0].Histogram
}

func bucketCounts(h *normalize.Histogram) (counts []int64) {
	for _, b := range h.Buckets {
		counts = append(counts, b.Count)
	}
	return counts
}

var mergeable = normalize.Options{Estimator: "refined", Quantiles: []float64{0, 0.25, 0.5, 1}, Mergeable: true}

// Lone observations are known exactly, so the quantiles of the pool are too.
func TestMergeHistograms(t *testing.T) {
	fast, slow := served(t, mergeable, 0.5, 0.25, 0.75), served(t, mergeable, 1.5, 3)
	idle := served(t, mergeable)
	got, warnings, err := normalize.MergeHistograms([]*normalize.Histogram{fast, slow, idle}, mergeable.Quantiles)
	if err != nil || warnings != nil {
		t.Fatal(warnings, err)
	}
	if got.Count != 5 || got.Sum != 6 || got.Avg != 1.2 || !slices.Equal(bucketCounts(got), []int64{3, 4, 5}) {
		t.Errorf("got %+v", got)
	}
	if want := fast.CountRate + slow.CountRate; got.CountRate != want || got.SumRate != fast.SumRate+slow.SumRate {
		t.Errorf("rates %v and %v, want %v", got.CountRate, got.SumRate, want)
	}
	for i, want := range []float64{0.25, 0.5, 0.75, 3} {
		q := got.Quantiles[i]
		if math.Abs(q.Value-want) > 1e-6 || q.Low > want+1e-6 || q.High < want-1e-6 {
			t.Errorf("q %v: %+v, want %v", mergeable.Quantiles[i], q, want)
		}
	}
	if fast.Count != 3 || !slices.Equal(bucketCounts(fast), []int64{3, 3, 3}) {
		t.Errorf("the merge changed its input: %+v", fast)
	}
	again, _, err := normalize.MergeHistograms([]*normalize.Histogram{got, fast}, mergeable.Quantiles)
	if err != nil || again.Count != 8 || again.Quantiles == nil {
		t.Errorf("merge of a merge: %+v, %v", again, err)
	}
}

func TestMergeHistogramsWithoutQuantiles(t *testing.T) {
	check := func(what, want string, hs ...*normalize.Histogram) {
		t.Helper()
		got, warnings, err := normalize.MergeHistograms(hs, mergeable.Quantiles)
		if err != nil || got.Quantiles != nil || len(warnings) != 1 || !strings.Contains(warnings[0].Text, want) {
			t.Errorf("%s: %+v, %v, %v", what, got, warnings, err)
		}
	}
	good := served(t, mergeable, 0.5)
	plain := mergeable
	plain.Mergeable = false
	check("not asked for", "1 of 2 histograms", good, served(t, plain, 0.5))
	noSum := func(n float64) hist {
		return hist{sum: math.Inf(-1), count: n, buckets: map[string]float64{"1": n, "2": n, "+Inf": n}}
	}
	check("no sum", "no sum", good, histogramOf(t, mergeable, []hist{noSum(0), noSum(2)}))
	torn := hist{sum: 99, count: 2, buckets: map[string]float64{"1": 2, "2": 2, "+Inf": 2}}
	check("torn", "contradict", good, histogramOf(t, mergeable,
		[]hist{{buckets: map[string]float64{"1": 0, "2": 0, "+Inf": 0}}, torn}))
}

func TestMergeHistogramsRefuses(t *testing.T) {
	other := hist{buckets: map[string]float64{"3": 0, "+Inf": 0}}
	more := hist{sum: 1, count: 2, buckets: map[string]float64{"3": 2, "+Inf": 2}}
	hs := []*normalize.Histogram{served(t, mergeable, 0.5), histogramOf(t, mergeable, []hist{other, more})}
	if h, _, err := normalize.MergeHistograms(hs, nil); h != nil || !errors.Is(err, normalize.ErrBounds) {
		t.Errorf("got %v, %v", h, err)
	}
	if _, _, err := normalize.MergeHistograms(nil, nil); err == nil {
		t.Error("a merge of nothing succeeded")
	}
}

// Of different bounds those that all have are left, and what is known there is
// exact: of 0.5, 1.5, 1.5 and 3 the median lies in (1, +Inf).
func TestMergeHistogramsAtCommonBounds(t *testing.T) {
	other := hist{buckets: map[string]float64{"0.25": 0, "1": 0, "+Inf": 0}}
	more := hist{sum: 3, count: 1, buckets: map[string]float64{"0.25": 0, "1": 0, "+Inf": 1}}
	for _, name := range []string{histest.Polynomial, histest.Linear, histest.Refined} {
		o := mergeable
		o.Estimator = name
		hs := []*normalize.Histogram{served(t, o, 0.5, 1.5, 1.5), histogramOf(t, o, []hist{other, more})}
		h, warnings, err := normalize.MergeHistograms(hs, []float64{0.5})
		if err != nil || len(warnings) != 1 || warnings[0].Code != "bounds_differ" ||
			!strings.Contains(warnings[0].Text, "at the 2 bounds") {
			t.Fatalf("%s: %v, %v", name, warnings, err)
		}
		if h.Count != 4 || h.Sum != 6.5 || len(h.Buckets) != 2 || h.Buckets[0].Upper != 1 || h.Buckets[0].Count != 1 ||
			h.Buckets[1].Count != 4 {
			t.Errorf("%s: %+v", name, h)
		}
		if len(h.Quantiles) != 1 || h.Quantiles[0].Low > 1.5 || h.Quantiles[0].High < 1.5 {
			t.Errorf("%s: quantiles %v do not hold 1.5", name, h.Quantiles)
		}
		if len(hs[0].Bounds) != 3 || len(hs[0].Buckets) != 3 {
			t.Errorf("%s: the merge changed its input", name)
		}
	}
}

// A gain is that of its moment, though the fold goes on.
func TestGainOfLiveFold(t *testing.T) {
	f, err := normalize.NewFold(mergeable)
	if err != nil {
		t.Fatal(err)
	}
	b := newBuilder(false)
	var gains []*histest.Gain
	for i := range 5 {
		n := float64(i)
		s := hist{sum: n / 2, count: n, buckets: map[string]float64{"1": n, "2": n, "+Inf": n}}
		if err := f.Add(b.poll(int64(i)*second, histLines(s))); err != nil {
			t.Fatal(err)
		}
		if h := f.Result(0).Series[0].Histogram; h.Gain != nil {
			gains = append(gains, h.Gain)
		}
	}
	if len(gains) != 4 {
		t.Fatalf("%d gains, want 4", len(gains))
	}
	for _, g := range gains {
		if q, ok := g.Quantiles(nil, []float64{0.5}); !ok || math.Abs(q[0].Value-0.5) > 1e-6 {
			t.Errorf("got %v %v, want 0.5", q, ok)
		}
	}
}
