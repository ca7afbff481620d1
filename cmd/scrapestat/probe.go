package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/scrapestat/scrapestat/internal/doctor"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
)

// The words of --require-targets.
const (
	requireAll  = "all"
	requireAny  = "any"
	requireNone = "none"
)

// The pace of questions before a run.
const (
	askAgain = time.Second // while servers are loading
	askTurns = 16          // at a time
)

// validateTargets refuses a run of no target, words of --require-targets, and a COMMAND without --.
func (o *collectOptions) validateTargets() error {
	if len(o.targets) == 0 && !o.access.discovers() {
		return usagef("missing TARGET, for example: scrapestat collect localhost:8000")
	}
	if o.wait < 0 {
		return usagef("--wait %v is negative", o.wait)
	}
	if !slices.Contains([]string{requireAll, requireAny, requireNone}, o.require) {
		return usagef("--require-targets %q: want all, any or none", o.require)
	}
	for i, arg := range o.targets {
		if len(o.command) > 0 || strings.ContainsAny(arg, ".:/=") {
			continue
		}
		if _, err := exec.LookPath(arg); err == nil {
			before := cmp.Or(strings.Join(redactArgs(o.targets[:i]), " "), "TARGET")
			return usagef("%q is a command, not a target: write -- before it: scrapestat collect %s -- %s", arg, before,
				strings.Join(redactArgs(o.targets[i:]), " "))
		}
	}
	return nil
}

// awaitTargets asks each given target once before COMMAND starts, and those that do
// not answer again while --wait lasts. It refuses a run that too few answer.
func (o *collectOptions) awaitTargets(ctx context.Context, signals <-chan os.Signal, given []scrape.Target,
	say *progress, std stdio) error {
	if o.told != "" {
		say.logf("%s", o.told)
	}
	asked := len(o.command) > 0 || o.requireGiven || o.wait > 0
	if !asked || len(given) == 0 || o.require == requireNone && o.wait == 0 {
		return nil
	}
	if entries, err := os.ReadDir(o.out); err == nil && len(entries) > 0 && !o.force {
		return dirError(&rundb.DirError{Dir: o.out, Err: rundb.ErrDirExists})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer interrupts(signals, cancel, cancel)()
	silent := o.askAll(ctx, given, std)
	if len(silent) > 0 && o.wait > 0 {
		say.logf("waiting up to %v for %d targets that do not answer yet", o.wait, len(silent))
	}
	tick, end := time.NewTicker(askAgain), time.After(o.wait)
	defer tick.Stop()
	for waiting := o.wait > 0; waiting && len(silent) > 0; {
		select {
		case <-ctx.Done():
			waiting = false
		case <-end:
			waiting = false
		case <-tick.C:
			silent = o.askAll(ctx, silent, std)
		}
	}
	if ctx.Err() != nil {
		return &codeError{exitNothing, fmt.Errorf("ended by a signal before the run began")}
	}
	return o.judgeSilence(ctx, given, silent, say, std)
}

// judgeSilence decides whether a run begins without the answers of some targets.
func (o *collectOptions) judgeSilence(ctx context.Context, given, silent []scrape.Target, say *progress,
	std stdio) error {
	reasons := make([]string, len(silent))
	inTurns(askTurns, len(silent), func(i int) { reasons[i] = o.whySilent(ctx, silent[i], std) })
	all := strings.Join(reasons, "\n  ")
	switch {
	case len(silent) == 0:
	case o.require == requireAny && len(silent) == len(given):
		return &codeError{exitNothing, fmt.Errorf("no target answers, and nothing was started (--require-targets none "+
			"goes on, --wait D waits for servers that are loading):\n  %s", all)}
	case o.require == requireAll:
		return &codeError{exitNothing, fmt.Errorf("%d of %d targets do not answer, and nothing was started "+
			"(--require-targets all):\n  %s", len(silent), len(given), all)}
	default:
		for _, reason := range reasons {
			say.logf("warning: no answer before the run: %s", reason)
		}
	}
	return nil
}

// inTurns calls f for each of n, so many at a time.
func inTurns(atATime, n int, f func(i int)) {
	var wg sync.WaitGroup
	turns := make(chan struct{}, atATime)
	for i := range n {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			f(i)
		})
	}
	wg.Wait()
}

// askAll returns the targets that do not answer with metrics.
func (o *collectOptions) askAll(ctx context.Context, targets []scrape.Target, std stdio) []scrape.Target {
	answers := make([]bool, len(targets))
	inTurns(askTurns, len(targets), func(i int) { answers[i] = o.answers(ctx, targets[i], std) })
	var out []scrape.Target
	for i, ok := range answers {
		if !ok {
			out = append(out, targets[i])
		}
	}
	return out
}

// answers asks one target. A source of a local kind is taken to answer: what is read of it here the run would lack.
func (o *collectOptions) answers(ctx context.Context, t scrape.Target, std stdio) bool {
	if t.Source != nil {
		return o.kinds.local(t.Kind) || o.examineSource(ctx, t, std).Collectable
	}
	p, err := scrape.NewProber(t, o.probeOptions())
	if err != nil {
		return true // the run refuses it, and says why
	}
	defer p.Close()
	return p.Ask(ctx, scrape.ProbeRequest{Protocols: o.protocols}).Outcome.Stored()
}

// whySilent says in a line what doctor says of a target, with its remedy.
func (o *collectOptions) whySilent(ctx context.Context, t scrape.Target, std stdio) string {
	var r *doctor.Report
	if t.Source != nil {
		r = o.examineSource(ctx, t, std)
	} else if p, err := scrape.NewProber(t, o.probeOptions()); err == nil {
		defer p.Close()
		r = doctor.Examine(ctx, t.Public(), p, doctor.Options{Scrapes: 1, Pause: time.Millisecond})
	}
	name := t.Public().URL
	if r == nil || len(r.Finding) == 0 {
		return name
	}
	f := r.Finding[0]
	if f.Remedy != "" {
		f.Remedy = "; do: " + f.Remedy
	}
	return name + ": " + f.Text + f.Remedy
}

func (o *collectOptions) probeOptions() scrape.Options {
	so := o.scrapeOptions()
	so.Version = toolVersion()
	return so
}

// examineSource polls a source of its own: what the run's has told of itself it would not tell again.
func (o *collectOptions) examineSource(ctx context.Context, t scrape.Target, std stdio) *doctor.Report {
	own := []scrape.Target{t}
	if err := o.attachSources(own, std); err != nil {
		return &doctor.Report{Finding: []doctor.Finding{{Text: err.Error()}}}
	}
	defer own[0].Close()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return doctor.ExamineSource(ctx, t.Public(), own[0].Source, doctor.Options{Scrapes: 1, Pause: time.Millisecond})
}
