package rundb_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// diff compares snapshots bit for bit; empty and nil lists are the same.
func diff(want, got *metric.Snapshot) string {
	a, b := *want, *got
	if slices.Equal(a.Delta.Slots, b.Delta.Slots) && slices.Equal(a.Delta.Bits, b.Delta.Bits) {
		a.Delta.Slots, a.Delta.Bits, b.Delta.Slots, b.Delta.Bits = nil, nil, nil, nil // reflection over them is slow
	}
	if slices.Equal(a.DictDelta.Families, b.DictDelta.Families) &&
		slices.Equal(a.DictDelta.Series, b.DictDelta.Series) &&
		slices.EqualFunc(a.DictDelta.Slots, b.DictDelta.Slots, sameSlot) {
		a.DictDelta, b.DictDelta = metric.DictDelta{}, metric.DictDelta{}
	}
	return cmp.Diff(a, b, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b metric.Labels) bool { return a == b }),
		cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }))
}

func sameSlot(a, b metric.SampleID) bool {
	same := math.Float64bits(a.Bound) == math.Float64bits(b.Bound)
	a.Bound, b.Bound = 0, 0
	return same && a == b
}

func create(t testing.TB, dir string, targets int, o rundb.WriterOptions) *rundb.Writer {
	t.Helper()
	w, err := rundb.Create(dir, rundb.Meta{ID: "test"}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(t.Context()) })
	for i := range targets {
		if got, err := w.AddTarget(metric.Target{URL: "http://127.0.0.1:1/metrics", Source: "prometheus"}); err != nil ||
			got != i {
			t.Fatalf("add target: got %d, %v, want %d", got, err, i)
		}
	}
	return w
}

func open(t testing.TB, dir string) *rundb.Run {
	t.Helper()
	r, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func read(t testing.TB, r *rundb.Run, target int) []*metric.Snapshot {
	t.Helper()
	var out []*metric.Snapshot
	for s, err := range r.Snapshots(context.Background(), target) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s.Clone())
	}
	return out
}

// same compares what a target recorded with what reading it gives.
func same(t testing.TB, want, got []*metric.Snapshot) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d polls, want %d", len(got), len(want))
	}
	for i := range want {
		if d := diff(want[i], got[i]); d != "" {
			t.Fatalf("poll %d (-want +got):\n%s", i, d)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 3, rundb.WriterOptions{})
	var want [3][]*metric.Snapshot
	loads := []*load{newLoad(0, 1), newLoad(1, 2), newLoad(2, 3)}
	loads[2].idle = true
	for i := range 700 {
		for k, l := range loads {
			s := l.next()
			if err := w.Record(s); err != nil {
				t.Fatal(err)
			}
			want[k] = append(want[k], s.Clone())
		}
		if i == 300 || i == 301 || i == 650 {
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := open(t, dir)
			for k := range loads {
				same(t, want[k], read(t, r, k))
			}
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	for k := range loads {
		same(t, want[k], read(t, r, k))
	}
	if x := r.Warnings(); len(x) > 0 {
		t.Errorf("warnings: %v", x)
	}
}

// TestVersion4 reads a recording whose marks have no kind: those that the recorder set by itself are told by their
// names. Marks can be added to it, and repairing it gives the marks their kinds.
func TestVersion4(t *testing.T) {
	dir, _ := recorded(t)
	toVersion5(t, dir)
	alter(t, dir, "ALTER TABLE mark DROP COLUMN kind; DELETE FROM mark; PRAGMA user_version = 4")
	for _, row := range []string{"(1, 'profiling', 1)", "(2, 'profiling', 0)", "(3, 'high', 1)"} {
		alter(t, dir, "INSERT INTO mark (at_ns, name, own) VALUES "+row)
	}
	if err := rundb.AddMark(dir, metric.Mark{AtNS: 4, Name: "low"}); err != nil {
		t.Fatal(err)
	}
	want := []metric.Mark{{AtNS: 1, Name: "profiling", Kind: metric.MarkOwn}, {AtNS: 2, Name: "profiling"},
		{AtNS: 3, Name: "high"}, {AtNS: 4, Name: "low"}}
	if got := open(t, dir).Marks(); !slices.Equal(got, want) {
		t.Errorf("marks of version 4: %+v", got)
	}
	to := t.TempDir()
	if _, err := rundb.Repair(t.Context(), dir, to, nil); err != nil {
		t.Fatal(err)
	}
	if got := open(t, to).Marks(); !slices.Equal(got, want) {
		t.Errorf("repaired: %+v", got)
	}
}

// Marks keep their kind, and what was found of the traffic is in the recording once it is closed.
func TestMarkKinds(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 1, rundb.WriterOptions{})
	want := []metric.Mark{{AtNS: 1, Name: "profiling", Kind: metric.MarkOwn}, {AtNS: 2, Name: "profiling",
		Kind: metric.MarkPolled}, {AtNS: 3, Name: "rewarm", Kind: metric.PhaseWarmup}, {AtNS: 4, Name: "profiling"}}
	for _, m := range want {
		if err := w.Mark(m); err != nil {
			t.Fatal(err)
		}
	}
	w.SetTraffic(`{"version":1}`)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	if got := r.Marks(); !slices.Equal(got, want) {
		t.Errorf("marks: %+v", got)
	}
	if got := r.Meta().Traffic; got != `{"version":1}` {
		t.Errorf("traffic: %q", got)
	}
}
