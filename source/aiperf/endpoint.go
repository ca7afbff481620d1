package aiperf

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/internal/timeline"
	"github.com/scrapestat/scrapestat/metric"
)

// endpoint is one target of the file.
type endpoint struct {
	target   int
	memory   *metric.MemoryShare
	gatherer metric.SnapshotBuilder
	series   map[seriesKey]int
	waiting  []*record // ascending
	setIn    []uint64  // by slot: the poll that gave it
	seq      uint64
	lastNS   int64
	drops    []metric.Drop
}

type seriesKey struct {
	name   string
	typ    metric.Type
	labels metric.Labels
}

// seriesOf returns the index of a series; refused is why there is no room for one that is new.
func (e *endpoint) seriesOf(f metric.Family, labels metric.Labels, lines, limit int) (index int, refused string) {
	key := seriesKey{f.Name, f.Type, labels}
	if index, ok := e.series[key]; ok {
		return index, ""
	}
	if len(e.setIn)+lines > limit {
		return 0, "series_limit"
	}
	if !e.memory.Take(lines, labels.Size()) {
		return 0, "memory_limit"
	}
	if f.Type == metric.Counter || f.Type == metric.Info {
		f.Suffix = metric.SuffixUnknown // AIPerf keeps names without it
	}
	index = e.gatherer.Series(e.gatherer.AddFamily(f), labels)
	if e.series == nil {
		e.series = map[seriesKey]int{}
	}
	e.series[key] = index
	return index, ""
}

// bound is the text of a bucket bound and what it means.
type bound struct {
	value float64
	ok    bool
}

// maxBounds bounds the memory for texts that a file makes up.
const maxBounds = 100_000

func (i *reader) bound(text string) bound {
	b, ok := i.bounds[text]
	if !ok {
		b.value, b.ok = timeline.ParseBound(text)
		if len(i.bounds) < maxBounds {
			i.bounds[strings.Clone(text)] = b
		}
	}
	return b
}

// emitFirst gives the earliest waiting poll of an endpoint to the sink.
func (i *reader) emitFirst(e *endpoint) error {
	rec := e.waiting[0]
	e.waiting = slices.Delete(e.waiting, 0, 1)
	if e.seq > 0 && rec.AtNS < e.lastNS {
		for _, f := range rec.Metrics {
			for k := range f.series {
				i.drop(e, "out_of_order", f.name, f.series[k].lines())
			}
		}
		return nil
	}
	if i.o.Step > 0 && e.seq > 0 && rec.AtNS-e.lastNS < int64(i.o.Step) {
		i.stats.Thinned++
		return nil
	}
	s := metric.Snapshot{Target: e.target, Seq: e.seq, DueNS: rec.SentNS, SentNS: rec.SentNS, FirstByteNS: rec.AtNS,
		Duration: time.Duration(rec.TookNS)}
	if rec.SentNS == 0 || rec.SentNS > rec.AtNS {
		s.DueNS, s.SentNS = rec.AtNS, rec.AtNS
	}
	e.seq++
	e.lastNS = rec.AtNS
	i.fill(e, rec)
	e.gatherer.Finish(&s)
	s.Lose(e.drops)
	e.drops = nil
	if i.stats.Polls++; i.stats.Polls == 1 {
		i.stats.FirstNS, i.stats.LastNS = rec.AtNS, rec.AtNS
	}
	i.stats.FirstNS, i.stats.LastNS = min(i.stats.FirstNS, rec.AtNS), max(i.stats.LastNS, rec.AtNS)
	return i.sink.Record(&s)
}

// fill gives the values of a line to the gatherer.
func (i *reader) fill(e *endpoint, rec *record) {
	keep, drop := i.o.Keep, i.o.Drop
	for _, f := range rec.Metrics {
		filtered := keep != nil && !keep.MatchString(f.name) || drop != nil && drop.MatchString(f.name)
		for k := range f.series {
			x := &f.series[k]
			reason := i.check(f.name, x)
			if filtered {
				reason = metric.DropFiltered
			}
			if reason != "" {
				i.drop(e, reason, f.name, x.lines())
				continue
			}
			i.store(e, f.name, x)
		}
	}
}

