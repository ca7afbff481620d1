package summary

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/window"
	"github.com/scrapestat/scrapestat/window/traffic"
)

// maxUndecided is how many polls of a target a live builder holds back while the start of the window is not known.
const maxUndecided = 256

// markSlack is how late the mark of an end may be known.
const markSlack = time.Second

// Builder makes the result of one run from its polls as they come. Add is safe
// for concurrent use with different targets, and everything else with anything.
type Builder struct {
	meta rundb.Meta
	o    Options

	load    *Load       // of a live run
	watches bool        // load is our own and takes the polls
	several atomic.Bool // there are other targets, of which one may be the same server
	mu      sync.Mutex
	asked   window.Ref // the default of the recording
	targets []*target  // only appended to
	marks   []metric.Mark
	started bool // plan.window.StartNS is settled and the folds may run
	plan    plan
	pin     *onset // of the traffic, as the folds took it
	cut     int64  // polls after it are not for the folds: the cool-down, once its start is known
}

// onset is where traffic begins, and whether it went on before the first poll.
type onset struct {
	edge traffic.Edge
	busy bool
}

// target is the state of one target. Its lock is taken before that of Builder.
type target struct {
	metric.Target
	mu     sync.Mutex
	ledger ledger

	tracker    *continuity.Tracker
	trace      *trace                 // nil of a lone target
	eventful   bool                   // a poll was not taken as it is
	main, warm *normalize.Accumulator // nil before the window is known, or when there is none
	warmLast   int64
	late       *late // nil where nothing goes before the window
	after      *late // nil where nothing follows it
	opened     bool
	held       []*metric.Snapshot // not yet given to the folds
	fed        int64              // time of the last poll given to them
	stored     int64              // time of the last stored one of them
	seen       int64              // time of the last poll
	nearest    int64              // time of a poll behind the end that stands for it
}

// NewBuilder returns a builder for a run that is being recorded. The window is what it is by default; another one is
// for recorded runs. load takes each poll before the builder does; nil lets the builder look for traffic itself.
func NewBuilder(meta rundb.Meta, targets []metric.Target, o Options, load *Load) (*Builder, error) {
	if o.Window.What != window.Default {
		return nil, errors.New("make live result: another window can only be chosen once the run is recorded")
	}
	if o.Slice < 0 {
		return nil, errors.New("make live result: how wide a number of slices is is known once the run is recorded")
	}
	b, err := newBuilder(meta, targets, o)
	if err != nil {
		return nil, err
	}
	if b.load, b.watches = load, load == nil; b.watches {
		b.load = NewLoad(b.o.Catalog)
	}
	return b, nil
}

func newBuilder(meta rundb.Meta, targets []metric.Target, o Options) (*Builder, error) {
	o, err := o.check()
	if err != nil {
		return nil, err
	}
	b := &Builder{meta: meta, o: o, cut: notEnded}
	if meta.Window != "" {
		if b.asked, err = window.Parse(meta.Window); err != nil {
			return nil, fmt.Errorf("window of the recording: %w", err)
		}
	}
	for _, t := range targets {
		b.targets = append(b.targets, newTarget(t, b.o.Catalog))
	}
	b.several.Store(len(targets) > 1)
	return b, nil
}

func newTarget(t metric.Target, c *catalog.Catalog) *target {
	return &target{Target: t, tracker: continuity.New(Continuity(c))}
}

// check fills in the defaults and refuses what makes no sense.
func (o Options) check() (Options, error) {
	for _, d := range []*time.Duration{o.Window.Warmup, o.Window.Cooldown} {
		if d != nil && *d < 0 {
			return o, fmt.Errorf("choose window: %v is negative", *d)
		}
	}
	if o.Quantiles == nil {
		o.Quantiles = normalize.AIPerfQuantiles()
	}
	if o.Estimator == "" {
		o.Estimator = "polynomial"
	}
	if o.FileEstimator == o.Estimator {
		o.FileEstimator = ""
	}
	if err := o.checkBy(); err != nil {
		return o, err
	}
	if o.Catalog == nil {
		var err error
		if o.Catalog, err = catalog.New(); err != nil {
			return o, err
		}
	}
	probe := o.fold(0, 0)
	if o.Slice == NoiseSlices || o.Slice == CauseSlices || o.Slice == PointSlices {
		probe.Slice = 0
	}
	_, err := normalize.NewFold(probe)
	return o, err
}

