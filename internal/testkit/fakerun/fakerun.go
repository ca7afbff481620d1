// Package fakerun makes recordings out of exposition texts, for tests of what reads recordings.
package fakerun

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// Second is the unit of time of the tests; runs begin at Origin.
const (
	Second = int64(time.Second)
	Origin = 1_700_000_000 * Second
)

// Run is a recording made of exposition texts. Tests may change its parts before it is read.
type Run struct {
	Info   rundb.Meta
	Phases []metric.Mark
	Warned []metric.Warning
	Polled []*Target
}

// Target is a target of a Run and its polls.
type Target struct {
	metric.Target
	Dict  metric.Schema
	slots map[string]uint32 // by series text
	last  map[uint32]uint64
	body  string
	Polls []metric.Snapshot
}

// New returns a run of targets without polls.
func New(urls ...string) *Run {
	f := &Run{Info: rundb.Meta{ID: "run-1", Version: "0.1.0", OriginNS: Origin, Interval: time.Second}}
	for _, u := range urls {
		f.Polled = append(f.Polled, &Target{Target: metric.Target{URL: u, Source: "prometheus"},
			slots: map[string]uint32{}})
	}
	return f
}

// Mark sets a mark at a number of seconds after Origin.
func (f *Run) Mark(at float64, name string) *Run {
	f.Phases = append(f.Phases, metric.Mark{Name: name, AtNS: Origin + int64(at*float64(Second))})
	return f
}

// Scrape adds a poll of a target at a number of seconds after Origin. Families are declared by TYPE and, before it,
// HELP lines; the body names families, not samples, of counters.
func (f *Run) Scrape(target int, at float64, body string) *metric.Snapshot {
	t := f.Polled[target]
	ns := Origin + int64(at*float64(Second))
	s := metric.Snapshot{Target: target, Seq: uint64(len(t.Polls)), DueNS: ns - 2e6, SentNS: ns - 1e6, FirstByteNS: ns,
		Duration: 3 * time.Millisecond, Status: 200, BodyBytes: int64(len(body)), Duplicate: len(t.Polls) > 0 &&
			body == t.body}
	help := ""
	now := map[uint32]uint64{}
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			_, help, _ = strings.Cut(rest, " ")
		} else if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, typ, _ := strings.Cut(rest, " ")
			t.family(&s.DictDelta, name, typ, help)
			help = ""
		} else if line != "" {
			cut := strings.LastIndexByte(line, ' ')
			v, _ := strconv.ParseFloat(line[cut+1:], 64)
			now[t.slot(&s.DictDelta, line[:cut])] = math.Float64bits(v)
			s.Lines++
		}
	}
	s.Delta.Full = t.last == nil || len(now) != len(t.last)
	for slot := range now {
		if _, had := t.last[slot]; !had {
			s.Delta.Full = true
		}
	}
	for slot, bits := range now {
		if s.Delta.Full || t.last[slot] != bits {
			s.Delta.Slots = append(s.Delta.Slots, slot)
		}
	}
	slices.Sort(s.Delta.Slots)
	for _, slot := range s.Delta.Slots {
		s.Delta.Bits = append(s.Delta.Bits, now[slot])
	}
	t.last, t.body = now, body
	t.Polls = append(t.Polls, s)
	return &t.Polls[len(t.Polls)-1]
}

// Fail adds a poll that stored nothing.
func (f *Run) Fail(target int, at float64, o metric.Outcome, text string) {
	t := f.Polled[target]
	ns := Origin + int64(at*float64(Second))
	t.Polls = append(t.Polls, metric.Snapshot{Target: target, Seq: uint64(len(t.Polls)), DueNS: ns, SentNS: ns,
		Outcome: o, Err: text})
}

func (t *Target) family(g *metric.DictDelta, name, typ, help string) int {
	parsed, ok := metric.ParseType(typ)
	if !ok {
		panic("unknown type " + typ)
	}
	for i, f := range t.Dict.Families {
		if f.Name == name && f.Type == parsed {
			return i
		}
	}
	one := metric.DictDelta{Families: []metric.Family{{Name: name, Type: parsed, Help: help}}}
	g.Families = append(g.Families, one.Families...)
	if err := t.Dict.Grow(&one); err != nil {
		panic(err)
	}
	return len(t.Dict.Families) - 1
}

