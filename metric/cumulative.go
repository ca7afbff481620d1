package metric

import "math"

// Cumulative is a value that only grows, such as a counter, followed over the restarts of the process that counts it.
// Its adjusted value never falls: after a restart it is what was reached before plus the new count. Integers wrap
// around, which differences do not notice. It decides nothing: the caller says when there was a restart.
type Cumulative[T float64 | uint64] struct {
	Last T // the last sample
	Ref  T // the adjusted value that gains count from
	base T // what was reached before the last restart
}

// Begin takes the first sample, from which gains count.
func (c *Cumulative[T]) Begin(v T) { *c = Cumulative[T]{Last: v, Ref: v} }

// Open makes the last sample the one that gains count from.
func (c *Cumulative[T]) Open() { c.Begin(c.Last) }

// Restart begins to count from zero: before is the last sample before that, and
// first the first one after it, which gains nothing when it is negative.
func (c *Cumulative[T]) Restart(before, first T) { c.base += before - min(first, 0) }

// Value returns the adjusted value of the last sample.
func (c *Cumulative[T]) Value() T { return c.base + c.Last }

// Gained returns what a value that only grows gained between two samples. If it
// fell it was restarted and the second sample is all gain, even a negative one.
func Gained(before, now float64) (gained float64, fell bool) {
	if now-before < 0 {
		return now, true
	}
	return now - before, false
}

// Created is the creation time that a server states of a series, in seconds since
// 1970. The zero value is one not stated yet.
type Created struct {
	Moved bool // it changed; who counts from zero then sets it back
	known bool
	at    float64
}

// Set takes the time as of one poll and reports whether it is another than before. One that is not finite is ignored.
func (c *Created) Set(at float64) bool {
	if at-at != 0 || c.known && at == c.at {
		return false
	}
	moved := c.known
	c.at, c.known, c.Moved = at, true, c.Moved || moved
	return moved
}

// Since reports whether the series was created at an instant or after it.
func (c *Created) Since(ns int64) bool { return c.known && c.at >= float64(ns)/1e9 }

// NS returns the time in nanoseconds, to a microsecond; 0 when it is unknown or cannot be a time since 1970.
func (c *Created) NS() int64 {
	if c.at <= 0 || c.at >= 9e9 {
		return 0
	}
	return int64(math.Round(c.at*1e6)) * 1000
}
