package join_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/events/join"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// gainOf is a run whose histogram of the first token counted some times, in seconds.
func gainOf(t failing, values, quantiles []float64) *summary.Run {
	c, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	h := &normalize.Histogram{Count: int64(len(values))}
	for _, upper := range []float64{0.01, 0.05, 0.1, 0.5, 1, math.Inf(1)} {
		b := normalize.Bucket{Upper: upper}
		for _, v := range values {
			if v <= upper {
				b.Count++
			}
		}
		h.Bounds, h.Buckets = append(h.Bounds, b), append(h.Buckets, b)
	}
	for _, v := range values {
		h.Sum += v
	}
	for range quantiles {
		h.Quantiles = append(h.Quantiles, histest.Estimate{Value: 0.3, Low: 0, High: 1})
	}
	m := histogram("vllm:time_to_first_token_seconds", 1, 1)
	m.Series[0].Histogram = h
	r := server(m)
	r.Options.Catalog, r.Options.Quantiles, r.Options.Estimator = c, quantiles, "refined"
	r.Latencies = []summary.Latency{{ID: "ttft_s", Engine: "vllm", Aggregate: summary.Aggregate{Histogram: h, Series: 1}}}
	return r
}

type failing interface {
	Fatal(...any)
	Fatalf(string, ...any)
}

func tell(values []float64) *records {
	out := &records{source: metric.ServerSource{ID: 1, Kind: "otlp",
		ServerClock: metric.ServerClock{Clock: metric.ServerUnix, Resolution: 1}}}
	for _, v := range values {
		q := metric.NewServerRequest()
		q.Source, q.ID, q.TTFT = 1, "x", time.Duration(math.Round(v*1e9))
		q.ArrivalNS = epoch + 11*second
		q.FirstNS = q.ArrivalNS + int64(q.TTFT)
		out.list = append(out.list, q)
	}
	return out
}

// numpy is the quantile of sorted values, by its definition.
func numpy(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low, high := sorted[int(math.Floor(at))], sorted[int(math.Ceil(at))]
	return low + (at-math.Floor(at))*(high-low)
}

// TestExactTimes: all records are exact; without some of them the bounds hold the truth, each missing one is in its
// bucket, and one that the histogram has not counted refuses all of it.
func TestExactTimes(t *testing.T) {
	quantiles := []float64{0.5, 0.9, 0.99}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "n")
		all := make([]float64, n)
		for i := range all { // whole microseconds, so that sums and edges are exact
			all[i] = float64(rapid.SampledFrom([]int{1, 7_000, 10_000, 49_000, 50_001, 300_000, 999_999, 2_000_000}).Draw(t,
				"us")+i) / 1e6
		}
		gone := rapid.IntRange(0, n-1).Draw(t, "gone")
		run := gainOf(t, all, quantiles)
		list, err := join.ExactTimes(t.Context(), run, tell(all[gone:]), quantiles, nil)
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %+v", err, list)
		}
		e := list[0]
		if e.Missing != int64(gone) || (e.Status == summary.Proven) != (gone == 0) {
			t.Fatalf("%d of %d missing: %+v", gone, n, e)
		}
		sorted := slices.Sorted(slices.Values(all))
		for i, q := range quantiles {
			truth, p := numpy(sorted, q), e.Percentiles[i]
			if gone == 0 && math.Abs(*p.Value-truth) > 2e-9 {
				t.Fatalf("p%v is %v, want %v", 100*q, *p.Value, truth)
			}
			if *p.Low > truth+2e-9 || *p.High < truth-2e-9 || p.Value == nil || *p.Estimate != 0.3 {
				t.Fatalf("p%v [%v, %v] misses %v", 100*q, *p.Low, *p.High, truth)
			}
		}
		run.Recorded = list
		run.UseRecorded()
		if got := run.Latencies[0].Histogram.Quantiles[0]; got.Flags != histest.Recorded ||
			got.Low != *e.Percentiles[0].Low || run.Metrics[0].Series[0].Histogram.FileQuantiles[0].Value != 0.3 {
			t.Fatalf("the run has %+v", got)
		}
		other := append(slices.Clone(all[:n-1]), 0.7)
		list, err = join.ExactTimes(t.Context(), gainOf(t, all, quantiles), tell(other), quantiles, nil)
		if err != nil || list[0].Status != summary.NotTheSame || list[0].Percentiles != nil {
			t.Fatalf("the record of another request passed: %v %+v", err, list)
		}
	})
}
