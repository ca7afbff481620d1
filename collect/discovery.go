package collect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// followed is the targets that were ever found, by their IDs.
type followed struct {
	index    map[string]int
	active   map[string]bool
	warnings []metric.Warning // not recorded yet
}

func newFollowed() *followed { return &followed{index: map[string]int{}, active: map[string]bool{}} }

// first returns the targets to begin with: the given ones, then those found.
func (f *followed) first(ctx context.Context, o *Options) []scrape.Target {
	targets := o.Targets
	for _, x := range f.refresh(ctx, o) {
		f.index[x.ID], f.active[x.ID] = len(targets), true
		targets = append(targets, x.Target)
	}
	return targets
}

// refresh asks all discoverers.
func (f *followed) refresh(ctx context.Context, o *Options) []discover.Found {
	r := discover.Refresh(ctx, o.Targets, o.Discoverers)
	f.warnings = append(f.warnings, r.Warnings...)
	return r.Targets
}

func (f *followed) takeWarnings() []metric.Warning {
	out := f.warnings
	f.warnings = nil
	return out
}

// recordWarnings records what is doubtful, and queues it as messages.
func (s *Session) recordWarnings(warnings []metric.Warning) error {
	for _, w := range warnings {
		if err := s.db.Warn(w); err != nil {
			return err
		}
		s.notify(w.Text)
	}
	return nil
}

// notify queues a status message; drops it if full: the recording has it too.
func (s *Session) notify(text string) {
	select {
	case s.messages <- text:
	default:
	}
}

// follow lets targets come and go until ctx is done.
func (s *Session) follow(ctx context.Context) error {
	if len(s.o.Discoverers) == 0 {
		return nil
	}
	tick := time.NewTicker(s.o.Refresh)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		found := s.found.refresh(ctx, &s.o)
		if ctx.Err() != nil {
			return nil
		}
		if err := s.recordWarnings(s.found.takeWarnings()); err != nil {
			return err
		}
		if err := s.update(ctx, found); err != nil && ctx.Err() == nil {
			return fmt.Errorf("follow targets: %w", err)
		}
	}
}

// update starts the targets that are new or back, and ends those that are no
// longer found. Those that go do so first: one may come back under the same
// address as another target.
func (s *Session) update(ctx context.Context, found []discover.Found) error {
	here := map[string]bool{}
	for _, f := range found {
		here[f.ID] = true
	}
	for id := range s.found.active {
		if here[id] {
			continue
		}
		n := s.found.index[id]
		if err := s.collector.Remove(ctx, n); err != nil {
			return err
		}
		delete(s.found.active, id)
		s.o.Events.TargetGone(n, true)
		s.rec.discountFailures(n)
		if err := s.db.TargetEvent(n, metric.TargetEvent{AtNS: s.Now(), Gone: true, Reason: "no longer listed"}); err != nil {
			return err
		}
		s.notify(fmt.Sprintf("target %d went: no longer listed", n))
	}
	for _, f := range found {
		if !s.found.active[f.ID] {
			if err := s.startTarget(ctx, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// startTarget begins to poll a target. One that cannot be polled is named once.
func (s *Session) startTarget(ctx context.Context, f discover.Found) error {
	s.found.active[f.ID] = true
	n, back := s.found.index[f.ID]
	if !back {
		t := f.Target.Public()
		var err error
		if n, err = s.db.AddTarget(t); err != nil {
			return err
		}
		s.found.index[f.ID] = n
		s.o.Events.TargetAdded(n, t)
		s.analysis.addTarget(t)
		s.tee.addTarget(t)
	}
	s.o.Events.TargetGone(n, false)
	if err := s.db.TargetEvent(n, metric.TargetEvent{AtNS: s.Now(), Reason: f.Reason}); err != nil {
		return err
	}
	if err := s.collector.Add(ctx, n, f.Target); err != nil {
		if errors.Is(err, context.Canceled) || ctx.Err() != nil {
			return nil
		}
		s.notify(err.Error())
		return s.db.Warn(metric.Warning{Code: "target_refused", Text: err.Error()})
	}
	s.notify(fmt.Sprintf("target %s came: %s", f.Target, f.Reason))
	return nil
}
