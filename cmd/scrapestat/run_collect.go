package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"time"

	"github.com/scrapestat/scrapestat/collect"
	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/internal/atomicfile"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// runCollect records one run, writes its exports and prints its summary.
func runCollect(ctx context.Context, o collectOptions, std stdio) error {
	child, view, err := newChildAndView(&o, std)
	if err != nil {
		return err
	}
	targets, err := o.openTargets(std)
	if err != nil {
		return err
	}
	o.out = cmp.Or(o.out, defaultRunDir(time.Now()))
	defer o.remoteWrite.close()
	surviveReaders()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, endSignals()...)
	defer signal.Stop(signals)
	say := newProgress(std.err, o.quiet)
	if err := o.awaitTargets(ctx, signals, targets.given, say, std); err != nil {
		targets.close()
		return err
	}
	c := &console{say: say, view: view, self: newSelfMetrics(), restoreGC: lowerGOGC()}
	defer c.restoreGC()
	defer limitGC(o.limits.Memory + int64(o.maxPending))()
	page := o.newLivePage()
	s, err := collect.Open(ctx, o.out, o.sessionOptions(targets, child, c, page, std))
	if err != nil {
		return dirError(err)
	}
	defer s.Close()
	if err := c.listen(&o, s, page); err != nil {
		return err
	}
	if err := view.holdOutput(child, o.out); err != nil {
		return err
	}
	s.AtEnd(libraryWarnings)
	if addr := s.ProxyAddr(); addr != nil {
		c.say.logf("proxy on http://%s", addr)
	}
	if addr := s.TracesAddr(); addr != nil {
		c.say.logf("taking traces at %s", addr)
	}
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	defer interrupts(signals, s.Stop, abort)()

	c.say.logf("recording %d targets into %s", s.Servers(), o.out)
	view.begin(s, c.say, signals)
	announced := o.announce(ctx, s, c.say)
	run, err := s.Run(ctx)
	announced()
	var unstarted *collect.CommandError
	switch {
	case errors.Is(err, collect.ErrAborted):
		return &codeError{exitAborted, fmt.Errorf("aborted; the recording is kept: scrapestat export %s", o.out)}
	case errors.As(err, &unstarted):
		return fmt.Errorf("%w (what was recorded is kept: scrapestat export %s)", err, o.out)
	}
	return finish(ctx, o, run, err, child, c.say, std)
}

