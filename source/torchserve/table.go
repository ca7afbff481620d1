package torchserve

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// table holds what prometheus mode would show: the sums of counters and
// histograms since the source began, and the last value of gauges.
type table struct {
	specs    map[string]*Spec // of metrics.yaml
	defaults map[string]*Spec
	buckets  map[string][]float64 // by metric name
	limit    int                  // of series

	families map[string]*family
	series   map[seriesKey]*series
	order    []*series
	gather   metric.SnapshotBuilder
	events   []metric.Observation // of the poll that runs
	warnings []metric.Warning
	said     map[string]bool
	refused  int // lines beyond the limit of series
}

type family struct {
	name   string // without the "_total" of a counter, as everywhere
	kind   metric.Type
	spec   *Spec
	index  int
	events bool // each line is the measure of something, not a mere increment
}

type seriesKey struct {
	family string
	labels metric.Labels
}

type series struct {
	*family
	index  int
	shown  bool // in a poll before this one: a sum is shown as 0 first
	seen   bool // it had a line: a gauge has no value before
	value  float64
	count  float64
	bounds []float64
	counts []float64 // by bound, not cumulative; the last one is beyond all bounds
	slots  []int
}

// defaultBuckets are those of the Java client, whatever the unit.
func defaultBuckets() []float64 {
	return []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}
}

// oldLoadTime is the name that releases before 0.8 give the load time of a worker: the worker's own.
var oldLoadTime = regexp.MustCompile(`^W-\d+-.+`)

func newTable(o *Options) *table {
	t := &table{specs: map[string]*Spec{}, defaults: map[string]*Spec{}, buckets: o.Buckets, limit: o.MaxSeries,
		families: map[string]*family{}, series: map[seriesKey]*series{}, said: map[string]bool{}}
	for _, s := range o.Specs {
		t.specs[s.Name] = &s
	}
	for _, s := range Defaults() {
		t.defaults[s.Name] = &s
	}
	return t
}

// warn keeps a warning unless one of that code was about the same thing.
func (t *table) warn(code, about, text string) {
	if key := code + "\xff" + about; !t.said[key] && len(t.said) < 1000 {
		t.said[key] = true
		t.warnings = append(t.warnings, metric.Warning{Code: code, Text: text})
	}
}

// add takes a line that was written at atNS. The error says why it is bad.
func (t *table) add(l *Line, atNS int64) error {
	f, name, dims := t.place(l)
	if f == nil {
		t.refused++
		return nil
	}
	finite := !math.IsNaN(l.Value) && !math.IsInf(l.Value, 0)
	if f.kind != metric.Gauge && !finite || f.kind == metric.Counter && l.Value < 0 {
		return fmt.Errorf("parse line: %s is a %s and has the value %v", name, f.kind, l.Value)
	}
	s := t.seriesOf(f, name, dims, l.Host)
	if s == nil {
		t.refused++
		return nil
	}
	s.observe(l.Value)
	if f.events && finite {
		t.events = append(t.events, metric.Observation{Series: s.index, AtNS: atNS, Value: l.Value, Requests: l.Requests})
	}
	return nil
}

// declare makes the series of a line without its value.
func (t *table) declare(l *Line) {
	if f, name, dims := t.place(l); f != nil {
		t.seriesOf(f, name, dims, l.Host)
	}
}

// place returns the family of a line, its name and its dimensions. Without room for
// another family or series it returns no family.
func (t *table) place(l *Line) (f *family, name string, dims []metric.Label) {
	name, dims = l.Name, l.Dimensions
	if oldLoadTime.MatchString(name) && t.specs[name] == nil {
		dims = append([]metric.Label{{Name: "WorkerName", Value: name}}, dims...)
		name = "WorkerLoadTime"
	}
	return t.family(name, l), name, dims
}

