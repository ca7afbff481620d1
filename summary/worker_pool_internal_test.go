package summary

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

// How much is worked on at a time shows in no result, so crew is tested itself.

// TestCrew runs work within work and counts who is at it.
func TestCrew(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, size := range []int{1, 2, 5} {
		c := newWorkerPool(size)
		var at, most, calls atomic.Int64
		var done [7][40]atomic.Int32
		c.each(context.Background(), len(done), func(i int) {
			c.each(context.Background(), len(done[i]), func(k int) {
				for n := at.Add(1); ; {
					if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
						break
					}
				}
				for range 5 {
					runtime.Gosched() // let others begin, if they can
				}
				done[i][k].Add(1)
				calls.Add(1)
				at.Add(-1)
			})
		})
		if most.Load() > int64(size) {
			t.Errorf("crew of %d: %d calls ran at a time", size, most.Load())
		}
		if n := calls.Load(); n != 7*40 {
			t.Errorf("crew of %d: %d calls, want 280", size, n)
		}
		for i := range done {
			for k := range done[i] {
				if n := done[i][k].Load(); n != 1 {
					t.Errorf("crew of %d: call %d of %d ran %d times", size, k, i, n)
				}
			}
		}
		if len(c.free) != size-1 {
			t.Errorf("crew of %d: %d are free afterwards, want all but one", size, len(c.free))
		}
	}
}

// TestCrewJoins lets work within work join: one large piece is done by all.
func TestCrewJoins(t *testing.T) {
	c := newWorkerPool(3)
	var begun atomic.Int64
	all := make(chan struct{})
	c.each(context.Background(), 1, func(int) {
		c.each(context.Background(), 3, func(int) { // each call waits until all three run
			if begun.Add(1) == 3 {
				close(all)
			}
			<-all
		})
	})
}

func TestCrewStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	newWorkerPool(1).each(ctx, 100, func(i int) {
		calls++
		if i == 4 {
			cancel()
		}
	})
	if calls != 5 {
		t.Errorf("%d calls, want the 5 begun before the end", calls)
	}
}
