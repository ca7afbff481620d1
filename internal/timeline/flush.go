package timeline

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// sample is one value at an instant.
type sample struct {
	series *Series
	bits   uint64
}

// Begin tells the sink where time begins, if that was not done yet. Flush does it with the earliest sample it has.
func (t *Timeline) Begin(firstNS int64) error {
	if t.begun {
		return nil
	}
	t.begun = true
	return t.sink.Begin(firstNS)
}

// Flush gives all samples that were added since the last one to the sink, the polls of each target in order of time.
// What is added later and is not newer is dropped. An error is that of the sink or of ctx.
func (t *Timeline) Flush(ctx context.Context) error {
	first, any := int64(math.MaxInt64), false
	for _, g := range t.order {
		for _, s := range g.all {
			if len(s.at) > 0 {
				first, any = min(first, slices.Min(s.at)), true
			}
		}
	}
	if !any {
		return nil
	}
	if err := t.Begin(first); err != nil {
		return err
	}
	// Targets enter the run in the order of their names, whatever the order of the answers was.
	fresh := slices.SortedFunc(slices.Values(t.order), func(a, b *target) int {
		return cmp.Or(cmp.Compare(min(a.index, 0), min(b.index, 0)), a.id.Compare(b.id))
	})
	for _, g := range fresh {
		if err := t.flushTarget(ctx, g); err != nil {
			return err
		}
	}
	t.held = 0
	return nil
}

func (t *Timeline) flushTarget(ctx context.Context, g *target) error {
	times := g.times()
	if len(times) == 0 {
		return nil
	}
	if g.index < 0 {
		var err error
		if g.index, err = t.sink.AddTarget(t.describe(g.id)); err != nil {
			return err
		}
	}
	samples, ends := g.arrange(times)
	for _, s := range g.all {
		s.at, s.bits = s.at[:0], s.bits[:0]
	}
	from := 0
	for i, at := range times {
		if i%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := t.emit(g, at, samples[from:ends[i]]); err != nil {
			return err
		}
		from = ends[i]
	}
	return nil
}

// times returns the instants of the waiting samples, ascending.
func (g *target) times() []int64 {
	seen := map[int64]struct{}{}
	var times, before []int64
	for _, s := range g.all {
		for i, at := range s.at {
			// Nearly all series of a target have the same column of times.
			if i < len(before) && before[i] == at {
				continue
			}
			if _, ok := seen[at]; !ok {
				seen[at] = struct{}{}
				times = append(times, at)
			}
		}
		if len(s.at) > 0 {
			before = s.at
		}
	}
	slices.Sort(times)
	return times
}

// arrange sorts the waiting samples by instant, in linear time: those of times[i] end at ends[i].
func (g *target) arrange(times []int64) (samples []sample, ends []int) {
	ends = make([]int, len(times)+1)
	each := func(visit func(i int, s *Series, k int)) {
		for _, s := range g.all {
			next := 0
			for k, at := range s.at {
				if next >= len(times) || times[next] != at {
					next, _ = slices.BinarySearch(times, at)
				}
				visit(next, s, k)
				next++
			}
		}
	}
	total := 0
	each(func(i int, _ *Series, _ int) { ends[i+1]++; total++ })
	for i := range times {
		ends[i+1] += ends[i]
	}
	samples = make([]sample, total)
	each(func(i int, s *Series, k int) {
		samples[ends[i]] = sample{s, s.bits[k]}
		ends[i]++
	})
	return samples, ends[:len(times)]
}

// emit gives one instant of a target to the sink.
func (t *Timeline) emit(g *target, at int64, samples []sample) error {
	if at <= g.lastNS {
		for _, x := range samples {
			t.drop(g, "out_of_order", x.series.name)
		}
		return nil
	}
	s := metric.Snapshot{Target: g.index, Seq: g.seq, DueNS: at, SentNS: at}
	values, down := 0, false
	for _, x := range samples {
		if x.bits == staleBits {
			t.stats.Stale++
			continue
		}
		if x.series.slot < 0 {
			t.place(x.series)
		}
		values++
		switch v := math.Float64frombits(x.bits); x.series.special {
		case isUp:
			down = v == 0
		case isDuration:
			if v > 0 && v < 3600 {
				s.Duration = time.Duration(v * 1e9)
			}
		}
	}
	if values == 0 { // only staleness markers: the series of the target have ended
		return nil
	}
	if t.o.Step > 0 && g.seq > 0 && at-g.lastNS < int64(t.o.Step) {
		t.stats.Thinned++
		return nil
	}
	if down {
		s.Outcome, s.Err = metric.ConnectError, "the server that recorded this could not scrape the target (up is 0)"
		t.stats.Failed++
	} else {
		s.FirstByteNS = at
		t.fill(g, &s, samples)
	}
	g.lastNS = at
	g.seq++
	if t.stats.Polls++; t.stats.Polls == 1 {
		t.stats.FirstNS, t.stats.LastNS = at, at
	}
	t.stats.FirstNS, t.stats.LastNS = min(t.stats.FirstNS, at), max(t.stats.LastNS, at)
	return t.sink.Record(&s)
}

// fill puts the values of an instant and the drops so far into a snapshot.
func (t *Timeline) fill(g *target, s *metric.Snapshot, samples []sample) {
	g.instants++
	for _, x := range samples {
		if x.bits == staleBits {
			continue
		}
		if x.series.reason != "" {
			t.drop(g, x.series.reason, x.series.name)
			continue
		}
		slot := x.series.slot
		if g.setIn[slot] == g.instants {
			if g.gatherer.Bits(slot) == x.bits {
				t.stats.Repeated++
			} else {
				t.drop(g, "duplicate_sample", x.series.name)
			}
			continue
		}
		g.setIn[slot] = g.instants
		g.gatherer.Set(slot, math.Float64frombits(x.bits))
		t.stats.Stored++
	}
	g.gatherer.Finish(s)
	s.Lose(g.drops)
	g.drops = nil
}
