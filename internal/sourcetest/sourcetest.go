// Package sourcetest is the conformance suite of every source: whatever a
// source hands on must be what package metric promises its consumers.
//
//	r := sourcetest.New(t, sourcetest.Limits{Secrets: []string{"hunter2"}})
//	err := openmetrics.Import(ctx, file, options, r) // a source that pushes
//	r.Poll(source, 3)                                // a source that is polled
//	v, ok := r.Value(0, "x", metric.Counter, `{a="1"}`, metric.RoleValue, 0)
//
// A Recorder takes the place of the recording. It fails the test when a poll is earlier than the one before it, when
// growth or frame do not fit the dictionary, when a failed poll brings samples, when lines do not add up, when text
// could harm a terminal or shows a secret, or when a limit is exceeded.
package sourcetest

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/scrapestat/scrapestat/metric"
)

// Limits is what a source must keep to, besides what holds for all.
type Limits struct {
	Slots   int      // of one target; 0 is 1,000,000
	Text    int      // bytes of a message; 0 is 4096
	Secrets []string // must not occur in any text
}

// Poller is a source that is polled: scrape.Source.
type Poller interface {
	// Poll makes one poll, as scrape.Source says.
	Poll(ctx context.Context, now func() int64, s *metric.Snapshot)
}

// Recorder checks and keeps what a source hands on. It is safe for concurrent
// use, one poll of a target after the other.
type Recorder struct {
	t testing.TB
	l Limits

	mu      sync.Mutex
	begun   bool
	FirstNS int64 // as given to Begin
	Targets []metric.Target
	states  []*state
}

// Instant is one poll as a consumer knows it after applying it.
type Instant struct {
	AtNS    int64
	Outcome metric.Outcome
	Values  map[int]uint64 // by slot, of all that are present; nil when not stored
	Drops   []metric.Drop
	Lines   int
	Took    time.Duration
	Err     string
}

type state struct {
	metric.Replay
	any      bool
	lastNS   int64
	Instants []Instant
}

// New returns a recorder that reports to t.
func New(t testing.TB, l Limits) *Recorder {
	l.Slots = cmp.Or(l.Slots, 1_000_000)
	l.Text = cmp.Or(l.Text, 4096)
	return &Recorder{t: t, l: l}
}

// Begin takes the start of an import.
func (r *Recorder) Begin(firstNS int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Helper()
	if r.begun {
		r.t.Errorf("Begin was called twice")
	}
	r.begun, r.FirstNS = true, firstNS
	return nil
}

// AddTarget takes a target.
func (r *Recorder) AddTarget(g metric.Target) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Helper()
	if g.URL == "" || g.Source == "" {
		r.t.Errorf("target %+v has no URL or no source", g)
	}
	r.text("target", g.Name, g.URL, g.Source)
	r.Targets = append(r.Targets, g)
	r.states = append(r.states, &state{lastNS: math.MinInt64})
	return len(r.states) - 1, nil
}

// Record takes and checks a poll.
func (r *Recorder) Record(s *metric.Snapshot) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Helper()
	if s.Target < 0 || s.Target >= len(r.states) {
		r.t.Errorf("poll of target %d of %d", s.Target, len(r.states))
		return nil
	}
	st := r.states[s.Target]
	r.checkPoll(st, s)
	r.checkTexts(s)
	st.lastNS = s.AtNS()
	i := Instant{AtNS: s.AtNS(), Outcome: s.Outcome, Drops: slices.Clone(s.Drops), Lines: s.Lines, Took: s.Duration,
		Err: s.Err}
	was := slices.Clone(st.Present)
	if err := st.Step(s); err != nil {
		r.t.Errorf("poll %d does not fit: %v", s.Seq, err)
		return nil
	}
	if len(st.Slots) > r.l.Slots {
		r.t.Errorf("poll %d: the dictionary has %d slots, the limit is %d", s.Seq, len(st.Slots), r.l.Slots)
	}
	if s.Outcome.Stored() {
		r.checkDelta(st, s, was)
		i.Values = map[int]uint64{}
		for slot, here := range st.Present {
			if here {
				i.Values[slot] = st.Bits[slot]
			}
		}
		// Creation times are lines of a text format; other sources derive them.
		derived := 0
		for slot := range i.Values {
			if st.Slots[slot].Role == metric.RoleCreated {
				derived++
			}
		}
		if got := s.Lines - s.Dropped(); got != len(i.Values) && got != len(i.Values)-derived {
			r.t.Errorf("poll %d: %d lines, %d dropped, but %d values", s.Seq, s.Lines, s.Dropped(), len(i.Values))
		}
	}
	st.Instants = append(st.Instants, i)
	return nil
}

