package serve

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/scrapestat/scrapestat/internal/column"
	"github.com/scrapestat/scrapestat/metric"
)

// series is one series of the index: slots of a target, or what is known of its polls or its run.
type series struct {
	labels labels.Labels
	target *target // nil of those of a run
	run    *run
	parts  []part                 // of families whose series have the same labels, in order of time
	ofPoll func(poll) (v float64) // of series that the server of Prometheus makes
	spans  [][2]int64             // of series of a run: when they are 1, not shifted
}

// part is a slot of a series, or a native histogram.
type part struct {
	family int
	slots  []int32
	native bool
}

// names of the series that are made here.
const (
	upName       = "up"
	durationName = "scrape_duration_seconds"
	scrapedName  = "scrape_samples_scraped"
	phaseName    = "scrapestat_phase"
	infoName     = "scrapestat_run_info"
)

func promLabels(set metric.Labels) labels.Labels {
	b := labels.NewScratchBuilder(8)
	for n, v := range set.All() {
		b.Add(strings.ToValidUTF8(n, "\uFFFD"), strings.ToValidUTF8(v, "\uFFFD"))
	}
	b.Sort()
	return b.Labels()
}

func (s *store) add(x *series) {
	name := x.labels.Get(metric.NameLabel)
	s.byName[name] = append(s.byName[name], x)
}

// indexTarget adds the series of a target.
func (s *store) indexTarget(t *target) {
	made := map[string]func(poll) float64{
		upName:       func(p poll) float64 { return float64(min(p.stored, 0) + 1) },
		durationName: func(p poll) float64 { return p.seconds },
		scrapedName:  func(p poll) float64 { return float64(p.lines) },
	}
	own := metric.NewLabels(t.labels...)
	byLabels := map[metric.Labels]*series{}
	for name, of := range made {
		set := own.Join(metric.NewLabels(metric.Label{Name: metric.NameLabel, Value: name}))
		byLabels[set] = &series{labels: promLabels(set), target: t, run: t.run, ofPoll: of}
		s.add(byLabels[set])
	}
	put := func(set metric.Labels, p part) {
		x := byLabels[set]
		if x == nil {
			x = &series{labels: promLabels(set), target: t, run: t.run}
			byLabels[set] = x
			s.add(x)
		}
		if x.ofPoll == nil {
			x.parts = append(x.parts, p)
		}
	}
	for i := range t.dict.Series {
		f := t.dict.FamilyOf(i)
		slots := t.dict.SlotsOf(i)
		native := slices.ContainsFunc(slots, func(n int32) bool { return t.dict.Slots[n].Role == metric.RoleNative })
		classic := slices.ContainsFunc(slots, func(n int32) bool { return t.dict.Slots[n].Role == metric.RoleBucket })
		if native {
			bare := metric.SampleID{Role: metric.RoleValue}
			plain := *f
			plain.Suffix = ""
			put(bare.PromSeries(&plain, t.dict.Series[i].Labels, t.labels), part{t.dict.Series[i].Family, slots, true})
		}
		for _, n := range slots {
			slot := &t.dict.Slots[n]
			if slot.Role.Metadata() || slot.Role == metric.RoleNative || native && !classic {
				continue
			}
			put(slot.PromSeries(f, t.dict.Series[i].Labels, t.labels), part{t.dict.Series[i].Family, []int32{n}, false})
		}
	}
}

// indexRun adds the series of a run as a whole.
func (s *store) indexRun(r *run) {
	set := map[string]string{"run": r.Name}
	for name, value := range s.o.Labels {
		set[name] = value
	}
	from, to := r.span()
	add := func(name string, more map[string]string, spans [][2]int64) {
		all := metric.LabelsFromMap(set).Join(metric.LabelsFromMap(more)).
			Join(metric.NewLabels(metric.Label{Name: metric.NameLabel, Value: name}))
		s.add(&series{labels: promLabels(all), run: r, spans: spans})
	}
	from, to = from-r.shiftMS, to-r.shiftMS
	add(infoName, r.rec.Meta().Tags, [][2]int64{{from, to + 1}})
	phases := map[string][][2]int64{}
	marks := r.rec.Marks()
	for i, m := range marks {
		end := to
		if i+1 < len(marks) {
			end = marks[i+1].AtNS / 1e6
		}
		if m.Name != metric.MarkEnd && end > m.AtNS/1e6 {
			phases[m.Name] = append(phases[m.Name], [2]int64{m.AtNS / 1e6, end})
		}
	}
	for name, spans := range phases {
		add(phaseName, map[string]string{"phase": name}, spans)
	}
}

