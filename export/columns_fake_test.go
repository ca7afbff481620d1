package export_test

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// point is one line of a fake poll.
type point struct {
	family  string
	typ     metric.Type
	labels  metric.Labels
	role    metric.Role
	bound   float64
	integer bool
	bits    uint64
}

func gaugePoint(family string, v float64, labels ...string) point {
	return point{family: family, typ: metric.Gauge, labels: labelsOf(labels), bits: math.Float64bits(v)}
}

func counterPoint(family string, v float64, labels ...string) point {
	return point{family: family, typ: metric.Counter, labels: labelsOf(labels), bits: math.Float64bits(v)}
}

func integerPoint(family string, v uint64, labels ...string) point {
	return point{family: family, typ: metric.Counter, labels: labelsOf(labels), integer: true, bits: v}
}

// summaryPoint is a quantile, which AIPerf's layout has no place for.
func summaryPoint(family string, v float64) point {
	return point{family: family, typ: metric.Summary, role: metric.RoleQuantile, bound: 0.99, bits: math.Float64bits(v)}
}

// histogramPoints has the bounds 0.5, 1, 2 ... and +Inf.
func histogramPoints(family string, sum float64, cumulative []float64, labels ...string) []point {
	points := make([]point, 0, len(cumulative)+2)
	p := point{family: family, typ: metric.Histogram, labels: labelsOf(labels), role: metric.RoleBucket, bound: 0.5}
	for i, c := range cumulative {
		if i == len(cumulative)-1 {
			p.bound = math.Inf(1)
		}
		p.bits = math.Float64bits(c)
		points = append(points, p)
		p.bound *= 2
	}
	p.bound = 0
	p.role, p.bits = metric.RoleSum, math.Float64bits(sum)
	points = append(points, p)
	p.role, p.bits = metric.RoleCount, math.Float64bits(cumulative[len(cumulative)-1])
	return append(points, p)
}

func labelsOf(pairs []string) metric.Labels {
	var labels []metric.Label
	for i := 0; i < len(pairs); i += 2 {
		labels = append(labels, metric.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	return metric.NewLabels(labels...)
}

// tape is a recording of one target that is written poll by poll in a test.
type tape struct {
	target metric.Target
	dict   metric.Schema
	polls  []metric.Snapshot
	last   map[uint32]uint64
	ids    map[point]uint32
}

func newTape(url string) *tape {
	return &tape{target: metric.Target{URL: url, Source: "prometheus"}, ids: map[point]uint32{}}
}

// poll adds a stored poll.
func (t *tape) poll(atNS int64, points ...point) {
	s := metric.Snapshot{Seq: uint64(len(t.polls)), SentNS: atNS - 1e6, FirstByteNS: atNS, Outcome: metric.OK}
	now := map[uint32]uint64{}
	for _, p := range points {
		now[t.slot(&s.DictDelta, p)] = p.bits
	}
	if err := t.dict.Grow(&s.DictDelta); err != nil {
		panic(err)
	}
	same := len(now) == len(t.last)
	for slot := range now {
		_, had := t.last[slot]
		same = same && had
	}
	s.Delta.Full = !same || t.last == nil
	for slot, bits := range now {
		if was, had := t.last[slot]; s.Delta.Full || !had || was != bits {
			s.Delta.Slots = append(s.Delta.Slots, slot)
		}
	}
	slices.Sort(s.Delta.Slots)
	for _, slot := range s.Delta.Slots {
		s.Delta.Bits = append(s.Delta.Bits, now[slot])
	}
	t.last = now
	t.polls = append(t.polls, s)
}

// fail adds a poll without samples.
func (t *tape) fail(atNS int64) {
	t.polls = append(t.polls, metric.Snapshot{Seq: uint64(len(t.polls)), SentNS: atNS, Outcome: metric.Timeout})
}

// slot returns the slot of p, adding to g what is new.
func (t *tape) slot(g *metric.DictDelta, p point) uint32 {
	p.bits = 0
	if id, ok := t.ids[p]; ok {
		return id
	}
	match := func(f metric.Family) bool { return f.Name == p.family && f.Type == p.typ }
	families := append(slices.Clone(t.dict.Families), g.Families...)
	family := slices.IndexFunc(families, match)
	if family < 0 {
		family = len(families)
		g.Families = append(g.Families, metric.Family{Name: p.family, Type: p.typ, Help: "Help of " + p.family + "."})
	}
	all := append(slices.Clone(t.dict.Series), g.Series...)
	series := slices.Index(all, metric.Series{Family: family, Labels: p.labels})
	if series < 0 {
		series = len(all)
		g.Series = append(g.Series, metric.Series{Family: family, Labels: p.labels})
	}
	text := ""
	if p.role == metric.RoleBucket {
		text = strconv.FormatFloat(p.bound, 'g', -1, 64)
	}
	id := uint32(len(t.dict.Slots) + len(g.Slots))
	g.Slots = append(g.Slots, metric.SampleID{Series: series, Role: p.role, Bound: p.bound, Text: text,
		Integer: p.integer})
	t.ids[p] = id
	return id
}

// Targets and Snapshots make a tape a recording.
func (t *tape) Targets() []metric.Target { return []metric.Target{t.target} }

func (t *tape) Snapshots(ctx context.Context, _ int) iter.Seq2[*metric.Snapshot, error] {
	return func(yield func(*metric.Snapshot, error) bool) {
		for i := range t.polls {
			s := t.polls[i]
			s.Delta.Bits = slices.Clone(s.Delta.Bits)
			if !yield(&s, nil) {
				return
			}
			clear(s.Delta.Bits) // who keeps a snapshot sees it change
		}
	}
}

// runOf is a run over the window in which every series of the tapes has
// statistics, which the tables do not look at.
func runOf(startNS, endNS int64, tapes ...*tape) *summary.Run {
	r := &summary.Run{ID: "0a1b", Version: "1.2.3", Window: summary.Window{Phase: metric.PhaseProfiling,
		StartNS: startNS, EndNS: endNS},
		Phases: []summary.Phase{{Name: metric.PhaseWarmup, EndNS: startNS}, {Name: metric.PhaseProfiling, StartNS: startNS,
			EndNS: endNS}}}
	for endpoint, t := range tapes {
		e := summary.Endpoint{Target: t.target, StartNS: startNS, EndNS: endNS}
		for i := range t.polls {
			if s := &t.polls[i]; s.Outcome.Stored() {
				if e.Fetches.Total == 0 {
					e.Fetches.FirstNS = s.AtNS()
				}
				e.Fetches.Total++
				e.Fetches.LastUpdateNS = s.AtNS()
			}
		}
		r.Endpoints = append(r.Endpoints, e)
		for i := range t.dict.Series {
			addSeries(r, endpoint, i, t.dict.FamilyOf(i), t.dict.Series[i].Labels)
		}
	}
	slices.SortFunc(r.Metrics, func(a, b summary.Metric) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type, b.Type))
	})
	return r
}

func addSeries(r *summary.Run, endpoint, index int, f *metric.Family, labels metric.Labels) {
	s := summary.Series{Endpoint: endpoint, Labels: labels, Series: normalize.Series{Index: index}}
	for i := range r.Metrics {
		if m := &r.Metrics[i]; m.Name == f.Name && m.Type == f.Type {
			m.Series = append(m.Series, s)
			return
		}
	}
	r.Metrics = append(r.Metrics, summary.Metric{Name: f.Name, Type: f.Type, Help: f.Help, Unit: "seconds",
		Series: []summary.Series{s}})
}
