package scrape

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// stint is the time from when a target is taken up until it is left.
type stint struct {
	loop   *loop
	leave  chan struct{} // closed when the target is removed
	gone   chan struct{} // closed when its goroutine has ended
	cancel context.CancelFunc
}

// rosterChange asks the goroutine of Run to take up a target or to leave it.
type rosterChange struct {
	index  int
	target *Target // nil leaves it
	done   chan error
}

// targetSet is who polls while Run runs. It belongs to the goroutine of Run.
type targetSet struct {
	c      *Collector
	stop   <-chan struct{}
	abort  context.CancelCauseFunc
	ended  chan *stint
	active int
	loops  sync.WaitGroup
}

// run waits for the end of the run and of all stints, and serves changes. Polls
// are made under polls, the final ones under ctx.
func (r *targetSet) run(ctx, polls context.Context) {
	stop, cancelled := r.stop, ctx.Done()
	ending := !r.c.options.Dynamic
	for r.active > 0 || !ending {
		select {
		case s := <-r.ended:
			r.retire(s)
		case ch := <-r.c.changes:
			r.change(ctx, polls, ch)
		case <-stop:
			stop, ending = nil, true
		case <-cancelled:
			cancelled, ending = nil, true
		}
	}
	r.loops.Wait()
}

// start begins to poll a target.
func (r *targetSet) start(ctx, polls context.Context, l *loop, baseline, grid time.Time) {
	own, cancel := context.WithCancel(polls)
	s := &stint{loop: l, leave: make(chan struct{}), gone: make(chan struct{}), cancel: cancel}
	r.c.mu.Lock()
	r.c.stints[l.index] = s
	r.c.mu.Unlock()
	r.active++
	r.loops.Go(func() {
		if err := l.run(ctx, own, r.stop, s.leave, baseline, grid); err != nil {
			r.abort(err)
		}
		close(s.gone)
		r.ended <- s
	})
}

// retire forgets a stint that has ended.
func (r *targetSet) retire(s *stint) {
	s.cancel()
	r.active--
	r.c.mu.Lock()
	if r.c.stints[s.loop.index] == s {
		delete(r.c.stints, s.loop.index)
	}
	r.c.mu.Unlock()
	if s.loop.initial && !s.loop.based {
		s.loop.based = true
		r.c.baselineDone()
	}
}

func (r *targetSet) change(ctx, polls context.Context, ch rosterChange) {
	if ch.target != nil {
		ch.done <- r.add(ctx, polls, ch.index, *ch.target)
		return
	}
	r.c.mu.Lock()
	s := r.c.stints[ch.index]
	r.c.mu.Unlock()
	if s == nil {
		ch.done <- nil
		return
	}
	close(s.leave)
	grace := time.AfterFunc(r.c.grace(), s.cancel)
	for {
		over := <-r.ended
		r.retire(over)
		if over == s {
			grace.Stop()
			ch.done <- nil
			return
		}
	}
}

// add takes up a target that is new, or one that was left before: that one goes
// on with its dictionary, so that its series continue.
func (r *targetSet) add(ctx, polls context.Context, index int, t Target) error {
	c := r.c
	switch {
	case index < 0:
		return fmt.Errorf("add target %s: index %d is negative", t, index)
	case c.stints[index] != nil:
		return fmt.Errorf("add target %s: target %d is being polled", t, index)
	}
	if err := checkFileLimit(len(c.stints) + 1); err != nil {
		return err
	}
	c.mu.Lock()
	fresh, err := newLoop(c, index, t, c.transportFor(t))
	c.mu.Unlock()
	if err != nil {
		return err
	}
	for len(c.loops) <= index {
		c.loops = append(c.loops, nil)
	}
	if old := c.loops[index]; old != nil {
		fresh.continues(old)
	}
	c.loops[index] = fresh
	// Nobody knows how many will come: multiples of the golden ratio, without the
	// whole part, are spread evenly however many there are (Knuth, 6.4).
	_, part := math.Modf(float64(index) * math.Phi)
	r.spread(ctx, polls, fresh, c.now(), part)
	return nil
}

// spread begins to poll a target, its grid shifted by a part, 0 to 1, of an
// interval, and its baseline by as much of at most a second.
func (r *targetSet) spread(ctx, polls context.Context, l *loop, begin time.Time, part float64) {
	shift := func(d time.Duration) time.Time { return begin.Add(time.Duration(part * float64(d))) }
	r.start(ctx, polls, l, shift(min(l.interval, maxSpread)), shift(l.interval))
}

// errNotRunning is what Add and Remove return when there is nothing to change.
var errNotRunning = errors.New("the run has ended")

// Add begins to poll a target while Run runs. The index is that of its snapshots: a new one, or that of a target that
// was removed, which comes back then and continues its series. Options.Dynamic must be set. It returns when the target
// has been taken up, with an error when the target cannot be polled, ctx is done or the run has ended.
func (c *Collector) Add(ctx context.Context, index int, t Target) error {
	return c.apply(ctx, rosterChange{index: index, target: &t, done: make(chan error, 1)})
}

// Remove ends the polling of a target while Run runs, without a final poll: who removes it knows that it is no
// longer there. A poll that is under way has a second to end. It returns when the last snapshot of the target
// is recorded. A target that is not polled is no error.
func (c *Collector) Remove(ctx context.Context, index int) error {
	return c.apply(ctx, rosterChange{index: index, done: make(chan error, 1)})
}

func (c *Collector) apply(ctx context.Context, ch rosterChange) error {
	if !c.options.Dynamic {
		return errors.New("change targets: Options.Dynamic is not set")
	}
	select {
	case c.changes <- ch:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ended:
		return fmt.Errorf("change targets: %w", errNotRunning)
	}
	return <-ch.done // Run answers at once, or after the grace of a removal
}
