package rundb_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// source draws the polls of a target that keep the contract of package metric
// and are otherwise as strange as can be.
type source struct {
	target  int
	dict    metric.Schema
	present []bool
	bits    []uint64
	seq     uint64
	due     int64
	stored  bool
}

var oddFloats = []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 1e300, math.Inf(1), math.Inf(-1), math.NaN(),
	1<<53 - 1, 1 << 53, -1<<53 + 1, -1 << 53, 1<<53 + 2, 1 << 63, -1 << 63, 1 << 62, math.MaxFloat64, 5e-324}

// value draws the bits of a slot that had the bits last.
func value(t *rapid.T, integer bool, last uint64) uint64 {
	switch rapid.IntRange(0, 5).Draw(t, "kind of value") {
	case 0:
		return rapid.Uint64().Draw(t, "bits")
	case 1:
		if integer {
			return last + uint64(rapid.Int64().Draw(t, "step"))
		}
		return math.Float64bits(rapid.SampledFrom(oddFloats).Draw(t, "odd"))
	case 2:
		if !integer {
			return math.Float64bits(math.Float64frombits(last) + rapid.Float64().Draw(t, "more"))
		}
	case 3:
		return 0x7ff8_0000_0000_0000 | rapid.Uint64Range(1, 1<<51-1).Draw(t, "NaN payload")
	}
	step := rapid.IntRange(-3, 300).Draw(t, "small step")
	if integer {
		return last + uint64(step)
	}
	return math.Float64bits(math.Float64frombits(last) + float64(step))
}

// grow draws new entries of the dictionary.
func (x *source) grow(t *rapid.T) metric.DictDelta {
	var g metric.DictDelta
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a\x00b", "\xff\xfe", "é", "<script>"}))
	for range rapid.IntRange(0, 2).Draw(t, "families") {
		g.Families = append(g.Families, metric.Family{Name: text.Draw(t, "name"),
			Type: metric.Type(rapid.IntRange(0, 7).Draw(t, "type")),
			Help: text.Draw(t, "help"), Unit: text.Draw(t, "unit")})
	}
	if n := len(x.dict.Families) + len(g.Families); n > 0 {
		for range rapid.IntRange(0, 3).Draw(t, "series") {
			l := metric.LabelsFromMap(rapid.MapOfN(text, text, 0, 3).Draw(t, "labels"))
			g.Series = append(g.Series, metric.Series{Family: rapid.IntRange(0, n-1).Draw(t, "family"), Labels: l})
		}
	}
	if n := len(x.dict.Series) + len(g.Series); n > 0 {
		for range rapid.IntRange(0, 9).Draw(t, "slots") {
			s := metric.SampleID{Series: rapid.IntRange(0, n-1).Draw(t, "series of slot"),
				Role: metric.Role(rapid.IntRange(0, 5).Draw(t, "role"))}
			s.Integer = rapid.IntRange(0, 3).Draw(t, "integer") == 0
			s.Bound = rapid.OneOf(rapid.Just(0.0), rapid.Float64(), rapid.SampledFrom(oddFloats)).Draw(t, "bound")
			s.Text = rapid.OneOf(rapid.Just(fmt.Sprint(s.Bound)), text).Draw(t, "text")
			g.Slots = append(g.Slots, s)
		}
	}
	return g
}

// next draws a poll.
func (x *source) next(t *rapid.T) *metric.Snapshot {
	s := &metric.Snapshot{Target: x.target, Seq: x.seq, Kind: metric.Kind(rapid.IntRange(0, 3).Draw(t, "kind"))}
	x.seq += rapid.SampledFrom([]uint64{1, 1, 1, 2, 1 << 40}).Draw(t, "seq step")
	x.due += rapid.OneOf(rapid.Just(int64(333e6)), rapid.Int64()).Draw(t, "due step")
	s.DueNS = x.due
	s.SentNS = s.DueNS + rapid.Int64Range(-5, 1e9).Draw(t, "late")
	s.FirstByteNS = rapid.SampledFrom([]int64{0, s.SentNS + 1e6, s.SentNS - 7}).Draw(t, "first byte")
	s.Duration = time.Duration(rapid.Int64Range(0, 1e10).Draw(t, "took"))
	s.Outcome = rapid.SampledFrom([]metric.Outcome{metric.OK, metric.OK, metric.OK, metric.Partial, metric.Timeout,
		metric.HTTPError}).Draw(t, "outcome")
	s.Status = rapid.SampledFrom([]int{0, 200, 200, 500}).Draw(t, "status")
	s.BodyBytes, s.Lines = rapid.Int64Range(0, 1<<40).Draw(t, "bytes"), rapid.IntRange(0, 1000).Draw(t, "lines")
	s.Duplicate = rapid.Bool().Draw(t, "duplicate")
	if s.Outcome != metric.OK {
		s.Err = rapid.String().Draw(t, "err")
	}
	if rapid.IntRange(0, 4).Draw(t, "drops") == 0 {
		s.Drops = []metric.Drop{{Reason: "parse", Lines: 3, First: "line 7"}, {Reason: "limit", Lines: 1}}
		s.Warnings = []metric.Warning{{Code: "x", Text: rapid.String().Draw(t, "warning")}}
	}
	if s.Outcome.Stored() {
		x.samples(t, s)
	}
	if n := len(x.dict.Series); n > 0 && rapid.IntRange(0, 3).Draw(t, "observes") == 0 {
		for range rapid.IntRange(1, 4).Draw(t, "observations") {
			s.Observations = append(s.Observations, metric.Observation{Series: rapid.IntRange(0, n-1).Draw(t, "series"),
				AtNS: rapid.Int64().Draw(t, "at"), Value: 0 + rapid.Float64().Draw(t, "observed"), // SQLite has no -0
				Requests: rapid.SampledFrom([][]string{nil, {"a"}, {"a", "b", ""}}).Draw(t, "requests")})
		}
	}
	return s
}

