package rundb_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// load makes the polls of a busy server that looks like vLLM: 46 histograms of
// 6 to 23 buckets, creation times, counters and gauges, 1,087 slots in all, of
// which about 68 % change between two polls.
type load struct {
	rnd    *rand.Rand
	growth metric.DictDelta
	hists  []hist
	plain  []uint32 // counters and gauges
	now    []uint64
	last   []uint64
	snap   metric.Snapshot
	idle   bool
	floats []float64
}

type hist struct {
	first  uint32
	bounds []float64
	counts []uint64
	sum    float64
	rate   float64 // observations per poll
	scale  float64
	whole  bool // observations are integers, as numbers of tokens are
}

const loadSlots = 1087

func newLoad(target int, seed uint64) *load {
	l := &load{rnd: rand.New(rand.NewPCG(seed, 7))}
	l.snap.Target = target
	l.snap.DueNS = 1_790_000_000_000_000_000 + int64(target)*3_330_000
	for h := range 46 {
		l.addHist(h)
	}
	for i := 0; len(l.growth.Slots) < loadSlots; i++ {
		f, typ := len(l.growth.Families), metric.Counter
		if i%3 == 2 {
			typ = metric.Gauge
		}
		l.growth.Families = append(l.growth.Families, metric.Family{Name: fmt.Sprintf("vllm:metric_%d", i/3), Type: typ,
			Help: "Number of things that were counted or are now."})
		for engine := 0; engine < 3 && len(l.growth.Slots) < loadSlots; engine++ {
			l.plain = append(l.plain, uint32(len(l.growth.Slots)))
			l.growth.Series = append(l.growth.Series, metric.Series{Family: f, Labels: l.labels(engine)})
			l.growth.Slots = append(l.growth.Slots, metric.SampleID{Series: len(l.growth.Series) - 1})
		}
	}
	l.now = make([]uint64, loadSlots)
	l.last = make([]uint64, loadSlots)
	l.floats = make([]float64, loadSlots)
	return l
}

func (l *load) labels(engine int) metric.Labels {
	return metric.NewLabels(metric.Label{Name: "engine", Value: strconv.Itoa(engine)},
		metric.Label{Name: "model_name", Value: "meta-llama/Llama-3.1-8B-Instruct"})
}

func (l *load) addHist(h int) {
	g := &l.growth
	if h%3 == 0 {
		g.Families = append(g.Families, metric.Family{Name: fmt.Sprintf("vllm:latency_%d_seconds", h/3),
			Type: metric.Histogram, Help: "Histogram of a latency in seconds."})
	}
	series := len(g.Series)
	g.Series = append(g.Series, metric.Series{Family: len(g.Families) - 1, Labels: l.labels(h % 3)})
	x := hist{first: uint32(len(g.Slots)), scale: math.Exp(l.rnd.NormFloat64() * 2), rate: 1.6, whole: h/3%5 == 1 ||
		h/3%5 == 3}
	switch h / 3 {
	case 3:
		x.rate = 30 // tokens of an iteration
	case 7:
		x.rate = 200 // time between tokens
	}
	if x.whole {
		x.scale *= 200
	}
	n := 6 + (h/3*5)%17
	for b := range n {
		bound := x.scale * math.Pow(10, float64(b-n/3)/float64(n)*4)
		x.bounds = append(x.bounds, bound)
		g.Slots = append(g.Slots, metric.SampleID{Series: series, Role: metric.RoleBucket, Bound: bound,
			Text: strconv.FormatFloat(bound, 'g', -1, 64)})
	}
	g.Slots = append(g.Slots, metric.SampleID{Series: series, Role: metric.RoleBucket, Bound: math.Inf(1), Text: "+Inf"})
	for _, r := range []metric.Role{metric.RoleCount, metric.RoleSum, metric.RoleCreated} {
		g.Slots = append(g.Slots, metric.SampleID{Series: series, Role: r})
	}
	x.counts = make([]uint64, n+1)
	l.hists = append(l.hists, x)
}

// step moves the server on by one poll interval.
func (l *load) step() {
	for k := range l.hists {
		h := &l.hists[k]
		for n := int(h.rate*(0.5+l.rnd.Float64()) + l.rnd.Float64()); n > 0; n-- {
			v := h.scale * math.Exp(l.rnd.NormFloat64()*1.1)
			if h.whole {
				v = math.Ceil(v)
			}
			h.sum += v
			b, _ := slices.BinarySearch(h.bounds, v)
			h.counts[b]++
		}
		sum := uint64(0)
		for b, c := range h.counts {
			sum += c
			l.now[int(h.first)+b] = math.Float64bits(float64(sum))
		}
		at := int(h.first) + len(h.counts)
		l.now[at] = math.Float64bits(float64(sum))
		l.now[at+1] = math.Float64bits(h.sum)
		l.now[at+2] = math.Float64bits(1.79e9 + float64(k))
	}
	for i, slot := range l.plain {
		switch i % 27 {
		case 0, 1, 2, 9, 10, 11:
			l.floats[slot] += float64(l.rnd.IntN(40))
		case 6, 7, 8:
			l.floats[slot] = float64(l.rnd.IntN(256))
		case 15:
			l.floats[slot] = float64(l.rnd.IntN(2000)) / 2756
		}
		l.now[slot] = math.Float64bits(l.floats[slot])
	}
}

// next returns the next poll; it is valid until the one after.
func (l *load) next() *metric.Snapshot {
	s := &l.snap
	first := s.SentNS == 0
	if first || !l.idle {
		l.step()
	}
	s.Delta.Full = first
	s.Delta.Slots, s.Delta.Bits = s.Delta.Slots[:0], s.Delta.Bits[:0]
	for i, v := range l.now {
		if first || v != l.last[i] {
			s.Delta.Slots = append(s.Delta.Slots, uint32(i))
			s.Delta.Bits = append(s.Delta.Bits, v)
		}
	}
	copy(l.last, l.now)
	s.DictDelta = metric.DictDelta{}
	if first {
		s.DictDelta = l.growth
	} else {
		s.Seq++
	}
	s.DueNS += 333_000_000
	s.SentNS = s.DueNS + 40_000 + int64(l.rnd.ExpFloat64()*60_000)
	s.FirstByteNS = s.SentNS + 900_000 + int64(l.rnd.ExpFloat64()*200_000)
	s.Duration = time.Duration(s.FirstByteNS-s.SentNS) + 100_000 + time.Duration(l.rnd.ExpFloat64()*30_000)
	s.Status, s.Lines = 200, loadSlots
	if first || !l.idle {
		s.BodyBytes = 110_000 + int64(l.rnd.IntN(60))
	}
	return s
}
