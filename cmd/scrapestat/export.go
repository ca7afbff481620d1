package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/internal/atomicfile"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

const exportLong = `Writes the exports of a recorded run again, with any window, slices or estimator.
Works on a run whose collector was killed, and on one that is still recorded.
Several RUNs recorded by several collectors of one benchmark merge into one result.
` + selectorHelp

const exportExample = `  scrapestat export run1 --warmup 60s --slice-duration 10s
  scrapestat export run1@concurrency-64 --percentiles 50,99,99.9 -o run1-c64
  scrapestat export run1 --by model_name --formats json -o - | jq .scrapestat.aggregates`

// exportOptions is the command line of export.
type exportOptions struct {
	runs     []string
	out      string
	window   windowFlags
	analysis analysisFlags
	phases   bool
	into     string
	replace  bool
	quiet    bool
}

func newExportCmd(std stdio) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:     "export RUN... [flags]",
		Short:   "Write the exports of a recorded run, with any window",
		Long:    exportLong,
		Example: exportExample,
		Args:    atLeast(1, "RUN, a run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.runs = args
			if err := first(o.analysis.validate(), o.readInto()); err != nil {
				return err
			}
			return exportRuns(cmd.Context(), o, std)
		},
	}
	cmd.Flags().StringVarP(&o.out, "out", "o", "",
		"output `directory`, or - for stdout with one format (default the first RUN)")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "no talk on stderr")
	cmd.Flags().BoolVar(&o.phases, "phases", false, "also write AIPerf's JSON of each phase: "+
		"phases/NAME/server_metrics.json, and their list, "+phaseList)
	cmd.Flags().StringVar(&o.into, "into", "", "with --formats llm-d: a `report` of llm-d, YAML or JSON, into a copy "+
		"of which the components go")
	cmd.Flags().BoolVar(&o.replace, "replace", false, "overwrite what the report of --into has (default: keep it)")
	o.window.register(cmd)
	o.analysis.register(cmd)
	o.analysis.registerBy(cmd)
	return cmd
}

// readInto reads the report of --into.
func (o *exportOptions) readInto() error {
	if o.into == "" && !o.replace {
		return nil
	}
	if o.into == "" || !slices.Contains(o.analysis.formats, "llm-d") {
		return usagef("--into and --replace go with --formats llm-d")
	}
	f, err := os.Open(o.into)
	if err != nil {
		return fmt.Errorf("--into: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, export.MaxReport+1))
	if err != nil {
		return fmt.Errorf("--into: %w", err)
	}
	if o.analysis.into, err = export.ReadReport(text); err != nil {
		return usagef("--into %s: %w", o.into, err)
	}
	o.analysis.into.Replace = o.replace
	return nil
}

// sayKept says which fields of the report of --into were kept as they were.
func (o *exportOptions) sayKept(say *progress) {
	if r := o.analysis.into; r != nil && len(r.Kept) > 0 {
		say.logf("warning: %s has other values of %s, which were kept (--replace overwrites them)", o.into,
			strings.Join(r.Kept, ", "))
	}
}

func exportRuns(ctx context.Context, o exportOptions, std stdio) error {
	so := o.analysis.options()
	so.AIPerf, so.Estimator = true, o.analysis.inFiles()
	var err error
	if o.runs, err = o.window.runs(o.runs, &so); err != nil {
		return err
	}
	o.analysis.run = filepath.Base(filepath.Clean(o.runs[0]))
	ours := slices.ContainsFunc(o.analysis.formats, func(f string) bool { return f == "stats" || f == "pytorch" })
	if o.analysis.estimator == "" && ours {
		so.Estimator, so.FileEstimator = histest.Refined, histest.Polynomial // of ours, and of AIPerf's files
	}
	if o.out == "-" && o.phases {
		return usagef("--phases writes files: -o - takes one format to stdout")
	}
	if o.out == "-" {
		return exportStdout(ctx, o, so, std)
	}
	if o.out == "" {
		o.out = o.runs[0]
	} else if !slices.Contains(o.runs, o.out) {
		if err := makeExportDir(o.out); err != nil {
			return err
		}
	}
	say := newProgress(std.err, o.quiet)
	result, files, err := analyse(ctx, o.runs, o.analysis, so, o.out, say)
	if o.phases && result != nil && err == nil {
		err = writePhases(ctx, o, so, result)
	}
	if slices.Contains(o.runs, o.out) {
		err = errors.Join(err, refreshManifest(o.out, files))
	}
	o.sayKept(say)
	for _, f := range files {
		say.logf("wrote %s (%d bytes)", f.Path, f.Size)
	}
	if err == nil {
		err = cmp.Or(o.analysis.verdict(result), notEmpty(result, o.runs[0], 1))
	}
	return err
}

// writePhases writes the statistics of each phase and the list of them.
func writePhases(ctx context.Context, o exportOptions, so summary.Options, whole *summary.Run) error {
	phases := export.Phases(whole)
	for i := range phases {
		p := &phases[i]
		so.Windows, so.Window = nil, phaseRef(p, so.Windows)
		result, _, closeAll, err := load(ctx, o.runs, o.analysis, so, newProgress(io.Discard, true))
		if err != nil {
			return fmt.Errorf("phase %q: %w", p.Name, err)
		}
		closeAll()
		var b bytes.Buffer
		file := filepath.Join(o.out, filepath.FromSlash(p.File))
		if err = os.MkdirAll(filepath.Dir(file), 0o777); err == nil {
			err = export.PhaseJSON(&b, result, p, o.analysis.exportOptions())
		}
		if err == nil {
			err = atomicfile.WriteFile(file, b.Bytes(), atomicfile.DefaultPerm)
		}
		if err != nil {
			return fmt.Errorf("phase %q: %w", p.Name, err)
		}
	}
	var b bytes.Buffer
	if err := export.PhaseManifest(&b, phases); err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(o.out, phaseList), b.Bytes(), atomicfile.DefaultPerm)
}

// phaseRef is how a phase is asked for, of a run whose own window was asked for as given.
func phaseRef(p *export.Phase, given []window.Ref) window.Ref {
	if !p.Whole {
		return window.Ref{What: window.Range, From: window.Point{Base: window.Absolute, AtNS: p.StartNS},
			To: window.Point{Base: window.Absolute, AtNS: p.EndNS}}
	}
	ref := window.Ref{What: window.Phase, Phase: p.Name, Instance: p.Of.Instance}
	if p.Of.Of < 2 {
		ref.Instance = 0
	}
	if len(given) > 0 && given[0].What == window.Default && p.Of.Kind == "" {
		ref.Warmup, ref.Cooldown = given[0].Warmup, given[0].Cooldown
	}
	return ref
}

func exportStdout(ctx context.Context, o exportOptions, so summary.Options, std stdio) error {
	if len(o.analysis.formats) != 1 {
		return usagef("-o - writes one format; choose it with --formats")
	}
	result, runs, closeAll, err := load(ctx, o.runs, o.analysis, so, newProgress(std.err, true))
	if err != nil {
		return err
	}
	defer closeAll()
	if err := o.analysis.knowsLabels(result); err != nil {
		return err
	}
	w := bufio.NewWriter(std.out)
	name, eo := o.analysis.formats[0], o.analysis.exportOptions()
	if err := export.Lookup(name, result, eo)[0].Write(ctx, w, result, recordings(runs), eo); err != nil {
		return fmt.Errorf("export %s to stdout: %w", name, err)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write stdout: %w", err)
	}
	o.sayKept(newProgress(std.err, o.quiet))
	return cmp.Or(o.analysis.verdict(result), notEmpty(result, o.runs[0], 1))
}
