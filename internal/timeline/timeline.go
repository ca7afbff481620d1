package timeline

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// Sink receives the targets and polls of an import.
type Sink interface {
	// Begin is called once, before all else, with the earliest time there is.
	Begin(firstNS int64) error
	// AddTarget adds a target and returns its index.
	AddTarget(metric.Target) (int, error)
	// Record takes one poll, which is valid during the call only. The polls of one target come in order of time.
	Record(*metric.Snapshot) error
}

// Meta is what is declared of a name.
type Meta struct {
	Type metric.Type
	Help string
	Unit string
}

// Limits bounds what is accepted. In each field 0 is the default.
type Limits struct {
	Samples     int   // held between two flushes; 50,000,000
	Series      int   // series lines of a target (a bucket counts as one); 1,000,000
	Targets     int   // 10,000
	Labels      int   // of one series; 128
	NameLength  int   // bytes of a metric or label name; 1024
	ValueLength int   // bytes of a label value; 16 KiB
	Memory      int64 // bytes for the series of all targets; 1 GiB
}

// Options adjusts a Timeline. The zero value is usable.
type Options struct {
	// Source is the metric.Target.Source of all targets.
	Source string
	// TargetLabels identify a target; nil is job and instance.
	TargetLabels []string
	// Labelled keeps the target labels, but for instance, which alone names the target, without a prefix up to a colon.
	Labelled bool
	// Address is the URL of the target of series without target labels.
	Address string
	// Step is the least time between two polls of a target; closer ones are left out. 0 keeps all.
	Step time.Duration
	// Keep and Drop choose families by name, the declared or ours: those that
	// match Keep (nil: all) and do not match Drop (nil: none).
	Keep, Drop *regexp.Regexp
	// TypeOf is what a name is known to be of which nothing is declared; nil knows none.
	TypeOf func(name string) (metric.Type, bool)
	Limits Limits
}

// Stats is what became of the samples.
type Stats struct {
	Targets    int
	Polls      int   // given to the sink
	Failed     int   // of these, polls of a target that was down
	Stored     int64 // samples
	Dropped    int64 // samples that could not be stored, the filtered ones not among them
	Repeated   int64 // samples given twice with the same value
	Stale      int64 // staleness markers
	OutOfOrder int64 // samples that came after a later one of their series; they are stored
	Thinned    int   // instants left out because of Step
	Guessed    int   // names whose type is not declared
	FirstNS    int64 // first and last poll
	LastNS     int64
}

// ErrFull is wrapped by the error of Add when Limits.Samples are held.
var ErrFull = errors.New("too many samples at once")

// staleBits is the NaN that marks the end of a series (Prometheus, model/value).
const staleBits = 0x7ff0000000000002

// StaleNaN is the value of a staleness marker.
func StaleNaN() float64 { return math.Float64frombits(staleBits) }

// Timeline collects samples and emits polls. Make one with New.
type Timeline struct {
	o       Options
	sink    Sink
	stats   Stats
	begun   bool
	held    int
	memory  *metric.Memory
	meta    map[string]Meta
	names   map[string]bool
	guessed map[string]bool
	short   map[string]string // counter names as decided
	targets map[metric.Labels]*target
	order   []*target
	urls    map[string]bool
}

// New returns an empty timeline that gives its polls to sink.
func New(o Options, sink Sink) *Timeline {
	if o.TargetLabels == nil {
		o.TargetLabels = []string{"job", "instance"}
	}
	l := &o.Limits
	l.Samples = cmp.Or(max(l.Samples, 0), 50_000_000)
	l.Series = cmp.Or(max(l.Series, 0), 1_000_000)
	l.Targets = cmp.Or(max(l.Targets, 0), 10_000)
	l.Labels = cmp.Or(max(l.Labels, 0), 128)
	l.NameLength = cmp.Or(max(l.NameLength, 0), 1024)
	l.ValueLength = cmp.Or(max(l.ValueLength, 0), 16<<10)
	l.Memory = cmp.Or(max(l.Memory, 0), 1<<30)
	return &Timeline{o: o, sink: sink, memory: metric.NewMemory(l.Memory),
		meta: map[string]Meta{}, names: map[string]bool{}, guessed: map[string]bool{},
		short: map[string]string{}, targets: map[metric.Labels]*target{}, urls: map[string]bool{}}
}