// checkPoll checks what needs no dictionary.
func (r *Recorder) checkPoll(st *state, s *metric.Snapshot) {
	r.t.Helper()
	if s.AtNS() < st.lastNS {
		r.t.Errorf("poll %d is at %d, before the previous one at %d", s.Seq, s.AtNS(), st.lastNS)
	}
	if want := uint64(len(st.Instants)); s.Seq != want {
		r.t.Errorf("poll has number %d, want %d", s.Seq, want)
	}
	if s.Outcome >= metric.Outcomes || s.Kind > metric.Final || s.Duration < 0 {
		r.t.Errorf("poll %d: outcome %d, kind %d, took %v", s.Seq, s.Outcome, s.Kind, s.Duration)
	}
	if (s.Outcome == metric.OK) != (s.Err == "" && s.Lost() == 0) && s.Outcome != metric.Partial {
		r.t.Errorf("poll %d: outcome %v with error %q and %d lines lost", s.Seq, s.Outcome, s.Err, s.Lost())
	}
	if s.Outcome == metric.Partial && s.Lost() == 0 && s.Err == "" {
		r.t.Errorf("poll %d is partial and does not say what was lost", s.Seq)
	}
	if !s.Outcome.Stored() && len(s.Delta.Slots) > 0 {
		r.t.Errorf("poll %d: outcome %v with %d values", s.Seq, s.Outcome, len(s.Delta.Slots))
	}
}

// checkDelta checks that only a full delta changes which slots are present; was is those of the poll before.
func (r *Recorder) checkDelta(st *state, s *metric.Snapshot, was []bool) {
	r.t.Helper()
	f := &s.Delta
	if !st.any && !f.Full && len(f.Slots) > 0 {
		r.t.Errorf("poll %d: the first frame is not full", s.Seq)
	}
	st.any = true
	for _, slot := range f.Slots {
		if !f.Full && (int(slot) >= len(was) || !was[slot]) {
			r.t.Errorf("poll %d: slot %d appears in a frame that is not full", s.Seq, slot)
		}
	}
}

func (r *Recorder) checkTexts(s *metric.Snapshot) {
	r.t.Helper()
	r.text("error", s.Err)
	for _, d := range s.Drops {
		r.text("drop", d.Reason, d.First)
		if d.Lines <= 0 || d.Reason == "" {
			r.t.Errorf("poll %d: drop %+v", s.Seq, d)
		}
	}
	for _, w := range s.Warnings {
		r.text("warning", w.Code, w.Text)
	}
	for i := range s.DictDelta.Families {
		f := &s.DictDelta.Families[i]
		r.secrets("family", f.Name, f.Help, f.Unit)
	}
}

// text checks text that is meant for people.
func (r *Recorder) text(what string, texts ...string) {
	r.t.Helper()
	r.secrets(what, texts...)
	for _, x := range texts {
		if strings.ContainsFunc(x, unicode.IsControl) || len(x) > r.l.Text {
			r.t.Errorf("%s %q has control characters or %d bytes", what, x, len(x))
		}
	}
}

func (r *Recorder) secrets(what string, texts ...string) {
	r.t.Helper()
	for _, x := range texts {
		for _, secret := range r.l.Secrets {
			if strings.Contains(x, secret) {
				r.t.Errorf("%s %q shows the secret %q", what, x, secret)
			}
		}
	}
}

// Poll makes n polls of a source as the collector does, as a new target, and
// one whose context has ended. It returns the index of the target.
func (r *Recorder) Poll(p Poller, n int) int {
	r.t.Helper()
	target, err := r.AddTarget(metric.Target{URL: "source under test", Source: "test"})
	if err != nil {
		r.t.Fatal(err)
	}
	origin := time.Now()
	now := func() int64 { return origin.Add(time.Since(origin)).UnixNano() }
	poll := func(ctx context.Context, seq int) *metric.Snapshot {
		s := &metric.Snapshot{Target: target, Seq: uint64(seq), DueNS: now()}
		p.Poll(ctx, now, s)
		if s.SentNS < s.DueNS || s.SentNS > now() || s.FirstByteNS != 0 && s.FirstByteNS < s.SentNS {
			r.t.Errorf("poll %d: due %d, sent %d, first byte %d", seq, s.DueNS, s.SentNS, s.FirstByteNS)
		}
		if err := r.Record(s); err != nil {
			r.t.Fatal(err)
		}
		return s
	}
	for i := range n {
		poll(r.t.Context(), i)
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	cancel()
	if s := poll(ctx, n); s.Outcome.Stored() {
		r.t.Errorf("a poll whose context had ended was stored: %v", s.Outcome)
	}
	return target
}

// Instants returns the polls of a target.
func (r *Recorder) Instants(target int) []Instant {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.states[target].Instants
}

// Dict returns the dictionary of a target.
func (r *Recorder) Dict(target int) *metric.Schema {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &r.states[target].Schema
}

// Slot finds a slot by its family, labels (as metric.Labels.String writes them),
// role and bound; -1 when the target has none.
func (r *Recorder) Slot(target int, family string, typ metric.Type, labels string, role metric.Role,
	bound float64) int {
	d := r.Dict(target)
	for i := range d.Slots {
		sl := &d.Slots[i]
		s := &d.Series[sl.Series]
		f := &d.Families[s.Family]
		if f.Name == family && f.Type == typ && s.Labels.String() == labels && sl.Role == role && sl.Bound == bound {
			return i
		}
	}
	return -1
}

// Value returns the value of a slot at the last stored poll of its target.
func (r *Recorder) Value(target int, family string, typ metric.Type, labels string, role metric.Role,
	bound float64) (float64, bool) {
	slot := r.Slot(target, family, typ, labels, role, bound)
	for _, i := range slices.Backward(r.Instants(target)) {
		if i.Values == nil {
			continue
		}
		bits, ok := i.Values[slot]
		if ok && r.Dict(target).Slots[slot].Integer {
			return float64(bits), true
		}
		return math.Float64frombits(bits), ok
	}
	return 0, false
}
