package summary_test

import (
	"context"
	"iter"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

// counting counts the polls that are read.
type counting struct {
	*rundb.Run
	polls atomic.Int64
}

func (c *counting) Snapshots(ctx context.Context, target int) iter.Seq2[*metric.Snapshot, error] {
	return func(yield func(*metric.Snapshot, error) bool) {
		for s, err := range c.Run.Snapshots(ctx, target) {
			if c.polls.Add(1); !yield(s, err) {
				return
			}
		}
	}
}

// estimatesOf are all estimates of a run, of screens or of files, in order.
func estimatesOf(r *summary.Run, files bool) (out [][]histest.Estimate) {
	add := func(ours, theirs []histest.Estimate) {
		if files {
			ours = theirs
		}
		out = append(out, ours)
	}
	for _, metrics := range [][]summary.Metric{r.Metrics, r.Warmup} {
		for i := range metrics {
			for _, s := range metrics[i].Series {
				if s.Histogram != nil {
					add(s.Histogram.Quantiles, s.Histogram.FileQuantiles)
				}
				if s.GaugeHistogram != nil {
					add(s.GaugeHistogram.Quantiles, s.GaugeHistogram.FileQuantiles)
				}
				if s.AIPerf != nil && s.AIPerf.Histogram != nil {
					add(s.AIPerf.Histogram.Quantiles, s.AIPerf.Histogram.FileQuantiles)
				}
			}
		}
	}
	for i := range r.Aggregates {
		if h := r.Aggregates[i].Histogram; h != nil {
			add(h.Quantiles, h.FileQuantiles)
		}
	}
	for i := range r.Latencies {
		if h := r.Latencies[i].Histogram; h != nil {
			add(h.Quantiles, h.FileQuantiles)
		}
	}
	return out
}

// The end of collect shows one estimator and writes another: both are as if the run had been analysed for each, and it
// is read as often as for one.
func TestTwoEstimatorsOfOneReading(t *testing.T) {
	dirs, err := filepath.Glob("../testdata/runs/*/run.db")
	if err != nil || len(dirs) < 4 {
		t.Fatalf("%d recordings (%v), want at least 4", len(dirs), err)
	}
	names := 0
	for _, path := range dirs {
		dir := filepath.Dir(path)
		db, err := rundb.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		polls := map[string]int64{}
		build := func(o summary.Options) *summary.Run {
			c := &counting{Run: db}
			o.AIPerf, o.By = true, []string{}
			r, err := summary.Build(t.Context(), []summary.Recording{c}, o)
			if err != nil {
				t.Fatal(err)
			}
			polls[o.Estimator+o.FileEstimator] = c.polls.Load()
			return r
		}
		shown, filed := build(summary.Options{Estimator: "refined"}), build(summary.Options{Estimator: "polynomial"})
		both := build(summary.Options{Estimator: "refined", FileEstimator: "polynomial"})
		same := func(what string, got, want [][]histest.Estimate) {
			if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("%s: %s differ (-alone +with the other):\n%s", dir, what, diff)
			}
		}
		same("percentiles of screens", estimatesOf(both, false), estimatesOf(shown, false))
		same("percentiles of files", estimatesOf(both, true), estimatesOf(filed, false))
		if polls["refinedpolynomial"] != polls["refined"] || polls["refined"] == 0 {
			t.Errorf("%s: polls read: %v, want as many for both estimators as for one", dir, polls)
		}
		for _, list := range estimatesOf(shown, false) {
			for _, e := range list {
				if names++; e.Value < e.Low || e.Value > e.High {
					t.Errorf("%s: %v lies outside [%v, %v]", dir, e.Value, e.Low, e.High)
				}
			}
		}
	}
	if names < 500 {
		t.Errorf("%d estimates looked at, want at least 500", names)
	}
}