// Describe declares a name as a TYPE line or a metadata service gives it. The first declaration counts. Those after the
// first sample of a name was flushed have no effect.
func (t *Timeline) Describe(name string, m Meta) {
	if _, known := t.meta[name]; !known && len(name) <= t.o.Limits.NameLength && len(t.meta) < t.o.Limits.Series {
		m.Help, m.Unit = Clean(m.Help, 4096), Clean(m.Unit, 128)
		t.meta[name] = m
	}
}

// DescribeMore adds to what is declared of a name; what m leaves out stays.
func (t *Timeline) DescribeMore(name string, m Meta) {
	old := t.meta[name]
	if m.Type == metric.Unknown {
		m.Type = old.Type
	}
	m.Help = cmp.Or(m.Help, old.Help)
	m.Unit = cmp.Or(m.Unit, old.Unit)
	delete(t.meta, name)
	t.Describe(name, m)
}

// Stats returns what became of the samples so far.
func (t *Timeline) Stats() Stats {
	s := t.stats
	s.Targets, s.Guessed = len(t.order), len(t.guessed)
	return s
}

// Held is the number of samples that wait for Flush.
func (t *Timeline) Held() int { return t.held }

// Discard forgets the samples that wait for Flush: a part of an answer that broke off.
func (t *Timeline) Discard() {
	for _, g := range t.order {
		for _, s := range g.all {
			s.at, s.bits = s.at[:0], s.bits[:0]
		}
		g.drops = nil
	}
	t.held = 0
}

// target is one target and the series it has shown.
type target struct {
	id       metric.Labels
	memory   *metric.MemoryShare
	index    int // of the sink; -1 until it was added
	gatherer metric.SnapshotBuilder
	series   map[metric.Labels]*Series // by all labels, the name under ""
	all      []*Series
	refused  map[string]*Series // by reason
	setIn    []uint64           // by slot: the instant that gave it
	instants uint64
	seq      uint64
	lastNS   int64
	drops    []metric.Drop
}

// Series is one series of the store: one line of an exposition.
type Series struct {
	t       *Timeline
	target  *target
	name    string
	labels  []metric.Label // without those of the target
	reason  string         // why its samples are dropped; "" when they are not
	slot    int            // -1 until resolved
	special special
	at      []int64
	bits    []uint64
}

// special marks series that say something about the poll itself.
type special uint8

const (
	ordinary special = iota
	isUp
	isDuration
)

// Series returns the series of that name and labels, adding it when it is new. The labels are those of the store, the
// target's among them; empty values are absent labels. Neither is kept. A series that breaks a limit is returned too:
// its samples are counted as dropped.
func (t *Timeline) Series(name string, labels []metric.Label) *Series {
	var id, rest []metric.Label
	reason := ""
	for _, l := range labels {
		switch {
		case l.Value == "":
		case len(l.Value) > t.o.Limits.ValueLength || len(l.Name) > t.o.Limits.NameLength:
			reason = "label_length"
		case t.identifies(l.Name):
			id = append(id, l)
		default:
			rest = append(rest, l)
		}
	}
	switch {
	case name == "" || len(name) > t.o.Limits.NameLength:
		reason = "name_length"
	case len(labels) > t.o.Limits.Labels:
		reason = "label_limit"
	}
	g := t.target(metric.NewLabels(id...))
	if reason != "" {
		return t.refused(g, reason, name)
	}
	key := metric.NewLabels(append(rest, metric.Label{Value: name})...)
	if s, ok := g.series[key]; ok {
		return s
	}
	if len(g.all) >= t.o.Limits.Series {
		return t.refused(g, "series_limit", name)
	}
	if !g.memory.Take(1, key.Size()) {
		return t.refused(g, "memory_limit", name)
	}
	s := &Series{t: t, target: g, name: strings.Clone(name), slot: -1}
	for n, v := range key.All() {
		if n != "" {
			s.labels = append(s.labels, metric.Label{Name: n, Value: v})
		}
	}
	t.names[s.name] = true
	g.series[key] = s
	g.all = append(g.all, s)
	return s
}