// announce writes --ready-file when the session is ready. The function that it returns ends the waiting.
func (o *collectOptions) announce(ctx context.Context, s *collect.Session, say *progress) func() {
	if o.readyFile == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-ctx.Done():
			return
		case <-s.Ready():
		}
		text, err := json.Marshal(map[string]any{"run": o.out, "listen": o.listen,
			"start_ns": s.Manifest().Started.UnixNano()})
		if err == nil {
			err = atomicfile.WriteFile(o.readyFile, append(text, '\n'), atomicfile.DefaultPerm)
		}
		if err != nil {
			say.logf("warning: --ready-file: %v", err)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// sessionOptions is the command line as a session wants it.
func (o *collectOptions) sessionOptions(t *targetSet, child *collect.Command, c *console, page *livePage,
	std stdio) collect.Options {
	out := collect.Options{
		Targets: t.given, Discoverers: t.discoverers, Refresh: o.access.refresh, Warnings: t.warnings,
		Scrape:   o.scrapeOptions(),
		Duration: o.duration, Warmup: o.warmup, Cooldown: o.cooldown, Settle: o.settle, Slice: o.analysis.slice,
		WaitTraffic: o.waitTraffic, Window: window.Ref{What: window.What(o.window)}, Catalog: o.analysis.catalog,
		Command: child, ClientInterval: o.client, RemoteWriter: o.remoteWriter, SubtractSelf: o.subtract,
		Replace: replaced(o.force), MaxBytes: o.maxRecording,
		MaxPending: o.maxPending, Tags: redactedTags(o.store, o.tags), Version: toolVersion(),
		Settings: o.settings(),
		Shard:    o.shards.meta(), Group: o.shards.group,
		CommandLine: func(targets []metric.Target) []string { return redactedCommand(o.store, o.flags, targets, o.command) },
		OnCommit:    c.self.commit, Events: c, ProgressEvery: c.say.every(),
	}
	if page != nil {
		out.OnPoll, out.Observers = page.add, append(out.Observers, c.self)
	}
	if c.view != nil {
		out.Observers = append(out.Observers, c.view)
	}
	if page != nil || c.view != nil {
		so := o.analysis.options()
		if so.Slice == 0 && page != nil {
			so.Slice = o.liveSlice()
		}
		out.Analysis = &so
	}
	if o.remoteWriter != nil {
		c.self.mirror(o.remoteWriter)
	}
	out.Client = collect.ClientOptions{Lines: o.requests, Traces: o.otlp, Served: o.served,
		In: std.in, Memory: o.limits.Memory}
	if o.proxy != "" {
		p := o.proxyFlags.options
		p.Untracked = true // the phases of the run decide what is tracked
		out.Client.Proxy = &p
	}
	return out
}

// console turns the events of a run into words on stderr, and passes them on to the
// live view and to the collector's own metrics.
type console struct {
	say       *progress
	view      *screen // nil without
	self      *selfMetrics
	restoreGC func()
}

func (c *console) TargetAdded(_ int, t metric.Target) {
	c.self.name(t)
	c.view.addTarget(t)
}
func (c *console) TargetGone(n int, gone bool)             { c.view.gone(n, gone) }
func (c *console) PhaseBegun(m metric.Mark)                { c.view.observe(m.Name) }
func (c *console) Warning(w metric.Warning)                { c.say.logf("warning: %s", w.Text) }
func (c *console) Message(text string)                     { c.say.logf("%s", text) }
func (c *console) Progress(phase string, t collect.Totals) { c.say.line(phase, t) }

// Ended takes the live view away, so that the rest is said on a plain terminal.
func (c *console) Ended() {
	c.view.end(c.say)
	c.say.end()
	c.restoreGC()
}

// recordingGC is by how many percent the heap may grow between two collections while a run is recorded. Polling hardly
// allocates, so collections are rare all the same, and a collector that runs beside a server should be small.
const recordingGC = 10

// lowerGOGC lowers GOGC until the returned func is called; no-op if GOGC is set.
func lowerGOGC() (restoreGC func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	old := debug.SetGCPercent(recordingGC)
	return func() { debug.SetGCPercent(old) }
}

// scrapeOptions is what of the command line the collector needs.
func (o *collectOptions) scrapeOptions() scrape.Options {
	so := scrape.Options{
		Interval:       o.interval,
		Timeout:        o.timeout,
		Limits:         o.limits,
		MaxScrapeShare: o.maxShare,
		Compress:       o.compress,
		Protocols:      o.protocols,
		Sentinel:       o.analysis.catalog.Sentinel,
	}
	if o.maxShare == 0 {
		so.MaxScrapeShare = -1 // the collector's word for no limit
	}
	if so.Limits.Redirects == 0 {
		so.Limits.Redirects = -1
	}
	so.Keep, so.Drop = o.filters()
	return so
}

// finish turns a recorded run, whose recording may have failed, into exports and a
// printed summary, and decides the exit code.
func finish(ctx context.Context, o collectOptions, run *collect.Run, runErr error, child *collect.Command,
	say *progress, std stdio) error {
	o.importWritten(ctx, run.Manifest.Started, say)
	so := o.analysis.options()
	so.AIPerf, so.FileEstimator = true, o.analysis.inFiles() // the screen and the files of one reading
	result, files, exportErr := analyse(ctx, []string{o.out}, o.analysis, so, o.out, say)
	if ctx.Err() != nil {
		return &codeError{exitAborted, fmt.Errorf("aborted; write the exports with: scrapestat export %s", o.out)}
	}
	exportErr = errors.Join(runErr, exportErr)
	if result == nil {
		return childFirst(child, exportErr)
	}
	if err := run.WriteManifest(result, exportedFiles(files)); err != nil {
		exportErr = errors.Join(exportErr, err)
	}
	if err := printSummary(ctx, result, run, &o, say, std); err != nil {
		return err
	}
	for _, f := range files {
		say.logf("wrote %s (%d bytes)", f.Path, f.Size)
	}
	if exportErr != nil {
		return childFirst(child, fmt.Errorf("%w (the recording is kept: scrapestat export %s)", exportErr, o.out))
	}
	return o.verdict(run, child, result)
}

// childFirst gives an error of ours the code with which COMMAND failed, if it did:
// what became of the benchmark counts more than what became of its recording.
func childFirst(child *collect.Command, err error) error {
	if child != nil && child.Failure == nil && child.Code != 0 && !child.Stopped {
		return &codeError{child.Code, err}
	}
	return err
}

// printSummary prints the numbers of a run. That nobody reads them changes nothing.
func printSummary(ctx context.Context, result *summary.Run, run *collect.Run, o *collectOptions, say *progress,
	std stdio) error {
	_, causes, err := causesOf(ctx, o.out, &windowFlags{}, o.analysis, explain.DefaultRules(), explain.Latency,
		stdio{err: io.Discard})
	if err != nil { // the numbers are there all the same
		say.logf("warning: explain: %v", err)
	}
	out := &talk{to: plain(std.out)}
	defer out.tell(say)
	if err := report.Text(out, result, report.Options{Title: o.out, Width: columns(std.out), Causes: causes,
		Rules: explain.DefaultRules()}); err != nil {
		return fmt.Errorf("print summary: %w", err)
	}
	if run.Client != nil {
		fmt.Fprintln(out, run.Client)
	}
	return nil
}

// verdict is the exit code of a run whose files were all written.
func (o *collectOptions) verdict(run *collect.Run, child *collect.Command, r *summary.Run) error {
	t, client := run.Totals, run.Client
	switch {
	case o.shards.text != "" && len(r.Endpoints) == 0: // the other shards have the targets
		return nil
	case t.Stored == 0:
		return &codeError{exitNothing, fmt.Errorf("nothing could be collected from any target: %s", firstError(r))}
	case child != nil && child.Failure != nil:
		return child.Failure
	case child != nil && child.Code != 0 && !child.Stopped:
		return &codeError{child.Code, nil}
	case o.analysis.strict && emptyWindow(r) != "":
		return &codeError{exitIncomplete, errors.New(emptyWindow(r) + " (--strict)")}
	case o.analysis.strict && child != nil && r.Warned("no_traffic") != "":
		return &codeError{exitIncomplete, errors.New(r.Warned("no_traffic") + " (--strict)")}
	case o.analysis.strict && client != nil && (client.Failed || client.Lost() > 0):
		return o.analysis.lost(1, "of the requests %s", client.LossText())
	case o.analysis.strict && !t.Lossless():
		return o.analysis.lost(1, "%d scrapes failed or were skipped, %d lines dropped, %d scrapes not written", t.Failed,
			t.Dropped, t.Unwritten)
	case o.analysis.strict && r.Uncertain() != "":
		return &codeError{exitIncomplete, fmt.Errorf("data uncertain: %s (--strict)", r.Uncertain())}
	}
	return nil
}

// emptyWindow returns the warning of a run whose numbers are of no time at all; "" when they are of some.
func emptyWindow(r *summary.Run) string {
	if text := r.Warned("empty_window"); text != "" {
		return "nothing is left to measure: " + text
	}
	return ""
}

// notEmpty fails when nothing was left to measure.
func notEmpty(r *summary.Run, name string, code int) error {
	if text := emptyWindow(r); text != "" {
		return &codeError{code, fmt.Errorf("%s: %s", name, text)}
	}
	return nil
}

// firstError is the first failure of the first target that has one: what came of a request, else why there was none.
func firstError(r *summary.Run) string {
	for _, e := range r.Endpoints {
		first := e.Ledger.FirstError
		for o, of := range e.Ledger.FirstOf {
			asked := metric.Outcome(o) < metric.SkippedOverlap && !metric.Outcome(o).Stored()
			if asked && of.Text != "" && (first.Outcome >= metric.SkippedOverlap || of.AtNS < first.AtNS) {
				first = of
			}
		}
		if first.Text != "" {
			return e.URL + ": " + first.Text
		}
	}
	return "no scrape succeeded"
}
