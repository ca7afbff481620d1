package rundb_test

import (
	"reflect"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// TestLives adds a target while another one is recorded, and reads back what it
// is and when it was there.
func TestLives(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 1, rundb.WriterOptions{})
	for _, s := range tape(0, 3, false) {
		if err := w.Record(s); err != nil {
			t.Fatal(err)
		}
	}
	labels := metric.NewLabels(metric.Label{Name: "job", Value: "vllm"}, metric.Label{Name: "instance", Value: "p0"})
	n, err := w.AddTarget(metric.Target{URL: "http://h/metrics", Source: "prometheus", Labels: labels})
	if err != nil || n != 1 {
		t.Fatalf("AddTarget = %d, %v", n, err)
	}
	for _, s := range tape(1, 3, false) {
		if err := w.Record(s); err != nil {
			t.Fatal(err)
		}
	}
	want := []metric.TargetEvent{{AtNS: 5, Reason: "listed"}, {AtNS: 9, Gone: true, Reason: "no longer listed"}}
	for _, l := range want {
		if err := w.TargetEvent(1, l); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.TargetEvent(2, want[0]); err == nil {
		t.Error("the life of a target that is none was recorded")
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	if got := r.Lives(1); !reflect.DeepEqual(got, want) {
		t.Errorf("lives %+v, want %+v", got, want)
	}
	if got := r.Lives(0); got != nil {
		t.Errorf("lives of a target that was always there: %+v", got)
	}
	if got := r.Targets()[1].Labels; got != labels {
		t.Errorf("labels %s, want %s", got, labels)
	}
}
