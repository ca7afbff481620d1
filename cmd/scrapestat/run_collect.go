package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
)

// collect records one run, writes its exports and prints its summary.
func collect(ctx context.Context, o collectOptions, std stdio) error {
	child, view, err := newChildAndView(&o, std)
	if err != nil {
		return err
	}
	targets, err := o.parseTargets()
	if err != nil {
		return err
	}
	h, err := newHunt(&o, targets)
	if err != nil {
		return err
	}
	defer h.close()
	closeSources, err := o.attachSources(h.given, std)
	if err != nil {
		return err
	}
	defer closeSources()
	if o.out == "" {
		o.out = defaultRunDir(time.Now())
	}
	unlock, err := makeRunDir(o.out, o.force)
	if err != nil {
		return err
	}
	defer unlock()
	restoreGC := lowerGOGC()
	defer restoreGC()
	targets = h.first(ctx)
	s, err := newSession(o, targets, child, view, std)
	if err != nil {
		return err
	}
	s.discovery = h
	if err := s.tellWarnings(); err != nil {
		return s.abandon(err)
	}
	stopOutputs, err := s.startOutputs(ctx, targets)
	if err != nil {
		return s.abandon(err)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	first, stopWatching := interrupts(signals, abort)
	defer stopWatching()

	s.say.logf("recording %d targets into %s", len(targets), o.out)
	runErr := s.recordWithProgress(ctx, first, signals)
	s.say.end()
	restoreGC()
	stopOutputs(ctx)
	if err := s.close(runErr); err != nil {
		return err
	}
	return finish(ctx, o, s, std)
}

// recordingGC is by how many percent the heap may grow between two collections
// while a run is recorded. Polling hardly allocates, so collections are rare all
// the same, and a collector that runs beside a server should be small.
const recordingGC = 10

// lowerGOGC lets the heap grow less until the returned function is called. Who
// sets GOGC has decided otherwise.
func lowerGOGC() (restoreGC func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	old := debug.SetGCPercent(recordingGC)
	return func() { debug.SetGCPercent(old) }
}

// newSession opens the recording and makes the collector.
func newSession(o collectOptions, targets []scrape.Target, c *child, view *screen, std stdio) (_ *session, err error) {
	s := &session{o: o, in: std.in, origin: time.Now(), child: c, marks: make(chan metric.Mark, 16), messages: make(chan string, 64),
		discovery: &discovery{}, say: newProgress(std.err, o.quiet), self: newSelfMetrics()}
	if s.view = view; view != nil {
		view.run = o.out
		if err := view.holdOutput(c, o.out); err != nil {
			return nil, err
		}
	}
	s.wall.origin = s.origin
	meta := o.meta(s.origin, targets)
	s.manifest = o.manifest(meta, targets)
	if err := s.startFold(meta, targets); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.fold.close()
		}
	}()
	db, err := rundb.Create(o.out, meta, rundb.WriterOptions{OnMark: s.notifyMark, OnCommit: s.self.commit, MaxBytes: o.maxRecording})
	if err != nil {
		return nil, err
	}
	s.db = db
	for _, t := range targets {
		if _, err := db.AddTarget(t.Public()); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	s.self.name(targets)
	s.rec = newRecorder(newOwnRequests(db, o.torchserve.subtract))
	s.observeBy(targets)
	so := o.scrapeOptions(s.origin)
	so.OnAddress = func(_ int, text string) { s.notify(text) }
	s.collector, err = scrape.New(targets, so, s.rec)
	if err != nil {
		return nil, errors.Join(usagef("%w", err), db.Close())
	}
	if err := rundb.WriteManifest(o.out, s.manifest); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// scrapeOptions is what of the command line the collector needs.
func (o *collectOptions) scrapeOptions(origin time.Time) scrape.Options {
	so := scrape.Options{
		Origin:         origin,
		Interval:       o.interval,
		Timeout:        o.timeout,
		Limits:         o.limits,
		MaxScrapeShare: o.maxShare,
		Compress:       o.compress,
		Protocols:      o.protocols,
		Version:        toolVersion(),
		Dynamic:        o.access.discovers(),
	}
	if o.maxShare == 0 {
		so.MaxScrapeShare = -1 // the collector's word for no limit
	}
	if so.Limits.Redirects == 0 {
		so.Limits.Redirects = -1
	}
	// Both were compiled by validate.
	if o.keep != "" {
		so.Keep = regexp.MustCompile(o.keep)
	}
	if o.drop != "" {
		so.Drop = regexp.MustCompile(o.drop)
	}
	return so
}

// close ends the recording; after an abort it says how to go on.
func (s *session) close(runErr error) error {
	s.ended = time.Now()
	runErr = errors.Join(runErr, s.lookAtClock())
	err := errors.Join(runErr, s.db.Close())
	s.endFold()
	if errors.Is(err, errAborted) {
		return &codeError{exitAborted, fmt.Errorf("aborted; the recording is kept: scrapestat export %s", s.o.out)}
	}
	if err != nil {
		return fmt.Errorf("%w (what was recorded is kept: scrapestat export %s)", err, s.o.out)
	}
	return nil
}

// finish turns the closed recording into exports and a printed summary, and
// decides the exit code.
func finish(ctx context.Context, o collectOptions, s *session, std stdio) error {
	result, files, exportErr := analyse(ctx, []string{o.out}, o.analysis, o.analysis.options(), o.out, s.say)
	if ctx.Err() != nil {
		return &codeError{exitAborted, fmt.Errorf("aborted; write the exports with: scrapestat export %s", o.out)}
	}
	if result == nil {
		return exportErr
	}
	if err := rundb.WriteManifest(o.out, complete(s.manifest, s.ended, result, files)); err != nil {
		exportErr = errors.Join(exportErr, err)
	}
	if !o.quiet {
		if err := report.Text(std.out, result, report.Options{Title: o.out}); err != nil {
			return fmt.Errorf("print summary: %w", err)
		}
	}
	if s.side != nil && !o.quiet {
		if _, err := fmt.Fprintln(std.out, s.clientStats.summary()); err != nil {
			return fmt.Errorf("print summary: %w", err)
		}
	}
	for _, f := range files {
		s.say.logf("wrote %s (%d bytes)", f.Path, f.Size)
	}
	if exportErr != nil {
		return fmt.Errorf("%w (the recording is kept: scrapestat export %s)", exportErr, o.out)
	}
	return s.verdict(result)
}

// verdict is the exit code of a run whose files were all written.
func (s *session) verdict(r *summary.Run) error {
	t := s.rec.totals()
	switch {
	case t.stored == 0:
		return &codeError{exitNothing, fmt.Errorf("nothing could be collected from any target: %s", firstError(r))}
	case s.child != nil && s.child.err != nil:
		return s.child.err
	case s.child != nil && s.child.code != 0 && !s.child.stopped:
		return &codeError{s.child.code, nil}
	case s.o.strict && (s.clientStats.failed || s.clientStats.lost() > 0):
		return &codeError{exitIncomplete, fmt.Errorf("data incomplete: of the requests %s (--strict)", s.clientStats.lossText())}
	case s.o.strict && !t.lossless():
		return &codeError{exitIncomplete, fmt.Errorf("data incomplete: %d scrapes failed, %d lines dropped (--strict)", t.failed, t.dropped)}
	}
	return nil
}

// firstError is the first failure of the first target that has one.
func firstError(r *summary.Run) string {
	for _, e := range r.Endpoints {
		if fe := e.Ledger.FirstError; fe.Text != "" {
			return e.URL + ": " + fe.Text
		}
	}
	return "no scrape succeeded"
}

// analyse builds the result of one or several run directories and writes the
// exports. It returns the result also when some of the files could not be
// written.
func analyse(ctx context.Context, dirs []string, a analysisFlags, so summary.Options, out string, say *progress) (*summary.Run, []export.File, error) {
	result, runs, closeAll, err := load(ctx, dirs, a, so, say)
	if err != nil {
		return nil, nil, err
	}
	defer closeAll()
	eo := a.exportOptions()
	eo.Unhashed = !slices.Contains(dirs, out) // only a manifest keeps hashes
	samples := 0                              // of the formats, those that read the recording again
	for _, f := range a.formats {
		for _, kind := range export.Lookup(f, result, eo) {
			if kind.NeedsSamples {
				samples++
			}
		}
	}
	watched, b := watch(say, "writing "+out, runs, samples)
	files, err := export.Write(ctx, out, a.formats, result, toExport(watched), eo)
	b.done()
	return result, files, err
}

// openRuns opens run directories; a path to the run.db inside one works too.
func openRuns(dirs []string) ([]*rundb.Run, func(), error) {
	var runs []*rundb.Run
	closeAll := func() {
		for _, r := range runs {
			r.Close() // read only: there is nothing to lose
		}
	}
	for _, dir := range dirs {
		if filepath.Base(dir) == "run.db" {
			dir = filepath.Dir(dir)
		}
		r, err := rundb.Open(dir)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		runs = append(runs, r)
	}
	return runs, closeAll, nil
}

// noteOpen says which of the runs were never closed: their collector was killed
// or is still at work, so they end with the last committed scrape.
func noteOpen(say *progress, runs []*rundb.Run, dirs []string) {
	for i, r := range runs {
		if r.Meta().EndNS == 0 {
			say.logf("%s was not closed: its collector was killed or still records; this is what it has committed so far", dirs[i])
		}
	}
}

// load opens run directories and builds their result. Slices are as the recording
// was to be sliced, unless a says otherwise. The caller calls closeAll when err is
// nil and the recordings are no longer read.
func load(ctx context.Context, dirs []string, a analysisFlags, so summary.Options, say *progress) (
	result *summary.Run, runs []*rundb.Run, closeAll func(), err error) {
	runs, closeAll, err = openRuns(dirs)
	if err != nil {
		return nil, nil, nil, err
	}
	noteOpen(say, runs, dirs)
	if a.sliceFlag != nil && !a.sliceFlag.Changed {
		so.Slice = runs[0].Meta().Slice
	}
	watched, b := watch(say, "reading "+dirs[0], runs, 1)
	result, err = summary.Build(ctx, toAnalyse(watched), so)
	b.done()
	if err != nil {
		closeAll()
		if errors.Is(err, summary.ErrNoPhase) {
			err = usagef("%w", err)
		}
		return nil, nil, nil, err
	}
	return result, runs, closeAll, nil
}

func recordings(runs []*rundb.Run) []export.Recording {
	recs := make([]export.Recording, len(runs))
	for i, r := range runs {
		recs[i] = r
	}
	return recs
}
