package normalize_test

import (
	"fmt"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// A counter is polled once a second; its server restarts between the third and the
// fourth poll. What it gained in the window counts from the last poll before it.
func Example() {
	second := time.Second.Nanoseconds()
	window, err := normalize.NewFold(normalize.Options{StartNS: 2 * second, EndNS: 5 * second})
	if err != nil {
		fmt.Println(err)
		return
	}
	var g metric.SnapshotBuilder
	requests := g.Slot(g.Series(g.Family("requests", metric.Counter, "", ""), metric.Labels{}), metric.SampleID{})
	for i, value := range []float64{100, 110, 130, 5, 20} {
		at := int64(i+1) * second
		poll := metric.Snapshot{Seq: uint64(i), DueNS: at, SentNS: at, FirstByteNS: at}
		g.Set(requests, value)
		g.Finish(&poll)
		if err := window.Add(&poll); err != nil {
			fmt.Println(err)
			return
		}
	}
	for _, s := range window.Result(0).Series {
		fmt.Println("gained", s.Counter.Total, "with", s.Resets, "restart")
	}
	// Output: gained 50 with 1 restart
}
