package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/history"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

const historyAddLong = `Adds runs: run directories, JSON exports, and all runs beneath a directory. A run that is there
is left alone, so add may be repeated; --refresh analyses it again, without RUN those that an
older version added. --csv FILE adds values of other tools: columns time, run, commit, branch,
tag:NAME and a quantity in each other one.
` + selectorHelp

const historyAddExample = `  scrapestat history add runs
  scrapestat history add run1 run2@steady --key gpu
  scrapestat history add --csv nightly.csv --better score=higher`

// historyAdd is the command line of history add.
type historyAdd struct {
	historyFlags
	csv               string
	keys              []string
	better            map[string]string
	families, refresh bool
	analysis          analysisFlags

	std     stdio
	f       *history.File
	reading history.Reading
	added   int
	known   int
	failed  error
}

func newHistoryAddCmd(std stdio) *cobra.Command {
	o := historyAdd{std: std}
	cmd := &cobra.Command{
		Use: "add RUN... [flags]", Short: "Add runs to a history", Long: historyAddLong, Example: historyAddExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && o.csv == "" && !o.refresh {
				return usagef("missing argument: RUN, a run directory, a JSON export or a directory with runs")
			}
			for name, way := range o.better {
				if way != "lower" && way != "higher" {
					return usagef("--better %s=%s: want lower or higher", name, way)
				}
			}
			if err := first(o.analysis.memory.validate(), o.analysis.readCatalogs()); err != nil {
				return err
			}
			return o.run(cmd.Context(), args)
		},
	}
	o.registerFile(cmd)
	f := cmd.Flags()
	f.StringVar(&o.csv, "csv", "", "add the lines of this `file`; - is stdin")
	f.StringArrayVar(&o.keys, "key", nil, "`tag` that tells configurations apart (repeatable)")
	f.StringToStringVar(&o.better, "better", nil, "which way a quantity of --csv gets better: `QUANTITY=lower` or higher")
	f.BoolVar(&o.families, "families", false, "also keep what every family did")
	f.BoolVar(&o.refresh, "refresh", false, "analyse runs that are there again")
	f.StringArrayVar(&o.analysis.catalogs, "catalog", nil, "YAML `file` of families that the program does not know")
	o.analysis.stderr = cmd.ErrOrStderr
	o.analysis.runFlags.register(cmd)
	return cmd
}

// run adds all that was named. What cannot be read is told, and ends it with 1 after the others.
func (o *historyAdd) run(ctx context.Context, args []string) (err error) {
	if o.f, err = history.Open(ctx, o.file, true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.f.Close()) }()
	co := compare.Options{Catalog: o.analysis.catalog}
	if err := checkProfile(&co); err != nil {
		return err
	}
	o.analysis.catalog = co.Catalog
	o.reading = history.Reading{Catalog: co.Catalog, Keys: o.keys, Families: o.families}
	if o.csv != "" {
		if err := o.addCSV(ctx); err != nil {
			return err
		}
	}
	if len(args) == 0 && o.refresh {
		if args, err = o.outdated(ctx); err != nil {
			return err
		}
	}
	for _, text := range args {
		if err := o.addArg(ctx, text); err != nil {
			return err
		}
	}
	fmt.Fprintf(o.std.err, "%s added to %s, %d already there\n", texttab.Count(o.added, "run"), o.file, o.known)
	return o.failed
}

// outdated lists the runs that an older version of the analysis added and whose directory is there.
func (o *historyAdd) outdated(ctx context.Context) (out []string, err error) {
	runs, _, err := o.f.Runs(ctx, history.Query{})
	for _, r := range runs {
		if _, e := os.Stat(r.Path); r.Path != "" && e == nil && r.Analysis < history.Analysis {
			out = append(out, r.Path)
		}
	}
	return out, err
}

// addArg adds a run, or all runs beneath a directory.
func (o *historyAdd) addArg(ctx context.Context, text string) error {
	a, err := (&windowFlags{}).arg(text)
	if err != nil {
		return err
	}
	if info, err := os.Stat(a.Run); err != nil || !info.IsDir() || isRun(a.Run) || isExport(a.Run) {
		return o.addOne(ctx, sideArg{path: a.Run, ref: a.Ref})
	}
	n := 0
	err = filepath.WalkDir(a.Run, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || !isRun(path) {
			return err
		}
		n++
		return errors.Join(o.addOne(ctx, sideArg{path: path, ref: a.Ref}), ctx.Err())
	})
	if err == nil && n == 0 {
		return fmt.Errorf("%s: no run there", a.Run)
	}
	return err
}