func (o *Options) fold(start, end int64) normalize.Options {
	return normalize.Options{StartNS: start, EndNS: end, Slice: o.Slice, Resets: o.Resets,
		Estimator: o.Estimator, FileEstimator: o.FileEstimator, Quantiles: o.Quantiles, Levels: o.Catalog.Levels,
		SliceQuantiles: o.SliceQuantiles, Clip: o.WindowRates}
}

// AddTarget adds a target that came while the run is recorded and returns its index, which follows those there were.
func (b *Builder) AddTarget(t metric.Target) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets = append(b.targets, newTarget(t, b.o.Catalog))
	b.several.Store(len(b.targets) > 1)
	return len(b.targets) - 1
}

// Mark tells the builder of a mark as it is recorded.
func (b *Builder) Mark(m metric.Mark) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.marks = append(b.marks, m)
	if _, ended := firstMark(b.marks, metric.MarkEnd, metric.PhaseCooldown); ended {
		if p, err := b.planNow(m.AtNS); err == nil && !p.open {
			b.cut = min(b.cut, p.window.EndNS)
		}
	}
	b.settle(false)
}

// planNow is the window if the run ended at an instant. The collector's own mark after a warm-up is left out: the
// warm-up counts from the first request, as the polls told it when it came. The caller holds the lock.
func (b *Builder) planNow(endNS int64) (plan, error) {
	found := b.load.Found()
	if b.pin != nil && len(found.Segments) > 0 {
		found.Segments[0].Start, found.BusyAtStart = b.pin.edge, b.pin.busy
	}
	marks, warm := make([]metric.Mark, 0, len(b.marks)), false
	for _, m := range b.marks {
		own := m.Own()
		warm = warm || own && m.Name == metric.PhaseWarmup
		if !own || !warm || m.Name != metric.PhaseProfiling {
			marks = append(marks, m)
		}
	}
	return planRun(b.knownOf(marks, max(endNS, b.meta.OriginNS), &found), &b.o)
}

// based reports whether the load has begun, which a mark tells. The caller holds the lock.
func (b *Builder) based() bool {
	_, ok := firstMark(b.marks, metric.PhaseWarmup, metric.PhaseProfiling)
	return ok
}

// settle fixes where the window begins as soon as that is known: by marks, or with the first request; or now. The
// caller holds the lock.
func (b *Builder) settle(now bool) {
	if b.started {
		return
	}
	_, ended := firstMark(b.marks, metric.MarkEnd)
	seen := b.load.Seen()
	if !now && !ended && (!b.based() || needsTraffic(b.knownOf(b.marks, 0, nil), &b.o) && !seen) {
		return
	}
	p, err := b.planNow(notEnded / 2)
	if err != nil {
		return
	}
	short := func(w metric.Warning) bool { return w.Code == "traffic_short" }
	e, ok := p.resolved.Traffic.Start()
	if seen && !now && !ended && (!ok || p.empty || slices.ContainsFunc(p.warnings, short)) {
		return // the first requests came between two polls, or ended within the warm-up: the next poll tells more
	}
	if ok {
		b.pin = &onset{e, p.resolved.Traffic.BusyAtStart}
	}
	b.plan, b.started = p, true
}

