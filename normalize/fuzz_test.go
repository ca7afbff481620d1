package normalize_test

import (
	"math"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// bytesOf hands out the bytes of a fuzz input, zeros after its end.
type bytesOf struct{ data []byte }

func (b *bytesOf) next() byte {
	if len(b.data) == 0 {
		return 0
	}
	v := b.data[0]
	b.data = b.data[1:]
	return v
}

// value makes a number of one byte, among them the awkward ones.
func (b *bytesOf) value() float64 {
	odd := [...]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64,
		math.SmallestNonzeroFloat64, 1e300, -1e300, 1 << 53, 0.1}
	if v := int(b.next()); v >= len(odd) {
		return float64(v)
	} else {
		return odd[v]
	}
}

// growth invents a dictionary entry or two, not always a sensible one.
func (b *bytesOf) growth(d *metric.Schema) metric.DictDelta {
	var g metric.DictDelta
	kind := b.next()
	if kind%4 == 0 || len(d.Families) == 0 {
		g.Families = append(g.Families, metric.Family{Name: "f", Type: metric.Type(b.next() % 9)})
	}
	if families := len(d.Families) + len(g.Families); kind%3 == 0 || len(d.Series) == 0 {
		g.Series = append(g.Series, metric.Series{Family: int(b.next()) % families})
	}
	series := len(d.Series) + len(g.Series)
	for range kind % 8 {
		g.Slots = append(g.Slots, metric.SampleID{Series: int(b.next()) % series, Role: metric.Role(b.next() % 7),
			Bound: b.value(), Integer: b.next()%5 == 0})
	}
	return g
}

// fuzzResult returns nil when the fold refused the stream.
func fuzzResult(t *testing.T, data []byte, mode uint8) *normalize.Result {
	o := normalize.Options{StartNS: int64(mode%4) * second, Resets: normalize.ResetMode(mode / 4 % 2),
		SliceQuantiles: mode&64 != 0}
	if mode&8 != 0 {
		o.Slice = time.Duration(mode>>4+1) * time.Second / 4
	}
	if mode&16 != 0 {
		o.EndNS = o.StartNS + int64(mode>>5)*second
	}
	f, err := normalize.NewFold(o)
	if err != nil {
		t.Fatal(err)
	}
	b := &bytesOf{data}
	var d metric.Schema
	at := int64(0)
	for len(b.data) > 0 {
		at += int64(b.next()) * second / 64
		s := &metric.Snapshot{SentNS: at, Outcome: metric.Outcome(b.next() % 3)}
		if b.next()%3 == 0 {
			s.DictDelta = b.growth(&d)
			if err := d.Grow(&s.DictDelta); err != nil {
				t.Fatal(err)
			}
		}
		s.Delta.Full = b.next()%3 == 0
		for id := range d.Slots {
			if b.next()%3 != 0 {
				s.Delta.Slots = append(s.Delta.Slots, uint32(id))
				s.Delta.Bits = append(s.Delta.Bits, math.Float64bits(b.value()))
			}
		}
		if err := f.Add(s); err != nil {
			return nil
		}
		if len(b.data)%7 == 0 {
			f.Result(at)
		}
	}
	return f.Result(0)
}
