package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/normalize"
)

const (
	histBuckets = 19
	histScrapes = 1800
)

// histogram makes what a histogram of latencies gains in each of the intervals.
func histogram() (bounds []float64, gains []histest.Delta, total histest.Delta) {
	for b, step := 0.01, 1.6; len(bounds) < histBuckets-1; b *= step {
		bounds = append(bounds, math.Round(b*1e4)/1e4)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	total = histest.Delta{Bounds: bounds, Cum: make([]float64, len(bounds)), HasInf: true}
	for range histScrapes {
		d := histest.Delta{Bounds: bounds, Cum: make([]float64, len(bounds)), HasInf: true}
		for range rng.IntN(20) {
			v := math.Exp(rng.NormFloat64()*0.8 - 0.5)
			for i, b := range bounds {
				if v <= b {
					d.Cum[i]++
				}
			}
			d.Inf++
			d.Count++
			d.Sum += v
		}
		for i := range d.Cum {
			total.Cum[i] += d.Cum[i]
		}
		total.Inf, total.Count, total.Sum = total.Inf+d.Inf, total.Count+d.Count, total.Sum+d.Sum
		gains = append(gains, d)
	}
	return bounds, gains, total
}

// runPercentiles measures the estimators: P15, P16.
func runPercentiles(ctx context.Context, c config, r *report) error {
	bounds, gains, total := histogram()
	r.say("load: a histogram of %d buckets, %d scrapes, %.0f observations, the nine quantiles of AIPerf", histBuckets, histScrapes, total.Count)
	var lines [][]string
	for _, name := range []string{histest.Polynomial, histest.Linear, histest.Refined} {
		est, err := histest.New(name, bounds)
		if err != nil {
			return err
		}
		learn := timed("learn", func() error {
			e, err := histest.New(name, bounds)
			if err != nil {
				return err
			}
			for i := range gains {
				e.Interval(&gains[i])
			}
			return nil
		})
		for i := range gains {
			est.Interval(&gains[i])
		}
		qs := normalize.AIPerfQuantiles()
		var dst []histest.Estimate
		ask := func() error {
			var ok bool
			if dst, ok = est.Quantiles(dst[:0], &total, qs); !ok {
				return fmt.Errorf("%s gives no estimate", name)
			}
			return nil
		}
		grown := total
		grown.Cum, grown.Inf, grown.Count, grown.Sum = make([]float64, len(total.Cum)), total.Inf*1000, total.Count*1000, total.Sum*1000
		for i, v := range total.Cum {
			grown.Cum[i] = 1000 * v
		}
		many := timed("a thousand times the counts", func() error {
			var ok bool
			if dst, ok = est.Quantiles(dst[:0], &grown, qs); !ok {
				return fmt.Errorf("%s gives no estimate", name)
			}
			return nil
		})
		stats, err := inTurn(ctx, c.rounds, []candidate{timed("quantiles", ask), many, learn})
		if err != nil {
			return err
		}
		stats = scale(stats, 1/float64(time.Microsecond))
		allocs := allocations(ask)
		lines = append(lines, []string{name, stats[0].String(), stats[1].String(), stats[2].String(), short(allocs)})
		if name == histest.Polynomial {
			r.add(row{speed: true, goal: "P15", what: "polynomial percentiles of one histogram", unit: "us", ours: stats[0], value: stats[0].median(), must: 20, stretch: 6})
			r.add(row{goal: "P15", what: "allocations of it", ours: one(allocs), value: allocs, stretch: 0.01})
			r.add(row{goal: "P15", what: "a thousand times the counts", unit: "us", ours: stats[1], peer: stats[0], peerName: "ours", value: stats[1].over(stats[0]).median(), must: 1.25})
			r.add(row{speed: true, goal: "P16", what: "learning 1,800 scrapes of 19 buckets", unit: "us", ours: stats[2], value: stats[2].median(), must: 150})
		}
	}
	r.grid([]string{"estimator", "us for nine quantiles", "counts x 1000", "us to learn", "allocations"}, lines)
	return nil
}
