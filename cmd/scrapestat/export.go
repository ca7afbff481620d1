package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/summary"
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
			if err := o.analysis.validate(); err != nil {
				return err
			}
			return exportRuns(cmd.Context(), o, std)
		},
	}
	cmd.Flags().StringVarP(&o.out, "out", "o", "",
		"output `directory`, or - for stdout with one format (default the first RUN)")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "no talk on stderr")
	o.window.register(cmd)
	o.analysis.register(cmd)
	o.analysis.memory.register(cmd)
	o.analysis.registerBy(cmd)
	o.analysis.registerStrict(cmd)
	return cmd
}

func exportRuns(ctx context.Context, o exportOptions, std stdio) error {
	so := o.analysis.options()
	so.AIPerf = true
	var err error
	if o.runs, err = o.window.runs(o.runs, &so); err != nil {
		return err
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
	if slices.Contains(o.runs, o.out) {
		err = errors.Join(err, refreshManifest(o.out, files))
	}
	for _, f := range files {
		say.logf("wrote %s (%d bytes)", f.Path, f.Size)
	}
	if err == nil {
		err = cmp.Or(o.analysis.verdict(result), notEmpty(result, o.runs[0], 1))
	}
	return err
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
	w := bufio.NewWriter(std.out)
	name, eo := o.analysis.formats[0], o.analysis.exportOptions()
	if err := export.Lookup(name, result, eo)[0].Write(ctx, w, result, recordings(runs), eo); err != nil {
		return fmt.Errorf("export %s to stdout: %w", name, err)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write stdout: %w", err)
	}
	return cmp.Or(o.analysis.verdict(result), notEmpty(result, o.runs[0], 1))
}
