package summary

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/window"
	"github.com/scrapestat/scrapestat/window/traffic"
)

// Recording is a recorded run as *rundb.Run is one. Snapshots yields the polls of a target in time order, each
// valid until the next; it is called concurrently for different targets. A recording of targets that came and
// went says so in a method Lives(target int) []metric.TargetEvent, a damaged one in Lost(target int) int: how many
// polls reading it has not found.
type Recording interface {
	Meta() rundb.Meta
	Targets() []metric.Target
	Marks() []metric.Mark
	Warnings() []metric.Warning
	Snapshots(ctx context.Context, target int) iter.Seq2[*metric.Snapshot, error]
}

// Build makes the result of recorded runs. Several recordings are those of several collectors of one benchmark: their
// endpoints follow each other, each with the window that the marks of its own recording give, and identity, tags and
// phases are those of the first. Targets are read in parallel, one after another on each processor.
//
// It fails when a recording cannot be read and when the chosen phase or segment does not exist. A window of which
// nothing is left is no error: its result has no metrics, and says why.
func Build(ctx context.Context, recs []Recording, o Options) (*Run, error) {
	if len(recs) == 0 {
		return nil, errors.New("build result: no recording given")
	}
	pieces := make([]piece, len(recs))
	builders := make([]*Builder, len(recs))
	for i, rec := range recs {
		own := o
		if i < len(o.Windows) {
			own.Window = o.Windows[i]
		}
		if i > 0 {
			own.Slice = builders[0].o.Slice
		}
		b, err := newBuilder(rec.Meta(), rec.Targets(), own)
		if err != nil {
			return nil, fmt.Errorf("build result: %w", err)
		}
		b.marks = rec.Marks()
		b.several.Store(len(b.targets)+len(recs) > 2)
		builders[i] = b
		if err := b.survey(ctx, rec); err != nil {
			return nil, fmt.Errorf("build result of run %q: %w", b.meta.ID, err)
		}
		if err := b.read(ctx, rec); err != nil {
			return nil, fmt.Errorf("build result of run %q: %w", b.meta.ID, err)
		}
		if pieces[i], err = b.finish(ctx, rec); err != nil {
			return nil, fmt.Errorf("build result of run %q: %w", b.meta.ID, err)
		}
	}
	return assemble(ctx, pieces, &builders[0].o)
}

// WindowOf returns the part of a recording that options ask for, without its numbers. Its errors are those of Build.
func WindowOf(ctx context.Context, rec Recording, o Options) (window.Window, error) {
	b, err := newBuilder(rec.Meta(), rec.Targets(), o)
	if err == nil {
		b.marks = rec.Marks()
		err = b.survey(ctx, rec)
	}
	if err != nil {
		return window.Window{}, fmt.Errorf("find window: %w", err)
	}
	return b.plan.resolved, nil
}

// read streams all targets of a recording through the folds.
func (b *Builder) read(ctx context.Context, rec Recording) error {
	b.started = true
	p := b.plan
	return parallel(ctx, len(b.targets), func(ctx context.Context, i int) error {
		t := b.targets[i]
		if err := t.open(b, &p, false); err != nil {
			return err
		}
		for s, err := range rec.Snapshots(ctx, i) {
			if err != nil {
				return fmt.Errorf("read polls of %s: %w", t.URL, err)
			}
			if err := t.count(s); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err // the first poll of a large target takes long
			}
			if err := t.feed(b, s); err != nil {
				return err
			}
		}
		if err := t.readExemplars(ctx, rec, i); err != nil {
			return err
		}
		return ctx.Err()
	})
}

// finish makes the statistics of all targets, now that the end is known.
func (b *Builder) finish(ctx context.Context, rec Recording) (piece, error) {
	p := b.plan
	pc := piece{meta: &b.meta, plan: p, warnings: slices.Clone(rec.Warnings()),
		results: make([]targetResult, len(b.targets))}
	crew := newWorkerPool(runtime.GOMAXPROCS(0))
	crew.each(ctx, len(b.targets), func(i int) {
		pc.results[i] = b.targets[i].result(&p, func(n int, f func(int)) { crew.each(ctx, n, f) })
		if r, ok := rec.(interface {
			Lives(int) []metric.TargetEvent
		}); ok {
			pc.results[i].endpoint.Lives = r.Lives(i)
		}
		if r, ok := rec.(interface{ Lost(int) int }); ok {
			pc.results[i].endpoint.Ledger.Unread = r.Lost(i)
		}
		b.targets[i] = nil // free what the folds hold
	})
	return pc, context.Cause(ctx)
}

