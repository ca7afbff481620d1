package collect

import (
	"testing"

	"github.com/scrapestat/scrapestat/metric"
)

type nowhere struct{}

func (nowhere) Record(*metric.Snapshot) error { return nil }

// TestForgive takes back the failures after the last stored poll of a target that
// has gone, and no others.
func TestForgive(t *testing.T) {
	r := newRecorder(nowhere{}, nil)
	for _, o := range []metric.Outcome{metric.Timeout, metric.OK, metric.ConnectError, metric.ConnectError} {
		if err := r.Record(&metric.Snapshot{Target: 1, Outcome: o}); err != nil {
			t.Fatal(err)
		}
	}
	r.discountFailures(0)
	r.discountFailures(1)
	r.discountFailures(1)
	if got := r.totals().Failed; got != 1 {
		t.Errorf("%d failures, want the 1 before the stored poll", got)
	}
}
