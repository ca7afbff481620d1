package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

const importLong = `Makes a run directory of what others have recorded. Afterwards export, show and
the other commands work on it as on a run of collect.

An import that breaks off keeps what was read: the run directory is complete up
to there, and the exit code is 1; so is one that a signal ends. It is 5 when
nothing was found, and 4 under --strict when a sample was lost or what a counter
gained is not certain.`

// importOptions is what all kinds of import share.
type importOptions struct {
	kind   string
	source string   // as outputs may show it
	flags  []string // as given, for the manifest

	out              string
	force            bool
	warmup, cooldown time.Duration
	slice            time.Duration
	marks            []string
	tags             map[string]string
	filterFlags
	step  time.Duration
	quiet bool
	runFlags
}

func newImportCmd(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import KIND ...",
		Short: "Make a run of what others have recorded",
		Long:  importLong,
		Example: `  scrapestat import aiperf-jsonl artifacts/server_metrics_export.jsonl -o run1
  promtool tsdb dump-openmetrics data | scrapestat import openmetrics - -o run2
  scrapestat import prometheus http://prometheus:9090 --match '{job="vllm"}' --start -1h --end now -o incident`,
		Args: func(cmd *cobra.Command, args []string) error {
			var names []string
			for _, c := range cmd.Commands() {
				names = append(names, c.Name())
			}
			kinds := strings.Join(names, ", ")
			if len(args) == 0 {
				return usagef("missing KIND: %s", kinds)
			}
			return usagef("unknown kind %q (known: %s)", args[0], kinds)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImportAIPerfCmd(std), newImportOpenMetricsCmd(std), newImportPrometheusCmd(std),
		newImportTachometerCmd(std), newImportTorchServeCmd(std), newImportTritonCmd(std))
	return cmd
}

func (o *importOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&o.out, "out", "o", "",
		"run `directory`; refused when it exists unless --force (default runs/<UTC time>)")
	f.BoolVar(&o.force, "force", false, "replace the run in an existing directory")
	f.DurationVar(&o.warmup, "warmup", 0, "the first part is warm-up: recorded, excluded from statistics")
	f.DurationVar(&o.cooldown, "cooldown", 0, "the last part before the end: recorded, excluded from statistics")
	f.DurationVar(&o.slice, "slice-duration", 0,
		"timeslice width that export and show use by default (default: no slices)")
	f.StringArrayVar(&o.marks, "mark", nil,
		"start a phase: `NAME=TIME`, RFC 3339, seconds since 1970, or an offset such as +90s from the start (repeatable)")
	f.StringToStringVar(&o.tags, "tag", nil, "run tag `K=V`, kept in the manifest and the exports (repeatable)")
	o.filterFlags.register(f, "import")
	f.DurationVar(&o.step, "step", 0, "leave out polls of a target that follow another one within this `duration` "+
		"(default: keep all)")
	o.runFlags.register(cmd)
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress and no talk on stderr")
}

func (o *importOptions) validate() error {
	_, marks := o.parseMarks(0)
	return first(notNegative(map[string]time.Duration{"warmup": o.warmup, "cooldown": o.cooldown, "step": o.step,
		"slice-duration": o.slice}), o.filterFlags.validate(), o.memory.validate(), marks)
}

// parseMarks reads --mark; offsets count from startNS.
func (o *importOptions) parseMarks(startNS int64) ([]metric.Mark, error) {
	var out []metric.Mark
	for _, arg := range o.marks {
		name, at, ok := strings.Cut(arg, "=")
		if err := (metric.Mark{Name: name}).Validate(); !ok || err != nil {
			return nil, usagef("--mark %q: want NAME=TIME, NAME of 1 to 200 bytes without control characters", arg)
		}
		var ns int64
		if offset, err := time.ParseDuration(at); err == nil && strings.HasPrefix(at, "+") {
			ns = startNS + int64(offset)
		} else if when, err := parseInstant(at, time.Now()); err == nil {
			ns = when.UnixNano()
		} else {
			return nil, usagef("--mark %q: %w", arg, err)
		}
		out = append(out, metric.Mark{Name: name, AtNS: ns})
	}
	return out, nil
}