// samples draws the growth and the frame.
func (x *source) samples(t *rapid.T, s *metric.Snapshot) {
	if rapid.IntRange(0, 3).Draw(t, "grows") == 0 {
		s.DictDelta = x.grow(t)
	}
	if err := x.dict.Grow(&s.DictDelta); err != nil {
		t.Fatal(err)
	}
	n := len(x.dict.Slots) - len(x.bits)
	x.bits, x.present = append(x.bits, make([]uint64, n)...), append(x.present, make([]bool, n)...)
	s.Delta.Full = !x.stored || n > 0 || rapid.IntRange(0, 7).Draw(t, "full") == 0
	x.stored = true
	for i := range x.bits {
		if s.Delta.Full {
			x.present[i] = rapid.IntRange(0, 9).Draw(t, "present") > 0
		}
		if !x.present[i] {
			continue
		}
		v := x.bits[i]
		if rapid.IntRange(0, 2).Draw(t, "changes") > 0 {
			v = value(t, x.dict.Slots[i].Integer, v)
		}
		if s.Delta.Full || v != x.bits[i] {
			s.Delta.Slots, s.Delta.Bits = append(s.Delta.Slots, uint32(i)), append(s.Delta.Bits, v)
		}
		x.bits[i] = v
	}
}

// TestAnyStream records random streams of two targets and reads them back bit
// for bit, in the middle and at the end.
func TestAnyStream(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		w, err := rundb.Create(dir, rundb.Meta{}, rundb.WriterOptions{BlockPolls: rapid.IntRange(1, 12).Draw(rt,
			"polls per block")})
		if err != nil {
			rt.Fatal(err)
		}
		defer w.Close(t.Context())
		sources := []*source{{target: 0}, {target: 1}}
		var want [2][]*metric.Snapshot
		for i := range sources {
			if _, err := w.AddTarget(metric.Target{Name: rapid.String().Draw(rt, "target"), URL: "u", Source: "s"}); err != nil {
				rt.Fatalf("target %d: %v", i, err)
			}
		}
		for range rapid.IntRange(1, 12).Draw(rt, "polls") {
			x := rapid.SampledFrom(sources).Draw(rt, "source")
			s := x.next(rt)
			want[x.target] = append(want[x.target], s.Clone())
			if err := w.Record(s); err != nil {
				rt.Fatal(err)
			}
			s.Delta.Slots, s.DictDelta = slices.Insert(s.Delta.Slots, 0, 9), metric.DictDelta{} // it is ours again
			if rapid.IntRange(0, 14).Draw(rt, "flush") == 0 {
				if err := w.Flush(t.Context()); err != nil {
					rt.Fatal(err)
				}
				readBack(rt, dir, want[:])
			}
		}
		if err := w.Close(t.Context()); err != nil {
			rt.Fatal(err)
		}
		readBack(rt, dir, want[:])
	})
}

func readBack(t *rapid.T, dir string, want [][]*metric.Snapshot) {
	r, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for k := range want {
		i := 0
		for s, err := range r.Snapshots(t.Context(), k) {
			if err != nil {
				t.Fatal(err)
			}
			if d := diff(want[k][i], s); d != "" {
				t.Fatalf("target %d, poll %d (-want +got):\n%s", k, i, d)
			}
			i++
		}
		if i != len(want[k]) {
			t.Fatalf("target %d: got %d polls, want %d; warnings %v", k, i, len(want[k]), r.Warnings())
		}
	}
}
