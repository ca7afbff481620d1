package column

import (
	"context"
	"fmt"
	"iter"

	"github.com/scrapestat/scrapestat/metric"
)

// Recording is what a source reads: the polls of a target in time order, each valid until the next.
type Recording interface {
	Snapshots(ctx context.Context, target int) iter.Seq2[*metric.Snapshot, error]
}

// Source is one target of a recording as it is read, possibly several times.
type Source struct {
	Recording Recording
	Target    int                   // within Recording
	Endpoint  int                   // handed on to batches
	URL       string                // for errors
	Keep      func(series int) bool // which series are wanted
	Done      bool                  // all of them were collected

	next  int   // the first series that was not collected yet
	again bool  // this is not the first pass
	polls int32 // stored polls of the first pass; later passes stop there
}

// Collect reads the recording once and returns the next batch, with as many series as fit into budget bytes, at least
// one. A recording that grows meanwhile is read only as far as the first pass came, so that batches agree.
func (src *Source) Collect(ctx context.Context, budget int) (*Batch, error) {
	c := collector{from: src.next, to: noPoll, budget: budget, keep: src.Keep}
	for s, err := range src.Recording.Snapshots(ctx, src.Target) {
		full := src.again && int32(len(c.times)) == src.polls
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && !full {
			err = c.add(s)
		}
		if err != nil {
			return nil, fmt.Errorf("read recording of %s: %w", src.URL, err)
		}
		if src.again && int32(len(c.times)) == src.polls {
			break
		}
	}
	b := &Batch{Endpoint: src.Endpoint, Schema: &c.dict, From: c.from, To: min(c.to, len(c.dict.Series)),
		Times: c.times, Bytes: c.bytes, logs: c.logs}
	src.again, src.polls, src.next, src.Done = true, int32(len(c.times)), b.To, b.To == len(c.dict.Series)
	return b, nil
}

// collector turns a stream of snapshots round. When the logs outgrow the budget
// it gives up series from the end, which a later pass collects.
type collector struct {
	dict     metric.Schema
	logs     []Log
	times    []int64
	from, to int
	keep     func(series int) bool
	kept     []int32 // series that are collected, ascending
	bytes    int
	budget   int
}

// add takes over a snapshot; failed polls hold no samples.
func (c *collector) add(s *metric.Snapshot) error {
	if err := c.dict.Extend(s); err != nil {
		return fmt.Errorf("poll %d: %w", s.Seq, err)
	}
	c.grow(&s.DictDelta)
	if !s.Outcome.Stored() {
		return nil
	}
	n := int32(len(c.times))
	for i, slot := range s.Delta.Slots {
		if l := &c.logs[slot]; l.kept {
			c.bytes += l.Set(n, s.Delta.Bits[i])
		}
	}
	for slot := range s.Delta.Absent(len(c.logs)) {
		if l := &c.logs[slot]; l.kept {
			c.bytes += l.Vanish(n)
		}
	}
	c.times = append(c.times, s.AtNS())
	for c.bytes > c.budget && len(c.kept) > 1 {
		c.deferSeries()
	}
	return nil
}

// grow makes logs for what is new in the dictionary.
func (c *collector) grow(g *metric.DictDelta) {
	for series := len(c.dict.Series) - len(g.Series); series < len(c.dict.Series); series++ {
		if c.wants(series) {
			c.kept = append(c.kept, int32(series))
		}
	}
	for i := range g.Slots {
		s := &g.Slots[i]
		c.logs = append(c.logs, Log{integer: s.Integer, kept: c.wants(s.Series)})
	}
}

func (c *collector) wants(series int) bool {
	return series >= c.from && series < c.to && c.keep(series)
}

// deferSeries leaves the last series to a later pass.
func (c *collector) deferSeries() {
	series := c.kept[len(c.kept)-1]
	c.kept = c.kept[:len(c.kept)-1]
	c.to = int(series)
	for _, slot := range c.dict.SlotsOf(int(series)) {
		c.bytes -= c.logs[slot].drop()
	}
}