// parseInstant reads a time: RFC 3339, seconds since 1970, "now", or a duration before now such as -1h.
func parseInstant(text string, now time.Time) (time.Time, error) {
	if text == "now" {
		return now, nil
	}
	if d, err := time.ParseDuration(text); err == nil && strings.HasPrefix(text, "-") {
		return now.Add(d), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	var seconds, nanos int64
	whole, frac, _ := strings.Cut(text, ".")
	if _, err := fmt.Sscanf(whole+"\x00", "%d\x00", &seconds); err == nil && len(frac) <= 9 && seconds > 0 &&
		seconds < 9_200_000_000 {
		if _, err := fmt.Sscanf((frac + "000000000")[:9]+"\x00", "%09d\x00", &nanos); err == nil && nanos >= 0 {
			return time.Unix(seconds, nanos), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time: want 2026-11-21T10:00:00Z, seconds since 1970, now, or an age "+
		"such as -1h", text)
}

// imported is what an import brought.
type imported struct {
	targets, polls, failed int
	stored, lost           int64
	firstNS, lastNS        int64
	startNS, endNS         int64         // of the run, when they are not the first and last poll
	marks                  []metric.Mark // as the source has them
	notes                  []metric.Warning
}

// runImport makes the run directory and has load fill it.
func runImport(ctx context.Context, o importOptions, std stdio, load func(context.Context, *importSink) (imported,
	error)) error {
	o.out = cmp.Or(o.out, defaultRunDir(time.Now()))
	unlock, err := makeRunDir(o.out, o.force)
	if err != nil {
		return err
	}
	defer unlock()
	ctx, stop := signal.NotifyContext(ctx, endSignals()...)
	defer stop()
	context.AfterFunc(ctx, stop) // the next signal ends the process at once
	sink := &importSink{o: &o, started: time.Now(), say: newProgress(std.err, o.quiet)}
	got, loadErr := load(ctx, sink)
	if loadErr != nil && ctx.Err() != nil {
		loadErr = fmt.Errorf("import of %s ended early: %w", o.source, context.Cause(ctx))
	}
	sink.say.end()
	if sink.db == nil {
		if loadErr != nil {
			return loadErr
		}
		return &codeError{exitNothing, fmt.Errorf("nothing to import in %s: no sample was found", o.source)}
	}
	if err := sink.finish(got); err != nil {
		return errors.Join(loadErr, err)
	}
	return o.verdict(ctx, sink.say, got, loadErr)
}

// uncertain fails when not all numbers of an imported run are certain.
func uncertain(ctx context.Context, dir string) error {
	db, err := rundb.Open(dir)
	if err != nil {
		return err
	}
	r, err := summary.Build(ctx, []summary.Recording{db}, summary.Options{})
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	if text := r.Uncertain(); text != "" {
		return &codeError{exitIncomplete, fmt.Errorf("data uncertain: %s (--strict)", text)}
	}
	return nil
}

// verdict tells what was imported and decides the exit code.
func (o *importOptions) verdict(ctx context.Context, say *progress, got imported, err error) error {
	if got.polls > 0 {
		say.logf("imported %d scrapes (%d failed) of %d targets, %d samples, %s to %s, into %s", got.polls, got.failed,
			got.targets, got.stored,
			time.Unix(0, got.firstNS).UTC().Format(time.RFC3339), time.Unix(0, got.lastNS).UTC().Format(time.RFC3339), o.out)
	}
	for _, w := range got.notes {
		say.logf("warning: %s", w.Text)
	}
	switch {
	case err != nil && got.polls > 0:
		return fmt.Errorf("%w (what was read is kept: scrapestat show %s)", err, o.out)
	case err != nil:
		return err
	case got.polls == 0:
		return &codeError{exitNothing, fmt.Errorf("nothing to import in %s: no sample could be stored", o.source)}
	}
	if err := o.lost(got.lost, "%d samples were lost", got.lost); err != nil {
		return err
	}
	if o.strict {
		if err := uncertain(ctx, o.out); err != nil {
			return err
		}
	}
	say.logf("next: scrapestat show %s", o.out)
	return nil
}

// importSink records an import. It has one owner.
type importSink struct {
	o       *importOptions
	started time.Time
	say     *progress
	shown   time.Time

	db       *rundb.Writer
	firstNS  int64
	manifest rundb.Manifest
}

// Begin creates the recording, whose time begins at firstNS.
func (s *importSink) Begin(firstNS int64) error {
	m, manifest := describeRun(firstNS, s.o.tags, []string{"scrapestat", "import", s.o.kind}, s.o.flags,
		[]string{s.o.source})
	m.Warmup, m.Cooldown, m.Slice = s.o.warmup, s.o.cooldown, s.o.slice
	db, err := rundb.Create(s.o.out, m, rundb.WriterOptions{})
	if err != nil {
		return err
	}
	s.db, s.firstNS, s.manifest = db, firstNS, manifest
	s.manifest.Options = map[string]any{"import": s.o.kind, "warmup": s.o.warmup.String(),
		"cooldown": s.o.cooldown.String(), "keep": s.o.keep, "drop": s.o.drop, "step": s.o.step.String(),
		"slice-duration": s.o.slice.String()}
	return nil
}

// AddTarget adds a target to the recording and the manifest.
func (s *importSink) AddTarget(t metric.Target) (int, error) {
	s.manifest.Targets = append(s.manifest.Targets, rundb.ManifestTarget{Name: t.Name, URL: t.URL, Source: t.Source})
	return s.db.AddTarget(t)
}

// Record records a poll and notes the lifetime of its target.
func (s *importSink) Record(p *metric.Snapshot) error {
	text := 0
	for _, x := range p.DictDelta.Series {
		text += x.Labels.Size()
	}
	if !s.o.memory.of.Charge(len(p.DictDelta.Slots), text) {
		return rundb.ErrMemory
	}
	t := &s.manifest.Targets[p.Target]
	t.Polls++
	if p.Outcome.Stored() {
		at := time.Unix(0, p.AtNS()).UTC()
		if t.Stored++; t.Stored == 1 {
			t.First = at
		}
		t.Last = at
	}
	return s.db.Record(p)
}

// progress shows how far an import is, now and then.
func (s *importSink) progress(format string, args ...any) {
	if now := time.Now(); now.Sub(s.shown) > s.say.every()/2 && now.Sub(s.started) > time.Second/2 {
		s.shown = now
		s.say.show(fmt.Sprintf(format, args...))
	}
}

// finish sets the marks and closes the recording and the manifest.
func (s *importSink) finish(got imported) error {
	marks, err := s.marks(got)
	if err == nil {
		for _, m := range marks {
			err = errors.Join(err, s.db.Mark(m))
		}
	}
	for _, w := range got.notes {
		err = errors.Join(err, s.db.Warn(w))
	}
	s.manifest.Ended = time.Unix(0, max(got.lastNS, got.endNS, s.firstNS)).UTC()
	s.manifest.Warnings = got.notes
	return errors.Join(err, s.db.Close(context.Background()), rundb.WriteManifest(s.o.out, s.manifest))
}

// marks are the phases of the run: those of the source unless flags ask for others.
func (s *importSink) marks(got imported) ([]metric.Mark, error) {
	start, end := got.startNS, got.endNS
	start = cmp.Or(start, got.firstNS)
	end = cmp.Or(end, got.lastNS)
	own, err := s.o.parseMarks(start)
	if err != nil {
		return nil, err
	}
	if s.o.warmup == 0 && len(got.marks) > 0 {
		return append(slices.Clone(got.marks), own...), nil
	}
	var out []metric.Mark
	if s.o.warmup > 0 {
		out = append(out, metric.Mark{Name: metric.PhaseWarmup, AtNS: start, Kind: metric.MarkOwn})
	}
	out = append(out, metric.Mark{Name: metric.PhaseProfiling, AtNS: start + int64(s.o.warmup),
		Kind: metric.MarkOwn})
	return append(append(out, metric.Mark{Name: metric.MarkEnd, AtNS: end, Kind: metric.MarkOwn}), own...), nil
}

// note adds a warning of n things, unless there are none.
func (got *imported) note(n int64, code, format string, args ...any) {
	if n > 0 {
		got.notes = append(got.notes, metric.Warning{Code: code, Text: fmt.Sprintf(format, append([]any{n}, args...)...)})
	}
}

// refused counts what was refused before its series was known.
func (got *imported) refused(drops []metric.Drop) {
	for _, d := range drops {
		got.lost += int64(d.Lines)
		got.note(int64(d.Lines), "import_"+d.Reason, "%d lines were not imported (%s), the first: %s", d.Reason, d.First)
	}
}
