package normalize_test

import (
	"math"
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

const second = int64(1e9)

// changeLog is one line of an exposition.
type changeLog struct {
	family string
	typ    metric.Type
	labels string
	role   metric.Role
	text   string // of the bound
	value  float64
	bits   uint64 // instead of value when whole
	whole  bool
}

func (l changeLog) bitsOf() uint64 {
	if l.whole {
		return l.bits
	}
	return math.Float64bits(l.value)
}

// builder turns polls given as lines into snapshots. full makes every frame a
// full one.
type builder struct {
	full     bool
	families map[string]int
	series   map[string]int
	slots    map[string]uint32
	last     map[uint32]uint64
	seq      uint64
}

func newBuilder(full bool) *builder {
	return &builder{full: full, families: map[string]int{}, series: map[string]int{}, slots: map[string]uint32{}}
}

func boundOf(text string) float64 {
	switch text {
	case "":
		return 0
	case "+Inf":
		return math.Inf(1)
	}
	return number(text)
}

// poll makes the snapshot of a poll at atNS that shows these lines.
func (b *builder) poll(atNS int64, lines []changeLog) *metric.Snapshot {
	s := &metric.Snapshot{Seq: b.seq, SentNS: atNS, FirstByteNS: atNS}
	b.seq++
	now := map[uint32]uint64{}
	for _, l := range lines {
		fk := l.family + "/" + l.typ.String()
		if _, ok := b.families[fk]; !ok {
			b.families[fk] = len(b.families)
			s.DictDelta.Families = append(s.DictDelta.Families, metric.Family{Name: l.family, Type: l.typ})
		}
		sk := fk + "/" + l.labels
		if _, ok := b.series[sk]; !ok {
			b.series[sk] = len(b.series)
			s.DictDelta.Series = append(s.DictDelta.Series, metric.Series{Family: b.families[fk],
				Labels: metric.NewLabels(metric.Label{Name: "l", Value: l.labels})})
		}
		id := sk + "/" + l.role.String() + "/" + l.text
		if _, ok := b.slots[id]; !ok {
			b.slots[id] = uint32(len(b.slots))
			s.DictDelta.Slots = append(s.DictDelta.Slots, metric.SampleID{Series: b.series[sk], Role: l.role, Text: l.text,
				Bound: boundOf(l.text), Integer: l.whole})
		}
		now[b.slots[id]] = l.bitsOf()
	}
	b.frame(&s.Delta, now)
	return s
}

func (b *builder) frame(f *metric.Delta, now map[uint32]uint64) {
	f.Full = b.full || b.last == nil || len(now) != len(b.last)
	for id := range now {
		if _, ok := b.last[id]; !ok {
			f.Full = true
		}
	}
	for id, bits := range now {
		if old, ok := b.last[id]; f.Full || !ok || old != bits {
			f.Slots = append(f.Slots, id)
		}
	}
	slices.Sort(f.Slots)
	for _, id := range f.Slots {
		f.Bits = append(f.Bits, now[id])
	}
	b.last = now
}

// poll is one poll of a target.
type poll struct {
	at    int64
	lines []changeLog
}

// fold runs polls through a fold.
func fold(t testing.TB, o normalize.Options, end int64, full bool, polls []poll) *normalize.Result {
	t.Helper()
	f, err := normalize.NewFold(o)
	if err != nil {
		t.Fatal(err)
	}
	b := newBuilder(full)
	for _, p := range polls {
		if err := f.Add(b.poll(p.at, p.lines)); err != nil {
			t.Fatal(err)
		}
	}
	return f.Result(end)
}

// each makes one poll per sample, every second from the time from.
func each[T any](from float64, samples []T, lines func(T) []changeLog) []poll {
	var out []poll
	for i, v := range samples {
		out = append(out, poll{int64(from*1e9) + int64(i)*second, lines(v)})
	}
	return out
}

func counterLine(v float64) []changeLog {
	return []changeLog{{family: "c", typ: metric.Counter, value: v}}
}
func gaugeLine(v float64) []changeLog { return []changeLog{{family: "g", typ: metric.Gauge, value: v}} }

// hist is a histogram sample; a sum or count of -Inf is left out.
type hist struct {
	sum, count float64
	buckets    map[string]float64
}

func (h hist) lines() []changeLog {
	var out []changeLog
	var keys []string
	for le := range h.buckets {
		keys = append(keys, le)
	}
	slices.Sort(keys)
	for _, le := range keys {
		out = append(out, changeLog{family: "h", typ: metric.Histogram, role: metric.RoleBucket, text: le,
			value: h.buckets[le]})
	}
	if !math.IsInf(h.sum, -1) {
		out = append(out, changeLog{family: "h", typ: metric.Histogram, role: metric.RoleSum, value: h.sum})
	}
	if !math.IsInf(h.count, -1) {
		out = append(out, changeLog{family: "h", typ: metric.Histogram, role: metric.RoleCount, value: h.count})
	}
	return out
}

func histLines(h hist) []changeLog { return h.lines() }

// near reports whether two numbers agree to 1e-9, relative.
func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) || math.IsNaN(a) && math.IsNaN(b)
}

func nearAll(a, b []float64) bool { return slices.EqualFunc(a, b, near) }
