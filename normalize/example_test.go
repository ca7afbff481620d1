package normalize_test

import (
	"fmt"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// A counter is polled once a second; its server restarts between the third and the
// fourth poll, as its start time tells. What it gained in the window counts from the last poll before it.
func Example() {
	second := time.Second.Nanoseconds()
	window, err := normalize.NewFold(normalize.Options{StartNS: 2 * second, EndNS: 5 * second})
	if err != nil {
		fmt.Println(err)
		return
	}
	var g metric.SnapshotBuilder
	requests := g.Slot(g.Series(g.Family("requests", metric.Counter, "", ""), metric.Labels{}), metric.SampleID{})
	started := g.Slot(g.Series(g.Family("process_start_time_seconds", metric.Gauge, "", ""), metric.Labels{}),
		metric.SampleID{})
	for i, value := range []float64{100, 110, 130, 5, 20} {
		at := int64(i+1) * second
		g.Set(started, 0.5)
		if i >= 3 {
			g.Set(started, 3.5)
		}
		poll := metric.Snapshot{Seq: uint64(i), DueNS: at, SentNS: at, FirstByteNS: at}
		g.Set(requests, value)
		g.Finish(&poll)
		if err := window.Add(&poll); err != nil {
			fmt.Println(err)
			return
		}
	}
	s := window.Result(0).Series[0]
	fmt.Println("gained", s.Increase.Value, "with", s.Increase.Restarts, "restart,", s.Increase.Status)
	// Output: gained 50 with 1 restart, corrected
}
