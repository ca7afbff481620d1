package continuity_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
)

// arbitrary makes polls of bytes: each poll has a time, an outcome, and any set of slots with any values. Two bytes in
// three are small steps from the value before, so that decisions are reached and not only refused.
type arbitrary struct {
	data []byte
	bits []uint64
}

func (a *arbitrary) next() byte {
	if len(a.data) == 0 {
		return 0
	}
	b := a.data[0]
	a.data = a.data[1:]
	return b
}

func (a *arbitrary) word() uint64 {
	var b [8]byte
	for i := range b {
		b[i] = a.next()
	}
	return binary.LittleEndian.Uint64(b[:])
}

// dictionary has a unit of each kind, units without a key slot, a gauge, times, and an unknown role.
func dictionary() metric.DictDelta {
	d := metric.DictDelta{Families: []metric.Family{{Name: "a", Type: metric.Counter}, {Name: "i", Type: metric.Counter},
		{Name: "h", Type: metric.Histogram}, {Name: "n", Type: metric.Histogram}, {Name: "s", Type: metric.Summary},
		{Name: "process_start_time_seconds", Type: metric.Gauge}, {Name: "nokey", Type: metric.Histogram},
		{Name: "uptime_seconds", Type: metric.Gauge}}}
	add := func(family int, label string, slots ...metric.SampleID) {
		for i := range slots {
			slots[i].Series = len(d.Series)
		}
		d.Series = append(d.Series, metric.Series{Family: family,
			Labels: metric.NewLabels(metric.Label{Name: "pod", Value: label})})
		d.Slots = append(d.Slots, slots...)
	}
	created := metric.SampleID{Role: metric.RoleCreated}
	for _, pod := range []string{"a", "b", "c"} {
		add(0, pod, metric.SampleID{Role: metric.RoleValue}, created)
	}
	add(1, "", metric.SampleID{Role: metric.RoleValue, Integer: true}, created)
	add(2, "", metric.SampleID{Role: metric.RoleBucket, Bound: 1}, metric.SampleID{Role: metric.RoleBucket, Bound: 2},
		metric.SampleID{Role: metric.RoleCount}, metric.SampleID{Role: metric.RoleSum}, created)
	add(3, "", metric.SampleID{Role: metric.RoleNative, Lower: 1, Bound: 2}, metric.SampleID{Role: metric.RoleCount})
	add(4, "", metric.SampleID{Role: metric.RoleCount}, metric.SampleID{Role: metric.RoleSum},
		metric.SampleID{Role: metric.RoleQuantile, Bound: 0.5})
	add(5, "", metric.SampleID{Role: metric.RoleValue})
	add(6, "", metric.SampleID{Role: metric.RoleBucket, Bound: 1}, metric.SampleID{Role: metric.RoleSum}, created)
	add(7, "", metric.SampleID{Role: metric.RoleValue})
	add(0, "d", metric.SampleID{Role: metric.RoleBucket, Bound: 1}, metric.SampleID{Role: metric.RoleValue})
	return d
}

// snapshot makes the next poll; at is the time of the one before.
func (a *arbitrary) snapshot(at int64, told *int) *metric.Snapshot {
	d := dictionary()
	head := a.next()
	s := &metric.Snapshot{SentNS: at + int64(a.next())*250e6, Outcome: []metric.Outcome{metric.OK, metric.OK,
		metric.Partial, metric.Timeout}[head&3]}
	if *told == 0 {
		s.DictDelta, *told = d, len(d.Slots)
		a.bits = make([]uint64, len(d.Slots))
		for i := range a.bits {
			a.bits[i] = math.Float64bits(float64(100 * i))
			if d.Slots[i].Integer {
				a.bits[i] = 1000
			}
			if d.Slots[i].Role == metric.RoleCreated {
				a.bits[i] = math.Float64bits(1.79e9 - 50)
			}
		}
	}
	s.Delta.Full = head&4 != 0 || at == start
	for id := range d.Slots {
		op := a.next()
		v := math.Float64frombits(a.bits[id])
		switch small := float64(op >> 3); op & 7 {
		case 0, 1:
			v += small
		case 2:
			v -= small
		case 3:
			v = small
		case 4:
			continue // absent, or unchanged
		case 5:
			v = math.Float64frombits(a.word())
		case 6:
			v *= small / 8
		}
		if d.Slots[id].Integer && op&7 != 5 {
			a.bits[id] += uint64(op>>3) - uint64(op&7)
			a.bits[id] &= 1<<40 - 1 // wrapped integers are gains: their differences are checked elsewhere
		} else if !d.Slots[id].Integer {
			a.bits[id] = math.Float64bits(v)
		}
		s.Delta.Slots, s.Delta.Bits = append(s.Delta.Slots, uint32(id)), append(s.Delta.Bits, a.bits[id])
	}
	return s
}

const start = int64(1.79e18)

// FuzzStep feeds arbitrary frames: nothing panics, adjusted slots never fall, and every status has its interval.
func FuzzStep(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x04abcdefghijklmnopqrstuvwxyz0123456789"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		x, a, told, at := newTarget(t), &arbitrary{data: data}, 0, start
		for _, s := range dictionary().Slots {
			x.slots = append(x.slots, slot{series: s.Series, role: s.Role, integer: s.Integer})
		}
		for len(a.data) > 0 {
			s := a.snapshot(at, &told)
			at = s.SentNS
			x.step(s)
		}
		for series := range dictionary().Series {
			for _, from := range []int64{0, start + 1e9, at} {
				v := x.tracker.Verdict(series, from, at)
				i := v.Increase(10)
				if i.Status.Defined() && !(i.Low <= i.Value && i.Value <= i.High) {
					t.Fatalf("%+v of %+v", i, v)
				}
			}
		}
		if s := x.tracker.Target(0, at); s.Processes < 0 || s.Restarts < 0 || len(s.Events) > 1000 {
			t.Fatalf("%+v", s)
		}
	})
}
