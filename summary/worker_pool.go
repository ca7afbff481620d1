package summary

import (
	"context"
	"sync"
	"sync/atomic"
)

// workerPool bounds how much of an analysis is done at a time, also where parallel
// work has parallel work inside, such as targets with many histograms: the
// goroutine that has the work does it itself, and is joined by as many as are
// free, at the beginning and later on. So one large target is done as fast as
// many small ones, and what is being worked on is never more than the crew.
type workerPool struct {
	free chan struct{} // one for each who has nothing to do
}

// newCrew returns a crew of n, the caller of each among them.
func newCrew(n int) *workerPool {
	c := &workerPool{free: make(chan struct{}, n)}
	for range n - 1 {
		c.free <- struct{}{}
	}
	return c
}

// each calls f(0) to f(n-1), in any order, and returns when all calls have
// returned. When ctx ends it leaves out those not begun. Calls of f may call each.
func (c *workerPool) each(ctx context.Context, n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	var work func()
	work = func() {
		for i := int(next.Add(1)); i <= n && ctx.Err() == nil; i = int(next.Add(1)) {
			if i < n {
				c.invite(&wg, work)
			}
			f(i - 1)
		}
	}
	work()
	c.free <- struct{}{} // while this one only waits, another may work
	wg.Wait()
	<-c.free
}

// invite starts another worker if one is free.
func (c *workerPool) invite(wg *sync.WaitGroup, work func()) {
	select {
	case <-c.free:
		wg.Go(func() {
			defer func() { c.free <- struct{}{} }()
			work()
		})
	default:
	}
}
