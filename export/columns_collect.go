package export

import (
	"context"
	"fmt"

	"github.com/scrapestat/scrapestat/metric"
)

// columnBatchSource is one target of a recording as it is read, possibly several times.
type columnBatchSource struct {
	rec      Recording
	target   int // within rec
	endpoint int // within the run
	url      string
	keep     func(series int) bool // which series are wanted

	next  int   // the first series that was not collected yet
	polls int32 // stored polls of the first pass; later passes stop there; -1 before
	done  bool
}

// collect reads the recording once and returns the next stripe, with as many
// series as fit into budget bytes, at least one. A recording that grows
// meanwhile is read only as far as the first pass came, so that stripes agree.
func (src *columnBatchSource) collect(ctx context.Context, budget int) (*columnBatch, error) {
	c := columnBatchCollector{from: src.next, to: noPoll, budget: budget, keep: src.keep}
	for s, err := range src.rec.Snapshots(ctx, src.target) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && int32(len(c.times)) != src.polls {
			err = c.add(s)
		}
		if err != nil {
			return nil, fmt.Errorf("read recording of %s: %w", src.url, err)
		}
		if int32(len(c.times)) == src.polls {
			break
		}
	}
	st := &columnBatch{target: src.target, endpoint: src.endpoint, dict: &c.dict, from: c.from, to: min(c.to, len(c.dict.Series)),
		times: c.times, logs: c.logs, bytes: c.bytes}
	src.polls, src.next, src.done = int32(len(c.times)), st.to, st.last()
	return st, nil
}

// columnBatchCollector turns a stream of snapshots round. When the logs outgrow the budget
// it gives up series from the end, which a later pass collects.
type columnBatchCollector struct {
	dict     metric.Schema
	logs     []changeLog
	times    []int64
	from, to int
	keep     func(series int) bool
	kept     []int32 // series that are collected, ascending
	bytes    int
	budget   int
}

// add takes over a snapshot; failed polls hold no samples.
func (c *columnBatchCollector) add(s *metric.Snapshot) error {
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
			c.bytes += l.set(n, s.Delta.Bits[i])
		}
	}
	for slot := range s.Delta.Absent(len(c.logs)) {
		if l := &c.logs[slot]; l.kept {
			c.bytes += l.vanish(n)
		}
	}
	c.times = append(c.times, s.AtNS())
	for c.bytes > c.budget && len(c.kept) > 1 {
		c.deferSeries()
	}
	return nil
}

// grow makes logs for what is new in the dictionary.
func (c *columnBatchCollector) grow(g *metric.DictDelta) {
	for series := len(c.dict.Series) - len(g.Series); series < len(c.dict.Series); series++ {
		if c.wants(series) {
			c.kept = append(c.kept, int32(series))
		}
	}
	for i := range g.Slots {
		s := &g.Slots[i]
		c.logs = append(c.logs, changeLog{integer: s.Integer, kept: c.wants(s.Series)})
	}
}

func (c *columnBatchCollector) wants(series int) bool {
	return series >= c.from && series < c.to && c.keep(series)
}

// deferSeries leaves the last series to a later pass.
func (c *columnBatchCollector) deferSeries() {
	series := c.kept[len(c.kept)-1]
	c.kept = c.kept[:len(c.kept)-1]
	c.to = int(series)
	for _, slot := range c.dict.SlotsOf(int(series)) {
		c.bytes -= c.logs[slot].drop()
	}
}
