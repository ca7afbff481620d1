package normalize_test

import (
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// alternating makes the polls of two processes behind one address, which answer in turn: of the same make-up as
// engine, one of them 1,000 polls further.
func alternating(polls int) []*metric.Snapshot {
	all := engine(polls + 1000)
	state := [2][]uint64{make([]uint64, len(all[0].DictDelta.Slots)), make([]uint64, len(all[0].DictDelta.Slots))}
	apply := func(bits []uint64, d *metric.Delta) {
		for i, id := range d.Slots {
			bits[id] = d.Bits[i]
		}
	}
	for _, s := range all[:1000] {
		apply(state[1], &s.Delta)
	}
	var shown []uint64
	out := make([]*metric.Snapshot, polls)
	for n := range out {
		apply(state[0], &all[n].Delta)
		apply(state[1], &all[n+1000].Delta)
		s := &metric.Snapshot{Seq: uint64(n), SentNS: all[n].SentNS}
		if n == 0 {
			s.DictDelta, s.Delta.Full = all[0].DictDelta, true
			shown = make([]uint64, len(state[0]))
		}
		for id, bits := range state[n%2] {
			if n == 0 || shown[id] != bits {
				s.Delta.Slots, s.Delta.Bits = append(s.Delta.Slots, uint32(id)), append(s.Delta.Bits, bits)
				shown[id] = bits
			}
		}
		out[n] = s
	}
	return out
}

// BenchmarkFoldPolite and BenchmarkFoldAlternating are as many polls of one process and of two in turn, which
// .ci/ratios compares.
func BenchmarkFoldPolite(b *testing.B)      { benchmarkFold(b, engine(600)) }
func BenchmarkFoldAlternating(b *testing.B) { benchmarkFold(b, alternating(600)) }

func benchmarkFold(b *testing.B, polls []*metric.Snapshot) {
	for b.Loop() {
		f, err := normalize.NewFold(normalize.Options{})
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
