package normalize

import (
	"math"

	"github.com/scrapestat/scrapestat/metric"
)

// pauses holds cumulative values still between the parts of a window, so that nothing that was gained there counts: an
// accumulator is given each value less what it gained in the pauses before.
type pauses struct {
	gaps       [][2]int64 // ascending; a poll at the end of one is no longer in it
	in         bool       // the present poll is in the first of them
	raw, given []uint64   // by slot: as the server sent it last, as the accumulator has it
	known      []bool
}

// pausesOf returns those between parts; nil without.
func pausesOf(parts [][2]int64) *pauses {
	p := &pauses{}
	for i := 1; i < len(parts); i++ {
		if parts[i-1][1] < parts[i][0] {
			p.gaps = append(p.gaps, [2]int64{parts[i-1][1], parts[i][0]})
		}
	}
	if p.gaps == nil {
		return nil
	}
	return p
}

// enter moves on to the time of a poll.
func (p *pauses) enter(at int64) {
	for len(p.gaps) > 0 && at >= p.gaps[0][1] {
		p.gaps = p.gaps[1:]
	}
	p.in = len(p.gaps) > 0 && at >= p.gaps[0][0]
}

// hold returns what the accumulator is given of the samples of a poll.
func (p *pauses) hold(f *Accumulator, d *metric.Delta) *metric.Delta {
	more := len(f.slots) - len(p.raw)
	p.raw, p.given = append(p.raw, make([]uint64, more)...), append(p.given, make([]uint64, more)...)
	p.known = append(p.known, make([]bool, more)...)
	out := *d
	out.Bits = make([]uint64, len(d.Bits))
	for i, id := range d.Slots {
		out.Bits[i] = p.value(&f.slots[id], f.cumulative(&f.slots[id]), int(id), d.Bits[i])
	}
	return &out
}

// value is what the accumulator is given of a slot.
func (p *pauses) value(s *slot, cumulative bool, id int, bits uint64) uint64 {
	if !cumulative || !s.finite(bits) {
		return bits
	}
	was, held := p.raw[id], p.given[id]
	p.raw[id] = bits
	switch {
	case !p.known[id]:
		p.known[id], held = true, bits
	case p.in:
	case was == held: // there was no pause yet
		held = bits
	case s.integer:
		held += bits - was
	default:
		held = math.Float64bits(math.Float64frombits(bits) - (math.Float64frombits(was) - math.Float64frombits(held)))
	}
	p.given[id] = held
	return held
}

// torn reports whether a restart was not yet known for one at an edge of a pause: nobody knows on which side it gained.
func (f *Accumulator) torn() bool {
	if f.pauses == nil {
		return false
	}
	for i, p := range f.span.Parts {
		if i > 0 && f.o.Tracker.Pending(p[0]) || i < len(f.span.Parts)-1 && f.o.Tracker.Pending(p[1]) {
			return true
		}
	}
	return false
}

// cumulative reports whether a slot counts.
func (f *Accumulator) cumulative(s *slot) bool {
	return s.kind == kindCounter || s.kind == kindInteger ||
		s.kind == kindHistogram && f.histograms[s.owner].mode != modeGauge
}
