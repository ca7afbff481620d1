package rundb

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/metric"
)

// These tests are inside the package because a database file around every
// input would make fuzzing a thousand times slower.

// fuzzDict is a dictionary with every role, with two histograms interleaved.
func fuzzDict() *metric.DictDelta {
	g := &metric.DictDelta{Families: make([]metric.Family, 2), Series: []metric.Series{{}, {}, {Family: 1}}}
	for _, role := range []metric.Role{metric.RoleBucket, metric.RoleBucket, metric.RoleBucket, metric.RoleCount,
		metric.RoleSum, metric.RoleCreated} {
		g.Slots = append(g.Slots, metric.SampleID{Series: 0, Role: role}, metric.SampleID{Series: 1, Role: role})
	}
	for i := range 30 {
		g.Slots = append(g.Slots, metric.SampleID{Series: 2, Role: metric.RoleQuantile, Integer: i%2 == 0})
	}
	return g
}

// FuzzBlock feeds any sections to the decoder of polls: it must not panic, must
// not use memory out of proportion, and must deliver frames that keep the
// contract. What it accepts, encoded again, decodes to the same.
func FuzzBlock(f *testing.F) {
	for _, b := range fuzzSeeds() {
		f.Add(b.head, b.op, b.num, b.bits)
	}
	f.Add([]byte{flagKey | flagSet | flagFull, 0, 0, 0, 0, 0, 0, 0, 1}, []byte{1, 0, 42, 0xf9}, []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, head, op, num, bits []byte) {
		defer fuzzbound.Check(t)()
		var d decoder
		d.grow(fuzzDict())
		var again encoder
		again.grow(fuzzDict())
		c := &cursor{sections: sections{head, op, num, bits}}
		var p pollState
		var out []*metric.Snapshot
		for range 1000 {
			s, ok := fuzzPoll(c, &d, &p)
			if !ok {
				break
			}
			if err := s.Delta.Check(len(d.bits)); err != nil {
				t.Fatal(err)
			}
			out = append(out, s)
		}
		recode(t, &again, out)
	})
}

func fuzzPoll(c *cursor, d *decoder, p *pollState) (*metric.Snapshot, bool) {
	s := &metric.Snapshot{}
	flags, _, err := p.readPoll(c, s)
	if err != nil {
		return nil, false
	}
	if s.Outcome.Stored() {
		if err := d.readSamples(c, flags, false, &s.Delta); err != nil {
			return nil, false
		}
	}
	return s, true
}

// recode encodes polls and decodes them again.
func recode(t *testing.T, e *encoder, polls []*metric.Snapshot) {
	t.Helper()
	var b sections
	var p, q pollState
	for _, s := range polls {
		fuzzEncode(e, &b, &p, s, false)
	}
	var d decoder
	d.grow(fuzzDict())
	c := &cursor{sections: b}
	for i, want := range polls {
		got, ok := fuzzPoll(c, &d, &q)
		if !ok {
			t.Fatalf("poll %d of %d cannot be decoded: %v", i, len(polls), c.err)
		}
		if got.SentNS != want.SentNS || got.Seq != want.Seq || got.Duration != want.Duration || got.Outcome != want.Outcome {
			t.Fatalf("poll %d: got %+v, want %+v", i, got, want)
		}
		for k, slot := range got.Delta.Slots {
			if at := slices.Index(want.Delta.Slots, slot); at < 0 || want.Delta.Bits[at] != got.Delta.Bits[k] {
				t.Fatalf("poll %d, slot %d: got %x of %+v", i, slot, got.Delta.Bits[k], want.Delta)
			}
		}
	}
	if c.size() != 0 {
		t.Fatalf("%d bytes left over", c.size())
	}
}

func fuzzEncode(e *encoder, b *sections, p *pollState, s *metric.Snapshot, key bool) {
	n, flags := 0, byte(0)
	if s.Outcome.Stored() {
		n, flags = e.appendSamples(b, &s.Delta, key)
	}
	b.head = p.appendPoll(b.head, s, flags)
	if s.Outcome.Stored() {
		b.head = binary.AppendUvarint(b.head, uint64(n))
	}
}

// fuzzSeeds are some encoded streams.
func fuzzSeeds() []sections {
	var out []sections
	for seed := range 4 {
		var e encoder
		e.grow(fuzzDict())
		var b sections
		var p pollState
		for i := range 6 {
			s := &metric.Snapshot{Seq: uint64(i), DueNS: int64(i) * 333e6, SentNS: int64(i)*333e6 + 5,
				FirstByteNS: int64(i)*333e6 + 9, Duration: 44}
			if i == 3 {
				s.Outcome = metric.Timeout
			}
			s.Delta.Full = i == 0 || i == 4
			for slot := range len(e.bits) {
				if s.Delta.Full || (slot+i+seed)%3 == 0 {
					s.Delta.Slots = append(s.Delta.Slots, uint32(slot))
					s.Delta.Bits = append(s.Delta.Bits, math.Float64bits(float64(slot*i)+float64(seed)/3))
				}
			}
			if s.Outcome.Stored() {
				fuzzEncode(&e, &b, &p, s, i == 0)
			} else {
				s.Delta = metric.Delta{}
				fuzzEncode(&e, &b, &p, s, false)
			}
		}
		out = append(out, b)
	}
	return out
}

// FuzzTail feeds any bytes to the reader of tail rows, with a checksum that fits.
func FuzzTail(f *testing.F) {
	g := &segment{sections: fuzzSeeds()[0]}
	f.Add(g.appendTail(nil, 0, lengths{}))
	f.Add([]byte{1, 2, 3, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzbound.Check(t)()
		if len(data) > 0 {
			if err := readTail(data, func(tailRecord) {}); err == nil && len(data) > 4 {
				t.Skip("the fuzzer found a checksum")
			}
		}
		total := 0
		err := readTail(sealTail(bytes.Clone(data)), func(r tailRecord) { total += r.sections.size() })
		if total > len(data) {
			t.Fatalf("%d bytes out of %d, %v", total, len(data), err)
		}
	})
}

// FuzzSlots reads arbitrary bytes as a row of table slots; what can be read is
// written again and must say the same.
func FuzzSlots(f *testing.F) {
	some := []metric.SampleID{{Series: 2, Role: metric.RoleBucket, Bound: 0.5, Text: "0.5"},
		{Role: metric.RoleBucket, Bound: math.Inf(1), Text: "+Inf"},
		{Series: 1, Role: metric.RoleNative, Bound: 1, Lower: -2}, {Integer: true}}
	f.Add(appendSlots(nil, some), 4)
	f.Add(appendSlots(nil, some[:1]), 2)
	f.Add([]byte{0x80, 0, 10, 0, 0, 0, 0, 0, 0, 240, 63, 1, 2}, 1)
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		defer fuzzbound.Check(t)()
		slots, err := readSlots(nil, data, n, 100)
		if err != nil {
			return
		}
		again := appendSlots(nil, slots)
		got, err := readSlots(nil, again, n, 100)
		if err != nil || !bytes.Equal(appendSlots(nil, got), again) {
			t.Fatalf("%v reads as %v, then as %v, %v", data, slots, got, err)
		}
	})
}