// isExport reports whether a directory holds a JSON export.
func isExport(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "server_metrics_export.json"))
	return err == nil
}

// addOne adds a run. One that cannot be read is told, and does not keep the others from being added.
func (o *historyAdd) addOne(ctx context.Context, a sideArg) error {
	if known, err := o.isKnown(ctx, a); known || err != nil {
		o.known++
		return err
	}
	o.analysis.memory.renew()
	e, run, err := o.analysis.entry(ctx, a, &o.reading)
	if codeOrDone(err) == exitUsage || ctx.Err() != nil {
		return err
	}
	if err != nil {
		fmt.Fprintf(o.std.err, "warning: %s is not added: %v\n", a.path, err)
		o.failed = &codeError{exitFailed, errors.New("some runs could not be added")}
		return nil
	}
	added, err := o.f.Add(ctx, e, o.refresh)
	if bad := o.analysis.verdict(run); bad != nil && err == nil {
		fmt.Fprintf(o.std.err, "warning: %s: %v\n", a.path, bad)
		o.failed = cmp.Or(o.failed, bad)
	}
	switch {
	case err != nil:
		return err
	case !added:
		o.known++
		return nil
	case !e.Judged():
		fmt.Fprintf(o.std.err, "note: %s has no headline: no quantity of it has a canonical id\n", a.path)
	}
	o.added++
	return nil
}

// codeOrDone is the exit code of an error that may be none.
func codeOrDone(err error) int {
	if err == nil {
		return exitDone
	}
	return codeOf(err)
}

// isKnown reports whether the run is in the file and is to be left alone, without analysing it.
func (o *historyAdd) isKnown(ctx context.Context, a sideArg) (bool, error) {
	if o.refresh || !isRun(runDir(a.path)) {
		return false, nil
	}
	r, err := rundb.Open(runDir(a.path))
	if err != nil {
		return false, nil // the analysis will say why
	}
	defer r.Close()
	id := r.Meta().ID
	if text := a.ref.String(); a.ref != (window.Ref{}) {
		id += "@" + text
	}
	_, ok, err := o.f.Has(ctx, id)
	return ok, err
}

// entry analyses a run for a history. Percentiles are refined: estimators do not mix in a series.
func (a *analysisFlags) entry(ctx context.Context, arg sideArg, reading *history.Reading) (*history.Entry, *summary.Run,
	error) {
	so := summary.Options{Estimator: histest.Refined, Catalog: a.catalog, Quantiles: []float64{0.5, 0.99}}
	list, err := readInputs(ctx, []sideArg{arg}, &compareOptions{phases: true, analysis: *a}, so)
	if err != nil {
		return nil, nil, err
	}
	e, err := historyEntry(&list[0], arg, reading)
	return e, list[0].Run, err
}

// historyEntry makes an entry of a run that was analysed, and of its phases.
func historyEntry(in *compare.Input, arg sideArg, reading *history.Reading) (*history.Entry, error) {
	sources := []history.Source{historySource(in, arg)}
	for i := range in.Phases {
		s := historySource(&in.Phases[i].Input, arg)
		s.Phase = in.Phases[i].Name
		sources = append(sources, s)
	}
	return reading.Entry(sources[0], sources[1:]...)
}

// historySource is a run as a history reads it.
func historySource(in *compare.Input, a sideArg) history.Source {
	s := history.Source{Path: absolute(a.path), Run: in.Run, Options: map[string]string{},
		Seconds: float64(in.Run.Window.EndNS-in.Run.Window.StartNS) / 1e9}
	if w := in.Run.Window.Resolved; w != nil {
		s.Seconds, _, _ = w.Bounds()
	}
	if a.ref != (window.Ref{}) {
		s.Phase = a.ref.String()
	}
	for _, x := range in.Settings {
		if x.Kind == "option" {
			s.Options[x.Name] = x.Value
		}
	}
	return s
}

// addCSV adds the lines of a file.
func (o *historyAdd) addCSV(ctx context.Context) error {
	in := o.std.in
	if o.csv != "-" {
		f, err := os.Open(o.csv)
		if err != nil {
			return fmt.Errorf("--csv: %w", err)
		}
		defer f.Close()
		in = f
	}
	var stored error
	err := history.ReadCSV(in, history.CSVOptions{Keys: o.keys, Better: o.better}, func(e *history.Entry) error {
		var added bool
		if added, stored = o.f.Add(ctx, e, o.refresh); added {
			o.added++
		} else {
			o.known++
		}
		return stored
	})
	if err != nil && stored == nil {
		return usagef("%s:%w", o.csv, err)
	}
	return err
}

// git runs git in the working directory and returns what it prints.
func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}