// survey chooses the window, for which all polls are looked at where it depends on when there were requests, or on
// when the last poll was.
func (b *Builder) survey(ctx context.Context, rec Recording) error {
	run := b.knownOf(b.marks, b.meta.OriginNS, nil)
	untimed := b.o.Slice < 0 && b.meta.Interval <= 0
	asked := b.o.Window.What != window.Default || needsTraffic(run, &b.o) // other parts are told beside the default one
	var polls []pollTimes
	_, ended := firstMark(b.marks, metric.MarkEnd)
	if found, ok := traffic.Decode(b.meta.Traffic, b.o.Catalog); ok && ended && !untimed {
		run = b.knownOf(b.marks, max(b.meta.OriginNS, found.LastNS), &found)
	} else if !ended || untimed || asked {
		observers := make([]*Observer, len(b.targets))
		polls = make([]pollTimes, len(b.targets))
		if err := parallel(ctx, len(b.targets), func(ctx context.Context, i int) error {
			observers[i] = NewObserver(b.o.Catalog)
			for s, err := range rec.Snapshots(ctx, i) {
				if err == nil {
					err = observers[i].Add(s)
				}
				if err != nil {
					return fmt.Errorf("read polls of %s: %w", b.targets[i].URL, err)
				}
				polls[i].add(s, untimed)
			}
			return ctx.Err()
		}); err != nil {
			return err
		}
		found, end := FindTraffic(observers), b.meta.OriginNS
		for i := range polls {
			end = max(end, polls[i].last)
		}
		run = b.knownOf(b.marks, end, &found)
	}
	var err error
	if r, ok := rec.(clients); ok && asked {
		if run.Load, err = loadOf(ctx, r, &run.Traffic); err != nil {
			return err
		}
	}
	if b.plan, err = planRun(run, &b.o); err != nil {
		return err
	}
	if b.o.Slice < 0 {
		b.o.Slice = b.plan.slice(b.o.Slice, &b.meta, polls)
	}
	return b.plan.askClients(ctx, rec, &run)
}

// askClients finds out what clients told of the edges, where their clock is that of the polls.
func (p *plan) askClients(ctx context.Context, rec Recording, run *window.Run) (err error) {
	r, ok := rec.(clients)
	if !ok || !run.Agrees() {
		return nil
	}
	for i, at := range []int64{p.resolved.Start.AtNS, p.resolved.End.AtNS} {
		b, err := r.RequestsAt(ctx, at)
		if err != nil {
			return err
		}
		p.clients[i] = &b
	}
	return nil
}

// clients is a recording whose clients told of their requests.
type clients interface {
	// RequestSpan returns when the first of those was issued that were issued from an instant to another one, and when
	// the last of them was answered; ok is false when there are none, or one was not answered.
	RequestSpan(ctx context.Context, fromNS, toNS int64) (firstNS, lastNS int64, ok bool, err error)
	// RequestsAt returns what they told of an instant.
	RequestsAt(ctx context.Context, atNS int64) (rundb.Boundary, error)
}

// loadOf is when the clients had requests in the traffic, without probes; nil when they told nothing.
func loadOf(ctx context.Context, rec clients, t *traffic.Traffic) (*window.Stretch, error) {
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	start, ok := t.Start()
	end, _ := t.End()
	for _, p := range t.Probes {
		if p.End.AtNS < start.AtNS {
			from = start.LowNS - 1e9
		} else {
			to = end.HighNS + 1e9
		}
	}
	first, last, known, err := rec.RequestSpan(ctx, from, to)
	if err != nil || !ok || !known {
		return nil, err
	}
	return &window.Stretch{StartNS: first, EndNS: last}, nil
}

// parallel calls f for 0 to n-1 on all processors and waits for all of them. The first error cancels the rest and
// is returned.
func parallel(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	newWorkerPool(runtime.GOMAXPROCS(0)).each(ctx, n, func(i int) {
		if err := f(ctx, i); err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}
