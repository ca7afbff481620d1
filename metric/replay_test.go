package metric_test

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/metric"
)

// grown is the schema delta of one counter family with so many series of one slot each.
func grown(n int) metric.DictDelta {
	g := metric.DictDelta{Families: []metric.Family{{Name: "f", Type: metric.Counter}}}
	for i := range n {
		g.Series = append(g.Series, metric.Series{})
		g.Slots = append(g.Slots, metric.SampleID{Series: i})
	}
	return g
}

func poll(full bool, slots []uint32, bits ...uint64) *metric.Snapshot {
	return &metric.Snapshot{Delta: metric.Delta{Full: full, Slots: slots, Bits: bits}}
}

func TestReplay(t *testing.T) {
	var r metric.Replay
	step := func(s *metric.Snapshot, bits []uint64, present []bool, sets int) {
		t.Helper()
		if err := r.Step(s); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(r.Bits, bits) || !slices.Equal(r.Present, present) || r.Sets != sets {
			t.Errorf("got %v, %v, %d sets, want %v, %v, %d", r.Bits, r.Present, r.Sets, bits, present, sets)
		}
	}
	first := poll(true, []uint32{0, 2}, 7, 9)
	first.DictDelta = grown(3)
	step(first, []uint64{7, 0, 9}, []bool{true, false, true}, 1)
	step(poll(false, []uint32{2}, 10), []uint64{7, 0, 10}, []bool{true, false, true}, 1)
	step(poll(false, nil), []uint64{7, 0, 10}, []bool{true, false, true}, 1)
	step(poll(true, []uint32{0, 2}, 7, 11), []uint64{7, 0, 11}, []bool{true, false, true}, 1)
	step(poll(true, []uint32{1}, 3), []uint64{7, 3, 11}, []bool{false, true, false}, 2)
	step(poll(false, []uint32{0}, 8), []uint64{8, 3, 11}, []bool{true, true, false}, 3)

	failed := poll(true, []uint32{2}, 1) // its samples are no samples
	failed.Outcome = metric.Timeout
	failed.DictDelta = metric.DictDelta{Slots: []metric.SampleID{{Series: 2, Role: metric.RoleCreated}}}
	step(failed, []uint64{8, 3, 11, 0}, []bool{true, true, false, false}, 3)
	if got := r.SlotsOf(2); !slices.Equal(got, []int32{2, 3}) {
		t.Errorf("series 2 has the slots %v, want 2 and 3", got)
	}
}

// TestReplayRefuses checks that a damaged poll is refused and changes nothing.
func TestReplayRefuses(t *testing.T) {
	check := func(what string, s *metric.Snapshot) {
		t.Helper()
		var r metric.Replay
		first := poll(true, []uint32{0, 1}, 5, 6)
		first.DictDelta = grown(2)
		if err := r.Step(first); err != nil {
			t.Fatal(err)
		}
		if r.Step(s) == nil {
			t.Errorf("%s: accepted", what)
		}
		if !slices.Equal(r.Bits, []uint64{5, 6}) || len(r.Slots) != 2 || len(r.Series) != 2 || r.Sets != 1 {
			t.Errorf("%s: the state changed to %v, %d slots", what, r.Bits, len(r.Slots))
		}
	}
	check("slot beyond the schema", poll(false, []uint32{2}, 1))
	check("largest slot", poll(true, []uint32{math.MaxUint32}, 1))
	check("slots that descend", poll(false, []uint32{1, 0}, 1, 2))
	check("slot twice", poll(false, []uint32{1, 1}, 1, 2))
	check("fewer values than slots", poll(false, []uint32{0, 1}, 1))
	check("more values than slots", poll(false, []uint32{0}, 1, 2))
	beyond := poll(false, []uint32{3}, 1)
	beyond.DictDelta.Slots = []metric.SampleID{{Series: 1, Role: metric.RoleCreated}}
	check("growth with a slot beyond it", beyond)
	series := poll(false, []uint32{0}, 1)
	series.DictDelta.Slots = []metric.SampleID{{Series: 2}}
	check("growth with a series that is none", series)
}