func (t *Timeline) identifies(label string) bool {
	return slices.Contains(t.o.TargetLabels, label)
}

// target returns the target of that identity. Beyond the limit of targets all share one, whose samples are dropped.
func (t *Timeline) target(id metric.Labels) *target {
	if g, ok := t.targets[id]; ok {
		return g
	}
	g := &target{id: id, index: -1, memory: t.memory.Share(), series: map[metric.Labels]*Series{},
		refused: map[string]*Series{},
		lastNS:  math.MinInt64}
	if len(t.order) >= t.o.Limits.Targets {
		last := t.order[len(t.order)-1]
		t.refused(last, "target_limit", "")
		return last
	}
	t.targets[id] = g
	t.order = append(t.order, g)
	return g
}

// refused returns the series that counts what is dropped for a reason.
func (t *Timeline) refused(g *target, reason, name string) *Series {
	s, ok := g.refused[reason]
	if !ok {
		s = &Series{t: t, target: g, reason: reason, name: Clean(name, 150)}
		g.refused[reason] = s
	}
	return s
}

// Add adds one sample. Its error wraps ErrFull.
func (s *Series) Add(atNS int64, v float64) error {
	if s.reason != "" {
		s.t.drop(s.target, s.reason, s.name)
		return nil
	}
	if s.t.held >= s.t.o.Limits.Samples {
		return fmt.Errorf("hold %d samples: %w", s.t.held, ErrFull)
	}
	if n := len(s.at); n > 0 && atNS < s.at[n-1] {
		s.t.stats.OutOfOrder++
	}
	s.at, s.bits = append(s.at, atNS), append(s.bits, math.Float64bits(v))
	s.t.held++
	return nil
}

// Refuse counts a sample of the series that could not be read.
func (s *Series) Refuse(reason string) { s.t.drop(s.target, reason, s.name) }

// drop counts a sample that is not stored.
func (t *Timeline) drop(g *target, reason, what string) {
	if reason != metric.DropFiltered {
		t.stats.Dropped++
	}
	g.drops = metric.AddDrop(g.drops, reason, 1, func() string { return Clean(what, 200) })
}

// describe makes the public form of a target.
func (t *Timeline) describe(id metric.Labels) metric.Target {
	g := metric.Target{Source: t.o.Source}
	var parts []string
	for _, name := range t.o.TargetLabels {
		if v, ok := id.Get(name); ok {
			parts = append(parts, withoutUserinfo(Clean(v, 200)))
		}
	}
	g.Name = strings.Join(parts, "/")
	if t.o.Labelled {
		g.Name = ""
		var own []metric.Label
		for name, value := range id.All() {
			if _, short, _ := strings.Cut(name, ":"); name != "instance" {
				own = append(own, metric.Label{Name: cmp.Or(short, name), Value: Clean(value, 200)})
			}
		}
		g.Labels = metric.NewLabels(own...)
	}
	instance, ok := id.Get("instance")
	switch {
	case ok && strings.Contains(instance, "://"):
		g.URL = withoutUserinfo(Clean(instance, 500))
	case ok:
		g.URL = withoutUserinfo(Clean("http://"+instance+"/metrics", 500))
	default:
		g.URL = t.o.Address
	}
	if t.urls[g.URL] { // two jobs scrape the same instance
		q := url.Values{}
		for name, v := range id.All() {
			if name != "instance" {
				q.Set(name, v)
			}
		}
		g.URL += "?" + q.Encode()
	}
	t.urls[g.URL] = true
	return g
}

// withoutUserinfo removes a user name and password from an address.
func withoutUserinfo(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return address
	}
	if start := strings.Index(address, "://"); start >= 0 && start < at {
		return address[:start+3] + address[at+1:]
	}
	return address[at+1:]
}

// Clean makes text of others fit for one line of output.
func Clean(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}
	return strings.Clone(s)
}
