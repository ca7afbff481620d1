package metric_test

import (
	"math"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
)

// TestMemory: the last quarter is not for the target that takes the most.
func TestMemory(t *testing.T) {
	const line = 1536 // bytes that one takes
	m := metric.NewMemory(100 * line)
	a, b := m.Share(), m.Share()
	for i := range 75 {
		if !a.Take(1, 0) {
			t.Fatalf("line %d is refused", i)
		}
	}
	if a.Take(1, 0) {
		t.Error("the largest target takes of the last quarter")
	}
	for i := range 20 {
		if !b.Take(1, 0) {
			t.Fatalf("line %d of the smaller target is refused", i)
		}
	}
	if !m.Charge(5, 0) || m.Charge(0, 1) {
		t.Error("the limit is at 100 lines")
	}
	if b.Take(1, 0) {
		t.Error("beyond the limit something is taken")
	}
	if m.Use(-10 * line); !m.Use(0) {
		t.Error("what was given back is counted")
	}
	b.Hold(2*line, 1) // a body is there twice
	if b.Hold(line, 0); !m.Use(4*line) || m.Use(line) {
		t.Error("a body and a line take 5 lines, a smaller body nothing more")
	}
	var none *metric.Memory
	var share *metric.MemoryShare
	if share.Hold(1<<40, 1); !none.Charge(1<<40, 0) || !share.Take(1<<40, 0) {
		t.Error("nil has a limit")
	}
}

// TestCreated: a time moves when another one is stated.
func TestCreated(t *testing.T) {
	var c metric.Created
	if c.NS() != 0 {
		t.Error("a time that is not known")
	}
	for _, x := range []struct {
		at    float64
		moved bool
		ns    int64
	}{{math.NaN(), false, 0}, {1.5e9, false, 15e17}, {1.5e9, false, 15e17}, {math.Inf(1), false, 15e17},
		{1.5e9 + 1e-6, true, 15e17 + 1000}, {-1, true, 0}, {9e9, true, 0}} {
		if moved := c.Set(x.at); moved != x.moved || c.NS() != x.ns {
			t.Errorf("%v: moved %v, %d; want %v, %d", x.at, moved, c.NS(), x.moved, x.ns)
		}
	}
}

func TestLose(t *testing.T) {
	s := metric.Snapshot{Lines: 10, Outcome: metric.OK}
	if s.Lose([]metric.Drop{{Reason: metric.DropFiltered, Lines: 3}}); s.Lines != 13 || s.Outcome != metric.OK {
		t.Errorf("filtered: %+v", s)
	}
	if s.Lose([]metric.Drop{{Reason: "other", Lines: 2}}); s.Lines != 15 || s.Outcome != metric.Partial {
		t.Errorf("lost: %+v", s)
	}
}

func TestSmall(t *testing.T) {
	for kind, own := range map[string]bool{"": false, metric.MarkOwn: true, metric.MarkPolled: true,
		metric.PhaseWarmup: false} {
		if (metric.Mark{Name: "x", Kind: kind}).Own() != own {
			t.Errorf("a mark of kind %q: own is not %v", kind, own)
		}
	}
	if metric.Finite(math.NaN()) || metric.Finite(math.Inf(-1)) || !metric.Finite(0) {
		t.Error("finite numbers")
	}
	short, long := metric.NewLabels(metric.Label{Name: "a", Value: "b"}),
		metric.NewLabels(metric.Label{Name: "a", Value: "bcd"})
	if long.Size() != short.Size()+2 {
		t.Errorf("sizes %d and %d", short.Size(), long.Size())
	}
}
