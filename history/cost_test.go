package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/history"
	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

// BenchmarkAdd tells what share of the analysis of a recorded run its headline takes, and adding it to a history.
func BenchmarkAdd(b *testing.B) {
	rec, err := rundb.Open(testkit.Path(b, "runs") + "/vllm-bench-rate4")
	if err != nil {
		b.Fatal(err)
	}
	defer rec.Close()
	cat, err := catalog.New()
	if err != nil {
		b.Fatal(err)
	}
	f := open(b)
	reading := history.Reading{Catalog: cat}
	var spent [3]time.Duration
	for i := 0; b.Loop(); i++ {
		at := time.Now()
		step := func(k int) {
			spent[k] += time.Since(at)
			at = time.Now()
		}
		r, err := summary.Build(b.Context(), []summary.Recording{rec}, summary.Options{Catalog: cat,
			Slice: summary.NoiseSlices, Quantiles: []float64{0.5, 0.99}})
		if err != nil {
			b.Fatal(err)
		}
		step(0)
		if len(headline.Of(r, cat)) == 0 {
			b.Fatal("no headline")
		}
		step(1)
		e, err := reading.Entry(history.Source{Path: fmt.Sprint("/runs/", i), Run: r, Seconds: 35})
		if err != nil {
			b.Fatal(err)
		}
		e.ID = fmt.Sprint(i)
		add(b, f, []*history.Entry{e})
		step(2)
	}
	b.ReportMetric(100*float64(spent[1])/float64(spent[0]), "%headline")
	b.ReportMetric(100*float64(spent[2])/float64(spent[0]), "%add")
}
