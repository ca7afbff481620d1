package normalize_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// engineFold folds the first polls of an engine of 40 histograms.
func engineFold(t testing.TB, o normalize.Options, polls []*metric.Snapshot) *normalize.Accumulator {
	t.Helper()
	f, err := normalize.NewFold(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range polls {
		if err := f.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// All histograms at once give what they give one after the other, bit for bit.
func TestResultEach(t *testing.T) {
	atOnce := func(n int, f func(int)) {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { f(n - 1 - i) })
		}
		wg.Wait()
	}
	polls := engine(120)
	for _, name := range []string{"polynomial", "linear", "refined"} {
		o := normalize.Options{StartNS: 5 * second, Estimator: name, Slice: 2 * time.Second, SliceQuantiles: true}
		f := engineFold(t, o, polls)
		want := f.Result(0)
		if h := want.Series[0].Histogram; h == nil || h.Quantiles == nil || h.Slices[0].Quantiles == nil {
			t.Fatalf("%s: no quantiles", name)
		}
		got := f.ResultEach(0, atOnce)
		if d := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmp.AllowUnexported(metric.Labels{}),
			cmpopts.IgnoreUnexported(metric.Schema{})); d != "" {
			t.Errorf("%s (-in turn, +at once):\n%s", name, d)
		}
	}
}

// The memory of an estimate is free again once it is made: what is in use while a
// result is made does not grow with the histograms done so far.
func TestMemoryInFlight(t *testing.T) {
	f := engineFold(t, normalize.Options{Estimator: "refined"}, engine(400))
	inUse := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	var first, last float64
	calls := 0
	r := f.ResultEach(0, func(n int, do func(int)) {
		for i := range n {
			do(i)
			calls++
			switch i {
			case 4:
				first = inUse()
			case n - 1:
				last = inUse()
			}
		}
	})
	// A result is 20 bounds and buckets of 32 bytes and 9 quantiles: 2 kB. Fitting
	// one series takes a hundred times as much.
	if grown := (last - first) / float64(calls-5); grown > 6e3 {
		t.Errorf("each of %d histograms leaves %.0f bytes in use, want no more than its result", calls, grown)
	}
	runtime.KeepAlive(r)
	runtime.KeepAlive(f)
}