// TestReplayMatchesModel compares with all values of each poll, written out.
func TestReplayMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r metric.Replay
		var b metric.SnapshotBuilder
		shown := map[int]uint64{}
		for range rapid.IntRange(1, 20).Draw(t, "polls") {
			var s metric.Snapshot
			now := rapid.MapOf(rapid.IntRange(0, 9), rapid.Uint64Range(0, 3)).Draw(t, "values")
			for i := range 10 {
				if v, ok := now[i]; ok {
					f := b.Family("f", metric.Counter, "", "")
					label := metric.NewLabels(metric.Label{Name: "i", Value: string(rune('a' + i))})
					b.SetInteger(b.Slot(b.Series(f, label), metric.SampleID{Integer: true}), v)
				}
			}
			b.Finish(&s)
			if err := r.Step(&s); err != nil {
				t.Fatal(err)
			}
			clear(shown)
			for slot, here := range r.Present {
				if here {
					name, _ := r.Series[r.Slots[slot].Series].Labels.Get("i")
					shown[int(name[0]-'a')] = r.Bits[slot]
				}
			}
			if !reflect.DeepEqual(shown, now) {
				t.Fatalf("got %v, want %v", shown, now)
			}
		}
	})
}

// TestReplayAllocs checks that a poll of a known schema costs no allocation.
func TestReplayAllocs(t *testing.T) {
	var r metric.Replay
	first := poll(true, []uint32{0, 1, 2}, 1, 2, 3)
	first.DictDelta = grown(3)
	if err := r.Step(first); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*metric.Snapshot{poll(false, []uint32{1}, 5), poll(true, []uint32{0, 2}, 5, 6)} {
		if n := testing.AllocsPerRun(100, func() {
			if err := r.Step(s); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("full %v: %v allocations per poll, want none", s.Delta.Full, n)
		}
	}
}

func TestAbsent(t *testing.T) {
	check := func(d metric.Delta, slots int, want ...int) {
		t.Helper()
		if got := slices.Collect(d.Absent(slots)); !slices.Equal(got, want) {
			t.Errorf("%v of %d: got %v, want %v", d.Slots, slots, got, want)
		}
	}
	check(metric.Delta{Full: true, Slots: []uint32{1, 3}}, 5, 0, 2, 4)
	check(metric.Delta{Full: true}, 2, 0, 1)
	check(metric.Delta{Slots: []uint32{1, 3}}, 5)
	check(metric.Delta{Full: true, Slots: []uint32{0}}, 1)
	for slot := range (&metric.Delta{Full: true}).Absent(3) {
		if slot == 1 {
			break
		}
	}
}

func TestSampleIDFloat(t *testing.T) {
	check := func(s metric.SampleID, bits uint64, want float64) {
		t.Helper()
		if got := s.Float(bits); got != want {
			t.Errorf("integer %v, bits %#x: got %v, want %v", s.Integer, bits, got, want)
		}
	}
	check(metric.SampleID{Integer: true}, 42, 42)
	check(metric.SampleID{}, math.Float64bits(1.5), 1.5)
}

// TestClone checks that a clone is equal, without the body, and that nothing
// written into the original shows in it.
func TestClone(t *testing.T) {
	snapshot := func() *metric.Snapshot {
		return &metric.Snapshot{
			Target: 1, Seq: 2, Kind: metric.Final, DueNS: 3, SentNS: 4, FirstByteNS: 5, Duration: 6, Outcome: metric.Partial,
			Status: 200, Err: "e", BodyBytes: 7, Duplicate: true, Lines: 8,
			Drops:     []metric.Drop{{Reason: "parse", Lines: 1}},
			Warnings:  []metric.Warning{{Code: "c", Text: "t"}},
			DictDelta: grown(2),
			Delta:     metric.Delta{Full: true, Slots: []uint32{0}, Bits: []uint64{1}},
			Observations: []metric.Observation{{Series: 1, Requests: []string{"id"}},
				{Series: 0}},
			Exemplars: []metric.Exemplar{{Slot: 1, Value: 2}},
		}
	}
	s := snapshot()
	s.Body = []byte("body")
	c := s.Clone()
	s.Drops[0].Lines, s.Warnings[0].Code = 9, "x"
	s.DictDelta.Families[0].Name, s.DictDelta.Series[0].Family, s.DictDelta.Slots[0].Series = "x", 9, 9
	s.Delta.Slots[0], s.Delta.Bits[0] = 9, 9
	s.Observations[0].Value, s.Observations[0].Requests[0], s.Exemplars[0].Slot = 9, "x", 9
	if want := snapshot(); !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, want %+v", c, want)
	}
}