// Labels implements storage.Series.
func (x *series) Labels() labels.Labels { return x.labels }

// Iterator implements storage.Series.
func (x *series) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	it := &iterator{series: x, at: -1, shift: x.run.shiftMS}
	if x.target == nil {
		it.polls = x.run.marks(x.spans)
		return it
	}
	it.polls = x.target.polls
	for _, p := range x.parts {
		list := make([]column.Cursor, len(p.slots))
		for i, n := range p.slots {
			if l := x.target.logs[n]; l != nil {
				list[i] = l.Cursor()
			} else {
				list[i] = new(column.Log).Cursor() // of a family that appeared after the query began
			}
		}
		it.cursors = append(it.cursors, list)
	}
	return it
}

// marks are polls at the interval of the run within spans, each of which ends with one that failed.
func (r *run) marks(spans [][2]int64) (out []poll) {
	step := max(r.rec.Meta().Interval.Milliseconds(), 1000)
	for _, span := range spans {
		for ms := span[0]; ms < span[1]; ms += step {
			out = append(out, poll{ms: ms})
		}
		out = append(out, poll{ms: span[1], stored: pollEnd})
	}
	return out
}

// staleNaN marks the end of a series.
const staleNaN = 0x7ff0000000000002

// iterator walks the samples of a series, staleness markers among them. It is bounded by the polls there were when it
// was made.
type iterator struct {
	*series
	polls   []poll
	cursors [][]column.Cursor // by part
	at      int               // in polls
	shift   int64
	shown   bool // the present sample is a value
	value   float64
	native  int // the part that a present histogram is of, else -1
}

// Next implements chunkenc.Iterator.
func (it *iterator) Next() chunkenc.ValueType {
	for {
		was := it.shown
		if it.at++; it.at >= len(it.polls) {
			it.at = len(it.polls)
			return chunkenc.ValNone
		}
		it.apply()
		switch {
		case it.shown && it.native >= 0:
			return chunkenc.ValFloatHistogram
		case it.shown:
			return chunkenc.ValFloat
		case was:
			it.value = math.Float64frombits(staleNaN)
			return chunkenc.ValFloat
		}
	}
}

// apply moves to the present poll.
func (it *iterator) apply() {
	p := &it.polls[it.at]
	it.shown, it.native = false, -1
	switch {
	case it.ofPoll != nil:
		it.shown = p.stored != pollEnd
		it.value = it.ofPoll(*p)
		return
	case it.target == nil:
		it.shown, it.value = p.stored != pollEnd, 1
		return
	case p.stored < 0:
		return
	}
	for i, list := range it.cursors { // the later family wins
		for k := range list {
			c := &list[k]
			c.To(p.stored)
			if !c.Present {
				continue
			}
			if it.native = -1; it.parts[i].native {
				it.native = i
			}
			it.shown, it.value = true, c.Value()
		}
	}
}

// milliseconds has a name of its own so that vet does not take Seek for that of files.
type milliseconds = int64

// Seek implements chunkenc.Iterator.
func (it *iterator) Seek(t milliseconds) chunkenc.ValueType {
	if it.at >= 0 && it.at < len(it.polls) && it.AtT() >= t {
		if it.shown && it.native >= 0 {
			return chunkenc.ValFloatHistogram
		}
		return chunkenc.ValFloat
	}
	i, _ := slices.BinarySearchFunc(it.polls, t-it.shift, func(p poll, ms int64) int { return cmp.Compare(p.ms, ms) })
	if i-1 > it.at {
		it.at = i - 1
		it.apply()
	}
	return it.Next()
}

// At implements chunkenc.Iterator.
func (it *iterator) At() (int64, float64) { return it.AtT(), it.value }

// AtT implements chunkenc.Iterator.
func (it *iterator) AtT() int64 { return it.polls[it.at].ms + it.shift }

// AtST implements chunkenc.Iterator.
func (it *iterator) AtST() int64 { return 0 }

// Err implements chunkenc.Iterator.
func (it *iterator) Err() error { return nil }

// AtHistogram implements chunkenc.Iterator.
func (it *iterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	return it.AtT(), nil
}

// AtFloatHistogram implements chunkenc.Iterator.
func (it *iterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	t := it.target
	p := it.parts[it.native]
	h := nativeHistogram(t.dict, p.slots, it.cursors[it.native])
	if t.dict.Families[p.family].Type == metric.GaugeHistogram {
		h.CounterResetHint = histogram.GaugeType
	}
	return it.AtT(), h
}
