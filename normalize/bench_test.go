package normalize_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// engine makes the polls of a server with the make-up of an inference engine:
// histograms with 19 finite buckets, counters and gauges, 1,087 slots, of which
// about two thirds change at each poll.
func engine(polls int) []*metric.Snapshot {
	const histograms, buckets, counters, gauges = 40, 20, 140, 67
	rng := rand.New(rand.NewPCG(1, 2))
	var lines []changeLog
	for i := range histograms {
		l := changeLog{family: "h" + strconv.Itoa(i), typ: metric.Histogram, role: metric.RoleBucket}
		for k := range buckets - 1 {
			l.text = strconv.FormatFloat(0.1*float64(k+1), 'g', -1, 64)
			lines = append(lines, l)
		}
		l.text = "+Inf"
		lines = append(lines, l)
		l.text, l.role = "", metric.RoleSum
		lines = append(lines, l)
		l.role = metric.RoleCount
		lines = append(lines, l)
	}
	for i := range counters {
		lines = append(lines, changeLog{family: "c" + strconv.Itoa(i), typ: metric.Counter})
	}
	for i := range gauges {
		lines = append(lines, changeLog{family: "g" + strconv.Itoa(i), typ: metric.Gauge})
	}
	b := newBuilder(false)
	out := make([]*metric.Snapshot, polls)
	for n := range out {
		for i := range histograms {
			h := lines[i*(buckets+2) : (i+1)*(buckets+2)]
			if rng.Float64() < 0.15 {
				continue
			}
			for range 1 + rng.IntN(8) {
				at := rng.IntN(buckets - 2)
				for k := at; k < buckets; k++ {
					h[k].value++
				}
				h[buckets].value += 0.1 * (float64(at) + rng.Float64())
				h[buckets+1].value++
			}
		}
		rest := lines[histograms*(buckets+2):]
		for i := range rest {
			if i < counters && i%2 == 0 {
				rest[i].value += float64(rng.IntN(50))
			} else if i >= counters && i%3 == 0 {
				rest[i].value = rng.Float64()
			}
		}
		out[n] = b.poll(int64(n)*int64(time.Second)/3, lines)
	}
	return out
}

// BenchmarkFold folds 8 targets of 1,087 slots over 1,800 polls.
func BenchmarkFold(b *testing.B) {
	polls := engine(1800)
	changed := 0
	for _, p := range polls {
		changed += len(p.Delta.Slots)
	}
	run := func(name string, o normalize.Options) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for range 8 {
					f, err := normalize.NewFold(o)
					if err != nil {
						b.Fatal(err)
					}
					for _, p := range polls {
						if err := f.Add(p); err != nil {
							b.Fatal(err)
						}
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/8/float64(changed), "ns/changed")
			b.ReportMetric(float64(changed)/float64(len(polls)*1087), "changed")
		})
	}
	run("plain", normalize.Options{StartNS: int64(10 * time.Second)})
	run("linear", normalize.Options{StartNS: int64(10 * time.Second), Estimator: "linear"})
	run("slices", normalize.Options{StartNS: int64(10 * time.Second), Slice: time.Second})
	run("clamp", normalize.Options{StartNS: int64(10 * time.Second), Resets: normalize.ResetClamp})
}

// BenchmarkFoldAdjusted and BenchmarkFoldAsSent are the same polite polls with and without the decisions of a tracker,
// which .ci/ratios compares.
func BenchmarkFoldAdjusted(b *testing.B) {
	benchmarkPolls(b, func(_ *continuity.Tracker, f *normalize.Accumulator, p *metric.Snapshot) error { return f.Add(p) })
}

func BenchmarkFoldAsSent(b *testing.B) {
	benchmarkPolls(b, func(t *continuity.Tracker, f *normalize.Accumulator, p *metric.Snapshot) error {
		if !p.DictDelta.Empty() { // a poll that is not stored only teaches the dictionary
			if _, err := t.Step(&metric.Snapshot{Outcome: metric.Timeout, DictDelta: p.DictDelta}); err != nil {
				return err
			}
		}
		return f.AddStep(p, nil)
	})
}

func benchmarkPolls(b *testing.B, add func(*continuity.Tracker, *normalize.Accumulator, *metric.Snapshot) error) {
	polls := engine(600)
	for b.Loop() {
		tracker := continuity.New(continuity.Options{})
		f, err := normalize.NewFold(normalize.Options{StartNS: int64(10 * time.Second), Tracker: tracker})
		if err != nil {
			b.Fatal(err)
		}
		for _, p := range polls {
			if err := add(tracker, f, p); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkResult makes the result of one target.
func BenchmarkResult(b *testing.B) {
	polls := engine(1800)
	run := func(name string, o normalize.Options) {
		b.Run(name, func(b *testing.B) {
			f, err := normalize.NewFold(o)
			if err != nil {
				b.Fatal(err)
			}
			for _, p := range polls {
				if err := f.Add(p); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				f.Result(0)
			}
		})
	}
	run("plain", normalize.Options{})
	run("slices", normalize.Options{Slice: time.Second})
}

// A changed counter or histogram allocates nothing once its series is known.
func TestSteadyState(t *testing.T) {
	polls := engine(300)
	f, err := normalize.NewFold(normalize.Options{Slice: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	add := func() {
		if err := f.Add(polls[next]); err != nil {
			t.Fatal(err)
		}
		next++
	}
	for next < 50 {
		add()
	}
	// Gauges keep their changes and slices their rows: both grow by doubling.
	if allocs := testing.AllocsPerRun(200, add); allocs > 0 {
		t.Errorf("got %v allocations per poll, want next to none", allocs)
	}
}