// slot returns the slot of a series text, adding to g what is new.
func (t *Target) slot(g *metric.DictDelta, text string) uint32 {
	if slot, ok := t.slots[text]; ok {
		return slot
	}
	name, rest, _ := strings.Cut(text, "{")
	var pairs []metric.Label
	slot := metric.SampleID{}
	for rest != "" && rest != "}" {
		n, quoted, _ := strings.Cut(strings.TrimPrefix(rest, ","), "=")
		quoted, _ = strconv.QuotedPrefix(quoted)
		v, _ := strconv.Unquote(quoted)
		rest = strings.TrimPrefix(rest, ",")[len(n)+1+len(quoted):]
		if n == "le" || n == "quantile" {
			slot.Bound, _ = strconv.ParseFloat(v, 64)
			slot.Text = v
			continue
		}
		pairs = append(pairs, metric.Label{Name: n, Value: v})
	}
	family := -1
	for i, f := range t.Dict.Families {
		for role, suffix := range map[metric.Role]string{metric.RoleValue: "", metric.RoleSum: "_sum",
			metric.RoleCount: "_count", metric.RoleBucket: "_bucket", metric.RoleCreated: "_created"} {
			if name == f.Name+suffix && (role != metric.RoleValue || f.Type != metric.Histogram) {
				family, slot.Role = i, role
			}
		}
	}
	if family < 0 {
		family = t.family(g, name, "unknown", "")
	}
	if slot.Role == metric.RoleValue && t.Dict.Families[family].Type == metric.Summary {
		slot.Role = metric.RoleQuantile
	}
	one := metric.DictDelta{}
	labels := metric.NewLabels(pairs...)
	slot.Series = slices.IndexFunc(t.Dict.Series, func(s metric.Series) bool {
		return s.Family == family &&
			s.Labels == labels
	})
	if slot.Series < 0 {
		slot.Series = len(t.Dict.Series)
		one.Series = []metric.Series{{Family: family, Labels: labels}}
	}
	one.Slots = []metric.SampleID{slot}
	g.Series, g.Slots = append(g.Series, one.Series...), append(g.Slots, slot)
	if err := t.Dict.Grow(&one); err != nil {
		panic(err)
	}
	t.slots[text] = uint32(len(t.Dict.Slots) - 1)
	return t.slots[text]
}

// Meta returns what describes the run.
func (f *Run) Meta() rundb.Meta { return f.Info }

// Marks returns the marks in the order they were set.
func (f *Run) Marks() []metric.Mark { return f.Phases }

// Warnings returns those of the run.
func (f *Run) Warnings() []metric.Warning { return f.Warned }

// Targets returns the targets as rundb does.
func (f *Run) Targets() []metric.Target {
	var out []metric.Target
	for _, t := range f.Polled {
		out = append(out, t.Target)
	}
	return out
}

// Snapshots returns copies of the polls of a target, in order.
func (f *Run) Snapshots(ctx context.Context, target int) iter.Seq2[*metric.Snapshot, error] {
	return func(yield func(*metric.Snapshot, error) bool) {
		for i := range f.Polled[target].Polls {
			if ctx.Err() != nil {
				yield(nil, ctx.Err())
				return
			}
			if s := f.Polled[target].Polls[i]; !yield(&s, nil) {
				return
			}
		}
	}
}

// Polls gives each poll of a recording to f, target by target.
func Polls(dir string, f func(target int, s *metric.Snapshot) error) error {
	run, err := rundb.Open(dir)
	if err != nil {
		return err
	}
	for i := range run.Targets() {
		for s, err := range run.Snapshots(context.Background(), i) {
			if err == nil {
				err = f(i, s)
			}
			if err != nil {
				return errors.Join(err, run.Close())
			}
		}
	}
	return run.Close()
}