// family returns the family of a metric, or nil beyond the limit. Its type is decided by its first line and kept.
func (t *table) family(name string, l *Line) *family {
	f, known := t.families[name]
	if known {
		if l.Type != metric.Unknown && l.Type != f.kind {
			t.warn("type_conflict", name, fmt.Sprintf("a line says %s is a %s; it is taken for a %s", name, l.Type, f.kind))
		}
		return f
	}
	if len(t.order) >= t.limit || len(t.families) >= t.limit {
		t.warnLimit()
		return nil
	}
	spec, kind := t.specs[name], metric.Unknown
	if spec == nil {
		spec = t.defaults[name]
	}
	switch {
	case t.specs[name] != nil:
		kind = spec.Type
	case l.Type != metric.Unknown:
		kind = l.Type
	case spec != nil:
		kind = spec.Type
	default:
		kind = guess(l)
		t.warn("type_guessed", name, fmt.Sprintf("%s is taken for a %s because of its unit %q; --torchserve-metrics-yaml "+
			"says for certain", name, kind, l.Unit))
	}
	if l.Type != metric.Unknown && l.Type != kind {
		t.warn("type_conflict", name, fmt.Sprintf("a line says %s is a %s; metrics.yaml says %s", name, l.Type, kind))
	}
	unit, _ := Unit(l.Unit)
	f = &family{name: name, kind: kind, spec: spec}
	help := fmt.Sprintf("Torchserve prometheus %s metric with unit: %s", kind, l.Unit)
	if kind == metric.Counter {
		f.name = strings.TrimSuffix(name, "_total")
	}
	f.events = kind != metric.Counter || unit != ""
	f.index = t.gather.AddFamily(metric.Family{Name: f.name, Type: kind, Help: help, Unit: unit,
		Suffix: name[len(f.name):]})
	t.families[name] = f
	return f
}

func (t *table) warnLimit() {
	t.warn("series_limit", "", fmt.Sprintf("more than %d series; the lines of further ones are dropped (--max-series)",
		t.limit))
}

// seriesOf returns the series of a line, or nil beyond the limit.
func (t *table) seriesOf(f *family, name string, dims []metric.Label, host string) *series {
	pairs := slices.Clone(dims)
	for _, d := range dims {
		if d.Name == "Level" && d.Value != "Host" && d.Value != "Model" && d.Value != "Error" {
			t.warn("shifted_dimensions", name,
				fmt.Sprintf("%s has Level %.60q: TorchServe drops a dimension whose value has a colon, and the values after it "+
					"shift", name, d.Value))
		}
	}
	if host != "" {
		pairs = append(pairs, metric.Label{Name: hostLabel(name, f.spec), Value: host})
	}
	key := seriesKey{name, metric.NewLabels(pairs...)}
	s, ok := t.series[key]
	if ok {
		return s
	}
	if len(t.order) >= t.limit {
		t.warnLimit()
		return nil
	}
	s = &series{family: f, index: t.gather.Series(f.index, key.labels)}
	slot := func(role metric.Role, bound float64, text string) {
		s.slots = append(s.slots, t.gather.Slot(s.index, metric.SampleID{Role: role, Bound: bound, Text: text}))
	}
	if f.kind == metric.Histogram {
		if s.bounds = t.buckets[name]; s.bounds == nil {
			s.bounds = defaultBuckets()
		}
		s.counts = make([]float64, len(s.bounds)+1)
		for _, b := range s.bounds {
			slot(metric.RoleBucket, b, strconv.FormatFloat(b, 'g', -1, 64))
		}
		slot(metric.RoleBucket, math.Inf(1), "+Inf")
		slot(metric.RoleSum, 0, "")
		slot(metric.RoleCount, 0, "")
	} else {
		slot(metric.RoleValue, 0, "")
	}
	t.series[key] = s
	t.order = append(t.order, s)
	return s
}

func (s *series) observe(v float64) {
	s.seen = true
	switch s.kind {
	case metric.Counter:
		s.value += v
	case metric.Histogram:
		s.counts[sort.SearchFloat64s(s.bounds, v)]++
		s.value += v
		s.count++
	default:
		s.value = v
	}
}

// finish shows all series in a snapshot. Sums that are new are shown as 0, so that what they gained is a difference;
// before no further poll (last) they are shown as they are.
func (t *table) finish(snap *metric.Snapshot, last bool) {
	for _, s := range t.order {
		if s.seen || s.kind != metric.Gauge {
			s.show(&t.gather, !s.shown && !last)
			s.shown = true
		}
	}
	t.gather.Finish(snap)
	snap.Observations = t.events
	snap.Warnings = append(snap.Warnings, t.warnings...)
	t.warnings = t.warnings[:0]
}

// show gives the values of a series; zero shows a sum as 0.
func (s *series) show(g *metric.SnapshotBuilder, zero bool) {
	set := func(slot int, v float64) {
		if zero && s.kind != metric.Gauge {
			v = 0
		}
		g.Set(s.slots[slot], v)
	}
	if s.kind != metric.Histogram {
		set(0, s.value)
		return
	}
	below := 0.0
	for i, n := range s.counts {
		below += n
		set(i, below)
	}
	set(len(s.counts), s.value)
	set(len(s.counts)+1, s.count)
}
