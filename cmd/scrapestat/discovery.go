package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// discovery finds targets and follows them through a run: those that are given, those
// of a configuration and the inference pods of a cluster.
type discovery struct {
	discoverers []*discover.Discoverer
	clients     []*discover.Client
	given       []scrape.Target
	every       time.Duration
	warnings    []metric.Warning // not recorded yet

	index  map[string]int // by ID: every target that was ever found
	active map[string]bool
}

// lookEvery is the time between two looks at files and for what is due.
const lookEvery = time.Second

// newHunt prepares the given targets and opens what others come from.
func newHunt(o *collectOptions, given []scrape.Target) (*discovery, error) {
	h := &discovery{every: lookEvery, index: map[string]int{}, active: map[string]bool{}}
	if o.access.refresh > 0 {
		h.every = o.access.refresh
	}
	o.access.auth.Limits = o.limits
	var err error
	if h.given, h.clients, h.warnings, err = o.access.auth.Apply(given); err != nil {
		return nil, usagef("%w", err)
	}
	h.warnings = append(h.warnings, o.remoteWrite.unsafe...)
	h.warnings = append(h.warnings, discover.WarnWorldWritable(o.torchserve.yaml)...)
	do := discover.Options{Refresh: o.access.refresh, DefaultInterval: o.interval, Limits: o.limits}
	if o.intervalGiven {
		do.Interval = o.interval
	}
	if o.timeoutGiven {
		do.Timeout = o.timeout
	}
	add := func(d *discover.Discoverer, err error) error {
		if err != nil {
			h.close()
			return usagef("%w", err)
		}
		h.discoverers = append(h.discoverers, d)
		return nil
	}
	if o.access.config != "" {
		if err := add(discover.Load(o.access.config, do)); err != nil {
			return nil, usagef("--config: %w", err)
		}
	}
	if o.access.pods.given {
		p := discover.InferenceOptions{Namespace: o.access.pods.namespace, Selector: o.access.podLabels, Kubeconfig: o.access.kube}
		if err := add(discover.InferencePods(p, do)); err != nil {
			return nil, usagef("--kubernetes-inference-pods: %w", err)
		}
	}
	return h, nil
}

// close closes the connections to targets and to those who list them.
func (h *discovery) close() {
	for _, d := range h.discoverers {
		d.Close()
	}
	for _, c := range h.clients {
		c.CloseIdleConnections()
	}
}

// first returns the targets to begin with: the given ones, then those found.
func (h *discovery) first(ctx context.Context) []scrape.Target {
	targets := h.given
	for _, f := range h.refresh(ctx) {
		h.index[f.ID], h.active[f.ID] = len(targets), true
		targets = append(targets, f.Target)
	}
	return targets
}

// refresh asks all discoverers. A target that is given too is only the given one.
func (h *discovery) refresh(ctx context.Context) []discover.Found {
	seen := map[string]bool{}
	for _, t := range h.given {
		seen[t.URL] = true
	}
	var out []discover.Found
	for _, d := range h.discoverers {
		r := d.Refresh(ctx)
		h.warnings = append(h.warnings, r.Warnings...)
		for _, f := range r.Targets {
			if !seen[f.Target.URL] {
				seen[f.Target.URL] = true
				out = append(out, f)
			}
		}
	}
	return out
}

// tellWarnings records what was not said yet.
func (s *session) tellWarnings() error {
	for _, w := range s.discovery.warnings {
		if err := s.db.Warn(w); err != nil {
			return err
		}
		s.notify(w.Text)
	}
	s.discovery.warnings = nil
	return nil
}

// notify passes a sentence to the goroutine that talks. When that one is busy the
// sentence is left out: the recording has it too.
func (s *session) notify(text string) {
	select {
	case s.messages <- text:
	default:
	}
}

// follow lets targets come and go until ctx is done.
func (s *session) follow(ctx context.Context) error {
	if len(s.discovery.discoverers) == 0 {
		return nil
	}
	tick := time.NewTicker(s.discovery.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		found := s.discovery.refresh(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := s.tellWarnings(); err != nil {
			return err
		}
		if err := s.update(ctx, found); err != nil && ctx.Err() == nil {
			return fmt.Errorf("follow targets: %w", err)
		}
	}
}

// update takes up the targets that are new or back, and leaves those that are no
// longer found. Those that go do so first: one may come back under the same
// address as another target.
func (s *session) update(ctx context.Context, found []discover.Found) error {
	here := map[string]bool{}
	for _, f := range found {
		here[f.ID] = true
	}
	for id := range s.discovery.active {
		if here[id] {
			continue
		}
		n := s.discovery.index[id]
		if err := s.collector.Remove(ctx, n); err != nil {
			return err
		}
		delete(s.discovery.active, id)
		s.view.gone(n, true)
		s.rec.discountFailures(n)
		if err := s.db.TargetEvent(n, metric.TargetEvent{AtNS: s.now(), Gone: true, Reason: "no longer listed"}); err != nil {
			return err
		}
		s.notify(fmt.Sprintf("target %d went: no longer listed", n))
	}
	for _, f := range found {
		if !s.discovery.active[f.ID] {
			if err := s.startTarget(ctx, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// startTarget begins to poll a target. One that cannot be polled is named once.
func (s *session) startTarget(ctx context.Context, f discover.Found) error {
	s.discovery.active[f.ID] = true
	n, back := s.discovery.index[f.ID]
	if !back {
		var err error
		if n, err = s.db.AddTarget(f.Target.Public()); err != nil {
			return err
		}
		s.discovery.index[f.ID] = n
		s.self.name([]scrape.Target{f.Target})
		s.fold.addTarget(f.Target.Public())
		s.view.addTarget(f.Target.Public())
		if w := s.o.remoteWriter; w != nil {
			w.AddTarget(f.Target.Public())
		}
	}
	s.view.gone(n, false)
	if err := s.db.TargetEvent(n, metric.TargetEvent{AtNS: s.now(), Reason: f.Reason}); err != nil {
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