// Add takes a poll of one of the targets. The polls of a target come in time
// order and one at a time. It keeps nothing of s.
func (b *Builder) Add(s *metric.Snapshot) error {
	b.mu.Lock()
	targets := b.targets
	b.mu.Unlock()
	if s.Target < 0 || s.Target >= len(targets) {
		return fmt.Errorf("add poll: target %d of %d", s.Target, len(targets))
	}
	t := targets[s.Target]
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.count(s); err != nil {
		return err
	}
	var err error
	if b.watches {
		_, err = b.load.Add(s)
	}
	b.mu.Lock()
	b.settle(len(t.held) >= maxUndecided && !b.based()) // who sets no marks has the whole run
	started, p, cut := b.started, b.plan, b.cut
	b.mu.Unlock()
	if err != nil {
		return err
	}
	delay := b.delay()
	if started && delay == 0 && cut == notEnded && len(t.held) == 0 {
		if err := t.open(b, &p, true); err != nil {
			return err
		}
		return t.feed(b, s)
	}
	t.held = append(t.held, s.Clone())
	if started {
		return t.release(b, &p, min(cut, t.seen-int64(delay)))
	}
	if len(t.held) > maxUndecided { // the oldest is long before whatever the window will be
		return t.release(b, nil, t.held[0].AtNS())
	}
	return nil
}

// delay is how long polls are held back because a cool-down may exclude them.
func (b *Builder) delay() time.Duration {
	cooldown := b.meta.Cooldown
	if b.o.Window.Cooldown != nil {
		cooldown = *b.o.Window.Cooldown
	}
	if cooldown <= 0 {
		return 0
	}
	return cooldown + 2*b.meta.Timeout + markSlack
}

// count enters a poll into the ledger.
func (t *target) count(s *metric.Snapshot) error {
	if err := t.ledger.add(s); err != nil {
		return fmt.Errorf("add poll %d of %s: %w", s.Seq, t.URL, err)
	}
	t.seen = max(t.seen, s.AtNS())
	return nil
}

// release gives the polls up to an instant to the folds.
func (t *target) release(b *Builder, p *plan, until int64) error {
	n := 0
	for n < len(t.held) && t.held[n].AtNS() <= until {
		n++
	}
	if n == 0 {
		return nil
	}
	if err := t.open(b, p, true); err != nil {
		return err
	}
	for _, s := range t.held[:n] {
		if err := t.feed(b, s); err != nil {
			return err
		}
	}
	t.held = slices.Delete(t.held, 0, n)
	return nil
}

// open makes the folds. Those of a live run have no end yet.
func (t *target) open(b *Builder, p *plan, live bool) error {
	if t.opened {
		return nil
	}
	var err error
	if t.main == nil {
		o := b.o.fold(notEnded, 0)
		o.Tracker = t.tracker
		if t.warm, err = normalize.NewFold(o); err != nil {
			return err
		}
		o.Mergeable = b.o.By != nil
		o.MergeableFamily = func(name string) bool { return isLatency(b.o.Catalog, name) }
		if t.main, err = normalize.NewFold(o); err != nil {
			return err
		}
		t.warmLast = notEnded
	}
	if p == nil {
		return nil // it is not known yet where the window begins
	}
	t.opened = true
	if w := p.warmup; w == nil {
		t.warm = nil
	} else {
		t.warmLast = w.EndNS - 1
		t.warm.Begin(normalize.Span{StartNS: w.StartNS, EndNS: w.EndNS, Parts: pairs(p.resolved.Warmups), Pause: true})
	}
	if t.late, t.after = b.watchLate(p, t.tracker); p.empty {
		t.main = nil
		return nil
	}
	span := normalize.Span{StartNS: p.window.StartNS, SnapStart: p.resolved.Start.Kind == window.Snapped,
		Parts: pairs(p.resolved.Parts), Pause: p.resolved.Told, Whole: b.o.AIPerf && !live}
	if !p.open && !live {
		span.EndNS, span.LastNS, span.SnapEnd = p.window.EndNS, p.last, p.resolved.End.Kind == window.Snapped
	}
	t.main.Begin(span)
	return nil
}

// pairs are the parts of a window that has several.
func pairs(parts []window.Stretch) (out [][2]int64) {
	for _, p := range parts {
		if len(parts) > 1 {
			out = append(out, [2]int64{p.StartNS, p.EndNS})
		}
	}
	return out
}

