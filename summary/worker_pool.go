package summary

import (
	"context"
	"sync"
	"sync/atomic"
)

// workerPool is a worker pool that is safe to nest, such as histograms within
// targets: the caller of each works itself, joined by as many workers as are free,
// at the beginning and later on. So one large target is as fast as many small ones.
type workerPool struct {
	free chan struct{} // one for each idle worker
}

// newWorkerPool returns a pool of n workers, the caller of each among them.
func newWorkerPool(n int) *workerPool {
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
