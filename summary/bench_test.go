package summary_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// BenchmarkBuild folds 4 targets x 600 polls x 1000 samples, two thirds of which
// change: goal P13 of the performance notes less the reading of the recording.
func BenchmarkBuild(b *testing.B) {
	const targets, polls, histograms, buckets = 4, 600, 50, 18
	f := loadedRun(targets, polls, histograms, buckets)
	b.ReportAllocs()
	for range b.N {
		if _, err := summary.Build(context.Background(), []summary.Recording{f},
			summary.Options{Slice: 5 * time.Second}); err != nil {
			b.Fatal(err)
		}
	}
	samples := float64(targets * polls * histograms * (buckets + 2))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/samples, "ns/sample")
}

// BenchmarkBuildEstimators estimates the percentiles of 200 histograms of one target over 360 polls, as files, screens
// and the end of collect have them. Run it with -cpu 1,2,4: they are done in parallel.
func BenchmarkBuildEstimators(b *testing.B) {
	const polls, histograms, buckets = 380, 200, 18
	f := loadedRun(1, polls, histograms, buckets)
	for _, o := range []summary.Options{{Estimator: "polynomial"}, {Estimator: "refined"},
		{Estimator: "refined", FileEstimator: "polynomial"}} {
		b.Run(o.Estimator+","+o.FileEstimator, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if _, err := summary.Build(context.Background(), []summary.Recording{f}, o); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/histograms, "µs/series")
		})
	}
}

// loadedRun is a recording of busy histograms.
func loadedRun(targets, polls, histograms, buckets int) *fakeRun {
	f := newFake()
	for t := range targets {
		f.Polled = append(f.Polled, newFake(fmt.Sprintf("http://t%d:8000/metrics", t)).Polled...)
		var body strings.Builder
		for h := range histograms {
			fmt.Fprintf(&body, "# TYPE h%d histogram\n", h)
			for le := range buckets - 1 {
				fmt.Fprintf(&body, "h%d_bucket{engine=\"0\",le=\"%d\"} 0\n", h, le+1)
			}
			fmt.Fprintf(&body, "h%d_bucket{engine=\"0\",le=\"+Inf\"} 0\nh%d_sum{engine=\"0\"} 0\nh%d_count{engine=\"0\"} "+
				"0\n", h, h, h)
		}
		f.Scrape(t, 0, body.String())
		f.Polled[t].Polls = append(f.Polled[t].Polls, busyPolls(t, polls-1, histograms, buckets)...)
	}
	return f.Mark(0, metric.PhaseWarmup).Mark(20, metric.PhaseProfiling).Mark(float64(polls)/3, metric.MarkEnd)
}

// busyPolls are polls of histograms that are busy three times out of four.
func busyPolls(target, n, histograms, buckets int) []metric.Snapshot {
	rng := rand.New(rand.NewPCG(uint64(target), 1))
	values := make([]float64, histograms*(buckets+2))
	var out []metric.Snapshot
	for i := range n {
		at := origin + int64(i+1)*second/3
		s := metric.Snapshot{Target: target, Seq: uint64(i + 1), DueNS: at, SentNS: at, FirstByteNS: at, Lines: len(values)}
		for h := range histograms {
			if rng.IntN(4) == 0 {
				continue
			}
			slots, low := values[h*(buckets+2):(h+1)*(buckets+2)], rng.IntN(buckets/2)
			slots[buckets] += float64(low) + 0.5
			slots[buckets+1]++
			for slot := low; slot < len(slots); slot++ {
				if slot < buckets {
					slots[slot]++
				}
				s.Delta.Slots = append(s.Delta.Slots, uint32(h*(buckets+2)+slot))
				s.Delta.Bits = append(s.Delta.Bits, math.Float64bits(slots[slot]))
			}
		}
		out = append(out, s)
	}
	return out
}
