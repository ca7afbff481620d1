package rundb_test

import (
	"context"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// native is a poll of a native histogram with an exemplar.
func nativePoll(target int, values ...uint64) *metric.Snapshot {
	s := &metric.Snapshot{Target: target, SentNS: 100, FirstByteNS: 110, Lines: len(values)}
	s.DictDelta = metric.DictDelta{
		Families: []metric.Family{{Name: "n", Type: metric.Histogram, Unit: "seconds"}},
		Series:   []metric.Series{{Family: 0, Labels: metric.NewLabels(metric.Label{Name: "engine", Value: "0"})}},
		Slots: []metric.SampleID{{Role: metric.RoleCount}, {Role: metric.RoleSum},
			{Role: metric.RoleNative, Lower: -1e-128, Bound: 1e-128},
			{Role: metric.RoleNative, Lower: 0.1, Bound: 0.30000000000000004},
			{Role: metric.RoleNative, Lower: math.Inf(-1), Bound: -4}, {Role: metric.RoleNative, Lower: 4, Bound: math.Inf(1)},
			{Role: metric.RoleNative}},
	}
	s.Delta.Full = true
	for i, v := range values {
		s.Delta.Slots, s.Delta.Bits = append(s.Delta.Slots, uint32(i)), append(s.Delta.Bits, math.Float64bits(float64(v)))
	}
	return s
}

func TestNativeSlotsAndExemplars(t *testing.T) {
	dir := t.TempDir()
	w, err := rundb.Create(dir, rundb.Meta{ID: "x"}, rundb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.AddTarget(metric.Target{URL: "http://a/metrics"}); err != nil {
			t.Fatal(err)
		}
	}
	trace := metric.NewLabels(metric.Label{Name: "trace_id", Value: "a\xffb"})
	first := nativePoll(1, 5, 6, 1, 2, 3, 4, 5)
	first.Exemplars = []metric.Exemplar{{Slot: 3, Labels: trace, Value: 0.2, AtNS: 90, SeenNS: 110},
		{Slot: 5, Value: math.Inf(1), SeenNS: 110}, {Slot: 4, Value: math.NaN()}}
	second := *first
	second.Seq, second.FirstByteNS, second.DictDelta = 1, 120, metric.DictDelta{}
	second.Exemplars = []metric.Exemplar{{Slot: 3, Labels: trace, Value: 0.25, SeenNS: 120}}
	for _, s := range []*metric.Snapshot{first, &second} {
		if err := w.Record(s); err != nil {
			t.Fatal(err)
		}
	}
	bad := second
	bad.Exemplars = []metric.Exemplar{{Slot: 7}}
	if err := w.Record(&bad); err == nil {
		t.Error("an exemplar of a slot that does not exist was recorded")
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var dict metric.Schema
	for s, err := range r.Snapshots(context.Background(), 1) {
		if err == nil {
			err = dict.Grow(&s.DictDelta)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(first.DictDelta.Slots, dict.Slots); diff != "" {
		t.Errorf("slots (-recorded +read):\n%s", diff)
	}
	got, err := r.Exemplars(context.Background(), 1)
	want := []metric.Exemplar{second.Exemplars[0], first.Exemplars[1]}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b metric.Labels) bool { return a == b })); err != nil ||
		diff != "" {
		t.Errorf("exemplars (-want +got), %v:\n%s", err, diff)
	}
	if none, err := r.Exemplars(context.Background(), 0); err != nil || len(none) != 0 {
		t.Errorf("target 0: got %v, %v", none, err)
	}
	if _, err := r.Exemplars(context.Background(), 2); err == nil {
		t.Error("a target that does not exist has exemplars")
	}
}