// lines is how many samples a series has.
func (x *series) lines() int {
	n := len(x.Buckets)
	for _, v := range []*float64{x.Value, x.Sum, x.Count} {
		if v != nil {
			n++
		}
	}
	return max(n, 1)
}

// check says why a series cannot be stored; "" when it can.
func (i *reader) check(name string, x *series) string {
	l := &i.o.Limits
	switch {
	case name == "" || len(name) > l.NameLength:
		return "name_length"
	case len(x.Labels) > l.Labels:
		return "label_limit"
	case len(x.Buckets) > l.Buckets:
		return "bucket_limit"
	case x.Value == nil && x.Buckets == nil && x.Sum == nil && x.Count == nil:
		return "no_value"
	}
	for n, v := range x.Labels {
		if len(n) > l.NameLength || len(v) > l.ValueLength {
			return "label_length"
		}
	}
	return ""
}

// family returns what is known of the family of a series.
func (i *reader) family(name string, x *series) metric.Family {
	f := i.o.Types.Families[name]
	switch {
	case x.Value == nil:
		f.Type = metric.Histogram
	case f.Type == metric.Histogram || f.Type == metric.Summary:
		f.Type = metric.Unknown
	case f.Name != "":
	case i.o.Counters != nil && i.o.Counters.MatchString(name):
		f.Type = metric.Counter
	default:
		i.untyped[name] = true
	}
	return f
}

// store gives the values of one series to the gatherer.
func (i *reader) store(e *endpoint, name string, x *series) {
	f := i.family(name, x)
	f.Name, f.Help = name, timeline.Clean(f.Help, 4096)
	g := &e.gatherer
	s, refused := e.seriesOf(f, metric.LabelsFromMap(x.Labels), x.lines(), i.o.Limits.Series)
	if refused != "" {
		i.drop(e, refused, name, x.lines())
		return
	}
	set := func(slot metric.SampleID, v float64) {
		if len(e.setIn) >= i.o.Limits.Series && !g.Known(s, slot) {
			i.drop(e, "series_limit", name, 1)
			return
		}
		at := g.Slot(s, slot)
		for len(e.setIn) <= at {
			e.setIn = append(e.setIn, 0)
		}
		if e.setIn[at] == e.seq {
			i.drop(e, "duplicate_sample", name, 1)
			return
		}
		e.setIn[at] = e.seq
		g.Set(at, v)
		i.stats.Stored++
	}
	if x.Value != nil {
		set(metric.SampleID{Role: metric.RoleValue}, *x.Value)
	}
	texts := make([]string, 0, len(x.Buckets))
	for text := range x.Buckets {
		if !i.bound(text).ok {
			i.drop(e, "bad_bound", name, 1)
			continue
		}
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(a, b string) int {
		return cmp.Or(cmp.Compare(i.bound(a).value, i.bound(b).value), strings.Compare(a, b))
	})
	for _, text := range texts {
		set(metric.SampleID{Role: metric.RoleBucket, Bound: i.bound(text).value, Text: text}, x.Buckets[text])
	}
	if x.Sum != nil {
		set(metric.SampleID{Role: metric.RoleSum}, *x.Sum)
	}
	if x.Count != nil {
		set(metric.SampleID{Role: metric.RoleCount}, *x.Count)
	}
}

// drop counts samples that are not stored.
func (i *reader) drop(e *endpoint, reason, name string, lines int) {
	if reason != metric.DropFiltered {
		i.stats.Dropped += int64(lines)
	}
	e.drops = metric.AddDrop(e.drops, reason, lines, func() string { return timeline.Clean(name, 200) })
}