// feed gives a poll to the folds.
func (t *target) feed(b *Builder, s *metric.Snapshot) error {
	t.fed = max(t.fed, s.AtNS())
	if s.Outcome.Stored() {
		t.stored = t.fed
	}
	step, err := t.tracker.Step(s)
	if err != nil {
		return fmt.Errorf("%s: poll %d: %w", t.URL, s.Seq, err)
	}
	if t.trace == nil && b.several.Load() {
		t.trace = &trace{}
	}
	t.trace.add(s, step, t.tracker)
	// AIPerf's estimator learns up to the end of the recording, ours does not.
	learn := b.o.Resets == normalize.ResetClamp
	t.eventful = t.eventful || step != nil && (!step.Plain(s) || len(step.Born) > 0 || step.Process > 0)
	if t.main != nil {
		if err := t.main.AddStep(s, step); err != nil {
			return fmt.Errorf("%s: %w", t.URL, err)
		}
	}
	if cut := t.late.add(s, step, t.main != nil && t.main.Opened()); len(cut) > 0 {
		gains := t.late.gains(cut)
		t.main.Cut(cut)
		if t.warm != nil {
			t.warm.Late(gains)
		}
	}
	if cut := t.after.add(s, step, t.main != nil && t.main.Closed()); len(cut) > 0 {
		t.main.Late(t.after.gains(cut))
	}
	if t.warm != nil && (learn || s.AtNS() <= t.warmLast) {
		if err := t.warm.AddStep(s, step); err != nil {
			return fmt.Errorf("%s: %w", t.URL, err)
		}
	}
	return nil
}

// Result returns the result of what was added so far, as if the run had ended at endNS unless a mark says when
// it did. It may be called at any time. A window that has not begun gives a result without metrics and a
// warning. It fails when a mark moved the start of the window after polls of it were folded.
func (b *Builder) Result(endNS int64) (*Run, error) {
	b.mu.Lock()
	p, err := b.planNow(endNS)
	targets, started, settled := b.targets, b.started, b.plan
	_, ended := firstMark(b.marks, metric.MarkEnd)
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if started && !p.empty && p.window.StartNS != settled.window.StartNS {
		return nil, errors.New("make live result: a mark moved the start of the window after it began; analyse the recording")
	}
	pc := piece{meta: &b.meta, plan: p}
	for _, t := range targets {
		r, err := t.live(b, &p, &settled, started, ended)
		if err != nil {
			return nil, err
		}
		pc.results = append(pc.results, r)
	}
	return assemble(context.Background(), []piece{pc}, &b.o)
}

// inTurn leaves all processors but one to the benchmark, which is still running.
func inTurn(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}

// live returns the result of a target while more may come: p is the window as it
// is known now, settled that which the folds were opened with.
func (t *target) live(b *Builder, p, settled *plan, started, ended bool) (targetResult, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	over := false
	if started {
		until := int64(notEnded)
		if !p.open {
			until = p.window.EndNS
		}
		if err := t.release(b, settled, until); err != nil {
			return targetResult{}, err
		}
		next := slices.IndexFunc(t.held, func(s *metric.Snapshot) bool { return s.Outcome.Stored() })
		if p.resolved.End.Kind == window.Snapped && next >= 0 && t.held[next].AtNS()-until < until-t.stored {
			t.nearest = t.held[next].AtNS() // stands for the end
			if err := t.release(b, settled, t.nearest); err != nil {
				return targetResult{}, err
			}
		}
		over = t.fed > max(until, t.nearest)
	}
	if ended {
		for _, s := range t.held { // beyond the window, and yet they tell what happened in it
			if _, err := t.tracker.Step(s); err != nil {
				return targetResult{}, fmt.Errorf("%s: poll %d: %w", t.URL, s.Seq, err)
			}
		}
		t.held = nil
	}
	r := t.result(p, inTurn)
	if over {
		r.endpoint.Warnings = append(r.endpoint.Warnings, metric.Warning{Code: "window_overrun",
			Text: "polls of the cool-down were analysed: the run ended later than it was expected to"})
	}
	return r, nil
}
