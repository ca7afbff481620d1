package collect

import (
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

// lastValue is a sink that keeps the last value of the only slot.
type lastValue struct{ v float64 }

func (l *lastValue) Record(s *metric.Snapshot) error {
	if len(s.Delta.Bits) > 0 {
		l.v = s.Delta.Float(0)
	}
	return nil
}

// Our scrapes are taken off as far as the counter counted them, through a
// restart of the server, and for one that does not count them at all.
func TestOwnRequests(t *testing.T) {
	status := 200
	check := func(what string, raw, want []float64) {
		t.Helper()
		sink := &lastValue{}
		own := newOwnRequests(sink, catalog.Embedded(), true)
		var g metric.SnapshotBuilder
		for i, v := range raw {
			series := g.Series(g.Family("Requests2XX", metric.Counter, "", ""), metric.Labels{})
			g.Set(g.Slot(series, metric.SampleID{}), v)
			s := &metric.Snapshot{Seq: uint64(i), Status: status}
			g.Finish(s)
			if err := own.Record(s); err != nil {
				t.Fatal(err)
			}
			if sink.v != want[i] {
				t.Errorf("%s: poll %d shows %v, want %v", what, i, sink.v, want[i])
			}
		}
	}
	check("only ours", []float64{5, 6, 7, 8}, []float64{5, 5, 5, 5})
	check("users too", []float64{5, 16, 17, 28}, []float64{5, 15, 15, 25})
	check("a restart", []float64{5, 6, 0, 1, 12}, []float64{5, 5, 0, 0, 10})
	check("not counted", []float64{5, 5, 5, 5}, []float64{5, 5, 5, 5})
	check("not counted for a while", []float64{5, 6, 6, 6, 7}, []float64{5, 5, 5, 5, 5})
	status = 0
	check("a log, which is read and not asked", []float64{5, 6, 7, 9}, []float64{5, 6, 7, 9})
}
