package rundb_test

import (
	"context"
	"fmt"
	"os"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// One poll is recorded and read back.
func Example() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	w, err := rundb.Create(dir, rundb.Meta{ID: rundb.NewID(), Tags: map[string]string{"model": "m"}},
		rundb.WriterOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	target, err := w.AddTarget(metric.Target{URL: "http://server:8000/metrics"})
	if err != nil {
		fmt.Println(err)
		return
	}
	var g metric.SnapshotBuilder
	g.Set(g.Slot(g.Series(g.Family("running", metric.Gauge, "", ""), metric.Labels{}), metric.SampleID{}), 7)
	poll := metric.Snapshot{Target: target}
	g.Finish(&poll)
	if err := w.Record(&poll); err != nil {
		fmt.Println(err)
		return
	}
	if err := w.Close(context.Background()); err != nil {
		fmt.Println(err)
		return
	}

	run, err := rundb.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer run.Close()
	for s, err := range run.Snapshots(context.Background(), target) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(run.Meta().Tags["model"], s.DictDelta.Families[0].Name, s.Delta.Float(0))
	}
	// Output: m running 7
}
