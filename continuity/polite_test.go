package continuity_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
)

// engine makes polls of a server that counted to base before,
// with counters and histograms of 12 buckets that all move, and gauges.
func engine(polls, counters, histograms int, base float64) []*metric.Snapshot {
	x, rng := newTarget(nil), rand.New(rand.NewPCG(1, 2))
	values := slices.Repeat([]float64{base}, counters)
	buckets := make([][]float64, histograms)
	out := make([]*metric.Snapshot, polls)
	for n := range out {
		for i := range values {
			values[i] += float64(rng.IntN(9))
			x.set(fmt.Sprintf("c%d_total", i), "counter", values[i])
			x.set(fmt.Sprintf("g%d", i), "gauge", rng.Float64())
		}
		for i := range buckets {
			if buckets[i] == nil {
				buckets[i] = slices.Repeat([]float64{base}, 12)
			}
			at := rng.IntN(12)
			for b := range buckets[i] {
				if b >= at {
					buckets[i][b]++
				}
				x.set(fmt.Sprintf(`h%d_bucket{le="%d"}`, i, b), "histogram", buckets[i][b])
			}
			x.set(fmt.Sprintf("h%d_count", i), "histogram", buckets[i][11])
			x.set(fmt.Sprintf("h%d_sum", i), "histogram", buckets[i][11]/2)
		}
		x.set("process_start_time_seconds", "gauge", 1.79e9)
		s := &metric.Snapshot{Seq: uint64(n), SentNS: start + int64(n)*1e9}
		x.b.Finish(s)
		out[n] = s.Clone()
	}
	return out
}

// While nothing happens the delta of a step is that of its snapshot, and a poll allocates nothing.
func TestPolite(t *testing.T) {
	polls := engine(300, 40, 40, 0)
	tracker := continuity.New(continuity.Options{})
	next := 0
	step := func() {
		s, err := tracker.Step(polls[next])
		if err != nil {
			t.Fatal(err)
		}
		if d := &polls[next].Delta; len(d.Bits) > 0 && &s.Delta.Bits[0] != &d.Bits[0] || len(s.Events)+len(s.Born) > 0 {
			t.Fatalf("poll %d: copied, or %+v", next, s)
		}
		next++
	}
	for next < 100 {
		step()
	}
	if n := testing.AllocsPerRun(150, step); n != 0 {
		t.Errorf("%v allocations a poll", n)
	}
	if s := tracker.Target(0, polls[299].SentNS); s.Status != continuity.OK || s.Processes != 1 || len(s.Events) > 0 {
		t.Errorf("%+v", s)
	}
}

// After a restart a polite poll allocates nothing either, and its delta lists what changed and no more.
func TestPoliteAfterRestart(t *testing.T) {
	first, second := engine(50, 20, 5, 5000), engine(200, 20, 5, 0)
	tracker := continuity.New(continuity.Options{})
	for _, s := range first {
		if _, err := tracker.Step(s); err != nil {
			t.Fatal(err)
		}
	}
	at := 0
	step := func() {
		s := *second[at]
		s.SentNS += 60e9
		if at == 0 {
			s.DictDelta = metric.DictDelta{} // known already
		}
		out, err := tracker.Step(&s)
		if err != nil {
			t.Fatal(err)
		}
		if at > 10 && !slices.Equal(out.Delta.Slots, s.Delta.Slots) {
			t.Fatalf("poll %d lists %d slots of %d", at, len(out.Delta.Slots), len(s.Delta.Slots))
		}
		at++
	}
	for at < 40 {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations a poll", n)
	}
	if s := tracker.Target(0, start+600e9); s.Restarts != 1 || s.Status != continuity.Corrected {
		t.Errorf("%+v", s)
	}
}

// BenchmarkStep takes polite polls of 2,001 slots, of which some change; a poll costs what changed.
func BenchmarkStep(b *testing.B) {
	polls := engine(600, 200, 120, 0)
	changed := 0
	for _, s := range polls {
		changed += len(s.Delta.Slots)
	}
	b.ReportAllocs()
	for b.Loop() {
		tracker := continuity.New(continuity.Options{})
		for _, s := range polls {
			if _, err := tracker.Step(s); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(changed), "ns/changed")
}

// A polite poll costs what changed and not what is there: 20 changes among 20,000 counters cost about what they cost
// among 40. Both are measured in one run.
func TestCostOfChanges(t *testing.T) {
	fastest := func(counters int) time.Duration {
		x := newTarget(t)
		for i := range counters {
			x.set(fmt.Sprintf("c%d_total", i), "counter", 1000)
		}
		x.poll(1.79e9, metric.OK)
		s := &metric.Snapshot{SentNS: start}
		best := time.Hour
		for n := range 3000 {
			s.SentNS += 1e9
			s.Delta = metric.Delta{Slots: s.Delta.Slots[:0], Bits: s.Delta.Bits[:0]}
			for i := range 20 {
				s.Delta.Slots = append(s.Delta.Slots, uint32(i))
				s.Delta.Bits = append(s.Delta.Bits, math.Float64bits(1001+float64(n)))
			}
			begin := time.Now()
			if _, err := x.tracker.Step(s); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(begin))
		}
		return best
	}
	few, many := fastest(40), fastest(20000)
	t.Logf("%v among 40, %v among 20,000", few, many)
	if many > 10*few {
		t.Errorf("%v among 20,000 counters, %v among 40", many, few)
	}
}
