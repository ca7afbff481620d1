package metric_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/metric"
)

func TestGatherer(t *testing.T) {
	var g metric.SnapshotBuilder
	value := func(name string, v float64) {
		f := g.Family(name, metric.Gauge, "help of "+name, "")
		g.Set(g.Slot(g.Series(f, metric.Labels{}), metric.SampleID{Role: metric.RoleValue}), v)
	}
	check := func(full bool, lines, families int, slots []uint32, values ...float64) {
		t.Helper()
		var s metric.Snapshot
		g.Finish(&s)
		got := make([]float64, len(s.Delta.Bits))
		for i := range got {
			got[i] = s.Delta.Float(i)
		}
		if s.Delta.Full != full || s.Lines != lines || len(s.DictDelta.Families) != families ||
			!cmp.Equal(s.Delta.Slots, slots) || !cmp.Equal(got, values) {
			t.Errorf("got full %v, %d lines, %d new families, slots %v values %v, want %v, %d, %d, %v %v",
				s.Delta.Full, s.Lines, len(s.DictDelta.Families), s.Delta.Slots, got, full, lines, families, slots, values)
		}
	}
	value("a", 1)
	value("b", 2)
	check(true, 2, 2, []uint32{0, 1}, 1, 2)
	value("b", 3)
	value("a", 1)
	check(false, 2, 0, []uint32{1}, 3)
	value("b", 3)
	check(true, 1, 0, []uint32{1}, 3) // a has vanished
	value("b", 3)
	check(false, 1, 0, []uint32{}, []float64{}...)
	value("c", 7)
	g.Abandon()
	value("b", 4)
	value("b", 5)
	check(false, 1, 1, []uint32{1}, 5) // c is in the dictionary, without a value
	value("a", 1)
	value("b", 5)
	check(true, 2, 0, []uint32{0, 1}, 1, 5)
}

func TestGathererIntegersStayExact(t *testing.T) {
	var g metric.SnapshotBuilder
	f := g.Family("ns", metric.Counter, "", "")
	slot := g.Slot(g.Series(f, metric.Labels{}), metric.SampleID{Role: metric.RoleValue, Integer: true})
	g.SetInteger(slot, math.MaxUint64)
	var s metric.Snapshot
	g.Finish(&s)
	if got := s.Delta.Bits[0]; got != math.MaxUint64 || !s.DictDelta.Slots[0].Integer {
		t.Errorf("got %d, integer %v", got, s.DictDelta.Slots[0].Integer)
	}
}

// Whoever applies growth and frames in order sees what was given, and only that.
func TestGathererProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g metric.SnapshotBuilder
		var d metric.Schema
		shown := map[string]float64{} // by family
		for range rapid.IntRange(1, 12).Draw(t, "polls") {
			given := rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.Float64()).Draw(t, "poll")
			for name, v := range given {
				f := g.Family(name, metric.Gauge, "", "")
				g.Set(g.Slot(g.Series(f, metric.Labels{}), metric.SampleID{}), v)
			}
			if rapid.Bool().Draw(t, "abandon") {
				g.Abandon()
				continue
			}
			var s metric.Snapshot
			g.Finish(&s)
			if err := d.Grow(&s.DictDelta); err != nil {
				t.Fatal(err)
			}
			if s.Delta.Full {
				clear(shown)
			}
			for i, slot := range s.Delta.Slots {
				shown[d.FamilyOf(d.Slots[slot].Series).Name] = s.Delta.Float(i)
			}
			if !cmp.Equal(shown, given) {
				t.Fatalf("got %v, want %v", shown, given)
			}
		}
	})
}

func TestBuilderKnown(t *testing.T) {
	var b metric.SnapshotBuilder
	series := b.Series(b.Family("f", metric.Histogram, "", ""), metric.Labels{})
	id := metric.SampleID{Role: metric.RoleBucket, Bound: 0.5}
	if b.Known(series, id) {
		t.Error("a slot is known before it was added")
	}
	slot := b.Slot(series, id)
	b.SetInteger(slot, 7)
	if !b.Known(series, id) || b.Known(series, metric.SampleID{Role: metric.RoleBucket, Bound: 1}) || b.Bits(slot) != 7 {
		t.Errorf("slot %d with %d is not as it was set", slot, b.Bits(slot))
	}
}
